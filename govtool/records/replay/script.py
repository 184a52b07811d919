"""A replay by a script: the user's own program, edited perhaps, over the rows that were traced.

Every input of the recorded plan is replaced by its rows in the trace, and by those that stand against them. The
recorded plan is evaluated over the same rows: what it gives beside the chosen rows are rows that share inputs with
them, and are there in part only. These are left out of the comparison. Where all results are chosen, the script gets
whole inputs, if these are not too large: then rows that it newly lets in are there, too. Else the plans are compared,
and what may let in others is named.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import EvidenceError, UsageError
from govtool.records.cells import zoned
from govtool.records.execute.compare import comparable
from govtool.records.execute.inputs import relations
from govtool.records.leaves import with_relations
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, passed
from govtool.records.plan.nodes import Distinct, Filter, Join, Project, Relation, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.replay.answer import ChangedRow, ReplayAnswer, Row
from govtool.records.replay.compare import doubts_of, paired, whole_plan
from govtool.records.replay.gains import gains
from govtool.records.replay.process import EditedScript, run_script
from govtool.records.sql.statement import KEPT
from govtool.records.trace.back import ReachedRows, StagePosition, count_rows
from govtool.records.trace.computed import computed
from govtool.records.trace.forward import input_key
from govtool.records.trace.segment import everything, reads, unique

if TYPE_CHECKING:
    import pyarrow as pa

    from govtool.records.trace.traced_plan import TracedPlan
    from govtool.records.trace.traced_rows import TracedRows

MAX_WHOLE = 1_000_000
"""The most rows of each input that a script gets of which no results were made."""
MAX_COMPARED = 1_000_000
"""The most rows of a result that are compared."""
_RECORD = "_record"
_OTHERS = (
    "rows of inputs that these results were not made of may belong to the edited script's, and were not given to it"
)


def script_of(words: str | os.PathLike[str] | Sequence[str]) -> EditedScript:
    """A script and its arguments: a path, or words.

    Raises:
        UsageError: There is no such file (``usage.path``).
    """
    first, *arguments = [os.fspath(words)] if isinstance(words, (str, os.PathLike)) else list(words) or [""]
    path = Path(first).absolute()
    if not path.is_file():
        raise UsageError("there is no such script", code="usage.path", location=str(first))
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"the script is no Python: {error}", code="usage.script", location=str(path)) from error
    return EditedScript(path, tuple(arguments))


def replay_script(chosen: TracedRows, script: EditedScript, by_computed: bool | None = None) -> ReplayAnswer:
    """Run a script over the inputs of chosen output rows only, and compare what it writes with these rows.

    Args:
        chosen: The rows.
        script: The script.
        by_computed: Whether they were chosen by computed values; None: as their plan shows.

    Raises:
        UsageError: These are no rows of an output, or the script fails, reads what the run did not read, or does not
            write the output (``usage.script``).
        EvidenceError: Inputs are gone or have changed (``evidence.changed``), or too many rows are compared.
        EngineError: No engine evaluates the plan exactly, or pyspark is missing.
    """
    lineage = chosen.lineage
    position = _position(chosen)
    by_computed = is_by_computed(chosen) if by_computed is None else by_computed
    is_whole = _is_whole(lineage, position)
    traced = chosen if is_whole else chosen.go_back_all()
    given = None if is_whole else _traced_ids(lineage, traced)
    shown = tuple(c for c in unique(position.stage.segment.visible) if c.id not in lineage.blank)
    plan = whole_plan(lineage, position.stage)
    old = _rows(lineage, position.rows, shown)
    again = _rows(lineage, _over(lineage, plan, given), shown)
    written = run_script(lineage, script, lambda leaf: _part(lineage, leaf, given), input_key)
    table, more = written.rows, () if is_whole else _not_given(chosen, written.plans, by_computed)
    compared, doubts = _shared(shown, table)
    places = [shown.index(column) for column in compared]
    steady = tuple(n for n, column in enumerate(compared) if column.id not in computed(plan))
    before, partly = ([tuple(row[n] for n in places) for row in rows] for rows in (old, again))
    after, unsure = _whole_rows(before, partly, _tuples(table.select([c.name for c in compared]), compared), steady)
    surplus, missing = Counter(map(_key, before)), Counter(map(_key, after))
    kept = {column.id for leaf in relations(lineage.plan or plan) for column in leaf.columns}
    as_read = tuple(n for n in steady if compared[n].id in kept)
    gone, changed, new = _paired(_left(before, surplus - missing), _left(after, missing - surplus), steady, as_read)
    if new and len(partly) > len(before):
        unsure = [*unsure, "a new row may be one of other results that share inputs with the chosen ones"]
    recorded = _is_written(lineage, position, shown)
    return ReplayAnswer(
        run=lineage.run,
        output=lineage.output,
        recorded=recorded,
        columns=tuple(column.name for column in compared),
        reached=(),
        groups=None,
        before=len(before),
        after=len(after),
        gone=gone,
        changed=changed,
        new=new,
        doubts=(*_of_trace(traced), *more, *doubts, *unsure, *doubts_of(lineage, plan, ordered_lists=True)),
        whole=is_whole,
    )


def _is_whole(lineage: TracedPlan, position: StagePosition) -> bool:
    """Whether the script gets whole inputs: all results were chosen, and the inputs are not too large."""
    if position.rows is not position.stage.segment.node or lineage.looseness is not None or lineage.plan is None:
        return False
    return all(count_rows(lineage.executor, leaf) <= MAX_WHOLE for leaf in relations(lineage.plan))


def _not_given(chosen: TracedRows, plans: Sequence[Node | None], by_computed: bool) -> tuple[str, ...]:
    """What the script may need of rows that it was not given."""
    lineage = chosen.lineage
    (position,) = chosen.positions()
    assert lineage.plan is not None
    if len(plans) != 1 or plans[0] is None:
        return (f"{_OTHERS}: its plan was not compared with the run's",)
    of_some = position.rows is not position.stage.segment.node
    try:
        found = gains(lineage.plan, plans[0], of_some=of_some, by_computed=by_computed)
    except UsageError as error:  # a plan that is too large
        found = (error.message,)
    return (f"{_OTHERS}: {'; '.join(found)}",) if found else ()


def is_by_computed(chosen: TracedRows) -> bool:
    """Whether rows of an output were chosen by values that are computed from others, as far as their plan shows."""
    for position in chosen.positions():
        whole, node = position.stage.segment.node, position.rows
        conditions: list[Expression] = []
        while isinstance(node, Filter) and node is not whole:
            conditions.append(node.condition)
            node = node.child
        if isinstance(node, Join) and node.kind == "left_semi" and node.condition is not None:
            conditions.append(node.condition)  # a set of values; what is left of it is the plan again
        elif node is not whole:
            return True  # rows that were kept: it is not known by what they were chosen
        if reads(conditions) & computed(whole):
            return True
    return False


def _position(chosen: TracedRows) -> StagePosition:
    lineage = chosen.lineage
    if lineage.refused:
        first = lineage.refused[0]
        raise EvidenceError(f"the inputs are not what was read: {first.file} {first.reason}", code="evidence.changed")
    (position,) = chosen.parts if len(chosen.parts) == 1 else (None,)
    if not isinstance(position, StagePosition) or position.stage is not lineage.stage:
        raise UsageError("a script is replayed for rows of the output", code="usage.rows")
    return position


def _traced_ids(lineage: TracedPlan, traced: TracedRows) -> dict[tuple[object, ...], Relation]:
    """By input, the ids of the traced rows and of those against them."""
    parts: dict[tuple[object, ...], list[Node]] = {}
    for part in traced.parts:
        assert isinstance(part, ReachedRows)
        parts.setdefault(input_key(part.leaf), []).append(part.rows)
    found = {}
    for key, rows in parts.items():
        record = lineage.ids.attribute("record", LONG)
        found[key] = lineage.executor.keep(Distinct(Union(tuple(rows), (record,))))
    return found


def _over(lineage: TracedPlan, plan: Node, given: Mapping[tuple[object, ...], Relation] | None) -> Node:
    """A plan over the traced rows of its inputs."""
    return with_relations(plan, lambda leaf: _part(lineage, leaf, given))


def _part(lineage: TracedPlan, leaf: Relation, given: Mapping[tuple[object, ...], Relation] | None) -> Node:
    if leaf.format == KEPT or given is None:
        return leaf
    ids = given.get(input_key(leaf))
    if ids is None:
        return Filter(leaf, Literal(False, BOOLEAN))
    record = lineage.ids.attribute("record", LONG)
    read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, _RECORD)))
    (column,) = outputs(ids)
    copy = lineage.ids.named("record", column)
    same = Call("=", (record, copy.attribute), BOOLEAN)
    return Project(Join(read, Project(ids, (copy,)), "left_semi", same), everything(leaf))


def _rows(lineage: TracedPlan, node: Node, columns: Sequence[Attribute]) -> list[Row]:
    table = lineage.executor.arrow(Project(node, tuple(map(passed, columns))))
    return _tuples(table, columns)


def _tuples(table: pa.Table, columns: Sequence[Attribute]) -> list[Row]:
    if table.num_rows > MAX_COMPARED:
        raise EvidenceError(
            f"more than {MAX_COMPARED:,} rows are compared", code="evidence.different", hint="choose some by --where"
        )
    cells = [
        [zoned(_naive(value), column.type) for value in values.to_pylist()]
        for values, column in zip(table.columns, columns, strict=True)
    ]
    return list(zip(*cells, strict=True)) if cells else [()] * table.num_rows


def _naive(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _key(row: Row) -> tuple[Hashable, ...]:
    return tuple(map(comparable, row))


def _left(rows: list[Row], counts: Counter[tuple[Hashable, ...]]) -> list[Row]:
    """The rows with these values, each as often as is counted."""
    left, found = Counter(counts), []
    for row in sorted(rows, key=repr):
        if left[_key(row)] > 0:
            left[_key(row)] -= 1
            found.append(row)
    return found


def _whole_rows(
    before: list[Row], partly: list[Row], after: list[Row], steady: tuple[int, ...]
) -> tuple[list[Row], list[str]]:
    """The rows of a script without those that are there in part only, and why the comparison is not certain."""

    def own(row: Row) -> tuple[Hashable, ...]:
        return tuple(comparable(row[n]) for n in steady)

    chosen = set(map(own, before))
    if Counter(_key(row) for row in partly if own(row) in chosen) != Counter(map(_key, before)):
        return after, ["the recorded plan does not give the chosen rows over the traced ones alone"]
    others = {own(row) for row in partly} - chosen
    return [row for row in after if own(row) not in others], []


def _paired(
    old: list[Row], new: list[Row], *keys: tuple[int, ...]
) -> tuple[tuple[Row, ...], tuple[ChangedRow, ...], tuple[Row, ...]]:
    """Rows that differ as gone, changed and new: paired by the first keys that tell them apart, then by the next."""
    changed: tuple[ChangedRow, ...] = ()
    gone, come = tuple(old), tuple(new)
    for key in dict.fromkeys(keys):
        if key or key == keys[0]:
            gone, more, come = paired(list(gone), list(come), key)
            changed += more
    return gone, changed, come


def _of_trace(traced: TracedRows) -> list[str]:
    grades = [traced.lineage.graded(part.grade) for part in traced.parts]
    return list(dict.fromkeys(f"the trace is a {g.exactness}: {g.why}" for g in grades if g.exactness != "exact"))


def _is_written(lineage: TracedPlan, position: StagePosition, shown: Sequence[Attribute]) -> bool:
    """Return whether the chosen rows are among the written ones."""
    if lineage.written is None:
        return False
    ids = {column.id for column in shown}
    pairs = list(zip(position.stage.segment.visible, lineage.written.columns, strict=True))
    chosen = Project(position.rows, tuple(map(passed, shown)))
    own = unique(column for column, _ in pairs if column.id in ids)
    named = {column.id: other for column, other in reversed(pairs)}
    written = Project(lineage.written, tuple(passed(named[column.id]) for column in own))
    return not lineage.exceeds(chosen, written)


def _shared(shown: Sequence[Attribute], table: pa.Table) -> tuple[list[Attribute], list[str]]:
    """The columns that are compared, and what is left out of the comparison."""
    kept = [c for c in shown if c.name in table.column_names and not isinstance(c.type, t.Map)]
    maps = [c.name for c in shown if c.name in table.column_names and isinstance(c.type, t.Map)]
    gone = [c.name for c in shown if c.name not in table.column_names]
    more = [name for name in table.column_names if name not in {c.name for c in shown}]
    doubts = [f"column {name} holds maps and is not compared" for name in maps]
    doubts += [f"the script writes no column {name}" for name in gone]
    return kept, [*doubts, *(f"column {name} is new and is not compared" for name in more)]
