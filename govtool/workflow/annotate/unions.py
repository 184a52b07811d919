"""Rows side by side, under one set of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from govtool.records.plan.expressions import Attribute, Literal, passed
from govtool.records.plan.nodes import Project, Union
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.rows import Rows


def united(a: Annotator, parts: list[Rows], columns: tuple[Attribute, ...]) -> Rows:
    """Annotated rows of several plans under one set of columns, by position."""
    own = {column.id: at for at, column in reversed(list(enumerate(columns)))}
    parts = [replace(part, columns=tuple(part.columns[at] for at in sorted(own.values()))) for part in parts]
    once = tuple(columns[at] for at in sorted(own.values()))
    places = [at for at in range(len(once)) if any(part.columns[at].id in part.cells for part in parts)]
    cells = {once[at].id: a.ids.attribute("cell", LONG) for at in places}
    copied = [at for at in range(len(once)) if any(part.columns[at].id in part.origins for part in parts)]
    origins = {once[at].id: a.ids.attribute("origin", LONG) for at in copied}
    annotation, times, number = (a.ids.attribute(name, LONG) for name in ("node", "times", "context"))
    has_context = parts[0].context is not None
    hidden = (annotation, times, *cells.values(), *origins.values(), *((number,) if has_context else ()))
    made = tuple(_side(a, part, once, (cells, origins), has_context) for part in parts)
    _note_order(a, parts, once)
    return Rows(
        Union(made, once + hidden), columns, annotation, times, cells, origins,
        number if has_context else None, {}, any(p.candidates for p in parts), any(p.bag for p in parts),
        a.either(*(p.gate for p in parts)),
    )  # fmt: skip


def _note_order(a: Annotator, parts: list[Rows], columns: tuple[Attribute, ...]) -> None:
    """Note which columns have lists in the same order in every run: those that have it in all parts."""
    for at, column in enumerate(columns):
        own = [part.columns[at].id for part in parts if part.columns[at].id in part.cells]
        if a.ordered.issuperset(own):
            a.ordered.add(column.id)
        else:
            a.ordered.discard(column.id)


def _side(
    a: Annotator,
    part: Rows,
    columns: tuple[Attribute, ...],
    hidden: tuple[dict[int, Attribute], dict[int, Attribute]],
    has_context: bool,
) -> Node:
    values = [a.ids.named(new.name, old) for old, new in zip(part.columns, columns, strict=True)]
    values += [a.ids.named("node", part.annotation), a.ids.named("times", part.times)]
    for wanted, own in zip(hidden, (part.cells, part.origins), strict=True):
        for old, new in zip(part.columns, columns, strict=True):
            if new.id in wanted:
                values.append(a.ids.named("cell", own.get(old.id, Literal(None, LONG))))
    if has_context and part.context is not None:
        values.append(a.ids.named("context", part.context))
    return Project(part.node, tuple(values))


def padded(a: Annotator, rows: Rows, columns: Sequence[Attribute]) -> Rows:
    """Rows with NULL for the columns that they do not have."""
    own = {column.id for column in rows.columns}
    nulls = {c.id: a.ids.named(c.name, Literal(None, c.type)) for c in columns if c.id not in own}
    node = Project(rows.node, (*map(passed, rows.everything), *nulls.values()))
    values = tuple(nulls[c.id].attribute if c.id in nulls else c for c in columns)
    return replace(rows, node=node, columns=values)
