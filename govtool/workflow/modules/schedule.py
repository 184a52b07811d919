"""The order in which the nodes of a workflow run, and what each receives and leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.workflow.modules.unfold import unfolded

if TYPE_CHECKING:
    from govtool.workflow.modules.definition import Module, RelationSchema
    from govtool.workflow.modules.module_graph import ModuleGraph


@dataclass(frozen=True, slots=True)
class ScheduledUse:
    """One node of a workflow, ready to run.

    Attributes:
        node: The node.
        module: Its module.
        sources: The node that makes each input; None: it is an input of the workflow.
        slots: The place of each state relation, by its name; see ``Workflow.state_slot``.
        materialised: Outputs that other nodes read, or that are kept; the others are never computed.
        outputs: Those of them that are outputs of the execution.
    """

    node: str
    module: Module
    sources: Mapping[str, str | None]
    slots: Mapping[str, str]
    materialised: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A topological order of a workflow; among nodes that do not depend on each other, the order of declaration.

    Attributes:
        uses: The nodes, in order.
        inputs: The workflow's inputs.
        state: The state relations, by slot.
    """

    uses: tuple[ScheduledUse, ...]
    inputs: Mapping[str, RelationSchema]
    state: Mapping[str, RelationSchema]


def make_schedule(flow: ModuleGraph) -> Schedule:
    """The schedule of a workflow that breaks no rule."""
    plain = unfolded(flow)
    sources: dict[str, dict[str, str | None]] = {node: {} for node in plain.nodes}
    read: dict[str, set[str]] = {node: set() for node in plain.nodes}
    for edge in plain.edges:
        sources[edge.target].update(dict.fromkeys(edge.relations, edge.source))
        read[edge.source].update(edge.relations)
    uses = tuple(_use(plain, node, sources[node], read[node]) for node in _ordered(plain))
    inputs: dict[str, RelationSchema] = {}
    state: dict[str, RelationSchema] = {}
    for use in uses:
        for one in use.module.inputs:
            if use.sources[one.name] is None:
                _declare(inputs, one.name, one)
        for one in use.module.state:
            _declare(state, use.slots[one.name], one)
    return Schedule(uses, inputs, state)


def _declare(known: dict[str, RelationSchema], name: str, one: RelationSchema) -> None:
    """Keep the declaration that has a schema."""
    if name not in known or known[name].schema is None:
        known[name] = one


def _use(plain: ModuleGraph, node: str, sources: Mapping[str, str | None], read: set[str]) -> ScheduledUse:
    module = plain.nodes[node]
    kept = plain.keep.get(node, ())
    outputs = tuple(name for name in module.output_names if not read or name in kept)
    return ScheduledUse(
        node,
        module,
        {name: sources.get(name) for name in module.input_names},
        {name: plain.state_slot(module.name, name) for name in module.state_names},
        tuple(name for name in module.output_names if name in read or name in outputs),
        outputs,
    )


def _ordered(plain: ModuleGraph) -> list[str]:
    below: dict[str, set[str]] = {node: set() for node in plain.nodes}
    above: dict[str, set[str]] = {node: set() for node in plain.nodes}
    for edge in plain.edges:
        below[edge.source].add(edge.target)
        above[edge.target].add(edge.source)
    order: list[str] = []
    waiting = list(plain.nodes)
    done: set[str] = set()
    while waiting:
        node = next(each for each in waiting if above[each] <= done)
        waiting.remove(node)
        done.add(node)
        order.append(node)
    return order
