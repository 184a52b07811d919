"""Looks of an earlier walk, taken once more: where all answers are as they were, so is the outcome of the walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from govtool.capture.sql.resolve.states import StatementState
from govtool.capture.sql.resolve.surroundings import known_table, signature, view_mark
from govtool.capture.sql.resolve.tables import Tables
from govtool.capture.sql.walk.query import MAX_DEPTH
from govtool.capture.sql.walk.usage import ShownByTape


def looks_hold(batch: Tables, statement: StatementState, looks: Sequence[Sequence[Any]], deepest: int) -> bool:
    """Take the looks of an earlier walk of a statement; return whether they have the same answers now.

    They settle the same statements, and show the same columns, as the walk would. If one has another answer, the
    columns are taken back: the walk that has to be made names them itself, each at its time.

    Args:
        batch: Where they are taken.
        statement: The statement, as it is before its walk.
        looks: As ``walk.usage`` has them, in order.
        deepest: How deep the walk went into queries.
    """
    shown = ShownByTape()
    try:
        if not _hold(batch, statement, looks, deepest, shown):
            return False
        shown.keep()
        return True
    finally:
        shown.take_back()  # of what is kept there is nothing


def _hold(
    batch: Tables, statement: StatementState, looks: Sequence[Sequence[Any]], deepest: int, shown: ShownByTape
) -> bool:
    interner = batch.interner
    start = interner.depth
    if start + deepest >= MAX_DEPTH:
        return False
    interner.deepest = max(interner.deepest, start + deepest)
    for look in looks:
        kind, name = look[0], look[1]
        if kind == "c":
            used = batch.used(name)
            if not used.columns.isdisjoint(look[2]) or not used.columns.issuperset(look[3]):
                return False
            shown.add(used, look[4])
        elif kind == "f":
            if not batch.have_mark(look[2], name, statement):
                return False
        elif kind == "s":
            if batch.used(name).digest() != look[2]:
                return False
        elif kind == "n":
            if batch.other_name(name, statement.script.dialect) != look[2]:
                return False
        elif not _lookup_holds(batch, statement, look, start):
            return False
    return True


def _lookup_holds(batch: Tables, statement: StatementState, look: Sequence[Any], start: int) -> bool:
    """Look a table or a view up once more, as deep in queries as then; other statements may be walked for it."""
    kind, name, depth, answer, *_ = look
    interner, unparsed, noted = batch.interner, statement.replayable, len(statement.diagnostics)
    interner.depth = start + depth
    try:
        if kind == "t":
            found = signature(known_table(batch, name, statement))
        elif kind == "v":
            found = view_mark(batch.view(name, statement))
        else:
            return False
    finally:
        interner.depth = start
    if statement.replayable != unparsed or found != answer:  # its script was parsed on the way, or another answer
        return False
    return kind == "v" or bool(len(statement.diagnostics) - noted == look[4])


def depends_by_looks(statement: StatementState) -> bool:
    """Return whether a walk of a statement depends on other statements by what its tape holds alone."""
    script, parsed = statement.script, statement.parsed
    if script.logged or script.special or script.assignments:
        return False
    return not (parsed.branch or parsed.tests or statement.path or statement.alters is not None)
