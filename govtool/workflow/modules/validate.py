"""Validation of workflows: every rule of Definition 2.2, and those that names in a file system add."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from govtool.workflow.modules.unfold import unfolded
from govtool.workflow.modules.violations import InvalidWorkflowError, Violation, arrow, listed, near

if TYPE_CHECKING:
    from govtool.workflow.modules.definition import Module, RelationSchema
    from govtool.workflow.modules.module_graph import DataEdge, ModuleGraph

MAX_PASSES = 1000
"""Passes of a loop, at most."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
"""Names of workflows, nodes, modules and relations. They become names of folders: no dots, slashes or spaces."""


def require_valid(flow: ModuleGraph) -> None:
    """Refuse a workflow that breaks a rule.

    Raises:
        InvalidWorkflowError: It breaks one.
    """
    found = find_violations(flow)
    if found:
        raise InvalidWorkflowError(flow.name, found)


def find_violations(flow: ModuleGraph) -> tuple[Violation, ...]:
    """Every rule that a workflow breaks. Rules about the graph are checked once names and edges are right."""
    found = [each for rule in (_names, _modules, _edges, _loops, _state, _kept) for each in rule(flow)]
    if not found:
        plain = unfolded(flow)
        found = [each for rule in _GRAPH_RULES for each in rule(plain)]
    return tuple(found)


# ---- names and modules ----------------------------------------------------------------------------------------------


def _names(flow: ModuleGraph) -> Iterator[Violation]:
    yield from _bad_name("workflow", flow.name)
    if not flow.nodes:
        yield Violation("empty", "the workflow has no nodes")
    for node in flow.nodes:
        yield from _bad_name("node", node, (node,))
    yield from _same_but_case("nodes", flow.nodes)
    modules = _by_name(flow)
    yield from _same_but_case("modules", modules)
    for name, several in modules.items():
        if len(set(map(id, several.values()))) > 1 and len(set(several.values())) > 1:
            nodes = tuple(several)
            yield Violation("module", f"different modules are called {name}, at nodes {listed(nodes)}", nodes)


def _by_name(flow: ModuleGraph) -> dict[str, dict[str, Module]]:
    """Modules by name and node."""
    found: dict[str, dict[str, Module]] = {}
    for node, each in flow.nodes.items():
        found.setdefault(each.name, {})[node] = each
    return found


def _bad_name(
    kind: str, name: str, nodes: tuple[str, ...] = (), relations: tuple[str, ...] = ()
) -> Iterator[Violation]:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Violation(
            "name",
            f"{kind} {name!r} needs a name of letters, digits and underscores that begins with a letter",
            nodes,
            relations,
        )


def _same_but_case(kind: str, names: Iterable[str], relations: bool = False) -> Iterator[Violation]:
    folded: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        folded.setdefault(str(name).lower(), []).append(str(name))
    for alike in folded.values():
        if len(alike) > 1:
            own = tuple(alike)
            yield Violation(
                "name",
                f"{kind} {listed(own)} differ only in case, which folders on some systems do not",
                () if relations else own,
                own if relations else (),
            )


def _modules(flow: ModuleGraph) -> Iterator[Violation]:
    for several in _by_name(flow).values():
        node, each = next(iter(several.items()))
        yield from _bad_name("module", each.name, (node,))
        yield from _relations_of(each, tuple(several))


def _relations_of(each: Module, nodes: tuple[str, ...]) -> Iterator[Violation]:
    sides = {"inputs": each.input_names, "state": each.state_names, "outputs": each.output_names}
    every = [name for names in sides.values() for name in names]
    for name in dict.fromkeys(every):
        yield from _bad_name(f"relation of module {each.name}", name, nodes, (name,))
    yield from _same_but_case(f"relations of module {each.name}:", every, relations=True)
    for name, count in Counter(every).items():
        if count > 1:
            places = [side for side, names in sides.items() for found in names if found == name]
            yield Violation(
                "module",
                f"module {each.name}: {name} is declared {count} times, in {listed(places)}; inputs, state and "
                "outputs are disjoint",
                nodes,
                (name,),
            )
    if not each.outputs and not each.state:
        yield Violation("module", f"module {each.name} has neither outputs nor state", nodes)


# ---- edges and loops ------------------------------------------------------------------------------------------------


def _edges(flow: ModuleGraph) -> Iterator[Violation]:
    for edge in flow.edges:
        yield from _edge(flow, edge)
    seen = Counter((edge.source, edge.target, name) for edge in flow.edges for name in edge.relations)
    for (source, target, name), count in seen.items():
        if count > 1:
            message = f"{source} → {target} carries {name} {count} times"
            yield Violation("edge", message, (source, target), (name,))


def _edge(flow: ModuleGraph, edge: DataEdge) -> Iterator[Violation]:
    ends = (edge.source, edge.target)
    unknown = [node for node in dict.fromkeys(ends) if node not in flow.nodes]
    for node in unknown:
        yield Violation(
            "edge", f"{arrow(edge)}: there is no node {node!r}", ends, edge.relations, near(node, flow.nodes)
        )
    if edge.source == edge.target:
        yield Violation("edge", f"{arrow(edge)}: a node hands nothing to itself; use a loop", ends, edge.relations)
    if not edge.relations:
        yield Violation("edge", f"{arrow(edge)} carries no relation", ends)
    if not unknown:
        yield from _label(flow.nodes[edge.source], flow.nodes[edge.target], edge)


def _label(source: Module, target: Module, edge: DataEdge) -> Iterator[Violation]:
    ends = (edge.source, edge.target)
    for name in dict.fromkeys(edge.relations):
        for each, names, side in ((source, source.output_names, "output"), (target, target.input_names, "input")):
            if name not in names:
                yield Violation(
                    "edge",
                    f"{arrow(edge)}: {name} is no {side} of module {each.name}",
                    ends,
                    (name,),
                    near(name, names),
                )
        made, needed = source.relation(name), target.relation(name)
        if made is not None and needed is not None and _differ(made, needed):
            yield Violation(
                "schema",
                f"{arrow(edge)}: {source.name} makes {name} as ({made.schema}), {target.name} needs ({needed.schema})",
                ends,
                (name,),
            )


def _differ(one: RelationSchema, other: RelationSchema) -> bool:
    if one.schema is None or other.schema is None:
        return False
    return _normal(one.schema) != _normal(other.schema)


def _normal(schema: str) -> str:
    """DDL without what means nothing: case, spaces beside signs, synonyms of types."""
    text = re.sub(r"\s+", " ", schema.strip().lower())
    text = re.sub(r"(?:(?<!\s)\s++)?([,:<>()])\s*", r"\1", text)
    text = re.sub(r"\b(integer|long|short|byte)\b", lambda found: _SYNONYMS[found[0]], text)
    return re.sub(r"(\w):", r"\1 ", text) if "<" not in text else text


_SYNONYMS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def _loops(flow: ModuleGraph) -> Iterator[Violation]:
    taken: dict[str, int] = {}
    for number, loop in enumerate(flow.loops):
        name = f"loop over {listed(loop.nodes)}"
        if not loop.nodes:
            yield Violation("loop", "a loop has no nodes")
        if not isinstance(loop.times, int) or isinstance(loop.times, bool) or not 1 <= loop.times <= MAX_PASSES:
            yield Violation("loop", f"{name}: {loop.times!r} passes; 1 to {MAX_PASSES} are possible", loop.nodes)
        for node in loop.nodes:
            if node not in flow.nodes:
                yield Violation("loop", f"{name}: there is no node {node!r}", loop.nodes, (), near(node, flow.nodes))
            if taken.setdefault(node, number) != number:
                yield Violation("loop", f"{name}: {node} is in another loop, too; loops do not overlap", (node,))
        for edge in loop.back:
            yield from _back_edge(flow, edge, loop.nodes, name)
        if not loop.back:
            yield Violation("loop", f"{name}: no edge leads from one pass to the next", loop.nodes)


def _back_edge(flow: ModuleGraph, edge: DataEdge, nodes: tuple[str, ...], name: str) -> Iterator[Violation]:
    outside = [node for node in dict.fromkeys((edge.source, edge.target)) if node not in nodes]
    for node in outside:
        yield Violation(
            "loop",
            f"{name}: {arrow(edge)} leads from pass to pass, and {node} is not in the loop",
            (edge.source, edge.target),
            edge.relations,
            near(node, nodes),
        )
    if not edge.relations:
        yield Violation("loop", f"{name}: {arrow(edge)} carries no relation", (edge.source, edge.target))
    if not outside and edge.source in flow.nodes and edge.target in flow.nodes:
        yield from _label(flow.nodes[edge.source], flow.nodes[edge.target], edge)


# ---- state and outputs ----------------------------------------------------------------------------------------------


def _state(flow: ModuleGraph) -> Iterator[Violation]:
    modules = {each.name: each for each in flow.nodes.values()}
    for relation, names in flow.shared.items():
        if len(set(names)) < 2:
            yield Violation("state", f"shared state {relation} needs at least two modules", (), (relation,))
        for name in dict.fromkeys(names):
            if name not in modules:
                message = f"shared state {relation}: there is no module {name!r}"
                yield Violation("state", message, (), (relation,), near(name, modules))
            elif relation not in modules[name].state_names:
                message = f"shared state {relation} is no state of module {name}"
                yield Violation("state", message, (), (relation,), near(relation, modules[name].state_names))
        yield from _shared_schema(relation, [modules[name] for name in names if name in modules])


def _shared_schema(relation: str, modules: list[Module]) -> Iterator[Violation]:
    declared = [each for each in (one.relation(relation) for one in modules) if each is not None and each.schema]
    for other in declared[1:]:
        if _differ(declared[0], other):
            message = f"shared state {relation} is declared as ({declared[0].schema}) and as ({other.schema})"
            yield Violation("state", message, (), (relation,))


def _kept(flow: ModuleGraph) -> Iterator[Violation]:
    for node, names in flow.keep.items():
        if node not in flow.nodes:
            yield Violation("outputs", f"keep: there is no node {node!r}", (node,), names, near(node, flow.nodes))
            continue
        own = flow.nodes[node].output_names
        for name in names:
            if name not in own:
                message = f"keep: {name} is no output of {node} (module {flow.nodes[node].name})"
                yield Violation("outputs", message, (node,), (name,), near(name, own))


# ---- the graph, loops unfolded --------------------------------------------------------------------------------------


def _suppliers(flow: ModuleGraph) -> Iterator[Violation]:
    """Names on two incoming edges of a node are disjoint."""
    found: dict[tuple[str, str], list[str]] = {}
    for edge in flow.edges:
        for name in edge.relations:
            found.setdefault((edge.target, name), []).append(edge.source)
    for (node, name), sources in found.items():
        if len(sources) > 1:
            yield Violation(
                "inputs",
                f"{node} receives {name} from {listed(sources)}; number them ({name}_1, {name}_2 …) and unite them "
                "inside",
                (node, *sources),
                (name,),
            )


def _missing(flow: ModuleGraph) -> Iterator[Violation]:
    """A node that receives anything receives all of its inputs."""
    received: dict[str, set[str]] = {}
    for edge in flow.edges:
        received.setdefault(edge.target, set()).update(edge.relations)
    for node, names in received.items():
        lost = tuple(name for name in flow.nodes[node].input_names if name not in names)
        if lost:
            given = sorted({name for each in flow.nodes.values() for name in each.output_names if name in lost})
            hint = (
                f"; {listed(given)} is made by another node"
                if given
                else "; only nodes that receive nothing take inputs of the workflow: hand it on from such a node"
            )
            yield Violation(
                "inputs",
                f"{node} (module {flow.nodes[node].name}) receives no {listed(lost)}{hint}",
                (node,),
                lost,
            )


def _cycles(flow: ModuleGraph) -> Iterator[Violation]:
    """Nodes that no topological order reaches, shown as one cycle among them."""
    below = _adjacent(flow.nodes, ((edge.source, edge.target) for edge in flow.edges))
    cycle = _cycle(below)
    if cycle:
        along = set(pairwise(cycle))
        names = tuple(
            dict.fromkeys(name for edge in flow.edges if (edge.source, edge.target) in along for name in edge.relations)
        )
        yield Violation(
            "cycle",
            f"{' → '.join(cycle)} is a cycle; a loop needs a bound: BoundedLoop(nodes, times, back)",
            tuple(cycle[:-1]),
            names,
        )


def _cycle(below: Mapping[str, list[str]]) -> list[str]:
    """A cycle, its first node repeated at the end; empty if there is none."""
    done: set[str] = set()
    for start in below:
        path: list[str] = []
        stack = [(start, iter(below[start]))] if start not in done else []
        path += [start] if stack else []
        while stack:
            node, rest = stack[-1]
            following = next((each for each in rest if each not in done), None)
            if following is None:
                done.add(node)
                stack.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            else:
                stack.append((following, iter(below[following])))
                path.append(following)
    return []


def _connected(flow: ModuleGraph) -> Iterator[Violation]:
    pairs = [(edge.source, edge.target) for edge in flow.edges]
    beside = _adjacent(flow.nodes, (*pairs, *((target, source) for source, target in pairs)))
    first = next(iter(flow.nodes))
    reached, waiting = {first}, [first]
    while waiting:
        fresh = [each for each in beside[waiting.pop()] if each not in reached]
        reached.update(fresh)
        waiting += fresh
    apart = tuple(node for node in flow.nodes if node not in reached)
    if apart:
        yield Violation("connected", f"{listed(apart)}: not connected with {first}", apart)


def _external(flow: ModuleGraph) -> Iterator[Violation]:
    """Input nodes that read one relation of the workflow's inputs agree on its columns."""
    targets = {edge.target for edge in flow.edges}
    declared: dict[str, tuple[str, RelationSchema]] = {}
    for node, each in flow.nodes.items():
        for one in () if node in targets else each.inputs:
            other, first = declared.setdefault(one.name, (node, one))
            if _differ(first, one):
                message = f"{other} and {node} read the input {one.name} as ({first.schema}) and as ({one.schema})"
                yield Violation("schema", message, (other, node), (one.name,))


_GRAPH_RULES: tuple[Callable[[ModuleGraph], Iterator[Violation]], ...] = (
    _suppliers,
    _missing,
    _cycles,
    _connected,
    _external,
)


def _adjacent(nodes: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in pairs:
        if target not in found[source]:
            found[source].append(target)
    return found
