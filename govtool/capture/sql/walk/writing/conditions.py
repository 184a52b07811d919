"""Conditions around a statement: those of triggers, and of the IF in which it stands."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.marks import EXITED
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    CONDITIONAL,
    FILTER,
    KIND_MASK,
    OPAQUE,
    as_conditions,
    bounded,
)
from govtool.capture.sql.walk.expressions.expression import refer_to
from govtool.capture.sql.walk.relation import Source
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE, TriggerCondition
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.assignments import RETURN, VariableAssignment


def restrict(walk: Walk, condition: TriggerCondition) -> None:
    """Let what is written depend on the rows for which a trigger runs: it steers values that are set, else rows."""
    scope = Scope(None)
    table = walk.lookup.table(condition.table)
    for name in condition.records:
        scope.add(Source(name, table=table))
    if condition.node is not None:
        _depend(walk, *_deciding(walk, condition.node, scope))
    for write in walk.writes:
        if write.mode == "append":  # as many rows as the table gets
            write.reads.setdefault(condition.table, EVERYWHERE)


def decide(walk: Walk, test: exp.Expr, *, fetches: bool = False) -> None:
    """Let what is written depend on the condition of an IF around it. What it does not find, others report.

    Args:
        walk: That of the statement, with what it writes.
        test: The condition.
        fetches: The statement is a FETCH: the row that it gives a variable is the same, however often a loop runs.
    """
    diagnostics, walk.diagnostics = walk.diagnostics, {}
    ambiguous = dict(walk.ambiguous)
    rows, reads = _deciding(walk, test, Scope(None))
    walk.diagnostics, walk.ambiguous = diagnostics, ambiguous
    decided: dict[int, exp.Expr | None] = {dep: None for dep in rows if dep & KIND_MASK != OPAQUE}
    _depend(walk, decided, reads)
    steering = as_conditions(decided, walk.interner)
    exit_ = test.this.name if isinstance(test, nodes.Parameter) else ""
    keeps = exit_.startswith(EXITED) if fetches else exit_ == EXITED
    for write in walk.writes:
        if write.mode == "assign" and not (keeps and _is_local(write)):
            # what a variable is may say whether it was set
            write.output.deps = [bounded((*deps, *steering)) for deps in write.output.deps]


def _is_local(write: Write) -> bool:
    """Return whether nobody reads a variable where the routine is left before it is set: all but what it returns."""
    return isinstance(write, VariableAssignment) and write.value.name != RETURN


def _deciding(walk: Walk, condition: exp.Expr, scope: Scope) -> tuple[dict[int, exp.Expr | None], Iterable[str]]:
    """The dependencies of a condition, as those of a filter, and the tables whose rows it reads."""
    rows, walk.rows = walk.rows, {}
    reads, walk.reads = walk.reads, {}
    refer_to(walk, condition, scope, None, FILTER)
    found = walk.rows, tuple(walk.reads)
    walk.rows, walk.reads = rows, reads
    return found


def _depend(walk: Walk, rows: dict[int, exp.Expr | None], reads: Iterable[str]) -> None:
    """Let what is written depend on rows of others: they steer values that are set, else they decide about rows."""
    steering = as_conditions(rows, walk.interner)
    for write in walk.writes:
        if write.kind == "update":
            write.output.deps = [bounded((*deps, *steering)) for deps in write.output.deps]
        elif write.mode != "assign":
            write.rows.update(rows)
        for name in reads:  # whether there are rows at all: IF EXISTS (SELECT 1 FROM t)
            if name != write.target:
                write.reads.setdefault(name, EVERYWHERE)


def touches_rows(walk: Walk, write: Write) -> None:
    """Let what steers an UPDATE decide about rows, too: triggers run for the rows that it touches."""
    saved, walk.rows = walk.rows, write.rows
    for deps in write.output.deps:
        walk.refer([dep for dep in deps if dep & KIND_MASK == CONDITIONAL], FILTER)
    walk.rows = saved
