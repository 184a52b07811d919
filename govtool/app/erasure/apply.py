"""The application of an erasure plan: corrected copies in a new folder, verified by replay, with a certificate.

The copies are made in a neighbour of the folder and moved there as a whole, so that a folder of the name is complete or
is not there. What a killed run left is removed by the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.answers.erasure_certificate import CertificateAnswer
from govtool.answers.row_erasure import RowErasureAnswer
from govtool.app.datasets.places import local_place
from govtool.app.erasure.certificate_keys import MAX_DEPTH, depth, is_plan
from govtool.app.erasure.certify import NAME, certificate
from govtool.app.erasure.copies import plain_name
from govtool.app.erasure.corrected import corrected_datasets
from govtool.app.erasure.partitions import without_values
from govtool.app.erasure.report import ErasureRequest, PlannedErasure, file_digest, planned_erasure
from govtool.app.project.project import commit_at, read_store, store_uri
from govtool.clock import iso, now
from govtool.errors import EvidenceError, FormatError, GovtoolError, SourceError, StoreError, UsageError
from govtool.given_files import read_given
from govtool.names import current_id, renewed_text
from govtool.records.execute.inputs import local_path

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.store import Commit, Reader


_OPEN = ("delete", "change", "appear", "unchanged", "equal", "unknown", "why", "files")
"""What may differ between two evaluations of a dataset with uncertain rows."""


@dataclass(frozen=True, slots=True)
class ErasurePlanFile:
    """A plan that was written by ``erase plan``.

    Attributes:
        text: The file.
        body: What it holds; personal data.
    """

    text: bytes = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self.text).hexdigest()

    def request(self) -> ErasureRequest:
        """What the plan is an answer to."""
        wanted = self.body["request"]
        runs = wanted["run"], wanted["all_runs"]
        return ErasureRequest(tuple(wanted["subjects"]), tuple(wanted["keys"]), *runs, tuple(wanted["no_subject"]))

    def files(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The files that it was made of, with their datasets."""
        for dataset in self.body["datasets"]:
            for file in dataset["files"]:
                yield dataset["dataset"], file


def read_plan_file(place: Path) -> ErasurePlanFile:
    """Read a plan.

    Raises:
        UsageError: There is no such file (``usage.path``).
        FormatError: It is no plan of rows (``store.format-plan``).
    """
    try:
        text = read_given(place)
    except OSError as error:
        why = f"the plan cannot be read: {error.strerror}"
        raise UsageError(why, code="usage.path", location=str(place)) from error
    try:
        found = ErasurePlanFile(text, json.loads(text))
        if depth(found.body, MAX_DEPTH) > MAX_DEPTH or not is_plan(found.body):
            raise ValueError
        if found.body["schema"] != RowErasureAnswer.schema:
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise FormatError(
            "this is not an erasure plan on rows",
            code="store.format-plan",
            location=str(place),
            hint="govtool erase plan --subject crm.users.id=42 --run RUN --format json -o plan.json",
        ) from error
    return found


def apply_erasure(plan: Path, to: Path, store: str | None = None) -> CertificateAnswer:
    """Write corrected copies of every dataset that a plan changes into a new folder, with a certificate.

    Args:
        plan: The file that ``erase plan --run … --format json`` wrote.
        to: A folder that is not there, or is empty.
        store: The store that the plan was made of; by default that of the settings.

    Raises:
        UsageError: The folder is not new, lies within an original or around one, or another process writes it.
        FormatError: The file is no plan.
        SourceError: A file has changed since the plan was made (``source.changed``).
        EvidenceError: The store gives another plan now (``evidence.plan``), or a copy is not what a replay gives
            (``evidence.not-reproduced``).
        EngineError: No engine evaluates or writes what has to be.
    """
    started = iso(now())
    store_uri(store)  # one that the user has not agreed to is refused before anything is read
    given = read_plan_file(plan)
    check_target(to, given)
    check_originals(given)
    reader = read_store(store)
    commit = _commit_of(reader, given)
    planned = planned_erasure(reader, commit, given.request(), lambda: _index(reader, commit))
    check_target(to, _check_plan(given, planned))
    with _partial(to) as folder:
        taken, hidden = {NAME}, without_values(planned.keys.wanted)
        try:
            datasets = corrected_datasets(reader, commit, planned, folder, lambda name: plain_name(hidden(name), taken))
        except OSError as error:  # a full disk, an original that cannot be read
            why = f"the copies cannot be written: {error.strerror or error}"
            raise StoreError(why, code="store.write", location=str(to)) from error
        check_originals(given)  # what was written meanwhile would have been copied in part
        document = certificate(planned, datasets, given.digest, folder, started)
        _write_private(folder / NAME, json.dumps(document, indent=1, ensure_ascii=False))
        _sync(folder)
        _moved(folder, to)
    return CertificateAnswer(document, str(to))


def _commit_of(reader: Reader, given: ErasurePlanFile) -> Commit:
    wanted = given.body["commit"]["id"]
    try:
        commit = commit_at(reader, wanted)
    except GovtoolError as error:
        raise UsageError(
            "the plan was made of another store", code="usage.store", location=reader.uri, hint="--store URI"
        ) from error
    if commit.id != wanted:
        raise UsageError("the plan was made of another store", code="usage.store", location=reader.uri)
    return commit


def _index(reader: Reader, commit: Commit) -> Index:
    from govtool.app.versions.index import open_index

    return open_index(reader, commit)


def check_originals(given: ErasurePlanFile) -> None:
    """Refuse a plan whose files have changed since.

    Raises:
        SourceError: One has (``source.changed``).
    """
    for dataset, file in given.files():
        try:
            path = local_path(file["uri"])
            facts = None if path is None else path.stat()
        except (OSError, ValueError):  # ValueError: no address, as in an edited plan
            raise _changed(dataset, file["uri"], "is gone") from None
        if path is None or facts is None:
            continue
        if not stat.S_ISREG(facts.st_mode):  # reading a device or a pipe need not end
            raise _changed(dataset, file["uri"], "is no file any more")
        same = (facts.st_size, facts.st_mtime_ns // 1_000_000) == (file["size"], file["modified"])
        if not same or ("sha256" in file and _digest(path) != file["sha256"]):
            raise _changed(dataset, file["uri"], "has changed")


def _digest(path: Path) -> str:
    """The digest of a file; nothing where it cannot be read."""
    try:
        return file_digest(path)
    except OSError:
        return ""


def _changed(dataset: str, uri: str, how: str) -> SourceError:
    return SourceError(
        f"a file of {dataset} {how} since the plan was made",
        code="source.changed",
        location=uri,
        hint="govtool erase plan … again",
    )


def _check_plan(given: ErasurePlanFile, planned: PlannedErasure) -> ErasurePlanFile:
    """Refuse a plan that differs from the store's; return that of the store, whose files nobody has edited.

    Raises:
        EvidenceError: ``evidence.plan``.
    """
    again = json.loads(json.dumps(planned.answer.body()))
    for name in ("tokens", "order", "datasets", "request", "no_subject"):
        if _alike(again[name]) != _alike(given.body.get(name)):
            raise EvidenceError(
                f"the store does not give this plan: {name!r} is different",
                code="evidence.plan",
                hint="a plan must not be edited; settings, keys and functions must be those of its making",
            )
    return ErasurePlanFile(given.text, again)


def _alike(value: Any) -> Any:
    """A part of a plan in a form that is equal for equal plans.

    A sum of floats depends on the order of its rows, and uncertain rows are chosen anew by each evaluation. Plans of
    earlier versions have other names of files.

    >>> _alike({"tokens": ["file//data/users@4f:0/1"]})
    {'tokens': ['file:///data/users@4f:0/1']}
    """
    if isinstance(value, str):
        return renewed_text(current_id(value))
    if isinstance(value, float):
        return float(f"{value:.8e}")
    if isinstance(value, list):
        parts = [_alike(each) for each in value]
        return sorted(parts, key=repr) if any(isinstance(part, (list, dict)) for part in parts) else parts
    if isinstance(value, dict):
        left = _OPEN if value.get("unknown") else ()
        return {name: _alike(each) for name, each in value.items() if name not in left}
    return value


# ---- the folder -------------------------------------------------------------------------------------------------


def check_target(to: Path, given: ErasurePlanFile) -> None:
    """Refuse a folder that is not new, or that has to do with an original.

    Raises:
        UsageError: ``usage.target``.
    """
    if to.is_symlink() or (to.exists() and (not to.is_dir() or any(to.iterdir()))):
        raise UsageError("the folder must be empty or not exist", code="usage.target", location=str(to))
    real = to.resolve()
    for folder in _original_folders(given):
        if real == folder or folder in real.parents or real in folder.parents:
            raise UsageError(
                f"the folder lies within the original {folder}, or around it",
                code="usage.target",
                location=str(to),
                hint="--to DIR, a folder elsewhere",
            )


def _original_folders(given: ErasurePlanFile) -> set[Path]:
    """The folders of datasets; of a dataset in one file its folder does not count, as others may lie there."""
    found = set()
    for dataset in given.body["datasets"]:
        names = dataset["dataset"].split(",")
        found |= {path for path in map(_resolved, map(local_place, names)) if path is not None and path.is_dir()}
        named = local_place(dataset["dataset"]) is not None
        for file in dataset["files"]:
            path = _resolved(_local(file["uri"]))
            if path is not None:
                found.add(path if named else path.parent)
    return found


def _local(uri: str) -> Path | None:
    try:
        return local_path(uri)
    except ValueError:  # no address, as in an edited plan
        return None


def _resolved(path: Path | None) -> Path | None:
    """Where a path of a plan leads to; None where there can be no such path, as in an edited plan."""
    try:
        found = None if path is None else path.resolve()
        if found is not None:
            found.exists()  # a name that is too long fails here
    except (OSError, ValueError):
        return None
    return found


@contextlib.contextmanager
def _partial(to: Path) -> Iterator[Path]:
    """A neighbour of the folder that only this process writes; gone at the end, whatever that is.

    Raises:
        UsageError: It cannot be written, or another process writes it (``usage.target``).
    """
    to = to.absolute()
    folder = to.with_name(f".{to.name}.partial")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(to.with_name(f".{to.name}.lock"), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise UsageError(f"it cannot be written: {error.strerror}", code="usage.target", location=str(to)) from error
    try:
        _locked(lock, to)
        shutil.rmtree(folder, ignore_errors=True)  # what a killed run left
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:  # not a folder of ours, or not ours to write
            why = f"{folder} cannot be made: {error.strerror}"
            raise UsageError(why, code="usage.target", location=str(to)) from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            to.with_name(f".{to.name}.lock").unlink(missing_ok=True)
    finally:
        os.close(lock)


def _locked(handle: int, to: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two at once are the user's to avoid
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError("another process writes this folder", code="usage.target", location=str(to)) from error


def _write_private(file: Path, text: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as written:
        written.write(text + "\n")


def _sync(folder: Path) -> None:
    """Bring all files to disk before the folder gets its name."""
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _moved(folder: Path, to: Path) -> None:
    try:
        folder.rename(to)
        handle = os.open(to.absolute().parent, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    except OSError as error:
        raise UsageError(f"it cannot be written: {error.strerror}", code="usage.target", location=str(to)) from error
