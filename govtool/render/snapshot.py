"""Sentences about snapshots, and the outcome of `verify`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.layout.rows import ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, short
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.verify import TableFiles, VerifyAnswer
    from govtool.model.version import ContentIdentity, DatasetVersion
    from govtool.store import CommitResult

FORMATS = ROW_FORMATS

_NAMED = 5
"""Files that are named."""
_SENTENCES = {
    "match": "the data is what was recorded",
    "rows-match": "the rows are those that were recorded, in other files or another order",
    "data-changed": "the data has changed without provenance",
    "data-missing": "there is provenance, but the data is gone",
    "no-provenance": "there is data, but nothing was recorded of it",
}


def snapshot_sentence(result: CommitResult, version: DatasetVersion) -> str:
    """One sentence on what was recorded."""
    commit = result.commit
    what = f"commit {commit.seq} ({short(commit.id)})" if result.created else f"recorded already, commit {commit.seq}"
    return f"{version.dataset}: {what} · {_identity(version.identity)} · run {version.run}"


def render_verified(form: str, answer: VerifyAnswer) -> Table | Iterable[str]:
    """The outcome in one of ``FORMATS``."""
    if form in ("json", "jsonl"):
        return data_lines(form, answer, [answer.to_dict()])
    rows = [
        ("dataset", answer.dataset),
        ("state", answer.state),
        ("found", _identity(answer.found) if answer.found else "nothing"),
        ("recorded", _identity(answer.recorded.identity) if answer.recorded else "nothing"),
        ("run", answer.run or ""),
    ]
    if answer.files is not None:
        rows.append(("files", _files(answer.files)))
    if form == "csv":
        return to_csv(("name", "value"), rows)
    table = Table(
        columns=(TableColumn("name", style="dim"), TableColumn("value")), rows=rows, summary=_sentence(answer)
    )
    return laid_out(form, table)


def _sentence(answer: VerifyAnswer) -> str:
    files = answer.files
    if answer.writer is not None:
        return "a run wrote it, but the data is gone, and its content was not recorded"
    if files is not None and files.missing:
        return f"the table's log is what was recorded, but {count(len(files.missing), 'file')} of the table is gone"
    if files is not None and files.resized:
        number = count(len(files.resized), "file")
        return f"the table's log is what was recorded, but {number} of the table has another size"
    if files is not None and not files.checked:
        return f"{_SENTENCES[answer.state]}, by the table's log: its files could not be compared"
    return _SENTENCES[answer.state]


def _files(files: TableFiles) -> str:
    """The number of files, and the first that are missing or of another size."""
    parts = [f"{count(files.checked, 'file')} compared"]
    for what, paths in (("missing", files.missing), ("of another size", files.resized)):
        if paths:
            parts.append(f"{what}: {few(paths, _NAMED)}")
    return " · ".join(parts)


def _identity(identity: ContentIdentity) -> str:
    what = f"{identity.kind} version {identity.version}" if identity.version is not None else identity.kind
    return f"{what} {identity.digest[:12]}, {count(identity.files, 'file')}, {identity.size:,} bytes"
