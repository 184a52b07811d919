"""Looks of an earlier walk, taken once more: where all answers are as they were, so is the outcome of the walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from govtool.capture.sql.resolve.states import StatementState
from govtool.capture.sql.resolve.surroundings import known_table, signature, view_mark
from govtool.capture.sql.resolve.tables import Tables
from govtool.capture.sql.walk.query import MAX_DEPTH
from govtool.capture.sql.walk.usage import ShownByTape, usage_digest


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
    unparsed = statement.replayable
    for look in looks:
        kind, name = look[0], look[1]
        if kind == "t":
            noted = len(statement.diagnostics)
            interner.depth = start + look[2]
            try:
                found = known_table(batch, name, statement)
            finally:
                interner.depth = start
            if statement.replayable != unparsed:  # its script was parsed on the way
                return False
            if signature(found) != look[3] or len(statement.diagnostics) - noted != look[4]:
                return False
        elif kind == "v":
            interner.depth = start + look[2]
            try:
                seen = view_mark(batch.view(name, statement))
            finally:
                interner.depth = start
            if statement.replayable != unparsed or seen != look[3]:
                return False
        elif kind == "h":
            if (look[2] in batch.used(name).columns) != bool(look[3]):
                return False
        elif kind == "u":
            shown.add(batch.used(name), look[2])
        elif kind in ("f", "n"):
            dialect = statement.script.dialect
            if (batch.function_mark(name) if kind == "f" else batch.other_name(name, dialect)) != look[2]:
                return False
        elif kind != "s" or usage_digest(sorted(batch.used(name).columns)) != look[2]:
            return False
    return True


def depends_by_looks(statement: StatementState) -> bool:
    """Return whether a walk of a statement depends on other statements by what its tape holds alone."""
    script, parsed = statement.script, statement.parsed
    if script.logged or script.special or script.assignments:
        return False
    return not (parsed.branch or parsed.tests or statement.path or statement.alters is not None)
