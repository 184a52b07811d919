"""Operators of an exact plan.

One node an operator, its inputs in the fields ``child``, ``left``, ``right`` or ``children``. :func:`outputs` gives the
columns of a node, in order; an id may be there twice (``SELECT a, a``), and then means the same value. Ids are unique
otherwise: where both sides of a join read the same table, each read has ids of its own.

A **record** is (leaf, file ordinal, row): leaves are numbered over the whole plan, subqueries and definitions included.
A definition (:class:`With`) is evaluated once: its leaves are read once, however often it is referred to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from govtool.records.plan.expressions import Attribute, Expression, Named, SortKey, UdfReference, Value
from govtool.records.plan.tree import Node, fold_nodes
from govtool.records.plan.types import Struct

JoinKind = OneOf["inner", "cross", "left", "right", "full", "left_semi", "left_anti", "existence", "left_single"]
"""``existence`` keeps every left row and adds a boolean; ``left_single`` is ``left`` that fails on a second match."""
SetKind = OneOf["intersect", "except"]


@dataclass(frozen=True, slots=True)
class File:
    """A file that a leaf read."""

    ordinal: int
    """Its number within the leaf's listing, by URI."""
    uri: str
    size: int
    modified: int
    """Milliseconds since 1970."""
    partition: tuple[Value, ...] = ()
    """Values of the partition columns, in the order of ``Relation.partitioned``."""
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A leaf that reads files."""

    leaf: int
    dataset: str
    """The table's name, or its path."""
    format: str
    """``parquet``, ``csv``, ``json``, ``text``, ``orc``, ``delta``, ``iceberg`` …"""
    files: tuple[File, ...]
    columns: tuple[Attribute, ...]
    """The columns that are read, partition columns included; names are those in the data."""
    schema: Struct
    """The schema that the reader was given for the files, without partition columns."""
    partitioned: tuple[str, ...] = ()
    """Names of the partition columns."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the reader, sorted."""
    version: str = ""
    """The table's version, where it has one."""
    metadata: tuple[tuple[int, str], ...] = ()
    """Columns (by id) that are no data: ``_metadata``, ``_metadata.file_path`` …"""


@dataclass(frozen=True, slots=True)
class LocalRows(Node):
    """A leaf of rows that the driver held; private data. One row without columns is ``SELECT 1``'s input."""

    leaf: int
    columns: tuple[Attribute, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Range(Node):
    """``range(start, end, step)``; its record ids are positions from 0."""

    leaf: int
    start: int
    end: int
    step: int
    column: Attribute


@dataclass(frozen=True, slots=True)
class Project(Node):
    """SELECT without anything else."""

    child: Node
    columns: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """WHERE, or HAVING: rows where the condition is true."""

    child: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Join(Node):
    """A join. USING and NATURAL are resolved: the condition is explicit and a projection follows."""

    left: Node
    right: Node
    kind: JoinKind
    condition: Expression | None
    exists: Attribute | None = None
    """The boolean that an ``existence`` join adds."""


@dataclass(frozen=True, slots=True)
class LateralJoin(Node):
    """A join whose right side is a subquery that reads columns of the left side, as ``Outer``."""

    left: Node
    right: Node
    kind: JoinKind
    """``inner``, ``cross`` or ``left``."""
    condition: Expression | None
    outer: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """GROUP BY: one row a combination of keys (NULL equals NULL), exactly one row if there are no keys.

    Keys and measures are named; what is computed from them is a Project above. Rollup, cube and grouping sets are an
    Expand below.
    """

    child: Node
    keys: tuple[Named, ...]
    measures: tuple[Named, ...]
    """Values are ``AggregateCall``, an aggregating ``Udf`` or ``Opaque``."""


@dataclass(frozen=True, slots=True)
class Distinct(Node):
    """DISTINCT over all columns; NULL equals NULL."""

    child: Node


@dataclass(frozen=True, slots=True)
class Deduplicate(Node):
    """``dropDuplicates`` by some columns: one row a combination of keys; not determined which."""

    child: Node
    keys: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Union(Node):
    """UNION ALL by position. UNION is a Distinct above."""

    children: tuple[Node, ...]
    columns: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class SetOperation(Node):
    """INTERSECT or EXCEPT by position, all or distinct; NULL equals NULL."""

    left: Node
    right: Node
    kind: SetKind
    all: bool
    columns: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Window(Node):
    """Adds columns whose values are ``WindowCall``; keeps every row."""

    child: Node
    columns: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Sort(Node):
    """ORDER BY, or the order within partitions, which no result depends on."""

    child: Node
    order: tuple[SortKey, ...]
    total: bool = True
    """False: within partitions only."""


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """The first ``count`` rows after ``offset`` rows: those of a Sort below, ties aside; else not determined."""

    child: Node
    count: int | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Tail(Node):
    """The last ``count`` rows."""

    child: Node
    count: int


@dataclass(frozen=True, slots=True)
class Sample(Node):
    """A random sample; the seed holds only for the same partitions."""

    child: Node
    lower: float
    upper: float
    replacement: bool
    seed: int


@dataclass(frozen=True, slots=True)
class Generate(Node):
    """Rows made of each row: ``explode``, ``posexplode``, ``inline``, ``stack`` …; a Call or a Udf."""

    child: Node
    generator: Expression
    outer: bool
    """Keep a row that makes none, with NULLs."""
    columns: tuple[Attribute, ...]
    """The columns added to those of the child."""


@dataclass(frozen=True, slots=True)
class Expand(Node):
    """Several rows of each row, one a projection: grouping sets, unpivot."""

    child: Node
    projections: tuple[tuple[Expression, ...], ...]
    columns: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """A common table expression, under a number."""

    child: Node
    id: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class With(Node):
    """Definitions, and the plan that refers to them. A definition may refer to earlier ones."""

    definitions: tuple[Definition, ...]
    child: Node


@dataclass(frozen=True, slots=True)
class Reference(Node):
    """A definition's rows, under ids of its own, by position."""

    id: int
    columns: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Repartition(Node):
    """A shuffle that changes no row."""

    child: Node


@dataclass(frozen=True, slots=True)
class Write(Node):
    """The root of an action that writes: its rows are the child's, by position."""

    child: Node
    dataset: str
    format: str
    mode: str
    """``append``, ``overwrite``, ``error``, ``ignore``."""
    columns: tuple[str, ...]
    """Names in the target."""
    partitioned: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Break(Node):
    """An operator that cannot be evaluated again, with the reason; its inputs are still described."""

    reason: str
    children: tuple[Node, ...]
    columns: tuple[Attribute, ...]
    function: UdfReference | None = None
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """Session settings that the meaning of a plan depends on."""

    spark: str
    """The version."""
    ansi: bool
    zone: str
    case_sensitive: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    """Other settings that change results, as they were: sorted names and values."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An action's plan with the session it ran in."""

    root: Node
    session: Session


def outputs(node: Node) -> tuple[Attribute, ...]:
    """The columns of a node, in order; looked up once and kept with the node."""
    known: tuple[Attribute, ...] | None = getattr(node, _KEPT, None)
    if known is not None:
        return known
    return fold_nodes(node, _kept, lambda each: () if _is_known(each) else each.nodes())


_KEPT = "_outputs"
_OWN_COLUMNS = (Relation, LocalRows, Range, Union, SetOperation, Expand, Reference, Break, Project, Aggregate)
"""Operators whose columns do not depend on those of their inputs: nothing below them need be looked at."""


def _is_known(node: Node) -> bool:
    return isinstance(node, _OWN_COLUMNS) or hasattr(node, _KEPT)


def _kept(node: Node, inputs: tuple[tuple[Attribute, ...], ...]) -> tuple[Attribute, ...]:
    if not hasattr(node, _KEPT):
        object.__setattr__(node, _KEPT, _outputs(node, inputs))
    found: tuple[Attribute, ...] = getattr(node, _KEPT)
    return found


def _outputs(node: Node, inputs: tuple[tuple[Attribute, ...], ...]) -> tuple[Attribute, ...]:
    if isinstance(node, (Relation, LocalRows, Union, SetOperation, Expand, Reference, Break)):
        return node.columns
    if isinstance(node, Project):
        return tuple(each.attribute for each in node.columns)
    if isinstance(node, Aggregate):
        return tuple(each.attribute for each in node.keys + node.measures)
    if isinstance(node, Window):
        return inputs[0] + tuple(each.attribute for each in node.columns)
    if isinstance(node, Generate):
        return inputs[0] + node.columns
    if isinstance(node, (Join, LateralJoin)):
        return _joined(node, inputs)
    if isinstance(node, Range):
        return (node.column,)
    return inputs[-1]  # With: that of its child, which comes last; all others have one input


def _joined(node: Join | LateralJoin, inputs: tuple[tuple[Attribute, ...], ...]) -> tuple[Attribute, ...]:
    if node.kind in ("left_semi", "left_anti"):
        return inputs[0]
    if isinstance(node, Join) and node.kind == "existence":
        return inputs[0] + ((node.exists,) if node.exists is not None else ())
    return inputs[0] + inputs[1]
