"""Checkpoints in a plan: rows of an earlier query that the job kept as an RDD, as a definition that the plan refers to.

A loop that checkpoints each round reads the round before, often in several places: what they have in common is one
definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from govtool.records.plan.expressions import Attribute
from govtool.records.plan.leaf_numbers import renumbered
from govtool.records.plan.nodes import Definition, Plan, Reference, Session, With, Write, outputs
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.tree import Node

MAX_BEHIND = 200
"""The most checkpoints that one is made of, those of those included: each recorded plan has the definitions of all."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Rows that a job kept.

    Attributes:
        rdd: The number of the RDD that has them.
        plan: That of the query which made them; None: it cannot be read.
        why_not: Why it cannot.
    """

    rdd: int
    plan: Plan | None
    why_not: str = ""

    @property
    def id(self) -> int:
        """The number of its definition: Catalyst's own are none below 0."""
        return -1 - self.rdd

    def reference(self, columns: tuple[Attribute, ...], session: Session) -> Reference:
        """What stands in a plan of a session in the place of the RDD.

        Raises:
            Unread: Its rows may be others.
        """
        if self.plan is None:
            raise Unread(f"a checkpoint: {self.why_not}")
        if self.plan.session != session:
            raise Unread("a checkpoint that was made in a session of other settings")
        if len(outputs(self.plan.root)) != len(columns):
            raise Unread("a checkpoint of other columns")
        if len(self.definitions()) > MAX_BEHIND:
            raise Unread(f"a checkpoint that is made of more than {MAX_BEHIND} others")
        return Reference(self.id, columns)

    def definitions(self) -> dict[int, Definition]:
        """Its definition behind those of the checkpoints that it reads itself, by number."""
        assert self.plan is not None
        root, found = self.plan.root, {}
        if isinstance(root, With) and all(each.id < 0 for each in root.definitions):
            found = {each.id: each for each in root.definitions}
            root = root.child
        return {**found, self.id: Definition(root, self.id)}


def with_definitions(root: Node, definitions: dict[int, Definition], leaves: Iterator[int]) -> Node:
    """A plan with the definitions of the checkpoints that it refers to; their leaves have the next numbers."""
    if not definitions:
        return root
    own = tuple(replace(each, child=renumbered(each.child, leaves)) for each in definitions.values())
    return replace(root, child=With(own, root.child)) if isinstance(root, Write) else With(own, root)
