"""Names of the boundaries of a plan, by which a user can start or stop at one of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from govtool.errors import UnknownNameError
from govtool.records.plan.nodes import outputs
from govtool.records.plan.subqueries import with_subqueries
from govtool.records.plan.tree import Node, fold_nodes
from govtool.records.trace.back import Stage

_MOST_COLUMNS = 8
ROW_BY_ROW = ("window", "limit")
"""Operators that give their rows on: links have but those that others of them need."""


@dataclass(frozen=True, slots=True)
class NamedBoundary:
    """A place where traces stop: the rows that an operator reads, many of them for one.

    Attributes:
        name: The operator, with a number from the second of its kind on: ``aggregate``, ``aggregate-2``.
        plan: The plan of the rows.
        stages: The segments there: an operator may read the same rows in several ways, as a pivot does.
    """

    name: str
    plan: Node
    stages: tuple[Stage, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the rows have there."""
        return tuple(column.name for column in outputs(self.plan))

    @property
    def text(self) -> str:
        """The boundary in words: its name, and what its rows hold."""
        names, more = self.columns[:_MOST_COLUMNS], len(self.columns) - _MOST_COLUMNS
        return f"{self.name} ({', '.join(names)}{f' and {more} more' if more > 0 else ''})"


def boundaries(stages: Iterable[Stage]) -> tuple[NamedBoundary, ...]:
    """The boundaries of a plan, those above before those below.

    Rows of a subquery that is evaluated for each row around it are no place of their own, nor are those that a trace
    finds by kept positions.
    """
    found: dict[int, list[Stage]] = {}
    for stage in stages:
        link = None if stage.source is None else stage.source.link
        if link is not None and link.plan is not None and not link.free:
            found.setdefault(id(link.plan), []).append(stage)
    times: dict[str, int] = {}
    named = []
    for group in found.values():
        source = group[0].source
        assert source is not None
        assert source.link.plan is not None
        word = group[0].operator.replace(" ", "-")
        times[word] = times.get(word, 0) + 1
        name = word if times[word] == 1 else f"{word}-{times[word]}"
        named.append(NamedBoundary(name, source.link.plan, tuple(group)))
    return tuple(named)


def boundary_called(name: str, known: Iterable[NamedBoundary]) -> NamedBoundary | None:
    """The boundary of a name, in capitals or not."""
    return next((each for each in known if each.name.lower() == name.lower()), None)


def unknown_boundary(name: str, known: Iterable[NamedBoundary]) -> UnknownNameError:
    """The error of a name that no boundary has, with those that are like it, or all, each with its columns."""
    by_name = {each.name: each.text for each in known}
    near = difflib.get_close_matches(name, list(by_name), 3, 0.5) or list(by_name)
    hint = None if by_name else "the plan has no boundary: its rows are traced to the inputs at once"
    return UnknownNameError(
        f"no boundary is called {name!r}",
        code="usage.unknown-boundary",
        nearest=tuple(by_name[each] for each in near),
        hint=hint,
    )


def with_parts(root: Node, parts: Mapping[int, Node]) -> Node:
    """A plan with others in the place of some of its parts, given by ``id``; parts of subqueries included."""

    def inputs(node: Node) -> tuple[Node, ...]:
        return () if id(node) in parts else node.nodes()

    def made(node: Node, below: tuple[Node, ...]) -> Node:
        if id(node) in parts:
            return parts[id(node)]
        return with_subqueries(node.replaced(nodes=below), lambda plan: with_parts(plan, parts))

    return fold_nodes(root, made, inputs)
