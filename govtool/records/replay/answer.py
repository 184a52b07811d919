"""The answer of a replay in its JSON form, ``replay/1``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from govtool.records.cells import json_value

SCHEMA = "replay/1"
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row whose computed cells became others.

    Attributes:
        before: Its cells as they were.
        after: Its cells now.
    """

    before: Row
    after: Row

    def columns(self) -> tuple[int, ...]:
        """The places of the cells that differ."""
        return tuple(n for n, (old, new) in enumerate(zip(self.before, self.after, strict=True)) if old != new)


@dataclass(frozen=True, slots=True)
class ReplayAnswer:
    """What a result would be over changed inputs.

    Attributes:
        run: The run whose plan was evaluated; empty for a query that was not run.
        output: The dataset that it wrote, or the boundary at which rows were compared.
        recorded: Whether rows were compared with the written ones; else with those that the plan gives as it was.
        columns: The columns that are compared.
        reached: Columns by whose values the part that the change reaches was found; empty if all was evaluated.
        groups: How many combinations of these were evaluated again; None if all was.
        before: Rows of that part as they were.
        after: Rows of that part now.
        gone: Rows that are not there any more.
        changed: Rows with other computed cells.
        new: Rows that were not there.
        doubts: Why the replay may differ from a run over these inputs.
        whole: Whether an edited script got whole inputs, not only the rows of some results.
    """

    run: str
    output: str
    recorded: bool
    columns: tuple[str, ...]
    reached: tuple[str, ...]
    groups: int | None
    before: int
    after: int
    gone: tuple[Row, ...]
    changed: tuple[ChangedRow, ...]
    new: tuple[Row, ...]
    doubts: tuple[str, ...] = ()
    whole: bool = False

    def to_dict(self, limit: int) -> dict[str, Any]:
        """The answer in JSON's types.

        Args:
            limit: The most rows of each kind; counts are whole.
        """
        changed = [
            {
                "before": self._shown(row.before),
                "after": self._shown(row.after),
                "columns": [self.columns[n] for n in row.columns()],
            }
            for row in self.changed[:limit]
        ]
        return {
            "run": self.run,
            "output": self.output,
            "recorded": self.recorded,
            "columns": list(self.columns),
            "reached": {"columns": list(self.reached), "groups": self.groups},
            "before": self.before,
            "after": self.after,
            "gone": self._group(len(self.gone), [self._shown(row) for row in self.gone[:limit]]),
            "changed": self._group(len(self.changed), changed),
            "new": self._group(len(self.new), [self._shown(row) for row in self.new[:limit]]),
            "doubts": list(self.doubts),
        }

    def _shown(self, row: Row) -> dict[str, Any]:
        return {name: json_value(value) for name, value in zip(self.columns, row, strict=True)}

    def _group(self, count: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"count": count, "truncated": count > len(rows), "rows": rows}
