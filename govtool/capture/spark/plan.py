"""A Spark plan as lineage needs it: relations and expressions, attributes by Spark's expression ids.

The readers of plans (Catalyst's analyzed plan, plan text) say what they read in these terms, with ``build`` for what
all of them build alike, and ``flow`` says what follows for columns. What means nothing to lineage (limits, hints,
aliases of relations, repartitioning) has no node: readers pass through it. What is no data but a value in a query, a
literal, is `Constant` without its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from govtool.model import EdgeKind

# ---- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column by its expression id: ``email#12``. Outer references of subqueries are no different."""

    id: int
    name: str = ""
    """As written, for diagnostics."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, ``current_date()``, a variable of a lambda: nothing flows from it."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Something is computed from arguments."""

    name: str
    """The function in lower case; empty for operators, which leave no name behind."""
    arguments: tuple[Expression, ...]
    kind: EdgeKind = EdgeKind.TRANSFORMATION
    """``IDENTITY`` hands the arguments through (an alias, a tuple), ``AGGREGATION`` is an aggregate."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """A value that other expressions decide about: CASE and its conditions, a window function and its window."""

    value: Expression
    by: tuple[Expression, ...]
    kind: EdgeKind = EdgeKind.CONDITIONAL
    """``CONDITIONAL`` or ``WINDOW``."""


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a value: ``zip`` of a struct, ``[]`` of an array, ``['user']`` of a map or of JSON."""

    base: Expression
    step: str
    """Canonical; see ``govtool.names`` and ``build.key_step``."""


@dataclass(frozen=True, slots=True)
class StructValue:
    """A struct that the query builds: a field of it depends on what went into that field."""

    name: str
    """The function: ``struct``, ``named_struct``."""
    fields: tuple[tuple[str, Expression], ...]
    """Canonical names."""


@dataclass(frozen=True, slots=True)
class Elements:
    """An array that the query builds, ``array(a, b)``; with ``kind`` ``AGGREGATION`` one of an aggregate
    (``collect_list(a)``). What is known of the fields of its items is known of its elements.
    """

    name: str
    items: tuple[Expression, ...]
    kind: EdgeKind = EdgeKind.TRANSFORMATION


@dataclass(frozen=True, slots=True)
class Opaque:
    """A function whose inside is not known: its arguments are, and may or may not reach the result."""

    reason: str
    """``code: detail``, such as ``python-udf: embed``."""
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A subquery as an expression. Its rows and what it reads count for the relation that it stands in."""

    plan: Node
    value: bool = True
    """False: only whether there are rows is asked (EXISTS)."""


@dataclass(frozen=True, slots=True)
class Let:
    """Expressions that are computed once and named by id (Catalyst's ``With`` and ``CommonExpressionDef``)."""

    bindings: tuple[tuple[int, Expression], ...]
    body: Expression


Expression = Attribute | Constant | Apply | Conditional | Field | StructValue | Elements | Opaque | Query | Let

# ---- relations ----------------------------------------------------------------------------------------


class Named(NamedTuple):
    """An output column of a relation."""

    id: int
    name: str


class Output(NamedTuple):
    """An output column that is computed."""

    id: int
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Scan:
    """A dataset is read."""

    dataset: str
    """Canonical id; see ``identity``."""
    outputs: tuple[Named, ...]
    paths: tuple[str, ...] = ()
    """Canonical column paths of the outputs; empty: their folded names."""


@dataclass(frozen=True, slots=True)
class Values:
    """Rows out of nothing: VALUES, range(), data of the driver."""

    outputs: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """The select list."""

    child: Node
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    """The child's columns and some more: window functions, Python functions, metadata."""

    child: Node
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """WHERE, HAVING, QUALIFY."""

    child: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Join:
    """A join; ``lateral`` where the right side may name columns of the left."""

    left: Node
    right: Node
    condition: Expression | None = None
    left_only: bool = False
    """Semi and anti joins: the columns are the left ones."""
    lateral: bool = False
    outputs: tuple[Named, ...] = ()
    """Columns that the join makes itself, after those of its sides: the mark of an existence join."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY; without keys one row of all."""

    child: Node
    keys: tuple[Expression, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """ORDER BY and what else places rows by keys."""

    child: Node
    keys: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """DISTINCT; with keys, one row for each value of them."""

    child: Node
    keys: tuple[Expression, ...] | None = None


@dataclass(frozen=True, slots=True)
class Union:
    """UNION by position; see ``build.union``, which flattens chains."""

    children: tuple[Node, ...]
    outputs: tuple[Named, ...] = ()
    """Of the union; empty: those of the first child."""
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class SetOperation:
    """INTERSECT and EXCEPT: rows of the left, decided about by both."""

    left: Node
    right: Node
    outputs: tuple[Named, ...] = ()
    """Empty: those of the left."""


@dataclass(frozen=True, slots=True)
class Generate:
    """LATERAL VIEW, explode() in a select list: rows out of a value."""

    child: Node
    name: str
    """``explode``, ``posexplode``, ``inline``, ``stack``, ``json_tuple``, a Python table function …"""
    arguments: tuple[Expression, ...]
    outputs: tuple[Named, ...]
    rows: int = 1
    """For ``stack``: its first argument, which is not among ``arguments``."""
    reason: str = ""
    """The reason why the inside of the generator is not known; then its arguments are opaque."""
    map: bool = False
    """``explode`` of a map: key and value."""
    kept: frozenset[int] | None = None
    """Ids of the child's columns that are kept; None: all."""


@dataclass(frozen=True, slots=True)
class Expand:
    """CUBE, ROLLUP, GROUPING SETS, UNPIVOT: each row several times."""

    child: Node
    projections: tuple[tuple[Expression, ...], ...]
    outputs: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class CatalogView:
    """A view of the catalog with what it stands for."""

    dataset: str
    child: Node
    outputs: tuple[Named, ...]
    """By position of the child's columns."""


@dataclass(frozen=True, slots=True)
class With:
    """Common table expressions by their ids, in order."""

    definitions: tuple[tuple[int, Node], ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Reference:
    """A common table expression, or the loop that this stands in, is read."""

    definition: int
    outputs: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A recursive common table expression: the anchor, and the step over what there is so far (a `Reference`)."""

    id: int
    anchor: Node
    step: Node
    outputs: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Renamed:
    """The child's columns, by position, under other ids or names."""

    child: Node
    outputs: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The rows of an earlier query that the job kept; a plan may read them in many places."""

    number: int
    """Of the RDD that has them."""
    child: Node
    outputs: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class LineageBreak:
    """Here lineage is lost, or coarse: any column of the children may have reached any output."""

    children: tuple[Node, ...]
    outputs: tuple[Named, ...]
    code: str
    """Of the break: ``break.rdd``, ``break.map-in-pandas`` …"""
    message: str
    keys: tuple[Expression, ...] = ()
    """The known keys of groups (applyInPandas)."""


class Assignment(NamedTuple):
    """A column, or a field of one, is given a value."""

    path: str
    """Canonical."""
    value: Expression


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that changes rows: a WHEN of MERGE; UPDATE and DELETE have one."""

    action: str
    """``update``, ``insert``, ``delete``."""
    condition: Expression | None = None
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Modify:
    """UPDATE, DELETE and MERGE: rows of a target are changed in place. Its columns are those that are assigned."""

    target: Node
    source: Node | None
    """The source of MERGE."""
    on: Expression | None
    clauses: tuple[Clause, ...]

    @property
    def outputs(self) -> tuple[Named, ...]:
        """The columns that are assigned, in order."""
        paths = dict.fromkeys(assignment.path for clause in self.clauses for assignment in clause.assignments)
        return tuple(Named(-1 - position, path) for position, path in enumerate(paths))


Node = (
    Scan | Values | Project | Extend | Filter | Join | Aggregate | Sort | Distinct | Union | SetOperation | Generate
    | Expand | CatalogView | With | Reference | Loop | Renamed | LineageBreak | Modify | Checkpoint
)  # fmt: skip

CONSTANT = Constant()

# ---- shapes of plans ------------------------------------------------------------------------------------


def walked_children(node: Node) -> tuple[Node, ...]:
    """The children that are walked before their parent; what needs an environment of its own is left to the parent."""
    match node:
        case Join():
            return (node.left,) if node.lateral else (node.left, node.right)
        case SetOperation():
            return (node.left, node.right)
        case Union() | LineageBreak():
            return node.children
        case Modify():
            return (node.target,) if node.source is None else (node.target, node.source)
        case Scan() | Values() | CatalogView() | With() | Reference() | Loop() | Checkpoint():
            return ()
        case _:
            return (node.child,)


def relations_below(node: Node) -> tuple[Node, ...]:
    """The relations directly below a node, those that it walks itself included; without those in its expressions."""
    match node:
        case Join():
            return (node.left, node.right)
        case With():
            return (*(definition for _, definition in node.definitions), node.body)
        case Loop():
            return (node.anchor, node.step)
        case CatalogView() | Checkpoint():
            return (node.child,)
        case _:
            return walked_children(node)


def outputs_of(node: Node) -> tuple[Named, ...]:
    """The columns of a relation, in order."""
    match node:
        case Filter() | Sort() | Distinct():
            return outputs_of(node.child)
        case Project() | Aggregate():
            return tuple(Named(output.id, output.name) for output in node.outputs)
        case Extend():
            return (*outputs_of(node.child), *(Named(output.id, output.name) for output in node.outputs))
        case Join():
            right = () if node.left_only else outputs_of(node.right)
            return (*outputs_of(node.left), *right, *node.outputs)
        case Union():
            return node.outputs or outputs_of(node.children[0])
        case SetOperation():
            return node.outputs or outputs_of(node.left)
        case Generate():
            kept = outputs_of(node.child)
            return (*(o for o in kept if node.kept is None or o.id in node.kept), *node.outputs)
        case With():
            return outputs_of(node.body)
        case _:
            return node.outputs
