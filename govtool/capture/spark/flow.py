"""From a plan to what flows into its columns: attributes by expression id become dependencies on base columns.

The meaning of every edge is that of the SQL extractor (docs/architecture.md): a column depends on base columns in a
kind (`identity`, `transformation`, `aggregation`, `conditional`, `window`, `opaque`) through functions; the rows of a
relation depend on columns in others (`join`, `filter`, `group_by` …); and composing two steps is the same table
(``govtool/capture/sql/walk/dependencies.py``).

    >>> from govtool.capture.spark.plan import Apply, Attribute, Named, Output, Project, Scan
    >>> users = Scan("crm.users", (Named(1, "id"), Named(2, "Email")))
    >>> flow = flow_of(Project(users, (Output(3, "mail", Apply("lower", (Attribute(2),))),)))
    >>> [(d.source.text, d.kind.label, d.functions) for d in flow.columns[0].dependencies]
    [('crm.users.email', 'transformation', ('lower',))]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.dependencies import ColumnDependencies, Dependency, PlanDependencies
from govtool.capture.spark.identity import output_paths
from govtool.capture.spark.resolve import PlanWalk
from govtool.model import ROWS, ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.functions import is_masking
from govtool.names import DEFAULT_NAMESPACE


def flow_of(plan: p.Node, *, expand_views: bool = False) -> PlanDependencies:
    """Return what flows into the output of a plan.

    Args:
        plan: The plan.
        expand_views: See through views of the catalog, as a physical plan does.
    """
    walk = PlanWalk(expand_views)
    flow = walk.finish(walk.resolve(plan, {}))
    if isinstance(plan, p.Modify):
        return replace(flow, columns=tuple(replace(column, is_path=True) for column in flow.columns))
    return flow


def derivation(
    flow: PlanDependencies,
    target: str,
    statement: Statement,
    *,
    target_kind: str,
    mode: str,
    columns: Sequence[str] | None = None,
    types: Sequence[str | None] = (),
    namespace: str = DEFAULT_NAMESPACE,
) -> Derivation:
    """Return what a write says of its target.

    Args:
        flow: Of what is written.
        target: Canonical id of the dataset that is written.
        statement: The evidence.
        target_kind: As in `Derivation`.
        mode: As in `Derivation`.
        columns: Column paths of the target, by position; by default those of the flow's names.
        types: Of the columns, by position.
        namespace: Of the target.
    """
    paths = list(columns) if columns is not None else paths_of(flow.columns)
    edges: dict[Edge, None] = {}
    for path, column in zip(paths, flow.columns, strict=False):
        edges.update(dict.fromkeys(_edge(dependency, path) for dependency in column.dependencies))
    edges.update(dict.fromkeys(_edge(dependency, ROWS) for dependency in flow.rows))
    edges.update((Edge(ColumnRef(read, ROWS), ROWS, EdgeKind.READ), None) for read in flow.reads)
    complete = len(paths) >= len(flow.columns)
    notes = flow.breaks
    if not complete:
        text = f"{len(flow.columns)} columns are written and {len(paths)} of the target are known"
        notes = (*notes, Diagnostic("arity", "warning", text, target=target))
    padded = [*types, *[None] * len(paths)]
    return Derivation(
        target=target,
        target_kind=target_kind,
        mode=mode,
        statement=statement,
        columns=tuple(OutputColumn(path, type_) for path, type_ in zip(paths, padded, strict=False)),
        columns_complete=complete,
        edges=tuple(edges),
        status="partial" if notes or any(edge.kind is EdgeKind.OPAQUE for edge in edges) else "understood",
        diagnostics=tuple(replace(note, target=note.target or target) for note in notes),
        namespace=namespace,
    )


def paths_of(columns: Sequence[ColumnDependencies]) -> list[str]:
    """Paths of the columns of a flow."""
    paths = output_paths([column.name for column in columns])
    return [column.name if column.is_path else path for column, path in zip(columns, paths, strict=True)]


def _edge(dependency: Dependency, path: str) -> Edge:
    source, kind, functions, arm, reason = dependency
    return Edge(source, path, kind, functions, arm=arm, masking=is_masking(functions), reason=reason)
