"""Plan text to lineage: what a plan reads and writes, and what flows from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.definitions import Defined
from govtool.capture.spark.dependencies import PlanDependencies
from govtool.capture.spark.flow import flow_of
from govtool.capture.spark.plantext import tree as trees
from govtool.capture.spark.plantext.analyzed_text import analyzed_query
from govtool.capture.spark.plantext.definitions import defined_in
from govtool.capture.spark.plantext.dml import merged, relation
from govtool.capture.spark.plantext.normal import normalised
from govtool.capture.spark.plantext.operators import Builder
from govtool.capture.spark.plantext.optimized import optimized_notes
from govtool.capture.spark.plantext.plan_write import PlanWrite
from govtool.capture.spark.plantext.reading import TRUNCATED
from govtool.capture.spark.plantext.rewritten import changed
from govtool.capture.spark.plantext.scans import Names, ScannedSource, source_of
from govtool.capture.spark.plantext.tree import Operator, PlanTextError, PlanTree
from govtool.capture.spark.plantext.writes import has_target, is_command, write_of
from govtool.model import Diagnostic


@dataclass(frozen=True, slots=True)
class PlanText:
    """A plan, read."""

    write: PlanWrite | None
    """None: nothing is written."""
    flow: PlanDependencies
    sources: Mapping[str, ScannedSource]
    """Datasets that are read, by id."""
    scans: tuple[tuple[Operator, str], ...]
    attributes: Mapping[int, tuple[str, str]]
    """Dataset and column of the attributes of what is read, by id: other plans may name them."""
    notes: tuple[Diagnostic, ...]
    normal: str
    """The plan without ids and literals: of equal work it is equal."""
    uncertain: int = 0
    """Expressions of which only the attributes could be read."""
    command: bool = False
    """The plan only does something to the catalog or the session."""
    others: tuple[PlanText, ...] = ()
    """Further writes of the same plan: a multi-insert."""
    unplaced: bool = False
    """The plan writes, and does not tell where to."""
    defined: Defined | None = None
    """The effects of the plan on the catalog, where they are about columns."""
    ids: tuple[int, ...] = ()
    """Of the columns that the plan gives, by position."""
    source: p.Node | None = None
    """The relation that a job of a MERGE joins to the target."""
    root: p.Node | None = None
    """The root of the plan."""


def read_plan(
    text: str,
    names: Names | None = None,
    *,
    known: Mapping[int, tuple[str, str]] | None = None,
    metadata: Mapping[str, list[dict[str, str]]] | None = None,
    sources: Sequence[p.Node] = (),
    batch: p.Node | None = None,
) -> PlanText:
    """Read plan text, as ``EXPLAIN FORMATTED`` prints it, or Spark 2's one-line operators.

    Args:
        text: The plan.
        names: How names are read.
        known: Dataset and column of attributes that other plans of the application read.
        metadata: By name of an operator, what the execution's event says of it besides.
        sources: What jobs of the same action join to the target of a MERGE (`PlanText.source`).
        batch: Of what ``foreachBatch`` runs, the plan of the batch (`PlanText.root`).

    Raises:
        PlanTextError: It is no plan text, or one beyond all measure.
    """
    names = names or Names()
    tree = _tree(text)
    several = _writes(tree)
    if several:
        first, *more = (_read(text, each, names, known, metadata, sources, batch) for each in several)
        return replace(first, others=tuple(more))
    return _read(text, tree, names, known, metadata, sources, batch)


def _writes(tree: PlanTree) -> list[PlanTree]:
    """The writes of a multi-insert, which Spark plans as a union of commands."""
    root = tree.root
    while root.name.split(" ", 1)[0] in ("AdaptiveSparkPlan", "CommandResult") and len(root.children) == 1:
        root = root.children[0]
    if root.name.strip() != "Union" or not all(child.name.startswith("Execute ") for child in root.children):
        return []
    return [PlanTree(child, tree.operators, tree.subqueries) for child in root.children]


def _read(
    text: str,
    tree: PlanTree,
    names: Names,
    known: Mapping[int, tuple[str, str]] | None,
    metadata: Mapping[str, list[dict[str, str]]] | None,
    sources: Sequence[p.Node],
    batch: p.Node | None,
) -> PlanText:
    known = known or {}
    locations = _locations(tree, metadata or {})
    builder = Builder(tree, known, lambda operator: source_of(operator, names, locations.get(operator.id)), batch)
    write = write_of(tree, names)
    unplaced = write is None and has_target(tree) and "TempView" not in text
    if write is None and not unplaced and is_command(tree):
        return _command(tree, names, builder)
    try:
        node = builder.node(tree.root) if write is None else _of_write(write, builder, known, sources)
        as_written = _as_written(text, builder, known, write)
        node, flow = as_written or (node, flow_of(node, expand_views=True))
    except RecursionError as error:
        raise PlanTextError("a plan that is nested too deep") from error
    notes = builder.lineage.notes
    if as_written is None:
        notes = [*notes, *optimized_notes(tree, writes=write is not None)]
    else:
        notes = [note for note in notes if note.code != TRUNCATED]  # the analyzed plan is whole where this one is cut
    return replace(
        _plan_text(tree, builder, flow, notes),
        write=write,
        unplaced=unplaced,
        uncertain=0 if as_written is not None else builder.reader.uncertain,
        source=_joined(tree, builder) if write is None else None,
        root=node if write is None else None,
        ids=tuple(output.id for output in p.outputs_of(node)),
    )


def _command(tree: PlanTree, names: Names, builder: Builder) -> PlanText:
    """A plan that only does something to the catalog or the session."""
    found = _plan_text(tree, builder, flow_of(p.Values(()), expand_views=True), builder.lineage.notes)
    return replace(found, command=True, defined=defined_in(tree, names), source=_joined(tree, builder))


def _plan_text(tree: PlanTree, builder: Builder, flow: PlanDependencies, notes: Sequence[Diagnostic]) -> PlanText:
    """What every plan has, whether it writes or not."""
    lineage = builder.lineage
    return PlanText(
        None,
        flow,
        lineage.sources,
        tuple(lineage.scans),
        lineage.attributes,
        tuple(dict.fromkeys(notes)),
        normalised(tree, builder.reader),
        builder.reader.uncertain,
    )


def _as_written(
    text: str, builder: Builder, known: Mapping[int, tuple[str, str]], write: PlanWrite | None
) -> tuple[p.Node, PlanDependencies] | None:
    """The query as it was written and its lineage, where the text has the analyzed plan too and all of it is read."""
    if write is not None and write.command is not None:
        return None
    node = analyzed_query(text, known, builder)
    if node is None:
        return None
    flow = flow_of(node, expand_views=True)
    fits = write is None or write.columns is None or len(write.columns) == len(flow.columns)
    return (node, flow) if fits and not flow.breaks else None


def _locations(tree: PlanTree, metadata: Mapping[str, list[dict[str, str]]]) -> dict[int, dict[str, str]]:
    """What the execution's event has besides of leaves, by their numbers."""
    left = {name: list(texts) for name, texts in metadata.items()}
    found: dict[int, dict[str, str]] = {}
    for operator in sorted(tree.operators.values(), key=lambda o: o.id):
        waiting = left.get(operator.name.strip())
        if waiting and not operator.children:
            found[operator.id] = _matching(operator, waiting)
    return found


def _of_write(
    write: PlanWrite, builder: Builder, known: Mapping[int, tuple[str, str]], sources: Sequence[p.Node]
) -> p.Node:
    """The relation that is written, by the arguments of the command where these alone name it."""
    if write.command is None:
        node = builder.node(write.query) if write.query is not None else p.Values(())
        return changed(node, write.kind) if write.kind in ("update", "delete", "merge") else node
    builder.node(write.query or write.command)
    attributes = {**known, **builder.lineage.attributes}
    builder.reader.add_attributes((number, column) for number, (_, column) in attributes.items())
    found = relation(write.command, write.kind, builder.reader, attributes, write.place, sources)
    if found is not None:
        return found
    message = f"{write.kind.upper()}: what it sets, or of which tables, is not in its text"
    return p.LineageBreak((), (), "break.operator", message)


def _joined(tree: PlanTree, builder: Builder) -> p.Node | None:
    """The relation that a job of a MERGE joins to the target; None if it has none, or if that was computed and is read
    as an RDD or as rows of the driver, which tells nothing.
    """
    operator = merged(tree)
    if operator is None:
        return None
    node = builder.node(operator)
    flow = flow_of(node, expand_views=True)
    return node if flow.reads and not flow.breaks else None


def _tree(text: str) -> PlanTree:
    if trees.is_formatted(text):
        return trees.parse(text)
    from govtool.capture.spark.plantext.oneline import parse

    return parse(text)


def _matching(operator: Operator, waiting: list[dict[str, str]]) -> dict[str, str]:
    """Of what is said of operators of this name, what is said of this one: its first path is the same."""
    location = operator.fields.get("Location", "")
    start = location.find("[") + 1
    first = location[start:].split(",")[0].rstrip("]")
    for position, metadata in enumerate(waiting):
        if not first or first in metadata.get("Location", ""):
            return waiting.pop(position)
    return {}
