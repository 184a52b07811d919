"""The runs of a version of the graph: read, found by name, chosen."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.model.run import RUNS, Run, decode_runs
from govtool.names import renewed_text, written_id
from govtool.store.resolve import parse_moment

if TYPE_CHECKING:
    from datetime import datetime

    from govtool.model.version import ContentIdentity
    from govtool.query.runs.diff import RunDifference
    from govtool.query.runs.history import History, Writing, WrittenVersion
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
    """See ``govtool.query.selection.software``."""
    since: str | None = None
    """A date or time of ISO 8601, in UTC unless it says otherwise: started then or later."""

    def check(self) -> None:
        """Find mistakes before anything is read.

        Raises:
            UsageError: no such status (``usage.unknown-status``), no date (``usage.date``), no software.
        """
        from govtool.query.selection.software import SoftwareSpec

        if self.status is not None and self.status not in STATUSES:
            raise UnknownNameError(
                f"no status {self.status!r}",
                code="usage.unknown-status",
                nearest=tuple(difflib.get_close_matches(self.status, STATUSES)),
                hint=f"one of {', '.join(STATUSES)}",
            )
        if self.since is not None:
            self._start()
        if self.software is not None:
            SoftwareSpec.parse(self.software)

    def keep(self, runs: Iterable[Run]) -> list[Run]:
        """The runs for which all conditions hold, the newest first.

        Raises:
            UsageError: ``software`` names none.
        """
        from govtool.query.selection.software import SoftwareSpec

        spec = SoftwareSpec.parse(self.software) if self.software else None
        start = None if self.since is None else self._start()
        # Names of jobs hold paths, which versions before wrote in another form.
        wanted = None if self.job is None else renewed_text(self.job)
        kept = [
            run
            for run in runs
            if (wanted is None or any(fnmatchcase(job, wanted) for job in run.jobs))
            and (self.status is None or run.status == self.status)
            and (self.dataset is None or any(is_named(name, self.dataset) for name in datasets_of(run)))
            and (spec is None or spec.used_by(run))
            and (start is None or ((began := parse_moment(run.started or run.ended or "")) and began >= start))
        ]
        return kept[::-1]

    def _start(self) -> datetime:
        """The moment that ``since`` means; of a day its beginning.

        Raises:
            UsageError: It is no date (``usage.date``).
        """
        text = self.since or ""
        found = parse_moment(text if "T" in text or " " in text else f"{text}T00:00")
        if found is None:
            raise UsageError(f"{text!r} is not a date", code="usage.date", hint="--since 2026-11-20")
        return found


def datasets_of(run: Run) -> tuple[str, ...]:
    """Return what a run read and wrote."""
    return (*(read.dataset for read in run.inputs), *(written.dataset for written in run.outputs))


def read_history(store: Reader, commit: Commit) -> History:
    """All runs of the live sources of a commit.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    from govtool.query.runs.history import History

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
    from govtool.app.project.project import commit_at

    try:
        return commit_at(store, None if ref == "HEAD" else ref, branch)
    except UnknownNameError as error:
        history = read_history(store, at)
        if not history.runs and not ref.isdecimal():
            raise UnknownNameError(
                f"{error.message}, and the graph has no runs", code=error.code, nearest=error.nearest, hint=error.hint
            ) from None
        try:
            return find_run(history, ref)
        except UnknownNameError as no_run:
            if ref.isdecimal():
                raise error from None
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
        _refuse_script(history, text)
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


def _refuse_script(history: History, text: str) -> None:
    """Refuse the name of a script whose writes are jobs of their own, ``job.py:DATASET``, and list these.

    Raises:
        AmbiguousNameError: It is one (``usage.ambiguous-run``).
    """
    name, steps = job_and_steps(renewed_text(text))
    jobs = dict.fromkeys(job for run in history.runs for job in run.jobs if job.startswith(f"{name}:"))
    if jobs:
        raise AmbiguousNameError(
            f"each write of {name!r} is a job of its own: name one of {len(jobs)}",
            code="usage.ambiguous-run",
            nearest=tuple(f"{job}~{steps}" if steps else job for job in jobs)[:_CANDIDATES],
            hint=f"govtool runs '{name}:*'",
        )


def matching_runs(history: History, text: str) -> list[Run]:
    """The runs that a text may mean: by id, else by ``JOB`` or ``JOB~N``, else by the beginning or end of an id."""
    text = renewed_text(text)
    exact = [run for run in history.runs if text in run.ids]
    if exact:
        return exact
    name, steps = job_and_steps(text)
    of_job = [run for run in history.runs if name in run.jobs]
    if of_job:
        return [of_job[-1 - steps]] if steps < len(of_job) else []
    if not text:
        return []
    return [run for run in history.runs if any(name.startswith(text) or name.endswith(text) for name in run.ids)]


def job_and_steps(text: str) -> tuple[str, int]:
    """The name and the number of ``JOB~N``; 0 without one."""
    job, tilde, back = text.rpartition("~")
    return (job, int(back)) if tilde and back.isdecimal() else (text, 0)


def compare_runs(store: Reader, commit: Commit, before: Run | Commit, after: Run | Commit) -> RunDifference:
    """Two runs compared; a commit where a run is wanted is a mistake, but for the default, which is the run before.

    Raises:
        UsageError: ``usage.arguments``: one of them is a commit.
    """
    from govtool.model.run import Run as RunType
    from govtool.query.runs.diff import diff_runs

    history = read_history(store, commit)
    if isinstance(before, RunType) and isinstance(after, RunType):
        return diff_runs(history, before, after)
    run = before if isinstance(before, RunType) else after
    name = run.id if isinstance(run, RunType) else ""
    raise UsageError(
        f"{name} is a run, but the other is a commit",
        code="usage.arguments",
        hint=f"two runs: govtool diff JOB~1 JOB; see govtool show {name}",
    )


def named_version(history: History, name: str) -> WrittenVersion:
    """The version that ``DATASET@VERSION`` means; either part may hold an ``@`` itself.

    Args:
        history: The runs.
        name: Holds an ``@`` behind its first character.

    Raises:
        UnknownNameError: See `find_version`.
        AmbiguousNameError: See `find_version`.
    """
    failure: UnknownNameError | None = None
    for at in range(len(name) - 1, 0, -1):
        if name[at] != "@":
            continue
        try:
            return find_version(history, name[:at], name[at + 1 :])
        except UnknownNameError as error:
            if failure is None or (failure.code, error.code) == ("usage.unknown-dataset", "usage.unknown-version"):
                failure = error
    assert failure is not None
    raise failure


def find_version(history: History, dataset: str, text: str) -> WrittenVersion:
    """The version of a dataset that ``DATASET@TEXT`` means.

    ``TEXT`` is a version as a system states it, a Delta or Iceberg version, ``latest``, the beginning of a digest or
    the last part of what a system states, a run, or a date or time (UTC), tried in this order.
    Where runs keep a relation in folders of their own, all of these count.

    Raises:
        UnknownNameError: ``usage.unknown-version``; ``usage.unknown-dataset`` if no run wrote the dataset.
        AmbiguousNameError: ``usage.ambiguous-version``: several versions, as systems state them, end so;
            ``usage.ambiguous-dataset``: several relations are called so.
    """
    names = written_datasets(history, dataset)
    versions = sorted((w for name in names for w in history.versions(name)), key=lambda w: w.time)
    found = next(filter(None, _meanings(history, versions, dataset, text)), None)
    if found is None:
        raise UnknownNameError(
            f"{dataset} has no version {text!r}",
            code="usage.unknown-version",
            nearest=tuple(_version_names(versions))[:5],
            hint=f"govtool runs --dataset {dataset}",
        )
    return found[-1].version


def _meanings(history: History, versions: Sequence[Writing], dataset: str, text: str) -> Iterator[list[Writing]]:
    """The versions that a text may mean, by each way of naming them, the surest way first.

    Raises:
        AmbiguousNameError: See `_of_one_content`.
    """
    identified = [(w, w.output.identity) for w in versions if w.output.identity]
    yield [w for w, identity in identified if identity.digest == text]
    if text.isdecimal():
        yield [w for w, identity in identified if identity.version == int(text)]
    if text == "latest":
        yield list(versions[-1:])
    yield _of_one_content(versions, dataset, text)
    runs = {id(run) for run in matching_runs(history, text)}
    yield [w for w in versions if id(w.run) in runs]
    moment = parse_moment(text)
    if moment is not None:
        yield [w for w in versions if (parse_moment(w.time) or moment) <= moment]


def _of_one_content(versions: Sequence[Writing], dataset: str, text: str) -> list[Writing]:
    """The versions whose digest begins so, or that a system calls something with this last part, however short.

    Several contents of a day are none of them: then the date decides.

    Raises:
        AmbiguousNameError: Different contents are called so.
    """
    found = [w for w in versions if w.output.identity and _is_digest(w.output.identity, text)]
    digests = list(dict.fromkeys(w.output.identity.digest for w in found if w.output.identity))
    if len(digests) < 2:
        return found
    if parse_moment(text) is not None:
        return []
    raise AmbiguousNameError(
        f"{text!r} may be {len(digests)} versions of {dataset}",
        code="usage.ambiguous-version",
        nearest=tuple(digests[:_CANDIDATES]),
        hint="write the whole version",
    )


def written_datasets(history: History, text: str) -> list[str]:
    """The datasets of the relation that runs wrote of this name, or of this end of it.

    They are several where each run keeps the relation in a folder of its own.

    Raises:
        UnknownNameError: ``usage.unknown-dataset``.
        AmbiguousNameError: ``usage.ambiguous-dataset``.
    """
    from govtool.query.runs.relation_names import RelationHistory

    text = written_id(text)
    if history.versions(text):
        return [text]
    found = sorted(name for name in history.datasets if is_named(name, text))
    if len(found) > 1:
        relations = RelationHistory(history)
        if len({relations.name(name) for name in found}) == 1:
            return found
        raise AmbiguousNameError(
            f"{text!r} may be {len(found)} datasets", code="usage.ambiguous-dataset", nearest=tuple(found[:_CANDIDATES])
        )
    if found:
        return found
    raise UnknownNameError(
        f"no run is known to have written {text!r}",
        code="usage.unknown-dataset",
        nearest=tuple(difflib.get_close_matches(text, sorted(history.datasets)[:5000], 3, 0.4)),
        hint="govtool runs",
    )


def _version_names(versions: Sequence[Writing]) -> list[str]:
    shared = _shared_ends(versions)
    return [_version_text(writing, shared) for writing in reversed(versions)]


def _is_digest(identity: ContentIdentity, text: str) -> bool:
    if identity.kind == "stated" and text == identity.short:
        return True
    digest = identity.digest
    return len(text) >= _DIGEST and (digest.startswith(text) or digest.endswith((f"#{text}", f"/{text}")))


def is_named(name: str, wanted: str) -> bool:
    """Return whether a dataset is meant by its name, the end of it, or a glob."""
    wanted = written_id(wanted)
    return name == wanted or name.endswith((f".{wanted}", f"/{wanted}")) or fnmatchcase(name, wanted)


def version_names(history: History, versions: Iterable[WrittenVersion]) -> dict[WrittenVersion, str]:
    """Versions as they are written on the command line: ``orders@3f2a9c01``."""
    names: dict[WrittenVersion, str] = {}
    shared: dict[str, set[str]] = {}
    for version in versions:
        if version.dataset not in shared:
            shared[version.dataset] = _shared_ends(history.versions(version.dataset))
        names[version] = f"{version.dataset}@{_version_text(history.writing(version), shared[version.dataset])}"
    return names


def _version_text(writing: Writing, shared: Container[str]) -> str:
    identity = writing.output.identity
    if identity is None:
        return writing.run.id
    if identity.version is not None and identity.kind != "stated":
        return str(identity.version)
    return identity.digest if identity.short in shared else identity.short


def _shared_ends(versions: Iterable[Writing]) -> set[str]:
    """What is short for several contents of a dataset."""
    ends: dict[str, str] = {}
    shared = set()
    for writing in versions:
        identity = writing.output.identity
        if identity is not None and ends.setdefault(identity.short, identity.digest) != identity.digest:
            shared.add(identity.short)
    return shared


def runs_named(history: History, patterns: Sequence[str]) -> list[Run]:
    """The runs whose id matches one of the globs."""
    return [run for run in history.runs if any(fnmatchcase(id_, pattern) for id_ in run.ids for pattern in patterns)]
