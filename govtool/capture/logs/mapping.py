"""Rows to records by a named map: which name of the log holds which field of ``QueryRecord``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from govtool.capture.logs.query_record import FAILED, OK, UNFINISHED, Entry, QueryRecord, Reject
from govtool.capture.logs.rows import Row
from govtool.capture.logs.times import parse_time

FIELDS = (
    "text", "dialect", "started_at", "ended_at", "user", "role", "database", "schema", "search_path", "session_id",
    "query_id", "parent_id", "status", "error", "rows", "truncated", "parameters",
)  # fmt: skip
"""The fields that a map may name."""

GENERIC: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "query_text", "query", "sql", "sql_text", "statement", "statement_text", "querytext", "command"),
    "dialect": ("dialect",),
    "started_at": ("started_at", "start_time", "starttime", "timestamp", "ts", "time", "event_time", "created_at"),
    "ended_at": ("ended_at", "end_time", "endtime"),
    "user": ("user", "user_name", "username", "usename", "user_email", "principal"),
    "role": ("role", "role_name"),
    "database": ("database", "database_name", "catalog", "db", "dbname"),
    "schema": ("schema", "schema_name", "default_schema"),
    "search_path": ("search_path",),
    "session_id": ("session_id", "session", "sessionid"),
    "query_id": ("query_id", "queryid", "statement_id", "id"),
    "parent_id": ("parent_id",),
    "status": ("status", "execution_status", "state"),
    "error": ("error", "error_message"),
    "rows": ("rows", "rows_produced", "row_count"),
    "truncated": ("truncated",),
    "parameters": ("parameters",),
}
"""Names that logs without a format of their own use; the first that a row has counts."""

_OK = re.compile(r"\s*(?:ok|success\w*|succeeded|done|finished|complete\w*|true|t|yes|0+|200)\s*\Z", re.IGNORECASE)
_UNFINISHED = re.compile(r"running|queued|pending|blocked|started|compil|resuming|planning|returning", re.IGNORECASE)
_TRUE = frozenset({"true", "t", "yes", "y", "1"})

Adjust = Callable[[dict[str, Any], dict[str, Any]], str | None]
"""Corrects the fields found in a row, given the row with its names in lower case. Returns why it is none, or None.
``SKIP`` means that it is no statement and no error either."""

SKIP = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """A format of rows: a named map with, where that is not all, an adjustment."""

    name: str
    dialect: str
    fields: Mapping[str, tuple[str, ...]]
    """For each field the names that may hold it, in lower case, best first; ``a.b`` goes into nested values."""
    marks: tuple[frozenset[str], ...] = ()
    """Names of which a log of this format has one of these sets, all of it, for ``--from auto``."""
    adjust: Adjust | None = None
    also: frozenset[str] | None = frozenset()
    """Names that ``adjust`` looks at; None: any."""

    @property
    def columns(self) -> frozenset[str] | None:
        """Names of a row that are looked at, in lower case; None: any."""
        if self.also is None:
            return None
        named = (name for names in self.fields.values() for name in names)
        return self.also | {part for name in named for part in (name, name.partition(".")[0])}

    def mapped(self, chosen: Mapping[str, str]) -> Preset:
        """The preset with a user's ``--map`` over it."""
        own = {name: (text.lower(),) for name, text in chosen.items()}
        return replace(self, fields={**self.fields, **own})


@dataclass(slots=True)
class Mapper:
    """Maps the rows of one log."""

    preset: Preset
    dialect: str
    file: str
    _plans: dict[tuple[str, ...], list[tuple[str, tuple[str, ...]]]] = field(default_factory=dict)

    def records(self, rows: Iterator[Row | Reject]) -> Iterator[Entry]:
        """All records, and rejects for rows that are not records."""
        for row in rows:
            if isinstance(row, Reject):
                yield row
                continue
            entry = self.record(*row)
            if entry is not None:
                yield entry

    def record(self, line: int, row: dict[str, Any]) -> Entry | None:
        """One row; None if it is no statement by its nature."""
        names = tuple(row)
        plan = self._plans.get(names)
        if plan is None:
            plan, lasting = self._plan(row)
            if lasting and len(self._plans) < 1000:
                self._plans[names] = plan
        found: dict[str, Any] = {}
        for name, path in plan:
            value: Any = row
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None and value != "":
                found[name] = value
        if self.preset.adjust is not None:
            problem = self.preset.adjust(found, row)
            if problem is not None:
                return Reject(self.file, line, problem) if problem else None
        if "text" not in found and not any(name == "text" for name, _ in plan):
            return Reject(self.file, line, "no text of a statement in it")
        try:
            return self._record(found, line)
        except ValueError as error:
            return Reject(self.file, line, str(error))

    def _plan(self, row: dict[str, Any]) -> tuple[list[tuple[str, tuple[str, ...]]], bool]:
        """Return the positions of the values of a row, and whether they hold for all rows with its names."""
        keys = {key.lower(): key for key in reversed(list(row))}
        plan: list[tuple[str, tuple[str, ...]]] = []
        lasting = True
        for name, candidates in self.preset.fields.items():
            for candidate in candidates:
                if candidate in keys:
                    plan.append((name, (keys[candidate],)))
                    break
                head, dot, rest = candidate.partition(".")
                lasting = lasting and not (dot and head in keys)
                if dot and head in keys and isinstance(row[keys[head]], dict):
                    path = _nested(row[keys[head]], rest)
                    if path:
                        plan.append((name, (keys[head], *path)))
                        break
        return plan, lasting

    def _record(self, found: dict[str, Any], line: int) -> QueryRecord:
        text = found.pop("text", "")
        if not isinstance(text, str):
            raise ValueError(f"text: not a string but {type(text).__name__}")
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # a JSON escape may bring half a surrogate pair
        values: dict[str, Any] = {"dialect": self.dialect}
        for name, value in found.items():
            convert = _CONVERT.get(name)
            values[name] = _string(name, value) if convert is None else convert(name, value)
        if "error" in values and "status" not in values:
            values["status"] = FAILED
        return QueryRecord(text, self.file, line, **values)


def _nested(value: dict[str, Any], path: str) -> tuple[str, ...]:
    keys = {key.lower(): key for key in value}
    head, dot, rest = path.partition(".")
    if head not in keys:
        return ()
    if not dot:
        return (keys[head],)
    inner = value[keys[head]]
    below = _nested(inner, rest) if isinstance(inner, dict) else ()
    return (keys[head], *below) if below else ()


def _string(name: str, value: Any) -> str | None:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if name in ("error", "parameters"):
        return str(value)[:1000]
    raise ValueError(f"{name}: not a string but {type(value).__name__}")


def _time(name: str, value: Any) -> Any:
    try:
        return parse_time(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name}: {error}") from None


def status_of(name: str, value: Any) -> str:
    """The status of a log's word: ``ok``, ``failed`` or ``unfinished``. A word that does not mean success is a
    failure.
    """
    if isinstance(value, bool):
        return OK if value else FAILED
    if isinstance(value, (int, float)):
        return OK if value in (0, 200) else FAILED
    if not isinstance(value, str):
        raise ValueError(f"{name}: not a string but {type(value).__name__}")
    if _OK.match(value):
        return OK
    return UNFINISHED if _UNFINISHED.search(value) else FAILED


def _integer(name: str, value: Any) -> int:
    try:
        if isinstance(value, (bool, list, dict)):
            raise ValueError
        return int(value) if isinstance(value, int) else int(float(value))
    except (ValueError, OverflowError):
        raise ValueError(f"{name}: not a number") from None


def _flag(name: str, value: Any) -> bool:
    return value.strip().lower() in _TRUE if isinstance(value, str) else bool(value)


def _path(name: str, value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"{name}: not a list of names")
    names = (part.strip().strip('"') for part in parts)
    return tuple(part for part in names if part and part != "$user")


_CONVERT: Mapping[str, Callable[[str, Any], Any]] = {
    "started_at": _time,
    "ended_at": _time,
    "status": status_of,
    "rows": _integer,
    "truncated": _flag,
    "search_path": _path,
}
