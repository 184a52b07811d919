"""Writes through views: what is written to a view is written to the tables behind it, where the dialect allows that.

A view of the rows of one table hands on what is written column by column. Of any other view it depends on the database,
and on triggers that may not be known, which table changes: all of them may.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CHAIN_MASK, KIND_MASK, OPAQUE, REF_SHIFT
from govtool.capture.sql.walk.relation import QueryOutput, ViewBase
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import BY_NAME, NOT_NAMED, Write
from govtool.capture.sql.walk.writing.recording import add_to
from govtool.capture.sql.walk.writing.targets import base_table
from govtool.model import HIDDEN, ROWS

UPDATABLE_VIEWS: Final = frozenset({"postgres", "mysql", "oracle", "tsql", "fabric", "teradata"})
"""Dialects in which rows may be written to a view. Elsewhere that is an error, or a matter of triggers (SQLite)."""

VIEW_WRITE: Final = "view-write"
"""The code of diagnostics, and the reason of edges, where it is not known what a write to a view changes."""

_ADDS: Final = frozenset({"insert", "copy", "load"})
"""The kinds of writes that add rows: which ones a view has does not matter to them."""

_KINDS: Final = _ADDS | {"update", "delete", "merge"}


def view_of(walk: Walk, tree: exp.Expr, write: Write) -> ViewBase | None:
    """Return what a statement that defines a view says of the tables behind it; None if nothing is written through."""
    if walk.dialect not in UPDATABLE_VIEWS or write.kind != "create_view":
        return None
    actions = tree.args.get("actions") or ()
    query = next((a for a in actions if isinstance(a, nodes.Query)), None) or tree.args.get("expression")
    base = base_table(walk, query, None)
    if base not in write.reads:
        return ViewBase("", (), False, tuple(write.reads), False)
    columns: dict[str, str] = {}
    for name, deps in zip(write.output.names, write.output.deps, strict=True):
        columns[name] = ""
        if len(deps) == 1 and not deps[0] & (KIND_MASK | CHAIN_MASK):
            dataset, path = walk.interner.refs[deps[0] >> REF_SHIFT]
            if dataset == base and path not in (ROWS, HIDDEN):
                columns[name] = path
    is_open = bool(write.output.open) and not any(star.rename or star.except_ for star in write.output.open)
    return ViewBase(base, tuple(columns.items()), is_open, (base,), bool(write.rows))


def any_of(views: list[ViewBase]) -> ViewBase:
    """Return what views are of which nobody knows which one a name means."""
    if all(view == views[0] for view in views):
        return views[0]
    return ViewBase("", (), False, tuple(dict.fromkeys([name for view in views for name in view.reads])), False)


def through_views(walk: Walk, write: Write) -> list[Write]:
    """Return what a write to a view writes to the tables behind it; nothing where its target is a table."""
    if walk.dialect not in UPDATABLE_VIEWS or write.kind not in _KINDS:
        return []
    found: list[Write] = []
    seen = {write.target}
    pending = [write]
    while pending:
        one = pending.pop()
        view = walk.lookup.view(one.target)
        if view is None or walk.lookup.replaces(one.target, one.kind):
            found.append(one)
            continue
        for behind in _written_behind(walk, one, view):
            if behind.target not in seen:
                seen.add(behind.target)
                pending.append(behind)
    return [one for one in found if one is not write]


def _written_behind(walk: Walk, write: Write, view: ViewBase) -> list[Write]:
    if not view.base:
        some = ", ".join(view.reads[:3])
        text = f"{write.target} is not a view of the rows of one table: any that it reads may change ({some or 'none'})"
        walk.diagnose(VIEW_WRITE, text)
        return [_anyhow(walk, write, name) for name in view.reads]
    columns = dict(view.columns)
    output, unknown = QueryOutput(), QueryOutput()
    for name, deps in zip(write.output.names, write.output.deps, strict=True):
        column = columns.get(name, name if view.is_open else "")
        add_to(output if column else unknown, column or name, deps)
    hides_names = any(name != column for name, column in columns.items()) or not view.is_open
    (unknown if hides_names else output).open = write.output.open
    found = _of(write, view.base, output)
    if view.selects and write.kind not in _ADDS:
        found.reads = {**found.reads, write.target: EVERYWHERE}
    if unknown.names or unknown.open:
        named = ", ".join(unknown.names) or "*"
        walk.diagnose(VIEW_WRITE, f"which column of {view.base} stands behind {named} of {write.target} is not known")
        found.rows |= _sources(walk, unknown)
        found.reason = VIEW_WRITE
    return [found]


def _anyhow(walk: Walk, write: Write, target: str) -> Write:
    """The same write of a table, of which nobody knows which columns and rows it changes."""
    found = _of(write, target, QueryOutput())
    found.rows = _sources(walk, write.output)
    for ref in [*write.rows, *[walk.interner.ref(name, ROWS) for name in (*write.reads, *write.dataset_reads)]]:
        found.rows[ref >> REF_SHIFT << REF_SHIFT | OPAQUE] = None
    found.reads, found.dataset_reads, found.reason = {}, (), VIEW_WRITE
    return found


def _sources(walk: Walk, output: QueryOutput) -> dict[int, exp.Expr | None]:
    """All that an output is made of, as it reaches unknown columns of a table."""
    deps = [
        *chain.from_iterable(output.deps),
        *[dep for star in output.open for dep in star.table.hidden(walk.interner)],
    ]
    return dict.fromkeys([dep >> REF_SHIFT << REF_SHIFT | OPAQUE for dep in deps])


def _of(write: Write, target: str, output: QueryOutput) -> Write:
    found = write.of(target)
    found.output, found.rows, found.steering, found.defines = output, dict(write.rows), write.steering, False
    found.target_kind = "temporary" if target.startswith("temp.") else "table"
    found.fills = BY_NAME if output.names else NOT_NAMED
    return found
