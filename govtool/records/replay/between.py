"""Boundaries whose rows are changed: a plan that reads their rows as it reads inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from govtool.errors import UsageError
from govtool.records.execute.inputs import relations
from govtool.records.leaves import with_relations
from govtool.records.plan.nodes import Relation, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import Field, Struct
from govtool.records.trace.leaf_names import is_called
from govtool.records.trace.named_boundaries import NamedBoundary, boundary_called, with_parts

_FIRST = 1_000_000
"""The number of the first such leaf: no input has it."""
BETWEEN = "between"
"""The format of a leaf that stands for the rows at a boundary."""


@dataclass(frozen=True, slots=True)
class ChangedBoundaries:
    """The boundaries that changes name, each as a leaf.

    Attributes:
        leaves: By the ``id`` of a part of the plan, the leaf that stands for it.
        plans: By the number of such a leaf, the plan of its rows; it may read others of them.
    """

    leaves: Mapping[int, Relation] = field(default_factory=dict)
    plans: Mapping[int, Node] = field(default_factory=dict)

    @classmethod
    def named(cls, names: Iterable[str], root: Node, known: Sequence[NamedBoundary]) -> ChangedBoundaries:
        """The boundaries that are named, as far as no input is called so."""
        inputs = [leaf for leaf in relations(root) if leaf.format != "kept"]
        found: dict[str, NamedBoundary] = {}
        for name in dict.fromkeys(names):
            each = boundary_called(name, known)
            if each is not None and not any(is_called(leaf, name) for leaf in inputs):
                found[each.name] = each
        leaves = {id(each.plan): _leaf(each, _FIRST + n) for n, each in enumerate(found.values())}
        plans = {
            leaves[id(each.plan)].leaf: with_parts(
                each.plan, {place: leaf for place, leaf in leaves.items() if place != id(each.plan)}
            )
            for each in found.values()
        }
        return cls(leaves, plans)

    def opened(self, root: Node) -> Node:
        """A plan that reads the leaves in the place of its parts."""
        return with_parts(root, self.leaves) if self.leaves else root

    def closed(self, root: Node, change: Callable[[Relation, Node], Node] = lambda leaf, rows: rows) -> Node:
        """The plan without these leaves: each is what ``change`` makes of the leaf and the plan of its rows.

        The other leaves are changed, too, where the plan of a leaf reads them.
        """

        def one(leaf: Relation) -> Node:
            if leaf.format != BETWEEN:
                return change(leaf, leaf)
            return change(leaf, self.closed(self.plans[leaf.leaf], change))

        return with_relations(root, one)

    def hidden(self) -> list[Relation]:
        """The leaves that are only read through these."""
        return [leaf for plan in self.plans.values() for leaf in relations(plan)]


def _leaf(boundary: NamedBoundary, number: int) -> Relation:
    columns = outputs(boundary.plan)
    schema = Struct(tuple(Field(column.name, column.type) for column in columns))
    return Relation(number, boundary.name, BETWEEN, (), columns, schema)


def require_names(leaf: Relation) -> None:
    """Refuse files in the place of rows whose columns cannot be told by name.

    Raises:
        UsageError: Two have the same name (``usage.columns``).
    """
    names = [column.name for column in leaf.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"the rows at {leaf.dataset!r} have two columns {twice!r}: no file can be read in their place",
            code="usage.columns",
            hint="--without leaves out some of them",
        )
