"""The answer of a trace in its JSON form, ``trace/1``."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from dataclasses import dataclass
from typing import Any

from govtool.records.plan import types as t
from govtool.records.trace.segment import Exactness

SCHEMA = "trace/1"
_TAKEN = re.compile(r"_+(?:id|file|row)\Z")


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
    """

    dataset: str
    version: str
    exactness: Exactness
    why: str
    count: int
    truncated: bool
    rows: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """The rows in JSON's types."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "exactness": self.exactness,
            "why": self.why,
            "count": self.count,
            "truncated": self.truncated,
            "rows": [dict(row) for row in self.rows],
        }


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
    """

    run: str
    output: str
    selected: int
    steps: tuple[StepAnswer, ...]
    inputs: tuple[InputAnswer, ...]
    against: tuple[InputAnswer, ...] = ()
    refused: tuple[RefusedFile, ...] = ()

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
        }


def row_key(column: str) -> str:
    """The key of a data column in a row: ``_id``, ``_file`` and ``_row`` get one more underscore."""
    return f"_{column}" if _TAKEN.match(column) else column


def zoned(value: Any, kind: t.Type) -> Any:
    """A cell of an executor, its timestamps with their zone: executors give them in UTC."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC) if kind == t.TIMESTAMP and value.tzinfo is None else value
    if isinstance(kind, t.Array) and isinstance(value, list):
        return [zoned(item, kind.element) for item in value]
    if isinstance(kind, t.Map) and isinstance(value, dict):
        return {zoned(key, kind.key): zoned(item, kind.value) for key, item in value.items()}
    if isinstance(kind, t.Struct) and isinstance(value, dict):
        kinds = {field.name: field.type for field in kind.fields}
        return {name: zoned(item, kinds[name]) if name in kinds else item for name, item in value.items()}
    return value


def json_value(value: Any) -> Any:
    """A cell in JSON's types: decimals, dates, timestamps (with their zone) and bytes are strings."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return format(value, "f") if isinstance(value, decimal.Decimal) else str(value)
