"""The batch protocol: JSON lines in, JSON lines out, one process for a whole stream.

In: ``{id, dialect, sql, schema: {table: [columns]} | {table: {column: type}} | null, default_db?, default_schema?}``.
Out: the object of ``govtool.answers.lineage.to_object``, one line an input, in the order of arrival, whatever the input
is. Each line stands alone; nothing is remembered between lines. Blank lines are not inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, NamedTuple, NoReturn

from govtool.answers.lineage import SqlLineage, to_object
from govtool.app.ingest.sql_options import check_dialect
from govtool.app.lineage.relations import summarise
from govtool.errors import GovtoolError, UsageError
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from govtool.capture.sql.schemas.supplied import Schema

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest input line that is read; a longer one is answered with ``batch.too-large``."""

_DATABASE_IS_SCHEMA = frozenset(
    {"clickhouse", "doris", "hive", "mysql", "singlestore", "sqlite", "starrocks", "teradata"}
)
"""Dialects whose names have two parts: there a database is what others call a schema."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_no_constant)

_KEYS = {
    "dialect": (str, "a string"),
    "schema": (dict, "an object or null"),
    "default_db": (str, "a string"),
    "default_schema": (str, "a string"),
}


class _Input(NamedTuple):
    id: object
    sql: str
    dialect: str
    schema: Mapping[str, object] | None
    default_db: str | None
    default_schema: str | None


def serve(lines: IO[bytes], semantics: str = "precise", dialect: str = "") -> Iterator[str]:
    """Answer each input line with one output line (without its line end).

    Args:
        lines: Binary stream of UTF-8 JSON lines.
        semantics: See ``summarise``.
        dialect: For inputs that name none.
    """
    schemas = _Schemas()
    while raw := lines.readline(MAX_LINE + 1):
        if len(raw) > MAX_LINE and not raw.endswith(b"\n"):
            _skip_line(lines)
            answer = _failed(None, "batch.too-large", f"the line is longer than {MAX_LINE:,} bytes")
        elif not raw.strip():
            continue
        else:
            answer = _answer(raw, semantics, dialect, schemas)
        yield _line(answer)


def _line(answer: SqlLineage) -> str:
    try:
        return _ENCODER.encode(to_object(answer))
    except (ValueError, RecursionError):  # an id that JSON can say but not repeat: 1e999, a deep nest
        return _line(_failed(None, "batch.invalid", "the id cannot be written as JSON"))


class _Schemas:
    """Schemas from what lines give; the last one is kept, as the lines of a stream tend to give the same."""

    def __init__(self) -> None:
        self._given: tuple[object, ...] = ()
        self._made: Schema | None = None

    def of(self, given: _Input) -> Schema | None:
        """The schema that a line gives.

        Raises:
            UsageError: It is not a schema (``usage.schema``).
        """
        from govtool.capture.sql.schemas.supplied import schema_from_mapping

        if not given.schema:
            return None
        key_parts = (given.dialect, given.default_db, given.default_schema, given.schema)
        if key_parts != self._given:
            self._made = schema_from_mapping(given.schema, given.dialect, given.default_db, given.default_schema)
            self._given = key_parts
        return self._made


def _answer(raw: bytes, semantics: str, dialect: str, schemas: _Schemas) -> SqlLineage:
    """One answer for one line; no input makes it raise."""
    identity: object = None
    try:
        value = _DECODER.decode(raw.rstrip(b"\r\n").decode("utf-8-sig"))
        if not isinstance(value, dict):
            return _failed(None, "batch.invalid", f"the line is not an object but {_kind(value)}")
        identity = value.get("id")
        return _lineage(_checked(value, dialect), semantics, schemas)
    except json.JSONDecodeError as error:
        return _failed(identity, "batch.invalid-json", error.msg, error.lineno, error.colno)
    except UnicodeDecodeError as error:
        return _failed(identity, "batch.invalid-json", f"not UTF-8 at byte {error.start + 1}")
    except RecursionError:
        return _failed(identity, "nesting", "nested too deeply")
    except GovtoolError as error:
        near = f"; did you mean {', '.join(error.nearest)}" if error.nearest else ""
        return _failed(identity, error.code, error.message + near)
    except MemoryError:
        return _failed(identity, "internal.memory", "out of memory")
    except ValueError as error:  # of json: an integer with too many digits
        return _failed(identity, "batch.invalid-json", str(error))
    except Exception as error:  # the stream goes on; the fault is in the answer
        return _failed(identity, "internal", f"{type(error).__name__}: {error}"[:500])


def _checked(value: Mapping[str, object], dialect: str) -> _Input:
    """The input with its types checked.

    Raises:
        UsageError: a key is missing or has a value of a wrong type (``batch.invalid``).
    """
    sql = value.get("sql")
    if not isinstance(sql, str):
        problem = "the key sql is missing" if "sql" not in value else f"sql must be a string, not {_kind(sql)}"
        raise UsageError(problem, code="batch.invalid")
    for key, (expected, words) in _KEYS.items():
        found = value.get(key)
        if found is not None and not isinstance(found, expected):
            raise UsageError(f"{key} must be {words}, not {_kind(found)}", code="batch.invalid")
    known = check_dialect(str(value.get("dialect") or dialect))
    default_db, default_schema = value.get("default_db"), value.get("default_schema")
    if default_db and not default_schema and known in _DATABASE_IS_SCHEMA:
        default_db, default_schema = None, default_db
    return _Input(
        id=value.get("id"),
        sql=sql,
        dialect=known,
        schema=value.get("schema"),  # type: ignore[arg-type]
        default_db=default_db,  # type: ignore[arg-type]
        default_schema=default_schema,  # type: ignore[arg-type]
    )


def _lineage(given: _Input, semantics: str, schemas: _Schemas) -> SqlLineage:
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script

    options = Options(
        dialect=given.dialect,
        evidence=False,
        default_catalog=given.default_db,
        default_schema=given.default_schema,
        schema=schemas.of(given),
    )
    found = extract([Script(file="<batch>", text=given.sql, session="batch")], options)
    return summarise(found.derivations, found.diagnostics, id=given.id, semantics=semantics)


def _failed(
    identity: object, code: str, message: str, line: int | None = None, column: int | None = None
) -> SqlLineage:
    return SqlLineage(id=identity, error=Diagnostic(code, "error", message, line=line, column=column))


def _skip_line(lines: IO[bytes]) -> None:
    while (piece := lines.readline(1 << 20)) and not piece.endswith(b"\n"):
        pass


def _kind(value: object) -> str:
    names = {str: "a string", dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
