"""CSV files without a JVM: those that cannot be read in two ways are turned into Parquet, row by row.

Spark's parser has rules of its own for quotes, escapes, blank lines, lines of other lengths and texts that are no
numbers. A file that has any of these is refused here and left to Spark. What remains is split at line ends and
separators, and its cells are plain texts, whole numbers, decimals, dates and booleans.

Source: Spark's ``CSVOptions`` and ``UnivocityParser``: defaults of options, and how cells become values.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from govtool.records.execute.inputs import local_path
from govtool.records.plan import types as t
from govtool.records.plan.nodes import File, Relation
from govtool.records.sql.dialect import NotExact

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 8 << 20
_UNSURE = re.compile(rb'["\\\r\x00]|\xef\xbb\xbf')
"""Quotes, escapes, other ends of lines, marks of the byte order."""
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


class CsvFiles:
    """Files that were turned into Parquet, kept as long as this is.

    Args:
        malformed: The name of the column into which Spark puts malformed lines.
    """

    def __init__(self, malformed: str = "_corrupt_record") -> None:
        self._malformed = malformed.lower()
        self._folder: Path | None = None
        self._known: dict[tuple[Any, ...], File] = {}

    def as_parquet(self, leaf: Relation) -> Relation:
        """A leaf that reads the same rows from Parquet files.

        Raises:
            NotExact: Spark might read something else, or files are not on this machine.
        """
        form = _form(leaf, self._malformed)
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


_Form = tuple[str, bool, tuple[tuple[str, t.Type], ...]]
"""The separator, whether the first line is a header, and the columns."""


def _form(leaf: Relation, malformed: str) -> _Form:
    """How files are split.

    Raises:
        NotExact: By an option or into a type that is not known here.
    """
    separator, header = ",", False
    given = [name.lower() for name, _ in leaf.options]
    if len({"sep", "delimiter"}.intersection(given)) > 1 or len(set(given)) < len(given):
        raise NotExact("files of format csv with an option that is given twice")
    for name, value in leaf.options:
        match name.lower():
            case "header":
                header = value.lower() == "true"
            case "sep" | "delimiter":
                separator = value
            case "mode" if value.upper() in _MODES:
                pass
            case "encoding" | "charset" if value.upper() == "UTF-8":
                pass
            case other if other not in _FREE:
                raise NotExact(f"files of format csv with the option {name}")
    if separator not in _SEPARATORS:
        raise NotExact("files of format csv with another separator")
    columns = tuple((each.name, each.type) for each in leaf.schema.fields)
    for name, kind in columns:
        if name.lower() == malformed or not _is_plain(kind):
            raise NotExact(f"column {name} of files of format csv")
    if not columns or len({name.lower() for name, _ in columns}) < len(columns):
        raise NotExact("files of format csv without columns, or with two of one name")
    return separator, header, columns


def _is_plain(kind: t.Type) -> bool:
    if isinstance(kind, t.Decimal):
        return True
    return kind in (t.STRING, t.BOOLEAN, t.DATE, t.FLOAT, t.DOUBLE, t.BYTE, t.SHORT, t.INTEGER, t.LONG)


def _convert(path: Path, form: _Form, target: Path) -> None:
    """Write the rows of a file as Parquet.

    Raises:
        NotExact: Spark might read something else.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([pa.field(name, _arrow_type(kind)) for name, kind in form[2]])
    try:
        with path.open("rb") as source, pq.ParquetWriter(target, schema, write_page_index=True) as sink:
            for lines in _blocks(source, header=form[1]):
                sink.write_table(_typed(_split(lines, form), form, schema))
    except (pa.ArrowException, OSError, UnicodeError) as error:  # its text may show data
        target.unlink(missing_ok=True)
        raise NotExact("a file of format csv with lines of other lengths, or cells of other types") from error
    except NotExact:
        target.unlink(missing_ok=True)
        raise


def _blocks(source: BinaryIO, header: bool) -> Iterator[bytes]:
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
        lines, rest = rest + read[:end], read[end:]
        if _UNSURE.search(lines):
            raise NotExact("a file of format csv with quotes, escapes, other ends of lines or a byte order mark")
        if lines and _BLANK.search(b"\n" + lines.removesuffix(b"\n") + b"\n"):
            raise NotExact("a file of format csv with blank lines")
        if is_first and header:
            lines = lines.partition(b"\n")[2]
        is_first = False
        if lines:
            yield lines
        if len(read) < _BLOCK:
            return


def _split(lines: bytes, form: _Form) -> pa.Table:
    """The cells of lines, as texts; an error of pyarrow where a line has other cells than the schema."""
    import pyarrow as pa
    from pyarrow import csv

    names = [name for name, _ in form[2]]
    return csv.read_csv(
        pa.BufferReader(lines),
        csv.ReadOptions(column_names=names, block_size=2 * _BLOCK, use_threads=False),
        csv.ParseOptions(
            delimiter=form[0], quote_char=False, escape_char=False, newlines_in_values=False, ignore_empty_lines=False
        ),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )


def _typed(table: pa.Table, form: _Form, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    cells = [_cells(table[name], kind, schema.field(name).type) for name, kind in form[2]]
    return pa.Table.from_arrays(cells, schema=schema)


def _cells(texts: pa.ChunkedArray, kind: t.Type, target: pa.DataType) -> pa.ChunkedArray:
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
    return _POINTED if kind in (t.FLOAT, t.DOUBLE) else _WHOLE


def _arrow_type(kind: t.Type) -> Any:
    import pyarrow as pa

    if isinstance(kind, t.Decimal):
        return pa.decimal128(kind.precision, kind.scale)
    assert isinstance(kind, t.Scalar)
    others = {"string": pa.string(), "boolean": pa.bool_(), "date": pa.date32()}
    numbers = {"float": pa.float32(), "double": pa.float64()}
    return {**others, **numbers}.get(kind.name) or pa.type_for_alias(_INTEGERS[kind.name])
