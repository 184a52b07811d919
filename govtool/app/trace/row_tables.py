"""All rows of a trace as one Parquet file: of every dataset and run, in the types of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from govtool.answers.trace import free_name
from govtool.errors import UsageError, output_error
from govtool.records.cells import json_value
from govtool.records.trace.answer import text_table

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.answers.trace import TraceReport
    from govtool.records.trace.answer import InputAnswer

ABOUT = ("run", "part", "dataset")
"""Columns in front of those of the rows: the run that was traced, what the rows are, and their dataset."""


def write_parquet(report: TraceReport, file: Path) -> tuple[str, ...]:
    """Write all rows of a trace, those in other runs included; columns are those of all datasets.

    Returns:
        Columns that became text, as their types in several datasets have nothing in common, or as Parquet has no such.

    Raises:
        UsageError: The file cannot be written (``usage.output``).
        StoreError: The disk is full, or failed (``output.io``).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = [(report.trace.run, part, group) for part, group in report.own_parts]
    others = [(hop.trace.run, part, group) for hop in report.hops for part, group in hop.parts]
    tables = [_table(*each) for each in (*own, *others)]
    try:
        table, as_text = _joined(tables)
        pq.write_table(table, file)
    except OSError as error:
        raise output_error(error, str(file)) from error
    except pa.ArrowException as error:
        raise UsageError(f"cannot write it: {error}", code="usage.output", location=str(file)) from error
    return as_text


def _table(run: str, part: str, group: InputAnswer) -> Any:
    """Rows of one dataset, after the columns about them; names are unique."""
    import pyarrow as pa

    rows = group.table() if group.table is not None else text_table(group.rows)
    about = [pa.array([text] * rows.num_rows, pa.string()) for text in (run, part, group.dataset)]
    names = list(ABOUT)
    for name in rows.column_names:
        names.append(free_name(name, names))
    return pa.Table.from_arrays([*about, *rows.columns], names=names)


def _joined(tables: Sequence[Any]) -> tuple[Any, tuple[str, ...]]:
    """Tables as one, and the columns that became text for that."""
    import pyarrow as pa

    if not tables:
        return pa.table({name: pa.array([], pa.string()) for name in ABOUT}), ()
    kinds: dict[str, list[Any]] = {}
    for table in tables:
        for field in table.schema:
            kinds.setdefault(field.name, []).append(field.type)
    as_text = tuple(name for name, own in kinds.items() if not (_have_one_type(own) and all(map(_is_writable, own))))
    return pa.concat_tables([_with_text(table, as_text) for table in tables], promote_options="permissive"), as_text


def _have_one_type(kinds: Sequence[Any]) -> bool:
    """Return whether a type holds the values of several ones as they are."""
    import pyarrow as pa

    several = [kind for kind in dict.fromkeys(kinds) if not pa.types.is_null(kind)]
    if len(several) < 2:
        return True
    families = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, _is_text)
    if not any(all(map(family, several)) for family in families):
        return False
    try:
        pa.unify_schemas([pa.schema({"c": kind}) for kind in several], promote_options="permissive")
    except pa.ArrowException:
        return False
    return True


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_writable(kind: Any) -> bool:
    """Return whether Parquet has a type."""
    import pyarrow as pa

    if pa.types.is_interval(kind) or pa.types.is_union(kind):
        return False
    return all(_is_writable(kind.field(number).type) for number in range(kind.num_fields))


def _with_text(table: Any, names: Sequence[str]) -> Any:
    import pyarrow as pa

    for name in names:
        at = table.schema.get_field_index(name)
        if at >= 0:
            values = [None if value is None else _text(value) for value in table.column(at).to_pylist()]
            table = table.set_column(at, name, pa.array(values, pa.string()))
    return table


def _text(value: Any) -> str:
    shown = json_value(value)
    return shown if isinstance(shown, str) else str(shown)
