"""The answer of ``trace back`` and ``trace forward``: rows behind a result, or results that rows reached."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.records.trace.answer import SCHEMA, InputAnswer, TraceAnswer

if TYPE_CHECKING:
    from govtool.records.trace.traced import TracedRecords

BACK, FORWARD = "back", "forward"
_PLACE = ("_id", "_file", "_row")


@dataclass(frozen=True, slots=True)
class HopEnd:
    """Files at which a trace across runs does not go on.

    Attributes:
        run: The run that the trace came from.
        dataset: The dataset.
        files: Their URIs.
        rows: The rows in them.
        reason: Why.
        broken: Whether the trace is lost there; else there is nothing to go on to.
    """

    run: str
    dataset: str
    files: tuple[str, ...]
    rows: int
    reason: str
    broken: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The end in JSON's types."""
        return {
            "run": self.run,
            "dataset": self.dataset,
            "files": list(self.files),
            "rows": self.rows,
            "reason": self.reason,
            "broken": self.broken,
        }


@dataclass(frozen=True, slots=True)
class HopAnswer:
    """The trace through one more run.

    Attributes:
        depth: How many runs away from the first at least.
        trace: The trace in that run. Back: from the rows of its output that the runs above read. Forward: from the rows
            of its inputs that the runs before wrote.
        outputs: Rows of its output, of a trace forward.
        via: The runs from which the trace came to it; empty for one that read the input itself.
        paths: How many ways from run to run lead to it from the first.
    """

    depth: int
    trace: TraceAnswer
    outputs: tuple[InputAnswer, ...] = ()
    via: tuple[str, ...] = ()
    paths: int = 1

    @property
    def parts(self) -> tuple[tuple[str, InputAnswer], ...]:
        """Every group of rows, after what it is."""
        groups = (("input", self.trace.inputs), ("output", self.outputs), ("against", self.trace.against))
        return tuple((name, rows) for name, group in groups for rows in group)

    def to_dict(self) -> dict[str, Any]:
        """The hop in JSON's types."""
        found = {name: value for name, value in self.trace.to_dict().items() if name != "schema"}
        ways = {"via": list(self.via), "paths": self.paths}
        return {"depth": self.depth, **ways, **found, "outputs": [rows.to_dict() for rows in self.outputs]}


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
    """True if the plan gave the written rows once more; None: that was not requested."""
    unverified: tuple[str, ...] = ()
    """Columns that cannot be evaluated again, and were not compared with the written ones."""
    engine: str = ""
    """The executor of the plan: ``DuckDB`` or ``Spark``."""
    refusals: tuple[tuple[str, str], ...] = ()
    """Engines that would not have been exact, and why."""
    records: TracedRecords | None = field(default=None, compare=False, repr=False)
    """The rows themselves, to be traced further."""
    opened: Any = field(default=None, compare=False, repr=False)
    """The write, as ``govtool.app.records.opened`` opened it."""
    hops: tuple[HopAnswer, ...] = ()
    """The traces through other runs, with ``all_runs``."""
    ends: tuple[HopEnd, ...] = ()
    """Where a trace through all runs does not go on, and why."""

    @property
    def is_complete(self) -> bool:
        """True if all inputs are known in all runs, no file was refused, no trace broke off, and what was verified
        holds.
        """
        traces = (self.trace, *(hop.trace for hop in self.hops))
        rows = (*self.between, *self.outputs, *(rows for hop in self.hops for rows in hop.outputs))
        grades = [step.exactness for trace in traces for step in trace.steps]
        grades += [each.exactness for each in (*rows, *(each for trace in traces for each in trace.inputs))]
        lost = any(trace.refused for trace in traces) or any(end.broken for end in self.ends)
        return not lost and "incomplete" not in grades and self.verified is not False

    @property
    def parts(self) -> tuple[tuple[str, InputAnswer], ...]:
        """Every group of rows, those of other runs included, after what it is."""
        return self.own_parts + tuple(part for hop in self.hops for part in hop.parts)

    @property
    def own_parts(self) -> tuple[tuple[str, InputAnswer], ...]:
        """The groups of rows of the first run, after what each is: ``input``, ``between``, ``output``, ``against``."""
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
            "unverified": list(self.unverified),
            "engine": self.engine,
            "hops": [hop.to_dict() for hop in self.hops],
            "ends": [end.to_dict() for end in self.ends],
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
        header = ["part", "dataset"]
        for name in named:
            header.append(free_name(name, header))
        return tuple(header), rows


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name of a column; one more underscore in front where another column has it."""
    while name in taken:
        name = f"_{name}"
    return name


def _text(value: object) -> str | None:
    return None if value is None else str(value)
