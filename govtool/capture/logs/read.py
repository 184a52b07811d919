"""Finds log files, and the reader of each. ``PRESETS`` are the formats of rows, ``NAMES`` all values of ``--from``."""

from __future__ import annotations

import codecs
import csv
import difflib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from govtool.capture.compressed import UnreadableStreamError
from govtool.capture.logs import bigquery, databricks, generic, mysql, postgres, redshift, snowflake, thrift, trino
from govtool.capture.logs.mapping import FIELDS, Mapper, Preset
from govtool.capture.logs.parquet import is_parquet, parquet_names, parquet_rows
from govtool.capture.logs.query_record import Entry, QueryRecord, Reject
from govtool.capture.logs.rows import Line, csv_rows, json_lines, json_rows, one_a_line
from govtool.capture.logs.stream import chunks, is_plain, lines, text_of
from govtool.errors import UnknownNameError, UsageError
from govtool.given_files import refuse_link_out

PRESETS = (
    redshift.PRESET,
    redshift.TEXT_PRESET,
    snowflake.PRESET,
    databricks.PRESET,
    bigquery.PRESET,
    trino.PRESET,
    generic.PRESET,
)
"""Formats of rows, in the order in which ``--from auto`` tries them."""

NAMES = (
    "auto", "jsonl", "csv", "postgres-csv", "postgres-json", "snowflake", "bigquery", "databricks", "redshift",
    "redshift-text", "trino", "mysql", "thrift", "sql",
)  # fmt: skip
"""The values of ``--from``."""

_ALIASES = {
    "json": "jsonl", "postgres": "postgres-csv", "csvlog": "postgres-csv", "jsonlog": "postgres-json",
    "postgres-csvlog": "postgres-csv", "postgres-jsonlog": "postgres-json", "query_history": "snowflake",
    "jobs": "bigquery", "mariadb": "mysql", "general-log": "mysql", "hive": "thrift", "spark": "thrift",
    "sys_query_history": "redshift", "sys_query_text": "redshift-text", "stl_querytext": "redshift-text",
}  # fmt: skip

SAMPLE = 256 * 1024
"""Bytes at the head of a log that tell its format."""

_SQL = re.compile(
    rb"(?:\s|--[^\n]*\n|/\*.*?\*/)*+(?:select|with|create|insert|update|delete|merge|alter|drop|use|set|begin|copy)\b",
    re.IGNORECASE | re.DOTALL,
)
_SKIPPED = re.compile(r"\.|__pycache__$|node_modules$")

Records = Iterator[Entry]
Reader = Callable[[Iterator[bytes], str], Records]
"""Reads the decompressed content of one log; the second argument is the log's name."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of reading logs."""

    format: str = "auto"
    map: Mapping[str, str] = field(default_factory=dict)
    """For fields of ``QueryRecord`` the names that hold them."""
    dialect: str = ""
    """Of statements whose log does not say; a format's own unless given."""


def check_options(options: LogOptions) -> LogOptions:
    """The options with their names made canonical.

    Raises:
        UnknownNameError: there is no such format, or no such field to map.
    """
    name = options.format.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in NAMES:
        raise UnknownNameError(
            f"no log format {options.format}",
            code="usage.unknown-format",
            nearest=tuple(difflib.get_close_matches(name, [*NAMES, *_ALIASES])),
            hint=f"one of {', '.join(NAMES)}",
        )
    for key in options.map:
        if key not in FIELDS:
            raise UnknownNameError(
                f"no field {key} of a query record",
                code="usage.unknown-field",
                nearest=tuple(difflib.get_close_matches(key, FIELDS)),
                hint=f"--map FIELD=NAME with a field of {', '.join(FIELDS)}",
            )
    return replace(options, format=name)


def find_logs(path: Path) -> list[Path]:
    """A file itself, or all files below a folder, sorted; hidden ones are left out.

    Raises:
        UsageError: there is no such path, nothing in the folder, no right to look into it, or a link out of it.
    """
    _check_rights(path)
    if path.is_file() or path.is_fifo():
        return [path]
    if not path.is_dir():
        problem = "not a file" if path.exists() else "no such file or folder"
        raise UsageError(problem, code="usage.no-such-path", location=str(path))
    found = []
    for folder, folders, names in _walk(path):
        for name in (*folders, *names):
            refuse_link_out(Path(folder, name), path)
        found += [Path(folder, name) for name in names if Path(folder, name).is_file()]
    if not found:
        raise UsageError("there is no log in this folder", code="usage.nothing-to-read", location=str(path))
    return sorted(found)


def _check_rights(path: Path) -> None:
    try:
        denied = stat.S_ISDIR(path.stat().st_mode) and not os.access(path, os.R_OK | os.X_OK)
    except PermissionError:
        denied = True
    except OSError:
        return
    if denied:
        raise UsageError("permission denied", code="usage.unreadable", location=str(path))


def _walk(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not _SKIPPED.match(name))
        yield folder, folders, [name for name in names if not _SKIPPED.match(name)]


def read_log(raw: IO[bytes], file: str, options: LogOptions) -> Records:
    """The records of one log, in its order, read as they are asked for.

    Args:
        raw: Its bytes, compressed or not; of a Parquet file, a stream that can seek.
        file: Its name relative to the ingest root.
        options: As ``check_options`` returns them.

    Raises:
        UsageError: ``auto`` cannot tell its format, or finds plain SQL (``usage.log-format``).
    """
    if is_parquet(raw):
        yield from _parquet(raw, file, options)
        return
    pieces = chunks(raw)
    head: list[bytes] = []
    size = 0
    broken: UnreadableStreamError | None = None
    try:
        for piece in pieces:
            head.append(piece)
            size += len(piece)
            if size >= SAMPLE:
                break
    except UnreadableStreamError as error:
        broken = error
    sample = b"".join(head)
    if not sample.strip():
        if broken is not None:
            yield Reject(file, 1, str(broken), fatal=True)
        return
    reader = reader_of(sample, file, options)
    yield from reader(chain([sample], _raising(broken) if broken is not None else pieces), file)


def _raising(error: UnreadableStreamError) -> Iterator[bytes]:
    yield from ()
    raise error


def reader_of(sample: bytes, file: str, options: LogOptions) -> Reader:
    """The reader for a log that begins like this.

    Raises:
        UsageError: ``auto`` cannot tell its format, or finds plain SQL.
    """
    wanted = options.format
    is_json = sample.lstrip()[:1] in (b"{", b"[")
    if wanted == "auto":
        wanted = _recognised(sample, is_json, options)
        if wanted == "sql":
            raise _plain_sql(file)
    if not wanted:
        raise _unknown(file)
    if wanted == "sql":
        return partial(_sql, dialect=options.dialect)
    if wanted == "postgres-csv":
        return lambda pieces, name: postgres.csvlog(lines(pieces, name), name)
    if wanted == "postgres-json":
        return lambda pieces, name: postgres.jsonlog(lines(pieces, name), name)
    if wanted == "mysql":
        return lambda pieces, name: mysql.general_log(lines(pieces, name), name)
    if wanted == "thrift":
        return lambda pieces, name: thrift.thrift_log(lines(pieces, name), name, dialect=options.dialect)
    preset = _preset(wanted, options)
    rows = json_rows if wanted == "jsonl" or (is_json and wanted != "csv") else csv_rows
    return partial(_rows, preset=preset, rows=rows, dialect=options.dialect or preset.dialect)


def _unknown(file: str) -> UsageError:
    return UsageError(
        "the format of this log is not recognised",
        code="usage.log-format",
        location=file,
        hint=f"--from {'|'.join(NAMES[1:])}, and --map text=NAME for what holds the statement",
    )


def _plain_sql(file: str) -> UsageError:
    """SQL may be code or the statements of a session: who took one for the other had it in the graph twice."""
    return UsageError(
        "this is SQL, not a query log",
        code="usage.log-format",
        location=file,
        hint="govtool ingest sql, if it is code; --from sql, if these are the statements that one session ran",
    )


def _preset(name: str, options: LogOptions) -> Preset:
    return next((p for p in PRESETS if p.name == name), generic.PRESET).mapped(options.map)


LineReader = Callable[[Iterator[Line | Reject], str], Records]
"""Reads any lines of one log, numbered as there; the second argument is the log's name."""


def line_reader_of(sample: bytes, file: str, options: LogOptions) -> LineReader | None:
    """The reader for the lines of a log that begins like this, in any portions; None if records may span lines, or
    depend on each other.

    Raises:
        UsageError: ``auto`` cannot tell its format.
    """
    text = sample.removeprefix(codecs.BOM_UTF8).lstrip()
    if not is_plain(sample) or text[:1] != b"{" or not one_a_line(text.partition(b"\n")[0]):
        return None
    wanted = options.format if options.format != "auto" else _recognised(sample, True, options)
    if wanted not in ("jsonl", *(p.name for p in PRESETS)) or wanted == redshift.TEXT_PRESET.name:
        return None
    preset = _preset(wanted, options)
    dialect = options.dialect or preset.dialect
    return lambda numbered, name: Mapper(preset, dialect, name).records(json_lines(numbered, name))


def _rows(pieces: Iterator[bytes], file: str, *, preset: Preset, rows: Any, dialect: str) -> Records:
    return _mapper(preset, dialect, file).records(rows(lines(pieces, file), file))


def _parquet(raw: IO[bytes], file: str, options: LogOptions) -> Records:
    names = parquet_names(raw)
    wanted = (
        options.format if options.format != "auto" or not names else _named({name.lower() for name in names}, options)
    )
    if not wanted:
        raise _unknown(file)
    preset = _preset(wanted, options)
    raw.seek(0)
    rows = parquet_rows(raw, file, preset.columns)
    yield from _mapper(preset, options.dialect or preset.dialect, file).records(rows)


def _mapper(preset: Preset, dialect: str, file: str) -> Mapper | redshift.TextMapper:
    return (redshift.TextMapper if preset.name == redshift.TEXT_PRESET.name else Mapper)(preset, dialect, file)


def _sql(pieces: Iterator[bytes], file: str, *, dialect: str) -> Records:
    """A script: one record, which is its own session."""
    text: list[str] = []
    for line in lines(pieces, file):
        if isinstance(line, Reject):
            yield line
        else:
            text.append(text_of(line[1]))
    yield QueryRecord("\n".join(text), file, 1, dialect, session_id=file, spans=True)


def recognised_format(sample: bytes) -> str:
    """The format that the head of a log has; empty if it has none that is known."""
    return _recognised(sample, sample.lstrip()[:1] in (b"{", b"["), LogOptions())


def _recognised(sample: bytes, is_json: bool, options: LogOptions) -> str:
    """The format that the head of a log has; empty if it has none that is known."""
    if is_json:
        names = _json_names(sample)
        if {"error_severity", "message"} <= names and names & {"session_id", "pid", "dbname"}:
            return "postgres-json"
    else:
        special = _text_format(sample)
        if special:
            return special
        names = _header_names(sample)
    found = _named(names, options)
    return found if found != generic.PRESET.name else "jsonl" if is_json else "csv"


def _json_names(sample: bytes) -> set[str]:
    """Names of the first objects of a JSON log, in lower case."""
    names: set[str] = set()
    for number, row in enumerate(json_rows(lines(iter([sample]), ""), "")):
        if not isinstance(row, Reject):
            names.update(key.lower() for key in row[1])
        if number > 20:
            break
    return names or _names_of_half(sample)


def _text_format(sample: bytes) -> str:
    """The format of text that is no table with a header, or is PostgreSQL's CSV log, which has none; else empty."""
    text = text_of(sample)
    if mysql.looks_like_general_log(text):
        return "mysql"
    if thrift.looks_like_thrift_log(text):
        return "thrift"
    first, more = _first_line(sample)
    if postgres.looks_like_csvlog(_fields(_texts(chain([first], more)))):
        return "postgres-csv"
    fields = {name.strip().lower() for name in _fields(iter([text_of(first[1])]))}
    marked = any(fields >= mark for preset in PRESETS for mark in preset.marks)
    return "sql" if _SQL.match(sample) and not marked else ""


def _header_names(sample: bytes) -> set[str]:
    """Names in the first line of a table whose separator is the likeliest, in lower case."""
    first = text_of(_first_line(sample)[0][1])
    separator = max(",;\t|", key=first.count)
    return {name.strip().lower() for name in _fields(iter([first]), separator)}


def _first_line(sample: bytes) -> tuple[Line, Iterator[Line | Reject]]:
    """The first line that is not blank, and those behind it."""
    known = lines(iter([sample]), "")
    return next((line for line in known if not isinstance(line, Reject) and line[1].strip()), (1, b"")), known


def _fields(texts: Iterator[str], separator: str = ",") -> list[str]:
    """The first record of CSV; empty if there is none, as with a bare carriage return in a field."""
    try:
        return next(csv.reader(texts, delimiter=separator), [])
    except csv.Error:
        return []


def _named(names: set[str], options: LogOptions) -> str:
    """The preset for rows that have these names; empty if none fits."""
    for preset in PRESETS:
        if any(names >= mark for mark in preset.marks):
            return preset.name
    mapped = {name.split(".")[0].lower() for name in options.map.values()}
    return generic.PRESET.name if mapped & names else ""


def _texts(given: Iterator[Line | Reject]) -> Iterator[str]:
    for line in given:
        if not isinstance(line, Reject):
            yield text_of(line[1]) + "\n"


def _names_of_half(sample: bytes) -> set[str]:
    """Names in a first JSON object that is longer than the sample."""
    return {
        str(json.loads(match[0].rstrip(b":").rstrip())).lower()
        for match in re.finditer(rb'"[A-Za-z_]{1,60}"\s*:', sample)
    }
