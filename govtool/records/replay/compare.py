"""A replay: the part of a result that a change reaches, evaluated over changed inputs and compared with what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.errors import EngineError, EvidenceError
from govtool.records.cells import zoned
from govtool.records.execute.compare import bag, comparable
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Frame,
    Literal,
    Named,
    Udf,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import (
    Break,
    Deduplicate,
    Filter,
    Limit,
    Project,
    Relation,
    Sample,
    SetOperation,
    Tail,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG
from govtool.records.plan.types import comparable as is_comparable
from govtool.records.replay.answer import ChangedRow, ReplayAnswer, Row
from govtool.records.replay.changes import Change, InputChanges, Replacement
from govtool.records.replay.reach import ReplayReach, among, reach
from govtool.records.trace.back import Stage, StagePosition, count_rows
from govtool.records.trace.computed import computed
from govtool.records.trace.list_order import collected_lists, depends_on_lists, unordered_lists
from govtool.records.trace.loosen import loosened
from govtool.records.trace.named_boundaries import NamedBoundary, boundaries
from govtool.records.trace.normal import normalized
from govtool.records.trace.opaque import blanked
from govtool.records.trace.same_place import below_each_other
from govtool.records.trace.segment import free_columns, unique

if TYPE_CHECKING:
    from govtool.records.trace.traced_plan import TracedPlan

MAX_DIFFERENT = 1_000_000
"""The most rows that may differ."""
MAX_WITH_MAPS = 100_000
"""The most rows with maps that are compared, one by one."""
_COUNT = AggregateCall("count", (Literal(1, INTEGER),), LONG)
_PEERS = Frame("range", "current row", "current row")
_ALL = Frame("range", "unbounded preceding", "unbounded following")
_NUMBERING = ("row_number", "ntile", "lag", "lead", "nth_value")
Key = tuple[Hashable, ...]


def replay(lineage: TracedPlan, changes: Iterable[Change], positions: Sequence[StagePosition] = ()) -> ReplayAnswer:
    """Evaluate a plan over changed inputs, as far as the change reaches, and compare.

    Args:
        lineage: The recorded plan.
        changes: What is changed.
        positions: Rows of the output or at one boundary: only rows with their columns that are not computed are
            compared. None: the whole output.

    Raises:
        UsageError: A change is mistaken (see ``InputChanges.checked``).
        UnknownNameError: A change is of no input.
        EvidenceError: Inputs are gone or have changed (``evidence.changed``), or too many rows differ.
        EngineError: No engine evaluates the plan exactly.
    """
    changes = tuple(changes)
    stage = positions[0].stage if positions else lineage.stage
    is_over_lost = _require_evaluation(lineage, changes, stage)
    root, known = _plan_at(lineage, stage)
    wanted = InputChanges(lineage, changes, known).named(root)
    shape = Project(wanted.between.opened(root), tuple(map(passed, unique(stage.segment.visible))))
    wanted.checked(shape)
    reached = ReplayReach() if is_over_lost else reach(wanted, shape)
    before = wanted.between.closed(shape)
    compared = _comparison(lineage, before, reached, positions)
    recorded = lineage.written if stage is lineage.stage else None
    after, own = compared.part(wanted.applied(shape)), compared.part(before)
    old = own if recorded is None else compared.part(compared.named(recorded))
    kept = (lineage.executor.keep(old), lineage.executor.keep(after))
    gone, changed, new = paired(*row_differences(lineage, *kept, compared.lists), compared.steady_places)
    doubts = doubts_of(lineage, before)
    if any(ties(lineage, each) for each in ((after,) if is_over_lost else (own, after))):
        doubts = (*doubts, "rows tie in the order of a window that counts rows, and may be counted otherwise")
    if (
        doubts
        and not is_over_lost
        and recorded is not None
        and any(row_differences(lineage, kept[0], lineage.executor.keep(own), compared.lists))
    ):
        doubts = (*doubts, "the plan does not give the written rows again over the recorded inputs")
    return ReplayAnswer(
        run=lineage.run,
        output=lineage.output if stage is lineage.stage else lineage.place_name(stage),
        recorded=recorded is not None,
        columns=tuple(column.name for column in compared.shown),
        reached=tuple(column.name for column in compared.reached.columns),
        groups=None if compared.reached.values is None else count_rows(lineage.executor, compared.reached.values),
        before=count_rows(lineage.executor, kept[0]),
        after=count_rows(lineage.executor, kept[1]),
        gone=tuple(map(compared.zoned, gone)),
        changed=tuple(ChangedRow(compared.zoned(row.before), compared.zoned(row.after)) for row in changed),
        new=tuple(map(compared.zoned, new)),
        doubts=doubts,
    )


def _require_evaluation(lineage: TracedPlan, changes: Iterable[Change], stage: Stage) -> bool:
    """Refuse a plan that cannot be evaluated over what was read, unless what is lost of it is replaced.

    Returns:
        Whether inputs are lost, and others are read in their place: what was written is compared with these.

    Raises:
        EvidenceError: Inputs are gone or have changed (``evidence.changed``).
        EngineError: The plan has parts that cannot be evaluated again (``engine.not-exact``).
    """
    replaced = {each.dataset for each in changes if isinstance(each, Replacement)}
    lost = next((each for each in lineage.refused if each.dataset not in replaced), None)
    if lost is None and lineage.refused and (stage is not lineage.stage or lineage.written is None):
        lost = lineage.refused[0]
    if lost is not None:
        raise EvidenceError(
            f"the plan cannot be evaluated over what was read: {lost.file} {lost.reason}",
            code="evidence.changed",
            hint=f"--with {lost.dataset.rpartition('/')[2]}=FILE reads other files in its place",
        )
    if lineage.looseness is not None:
        raise EngineError(f"the plan cannot be evaluated: {lineage.looseness.why}", code="engine.not-exact")
    return bool(lineage.refused)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The rows and columns that a replay compares.

    Attributes:
        lineage: The recorded plan.
        before: Its rows over the recorded inputs.
        reached: The part that the change reaches.
        chosen: Only rows like these are compared; None: all.
        shown: The columns that are compared.
        steady: Those of ``shown`` that are not computed, by id.
        lists: Those of ``shown`` that are lists in any order, by place.
    """

    lineage: TracedPlan
    before: Node
    reached: ReplayReach
    chosen: Node | None
    shown: tuple[Attribute, ...]
    steady: frozenset[int]
    lists: frozenset[int]

    @property
    def steady_places(self) -> tuple[int, ...]:
        """The steady columns by their places in ``shown``."""
        return tuple(place for place, column in enumerate(self.shown) if column.id in self.steady)

    def part(self, node: Node) -> Node:
        """The rows of a plan that are compared, their columns in order."""
        rows = self.reached.within(self.lineage, node)
        if self.chosen is not None:
            steady = tuple(column for column in self.shown if column.id in self.steady)
            rows = among(self.lineage, rows, self.chosen, steady)
        return Project(rows, tuple(self.lineage.ids.named(column.name, column) for column in self.shown))

    def named(self, recorded: Relation) -> Node:
        """The written rows, under the columns of the plan."""
        pairs = zip(recorded.columns, outputs(self.before), strict=True)
        return Project(recorded, tuple(Named(own, column.id, column.name) for own, column in pairs))

    def zoned(self, row: Row) -> Row:
        """A row whose timestamps have their zone."""
        return tuple(zoned(value, column.type) for value, column in zip(row, self.shown, strict=True))


def _comparison(
    lineage: TracedPlan, before: Node, reached: ReplayReach, positions: Sequence[StagePosition]
) -> _Comparison:
    """All rows of a plan, or those at a position, by the columns that can be evaluated again."""
    chosen = _chosen(positions)
    shown = tuple(column for column in outputs(before) if column.id not in lineage.blank)
    steady = frozenset(column.id for column in shown) - computed(before)
    unordered = unordered_lists(before)
    lists = frozenset(place for place, column in enumerate(shown) if column.id in unordered)
    return _Comparison(lineage, before, reached, chosen, shown, steady, lists)


def _chosen(positions: Sequence[StagePosition]) -> Node | None:
    """The rows of all positions, which are at one place; None: every row there."""
    if not positions or any(each.rows is each.stage.segment.node for each in positions):
        return None
    if len(positions) == 1:
        return positions[0].rows
    return below_each_other(positions, unique(positions[0].stage.segment.visible))


def _plan_at(lineage: TracedPlan, stage: Stage) -> tuple[Node, tuple[NamedBoundary, ...]]:
    """The plan of the rows of a stage, and the boundaries in it."""
    if stage is not lineage.stage:
        link = None if stage.source is None else stage.source.link
        return stage.segment.node if link is None or link.plan is None else link.plan, lineage.boundaries()
    root = whole_plan(lineage, stage)
    if root is stage.segment.node:
        return root, lineage.boundaries()
    found = boundaries(Stage(lineage.whole_segment(root)).all())
    same = {(each.name, each.columns) for each in lineage.boundaries()}
    return root, tuple(each for each in found if (each.name, each.columns) in same)


def whole_plan(lineage: TracedPlan, stage: Stage) -> Node:
    """The plan of a stage; where a trace takes a limit's rows from the output, the output's own plan evaluates it."""
    if stage is not lineage.stage or lineage.plan is None:
        return stage.segment.node
    plan = normalized(lineage.plan, lineage.ids)
    made = loosened(plan, lineage.ids)
    same_rows = made.looseness is None and made.blank <= lineage.blank
    return made.node if same_rows else blanked(plan)[0]


def doubts_of(lineage: TracedPlan, node: Node, ordered_lists: bool = False) -> tuple[str, ...]:
    """Why a plan evaluated again may give other rows than a run would.

    Args:
        lineage: What is known of the plan.
        node: The plan.
        ordered_lists: Whether its rows are compared with their collected lists in the order that these have.
    """
    found: dict[str, None] = {}
    lists = () if ordered_lists or depends_on_lists(node) else collected_lists(node)
    for each in walk_nodes(node):
        if isinstance(each, (Limit, Tail)):
            found["rows that tie at a limit may be others"] = None
        elif isinstance(each, Sample):
            found["a sample may be another one"] = None
        elif isinstance(each, Deduplicate):
            found["dropDuplicates by some columns keeps one row of each, not determined which"] = None
        elif isinstance(each, Break):
            found[each.reason] = None
        for term in walk(each):
            if getattr(term, "deterministic", True) is False and term not in lists:
                name = term.reference.qualname if isinstance(term, Udf) else getattr(term, "name", "an expression")
                found[f"{name} is not deterministic"] = None
    blank = [column.name for column in outputs(node) if column.id in lineage.blank]
    return (*found, *(f"column {name} cannot be evaluated again and is not compared" for name in blank))


def ties(lineage: TracedPlan, node: Node) -> bool:
    """Return whether rows tie where a window counts them: nothing decides which of them comes first.

    Rows that are equal in all columns may change places: what comes out is the same.
    """
    for each in walk_nodes(node):
        if isinstance(each, Window):
            calls = [named.value for named in each.columns if isinstance(named.value, WindowCall)]
            counting = [call for call in calls if counts_rows(call)]
            is_one_order = len({(call.partition, call.order) for call in counting}) < 2
            if any(_has_peers(lineage, each.child, call, is_one_order) for call in counting):
                return True
    return False


def _has_peers(lineage: TracedPlan, node: Node, call: WindowCall, is_one_order: bool) -> bool:
    """Return whether a window has rows that tie; in one order only, that are not equal either."""
    if free_columns(node):
        return True  # within a correlated subquery: not known
    of = _PEERS if call.order else _ALL
    peers = lineage.ids.named("peers", WindowCall(_COUNT, call.partition, call.order, of, LONG))
    columns = tuple(outputs(node))
    counts: tuple[Named, ...] = (peers,)
    least: Attribute | Literal = Literal(1, LONG)
    if is_one_order and columns and all(is_comparable(column.type) for column in columns):
        equal = lineage.ids.named("equal", WindowCall(_COUNT, columns, (), _ALL, LONG))
        counts, least = (peers, equal), equal.attribute
    tied = Filter(Window(node, counts), Call(">", (peers.attribute, least), BOOLEAN))
    return bool(lineage.executor.fetch(Limit(Project(tied, (passed(peers.attribute),)), 1)))


def counts_rows(call: WindowCall) -> bool:
    """Return whether a window counts rows: where some tie, nothing decides what each of them gets."""
    if isinstance(call.function, Call):
        return call.function.name in _NUMBERING
    bounds = (call.frame.lower, call.frame.upper) if call.frame is not None and call.frame.kind == "rows" else None
    return bounds not in (None, ("unbounded preceding", "unbounded following"))


def paired(
    old: list[Row], new: list[Row], steady: tuple[int, ...]
) -> tuple[tuple[Row, ...], tuple[ChangedRow, ...], tuple[Row, ...]]:
    """Rows that differ as gone, changed and new: one row on each side with the same steady cells is a changed one."""
    before, after = _by_key(old, steady), _by_key(new, steady)
    pairs = [key for key, rows in before.items() if steady and len(rows) == 1 and len(after.get(key, ())) == 1]
    if not steady and len(old) == len(new) == 1:  # the one row of an aggregate without keys
        return (), (ChangedRow(old[0], new[0]),), ()
    changed = tuple(ChangedRow(before.pop(key)[0], after.pop(key)[0]) for key in pairs)
    gone = tuple(row for rows in before.values() for row in rows)
    return gone, changed, tuple(row for rows in after.values() for row in rows)


def _by_key(rows: Iterable[Row], steady: tuple[int, ...]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(comparable(row[at]) for at in steady), []).append(row)
    return found


def row_differences(
    lineage: TracedPlan, old: Relation, new: Relation, lists: Collection[int] = ()
) -> tuple[list[Row], list[Row]]:
    """Rows that are more often in one plan than in the other; floats are equal up to the order of a sum.

    Args:
        lineage: What evaluates the plans.
        old: A plan.
        new: Another.
        lists: Columns of lists that are equal up to their order, by place.
    """
    gone, come = _more(lineage, old, new), _more(lineage, new, old)
    counts = Counter(_key(row, lists) for row in come)
    counts.subtract(Counter(_key(row, lists) for row in gone))
    surplus = {key: -count for key, count in counts.items() if count < 0}
    missing = {key: count for key, count in counts.items() if count > 0}
    return _take(gone, surplus, lists), _take(come, missing, lists)


def _key(row: Row, lists: Collection[int]) -> Key:
    return tuple(bag(value) if place in lists else comparable(value) for place, value in enumerate(row))


def _take(rows: list[Row], counts: dict[Key, int], lists: Collection[int]) -> list[Row]:
    taken = []
    for row in sorted(rows, key=repr):
        key = _key(row, lists)
        if counts.get(key, 0) > 0:
            counts[key] -= 1
            taken.append(row)
    return taken


def _more(lineage: TracedPlan, one: Relation, other: Relation) -> list[Row]:
    if not all(is_comparable(column.type) for column in one.columns):
        return _every(lineage, one)
    columns = tuple(lineage.ids.attribute(column.name, column.type) for column in one.columns)
    rows = lineage.executor.fetch(Limit(SetOperation(one, other, "except", True, columns), MAX_DIFFERENT + 1))
    if len(rows) > MAX_DIFFERENT:
        raise EvidenceError(
            f"more than {MAX_DIFFERENT:,} rows differ", code="evidence.different", hint="replay a smaller change"
        )
    return rows


def _every(lineage: TracedPlan, rows: Relation) -> list[Row]:
    """All rows of a plan, some of whose columns hold maps, which no engine compares; maps as pairs."""
    found = lineage.executor.arrow(Limit(rows, MAX_WITH_MAPS + 1))
    if found.num_rows > MAX_WITH_MAPS:
        raise EvidenceError(
            f"no engine compares maps, and more than {MAX_WITH_MAPS:,} rows have them", code="evidence.different"
        )
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))
