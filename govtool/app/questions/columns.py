"""Questions about one version of the graph: names and options in, an answer out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from govtool.errors import UnknownNameError, UsageError
from govtool.model import KIND_BY_LABEL, EdgeKind

if TYPE_CHECKING:
    from govtool.answers.classes import ClassesAnswer
    from govtool.answers.explain import ExplainAnswer
    from govtool.answers.impact import ImpactAnswer
    from govtool.answers.labels import Labels
    from govtool.answers.ls import ListAnswer
    from govtool.answers.path import PathAnswer
    from govtool.answers.suggestions import SuggestionsAnswer
    from govtool.app.questions.selection import Selector
    from govtool.app.questions.subjects import Subjects
    from govtool.app.trace.affected_rows import RowRequest
    from govtool.app.versions.opening import Snapshot
    from govtool.graph.index import Index
    from govtool.query.changes.change import Change
    from govtool.query.selection.select import Subject


class PolicyChoice(NamedTuple):
    """The policies that a question takes into account, and the day on which their expiry dates are judged."""

    policy: Sequence[str] | None
    """As ``--policy`` names them; None: those in the folder ``policies``, if any."""
    day: date


def edge_kinds(labels: Iterable[str] | None) -> list[EdgeKind] | None:
    """Kinds by their labels; None for all.

    Raises:
        UnknownNameError: there is no such kind (``usage.unknown-kind``).
    """
    found = []
    for label in labels or ():
        if label not in KIND_BY_LABEL:
            raise UnknownNameError.of_few("kind", label, KIND_BY_LABEL)
        found.append(KIND_BY_LABEL[label])
    return found or None


def selector(snapshot: Snapshot, policies: PolicyChoice) -> Selector:
    """Return the selector of a version. Named policies are read at once: a mistake in them is never passed over.

    Raises:
        UsageError: A named policy cannot be read, or is mistaken.
    """
    from govtool.app.questions.selection import Selector

    if policies.policy:
        snapshot.governance.policies(policies.policy)
    return Selector(snapshot.index, snapshot.store, snapshot.commit, policies.policy, policies.day, snapshot.governance)


def subjects(snapshot: Snapshot, policies: PolicyChoice) -> Subjects:
    """Return the finder of the subjects of a question; a plain name costs no more than a look-up.

    Raises:
        UsageError: A named policy cannot be read, or is mistaken.
    """
    from govtool.app.questions.subjects import Subjects

    if policies.policy:
        snapshot.governance.policies(policies.policy)
    return Subjects(snapshot.index, lambda: selector(snapshot, policies))


def parse_change(change: str | None, *, to: str | None = None, upstream: bool = False) -> Change | None:
    """The change that ``--change`` names, ``logic`` by default; None upstream, where nothing changes.

    Raises:
        UsageError: There is no such change, it has a value besides ``to``, or it is given with ``upstream``.
    """
    from govtool.query.changes.change import Change

    if to is not None:
        if change is not None and ":" in change:
            raise UsageError(
                f"--change {change} has a value already",
                code="usage.arguments",
                hint=f"leave out --to, or write --change {change.partition(':')[0]} --to {to}",
            )
        change = f"{change or 'rename'}:{to}"
    if not upstream:
        return Change.parse(change or "logic")
    if change:
        raise UsageError("--upstream has no verdicts", code="usage.arguments", hint="leave out --change and --fail-on")
    return None


def impact_answer(
    snapshot: Snapshot,
    column: str,
    policies: PolicyChoice,
    *,
    change: Change | None,
    exclude: Sequence[str],
    depth: int | None,
    kinds: Iterable[EdgeKind] | None,
    semantics: str,
    limit: int | None,
    where: str | None = None,
) -> ImpactAnswer:
    """Answer what a change reaches, or from what the column is derived; see ``govtool.query.changes.impact``.

    Raises:
        UsageError: Policies are mistaken, or the arguments make no sense together; see also ``affected_rows``.
        UnknownNameError: There is no such column or dataset.
    """
    from govtool.answers.impact import ImpactAnswer
    from govtool.app.coverage.unread import version_for
    from govtool.query.changes.impact import impact
    from govtool.query.selection.select import nothing_selected

    index = snapshot.index
    labels = snapshot.governance.labels(*policies)
    about = subjects(snapshot, policies).find(column, exclude)
    if not about:
        raise nothing_selected(texts=[column])
    result = impact(
        index,
        about,
        direction="down" if change else "up",
        depth=depth,
        kinds=kinds,
        change=change,
        semantics=semantics,
        limit=limit if where is None else None,
    )
    owners = {labels.owner(index.dataset_name(one.dataset)) for one in about}
    answer = ImpactAnswer(
        version_for(snapshot, [one.dataset for one in about], backward=change is None),
        result,
        subject_classes=_classes_of(index, about, labels),
        subject_owner=owners.pop() if len(owners) == 1 else None,
        _index=index,
        _labels=labels,
        _guard=snapshot.guard,
    )
    if where is None:
        return answer
    from govtool.app.trace.affected_rows import affected_rows

    request = _row_request(index, about, where, answer)
    return replace(answer, affected=affected_rows(snapshot.store, snapshot.commit, request)).head(limit)


def _row_request(index: Index, about: Sequence[Subject], where: str, answer: ImpactAnswer) -> RowRequest:
    """The question about rows: of one dataset, downstream.

    Raises:
        UsageError: Columns of several datasets are selected, or sources are asked for.
    """
    from govtool.app.trace.affected_rows import RowRequest

    if answer.result.direction == "up":
        raise UsageError("--where follows rows downstream only", code="usage.arguments", hint="leave out --upstream")
    selected = sorted({index.dataset_name(one.dataset) for one in about})
    if len(selected) > 1:
        raise UsageError(
            f"--where is about the rows of one dataset; {len(selected)} are selected",
            code="usage.arguments",
            nearest=tuple(selected[:5]),
        )
    reached = {entry.dataset for entry in answer.result.columns} - set(selected)
    return RowRequest(selected[0], where, tuple(sorted(reached)))


def _classes_of(index: Index, about: Iterable[Subject], labels: Labels) -> tuple[str, ...]:
    """The classes of columns, and of all columns of datasets."""
    if labels.is_empty():
        return ()
    nodes = (node for one in about for node in (index.columns(one.dataset) if one.node is None else (one.node,)))
    return tuple(sorted({name for node in nodes for name in labels.classes(node)}))


SHOWN_WAYS = 5
"""Ways of ``path`` unless ``--limit`` asks for another number."""


def path_answer(
    snapshot: Snapshot,
    start: str,
    end: str,
    policies: PolicyChoice,
    *,
    kinds: Iterable[EdgeKind] | None,
    semantics: str,
    limit: int | None,
) -> PathAnswer:
    """The shortest ways from one column to another; see ``govtool.query.path``.

    Raises:
        UsageError: A named policy is mistaken, or a selector is.
        UnknownNameError: There is no such column or dataset.
    """
    from govtool.answers.path import PathAnswer
    from govtool.app.coverage.unread import version_for
    from govtool.query.path import paths

    about = subjects(snapshot, policies)
    most = SHOWN_WAYS if limit is None else limit
    starts, ends = about.find(start), about.find(end)
    found = paths(snapshot.index, starts, ends, most, kinds=kinds, semantics=semantics)
    return PathAnswer(version_for(snapshot, [one.dataset for one in starts]), found)


def explain_answer(
    snapshot: Snapshot, column: str, policies: PolicyChoice, *, exclude: Sequence[str], limit: int | None
) -> ExplainAnswer:
    """Answer where columns and datasets come from and who reads them; see ``govtool.query.explain``.

    ``limit`` is how many columns and datasets are explained at most, and how many entries each list of one has.

    Raises:
        UsageError: Nothing is selected, a named policy is mistaken, or a selector is.
        UnknownNameError: There is no such column or dataset.
    """
    from govtool.answers.explain import ExplainAnswer, Explained, facts_about
    from govtool.app.questions.facts import facts_by_dataset, read_facts
    from govtool.app.runs.lookup import read_history
    from govtool.query.explain import explain
    from govtool.query.selection.select import nothing_selected

    about = subjects(snapshot, policies).find(column, exclude)
    if not about:
        raise nothing_selected(texts=[column])
    several = len(about) > 1

    @cache
    def executions() -> dict[str, str]:
        history = read_history(snapshot.store, snapshot.commit)
        return {record: run.id for run in history.runs for record in run.ids}

    results = [
        explain(snapshot.index, one, limit=limit, executions=executions)
        for one in (about[:limit] if several else about)
    ]
    datasets = {one.dataset for one in results}
    if several:
        facts = facts_by_dataset(snapshot.store, snapshot.commit, datasets)
    else:
        facts = {name: list(read_facts(snapshot.store, snapshot.commit, name)) for name in datasets}
    found = tuple(Explained(one, facts_about(one, facts.get(one.dataset, ()))) for one in results)
    return ExplainAnswer(snapshot.version, found, several, len(about) - len(found))


def list_answer(
    snapshot: Snapshot, selectors: Sequence[str], policies: PolicyChoice, *, exclude: Sequence[str], columns: bool
) -> ListAnswer:
    """The datasets and columns that selectors select, by name.

    Raises:
        UsageError: A named policy is mistaken, or a selector is.
    """
    from govtool.answers.ls import ListAnswer, Listed

    index = snapshot.index
    selection = selector(snapshot, policies).select(selectors, exclude)
    nodes = list(selection.columns)
    if columns:
        nodes += [n for dataset in selection.datasets for n in index.columns(dataset) if not index.is_unknown(n)]
    found = [Listed(index.name(n), "column", index.type(n), 1) for n in nodes]
    if not columns:
        found += [
            Listed(index.dataset_name(d), index.dataset_kind(d), None, index.column_count(d), _place(index, d))
            for d in selection.datasets
        ]
    return ListAnswer(snapshot.version, tuple(sorted(found, key=lambda entry: (entry.name, entry.kind))))


def _place(index: Index, dataset: int) -> str | None:
    """Where the text of a query is; None of other datasets, which have names."""
    from govtool.query.evidence import evidence

    makers = index.makers(dataset) if index.dataset_kind(dataset) == "query" else []
    first = min((evidence(index, maker) for maker in makers), key=lambda e: (e.first_seen or "", e.place), default=None)
    if first is None:
        return None
    return f"{first.place}, {first.first_seen}" if first.first_seen else first.place


def suggestions_answer(
    snapshot: Snapshot, selectors: Sequence[str], policies: PolicyChoice, *, exclude: Sequence[str], least: float
) -> SuggestionsAnswer:
    """The classes that columns may deserve; see ``govtool.policy.suggest``.

    Raises:
        UsageError: Policies are mistaken, or a selector is.
    """
    from govtool.answers.suggestions import SuggestionsAnswer
    from govtool.app.questions.facts import read_facts
    from govtool.policy.classes.taints import Mode
    from govtool.policy.suggest import suggestions

    index, selecting = snapshot.index, selector(snapshot, policies)
    descriptions: dict[int, list[str]] = {}
    for fact in read_facts(snapshot.store, snapshot.commit):
        dataset = index.find_dataset(fact.dataset) if fact.name == "description" and fact.column is not None else None
        node = None if dataset is None else index.find_column(dataset, fact.column or "")
        if node is not None:
            descriptions.setdefault(node, []).append(fact.value)
    nodes = set(selecting.select(selectors, exclude).nodes(index))
    governed = selecting.known
    classified = {int(node) for mode in Mode for node in governed.spread.having(mode, governed.spread.taints)}
    texts = {node: "; ".join(parts) for node, parts in descriptions.items()}
    found = sorted(suggestions(index, nodes, texts, classified, least), key=lambda one: (-one.confidence, one.column))
    return SuggestionsAnswer(snapshot.version, tuple(found), len(nodes & classified))


def classes_answer(
    snapshot: Snapshot, selectors: Sequence[str], policies: PolicyChoice, *, exclude: Sequence[str], direct: bool
) -> ClassesAnswer:
    """The classes of columns, and the ways by which they came; see ``govtool.policy.classes.provenance_paths``.

    Raises:
        UsageError: There are no policies, they are mistaken, or a selector is.
    """
    from govtool.answers.classes import ClassesAnswer
    from govtool.policy.classes.provenance_paths import why

    index, selecting = snapshot.index, selector(snapshot, policies)
    spread = selecting.governed.spread
    selection = selecting.select(selectors, exclude)
    nodes = {*selection.nodes(index), *(index.rows(dataset) for dataset in selection.datasets)}
    return ClassesAnswer(snapshot.version, tuple(why(spread, nodes, direct_only=direct)))
