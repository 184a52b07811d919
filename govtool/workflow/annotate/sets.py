"""INTERSECT and EXCEPT, over values: NULL equals NULL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, Named, passed
from govtool.records.plan.nodes import Filter, Project, SetOperation, outputs
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.segment import alike, both, unique
from govtool.workflow.annotate.annotator import Annotator, Context
from govtool.workflow.annotate.circuit import NONE, ZERO, Delta, Inputs, Monus, Product, Sum
from govtool.workflow.annotate.groups import grouped
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, chosen, extended, is_there, joined, shifted, there
from govtool.workflow.annotate.term_lists import Groups
from govtool.workflow.annotate.values import each_once


def set_operation(a: Annotator, node: SetOperation, context: Context | None) -> Rows:
    """``δ(L)·δ(R)``, ``L ⊖ (L ⊖ R)``, ``δ(L) ⊖ δ(R)`` or ``L ⊖ R``: one row a value of the left side."""
    left, right = a.rows(node.left, context), a.rows(node.right, context)
    left, right = a.in_context(left, right, context), a.in_context(right, left, context)
    left, right = _under(a, left, node.columns), _under(a, right, node.columns)
    one, two = grouped(a, left, left.columns), grouped(a, right, right.columns)
    kept, columns, partner = _paired(a, node, left, right, one, two)
    rows, table = a.keep(kept)
    own, other = table.ids(columns["left"], partner)
    a_nodes, b_nodes = _sums(a, one, not node.all), _sums(a, two, not node.all)
    missing = ZERO if two.gate == NONE else a.add(Sum(Inputs(np.zeros(2, np.int64), np.empty(0, np.int64)), two.gate))
    first = _combined(a, node, own + a_nodes, np.where(other >= 0, other + b_nodes, missing), table.count)
    made = replace(a.annotated(rows, table, first), gate=a.either(one.gate, two.gate))
    names = [made.columns[at] for at in range(len(node.columns))]
    values = tuple(Named(old, new.id, new.name) for old, new in zip(names, node.columns, strict=True))
    rest = [passed(c) for c in made.hidden]
    made = _with_origins(a, made, columns["left"], one)
    origins = {
        new.id: made.origins[old.id] for old, new in zip(names, node.columns, strict=True) if old.id in made.origins
    }
    rest = [passed(c) for c in made.hidden]
    return replace(
        made, node=Project(made.node, (*each_once(values), *rest)), columns=node.columns, origins=origins
    )  # fmt: skip


def _with_origins(a: Annotator, rows: Rows, number: Attribute, found: Groups) -> Rows:
    """The origins of values: those of the left rows."""
    if a.origins is None:
        return rows
    here = Literal(True, BOOLEAN) if found.rows.times == LONG_ONE else there(found.rows.times)
    (present,) = found.table.ids(chosen(here, LONG_ONE, LONG_ZERO))
    added, origins = [], {}
    for column, origin in found.rows.origins.items():
        start = a.origins.grouped(found.members, found.table.ids(origin)[0], present.astype(bool))
        added.append(a.ids.named("origin", shifted(number, start)))
        origins[column] = added[-1].attribute
    return replace(rows, node=extended(rows, added), origins=origins)


def _under(a: Annotator, rows: Rows, columns: tuple[Attribute, ...]) -> Rows:
    """Rows under columns of their own, each once, so that both sides may stand in one join."""
    named = [a.ids.named(new.name, old) for old, new in zip(rows.columns, columns, strict=True)]
    cells = {new.id: rows.cells[old.id] for old, new in zip(rows.columns, named, strict=True) if old.id in rows.cells}
    pairs = zip(rows.columns, named, strict=True)
    origins = {new.id: rows.origins[old.id] for old, new in pairs if old.id in rows.origins}
    node = Project(rows.node, (*named, *map(passed, rows.hidden)))
    return replace(
        rows, node=node, columns=tuple(each.attribute for each in named), cells={**rows.cells, **cells}, origins=origins
    )


def _sums(a: Annotator, found: Groups, as_delta: bool) -> int:
    """The first node of the sums over groups, or of their ``δ``."""
    (annotation,) = found.table.ids(found.rows.annotation)
    inputs = Inputs(found.members.offsets, annotation[found.members.nodes])
    return a.add(Delta(inputs, found.gate) if as_delta else Sum(inputs, found.gate))


def _combined(a: Annotator, node: SetOperation, left: Array, right: Array, count: int) -> int:
    if node.kind == "except":
        return a.add(Monus(left, right))
    if not node.all:
        return a.add(Product(left, right))
    inner = a.add(Monus(left, right)) + np.arange(count)
    return a.add(Monus(left, inner))


def _paired(
    a: Annotator, node: SetOperation, left: Rows, right: Rows, one: Groups, two: Groups
) -> tuple[Rows, dict[str, Attribute], Expression]:
    """Groups of the left side beside the number of the right group of the same values."""
    l_number, r_number = a.ids.named("left", one.groups.number), a.ids.named("right", two.groups.number)
    l_times, r_times = _count(a, one), _count(a, two)
    l_keys = [*left.columns, *([left.context] if left.context is not None else [])]
    r_keys = [*right.columns, *([right.context] if right.context is not None else [])]
    copies = [a.ids.named(key.name, key) for key in r_keys]
    l_side = Project(one.groups.node, (*map(passed, unique(l_keys)), l_number, l_times))
    r_side = Project(two.groups.node, (*copies, r_number, r_times))
    same = both(alike(key, copy.attribute) for key, copy in zip(l_keys, copies, strict=True))
    found = joined(l_side, r_side, same, "left")
    kept = Filter(found, is_there(r_number.attribute)) if node.kind == "intersect" else found
    times = a.ids.named("times", _times(node, l_times.attribute, r_times.attribute))
    columns = (*left.columns, l_number.attribute, r_number.attribute)
    keep = [*unique(l_keys), l_number.attribute, r_number.attribute]
    placeholder = a.ids.named("node", Literal(0, LONG))
    made = Project(kept, (*map(passed, keep), times, placeholder))
    rows = Rows(
        made, columns, placeholder.attribute, times.attribute, {}, {}, left.context, {}, True, node.all
    )  # fmt: skip
    return rows, {"left": l_number.attribute}, r_number.attribute


def _count(a: Annotator, found: Groups) -> Named:
    (total,) = [column for column in outputs(found.groups.node) if column.name == "times"][-1:]
    return a.ids.named("times", total)


def _times(node: SetOperation, left: Attribute, right: Attribute) -> Expression:
    """How often a value is in the result as things stand."""
    other = chosen(is_there(right), right, LONG_ZERO)
    if not node.all:
        shared, alone = (LONG_ONE, LONG_ZERO) if node.kind == "intersect" else (LONG_ZERO, LONG_ONE)
        return chosen(there(left), chosen(there(other), shared, alone), LONG_ZERO)
    less = Call("<", (left, other), BOOLEAN)
    if node.kind == "intersect":
        return chosen(less, left, other)
    return chosen(less, LONG_ZERO, Call("-", (left, other), LONG, "ansi"))
