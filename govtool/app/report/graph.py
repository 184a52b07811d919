"""The graph that a report draws, and the report of one version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from govtool.errors import UnknownNameError, UsageError
from govtool.query.evidence import RUNTIME, step_label
from govtool.redaction import clean_text
from govtool.report.model import ColumnView, DatasetView, EdgeView, LineageView, StatementView, ViewNode

if TYPE_CHECKING:
    from govtool.answers.check import CheckAnswer
    from govtool.answers.coverage_report import CoverageAnswer
    from govtool.answers.diff import DiffAnswer
    from govtool.answers.erase import ErasePlanAnswer
    from govtool.answers.labels import Labels
    from govtool.answers.report import FolderCoverage, ReportAnswer
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.questions.selection import Selector
    from govtool.app.versions.opening import Snapshot
    from govtool.graph.index import Index

MAX_SQL = 4000
"""Characters of a statement that a report shows at most; the store keeps no more."""
_NOTHING = "usage.nothing-selected"


def graph_view(
    snapshot: Snapshot, policies: PolicyChoice, selectors: Sequence[str] = (), exclude: Sequence[str] = ()
) -> LineageView:
    """The part of a version that selectors select, dataset by dataset; all of it without selectors.

    Raises:
        UsageError: A selector selects nothing (``usage.nothing-selected``) or is mistaken, or a policy is.
        UnknownNameError: A selector names something that does not exist.
    """
    index = snapshot.index.resident()
    chosen = _chosen(snapshot, policies, selectors, exclude)
    return ViewBuilder(index, chosen, ViewLabels(snapshot, policies)).build()


def _chosen(
    snapshot: Snapshot, policies: PolicyChoice, selectors: Sequence[str], exclude: Sequence[str]
) -> Sequence[int]:
    """The numbers of the datasets in the report, in order."""
    from govtool.app.questions.columns import selector
    from govtool.query.selection.select import nothing_selected

    index = snapshot.index
    if not selectors and not exclude:
        return range(index.dataset_count)
    selection = selector(snapshot, policies).select(selectors, exclude)
    wanted = {*selection.datasets, *(index.node_dataset[node] for node in selection.columns)}
    if not wanted:
        raise nothing_selected()
    return sorted(wanted | _passed(index.resident(), wanted))


def _passed(index: Index, wanted: set[int]) -> set[int]:
    """The temporary datasets between chosen ones: answers pass through them."""
    below = _temporary_around(index, wanted, down=True)
    return below & _temporary_around(index, wanted, down=False)


def _temporary_around(index: Index, wanted: set[int], *, down: bool) -> set[int]:
    found: set[int] = set()
    frontier = set(wanted)
    while frontier:
        near = {other for dataset in frontier for other in _neighbours(index, dataset, down=down)}
        frontier = {other for other in near if index.is_elided(other)} - found - wanted
        found |= frontier
    return found


def _neighbours(index: Index, dataset: int, *, down: bool) -> set[int]:
    """The datasets that read one, or (not ``down``) that it reads."""
    nodes = range(index.dataset_base[dataset], index.dataset_base[dataset + 1])
    if down:
        ends = (index.edge_target[edge] for node in nodes for edge in index.out_edges(node))
    else:
        ends = (index.edge_source[edge] for node in nodes for edge in index.in_edges(node))
    return {index.node_dataset[end] for end in ends} - {dataset}


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """The facts about one dataset beside the graph."""

    zone: str | None
    owner: str | None


class ViewLabels:
    """Classes, zones and owners, from policies and from recorded facts.

    Args:
        snapshot: The version.
        policies: The policies.
    """

    def __init__(self, snapshot: Snapshot, policies: PolicyChoice) -> None:
        self._index = snapshot.index
        self.labels: Labels = snapshot.governance.labels(*policies)
        known = snapshot.governance.policies_if_any(policies.policy)
        self._places = None if known is None else snapshot.governance.known(*policies).places

    def facts(self, dataset: int) -> ViewFacts:
        """The zone and the owner of a dataset."""
        zones = self._places.about(dataset).zones if self._places is not None else []
        return ViewFacts(zones[0] if zones else None, self.labels.owner(self._index.dataset_name(dataset)))


class ViewBuilder:
    """Turns an index into the view of some of its datasets.

    Args:
        index: The graph.
        chosen: The numbers of the datasets, in order.
        known: Their classes, zones and owners.
    """

    def __init__(self, index: Index, chosen: Sequence[int], known: ViewLabels) -> None:
        self._index, self._chosen, self._known = index, chosen, known
        self._place: Mapping[int, int] = {dataset: number for number, dataset in enumerate(chosen)}
        self._statements: dict[int, int] = {}
        """Derivation to the number of its statement."""
        self._views: dict[StatementView, int] = {}

    def build(self) -> LineageView:
        """The view."""
        edges = self._edges()
        omitted = self._omitted()
        datasets = tuple(self._dataset(dataset, omitted) for dataset in self._chosen)
        return LineageView(datasets, tuple(edges), tuple(self._views))

    def _edges(self) -> list[EdgeView]:
        found: dict[EdgeView, None] = {}
        for dataset in self._chosen:
            for node in self._nodes(dataset):
                for edge in self._index.out_edges(node):
                    target = self._ref(self._index.edge_target[edge])
                    if target is not None:
                        found[self._edge(edge, self._ref_within(dataset, node), target)] = None
        return list(found)

    def _edge(self, edge: int, source: ViewNode, target: ViewNode) -> EdgeView:
        index, kind = self._index, self._index.kind(edge)
        return EdgeView(
            source,
            target,
            kind.label,
            step_label(kind, index.functions(edge), index.reason(edge)),
            self._statement(index.derivation_of(edge)),
            index.is_star(edge),
            index.is_masking(edge),
        )

    def _statement(self, derivation: int) -> int:
        number = self._statements.get(derivation)
        if number is None:
            view = statement_view(self._index, derivation)
            number = self._statements[derivation] = self._views.setdefault(view, len(self._views))
        return number

    def _omitted(self) -> tuple[Counter[int], Counter[int]]:
        """The numbers of sources and of readers of each dataset that are not in the report."""
        sources: Counter[int] = Counter()
        readers: Counter[int] = Counter()
        if len(self._chosen) < self._index.dataset_count:
            for dataset in self._chosen:
                sources[dataset] = sum(one not in self._place for one in _neighbours(self._index, dataset, down=False))
                readers[dataset] = sum(one not in self._place for one in _neighbours(self._index, dataset, down=True))
        return sources, readers

    def _dataset(self, dataset: int, omitted: tuple[Counter[int], Counter[int]]) -> DatasetView:
        index, facts = self._index, self._known.facts(dataset)
        sources, readers = omitted
        return DatasetView(
            index.dataset_name(dataset),
            index.dataset_kind(dataset),
            tuple(self._column(dataset, node) for node in index.columns(dataset)),
            facts.zone,
            facts.owner,
            index.is_elided(dataset),
            sources[dataset],
            readers[dataset],
        )

    def _column(self, dataset: int, node: int) -> ColumnView:
        index, labels = self._index, self._known.labels
        parent = index.container(node)
        return ColumnView(
            index.path(node),
            index.type(node),
            None if parent is None else self._ref_within(dataset, parent).column,
            index.is_unknown(node),
            labels.classes(node),
            labels.possible_classes(node),
        )

    def _nodes(self, dataset: int) -> Iterable[int]:
        return range(self._index.dataset_base[dataset], self._index.dataset_base[dataset + 1])

    def _ref(self, node: int) -> ViewNode | None:
        dataset = self._index.node_dataset[node]
        return self._ref_within(dataset, node) if dataset in self._place else None

    def _ref_within(self, dataset: int, node: int) -> ViewNode:
        return ViewNode(self._place[dataset], node - self._index.dataset_base[dataset] - 1)


def statement_view(index: Index, derivation: int) -> StatementView:
    """The statement behind a derivation, without literals: also those of a store that keeps them."""
    statement = index.statement(derivation)
    return StatementView(
        statement.kind,
        statement.how,
        statement.file,
        statement.line,
        statement.fingerprint,
        statement.run,
        index.field(derivation, "status") or "understood",
        _redacted(statement.text, statement.how, statement.dialect),
    )


def _redacted(text: str, how: str, dialect: str) -> str:
    if not text:
        return ""
    if how in RUNTIME:
        return clean_text(text)[:MAX_SQL]
    from govtool.capture.sql.syntax.redact import redact

    return clean_text(redact(text, dialect))[:MAX_SQL]


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The content of a report."""

    selectors: tuple[str, ...] = ()
    """Of the datasets; none: all."""
    exclude: tuple[str, ...] = ()
    base: str | None = None
    """The version that it is compared with."""
    subjects: tuple[str, ...] = ()
    """Of an erasure plan; none: there is no plan."""
    title: str = "Lineage"
    traces: tuple[object, ...] = ()
    """Traces of rows: answers, their JSON values, or files of these."""
    workflows: tuple[str, ...] = ()
    """Provenance graphs: files, names of graphs in the store, ``run:`` and a workflow run."""
    include_rows: bool = False
    """Rows, ids of records and values are part of traces and workflows."""


def report_answer(
    snapshot: Snapshot, policies: PolicyChoice, request: ReportRequest, branch: str | None = None
) -> ReportAnswer:
    """The report of one version.

    Args:
        snapshot: The version.
        policies: Policies for classes, zones and findings.
        request: The content.
        branch: Where the version to compare with is looked up.

    Raises:
        UsageError: A selector selects nothing, or a selector, policy, subject, trace or graph is mistaken.
        UnknownNameError: A selector, a subject, a workflow or the version to compare with does not exist.
    """
    from govtool.answers.report import ReportAnswer
    from govtool.app.questions.history import coverage_answer
    from govtool.app.report.scenes import read_trace, read_workflow

    view = graph_view(snapshot, policies, request.selectors, request.exclude)
    coverage = coverage_answer(snapshot.store, snapshot.commit)
    difference = None
    if request.base is not None:
        view, difference = _compared(snapshot, policies, request, view, branch)
    return ReportAnswer(
        coverage.version,
        view,
        request.selectors,
        request.title,
        _findings(snapshot, policies, view),
        coverage,
        folders(view, coverage),
        difference,
        _erasure(snapshot, policies, request.subjects),
        tuple(read_trace(trace, snapshot.index, include_rows=request.include_rows) for trace in request.traces),
        tuple(
            read_workflow(
                snapshot.store,
                snapshot.commit,
                name,
                include_rows=request.include_rows,
                is_dataset=lambda dataset: snapshot.index.find_dataset(dataset) is not None,
            )
            for name in request.workflows
        ),
    )


def _compared(
    snapshot: Snapshot, policies: PolicyChoice, request: ReportRequest, view: LineageView, branch: str | None
) -> tuple[LineageView, DiffAnswer]:
    """The union of both versions, and their differences."""
    from govtool.answers.diff import DiffAnswer
    from govtool.app.project.project import commit_at
    from govtool.app.questions.history import diff_answer
    from govtool.app.versions.opening import open_snapshot
    from govtool.report.union import union

    store, commit = snapshot.store, snapshot.commit
    old = open_snapshot(store, commit_at(store, request.base, branch))
    governed = snapshot.governance.policies_if_any(policies.policy) is not None
    answer = diff_answer(store, old.commit.id, commit.id, commit, branch, policies=policies if governed else None)
    assert isinstance(answer, DiffAnswer)  # both are commits
    return union(_before(old, policies, request), view), answer


def _before(old: Snapshot, policies: PolicyChoice, request: ReportRequest) -> LineageView:
    """The part of the old version that the selectors select which it knows; each may name something new."""
    selectors, exclude = _known(old, policies, request.selectors), _known(old, policies, request.exclude)
    nothing = LineageView((), (), ())
    if request.selectors and not selectors:  # none at all would select everything
        return nothing
    try:
        return graph_view(old, policies, selectors, exclude)
    except UsageError as error:
        if error.code != _NOTHING:
            raise
        return nothing


def _known(snapshot: Snapshot, policies: PolicyChoice, selectors: Sequence[str]) -> tuple[str, ...]:
    """The selectors whose names exist in a version."""
    from govtool.app.questions.columns import selector

    every = selector(snapshot, policies)
    return tuple(text for text in selectors if _is_known(every, text))


def _is_known(every: Selector, text: str) -> bool:
    try:
        every.select([text])
    except UnknownNameError:
        return False
    except UsageError as error:
        if error.code != _NOTHING:
            raise
        return False
    return True


def _findings(snapshot: Snapshot, policies: PolicyChoice, view: LineageView) -> CheckAnswer | None:
    from govtool.app.questions.check import check_answer

    if snapshot.governance.policies_if_any(policies.policy) is None:
        return None
    answer = check_answer(snapshot, policies, base=None, baseline=None, strict=False, measure=False)
    here = {dataset.name for dataset in view.datasets}
    names = {f"{dataset.name}.{column.path}" for dataset in view.datasets for column in dataset.columns}
    shown = here | names | {f"{name}.*" for name in here}
    kept = tuple(f for f in answer.findings if f.column in shown or f.of_no_dataset)
    return replace(answer, result=replace(answer.result, findings=kept))


def _erasure(snapshot: Snapshot, policies: PolicyChoice, subjects: Sequence[str]) -> ErasePlanAnswer | None:
    from govtool.app.erasure.columns import erase_answer

    return (
        erase_answer(snapshot, list(subjects), policies, key=[], within="30d", show_values=False) if subjects else None
    )


def folders(view: LineageView, coverage: CoverageAnswer) -> tuple[FolderCoverage, ...]:
    """The statements of the graph by the folder of their file, with the errors that were met there."""
    from govtool.answers.report import FolderCoverage

    errors: Counter[str] = Counter()
    for _, diagnostic in coverage.report.diagnostics:
        if diagnostic.severity == "error" and diagnostic.file:
            errors[_folder(diagnostic.file)] += 1
    every, incomplete = Counter[str](), Counter[str]()
    for statement in view.statements:
        folder = _folder(statement.file)
        every[folder] += 1
        incomplete[folder] += statement.status != "understood"
    return tuple(
        FolderCoverage(folder, every[folder], incomplete[folder], errors[folder])
        for folder in sorted({*every, *errors})
    )


def _folder(file: str) -> str:
    folder, slash, _ = file.rpartition("/")
    return folder + slash or "./"
