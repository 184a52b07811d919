"""Values that are handed to routines: what a routine does with its parameters is not followed; they may be in all that
it writes.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from govtool.capture.sql.walk.context import ROW_OF, Walk
from govtool.capture.sql.walk.dependencies import OPAQUE, TRANSFORMATION
from govtool.capture.sql.walk.expressions.expression import collect
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write


def call(walk: Walk, tree: exp.Expr) -> None:
    """``CALL p(…)`` and ``EXEC p …``, whose arguments are variables and subqueries; ``PERFORM p(…)``, a query."""
    routine, query = tree.args.get("routine"), tree.args.get("query")
    if query is not None:
        saved, walk.rows = walk.rows, {}
        reads, walk.reads = walk.reads, {}
        output_of(walk, query, None, None)  # its calls hand over what they are given
        walk.calling.update(walk.reads)
        walk.rows, walk.reads = saved, reads
    if not routine:
        return
    targets = walk.lookup.targets_of(routine)
    if not targets:
        return
    saved, walk.rows = walk.rows, {}
    reads, walk.reads = walk.reads, {}
    deps = [dep for item in tree.expressions for dep in collect(walk, item, Scope(None), None, TRANSFORMATION, 0)]
    handed = [*deps, *walk.rows]
    walk.rows, walk.reads = saved, reads
    walk.hand_over(routine, targets, handed, tree)


def handed_writes(walk: Walk) -> Iterable[Write]:
    """Yield the writes by which values that a statement hands to routines may reach what these write.

    What decides about the rows of a query decides how often it calls them.
    """
    if not walk.handed:
        return
    decided = [dep for write in walk.writes for dep in write.rows]
    calling = dict(walk.calling)
    for write in walk.writes:
        calling.update(write.reads)
    for target, deps in walk.handed.items():
        write = Write(target, "insert", "append", defines=False)
        write.rows = dict.fromkeys([dep & ROW_OF | OPAQUE for dep in (*deps, *decided)])
        write.reads = {name: EVERYWHERE for name in calling if name != target}
        if write.rows or write.reads:
            yield write
