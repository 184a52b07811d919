"""CSV files without a JVM: those that cannot be read in two ways are turned into Parquet, row by row.

Spark's parser has rules of its own for quotes within cells, escapes, blank lines, lines of other lengths and texts that
are no numbers. A file that has any of these is refused here and left to Spark. What remains is split at line ends and
separators; a cell may stand in quotes as a whole. Cells are plain texts, numbers, dates, times and booleans.

Source: Spark's ``CSVOptions`` and ``UnivocityParser``: defaults of options, and how cells become values.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from govtool.records.execute.inputs import local_path
from govtool.records.plan import types as t
from govtool.records.plan.clock import zone_named
from govtool.records.plan.nodes import File, Relation, Session
from govtool.records.sql.dialect import NotExact

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 8 << 20
_UNSURE = re.compile(rb"[\\\r\x00]|\xef\xbb\xbf")
"""Escapes, other ends of lines than LF and CRLF, marks of the byte order."""
_CONTINUED = re.compile(rb'"[^"]*"+[^"]')
"""A cell that goes on behind the first quotes within it."""
BLANKS = "".join(map(chr, range(33)))
"""Characters of lines that Spark leaves out: those that ``trim`` of the JVM takes away."""
_BLANK = re.compile(rb"\n[\x00-\x20]*\n")
"""A line that Spark leaves out, between two ends of lines."""
_COMPRESSED = frozenset({".gz", ".bz2", ".snappy", ".lz4", ".zst", ".deflate", ".xz", ".lzo"})
_SEPARATORS = frozenset(",;|\t:~^")
_FREE = frozenset({"inferschema", "samplingratio", "preferdate", "enforceschema"})
"""Options that decide the schema, which is recorded."""
_MODES = frozenset({"PERMISSIVE", "FAILFAST", "DROPMALFORMED"})
"""What happens to malformed rows, which are refused here."""
_INTEGERS = {"byte": "int8", "short": "int16", "integer": "int32", "long": "int64"}
_WHOLE = "^-?[0-9]{1,19}$"
_POINTED = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_DATE = "^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^(19[789]|20[012])[0-9]-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
"""Before 1970 and from 2030 on, Java and Arrow may not agree about a zone's offset."""


class CsvFiles:
    """Files that were turned into Parquet, kept as long as this is.

    Args:
        session: What the plans ran in.
    """

    def __init__(self, session: Session) -> None:
        settings = dict(session.settings)
        self._malformed = settings.get("spark.sql.columnNameOfCorruptRecord", "_corrupt_record").lower()
        has_times = settings.get("spark.sql.legacy.timeParserPolicy", "").upper() != "LEGACY"
        self._zone = session.zone if has_times else ""
        self._folder: Path | None = None
        self._known: dict[tuple[Any, ...], File] = {}

    def as_parquet(self, leaf: Relation) -> Relation:
        """A leaf that reads the same rows from Parquet files.

        Raises:
            NotExact: Spark might read something else, or files are not on this machine.
        """
        form = _form(leaf, self._malformed, self._zone)
        return replace(leaf, format="parquet", options=(), files=tuple(self._file(each, form) for each in leaf.files))

    def _file(self, file: File, form: _Form) -> File:
        key = (file.uri, file.size, file.modified, form)
        if key not in self._known:
            path = local_path(file.uri)
            if path is None:
                raise NotExact("files that are not on this machine")
            if path.suffix.lower() in _COMPRESSED:
                raise NotExact("compressed files of format csv")
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="govtool-csv-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            target = self._folder / f"{len(self._known)}.parquet"
            _convert(path, form, target)
            self._known[key] = replace(file, uri=target.as_uri())
        return replace(self._known[key], ordinal=file.ordinal, partition=file.partition)


@dataclass(frozen=True, slots=True)
class _Form:
    """How files are split."""

    separator: str
    has_header: bool
    is_quote_doubled: bool
    """Whether a quote in a quoted cell is written twice, instead of behind a backslash."""
    columns: tuple[tuple[str, t.Type], ...]
    zone: str
    """Of the session: local times are in it."""


def _form(leaf: Relation, malformed: str, zone: str) -> _Form:
    """How files are split.

    Raises:
        NotExact: By an option or into a type that is not known here.
    """
    separator, has_header, is_quote_doubled = ",", False, False
    given = [name.lower() for name, _ in leaf.options]
    if len({"sep", "delimiter"}.intersection(given)) > 1 or len(set(given)) < len(given):
        raise NotExact("files of format csv with an option that is given twice")
    for name, value in leaf.options:
        match name.lower():
            case "header":
                has_header = value.lower() == "true"
            case "sep" | "delimiter":
                separator = value
            case "mode" if value.upper() in _MODES:
                pass
            case "encoding" | "charset" if value.upper() == "UTF-8":
                pass
            case "quote" if value == '"':
                pass
            case "escape" if value in ("\\", '"'):
                is_quote_doubled = value == '"'
            case other if other not in _FREE:
                raise NotExact(f"files of format csv with the option {name}")
    if separator not in _SEPARATORS:
        raise NotExact("files of format csv with another separator")
    columns = tuple((each.name, each.type) for each in leaf.schema.fields)
    for name, kind in columns:
        if name.lower() == malformed or not _is_plain(kind, zone):
            raise NotExact(f"column {name} of files of format csv")
    if not columns or len({name.lower() for name, _ in columns}) < len(columns):
        raise NotExact("files of format csv without columns, or with two of one name")
    return _Form(separator, has_header, is_quote_doubled, columns, zone)


def _is_plain(kind: t.Type, zone: str) -> bool:
    if isinstance(kind, t.Decimal):
        return True
    if kind == t.TIMESTAMP:
        return zone_named(zone) is not None
    numbers = (t.FLOAT, t.DOUBLE, t.BYTE, t.SHORT, t.INTEGER, t.LONG)
    return kind in (t.STRING, t.BOOLEAN, t.DATE, t.TIMESTAMP_NTZ, *numbers)


def _convert(path: Path, form: _Form, target: Path) -> None:
    """Write the rows of a file as Parquet.

    Raises:
        NotExact: Spark might read something else.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([pa.field(name, _arrow_type(kind)) for name, kind in form.columns])
    try:
        with path.open("rb") as source, pq.ParquetWriter(target, schema, write_page_index=True) as sink:
            for lines in _blocks(source, form):
                sink.write_table(_typed(_split(lines, form), form, schema))
    except (pa.ArrowException, OSError, UnicodeError) as error:  # its text may show data
        target.unlink(missing_ok=True)
        raise NotExact("a file of format csv with lines of other lengths, or cells of other types") from error
    except NotExact:
        target.unlink(missing_ok=True)
        raise


def _blocks(source: BinaryIO, form: _Form) -> Iterator[bytes]:
    """Whole lines, as many as fit, the header left out.

    Raises:
        NotExact: A line can be read in two ways.
    """
    rest, is_first = b"", True
    while True:
        read = source.read(_BLOCK)
        end = len(read) if len(read) < _BLOCK else read.rfind(b"\n") + 1
        if end == 0 and read:
            raise NotExact("a file of format csv with a line of many megabytes")
        lines, rest = (rest + read[:end]).replace(b"\r\n", b"\n"), read[end:]
        if _UNSURE.search(lines):
            raise NotExact("a file of format csv with backslashes, other ends of lines or a byte order mark")
        lines = _with_doubled_quotes(lines, form)
        if lines and _BLANK.search(b"\n" + lines.removesuffix(b"\n") + b"\n"):
            raise NotExact("a file of format csv with blank lines")
        if is_first and form.has_header:
            lines = lines.partition(b"\n")[2]
        is_first = False
        if lines:
            yield lines
        if len(read) < _BLOCK:
            return


def _with_doubled_quotes(lines: bytes, form: _Form) -> bytes:
    """Lines whose cells in quotes are written as RFC 4180 has it.

    The first quote of a line can only begin a cell, so cells in quotes that are found from the left are cells for
    Spark, too. If the escape of the reader is not the quote, Spark takes a cell with doubled quotes as it stands, its
    outer quotes included, up to the next separator.

    Raises:
        NotExact: A quote does not belong to such a cell.
    """
    count = lines.count(b'"')
    if not count:
        return lines
    edge = re.escape(form.separator).encode()
    inside = rb'(?:[^"\n]|"")+' if form.is_quote_doubled else rb'(?:[^"\n]+|(?:[^"\n%b]|"")+)' % edge
    seen = 0

    def written(cell: re.Match[bytes]) -> bytes:
        nonlocal seen
        text = cell.group()
        is_verbatim = not form.is_quote_doubled and b'"' in text[1:-1]
        is_known = bool(text.strip(b'"'))
        if is_verbatim:  # as the last cell of a line, it may get one more quote from Spark
            is_known = bool(_CONTINUED.match(text)) and lines.startswith(form.separator.encode(), cell.end())
        if is_known:
            seen += text.count(b'"')
        return b'"%b"' % text.replace(b'"', b'""') if is_verbatim else text

    found = re.sub(rb'(?<![^%b\n])"%b"(?![^%b\n])' % (edge, inside, edge), written, lines)
    if seen < count:
        raise NotExact("a file of format csv with quotes within a cell, or an empty cell in quotes")
    return found


def _split(lines: bytes, form: _Form) -> pa.Table:
    """The cells of lines, as texts; an error of pyarrow where a line has other cells than the schema."""
    import pyarrow as pa
    from pyarrow import csv

    names = [name for name, _ in form.columns]
    return csv.read_csv(
        pa.BufferReader(lines),
        csv.ReadOptions(column_names=names, block_size=2 * _BLOCK, use_threads=False),
        csv.ParseOptions(
            delimiter=form.separator,
            quote_char='"' if b'"' in lines else False,
            double_quote=True,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=False,
        ),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )


def _typed(table: pa.Table, form: _Form, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    cells = [_cells(table[name], kind, schema.field(name).type, form.zone) for name, kind in form.columns]
    return pa.Table.from_arrays(cells, schema=schema)


def _cells(texts: pa.ChunkedArray, kind: t.Type, target: pa.DataType, zone: str) -> pa.ChunkedArray:
    """Texts as values; an empty one is NULL.

    Raises:
        NotExact: One has a form that is not known here.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    given = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if kind == t.STRING:
        return given
    pattern = _pattern(kind)
    known = pc.all(pc.match_substring_regex(given, pattern), min_count=0).as_py()
    if known is False:
        raise NotExact("a file of format csv with other texts than plain values of a column's type")
    if kind == t.BOOLEAN:
        return pc.equal(given, "true")
    if kind == t.TIMESTAMP:  # Java moves a time that the zone skips; Arrow refuses it
        local = pc.cast(given, pa.timestamp("us"))
        return pc.cast(pc.assume_timezone(local, zone, ambiguous="earliest"), target)
    return pc.cast(given, target)


def _pattern(kind: t.Type) -> str:
    """The texts that Spark and pyarrow read alike."""
    if isinstance(kind, t.Decimal):
        point = rf"(\.[0-9]{{1,{kind.scale}}})?" if kind.scale > 0 else ""
        return f"^-?[0-9]{{1,{max(kind.precision - kind.scale, 1)}}}{point}$"
    if kind == t.BOOLEAN:
        return "^(true|false)$"
    if kind == t.DATE:
        return _DATE
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _TIME
    return _POINTED if kind in (t.FLOAT, t.DOUBLE) else _WHOLE


def _arrow_type(kind: t.Type) -> Any:
    import pyarrow as pa

    if isinstance(kind, t.Decimal):
        return pa.decimal128(kind.precision, kind.scale)
    assert isinstance(kind, t.Scalar)
    others = {"string": pa.string(), "boolean": pa.bool_(), "date": pa.date32()}
    times = {"timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us")}
    numbers = {"float": pa.float32(), "double": pa.float64()}
    return {**others, **numbers, **times}.get(kind.name) or pa.type_for_alias(_INTEGERS[kind.name])
