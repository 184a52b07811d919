"""The runs of a version of the graph: read, found by name, chosen."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.model.run import RUNS, Run, decode_runs

if TYPE_CHECKING:
    from govtool.model.version import ContentIdentity
    from govtool.query.rundiff import RunDifference
    from govtool.query.runs import History, WrittenVersion
    from govtool.store import Commit, Reader

STATUSES = ("complete", "failed", "aborted", "running", "unknown")
_CANDIDATES = 20
_DIGEST = 6
"""Characters of a digest that are taken for one."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Conditions on runs; all that are given must hold."""

    job: str | None = None
    """A glob."""
    status: str | None = None
    dataset: str | None = None
    """A glob of a dataset that was read or written."""
    software: str | None = None
    """See ``govtool.query.software``."""
    since: str | None = None
    """ISO 8601: started then or later."""

    def check(self) -> None:
        """Find mistakes before anything is read.

        Raises:
            UsageError: no such status (``usage.unknown-status``), no date (``usage.date``), no software.
        """
        from govtool.query.software import SoftwareSpec

        if self.status is not None and self.status not in STATUSES:
            raise UnknownNameError(
                f"no status {self.status!r}",
                code="usage.unknown-status",
                nearest=tuple(difflib.get_close_matches(self.status, STATUSES)),
                hint=f"one of {', '.join(STATUSES)}",
            )
        if self.since is not None and not _is_date(self.since):
            raise UsageError(f"{self.since!r} is no date", code="usage.date", hint="--since 2026-11-20")
        if self.software is not None:
            SoftwareSpec.parse(self.software)

    def keep(self, runs: Iterable[Run]) -> list[Run]:
        """The runs for which all conditions hold, the newest first.

        Raises:
            UsageError: ``software`` names none.
        """
        from govtool.query.software import SoftwareSpec

        spec = SoftwareSpec.parse(self.software) if self.software else None
        kept = [
            run
            for run in runs
            if (self.job is None or any(fnmatchcase(job, self.job) for job in run.jobs))
            and (self.status is None or run.status == self.status)
            and (self.dataset is None or any(is_named(name, self.dataset) for name in datasets_of(run)))
            and (spec is None or spec.used_by(run))
            and (self.since is None or (run.started or run.ended or "") >= self.since)
        ]
        return kept[::-1]


def datasets_of(run: Run) -> tuple[str, ...]:
    """Return what a run read and wrote."""
    return (*(read.dataset for read in run.inputs), *(written.dataset for written in run.outputs))


def read_history(store: Reader, commit: Commit) -> History:
    """All runs of the live sources of a commit.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    from govtool.query.runs import History

    refs = [ref for ref in store.fragments(commit) if ref.table == RUNS]
    return History(run for data in store.read_many(refs) for run in decode_runs(data))


def run_or_commit(store: Reader, ref: str, branch: str | None, at: Commit) -> Run | Commit:
    """Resolve the name of a commit or of a run; where both have it, the commit.

    Args:
        store: The store.
        ref: The name.
        branch: Where numbers and dates of commits are looked up.
        at: Runs are those of this commit.

    Raises:
        UnknownNameError: neither is called so; with the nearest of either.
    """
    from govtool.app.project import commit_at

    try:
        return commit_at(store, None if ref == "HEAD" else ref, branch)
    except UnknownNameError as error:
        history = read_history(store, at)
        if not history.runs:
            raise UnknownNameError(
                f"{error.message}, and the graph has no runs", code=error.code, nearest=error.nearest, hint=error.hint
            ) from None
        try:
            return find_run(history, ref)
        except UnknownNameError as no_run:
            raise UnknownNameError(
                f"no commit and no run is called {ref!r}",
                code="usage.unknown-ref",
                nearest=(*no_run.nearest, *error.nearest)[:5],
                hint="govtool log, govtool runs",
            ) from None


def find_run(history: History, text: str) -> Run:
    """The run of an id, or of the beginning or end of one; ``JOB~1`` is the last but one run of a job.

    Raises:
        UnknownNameError: ``usage.unknown-run``, with the nearest.
        AmbiguousNameError: ``usage.ambiguous-run``, with the candidates.
    """
    found = matching_runs(history, text)
    if not found:
        known = list(dict.fromkeys(name for run in reversed(history.runs) for name in (*run.ids, *run.jobs)))
        raise UnknownNameError(
            f"no run is called {text!r}",
            code="usage.unknown-run",
            nearest=tuple(difflib.get_close_matches(text, known[:2000], 3, 0.4)),
            hint="govtool runs",
        )
    if len(found) > 1:
        raise AmbiguousNameError(
            f"{text!r} may be {len(found)} runs",
            code="usage.ambiguous-run",
            nearest=tuple(run.id for run in found[:_CANDIDATES]),
            hint=f"write more of the id, such as {found[0].id}",
        )
    return found[0]


def matching_runs(history: History, text: str) -> list[Run]:
    """The runs that a text may mean: by id, else by ``JOB`` or ``JOB~N``, else by the beginning or end of an id."""
    exact = [run for run in history.runs if text in run.ids]
    if exact:
        return exact
    job, tilde, back = text.rpartition("~")
    name, steps = (job, int(back)) if tilde and back.isdecimal() else (text, 0)
    of_job = [run for run in history.runs if name in run.jobs]
    if of_job:
        return [of_job[-1 - steps]] if steps < len(of_job) else []
    if not text:
        return []
    return [run for run in history.runs if any(name.startswith(text) or name.endswith(text) for name in run.ids)]


def compare_runs(store: Reader, commit: Commit, before: Run | Commit, after: Run | Commit) -> RunDifference:
    """Two runs compared; a commit where a run is wanted is a mistake, but for the default, which is the run before.

    Raises:
        UsageError: ``usage.arguments``: one of them is a commit.
    """
    from govtool.model.run import Run as RunType
    from govtool.query.rundiff import diff_runs

    history = read_history(store, commit)
    if isinstance(before, RunType) and isinstance(after, RunType):
        return diff_runs(history, before, after)
    run = before if isinstance(before, RunType) else after
    name = run.id if isinstance(run, RunType) else ""
    raise UsageError(
        f"{name} is a run, and the other is a commit",
        code="usage.arguments",
        hint=f"two runs: govtool diff JOB~1 JOB; see govtool show {name}",
    )


def find_version(history: History, dataset: str, text: str) -> WrittenVersion:
    """The version of a dataset that ``DATASET@TEXT`` means.

    ``TEXT`` is a Delta or Iceberg version, the beginning of a digest, a version as a system states it, ``latest``, a
    run, or a date or time (UTC), tried in this order.

    Raises:
        UnknownNameError: ``usage.unknown-version``; ``usage.unknown-dataset`` if no run wrote the dataset.
    """
    name = written_dataset(history, dataset)
    versions = history.versions(name)
    found = [w for w in versions if text.isdecimal() and w.output.identity and w.output.identity.version == int(text)]
    if not found and len(text) >= _DIGEST:
        found = [w for w in versions if w.output.identity and _is_digest(w.output.identity.digest, text)]
    if not found:
        found = [w for w in versions if w.output.identity and _is_stated(w.output.identity, text)]
    if not found and text == "latest":
        found = list(versions[-1:])
    if not found:
        runs = {id(run) for run in matching_runs(history, text)}
        found = [w for w in versions if id(w.run) in runs]
    if found:
        return found[-1].version
    dated = history.before(name, f"{text}T99" if len(text) == len("2026-11-20") else text) if _is_date(text) else None
    if dated is None:
        raise UnknownNameError(
            f"{name} has no version {text!r}",
            code="usage.unknown-version",
            nearest=tuple(_version_names(history, name))[:5],
            hint=f"govtool runs --dataset {name}",
        )
    return dated


def written_dataset(history: History, text: str) -> str:
    """The dataset that a run wrote of this name, or of this end of it.

    Raises:
        UnknownNameError: ``usage.unknown-dataset``.
        AmbiguousNameError: ``usage.ambiguous-dataset``.
    """
    if history.versions(text):
        return text
    found = sorted(name for name in history.datasets if is_named(name, text))
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousNameError(
            f"{text!r} may be {len(found)} datasets", code="usage.ambiguous-dataset", nearest=tuple(found[:_CANDIDATES])
        )
    raise UnknownNameError(
        f"no run is known to have written {text!r}",
        code="usage.unknown-dataset",
        nearest=tuple(difflib.get_close_matches(text, sorted(history.datasets)[:5000], 3, 0.4)),
        hint="govtool runs",
    )


def _version_names(history: History, dataset: str) -> list[str]:
    names = []
    for writing in reversed(history.versions(dataset)):
        identity = writing.output.identity
        if identity is not None and identity.version is not None:
            names.append(str(identity.version))
        else:
            names.append(identity.short if identity is not None else writing.run.id)
    return names


def _is_digest(digest: str, text: str) -> bool:
    return digest.startswith(text) or digest.endswith((f"#{text}", f"/{text}"))


def _is_stated(identity: ContentIdentity, text: str) -> bool:
    """Return whether a version is stated by a text: the whole of it, or its last part, however short."""
    return identity.kind == "stated" and text in (identity.digest, identity.short)


def is_named(name: str, wanted: str) -> bool:
    """Return whether a dataset is meant by its name, the end of it, or a glob."""
    return name == wanted or name.endswith((f".{wanted}", f"/{wanted}")) or fnmatchcase(name, wanted)


def _is_date(text: str) -> bool:
    from datetime import datetime

    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def version_text(history: History, version: WrittenVersion) -> str:
    """A version as it is written on the command line: ``orders@3f2a9c01``."""
    identity = history.writing(version).output.identity
    if identity is None:
        return f"{version.dataset}@{history.writing(version).run.id}"
    return f"{version.dataset}@{identity.short if identity.version is None else identity.version}"


def version_names(history: History, versions: Iterable[WrittenVersion]) -> dict[WrittenVersion, str]:
    """Versions as they are written on the command line."""
    return {version: version_text(history, version) for version in versions}


def runs_named(history: History, patterns: Sequence[str]) -> list[Run]:
    """The runs whose id matches one of the globs."""
    return [run for run in history.runs if any(fnmatchcase(id_, pattern) for id_ in run.ids for pattern in patterns)]
