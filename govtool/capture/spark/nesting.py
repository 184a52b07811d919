"""Grouping of executions into actions.

Spark names for each execution the root that it belongs to. That alone does not tell actions apart: all writes of a
``foreachBatch`` share the batch as their root, whatever their targets. Time alone does not either: threads of one batch
write at once. So an execution belongs to another if that one encloses it in time, is a command that starts executions,
and the two agree on the target or on the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from govtool.capture.spark.execution import Action, E, WrittenDataset

_TARGET, _PLAN, _COLUMNS, _INSIDE = 4, 3, 2, 1
"""Scores of an execution's nesting in another; 0: none."""


def actions_of(executions: Iterable[E]) -> list[Action[E]]:
    """The actions of executions of one root, in the order in which they began."""
    ordered = sorted(executions, key=lambda each: each.opened)
    starters = _released(ordered, [_starter(ordered[:at], each) for at, each in enumerate(ordered)])
    lead_of: list[int] = []
    families: dict[int, list[E]] = {}
    for position, execution in enumerate(ordered):
        starter = starters[position]
        lead = position if starter is None else lead_of[starter]
        lead_of.append(lead)
        families.setdefault(lead, []).append(execution)
    return [_action(family) for family in families.values()]


# ---- what belongs to what ------------------------------------------------------------------------------------------


def _starter(before: Sequence[E], inner: E) -> tuple[int, int] | None:
    """The execution that started another, and how sure that is: of those that enclose it the surest, and of these the
    innermost.
    """
    best, found = 0, None
    for position in reversed(range(len(before))):
        outer = before[position]
        if outer.closed >= inner.closed and (score := _score(outer, inner)) > best:
            best, found = score, (position, score)
    return found


def _released(ordered: Sequence[E], found: Sequence[tuple[int, int] | None]) -> list[int | None]:
    """The starters of executions, but for writes that only look as if another had started them: by their columns,
    while that one started a write that is surely its own.
    """
    surest: dict[int, int] = {}
    for execution, each in zip(ordered, found, strict=True):
        if each is not None and _written(execution) is not None:
            surest[each[0]] = max(surest.get(each[0], 0), each[1])
    return [None if each is None or (each[1] == _COLUMNS < surest.get(each[0], 0)) else each[0] for each in found]


def _score(outer: E, inner: E) -> int:
    """Score the nesting of an execution in another; 0: it stands for itself."""
    around, within = outer.reading, inner.reading
    if outer.is_batch or inner.is_batch:
        # The batch is no command, but a sink may run the batch's own plan once more.
        return _PLAN if _is_same_query(outer, inner) else 0
    if within is None:
        return _INSIDE
    if within.written is None:
        acts = around is not None and (around.written or around.defined)
        return _INSIDE if acts or within.defined is None else 0
    if around is None or around.written is None or around.written.alone:
        return 0
    if _same_target(around.written, within.written):
        return _TARGET
    if around.ids and around.ids == within.ids:
        return _PLAN
    is_place = within.written.place.kind != "table"
    return _COLUMNS if is_place and _same_columns(around.written, within.written) is True else 0


def _is_same_query(outer: E, inner: E) -> bool:
    """Return whether an execution that writes nothing runs the plan of another."""
    around, within = outer.reading, inner.reading
    return around is not None and within is not None and within.written is None and around.normal == within.normal


def _same_target(one: WrittenDataset, other: WrittenDataset) -> bool:
    """Return whether two writes go to one dataset: by a name that both give, or by a table's name and its place."""
    if _names(one) & _names(other):
        return True
    if one.place.kind == other.place.kind == "table":
        short, long = sorted((one.place.name.name, other.place.name.name), key=len)
        return long.endswith(f".{short}") or (_last(one) == _last(other) and min(one.parts, other.parts) < 2)
    if one.place.kind == "table" and not one.place.aliases and other.place.name.is_path:
        # Where a new table is put, its command does not tell; the warehouse has a folder of its name.
        return _last(other) == _last(one) and _same_columns(one, other) is not False
    return False


def _names(written: WrittenDataset) -> set[str]:
    return {written.place.name.id, *(alias.id for alias in written.place.aliases)}


def _last(written: WrittenDataset) -> str:
    name = written.place.name
    return name.name.rpartition("/" if name.is_path else ".")[2].lower()


def _same_columns(one: WrittenDataset, other: WrittenDataset) -> bool | None:
    """Return whether two writes name the same columns; None: one of them names none."""
    if not one.columns or not other.columns:
        return None
    if not one.hidden and not other.hidden and len(one.columns) != len(other.columns):
        return False
    return all(a.lower() == b.lower() for a, b in zip(one.columns, other.columns, strict=False))


# ---- what an action writes -----------------------------------------------------------------------------------------


def _action(family: Sequence[E]) -> Action[E]:
    lead = family[0]
    written = lead.reading.written if lead.reading is not None else None
    if written is None:
        return Action(lead, tuple(family), lead, None)
    written = _joined(written, family[1:])
    if written.final:
        return Action(lead, tuple(family), _fitted(lead, family[1:], written), written)
    final = next((each for each in reversed(family[1:]) if (own := _written(each)) is not None and own.final), None)
    if final is not None:
        return Action(lead, tuple(family), final, written)
    main, columns = _expected(lead, family[1:], written)
    return Action(lead, tuple(family), main, replace(written, columns=columns))


def _fitted(lead: E, members: Sequence[E], written: WrittenDataset) -> E:
    """Return the execution whose query has the columns of a write in its order.

    ``saveAsTable`` adds to a table by name: the query as it was written may have them in another order.
    """
    assert lead.reading is not None
    wanted = [name.lower() for name in written.columns or ()]
    given = [column.name.lower() for column in lead.reading.flow.columns]
    if wanted == given or sorted(wanted) != sorted(given):
        return lead
    for execution in members:
        own = _written(execution)
        if own is not None and own.columns == written.columns and execution.reading is not None:
            return execution
    return lead


def _written(execution: E) -> WrittenDataset | None:
    return execution.reading.written if execution.reading is not None else None


def _joined(written: WrittenDataset, members: Sequence[E]) -> WrittenDataset:
    """Return the write, from all that report it: the outermost has the name, the innermost the place."""
    aliases = dict.fromkeys(written.place.aliases)
    for inner in filter(None, map(_written, members)):
        if inner.parts > written.parts > 0 and inner.place.kind == written.place.kind:
            # Only the second command of a saveAsTable has the name with its catalog and its database.
            written = replace(written, place=replace(written.place, name=inner.place.name), parts=inner.parts)
        elif inner.place.kind != "table" and inner.place.name != written.place.name:
            aliases[inner.place.name] = None
        aliases.update(dict.fromkeys(inner.place.aliases))
        if not written.columns:
            written = replace(written, columns=inner.columns, hidden=inner.hidden)
    return replace(written, place=replace(written.place, aliases=tuple(aliases)))


def _expected(lead: E, members: Iterable[E], written: WrittenDataset) -> tuple[E, tuple[str, ...] | None]:
    """Return the query of which a connector computes its write, and the names of its columns.

    It is the query that gives the expected columns: by their ids, in whatever order (a connector that goes by name
    puts them into the order of its table, and adds those that are not given), or by all their names, in order.
    """
    ids = {id_ for id_, _ in written.expects}
    wanted = [name.lower() for _, name in written.expects]
    for execution in _queries(members) if wanted else ():
        reading = execution.reading
        assert reading is not None
        names = [column.name for column in reading.flow.columns]
        if [name.lower() for name in names] == wanted:
            return execution, written.columns
        if ids <= set(reading.ids) and len(reading.ids) == len(names):
            return execution, tuple(names)
    return lead, written.columns


def _queries(members: Iterable[E]) -> Iterator[E]:
    for execution in members:
        reading = execution.reading
        if reading is None or reading.written is not None or reading.command or reading.unplaced:
            continue
        if not any(note.code == "break.rdd" for note in reading.notes):
            yield execution
