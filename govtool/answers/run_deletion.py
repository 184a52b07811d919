"""The answer of ``whatif delete --run``: the effects of deleted records on the rows of a workflow run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.records.cells import json_value

if TYPE_CHECKING:
    from govtool.workflow.modules.run_rows import OutputDeletion
    from govtool.workflow.queries.statuses import RowStatus


@dataclass(frozen=True, slots=True)
class RunDeletionAnswer(Answer):
    """The rows of each relation before a deletion, with what becomes of them, and the rows that appear."""

    schema: ClassVar[str] = "whatif-run/1"
    fields: ClassVar[tuple[str, ...]] = ("relation", "execution", "status", "before", "after")
    types: ClassVar[Mapping[str, str]] = {"execution": "integer"}

    run: str
    mode: str
    """``propagate``, ``replay`` or ``auto``."""
    deleted: tuple[str, ...]
    """The tokens."""
    relations: Mapping[str, OutputDeletion]
    replayed: tuple[str, ...] = ()
    """Invocations that were called again, or whose plans were evaluated again: ``module#number``."""
    not_replayable: Mapping[str, str] = field(default_factory=dict)
    """Relations that cannot be made again, with the reason."""
    notes: tuple[str, ...] = ()
    """What the answer is not sure of."""

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many rows of each relation have each status."""
        from govtool.workflow.queries.statuses import statuses

        return {name: statuses([row for _, row in each.rows]) for name, each in self.relations.items()}

    def is_unclear(self) -> bool:
        """Return whether anything is unknown."""
        return any(
            each.gains_possible or any(row.status == "unknown" for _, row in each.rows)
            for each in self.relations.values()
        )

    def body(self) -> Mapping[str, object]:
        """Statuses and gains by relation; see docs/output.md."""
        lost = {"not_replayable": dict(self.not_replayable)} if self.not_replayable else {}
        notes = {"notes": list(self.notes)} if self.notes else {}
        return {
            "run": self.run,
            "mode": self.mode,
            "deleted": list(self.deleted),
            "relations": {name: _relation(each) for name, each in self.relations.items()},
            "replayed": list(self.replayed),
            **lost,
            **notes,
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a row before or gained, in a relation those that stay as they are last; values as JSON."""
        for name, each in self.relations.items():
            yield from _before(name, each, stay=False)
            for gain, (execution, _) in zip(each.gains, each.gained_by, strict=True):
                yield name, execution, "gained", None, _text(gain)
            yield from _before(name, each, stay=True)


def _before(name: str, relation: OutputDeletion, *, stay: bool) -> Iterator[tuple[Cell, ...]]:
    """The rows of a relation before a deletion: those that are kept, or the others."""
    for execution, row in relation.rows:
        if (row.status == "kept") == stay:
            after = None if row.after is None else _text(row.after)
            yield name, execution, row.status, _text(row.before), after


def _relation(each: OutputDeletion) -> dict[str, object]:
    return {
        "columns": list(each.columns),
        "tuples": [_row(*written, node) for written, node in zip(each.rows, each.nodes, strict=True)],
        "gains": [_values(row) for row in each.gains],
        "gained_by": [{"execution": execution, "node": node} for execution, node in each.gained_by],
        "gains_possible": each.gains_possible,
    }


def _row(execution: int, row: RowStatus, node: str) -> dict[str, object]:
    after = {} if row.after is None else {"after": _values(row.after)}
    return {"execution": execution, "node": node, "before": _values(row.before), "status": row.status, **after}


def _values(values: tuple[Any, ...]) -> list[object]:
    return [json_value(value) for value in values]


def _text(values: tuple[Any, ...]) -> str:
    return json.dumps(_values(values), ensure_ascii=False)
