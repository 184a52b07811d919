"""Tables in the executor whose rows are numbered, so that arrays here and columns there are about the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.execute.written_types import without_zones
from govtool.records.plan.expressions import (
    Attribute,
    Call,
    Expression,
    Literal,
    SortKey,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import Aggregate, Project, Relation, Window, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import INTEGER, LONG, STRING, Decimal, Field, Struct, Text, Type, bare, to_json
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT
from govtool.records.trace.back import Executor as Executor
from govtool.records.trace.back import count_rows
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import unique
from govtool.workflow.annotate.fetched import arrays_of


@dataclass(eq=False, slots=True)
class KeptTable:
    """Rows that the executor keeps, numbered from 0.

    Attributes:
        node: The rows.
        number: The column of their numbers.
        count: How many.
        store: Where they are.
    """

    node: Node
    number: Attribute
    count: int
    store: TableStore
    _read: dict[Expression, Any] = field(default_factory=dict)

    def read(self, *values: Expression) -> list[Any]:
        """Columns in the order of the rows, as pyarrow arrays; each is fetched once."""
        missing = [value for value in values if value not in self._read]
        if missing:
            table = self.store.fetch(self.node, [self.number, *missing])
            (numbers,) = arrays_of([table.column(0)])
            order = np.argsort(numbers, kind="stable")
            for at, value in enumerate(missing):
                self._read[value] = without_zones(table.column(at + 1)).combine_chunks().take(order)
        return [self._read[value] for value in values]

    def ids(self, *values: Expression) -> list[Array]:
        """Columns of node ids or numbers in the order of the rows; they are not remembered."""
        table = self.store.fetch(self.node, [self.number, *values])
        numbers, *columns = arrays_of(table.columns)
        if (numbers[1:] > numbers[:-1]).all():
            return columns
        order = np.argsort(numbers, kind="stable")
        return [column[order] for column in columns]


class TableStore:
    """Keeps numbered tables.

    Args:
        executor: Evaluates plans.
        ids: Ids of columns to spare.

    Attributes:
        loaded: The number of tables that were brought to the executor so far.
    """

    def __init__(self, executor: Executor, ids: Ids) -> None:
        self.executor = executor
        self.ids = ids
        self.loaded = 0

    def numbered(self, node: Node) -> KeptTable:
        """Evaluate a plan once, and number its rows."""
        call = WindowCall(Call("row_number", (), LONG), (), self._any_order(), None, LONG)
        counted = self.ids.named("row", call)
        kept = self.executor.keep(Window(node, (counted,)))
        number = self.ids.named("number", Call("-", (counted.attribute, Literal(1, LONG)), LONG, "ansi"))
        rest = [passed(column) for column in unique(outputs(kept)) if column.id != counted.id]
        return KeptTable(Project(kept, (*rest, number)), number.attribute, self._count_of(kept), self)

    def _count_of(self, kept: Relation) -> int:
        """The number of rows that were kept; an executor may know it, and is spared a query."""
        known = getattr(self.executor, "kept_rows", None)
        count: int | None = known(kept) if known is not None else None
        return self.count(kept) if count is None else count

    def _any_order(self) -> tuple[SortKey, ...]:
        """Spark wants an order of every window that numbers rows."""
        return (SortKey(Literal(1, INTEGER)),) if hasattr(self.executor, "spark") else ()

    def count(self, node: Node) -> int:
        """The number of rows of a plan."""
        return count_rows(self.executor, node)

    def fetch(self, node: Node, values: Iterable[Expression]) -> Any:
        """Values over the rows of a plan as a pyarrow table."""
        return self.executor.arrow(Project(node, tuple(self.ids.named("value", value) for value in values)))

    def scalar(self, node: Node, call: Expression) -> Any:
        """One aggregate over the rows of a plan."""
        return self.executor.fetch(Aggregate(node, (), (self.ids.named("value", call),)))[0][0]

    def load(self, columns: dict[Attribute, Any]) -> Relation:
        """Bring arrays to the executor; return the leaf that reads them.

        Args:
            columns: Arrays of one length by column, all LONG.
        """
        import pyarrow as pa

        arrays = {f"c{column.id}": pa.array(values, pa.int64()) for column, values in columns.items()}
        self.loaded += 1
        return load_table(self.executor, f"kept_arrays_{self.loaded}", pa.table(arrays), tuple(columns))


_LOADED = frozenset({"boolean", "byte", "short", "integer", "long", "float", "double", "string", "date"})
"""Types that reach Spark as they are; timestamps would pass through the time zone of the process."""


def load_table(executor: Any, name: str, table: Any, columns: tuple[Attribute, ...]) -> Relation:
    """Bring a table to an executor; return the leaf that reads it.

    Args:
        executor: DuckDB's or Spark's.
        name: A name that the executor has not had.
        table: A pyarrow table whose columns are called ``c`` and the id of the attribute.
        columns: Its columns.

    Raises:
        NotExact: A column is of a type that does not reach Spark as it is.
    """
    if getattr(executor, "spark", None) is not None:
        _into_spark(executor.spark, name, table, columns)
    else:
        executor.connection.register(f"{name}_view", table)
        executor.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {name}_view")
        executor.connection.unregister(f"{name}_view")
    return Relation(0, name, KEPT, (), columns, Struct(()))


def _into_spark(spark: Any, name: str, table: Any, columns: tuple[Attribute, ...]) -> None:
    from pyspark.sql.types import StructType

    if all(column.type == LONG for column in columns):  # nodes and numbers, of which there may be millions
        numbers = ", ".join(f"{column} bigint" for column in table.column_names)  # no row: no type to infer
        spark.createDataFrame(table.to_pandas(), numbers).createOrReplaceTempView(name)
        return
    strange = [column for column in columns if column.type != LONG and not _reaches_spark(column)]
    if strange:
        raise NotExact(f"rows that are in no file, with the column {strange[0].name} of the type {strange[0].type}")
    fields = [Field(title, column.type, True) for title, column in zip(table.column_names, columns, strict=True)]
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    schema = StructType.fromJson(to_json(Struct(tuple(fields))))
    spark.createDataFrame(rows, schema).createOrReplaceTempView(name)


def _reaches_spark(column: Attribute) -> bool:
    return isinstance(column.type, Decimal) or str(to_json(column.type)) in _LOADED


def type_name(value: Expression) -> str:
    """The type of an expression, as text: values of one type share a table.

    What may be NULL within a value is not its type: a list that is read again from a file may hold NULLs, and the list
    that was written there cannot.
    """
    return str(to_json(bare(value.type, _unbounded)))


def _unbounded(kind: Type) -> Type:
    """Text of any length in place of that of a length."""
    return STRING if isinstance(kind, Text) and not kind.collation else kind
