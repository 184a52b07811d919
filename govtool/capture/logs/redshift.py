"""Amazon Redshift: SYS_QUERY_HISTORY as rows, and the tables whose statements come in pieces: SYS_QUERY_TEXT,
STL_QUERYTEXT and their like.

A piece is 4,000 characters long in SYS_QUERY_TEXT and 200 in the STL tables, padded with blanks which exports leave out
(Amazon Redshift Database Developer Guide, "SYS_QUERY_TEXT" and "STL_QUERYTEXT"). Nothing says how many there are, so a
statement is held until the log ends or too much is held; pieces may come in any order until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from govtool.capture.logs.mapping import Mapper, Preset
from govtool.capture.logs.query_record import Entry, Reject
from govtool.capture.logs.rows import Row

LONGEST = 4_000
"""Characters to which QUERY_TEXT of SYS_QUERY_HISTORY is cut."""

HELD = 64 << 20
"""Characters of unfinished statements that are held; beyond that the oldest counts as finished."""

_WIDTHS = (200, 4_000)


def _adjust(found: dict[str, Any], row: dict[str, Any]) -> str | None:
    text = found.get("text")
    if isinstance(text, str):
        if len(text.rstrip()) >= LONGEST:
            found["truncated"] = True
        found["text"] = _unescaped(text.rstrip())
    for name in ("database", "error", "user"):  # columns of a fixed width
        if isinstance(found.get(name), str):
            found[name] = found[name].rstrip() or None
    if not found.get("error"):
        found.pop("error", None)
    return None


_FIELDS = {
    "started_at": ("start_time", "starttime"),
    "ended_at": ("end_time", "endtime"),
    "user": ("username", "usename", "user_name", "user_id", "userid"),
    "database": ("database_name", "database"),
    "session_id": ("session_id", "pid"),
    "query_id": ("query_id", "query"),
    "status": ("status",),
    "error": ("error_message",),
    "rows": ("returned_rows",),
}

PRESET = Preset(
    "redshift",
    "redshift",
    {"text": ("query_text",), **_FIELDS},
    (
        frozenset({"query_text", "query_label"}),
        frozenset({"query_text", "transaction_id", "returned_rows"}),
        frozenset({"query_text", "transaction_id", "result_cache_hit"}),
    ),
    _adjust,
)
"""The process is the session: its temporary tables are its own."""

TEXT_PRESET = Preset(
    "redshift-text",
    "redshift",
    {"text": ("text", "querytxt"), **_FIELDS},
    (frozenset({"text", "sequence", "xid"}), frozenset({"text", "sequence", "transaction_id"})),
    also=None,
)


@dataclass(slots=True)
class _Held:
    line: int
    row: dict[str, Any]
    """Of the first piece that came."""
    pieces: dict[int, str] = field(default_factory=dict)
    size: int = 0


class TextMapper:
    """Puts the statements of one log together and maps them."""

    def __init__(self, preset: Preset, dialect: str, file: str) -> None:
        """Begin with none."""
        self._mapper = Mapper(preset, dialect, file)
        self._file = file
        self._held: dict[tuple[str, ...], _Held] = {}
        self._size = 0

    def records(self, rows: Iterator[Row | Reject]) -> Iterator[Entry]:
        """All records, and rejects for rows that are not records."""
        for row in rows:
            if isinstance(row, Reject):
                yield row
                continue
            problem = self._take(*row)
            if problem:
                yield Reject(self._file, row[0], problem)
            while self._size > HELD:
                yield from self._finished(next(iter(self._held)))
        for key in list(self._held):
            yield from self._finished(key)

    def _take(self, line: int, row: dict[str, Any]) -> str:
        values = {name.lower(): value for name, value in row.items()}
        text = values.get("text", values.get("querytxt"))
        if not isinstance(text, str):
            return "no text of a statement in it"
        try:
            sequence = int(values["sequence"])
        except (KeyError, TypeError, ValueError, OverflowError):
            return "sequence: not a number"
        query = values.get("query_id") or values.get("query")
        # A definition or a utility statement has no number of its own.
        names = ("xid", "pid", "starttime") if query in (None, "", "0", 0, "-1", -1) else ()
        key = tuple(str(values.get(name)) for name in names) or (str(query),)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held(line, values)
        elif sequence in held.pieces:
            return f"piece {sequence} of a statement comes twice"
        held.pieces[sequence] = text
        held.size += len(text)
        self._size += len(text)
        return ""

    def _finished(self, key: tuple[str, ...]) -> Iterator[Entry]:
        held = self._held.pop(key)
        self._size -= held.size
        whole = sorted(held.pieces) == list(range(len(held.pieces)))
        row = {**held.row, "text": _unescaped(_joined([held.pieces[n] for n in sorted(held.pieces)]))}
        row.pop("querytxt", None)
        if row.get("query") in (0, "0", -1, "-1"):
            del row["query"]
        for name in ("database", "database_name", "username", "usename"):
            if isinstance(row.get(name), str):
                row[name] = row[name].rstrip()
        entry = self._mapper.record(held.line, row)
        if entry is not None:
            yield entry if isinstance(entry, Reject) or whole else entry._replace(truncated=True)


def _joined(pieces: list[str]) -> str:
    """Pieces put together; those that an export has trimmed get their blanks back."""
    longest = max(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)
    width = next((w for w in _WIDTHS if longest <= w), longest)
    padded = [piece + " " * (width - len(piece.encode("utf-8", "surrogatepass"))) for piece in pieces[:-1]]
    return "".join([*padded, pieces[-1]]).rstrip()


def _unescaped(text: str) -> str:
    """The text with its line ends, which the tables hold as a backslash and a letter."""
    return text if "\n" in text else text.replace("\\r", " ").replace("\\n", "\n").replace("\\t", " ")
