"""The view of a lineage graph that a report draws: datasets, columns, edges, and the statements behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

ROWS = -1
"""The column number that stands for the row set of a dataset."""
ADDED, REMOVED, CHANGED = "added", "removed", "changed"


class ViewNode(NamedTuple):
    """One end of an edge."""

    dataset: int
    """Its number in ``LineageView.datasets``."""
    column: int
    """Its number in ``DatasetView.columns``, or ``ROWS``."""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A column, or a field below one."""

    path: str
    type: str | None = None
    parent: int | None = None
    """The number of the column that contains this field."""
    is_unknown: bool = False
    """It stands for the columns of its dataset that are not known."""
    classes: tuple[str, ...] = ()
    possible_classes: tuple[str, ...] = ()
    change: str | None = None
    """``added``, ``removed`` or ``changed``, where two versions are compared."""


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A dataset with its columns, in the order of their paths."""

    name: str
    kind: str
    columns: tuple[ColumnView, ...]
    zone: str | None = None
    owner: str | None = None
    is_temporary: bool = False
    """Answers pass through it: temporary, dropped, or an ended generation."""
    omitted_sources: int = 0
    """Datasets that it reads and that the report leaves out."""
    omitted_readers: int = 0
    """Datasets that read it and that the report leaves out."""
    change: str | None = None


@dataclass(frozen=True, slots=True)
class EdgeView:
    """One dependency between two nodes."""

    source: ViewNode
    target: ViewNode
    kind: str
    label: str
    """A few words: ``copy``, ``lower()``, ``join key``."""
    statement: int
    """The number of the statement behind it."""
    is_star: bool = False
    is_masking: bool = False
    change: str | None = None


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement as evidence, its literals redacted."""

    kind: str
    how: str
    file: str
    line: int
    fingerprint: str
    run: str | None
    status: str
    """``understood``, ``partial`` or ``opaque``."""
    text: str


@dataclass(frozen=True, slots=True)
class LineageView:
    """A graph as a report draws it. Its JSON is compact: nodes, classes and labels are numbers.

    A node's number counts, over all datasets in order, one for the row set of a dataset and then one a column.
    """

    datasets: tuple[DatasetView, ...]
    edges: tuple[EdgeView, ...]
    statements: tuple[StatementView, ...]

    @property
    def column_count(self) -> int:
        """Columns of all datasets; the row sets do not count."""
        return sum(len(dataset.columns) for dataset in self.datasets)

    def name_of(self, node: ViewNode) -> tuple[str, str]:
        """The dataset and the column of a node; ``*`` for the row set."""
        dataset = self.datasets[node.dataset]
        return dataset.name, "*" if node.column == ROWS else dataset.columns[node.column].path

    def bases(self) -> list[int]:
        """The node number of the row set of each dataset."""
        found, number = [], 0
        for dataset in self.datasets:
            found.append(number)
            number += 1 + len(dataset.columns)
        return found

    def body(self) -> dict[str, object]:
        """The JSON value, as docs/schemas/report-1.json has it."""
        bases = self.bases()
        kinds = sorted({edge.kind for edge in self.edges})
        labels = sorted({edge.label for edge in self.edges})
        numbers = ViewNumbers({k: i for i, k in enumerate(kinds)}, {label: i for i, label in enumerate(labels)}, bases)
        classes = sorted(set(self._class_names()))
        number_of = {name: i for i, name in enumerate(classes)}
        return {
            "kinds": kinds,
            "labels": labels,
            "classes": classes,
            "datasets": [_dataset_object(dataset, number_of) for dataset in self.datasets],
            "edges": [_edge_object(edge, numbers) for edge in self.edges],
            "statements": [_statement_object(statement) for statement in self.statements],
        }

    def _class_names(self) -> Iterator[str]:
        for dataset in self.datasets:
            for column in dataset.columns:
                yield from column.classes
                yield from column.possible_classes


class ViewNumbers(NamedTuple):
    """The numbers of texts and nodes in the JSON of edges."""

    kinds: Mapping[str, int]
    labels: Mapping[str, int]
    bases: list[int]

    def node(self, ref: ViewNode) -> int:
        """The number of a node."""
        return self.bases[ref.dataset] + 1 + ref.column


def _dataset_object(dataset: DatasetView, classes: Mapping[str, int]) -> dict[str, object]:
    return {
        "name": dataset.name,
        "kind": dataset.kind,
        **_present(
            zone=dataset.zone,
            owner=dataset.owner,
            temporary=dataset.is_temporary,
            omitted_sources=dataset.omitted_sources,
            omitted_readers=dataset.omitted_readers,
            change=dataset.change,
        ),
        "columns": [_column_object(column, classes) for column in dataset.columns],
    }


def _column_object(column: ColumnView, classes: Mapping[str, int]) -> dict[str, object]:
    return {
        "path": column.path,
        **_present(
            type=column.type,
            unknown=column.is_unknown,
            classes=[classes[name] for name in column.classes],
            possible_classes=[classes[name] for name in column.possible_classes],
            change=column.change,
        ),
        **({} if column.parent is None else {"parent": column.parent}),
    }


def _edge_object(edge: EdgeView, numbers: ViewNumbers) -> list[object]:
    flags = edge.is_star + 2 * edge.is_masking
    found: list[object] = [
        numbers.node(edge.source),
        numbers.node(edge.target),
        numbers.kinds[edge.kind],
        numbers.labels[edge.label],
        edge.statement,
        flags,
    ]
    return found if edge.change is None else [*found, edge.change]


def _statement_object(statement: StatementView) -> dict[str, object]:
    return {
        "kind": statement.kind,
        "how": statement.how,
        "file": statement.file,
        "line": statement.line,
        "fingerprint": statement.fingerprint,
        **_present(run=statement.run, status=None if statement.status == "understood" else statement.status),
        "text": statement.text,
    }


def _present(**values: object) -> dict[str, object]:
    """The keys that have a value: most columns have few, and there are many columns."""
    return {key: value for key, value in values.items() if value}
