"""Rows of outputs that differ between two runs, with the input rows behind them: a part of the answer of ``diff``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from govtool.records.cells import json_value

GONE, CHANGED, NEW = "gone", "changed", "new"
DIFFERENT, EQUAL, UNKNOWN = "different", "equal", "unknown"
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of one input behind an output row, as far as the input differs between the runs.

    Attributes:
        dataset: The input.
        columns: The columns that both runs read.
        removed: Rows that only the first run read.
        added: Rows that only the second run read.
        changed: Pairs of such rows with one key.
        same: Rows behind it, in either run, that both runs read.
        why: Why rows are missing here, or may be too many; empty if they are as defined.
        known: Whether no rows are missing here.
    """

    dataset: str
    columns: tuple[str, ...]
    removed: tuple[Row, ...] = ()
    added: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    same: int = 0
    why: str = ""
    known: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The rows in JSON's types."""
        return {
            "dataset": self.dataset,
            "removed": [cells(self.columns, row) for row in self.removed],
            "added": [cells(self.columns, row) for row in self.added],
            "changed": [
                {"before": cells(self.columns, old), "after": cells(self.columns, new)} for old, new in self.changed
            ],
            "same": self.same,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class DifferentRow:
    """A row of an output that is not in both runs.

    Attributes:
        kind: ``gone``, ``changed`` or ``new``.
        before: Its cells in the first run; None if it is new.
        after: Its cells in the second run; None if it is gone.
        inputs: The input rows behind it.
        why: Why these are not known; empty if they are.
    """

    kind: str
    before: Row | None
    after: Row | None
    inputs: tuple[InputRows, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class OutputRows:
    """The rows of one output that differ.

    Attributes:
        before: The output of the first run.
        after: That of the second: the same dataset, unless the runs have one output each.
        verdict: ``different``, ``equal`` or ``unknown``.
        columns: The columns that are compared.
        key: Columns by which a row is changed and not another one; empty: rows are gone and new.
        key_is: ``declared`` or ``found``; empty without a key.
        counts: Rows that are gone, changed and new.
        rows: Those that are listed.
        others: Columns that only one of the runs has, or has with another type: they are not compared.
        how: How each side was read: ``written``, ``evaluated again`` …
        why: Why it is unknown, or not certain.
        cause: The first cause of the difference.
        tolerance: How far floats may be apart, as a share of them; None: only as far as the order of a sum takes them.
        within: Rows that differ, but no further than that.
    """

    before: str
    after: str
    verdict: str
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    key_is: str = ""
    counts: tuple[int, int, int] = (0, 0, 0)
    rows: tuple[DifferentRow, ...] = ()
    others: tuple[str, ...] = ()
    how: tuple[str, str] = ("", "")
    why: str = ""
    cause: str = ""
    tolerance: float | None = None
    within: int = 0

    @property
    def is_complete(self) -> bool:
        """True if the rows, and what is behind those that are listed, are known."""
        traced = all(not row.why and all(each.known for each in row.inputs) for row in self.rows)
        return self.verdict != UNKNOWN and not self.why and traced

    def to_dict(self) -> dict[str, Any]:
        """The output in JSON's types."""
        gone, changed, new = self.counts
        return {
            "before": self.before,
            "after": self.after,
            "verdict": self.verdict,
            "columns": list(self.columns),
            "key": {"columns": list(self.key), "is": self.key_is or None},
            GONE: gone,
            CHANGED: changed,
            NEW: new,
            "rows": [self.row_object(row) for row in self.rows],
            "not_compared": list(self.others),
            "how": list(self.how),
            "why": self.why,
            "cause": self.cause,
            **({} if self.tolerance is None else {"tolerance": self.tolerance, "within_tolerance": self.within}),
        }

    def row_object(self, row: DifferentRow) -> dict[str, Any]:
        """A row in JSON's types."""
        return {
            "kind": row.kind,
            "before": None if row.before is None else cells(self.columns, row.before),
            "after": None if row.after is None else cells(self.columns, row.after),
            "inputs": [each.to_dict() for each in row.inputs],
            "why": row.why,
        }


@dataclass(frozen=True, slots=True)
class RowDiff:
    """The rows that differ between two runs, output by output."""

    outputs: tuple[OutputRows, ...]

    @property
    def is_complete(self) -> bool:
        """True if all rows that differ are known, with what is behind those that are listed."""
        return all(each.is_complete for each in self.outputs)

    @property
    def differs(self) -> bool:
        """True if rows of an output are known to differ."""
        return any(each.verdict == DIFFERENT for each in self.outputs)

    def lines(self) -> Iterator[tuple[OutputRows, DifferentRow]]:
        """Every listed row with its output."""
        return ((output, row) for output in self.outputs for row in output.rows)


def cells(columns: tuple[str, ...], row: Row) -> dict[str, Any]:
    """A row as an object of JSON."""
    return {name: json_value(value) for name, value in zip(columns, row, strict=True)}
