"""Impact of a change to a column or dataset downstream, and its sources upstream.

Verdicts are those of ``change``. The rows of a dataset that are reached are one entry, ``dataset.*``,
which stands for all columns of the dataset; columns that are reached by themselves have entries of their own beside it.
Upstream it is the same turned round: a column is listed that has the subject in its own answer. There the rows of a
dataset stand for its columns only where any of them may be read; else it is the rows alone that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Protocol

from govtool.errors import UsageError
from govtool.graph.index import Index
from govtool.graph.walks.rules import Ranking, Reach, Rules
from govtool.graph.walks.walk import SMALL, walk
from govtool.model.kinds import EdgeKind
from govtool.query.changes.change import (
    Change,
    ChangeVerdict,
    SourceState,
    followed,
    rules,
    seed_states,
    upstream_rules,
)
from govtool.query.changes.impact_entries import EntryWriter, Impacted, ImpactLine
from govtool.query.changes.positions import Positions
from govtool.query.changes.subjects import SubjectPart, reached_subjects, read_subjects, with_subjects
from govtool.query.changes.types import not_compared, retype_action, same_type
from govtool.query.selection.select import Subject, nothing_selected, select
from govtool.wording import few


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of the whole answer, regardless of the limit. Columns implied by rows are counted one by one."""

    verdicts: tuple[tuple[ChangeVerdict, int], ...]
    """Columns per verdict, the worst first; empty upstream."""
    bare: tuple[tuple[ChangeVerdict, int], ...]
    """The same of datasets that are reached as a whole, and of which no column is known."""
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
    lines: tuple[ImpactLine, ...] = ()
    """The entries as a table lists them; the limit is for these by themselves."""
    truncated_lines: int = 0
    """Number of lines left out by the limit."""
    reached_subjects: tuple[str, ...] = ()
    """The subjects that others reach, sorted: downstream of them, or upstream as the answer is. They have entries, as
    everything else that is reached."""

    @property
    def not_compared(self) -> str:
        """Why no incompatibility with a new type can be proved; empty where the type is compared with others."""
        change = self.change
        retyped = change is not None and change.kind == "retype" and self.unchanged != self.subjects
        return not_compared(change.to) if change is not None and retyped else ""


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
    """Compute what a change reaches, or (``direction="up"``) from what a column or dataset is derived.

    Args:
        index: The graph.
        subject: A column or dataset, by name or as selected; or several at once.
        direction: ``down`` or ``up``.
        depth: Hops to go at most.
        kinds: Follow only edges of these kinds.
        change: What happens to the subject; ``logic`` by default. Downstream only.
        semantics: ``precise`` or ``lineagex``, see ``govtool.query.changes.change.rules``.
        limit: Entries, and lines, to return at most; the summary is of all.
        small: See ``govtool.graph.walks.walk.walk``.

    Raises:
        UnknownNameError: No such column or dataset.
        AmbiguousNameError: Several.
        UsageError: Arguments that make no sense together.
    """
    _check_request(direction, depth)
    about = _selected(index, subject)
    _require_free(index, about, change)
    chosen = None if direction == "up" else change or Change()
    plan = _upstream(index, semantics) if chosen is None else _downstream(index, about, chosen, semantics)
    wanted = None if kinds is None else frozenset(kinds)
    parts = [_part(index, one, direction, () if one in plan.idle else plan.seeds_of(one)) for one in about]
    seeds = list(chain.from_iterable(part.seeds for part in parts))
    backward = direction == "up"
    walk_rules = plan.rules(kinds=wanted)
    walk_from = partial(walk, index, rules=walk_rules, backward=backward, depth=depth, small=small)
    reach = walk_from(seeds)
    among = (read_subjects if backward else reached_subjects)(index, parts, walk_rules, walk_from)
    ranking = with_subjects(index, reach, walk_rules, parts, among, limit)
    affected = ranking.affected
    if depth is not None or wanted is not None:
        affected = _affected(parts, walk(index, seeds, plan.rules(kinds=None), backward=backward, small=small))
    write = partial(EntryWriter, index, walk_rules, direction, followed(wanted, semantics), about)
    own, others = write(reach), {one.found.node: write(one.reach) for one in among}
    listed = {each.node: each for each in (*ranking.lines, *ranking.shown)}
    entries = {node: others.get(node, own).entry_of(each) for node, each in listed.items()}
    columns = tuple(entries[each.node] for each in ranking.shown)
    names = tuple(one.text for one in about)
    return ImpactResult(
        subject=few(names),
        subject_kind=_kind(about),
        direction=direction,
        change=chosen,
        columns=columns,
        summary=_summary(index, ranking, about, affected, with_verdicts=chosen is not None),
        truncated=ranking.total - len(columns),
        lines=tuple(_lines(index, ranking, entries)),
        truncated_lines=ranking.line_total - len(ranking.lines),
        subjects=names,
        unchanged=tuple(one.text for one in plan.idle),
        depth=depth,
        kinds=tuple(sorted(one.label for one in wanted or ())),
        reached_subjects=tuple(sorted({one.text for one in among} - {""})),
    )


def _affected(parts: Sequence[SubjectPart], everything: Reach) -> int:
    """How many columns are reached where nothing limits the walk."""
    return everything.ranking(list(chain.from_iterable(part.own for part in parts)), 0).affected


def _lines(index: Index, ranking: Ranking, entries: Mapping[int, Impacted]) -> Iterator[ImpactLine]:
    parts: dict[int, list[str]] = {}
    for found in ranking.folded:
        dataset = index.node_dataset[found.node]
        parts.setdefault(dataset, []).append(index.path(found.node))
    for found in ranking.lines:
        names = parts.get(index.node_dataset[found.node], ()) if index.is_rows(found.node) else ()
        yield ImpactLine(entries[found.node], tuple(names))


def _selected(index: Index, subject: str | Subject | Sequence[Subject]) -> tuple[Subject, ...]:
    if isinstance(subject, str):
        subject = select(index, subject)
    about = (subject,) if isinstance(subject, Subject) else tuple(subject)
    if not about:
        raise nothing_selected()
    return about


def _check_request(direction: str, depth: int | None) -> None:
    if direction not in ("down", "up"):
        raise UsageError(f"{direction!r} is not a direction", code="usage.direction", nearest=("down", "up"))
    if depth is not None and depth < 0:
        raise UsageError(f"a depth of {depth} is not possible", code="usage.depth", hint="--depth 1")


class _RulesOf(Protocol):
    """Makes the rules of a walk that follows only edges of some kinds; None: all."""

    def __call__(self, *, kinds: frozenset[EdgeKind] | None) -> Rules: ...


@dataclass(frozen=True, slots=True)
class _WalkPlan:
    """What a direction and a change mean for a walk."""

    rules: _RulesOf
    seeds_of: Callable[[Subject], list[int]]
    """The states from which the walk starts for a subject."""
    idle: tuple[Subject, ...] = ()
    """Subjects that the change leaves as they are: the walk starts at none of them."""


def _upstream(index: Index, semantics: str) -> _WalkPlan:
    return _WalkPlan(partial(upstream_rules, semantics=semantics), partial(_upstream_seeds, index))


def _downstream(index: Index, subjects: Sequence[Subject], change: Change, semantics: str) -> _WalkPlan:
    """The walk of a change.

    Raises:
        UsageError: A dataset is to be of another type.
    """
    whole = next((one for one in subjects if one.is_dataset), None)
    if whole is not None and change.kind == "retype":
        raise UsageError(
            f"{whole.text} is a dataset; a column is retyped", code="usage.change", hint=f"{whole.text}.COLUMN"
        )
    check, moved = _checks(index, change)
    return _WalkPlan(
        partial(rules, change, semantics=semantics, check=check, moved=moved),
        partial(_seeds, index, change),
        tuple(one for one in subjects if _is_already(index, one, change)),
    )


def _kind(subjects: Sequence[Subject]) -> str:
    if len(subjects) > 1:
        return "selection"
    return "dataset" if subjects[0].is_dataset else "column"


def _summary(
    index: Index, ranking: Ranking, subjects: Iterable[Subject], affected: int, *, with_verdicts: bool
) -> Summary:
    """Count what is reached; ``affected`` columns are counted regardless of the request's depth and kinds."""
    visible = sum(_visible(index, one) for one in subjects)
    return Summary(
        verdicts=tuple((verdict, ranking.columns[verdict]) for verdict in ChangeVerdict) if with_verdicts else (),
        bare=tuple((verdict, ranking.bare[verdict]) for verdict in ChangeVerdict) if with_verdicts else (),
        columns=sum(ranking.columns),
        datasets=ranking.datasets,
        no_path=max(0, index.meta["columns"] - visible - affected),
        entries=ranking.total,
        hidden=max(0, affected - ranking.affected),
    )


def _require_free(index: Index, subjects: Iterable[Subject], change: Change | None) -> None:
    """Refuse to rename to the name of another column of the dataset, or of another dataset, as a database would.

    Raises:
        UsageError: ``usage.name-taken``.
    """
    if change is None or change.kind != "rename":
        return
    new = change.to or ""
    for one in subjects:
        name = one.text if one.node is None else index.path(one.node)
        beside = f"{name.rpartition('.')[0]}.{new}".lstrip(".")
        if name in (new, beside):
            raise UsageError(f"{one.text} has that name already", code="usage.name-taken", hint="--to another name")
        if one.node is None:
            taken = index.find_dataset(new) is not None or index.find_dataset(beside) is not None
        else:
            node = index.find_column(one.dataset, beside)
            taken = node is not None and not index.is_unknown(node)
        if taken:
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
    """One entry a column: each rows entry that implies columns is followed by an entry for each of them.

    Columns that have an entry of their own, or fields that do, are not repeated. A column of a truncated result that
    was left off may appear here under its rows.
    """
    listed = {entry.column for entry in result.columns} | set(result.subjects)
    for entry in result.columns:
        yield entry
        dataset = index.find_dataset(entry.dataset) if entry.is_rows and not entry.rows_only else None
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
    value, rows = (int(state) * index.node_count for state in (SourceState.VALUE, SourceState.ROWS))
    # What decides over the rows decides over the column.
    columns = index.columns(subject.dataset) if subject.node is None else (subject.node,)
    return [rows + index.rows(subject.dataset), *(value + node for node in columns)]


def _subjects(index: Index, subject: Subject, direction: str) -> list[int]:
    """The nodes that a subject is about: it does not reach itself."""
    rows = index.rows(subject.dataset)
    if subject.node is None:
        return [rows, *index.columns(subject.dataset)]
    return [subject.node] if direction == "down" else [rows, subject.node]
