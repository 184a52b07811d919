"""The certificate of an erasure: a document without the subject's value, and its check."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.answers.erasure_certificate import BEYOND, CertificateAnswer
from govtool.answers.erasure_certificate import SCHEMA as CERTIFICATE
from govtool.app.datasets.row_digest import digest_rows
from govtool.app.erasure.certificate_keys import is_certificate
from govtool.app.erasure.columns import parse_subject
from govtool.app.erasure.corrected import CorrectedDataset, left_over
from govtool.app.erasure.partitions import hidden_in, partition_values, without_values
from govtool.app.erasure.report import PlannedErasure, file_digest
from govtool.clock import iso, now
from govtool.errors import FormatError, UsageError
from govtool.given_files import read_given
from govtool.records.cells import key_text
from govtool.records.execute.inputs import local_path
from govtool.release import __version__

if TYPE_CHECKING:
    from govtool.answers.row_erasure import RowErasureAnswer

NAME = "certificate.json"
"""The certificate's file in the folder."""
DIGEST = "HMAC-SHA-256"
"""How the subject's value is digested, under the certificate's own salt."""


def subject_digest(salt: str, text: str) -> str:
    """The digest of a value of the subject."""
    return hmac.new(bytes.fromhex(salt), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def certificate(
    planned: PlannedErasure, datasets: Sequence[CorrectedDataset], plan: str, folder: Path, started: str
) -> dict[str, Any]:
    """The certificate of what lies in a folder.

    Args:
        planned: The erasure.
        datasets: What was written, and what was not.
        plan: The digest of the plan's file.
        folder: The folder.
        started: When the work began.
    """
    answer, salt = planned.answer, secrets.token_hex(32)
    beside = (*answer.not_reached, *left_over(datasets))
    found = {
        "govtool": __version__,
        "schema": CERTIFICATE,
        "store": answer.version.store,
        "commit": answer.version.header()["commit"],
        "plan": {"sha256": plan, "run": answer.run, "all_runs": answer.all_runs},
        "started": started,
        "ended": iso(now()),
        "subjects": [_subject(text, salt) for text in answer.subjects],
        "salt": salt,
        "algorithm": DIGEST,
        "records": {name: len(tokens) for name, tokens in answer.tokens.items()},
        "datasets": [_dataset(each, folder, salt) for each in datasets if each.folder],
        "unchanged": [each.dataset for each in answer.datasets if not (each.changes or each.unknown)],
        "not_written": [{"dataset": each.planned.dataset, "why": each.why} for each in datasets if each.why],
        "unknown": _unknown(answer),
        "searched": list(answer.searched),
        "not_searched": [each.to_dict() for each in answer.not_searched],
        "not_reached": [each.to_dict() for each in beside],
        "no_subject": [each.to_dict() for each in answer.no_subject],
        "beyond": list(BEYOND),
    }
    return dict(hidden_in(found, without_values(planned.keys.wanted)))


def _subject(text: str, salt: str) -> dict[str, str]:
    subject = parse_subject(text)
    return {"column": subject.column, "digest": subject_digest(salt, subject.value or "")}


def _dataset(each: CorrectedDataset, folder: Path, salt: str) -> dict[str, Any]:
    planned, place = each.planned, folder / each.folder
    found: dict[str, Any] = {
        "dataset": planned.dataset,
        "folder": each.folder,
        "kind": "source" if planned.source else "output",
        "runs": list(planned.runs),
        "deleted": len(planned.delete),
        "changed": len(planned.change),
        "appeared": len(planned.appear),
        "rows_before": each.rows_before,
        "rows_after": each.rows_after,
        "unchanged": each.rows_before - len(planned.delete) - len(planned.change),
        "verified": each.verified,
        "files": list(_files(each, folder)),
        "keys": [
            {"column": column, "digests": [subject_digest(salt, value) for value in values]}
            for column, values in each.keys
        ],
        **({"erased": each.erased.counts()} if each.erased.folders else {}),
    }
    rows = digest_rows([file.path for file in each.files], place)
    return found if rows is None else {**found, "rows": rows}


def _files(each: CorrectedDataset, folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(each.files, key=lambda one: str(one.path)):
        found: dict[str, Any] = {
            "path": file.path.relative_to(folder).as_posix(),
            "bytes": file.path.stat().st_size,
            "sha256": file_digest(file.path),
            "changed": file.changed,
        }
        original = None if file.original is None else local_path(file.original.uri)
        if file.original is not None and original is not None:
            found["original"] = {"uri": file.original.uri, "sha256": file_digest(original)}
        yield found


def _unknown(answer: RowErasureAnswer) -> list[dict[str, Any]]:
    """Datasets with uncertain rows; keys of rows may be personal data, so that only their number is there."""
    found = []
    for each in answer.datasets:
        if each.unknown:
            whole = any(unknown.key is None for unknown in each.unknown)
            why = list(dict.fromkeys(unknown.why for unknown in each.unknown))
            found.append({"dataset": each.dataset, "why": why, **({} if whole else {"rows": len(each.unknown)})})
    return found


def read_certificate(place: Path) -> Mapping[str, Any]:
    """Read a certificate.

    Raises:
        UsageError: There is no such file (``usage.path``).
        FormatError: It is no certificate (``store.format-certificate``).
    """
    try:
        text = read_given(place)
    except OSError as error:
        raise UsageError(
            f"the certificate cannot be read: {error.strerror}", code="usage.path", location=str(place)
        ) from error
    try:
        found = json.loads(text)
        if found["schema"] != CERTIFICATE or not is_certificate(found):
            raise ValueError
        bytes.fromhex(found["salt"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            "this is not an erasure certificate", code="store.format-certificate", location=str(place)
        ) from error
    return dict(found)


def verify_erasure(place: Path, folder: Path | None = None) -> CertificateAnswer:
    """Check a certificate against the folder that it is about.

    Every file has to have its digest, no file may be there besides, rows have to have their digest, and no row of a
    dataset whose key columns are known may hold the subject's value.

    Args:
        place: The certificate, or its folder.
        folder: The folder of the corrected copies; by default that of the certificate.

    Raises:
        UsageError: There is no such file or folder (``usage.path``).
        FormatError: The file is no certificate.
    """
    place = place / NAME if place.is_dir() else place
    document = read_certificate(place)
    root = place.parent if folder is None else folder
    if not root.is_dir():
        raise UsageError("there is no such folder", code="usage.path", location=str(root))
    problems = [*_wrong_files(document, root, place), *_wrong_rows(document, root)]
    return CertificateAnswer(document, str(root), tuple(problems))


def _wrong_files(document: Mapping[str, Any], root: Path, place: Path) -> Iterator[str]:
    known = {place.resolve(), (root / NAME).resolve()}
    for each in document["datasets"]:
        for file in each["files"]:
            path = root / file["path"]
            if not _can_be(path):
                yield f"{file['path']} is gone"
                continue
            if not path.resolve().is_relative_to(root.resolve()) or path.is_symlink():
                yield f"{file['path']} leads out of the folder"
                continue
            known.add(path.resolve())
            if not path.is_file():
                yield f"{file['path']} is gone"
            elif file_digest(path) != file["sha256"]:
                yield f"{file['path']} is not what was written"
    for path in sorted(root.rglob("*")):
        if (path.is_file() or path.is_symlink()) and path.resolve() not in known:
            yield f"{path.relative_to(root).as_posix()} was added"


def _can_be(path: Path) -> bool:
    """Return whether there can be a file of this name: a certificate that somebody wrote may name longer ones."""
    try:
        path.exists()
    except OSError:
        return False
    return True


def _wrong_rows(document: Mapping[str, Any], root: Path) -> Iterator[str]:
    for each in document["datasets"]:
        paths = [root / file["path"] for file in each["files"]]
        if not all(map(_can_be, paths)):
            continue
        if not all(path.is_file() and path.resolve().is_relative_to(root.resolve()) for path in paths):
            continue
        if "rows" in each and digest_rows(paths, root / str(each["folder"])) != each["rows"]:
            yield f"{each['folder']} has other rows"
        for key in each.get("keys", ()):
            inner = [Path(file["path"]) for file in each["files"]]
            if _holds(paths, key, document["salt"]) or _names(inner, key, document["salt"]):
                yield f"{each['folder']} holds the subject's value in column {key['column']}"


def _names(paths: Sequence[Path], key: Mapping[str, Any], salt: str) -> bool:
    """Return whether a folder of a partition is named after the subject's value."""
    named = {value for path in paths for name, value in partition_values(path) if name == key["column"]}
    return any(subject_digest(salt, value) in key["digests"] for value in named)


def _holds(paths: Sequence[Path], key: Mapping[str, Any], salt: str) -> bool:
    """Return whether a column of Parquet files holds the subject's value."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = set(key["digests"])
    for path in paths:
        try:
            if path.suffix != ".parquet" or key["column"] not in pq.read_schema(path).names:
                continue
            values = pq.read_table(path, columns=[key["column"]]).column(0).unique().to_pylist()
        except (OSError, pa.ArrowException):
            continue
        if any(subject_digest(salt, key_text(value)) in wanted for value in values if value is not None):
            return True
    return False
