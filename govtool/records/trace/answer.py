"""The answer of a trace in its JSON form, ``trace/1``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from govtool.records.trace.segment import Exactness

SCHEMA = "trace/1"


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """One boundary that the trace crossed.

    Attributes:
        operator: Its name; ``output`` for the selected rows themselves.
        exactness: How close the rows keep to the trace as defined.
        why: Why they are not exact; empty if they are.
        rows: How many rows the step started from.
    """

    operator: str
    exactness: Exactness
    why: str
    rows: int

    @property
    def text(self) -> str:
        """The step in words."""
        return f"{self.operator}: {self.rows:,} rows, {self.exactness}{f' ({self.why})' if self.why else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The step in JSON's types."""
        return {"operator": self.operator, "exactness": self.exactness, "why": self.why, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class InputAnswer:
    """Rows of one input.

    Attributes:
        dataset: The dataset's id.
        version: The version that was read; empty where it has none.
        exactness: How close the rows keep to the trace as defined.
        why: Why they are not exact; empty if they are.
        count: How many rows there are.
        truncated: Whether ``rows`` holds fewer.
        rows: Rows as flat objects: ``_id`` (a record token), ``_file``, ``_row``, and the columns by name.
        repeated: How many of them an earlier part of the answer has; they are not listed again.
        table: Gives all of these rows, beyond a limit too, as a pyarrow table in the types of the data, with the same
            columns as ``rows``; None: ``rows`` are all there is.
    """

    dataset: str
    version: str
    exactness: Exactness
    why: str
    count: int
    truncated: bool
    rows: tuple[dict[str, Any], ...]
    repeated: int = 0
    table: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The rows in JSON's types."""
        repeated = {"repeated": self.repeated} if self.repeated else {}
        return {
            "dataset": self.dataset,
            "version": self.version,
            "exactness": self.exactness,
            "why": self.why,
            "count": self.count,
            "truncated": self.truncated,
            **repeated,
            "rows": [dict(row) for row in self.rows],
        }


def text_table(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows of text, such as the lines of a file, as a pyarrow table."""
    import pyarrow as pa

    found = list(rows)
    columns = {}
    for name in dict.fromkeys(name for row in found for name in row):
        values = [row.get(name) for row in found]
        is_number = name == "_row"
        shown = values if is_number else [None if value is None else str(value) for value in values]
        columns[name] = pa.array(shown, pa.int64() if is_number else pa.string())
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file whose rows are not shown.

    Attributes:
        dataset: The dataset's id.
        file: The file's URI.
        reason: Why: it changed since the run, or is gone.
    """

    dataset: str
    file: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """The refusal in JSON's types."""
        return {"dataset": self.dataset, "file": self.file, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class EvaluatedInput:
    """An input whose files are gone or were written again, and whose rows the plan of the run that wrote them gave.

    Attributes:
        dataset: The dataset's id.
        run: The run that wrote it; the trace goes on to what this run read.
    """

    dataset: str
    run: str

    def to_dict(self) -> dict[str, Any]:
        """The input in JSON's types."""
        return {"dataset": self.dataset, "run": self.run}


@dataclass(frozen=True, slots=True)
class TraceAnswer:
    """The answer of a trace.

    Attributes:
        run: The run whose plan was followed; empty for a query that was not run.
        output: The dataset that rows were selected from, or the input for a trace forward.
        selected: How many rows were selected.
        steps: The boundaries in the order of the trace.
        inputs: The rows that it came to, by dataset.
        against: Rows that stand against the selected ones, such as right operands of EXCEPT.
        refused: Files whose rows are not shown.
        evaluated: Inputs that were evaluated again, and are not among ``inputs``: their own inputs are.
    """

    run: str
    output: str
    selected: int
    steps: tuple[StepAnswer, ...]
    inputs: tuple[InputAnswer, ...]
    against: tuple[InputAnswer, ...] = ()
    refused: tuple[RefusedFile, ...] = ()
    evaluated: tuple[EvaluatedInput, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer in JSON's types."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "output": self.output,
            "selected": self.selected,
            "steps": [step.to_dict() for step in self.steps],
            "inputs": [rows.to_dict() for rows in self.inputs],
            "against": [rows.to_dict() for rows in self.against],
            "refused": [file.to_dict() for file in self.refused],
            **({"evaluated": [each.to_dict() for each in self.evaluated]} if self.evaluated else {}),
        }
