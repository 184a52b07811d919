"""The answer of ``whatif delete --sql``: the effects of deleted records on the rows of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.records.cells import json_value

if TYPE_CHECKING:
    from govtool.workflow.queries.statuses import RowDeletion, RowStatus


@dataclass(frozen=True, slots=True)
class WhatIfRowsAnswer(Answer):
    """Every row before a deletion with what becomes of it, and the rows that appear."""

    schema: ClassVar[str] = "whatif-rows/1"
    fields: ClassVar[tuple[str, ...]] = ("status", "before", "after")

    mode: str
    """``propagate``, ``replay`` or ``auto``."""
    deleted: tuple[str, ...]
    """The tokens."""
    columns: tuple[str, ...]
    result: RowDeletion
    engine: str = "DuckDB"

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each status."""
        from govtool.workflow.queries.statuses import statuses

        return statuses(self.result.rows)

    def is_unclear(self) -> bool:
        """Return whether anything is unknown."""
        return not self.result.is_certain

    def body(self) -> Mapping[str, object]:
        """Statuses and gains; see docs/output.md."""
        return {
            "mode": self.mode,
            "deleted": list(self.deleted),
            "columns": list(self.columns),
            "tuples": [_row(each) for each in self.result.rows],
            "gains": [_values(each) for each in self.result.gains],
            "gains_possible": self.result.gains_possible,
            "replayed": self.result.is_replayed,
            "engine": self.engine,
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a row before or gained; values as JSON."""
        for each in self.result.rows:
            after = None if each.after is None else _text(each.after)
            yield each.status, _text(each.before), after
        for gain in self.result.gains:
            yield "gained", None, _text(gain)


def _values(values: tuple[Any, ...]) -> list[object]:
    return [json_value(value) for value in values]


def _text(values: tuple[Any, ...]) -> str:
    return json.dumps(_values(values), ensure_ascii=False)


def _row(each: RowStatus) -> dict[str, object]:
    after = {} if each.after is None else {"after": _values(each.after)}
    return {"before": _values(each.before), "status": each.status, **after}
