"""A folder of relations, CSV and Parquet, for questions about one query without a store."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from govtool.app.why.csv_types import read_csv
from govtool.errors import UnknownNameError, UsageError
from govtool.wording import count

if TYPE_CHECKING:
    from govtool.records.plan.nodes import Relation

TOKEN = "_tok"
"""The column that holds a record's token; it is no column of the relation."""
_EXACT = 2**53
"""Below it, every whole number is a float of its own."""
_SUFFIXES = {".csv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Relations by name, and the tokens of their records in order, as pyarrow arrays of strings.

    Attributes:
        relations: By name.
        tokens: By name of the relation.
        unread: Files that are no relations, which the query does not name.
    """

    relations: Mapping[str, Relation]
    tokens: Mapping[str, Any]
    unread: tuple[Path, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """The number of records of each relation."""
        return {name: len(tokens) for name, tokens in self.tokens.items()}


@contextmanager
def opened_folder(folder: Path, keys: Mapping[str, str], sql: str) -> Iterator[DataFolder]:
    """The relations of a folder's files; CSV files are read once, into temporary Parquet files.

    Args:
        folder: Its ``*.csv`` and ``*.parquet`` are relations, named by their stems. A folder ``*.parquet`` is one,
            of all of its files.
        keys: For each relation, the column whose values are its tokens. Others are named by the column ``_tok``, or
            else ``relation:row``, rows counting from 0.
        sql: The query that reads them: a file that is no relation is no harm where the query does not name it.

    Raises:
        UsageError: No folder, no files, a file that is no relation, tokens that are not unique.
        UnknownNameError: A key of a relation or column that is not there.
    """
    files = relation_files(folder)
    text = sql.lower()
    with opened_files(files, keys, frozenset(name for name in files if name.lower() not in text)) as found:
        yield found


@contextmanager
def opened_files(
    files: Mapping[str, Path], keys: Mapping[str, str], unused: Container[str] = frozenset()
) -> Iterator[DataFolder]:
    """The relations that files are, CSV or Parquet, by name; as ``opened_folder`` has those of a folder.

    Those of ``unused`` names that are no relations are left out.
    """
    names = [name.lower() for name in files]
    for name in keys:
        if name.lower() not in names:
            near = tuple(difflib.get_close_matches(name.lower(), names))
            raise UnknownNameError(f"no relation '{name}'", code="usage.unknown-relation", nearest=near)
    by_name = {name.lower(): column for name, column in keys.items()}
    with TemporaryDirectory(prefix="govtool-") as scratch:
        relations, tokens = {}, {}
        unread = []
        for name, file in files.items():
            try:
                relations[name], tokens[name] = _opened(name, file, by_name.get(name.lower()), Path(scratch))
            except UsageError:
                if name not in unused or name.lower() in by_name:
                    raise
                unread.append(file)
        _unique_over_all(tokens)
        yield DataFolder(relations, tokens, tuple(unread))


def relation_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that are relations, by name.

    Raises:
        UsageError: There is no such folder, it has none, or two of one name (``usage.data``).
    """
    if not folder.is_dir():
        raise UsageError("no such folder", code="usage.data", location=str(folder))
    found: dict[str, Path] = {}
    for file in sorted(filter(_is_relation, folder.iterdir())):
        name = file.stem
        other = next((each for each in found if each.lower() == name.lower()), None)
        if other is not None:
            raise UsageError(
                f"two files of relation '{name}': {found[other].name} and {file.name}",
                code="usage.data",
                location=str(folder),
            )
        found[name] = file
    if not found:
        raise UsageError(
            "the folder has no relations", code="usage.data", location=str(folder), hint="it holds *.csv and *.parquet"
        )
    return found


def _is_relation(path: Path) -> bool:
    suffix = path.suffix.lower()
    return suffix in _SUFFIXES and (path.is_file() or (suffix == ".parquet" and path.is_dir()))


def _one_file(folder: Path, stored: Path) -> Path:
    """The rows of a folder of Parquet files in one file, in the order of their names.

    Raises:
        UsageError: It has none, they differ in their columns, or are in folders of partitions (``usage.relation``).
    """
    import pyarrow.parquet as pq

    parts = sorted(each for each in folder.iterdir() if not each.name.startswith(("_", ".")))
    problem = "" if parts else "the folder has no files"
    inner = next((each for each in parts if each.is_dir()), None)
    if inner is not None:
        problem = f"the folder has folders ({inner.name}): partitions are not covered"
    if problem:
        raise UsageError(problem, code="usage.relation", location=str(folder))
    files = [_parquet(each) for each in parts]
    schema = files[0].schema_arrow.remove_metadata()
    with pq.ParquetWriter(stored, schema) as writer:
        for part, file in zip(parts, files, strict=True):
            if file.schema_arrow.remove_metadata() != schema:
                raise UsageError(
                    f"its columns are not those of {parts[0].name}", code="usage.relation", location=str(part)
                )
            for batch in file.iter_batches():
                writer.write_batch(batch.replace_schema_metadata(None))
    return stored


def _parquet(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(f"not a Parquet file: {error}", code="usage.relation", location=str(file)) from error


def _opened(name: str, file: Path, key: str | None, scratch: Path) -> tuple[Relation, Any]:
    import pyarrow.parquet as pq

    if _SUFFIXES[file.suffix.lower()] == "csv":
        table = read_csv(file)
        tokens = _tokens(name, table.schema, key, table.num_rows, file, lambda column: table.column(column))
        stored = scratch / f"{name}.parquet"
        pq.write_table(table, stored)
        return _relation(name, stored, table.schema), tokens
    whole = _one_file(file, scratch / f"{name}.parquet") if file.is_dir() else file
    found = _parquet(whole)
    schema, rows = found.schema_arrow, found.metadata.num_rows
    tokens = _tokens(name, schema, key, rows, file, lambda column: pq.read_table(whole, columns=[column]).column(0))
    return _relation(name, whole.resolve(), schema), tokens


def parquet_relation(name: str, file: Path) -> Relation:
    """A relation that is one Parquet file.

    Raises:
        UsageError: A column is of a type that is not covered (``usage.relation``).
    """
    import pyarrow.parquet as pq

    return _relation(name, file.resolve(), pq.read_schema(file))


def _relation(name: str, file: Path, schema: Any) -> Relation:
    from govtool.records.plan import types as t
    from govtool.records.plan.from_sql import table
    from govtool.records.plan.nodes import File

    fields = tuple(
        t.Field(each.name, _type(each.type, name, each.name)) for each in schema if each.name.lower() != TOKEN
    )  # fmt: skip
    stat = file.stat()
    part = File(0, file.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000)
    return replace(table(name, t.Struct(fields)), format="parquet", files=(part,))


def _type(kind: Any, relation: str, column: str) -> Any:
    """The Spark type of a column of a Parquet file."""
    import pyarrow as pa

    from govtool.records.plan import types as t

    plain = {
        pa.bool_(): t.BOOLEAN, pa.int8(): t.BYTE, pa.int16(): t.SHORT, pa.int32(): t.INTEGER, pa.int64(): t.LONG,
        pa.float32(): t.FLOAT, pa.float64(): t.DOUBLE, pa.string(): t.STRING, pa.large_string(): t.STRING,
        pa.binary(): t.BINARY, pa.date32(): t.DATE, pa.uint8(): t.SHORT, pa.uint16(): t.INTEGER, pa.uint32(): t.LONG,
    }  # fmt: skip
    if kind in plain:
        return plain[kind]
    if pa.types.is_decimal(kind):
        return t.Decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return t.TIMESTAMP if kind.tz else t.TIMESTAMP_NTZ
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type, relation, column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return t.Array(_type(kind.value_type, relation, column))
    if pa.types.is_struct(kind):
        return t.Struct(tuple(t.Field(each.name, _type(each.type, relation, f"{column}.{each.name}")) for each in kind))
    if pa.types.is_map(kind):
        return t.Map(_type(kind.key_type, relation, column), _type(kind.item_type, relation, column))
    raise UsageError(f"{relation}.{column} is of type {kind}, which is not covered", code="usage.relation")


# ---- tokens ---------------------------------------------------------------------------------------------------------


def _tokens(name: str, schema: Any, key: str | None, rows: int, file: Path, read: Any) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names = {each.name.lower(): each.name for each in schema}
    if key is not None and key.lower() not in names:
        near = tuple(difflib.get_close_matches(key.lower(), names))
        raise UnknownNameError(f"no column '{key}' in {name}", code="usage.unknown-column", nearest=near)
    if key is None and TOKEN not in names:
        numbers = pc.cast(pa.array(np.arange(rows)), pa.string())
        return pc.binary_join_element_wise(pa.scalar(name), numbers, pa.scalar(":"))
    column = names[(key or TOKEN).lower()]
    tokens = _as_text(read(column))
    if tokens.null_count:
        lacking = "1 record has" if tokens.null_count == 1 else f"{tokens.null_count:,} records have"
        raise UsageError(f"{name}: {lacking} no {column}", code="usage.token", location=str(file))
    _unique(name, column, tokens, file)
    return tokens


def _as_text(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column.combine_chunks()
    if pa.types.is_floating(array.type):
        return pa.array([None if each is None else _float_text(each) for each in array.to_pylist()], pa.string())
    return pc.cast(array, pa.string())


def _float_text(number: float) -> str:
    """A number as a token has it: whole ones as they were before a NULL among them made them floats."""
    whole = number.is_integer() and abs(number) < _EXACT
    short = str(int(number)) if whole else f"{number:g}"
    return short if float(short) == number else repr(number)


def _unique(name: str, column: str, tokens: Any, file: Path) -> None:
    import pyarrow.compute as pc

    distinct = pc.count_distinct(tokens).as_py()
    if distinct < len(tokens):
        counts = pc.value_counts(tokens)
        most = counts.filter(pc.greater(counts.field("counts"), 1))
        raise UsageError(
            f"{name}.{column} is not unique: {count(len(tokens), 'record')}, {count(distinct, 'value')} "
            f"({len(most):,} of them repeated, such as {most[0]['values']})",
            code="usage.token-not-unique",
            location=str(file),
        )


def _unique_over_all(tokens: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(tokens) < 2:
        return
    known: list[tuple[str, Any]] = []
    for name, own in tokens.items():
        for other, texts in known:
            shared = own.filter(pc.is_in(own, value_set=texts))
            if len(shared):
                raise UsageError(
                    f"two records have the same token: '{shared[0]}', in {other} and {name} ({len(shared):,} in all)",
                    code="usage.token-not-unique",
                    hint="tokens name one record of all relations: give _tok columns that differ",
                )
        known.append((name, own.cast(pa.string())))
