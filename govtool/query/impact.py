"""Impact of a change to a column or dataset downstream, and its sources upstream.

Verdicts are those of ``govtool.query.change``. The rows of a dataset that are reached are one entry, ``dataset.*``,
which stands for all columns of the dataset; columns that are reached by themselves have entries of their own beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from govtool.errors import UsageError
from govtool.graph.index import Index
from govtool.graph.rules import Reach, Reached, Rules
from govtool.graph.walk import SMALL, walk
from govtool.model.diagnostic import Diagnostic
from govtool.model.kinds import EdgeKind
from govtool.query.change import Change, ChangeVerdict, followed, rules, seed_states, upstream_rules
from govtool.query.evidence import Evidence, WayStep, evidences, parallel, step
from govtool.query.positions import Positions
from govtool.query.select import Subject, few, nothing_selected, select
from govtool.query.subjects import SubjectPart, reached_subjects, with_subjects
from govtool.query.types import retype_action, same_type


@dataclass(frozen=True, slots=True)
class Impacted:
    """A column that is reached, or the rows of a dataset."""

    column: str
    """Canonical text; ``dataset.*`` for the rows, which imply every column."""
    dataset: str
    dataset_kind: str
    verdict: ChangeVerdict | None
    """``None`` upstream."""
    kinds: tuple[EdgeKind, ...]
    """The kinds of the edges by which the reach enters the column, sorted."""
    hops: int
    """Datasets that the shortest way with this verdict enters, temporary ones not counted."""
    path: tuple[str, ...]
    """That way: canonical texts from the subject to this column, temporary datasets left out."""
    via: tuple[str, ...]
    """The label of each of its hops: ``copy``, ``lower()``, ``join key``."""
    evidence: tuple[Evidence, ...]
    """The statements behind the last hop: that of the column first, then those of temporary datasets before it."""
    steps: tuple[WayStep, ...]
    """The way edge by edge, temporary datasets included."""
    is_rows: bool = False
    columns: int = 1
    """For rows: how many top-level columns the dataset has."""
    implied: int = 0
    """For rows: how many of them have no entry of their own."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """The diagnostics of the statements of ``evidence``."""
    classes: tuple[str, ...] = ()
    """The classes of its values, sorted. Queries know no policies: whoever knows them fills this in."""
    possible_classes: tuple[str, ...] = ()
    """Classes that it may have besides: whether it does could not be decided. Filled in like ``classes``."""
    owner: str | None = None
    """The owner of the dataset. Filled in like ``classes``."""
    node: int = field(default=-1, compare=False, repr=False)
    """Its number in the index that was asked."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of the whole answer, whatever the limit. Columns implied by rows are counted one by one."""

    verdicts: tuple[tuple[ChangeVerdict, int], ...]
    """Columns per verdict, the worst first; empty upstream."""
    columns: int
    """Columns reached."""
    datasets: int
    no_path: int
    """Top-level columns of the graph to which no path was found, subjects left out."""
    entries: int
    """Entries there are in all; the answer has fewer if ``ImpactResult.truncated``."""
    hidden: int = 0
    """Columns that are reached, but not within ``depth``, or not by edges of the ``kinds`` that were asked for."""


@dataclass(frozen=True, slots=True)
class ImpactResult:
    """The answer, sorted by verdict, hops and name."""

    subject: str
    subject_kind: str
    """``column``, ``dataset``, or ``selection`` for several."""
    direction: str
    change: Change | None
    columns: tuple[Impacted, ...]
    summary: Summary
    truncated: int
    """Number of entries left out by the limit."""
    subjects: tuple[str, ...] = ()
    """Each of what was asked about."""
    unchanged: tuple[str, ...] = ()
    """Those of them that are declared to be of the type that they are to have: nothing happens to these."""
    depth: int | None = None
    """Hops that were gone at most; None: all."""
    kinds: tuple[str, ...] = ()
    """Kinds of edges that were followed, sorted; empty: all."""
    reached_subjects: tuple[str, ...] = ()
    """The subjects downstream of another, sorted; these have entries, as everything else that is reached."""


def impact(
    index: Index,
    subject: str | Subject | Sequence[Subject],
    *,
    direction: str = "down",
    depth: int | None = None,
    kinds: Iterable[EdgeKind] | None = None,
    change: Change | None = None,
    semantics: str = "precise",
    limit: int | None = None,
    small: int = SMALL,
) -> ImpactResult:
    """Compute what a change reaches, or (``direction="up"``) what a column or dataset is made of.

    Args:
        index: The graph.
        subject: A column or dataset, by name or as selected; or several at once.
        direction: ``down`` or ``up``.
        depth: Hops to go at most.
        kinds: Follow only edges of these kinds.
        change: What happens to the subject; ``logic`` by default. Downstream only.
        semantics: ``precise`` or ``lineagex``, see ``govtool.query.change.rules``.
        limit: Entries to return at most; the summary is of all.
        small: See ``govtool.graph.walk.walk``.

    Raises:
        UnknownNameError: No such column or dataset.
        AmbiguousNameError: Several.
        UsageError: Arguments that make no sense together.
    """
    if direction not in ("down", "up"):
        raise UsageError(f"{direction!r} is not a direction", code="usage.direction", nearest=("down", "up"))
    if depth is not None and depth < 0:
        raise UsageError(f"A depth of {depth} makes no sense", code="usage.depth", hint="--depth 1")
    if isinstance(subject, str):
        subject = select(index, subject)
    about = (subject,) if isinstance(subject, Subject) else tuple(subject)
    if not about:
        raise nothing_selected()
    if change is not None and change.kind == "rename":
        _require_free(index, about, change)
    wanted = None if kinds is None else frozenset(kinds)
    idle: list[Subject] = []
    if direction == "up":
        followed_rules = partial(upstream_rules, semantics=semantics)
        chosen = None
        seeds_of = partial(_upstream_seeds, index)
    else:
        chosen = change or Change()
        whole = next((one for one in about if one.is_dataset), None)
        if whole is not None and chosen.kind == "retype":
            raise UsageError(
                f"{whole.text} is a dataset; a column is retyped", code="usage.change", hint=f"{whole.text}.COLUMN"
            )
        check, moved = _checks(index, chosen)
        followed_rules = partial(rules, chosen, semantics=semantics, check=check, moved=moved)
        idle = [one for one in about if _is_already(index, one, chosen)]
        seeds_of = partial(_seeds, index, chosen)
    parts = [_part(index, one, direction, () if one in idle else seeds_of(one)) for one in about]
    seeds = [seed for part in parts for seed in part.seeds]
    backward, own = direction == "up", [node for part in parts for node in part.own]
    walk_rules = followed_rules(kinds=wanted)
    walk_from = partial(walk, index, rules=walk_rules, backward=backward, depth=depth, small=small)
    reach = walk_from(seeds)
    among = [] if backward else reached_subjects(index, parts, walk_rules.rank, walk_from)
    ranking = with_subjects(index, reach, parts, among, limit)
    affected = ranking.affected
    if depth is not None or wanted is not None:
        everything = walk(index, seeds, followed_rules(kinds=None), backward=backward, small=small)
        affected = everything.ranking(own, 0).affected
    write = partial(_EntryWriter, index, walk_rules, direction, followed(wanted, semantics), about)
    writers = {one.found.node: write(one.reach) for one in among}
    writer = write(reach)
    columns = tuple(writers.get(found.node, writer).entry_of(found) for found in ranking.shown)
    verdicts = tuple((v, ranking.columns[v]) for v in ChangeVerdict) if chosen else ()
    visible = sum(_visible(index, one) for one in about)
    summary = Summary(
        verdicts=verdicts,
        columns=sum(ranking.columns),
        datasets=ranking.datasets,
        no_path=max(0, index.meta["columns"] - visible - affected),
        entries=ranking.total,
        hidden=max(0, affected - ranking.affected),
    )
    kind = "selection" if len(about) > 1 else "dataset" if about[0].is_dataset else "column"
    names = tuple(one.text for one in about)
    truncated = ranking.total - len(columns)
    unchanged = tuple(one.text for one in idle)
    labels = tuple(sorted(one.label for one in wanted or ()))
    reached = tuple(sorted({one.text for one in among}))
    return ImpactResult(
        few(names), kind, direction, chosen, columns, summary, truncated, names, unchanged, depth, labels, reached
    )


def _require_free(index: Index, subjects: Iterable[Subject], change: Change) -> None:
    """Refuse a new name that another column of the dataset, or another dataset, has: the database would.

    Raises:
        UsageError: ``usage.name-taken``.
    """
    new = change.to or ""
    for one in subjects:
        if one.node is None:
            taken, current = index.find_dataset(new) is not None, one.text
        else:
            current = index.path(one.node)
            path = f"{current.rpartition('.')[0]}.{new}".lstrip(".")
            node = index.find_column(one.dataset, path)
            taken = node is not None and not index.is_unknown(node)
        if taken and new not in (current, current.rpartition(".")[2]):
            raise UsageError(
                f"{one.text} cannot become {new}: there is one already",
                code="usage.name-taken",
                hint=f"govtool explain {index.dataset_name(one.dataset) if one.node is not None else new}",
            )


def _is_already(index: Index, subject: Subject, change: Change) -> bool:
    """Return whether a column is to have the type that it is declared with."""
    node = subject.node
    if change.kind != "retype" or node is None or not index.is_declared(node):
        return False
    return same_type(index.type(node), change.to)


_Check = Callable[[int], int] | None
_Moved = Callable[[int], Sequence[tuple[int, int]]] | None


def _checks(index: Index, change: Change) -> tuple[_Check, _Moved]:
    """Return the influences on an edge besides its tag, and on the outputs beside its own."""
    if change.kind == "retype":
        return partial(retype_action, index, change.to or ""), None
    by_star = Positions(index)
    if change.kind == "drop":
        return by_star.dropped, by_star.moved_by_drop
    return (by_star.renamed, by_star.moved_by_rename) if change.kind == "rename" else (None, None)


def _visible(index: Index, subject: Subject) -> int:
    """The top-level columns of a subject that answers count."""
    if index.is_elided(subject.dataset):
        return 0
    return index.column_count(subject.dataset) if subject.is_dataset else int(not index.containers(subject.node or 0))


def expand(index: Index, result: ImpactResult) -> Iterator[Impacted]:
    """One entry a column: each rows entry is followed by an entry for every column that it implies.

    Columns that have an entry of their own, or fields that do, are not repeated. A column of a truncated result that
    was left off may appear here under its rows.
    """
    listed = {entry.column for entry in result.columns} | set(result.subjects)
    for entry in result.columns:
        yield entry
        dataset = index.find_dataset(entry.dataset) if entry.is_rows else None
        if dataset is None:
            continue
        for node in index.columns(dataset):
            name = index.name(node)
            if index.container(node) is None and not index.is_unknown(node) and name not in listed:
                yield replace(entry, column=name, is_rows=False, columns=1, implied=0, node=node)


def _part(index: Index, subject: Subject, direction: str, seeds: Iterable[int]) -> SubjectPart:
    """A subject for walks; its own nodes are no part of what it reaches."""
    return SubjectPart(subject.text, tuple(seeds), tuple(_subjects(index, subject, direction)), subject.is_dataset)


def _seeds(index: Index, change: Change, subject: Subject) -> list[int]:
    column, rows = (int(state) * index.node_count for state in seed_states(change))
    if subject.node is not None:
        return [column + subject.node]
    if change.kind == "rename":
        # Whoever reads the dataset names it: its columns need no states of their own.
        return [rows + index.rows(subject.dataset)]
    return [rows + index.rows(subject.dataset), *(column + node for node in index.columns(subject.dataset))]


def _upstream_seeds(index: Index, subject: Subject) -> list[int]:
    rows = index.rows(subject.dataset)
    if subject.node is not None:
        # What decides over the rows decides over the column.
        return [subject.node, rows]
    return [rows, *index.columns(subject.dataset)]


def _subjects(index: Index, subject: Subject, direction: str) -> list[int]:
    """The nodes that a subject is about: it does not reach itself."""
    rows = index.rows(subject.dataset)
    if subject.node is None:
        return [rows, *index.columns(subject.dataset)]
    return [subject.node] if direction == "down" else [rows, subject.node]


class _EntryWriter:
    """Turns what was reached into entries."""

    def __init__(
        self,
        index: Index,
        rules: Rules,
        direction: str,
        follow: frozenset[int],
        subjects: tuple[Subject, ...],
        reach: Reach,
    ) -> None:
        self.index = index
        self.reach = reach
        self.states = rules.states
        self.down = direction == "down"
        self.follow = follow
        self.subjects = subjects
        self._diagnostics: dict[int, tuple[Diagnostic, ...]] = {}

    def entry_of(self, found: Reached) -> Impacted:
        index, node = self.index, found.node
        dataset = index.node_dataset[node]
        way = self._way(found.key)
        steps = tuple(self._step(*hop) for hop in way)
        is_rows = index.is_rows(node)
        last = self._last(way)
        return Impacted(
            column=index.name(node),
            dataset=index.dataset_name(dataset),
            dataset_kind=index.dataset_kind(dataset),
            verdict=ChangeVerdict(found.rank) if self.down else None,
            kinds=self._kinds(node, way),
            hops=found.hops,
            path=self._path(way, self._start(found.key)),
            via=self._via(steps),
            evidence=tuple(dict.fromkeys(e for edges in last for e in evidences(index, edges))),
            steps=steps,
            is_rows=is_rows,
            columns=index.column_count(dataset) if is_rows else 1,
            implied=found.implied,
            diagnostics=self._remarks(last),
            node=node,
        )

    def _remarks(self, hop: list[list[int]]) -> tuple[Diagnostic, ...]:
        """The diagnostics of the statements behind a hop; most have none, and many hops share a statement."""
        index, known = self.index, self._diagnostics
        found: list[Diagnostic] = []
        for derivation in {index.derivation_of(edge) for edges in hop for edge in edges}:
            if derivation not in known:
                known[derivation] = index.diagnostics(derivation)
            found += known[derivation]
        return tuple(sorted(dict.fromkeys(found), key=Diagnostic.sort_key)) if found else ()

    def _way(self, key: int) -> list[tuple[int, int]]:
        """Edges in their own direction, each with the node that it reached (that it came from, upstream)."""
        way: list[tuple[int, int]] = []
        while (before := self.reach.step(key)) is not None:
            way.append((before[1], key % self.index.node_count))
            key = before[0]
        if self.down:
            way.reverse()
        return way

    def _step(self, edge: int, node: int) -> WayStep:
        return step(self.index, edge, node if self.down else None)

    def _start(self, key: int) -> str:
        """Return the subjects that a way comes from, or leads to."""
        if len(self.subjects) == 1:
            return self.subjects[0].text
        while (before := self.reach.step(key)) is not None:
            key = before[0]
        node = key % self.index.node_count
        exact = [one.text for one in self.subjects if one.node == node]
        return exact[0] if exact else next(s.text for s in self.subjects if s.dataset == self.index.node_dataset[node])

    def _path(self, way: list[tuple[int, int]], start: str) -> tuple[str, ...]:
        index = self.index
        nodes = [index.name(node) for _, node in way if not index.is_elided(index.node_dataset[node])]
        return (start, *nodes) if self.down else (*nodes, start)

    def _via(self, steps: tuple[WayStep, ...]) -> tuple[str, ...]:
        """Labels hop by hop; the steps through a temporary dataset are one hop, and its copies go without saying."""
        found: list[str] = []
        passing: list[str] = []
        for i, one in enumerate(steps):
            passing.append(one.label)
            if one.elided and i + 1 < len(steps):
                continue
            telling = [label for label in passing if label != "copy"] or ["copy"]
            found.append(" → ".join(dict.fromkeys(telling)))
            passing = []
        return tuple(found)

    def _last(self, way: list[tuple[int, int]]) -> list[list[int]]:
        """The edges of the last hop with those parallel to them, from its end back through temporary datasets."""
        index = self.index
        hop: list[list[int]] = []
        for edge, _ in reversed(way) if self.down else way:
            start, end = index.ends(edge)
            from_node = start if self.down else end
            hop.append(parallel(index, edge))
            if not index.is_elided(index.node_dataset[from_node]):
                break
        return hop

    def _kinds(self, node: int, way: list[tuple[int, int]]) -> tuple[EdgeKind, ...]:
        index = self.index
        last = way[-1 if self.down else 0][0] if way else None
        found = set() if last is None or index.is_reference(last) else {index.kind(last)}
        edges: Iterable[int] = index.in_edges(node) if self.down else index.out_edges(node)
        for edge in edges:
            kind = index.kind(edge)
            if kind in self.follow and kind not in found:
                end = index.edge_source[edge] if self.down else index.edge_target[edge]
                if self._reached(end) or (self.down and kind is not EdgeKind.READ and self._any(end)):
                    found.add(kind)
        return tuple(sorted(found))

    def _reached(self, node: int) -> bool:
        index = self.index
        around = (node, *index.containers(node), *index.fields(node)) if len(index.nested) else (node,)
        return any(state * index.node_count + one in self.reach for one in around for state in range(self.states))

    def _any(self, node: int) -> bool:
        """Return whether any column is reached of the dataset whose row set this is."""
        index = self.index
        if not index.is_rows(node):
            return False
        return any(self._reached(column) for column in index.columns(index.node_dataset[node]))
