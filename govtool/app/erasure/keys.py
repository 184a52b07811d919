"""The subject's keys: columns of recorded datasets that hold its identifier, and inputs that are not searched."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from govtool.answers.row_erasure import Unsearched
from govtool.app.erasure.columns import SubjectKey, parse_subject
from govtool.app.erasure.dataset_names import DatasetNames
from govtool.app.records.keys import equals_text
from govtool.app.runs.lookup import is_named
from govtool.errors import UnknownNameError, UsageError
from govtool.records.plan.expressions import Attribute, Expression
from govtool.records.trace.segment import either

if TYPE_CHECKING:
    from govtool.app.erasure.chain import RecordedChain
    from govtool.app.erasure.relations import WorkflowRelation
    from govtool.graph.index import Index

_NO_COLUMN = "no column of it is known to hold the subject's key"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column of a dataset and the value that it has in the subject's rows.

    Attributes:
        column: The column.
        value: The value as text; personal data.
        why: How the column is known to hold the subject's key.
    """

    column: str
    value: str = field(repr=False)
    why: str = ""


@dataclass(frozen=True, slots=True)
class SubjectKeys:
    """Where the subject's rows are looked for.

    Attributes:
        wanted: Columns and values, by dataset.
        not_searched: Inputs of the recorded runs that may hold rows of the subject, and are not searched.
        no_subject: Inputs that the user declared to hold nothing about a subject, with where that was declared.
    """

    wanted: Mapping[str, tuple[Wanted, ...]]
    not_searched: tuple[Unsearched, ...]
    no_subject: tuple[Unsearched, ...] = ()

    def columns(self) -> tuple[str, ...]:
        """The columns that are searched."""
        return tuple(dict.fromkeys(f"{name}.{each.column}" for name, found in self.wanted.items() for each in found))


def meets_any(columns: Sequence[Attribute], wanted: Iterable[Wanted]) -> Expression:
    """The condition that a row has one of the wanted values.

    Raises:
        UsageError: The value is none of a column's type (``usage.subject``). The message does not repeat it.
    """
    by_name = {column.name: column for column in columns}
    parts = []
    for each in wanted:
        if each.column not in by_name:
            raise UnknownNameError(
                f"there is no column '{each.column}'",
                code="usage.unknown-column",
                nearest=tuple(difflib.get_close_matches(each.column, by_name, 3, 0.4)) or tuple(by_name)[:5],
            )
        try:
            parts.append(equals_text(by_name[each.column], each.value))
        except UsageError:
            # Its message has the value in it, which is personal data.
            raise UsageError(
                f"the subject's value is none of column '{each.column}', or keys of its type are not read",
                code="usage.subject",
            ) from None
    return reduce(lambda one, other: either([one, other]), parts)


@dataclass(frozen=True, slots=True)
class GraphKeys:
    """What the column graph knows of a subject's key.

    Attributes:
        exact: By dataset and column, how the column is known to hold the key.
        possible: By dataset, why it may hold the key.
    """

    exact: Mapping[tuple[str, str], str] = field(default_factory=dict)
    possible: Mapping[str, str] = field(default_factory=dict)


def graph_keys(index: Index, columns: Iterable[str]) -> GraphKeys:
    """Look up the columns of a subject in the column graph; those it does not know are left out."""
    from govtool.names import split_name
    from govtool.policy.erasure.subject import keys_of
    from govtool.query.selection.select import select

    nodes = []
    for text in dict.fromkeys(columns):
        try:
            node = select(index, text).node
        except UnknownNameError:
            continue
        nodes += [] if node is None else [node]
    if not nodes:
        return GraphKeys()
    found = keys_of(index, nodes)
    exact = {
        (index.dataset_name(index.node_dataset[node]), split_name(index.path(node))[-1]): why
        for node, why in found.exact.items()
    }
    return GraphKeys(exact, {index.dataset_name(dataset): why for dataset, why in found.possible.items()})


def parsed_subjects(texts: Sequence[str]) -> list[SubjectKey]:
    """Subjects with their values.

    Raises:
        UsageError: There is none, or one has no value (``usage.subject``).
    """
    found = [parse_subject(text) for text in texts]
    if not found:
        raise UsageError("no subject is given", code="usage.subject", hint="--subject crm.users.id=42")
    for each in found:
        if each.value is None:
            raise UsageError(
                f"{each.column}: rows of a run are found by a value",
                code="usage.subject",
                hint=f"--subject {each.column}=42",
            )
    return found


def subject_keys(
    chain: RecordedChain,
    subjects: Sequence[SubjectKey],
    also: Sequence[str],
    graph: GraphKeys,
    declared: Iterable[tuple[str, tuple[str, ...]]],
    without: Mapping[str, str],
    relations: Sequence[WorkflowRelation] = (),
) -> SubjectKeys:
    """Resolve a subject against the datasets of recorded runs.

    Searched are the named columns, those of ``also``, copies and origins that the column graph knows, and columns that
    are joined with the key where ``declared`` says that they identify the rows of their dataset. Rows of other inputs
    that are joined with the key need not be the subject's: they are stated, not searched. An input of a workflow is
    searched in every execution that reads it.

    Args:
        chain: The runs.
        subjects: Columns and values.
        also: Further columns, ``DATASET.COLUMN``, that hold the same identifier.
        graph: What the column graph knows.
        declared: The ``[keys]`` of the settings.
        without: Datasets that hold nothing about a subject, as ``datasets_without_subject`` gives them.
        relations: Relations of workflows, as ``workflow_relations`` gives them.

    Raises:
        UnknownNameError: No run read or wrote such a dataset.
        AmbiguousNameError: Several are called so.
        UsageError: A dataset without a subject has a column that holds the subject's key (``usage.no-subject``).
    """
    names = DatasetNames.of(chain, relations)
    inputs = [name for name in names.known if name not in names.made]
    found = _SearchedColumns(subjects)
    texts = dict.fromkeys((*(each.column for each in subjects), *also))
    resolved = {text: names.resolved(text) for text in texts}
    for subject in subjects:
        found.add_subject(subject, *resolved[subject.column])
    for text in also:
        found.add(*resolved[text], "declared with --key")
    for datasets, column in resolved.values():
        for dataset, why in _same_relation(datasets, column, relations):
            if dataset not in without:
                found.add([dataset], column, why)
    holding, joined = _of_graph(graph, [name for name in inputs if name not in found.wanted], declared)
    for dataset, (column, why) in holding.items():
        found.add([dataset], column, why)
    _check_without(without, found.wanted)
    rest = [name for name in inputs if name not in found.wanted and name not in without]
    by_driver = chain.read_by_driver()
    return SubjectKeys(
        {name: tuple(columns.values()) for name, columns in found.wanted.items()},
        tuple(
            _unsearched(
                name,
                names.short(name),
                joined.get(name),
                "; ".join(filter(None, (graph.possible.get(name, _NO_COLUMN), by_driver.get(name)))),
            )
            for name in rest
        ),
        tuple(Unsearched(name, f"declared {where} to hold nothing about a subject") for name, where in without.items()),
    )


@dataclass(slots=True)
class _SearchedColumns:
    """The columns that are searched for some subjects, by dataset, column and value; the first reason stays."""

    subjects: Sequence[SubjectKey]
    wanted: dict[str, dict[tuple[str, str], Wanted]] = field(default_factory=dict)

    def add_subject(self, subject: SubjectKey, datasets: Iterable[str], column: str) -> None:
        own = Wanted(column, subject.value or "", "the subject")
        for dataset in datasets:
            self.wanted.setdefault(dataset, {})[column, own.value] = own

    def add(self, datasets: Iterable[str], column: str, why: str) -> None:
        """Search a column for every subject."""
        for dataset in datasets:
            for subject in self.subjects:
                each = Wanted(column, subject.value or "", why)
                self.wanted.setdefault(dataset, {}).setdefault((column, each.value), each)


def _same_relation(
    datasets: Collection[str], column: str, relations: Sequence[WorkflowRelation]
) -> Iterator[tuple[str, str]]:
    """The other files of the relations of workflows that datasets are, and why they are searched."""
    for relation in relations:
        known = next((name for name in datasets if name in relation.datasets), None)
        if known is not None:
            why = f"{relation.name} of the workflow {relation.workflow}, as {known} is"
            yield from ((name, why) for name in relation.with_column(column) if name not in datasets)


_KnownColumns = dict[str, tuple[str, str]]
"""By dataset a column, and how it is known to hold the key."""


def _of_graph(
    graph: GraphKeys, inputs: Collection[str], declared: Iterable[tuple[str, tuple[str, ...]]]
) -> tuple[_KnownColumns, _KnownColumns]:
    """The columns of inputs that hold the key, and those that are joined with it and need not be the subject's."""
    holding: _KnownColumns = {}
    joined: _KnownColumns = {}
    for (dataset, column), why in graph.exact.items():
        if dataset in inputs and dataset not in holding:
            is_joined = why.startswith("joined") and not _identifies(declared, dataset, column)
            (joined if is_joined else holding).setdefault(dataset, (column, why))
    return holding, joined


def _check_without(without: Mapping[str, str], wanted: Mapping[str, Mapping[tuple[str, str], Wanted]]) -> None:
    """Refuse a dataset without a subject that has a column with the subject's key.

    Raises:
        UsageError: There is one (``usage.no-subject``).
    """
    for name in (name for name in without if name in wanted):
        found = next(iter(wanted[name].values()))
        raise UsageError(
            f"{name} is declared {without[name]} to hold nothing about a subject,"
            f" but its column {found.column} is searched: {found.why}",
            code="usage.no-subject",
            hint="leave one of the two out",
        )


def datasets_without_subject(
    chain: RecordedChain, given: Sequence[str], settings: Iterable[str], relations: Sequence[WorkflowRelation] = ()
) -> dict[str, str]:
    """The inputs that are declared to hold nothing about a subject, and where each is declared.

    Args:
        chain: The runs.
        given: What ``--no-subject`` names: inputs of these runs.
        settings: ``[erasure] no_subject`` of the settings; of its datasets, these runs need not read any.
        relations: Relations of workflows.

    Raises:
        UnknownNameError: No run read such a dataset.
        AmbiguousNameError: Several are called so.
        UsageError: A run wrote a dataset that is given (``usage.no-subject``).
    """
    names = DatasetNames.of(chain, relations)
    found = {}
    for text in given:
        for name in names.called(text.strip('"`')):
            if name in names.made:
                raise UsageError(
                    f"{names.made[name]} wrote {name}: what it holds about a subject follows from its inputs",
                    code="usage.no-subject",
                    hint="--no-subject is for inputs that none of the runs wrote",
                )
            found[name] = "with --no-subject"
    for text in settings:
        for name in names.known:
            if name not in names.made and is_named(name, text):
                found.setdefault(name, "in govtool.toml")
    return found


def _unsearched(dataset: str, name: str, joined: tuple[str, str] | None, possible: str) -> Unsearched:
    nothing = f"--no-subject {name}, if it holds nothing about a subject"
    if joined is not None:
        column, why = joined
        hint = f"--key {name}.{column}, if the rows with the subject's key are the subject's; {nothing}"
        return Unsearched(dataset, f"column {column} is {why}", hint)
    hint = f"--key {name}.COLUMN, if a column of it holds the subject's key; {nothing}"
    return Unsearched(dataset, possible, hint)


def _identifies(declared: Iterable[tuple[str, tuple[str, ...]]], dataset: str, column: str) -> bool:
    """Return whether ``[keys]`` says that a column identifies the rows of a dataset."""
    return any(columns == (column,) and is_named(dataset, name) for name, columns in declared)
