"""Positions in the lineage of a program: records at one place or several, from where a trace goes back and on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from govtool.errors import UsageError
from govtool.spark.rdd import checks, sources, worker
from govtool.spark.rdd.back import Traced, back
from govtool.spark.rdd.conditions import EVERYTHING, Condition, Predicate, keys_of
from govtool.spark.rdd.forward import forward, next_nodes
from govtool.spark.rdd.log import ProgramLog, RddNode, ancestors, marked
from govtool.spark.rdd.notes import Note, worst
from govtool.spark.rdd.operators import Kind
from govtool.spark.rdd.rerun import contains, failure, replayed
from govtool.spark.rdd.rows import once, rows_of, union
from govtool.spark.rdd.sources import RecordId


@dataclass(frozen=True, slots=True)
class RddPlace:
    """Records at one node.

    Attributes:
        node: Where they are.
        rows: Their rows, persisted; None: all of them, which no job has selected yet.
        notes: Why they may be too many.
    """

    node: RddNode
    rows: Any = None
    notes: tuple[Note, ...] = ()


Here = tuple[list[RddPlace], tuple[RddNode, ...]]
"""Places, and the results towards which a way on leads."""


class LineagePosition:
    """Records at one place of a program or several.

    A position is lazy: jobs run when its records are asked for, and once. Methods of ``pyspark.RDD`` that are not here
    run on the raw records.
    """

    def __init__(self, log: ProgramLog, make: Callable[[], Here], steps: tuple[str, ...] = ()) -> None:
        """Start where a function says; use ``LineageRDD.get_lineage()`` instead."""
        self._log = log
        self._make = make
        self._made: Here | None = None
        self._steps = steps
        self._lock = threading.RLock()

    # ---- moves --------------------------------------------------------------------------------------------------

    def where(self, predicate: Callable[[Any], Any]) -> LineagePosition:
        """Keep the records for which a function returns a true value."""
        return self.matching(Predicate(predicate))

    def matching(self, condition: Condition) -> LineagePosition:
        """Keep the records that fulfil a condition."""
        return self._then("where", lambda: [_selected(place, condition) for place in self.places()])

    def at(self, where: Any) -> LineagePosition:
        """Keep one place: a tracked RDD, else the lines that it was written as; or a part of the label, as a path."""
        node = getattr(where, "_node", None)
        if node is None:
            return self._then(f"at {where}", lambda: [each for each in self.places() if str(where) in each.node.label])

        def kept() -> list[RddPlace]:
            places = self.places()
            own = [each for each in places if each.node.rdd is node.rdd]
            return own or [each for each in places if _writes(each.node, node)]

        return self._then(f"at {where}", kept)

    def within(self, nodes: Iterable[RddNode]) -> LineagePosition:
        """Keep the places of some nodes."""
        kept = list(nodes)
        return self._then("at", lambda: [place for place in self.places() if place.node in kept])

    def noted(self, note: Note) -> LineagePosition:
        """The same records, with a reason why they may be too many."""
        return self._then("noted", lambda: [replace(place, notes=(*place.notes, note)) for place in self._settled()])

    def go_back(self) -> LineagePosition:
        """Go back over one boundary, to the records from which these come."""
        return self._then("back", lambda: _merged(_moved_back(self._settled())))

    def go_back_all(self) -> LineagePosition:
        """Go back to the records of the sources."""
        return self._then("back to the sources", lambda: _sources(self._settled(), []))

    def steps_back(self) -> tuple[list[RddPlace], LineagePosition]:
        """Go back to the records of the sources; return the places on the way, these first, and the position there."""
        visited: list[RddPlace] = []
        found = _sources(self._settled(), visited)
        return visited, self._then("back to the sources", lambda: found)

    def settled(self) -> list[RddPlace]:
        """Return the places with their rows and notes."""
        return self._settled()

    def go_next(self) -> LineagePosition:
        """Go on over one boundary, to the records that these reach."""
        return self._on("on", lambda places, goals: _merged(_moved_on(places, goals)))

    def go_next_all(self) -> LineagePosition:
        """Go on to the results: where `get_lineage` was called, or where actions ran on what comes from there."""
        return self._on("on to the results", _results)

    def _then(self, step: str, places: Callable[[], list[RddPlace]]) -> LineagePosition:
        return LineagePosition(self._log, lambda: (places(), self._targets()), (*self._steps, step))

    def _on(self, step: str, move: Callable[[list[RddPlace], tuple[RddNode, ...]], list[RddPlace]]) -> LineagePosition:
        def made() -> Here:
            places, goals = _goals(self._log, self._settled(), self._targets())
            return move(places, goals), goals

        return LineagePosition(self._log, made, (*self._steps, step))

    # ---- replay -------------------------------------------------------------------------------------------------

    def replay(self, *, without: bool = False) -> Any:
        """Run the program again on the source records behind these, and return its result as an RDD of Spark.

        Args:
            without: Leave these records out and take all others.

        Raises:
            UsageError: There are several results, or an operator cannot be run on other records.
        """
        targets = self._targets()
        if len(targets) != 1:
            raise UsageError("several results are traced", hint="start from get_lineage() of one of them")
        return self.replayed(targets[0], without=without)

    def replayed(self, target: RddNode, *, without: bool) -> Any:
        """Run the program of a result again on the source records behind these, or without them.

        Raises:
            UsageError: An operator cannot be run on other records.
        """
        chosen = {place.node.number: keys_of(place.rows.map(worker.id_of)) for place in _sources(self._settled(), [])}
        return replayed(target, chosen, without=without)

    def verify(self) -> bool:
        """Return True if the program gives these results again when it reads nothing but the records behind them.

        Raises:
            UsageError: The position is not at the result where `get_lineage` was called.
            EngineError: The program fails on these records alone (``engine.failed``), as a function of whole partitions
                may that is given an empty one.
        """
        if any(place.node not in self._targets() for place in self.places()):
            raise UsageError("only results can be verified", hint="call verify() before go_back()")
        self._settled()
        with checks.own_jobs():
            results = self.replay()
            try:
                return contains(results, self.rdd)
            except Exception as error:
                raise failure(error) from error

    # ---- records ------------------------------------------------------------------------------------------------

    def places(self) -> list[RddPlace]:
        """Return the places with their rows."""
        return self._here()[0]

    def _targets(self) -> tuple[RddNode, ...]:
        """The results towards which a way on leads."""
        return self._here()[1]

    def _here(self) -> Here:
        with self._lock:
            if self._made is None:
                with checks.own_jobs():
                    places, targets = self._make()
                    self._made = [_kept(place) for place in places], targets
            return self._made

    def _settled(self) -> list[RddPlace]:
        """Places with rows, all of them where none were selected."""
        with self._lock, checks.own_jobs():
            places, targets = self._here()
            settled = [_kept(_selected(place, EVERYTHING)) if place.rows is None else place for place in places]
            self._made = settled, targets
            return settled

    @property
    def rdd(self) -> Any:
        """The raw records, as an RDD of Spark."""
        parts = [place.node.rdd if place.rows is None else place.rows.map(worker.value_of) for place in self.places()]
        if not parts:
            return self._targets()[0].rdd.context.emptyRDD()
        return union(parts)

    def collect(self) -> list[Any]:
        """Return the raw records, in the order of their ids."""
        return [value for place in self._settled() for _, value, _ in sorted(place.rows.collect(), key=_by_id)]

    def count(self) -> int:
        """Return the number of records."""
        return sum(place.rows.count() for place in self._settled())

    def ids(self, limit: int = 1_000) -> list[RecordId]:
        """Return the names of records: dataset, file and ordinal.

        Args:
            limit: At most so many of each place.
        """
        return [
            each
            for place in self._settled()
            for each in sources.record_ids(place.node, place.rows.map(worker.id_of).take(limit))
        ]

    def __getattr__(self, name: str) -> Any:
        """Return a method of ``pyspark.RDD``, on the raw records."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.rdd, name)

    # ---- what is known of them ----------------------------------------------------------------------------------

    @property
    def exactness(self) -> str:
        """``exact``, ``superset``, ``coarse`` or ``break``: the worst of the places."""
        return worst(self._notes())

    @property
    def reasons(self) -> list[str]:
        """Why the trace is not exact."""
        return list(dict.fromkeys(note.reason for note in self._notes()))

    def _notes(self) -> Iterable[Note]:
        return [note for place in self._settled() for note in place.notes]

    def explain(self) -> str:
        """Return the moves, and each place with its number of records and its exactness."""
        lines = [" → ".join(("all records", *self._steps))]
        for place in self._settled():
            lines.append(f"  {place.node.label}: {place.rows.count()} records, {worst(place.notes)}")
            lines += [f"    {reason}" for reason in dict.fromkeys(note.reason for note in place.notes)]
        return "\n".join(lines)

    def show(self, n: int = 20) -> None:
        """Print the first records of each place, with their number and exactness."""
        from govtool.wording import printable

        for place in self._settled():
            rows = place.rows.takeOrdered(n, _by_id)
            print(f"{printable(place.node.label)} · {place.rows.count()} records · {worst(place.notes)}")
            for row in rows:
                print(f"  {printable(worker.shown(row[1]))}")
            for reason in dict.fromkeys(note.reason for note in place.notes):
                print(f"  {printable(reason)}")


def _by_id(row: worker.Row) -> Any:
    return worker.order_of(row[0])


def _selected(place: RddPlace, condition: Condition) -> RddPlace:
    if place.rows is not None:
        return replace(place, rows=condition.matching(place.rows, worker.on_value(worker.single)))
    notes = _changed_inputs(place.node)
    if not notes and checks.in_one_pass(place.node):
        rows, notes = checks.observed(place.node, condition)
    else:
        notes = notes or checks.differences(place.node)
        rows = rows_of(place.node, condition)
    return replace(place, rows=rows, notes=(*place.notes, *notes))


def _changed_inputs(node: RddNode) -> tuple[Note, ...]:
    """Look at the files behind a node, and leave out the records of those that have changed."""
    notes: list[Note] = []
    for source in ancestors((node,)):
        files = sources.changed(source) if "path" in source.details else []
        if "path" in source.details:
            sources.refuse(source, files)
        notes += [
            Note("break", f"{file} was changed or removed after the run: its records are left out") for file in files
        ]
    return tuple(notes)


def _kept(place: RddPlace) -> RddPlace:
    """A place whose rows are computed once."""
    if place.rows is None or place.rows.is_cached:
        return place
    from pyspark import StorageLevel

    rows = place.rows.persist(StorageLevel.MEMORY_AND_DISK)
    rows.count()
    return replace(place, rows=rows)


def _merged(traced: Iterable[Traced]) -> list[RddPlace]:
    """One place for each node."""
    parts: dict[int, list[Traced]] = {}
    for each in traced:
        parts.setdefault(each.stop.number, []).append(each)
    return [
        RddPlace(
            same[0].stop,
            same[0].rows if len(same) == 1 else once(union([each.rows for each in same])),
            tuple(dict.fromkeys(note for each in same for note in each.notes)),
        )
        for _, same in sorted(parts.items())
    ]


def _moved_back(places: Iterable[RddPlace]) -> list[Traced]:
    moved: list[Traced] = []
    for place in places:
        source = place.node.kind is Kind.SOURCE
        found = [Traced(place.node, place.rows)] if source else back(place.node, place.rows)
        moved += _with_notes(place, found)
    return moved


def _with_notes(place: RddPlace, found: list[Traced]) -> list[Traced]:
    """What was reached from a place is no more exact than the place."""
    return [replace(each, notes=(*place.notes, *each.notes)) for each in found]


def _sources(places: list[RddPlace], visited: list[RddPlace]) -> list[RddPlace]:
    """Go back from the node that is farthest on, so that rows that meet at a stop are traced once.

    Args:
        places: Where the way begins.
        visited: Takes the places on the way.
    """
    waiting = {place.node.number: place for place in places}
    found: list[RddPlace] = []
    while waiting:
        place = _kept(waiting.pop(max(waiting)))
        if place.node.kind is Kind.SOURCE:
            found.append(place)
            continue
        visited.append(place)
        for each in _moved_back([place]):
            _wait(waiting, each)
    return sorted(found, key=lambda place: place.node.number)


def _writes(sink: RddNode, node: RddNode) -> bool:
    """Return whether a node is that of the lines that another one's records were written as."""
    return sink.name == "saveAsTextFile" and any(parent.rdd is node.rdd for parent in sink.parents)


def _moved_on(places: Iterable[RddPlace], goals: tuple[RddNode, ...]) -> list[Traced]:
    moved: list[Traced] = []
    for place in places:
        following = _following(place, goals)
        found = [forward(place.node, place.rows, node) for node in following]
        moved += _with_notes(place, found or [Traced(place.node, place.rows)])
    return moved


def _following(place: RddPlace, goals: tuple[RddNode, ...]) -> list[RddNode]:
    return next_nodes(place.node, goals) if place.node.stops else []


def _results(places: list[RddPlace], goals: tuple[RddNode, ...]) -> list[RddPlace]:
    """Go on from the node that is farthest back, so that rows that meet at a stop are followed once."""
    waiting = {place.node.number: place for place in places}
    found: list[RddPlace] = []
    while waiting:
        place = _kept(waiting.pop(min(waiting)))
        following = _following(place, goals)
        if not following or place.node in goals:
            found.append(place)
        for each in _with_notes(place, [forward(place.node, place.rows, node) for node in following]):
            _wait(waiting, each)
    return found


def _wait(waiting: dict[int, RddPlace], traced: Traced) -> None:
    """Put rows to those that wait at the same node."""
    known = waiting.get(traced.stop.number)
    both = [traced] if known is None else [traced, Traced(known.node, known.rows, known.notes)]
    waiting[traced.stop.number] = _merged(both)[0]


def _goals(
    log: ProgramLog, places: list[RddPlace], targets: tuple[RddNode, ...]
) -> tuple[list[RddPlace], tuple[RddNode, ...]]:
    """The places, and the results to which a way on leads: from a target, those of actions on what comes from it."""
    reached = {place.node for place in places}
    goals: dict[RddNode, None] = {}
    for target in targets:
        further = tuple(log.results_of(target)) if target in reached else ()
        goals.update(dict.fromkeys(further or (target,)))
    for number, place in enumerate(places):
        if not place.node.stops and place.node not in goals:
            mark, goals_of_mark = marked(place.node, tuple(goals))
            places = [*places[:number], replace(place, node=mark), *places[number + 1 :]]
            goals = dict.fromkeys(goals_of_mark)
    return places, tuple(goals)
