"""Module graphs: uses of modules, the relations that they hand on, bounded loops and shared state (Definition 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.errors import UsageError
from govtool.workflow.modules.definition import Module


@dataclass(frozen=True, slots=True)
class DataEdge:
    """Relations that one node hands to another.

    Attributes:
        source: The node that makes them.
        target: The node that receives them.
        relations: Their names: outputs of the source and inputs of the target.
    """

    source: str
    target: str
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True, init=False)
class BoundedLoop:
    """Nodes that run several times in one execution.

    The loop is unfolded before the workflow runs: node ``a`` becomes ``a.1``, ``a.2`` … Edges of ``back`` lead from one
    pass to the next. Relations that they carry come from outside in the first pass only; others in every pass. What
    leaves the loop leaves it after the last pass.

    Attributes:
        nodes: The nodes of the loop.
        times: The number of passes, at least 1.
        back: Edges from one pass to the next.
    """

    nodes: tuple[str, ...]
    times: int
    back: tuple[DataEdge, ...]

    def __init__(self, nodes: Iterable[str], times: int, back: Iterable[Any]) -> None:
        """Take edges as ``Workflow`` does: ``(source, target, relation or relations)``."""
        object.__setattr__(self, "nodes", tuple(nodes))
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "back", tuple(edge_of(each) for each in back))


@dataclass(frozen=True, init=False)
class ModuleGraph:
    """Uses of modules and what they hand to one another, valid or not; ``workflow.Workflow`` validates it.

    Attributes:
        name: Its name.
        nodes: The module of each node; a module may stand at several nodes.
        edges: Relations that nodes hand to one another.
        loops: Loops with a bound.
        shared: Modules that have a state relation in common, by the name of the relation. The state of other modules is
            their own, even where names are alike.
        keep: More relations to keep as outputs of an execution, by node. Those of nodes without outgoing edges always
            are.
    """

    name: str
    nodes: Mapping[str, Module]
    edges: tuple[DataEdge, ...]
    loops: tuple[BoundedLoop, ...]
    shared: Mapping[str, tuple[str, ...]]
    keep: Mapping[str, tuple[str, ...]]

    def __init__(
        self,
        name: str,
        nodes: Mapping[str, Module] | Iterable[Module],
        edges: Iterable[Any] = (),
        *,
        loops: Iterable[BoundedLoop] = (),
        shared: Mapping[str, Iterable[str]] | None = None,
        keep: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Take nodes as a mapping from names, or modules whose names become those of the nodes.

        Args:
            name: The workflow's name.
            nodes: Modules by the names of nodes, or modules.
            edges: ``(source, target, relation)`` or ``(source, target, [relation, …])``.
            loops: Loops with a bound.
            shared: Modules that have a state relation in common, by its name.
            keep: More relations to keep as outputs, by node.

        Raises:
            UsageError: An argument is of a wrong type (``usage.arguments``).
        """
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "nodes", _nodes(nodes))
        object.__setattr__(self, "edges", tuple(edge_of(each) for each in edges))
        object.__setattr__(self, "loops", tuple(loops))
        object.__setattr__(self, "shared", {key: tuple(_texts(value)) for key, value in (shared or {}).items()})
        object.__setattr__(self, "keep", {key: tuple(_texts(value)) for key, value in (keep or {}).items()})

    def state_slot(self, module: str, relation: str) -> str:
        """The name of the place where a module's state relation lies: ``M.Cars``, or ``Cars`` if it is shared."""
        return relation if module in self.shared.get(relation, ()) else f"{module}.{relation}"


def edge_of(given: Any) -> DataEdge:
    """An edge, from one or from ``(source, target, relation or relations)``.

    Raises:
        UsageError: It is neither (``usage.arguments``).
    """
    if isinstance(given, DataEdge):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 3:
        raise UsageError(
            f"{given!r} is no edge", code="usage.arguments", hint='write ("source", "target", ["Relation"])'
        )
    source, target, relations = given
    return DataEdge(str(source), str(target), tuple(_texts(relations)))


def _texts(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else [str(each) for each in given]


def _nodes(given: Mapping[str, Module] | Iterable[Module]) -> Mapping[str, Module]:
    pairs = list(given.items()) if isinstance(given, Mapping) else [(_name_of(each), each) for each in given]
    for name, each in pairs:
        if not isinstance(each, Module):
            raise UsageError(
                f"node {name} is {each!r}, no module", code="usage.arguments", hint="decorate it with @govtool.module"
            )
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"several nodes are called {', '.join(twice)}",
            code="usage.arguments",
            hint='give each use of a module a name: nodes={"bid": dealer, "buy": dealer}',
        )
    return dict(pairs)


def _name_of(given: Any) -> str:
    return str(getattr(given, "name", given))
