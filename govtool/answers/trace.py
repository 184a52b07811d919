"""The answer of ``trace back`` and ``trace forward``: rows behind a result, or results that rows reached."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.records.trace.answer import SCHEMA, InputAnswer, TraceAnswer

if TYPE_CHECKING:
    from govtool.records.trace.recordset import RecordSet

BACK, FORWARD = "back", "forward"
_PLACE = ("_id", "_file", "_row")


@dataclass(frozen=True, slots=True)
class TraceReport(GraphAnswer):
    """A trace: its steps, and the rows that it came to, by dataset."""

    schema: ClassVar[str] = SCHEMA
    fields: ClassVar[tuple[str, ...]] = ("part", "dataset", "id", "file", "row", "values")
    types: ClassVar[Mapping[str, str]] = {"row": "integer"}

    direction: str
    """``back`` or ``forward``."""
    where: str
    """The condition by which rows were chosen."""
    trace: TraceAnswer
    """Steps, rows of inputs, rows that stand against them, and refused files."""
    between: tuple[InputAnswer, ...] = ()
    """Rows at a boundary, with ``--step``: ``dataset`` is the operator, rows have no ids."""
    outputs: tuple[InputAnswer, ...] = ()
    """Rows of the output, of a trace forward."""
    verified: bool | None = None
    """Whether the plan gave the written rows once more; None: that was not requested."""
    engine: str = ""
    """What evaluated the plan: ``DuckDB`` or ``Spark``."""
    refusals: tuple[tuple[str, str], ...] = ()
    """Engines that would not have been exact, and why."""
    records: RecordSet | None = field(default=None, compare=False, repr=False)
    """The rows themselves, to be traced further."""

    @property
    def is_complete(self) -> bool:
        """Whether no file was refused, and what was verified holds."""
        return not self.trace.refused and self.verified is not False

    @property
    def parts(self) -> tuple[tuple[str, InputAnswer], ...]:
        """Every group of rows, after what it is: ``input``, ``between``, ``output`` or ``against``."""
        groups: Sequence[tuple[str, tuple[InputAnswer, ...]]] = (
            ("input", self.trace.inputs),
            ("between", self.between),
            ("output", self.outputs),
            ("against", self.trace.against),
        )
        return tuple((name, rows) for name, group in groups for rows in group)

    def body(self) -> Mapping[str, object]:
        """The run, its steps, and rows by dataset; see docs/output.md."""
        found = {name: value for name, value in self.trace.to_dict().items() if name != "schema"}
        return {
            "direction": self.direction,
            "where": self.where,
            **found,
            "between": [rows.to_dict() for rows in self.between],
            "outputs": [rows.to_dict() for rows in self.outputs],
            "verified": self.verified,
            "engine": self.engine,
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a record; its values as a JSON object."""
        for name, group in self.parts:
            for row in group.rows:
                values = {column: value for column, value in row.items() if column not in _PLACE}
                text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
                yield (name, group.dataset, row.get("_id"), _text(row.get("_file")), row.get("_row"), text)

    def flat(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """A table with a column for every column of the data: its header and its rows."""
        columns = list(dict.fromkeys(name for _, group in self.parts for row in group.rows for name in row))
        named = [*(name for name in _PLACE if name in columns), *(name for name in columns if name not in _PLACE)]
        rows = [
            (part, group.dataset, *(row.get(name) for name in named))
            for part, group in self.parts
            for row in group.rows
        ]
        return ("part", "dataset", *named), rows


def _text(value: object) -> str | None:
    return None if value is None else str(value)
