"""The answer of ``replay``: what a recorded result would be over changed inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.records.cells import json_value
from govtool.records.replay.answer import SCHEMA, ReplayAnswer, Row
from govtool.records.trace.answer import EvaluatedInput

GONE, CHANGED, NEW = "gone", "changed", "new"


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """A change of an input, as it was requested.

    Attributes:
        dataset: The input.
        where: The condition of the rows that were left out; empty where the input was replaced.
        files: The files that were read instead.
    """

    dataset: str
    where: str = ""
    files: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The change in JSON's types."""
        return {"dataset": self.dataset, "where": self.where or None, "files": list(self.files)}


@dataclass(frozen=True, slots=True)
class ReplayReport(GraphAnswer):
    """A replay: rows that are gone, changed and new."""

    schema: ClassVar[str] = SCHEMA
    fields: ClassVar[tuple[str, ...]] = ("kind", "columns", "before", "after")
    types: ClassVar[Mapping[str, str]] = {"columns": "texts"}

    changes: tuple[ReplayedChange, ...]
    """What was changed."""
    replay: ReplayAnswer
    """The rows, and how they were found."""
    limit: int
    """The most rows of each kind that are listed; counts are whole."""
    engine: str = ""
    """The executor of the plan: ``DuckDB`` or ``Spark``."""
    refusals: tuple[tuple[str, str], ...] = ()
    """Engines that would not have been exact, and why."""
    script: tuple[str, ...] = ()
    """The script that was run over the traced rows, with its arguments."""
    evaluated: tuple[EvaluatedInput, ...] = ()
    """Inputs that the plans of the runs that wrote them gave, with all runs."""

    @property
    def is_complete(self) -> bool:
        """True if a run over these inputs would give just these rows."""
        return not self.replay.doubts

    def body(self) -> Mapping[str, object]:
        """The run, the changes, and rows by what became of them; see docs/output.md."""
        return {
            "changes": [each.to_dict() for each in self.changes],
            **self.replay.to_dict(self.limit),
            "engine": self.engine,
            "script": list(self.script),
            **({"evaluated": [each.to_dict() for each in self.evaluated]} if self.evaluated else {}),
        }

    def kinds(self) -> Iterator[tuple[str, Row | None, Row | None, tuple[str, ...]]]:
        """Kind, cells before and after, and the columns that differ, of every row that is listed."""
        found = self.replay
        for row in found.gone[: self.limit]:
            yield GONE, row, None, ()
        for each in found.changed[: self.limit]:
            yield CHANGED, each.before, each.after, tuple(found.columns[n] for n in each.columns())
        for row in found.new[: self.limit]:
            yield NEW, None, row, ()

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a row of the result that differs; its cells before and after as JSON objects."""
        for kind, before, after, columns in self.kinds():
            yield kind, columns, self._text(before), self._text(after)

    def _text(self, row: Row | None) -> str | None:
        if row is None:
            return None
        cells = dict(zip(self.replay.columns, map(json_value, row), strict=True))
        return json.dumps(cells, ensure_ascii=False, separators=(",", ":"))
