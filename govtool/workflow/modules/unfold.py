"""Bounded loops, unfolded: a workflow with loops becomes an equivalent one without."""

from __future__ import annotations

from collections.abc import Iterator

from govtool.workflow.modules.module_graph import BoundedLoop, DataEdge, ModuleGraph


def unfolded(flow: ModuleGraph) -> ModuleGraph:
    """The workflow with a node for each pass of a loop: ``a.1``, ``a.2`` … Without loops it is the workflow itself.

    A relation that an edge of ``back`` brings into a node comes from outside in the first pass only. Relations to keep
    are those of the last pass.
    """
    if not flow.loops:
        return flow
    loops = {node: loop for loop in flow.loops for node in loop.nodes}
    nodes = {
        name: module
        for node, module in flow.nodes.items()
        for name in (_passes(node, loops[node]) if node in loops else (node,))
    }
    edges = [each for edge in flow.edges for each in _copies(edge, loops)]
    edges += [each for loop in flow.loops for edge in loop.back for each in _from_pass_to_pass(edge, loop)]
    keep = {_last(node, loops): names for node, names in flow.keep.items()}
    return ModuleGraph(flow.name, nodes, edges, shared=flow.shared, keep=keep)


def _pass(node: str, number: int) -> str:
    return f"{node}.{number}"


def _passes(node: str, loop: BoundedLoop) -> Iterator[str]:
    return (_pass(node, number) for number in range(1, loop.times + 1))


def _last(node: str, loops: dict[str, BoundedLoop]) -> str:
    return _pass(node, loops[node].times) if node in loops else node


def _copies(edge: DataEdge, loops: dict[str, BoundedLoop]) -> Iterator[DataEdge]:
    source, target = loops.get(edge.source), loops.get(edge.target)
    if target is None:
        yield DataEdge(_last(edge.source, loops), edge.target, edge.relations)
    elif source is target:
        for before, after in zip(_passes(edge.source, target), _passes(edge.target, target), strict=True):
            yield DataEdge(before, after, edge.relations)
    else:
        yield from _entering(DataEdge(_last(edge.source, loops), edge.target, edge.relations), target)


def _entering(edge: DataEdge, loop: BoundedLoop) -> Iterator[DataEdge]:
    replaced = {name for back in loop.back if back.target == edge.target for name in back.relations}
    for number in range(1, loop.times + 1):
        names = tuple(name for name in edge.relations if number == 1 or name not in replaced)
        if names:
            yield DataEdge(edge.source, _pass(edge.target, number), names)


def _from_pass_to_pass(edge: DataEdge, loop: BoundedLoop) -> Iterator[DataEdge]:
    for number in range(1, loop.times):
        yield DataEdge(_pass(edge.source, number), _pass(edge.target, number + 1), edge.relations)
