"""The answer of ``erase plan --run``: rows to delete, rows that change, rows that appear; dataset by dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from govtool.answers.answer import Cell, GraphAnswer

Row = tuple[Any, ...]
"""Cells in JSON's types."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row whose cells become others.

    Attributes:
        key: The cells that identify it.
        before: All its cells as they are.
        after: All its cells as they become.
    """

    key: Row
    before: Row = field(repr=False)
    after: Row = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The change in JSON's types."""
        return {"key": list(self.key), "before": list(self.before), "after": list(self.after)}


@dataclass(frozen=True, slots=True)
class UnknownRows:
    """A row that is not certain, or all rows of a dataset.

    Attributes:
        why: The reason.
        key: The row's key; None: any row of the dataset.
    """

    why: str
    key: Row | None = None

    def to_dict(self) -> dict[str, Any]:
        """The entry in JSON's types."""
        return {"why": self.why} if self.key is None else {"key": list(self.key), "why": self.why}


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that a plan was made of.

    Attributes:
        uri: Its place.
        size: Its bytes.
        modified: When it was written, in milliseconds since 1970.
        sha256: The digest of its content; empty where it is only read.
    """

    uri: str
    size: int
    modified: int
    sha256: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The file in JSON's types."""
        found: dict[str, Any] = {"uri": self.uri, "size": self.size, "modified": self.modified}
        return {**found, "sha256": self.sha256} if self.sha256 else found


@dataclass(frozen=True, slots=True)
class DatasetErasure:
    """What happens to a dataset.

    Attributes:
        dataset: Its id.
        source: Whether it is an input that no recorded run wrote.
        runs: The runs that wrote it.
        columns: Its columns, in the order of the cells of rows.
        key: The columns that identify a row in this plan.
        delete: The keys of rows to delete, each as often as it is deleted.
        change: Rows that change.
        appear: Rows that appear.
        unchanged: How many rows stay as they are; None: not known.
        equal: How many of these were evaluated again, and have the same values.
        unknown: What is not certain.
        recompute: Whether the run has to be evaluated again.
        writable: Whether a corrected copy can be written.
        rows_scanned: How many rows that reads; None: not known.
        scanned_files: How many files that reads.
        scanned_bytes: How many bytes these have.
        why: Why nothing has to be done, or why that is not known.
        files: The dataset's files.
    """

    dataset: str
    source: bool = False
    runs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    delete: tuple[Row, ...] = field(default=(), repr=False)
    change: tuple[RowChange, ...] = field(default=(), repr=False)
    appear: tuple[Row, ...] = field(default=(), repr=False)
    unchanged: int | None = None
    equal: int = 0
    unknown: tuple[UnknownRows, ...] = ()
    recompute: bool = False
    writable: bool = True
    rows_scanned: int | None = 0
    scanned_files: int = 0
    scanned_bytes: int = 0
    why: str = ""
    files: tuple[PlannedFile, ...] = ()

    @property
    def changes(self) -> bool:
        """True if a corrected copy differs from the dataset."""
        return bool(self.delete or self.change or self.appear)

    def to_dict(self) -> dict[str, Any]:
        """The dataset in JSON's types; a number that is not known is absent."""
        known = {"unchanged": self.unchanged, "rows_scanned": self.rows_scanned}
        return {
            "dataset": self.dataset,
            "kind": "source" if self.source else "output",
            "runs": list(self.runs),
            "columns": list(self.columns),
            "key": list(self.key),
            "delete": [list(row) for row in self.delete],
            "change": [each.to_dict() for each in self.change],
            "appear": [list(row) for row in self.appear],
            **{name: number for name, number in known.items() if number is not None},
            "equal": self.equal,
            "unknown": [each.to_dict() for each in self.unknown],
            "recompute": self.recompute,
            "writable": self.writable,
            "scanned_files": self.scanned_files,
            "scanned_bytes": self.scanned_bytes,
            "why": self.why,
            "files": [file.to_dict() for file in self.files],
        }


@dataclass(frozen=True, slots=True)
class Unsearched:
    """Data that the plan does not cover.

    Attributes:
        what: A dataset or a run.
        why: The reason.
        hint: What to do about it; may be empty.
    """

    what: str
    why: str
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The entry in JSON's types."""
        found = {"dataset": self.what, "why": self.why}
        return {**found, "hint": self.hint} if self.hint else found


@dataclass(frozen=True, slots=True)
class RowErasureAnswer(GraphAnswer):
    """The rows of a data subject in recorded runs, and the effects on everything that was made from them."""

    schema: ClassVar[str] = "erase/2"
    fields: ClassVar[tuple[str, ...]] = ("order", "dataset", "action", "key", "before", "after", "why")
    types: ClassVar[Mapping[str, str]] = {"order": "integer"}

    subjects: tuple[str, ...] = field(repr=False)
    """The subject as it was given, values included: personal data."""
    keys: tuple[str, ...]
    """Further columns that were declared to hold the same key."""
    run: str | None
    """The run, the application or the run of a workflow; None: all recorded runs."""
    all_runs: bool
    """Whether the runs that exchange files with it are covered, too."""
    tokens: Mapping[str, tuple[str, ...]] = field(repr=False)
    """The subject's records, by dataset."""
    datasets: tuple[DatasetErasure, ...]
    """Sources first, then outputs in topological order."""
    searched: tuple[str, ...]
    """Columns in which the subject's key was looked for."""
    not_searched: tuple[Unsearched, ...]
    """Inputs that may hold rows of the subject, and were not searched."""
    not_reached: tuple[Unsearched, ...]
    """Outputs that are not there any more, and rows that went elsewhere."""
    request_no_subject: tuple[str, ...] = ()
    """Inputs that the request declared to hold nothing about a subject, as they were given."""
    no_subject: tuple[Unsearched, ...] = ()
    """Inputs that the user declared to hold nothing about a subject, by the request or in the settings."""

    @property
    def is_certain(self) -> bool:
        """True if no dataset has unknown rows."""
        return not any(each.unknown for each in self.datasets)

    def is_unclear(self) -> bool:
        """Return whether rows are unknown, or inputs were not searched."""
        return not self.is_certain or bool(self.not_searched or self.not_reached)

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/erase-2.json has them."""
        return {
            "subject": self.subjects[0] if len(self.subjects) == 1 else list(self.subjects),
            "request": {
                "subjects": list(self.subjects),
                "keys": list(self.keys),
                "no_subject": list(self.request_no_subject),
                "run": self.run,
                "all_runs": self.all_runs,
            },
            "tokens": {dataset: list(tokens) for dataset, tokens in self.tokens.items()},
            "order": [each.dataset for each in self.datasets],
            "datasets": [each.to_dict() for each in self.datasets],
            "searched": list(self.searched),
            "not_searched": [each.to_dict() for each in self.not_searched],
            "not_reached": [each.to_dict() for each in self.not_reached],
            "no_subject": [each.to_dict() for each in self.no_subject],
            "cost": self.cost(),
        }

    def cost(self) -> dict[str, int]:
        """An estimate of what the evaluation reads: rows (of inputs where that is known), files and bytes."""
        every = [each for each in self.datasets if each.recompute]
        return {
            "datasets": len(every),
            "rows_scanned": sum(each.rows_scanned or 0 for each in every),
            "files": sum(each.scanned_files for each in every),
            "bytes": sum(each.scanned_bytes for each in every),
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a row that goes, changes, appears or is unknown; cells as JSON lists."""
        for order, each in enumerate(self.datasets, 1):
            for key in each.delete:
                yield order, each.dataset, "delete", _text(key), None, None, ""
            for change in each.change:
                cells = (_text(change.key), _text(change.before), _text(change.after))
                yield order, each.dataset, "change", *cells, ""
            for row in each.appear:
                yield order, each.dataset, "appear", None, None, _text(row), ""
            for unknown in each.unknown:
                key_text = None if unknown.key is None else _text(unknown.key)
                yield order, each.dataset, "unknown", key_text, None, None, unknown.why
            if not (each.changes or each.unknown):
                yield order, each.dataset, "unchanged", None, None, None, each.why


def _text(row: Row) -> str:
    return json.dumps(list(row), ensure_ascii=False, separators=(",", ":"))
