"""The answer of ``why --sql``: the rows of a query with their annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.answers.envelope import envelope
from govtool.arrays.long_text import Annotations
from govtool.records.cells import json_value


@dataclass(frozen=True, slots=True)
class WhyTuple:
    """A row of the result.

    Attributes:
        values: Its cells.
        multiplicity: How often it is there; 0: a candidate.
        annotations: By the key of the JSON form: ``polynomial``, ``which`` …; what a semiring cannot give is missing.
    """

    values: tuple[Any, ...]
    multiplicity: int
    annotations: Mapping[str, Any]

    def to_dict(self) -> dict[str, object]:
        """Its JSON value."""
        return {
            "values": [json_value(value) for value in self.values],
            "present": self.multiplicity > 0,
            "multiplicity": self.multiplicity,
            **self.annotations,
        }

    def as_made(self) -> dict[str, object]:
        """Its JSON value, in which long annotations are ``LongText`` and ``LongList``."""
        made = self.annotations.values_as_made if isinstance(self.annotations, Annotations) else self.annotations
        plain = WhyTuple(self.values, self.multiplicity, {})
        return {**plain.to_dict(), **made}


@dataclass(frozen=True, slots=True)
class WhyAnswer(Answer):
    """The rows of a query, candidates included, with their annotations."""

    schema: ClassVar[str] = "why/1"
    fields: ClassVar[tuple[str, ...]] = ("values", "present", "multiplicity", "annotations")
    types: ClassVar[Mapping[str, str]] = {"present": "boolean", "multiplicity": "integer"}

    columns: tuple[str, ...]
    tuples: tuple[WhyTuple, ...]
    gains_possible: bool
    """True if a deletion may bring rows that are not among the candidates."""
    engine: str = "DuckDB"
    """What evaluated the query."""
    notes: tuple[str, ...] = ()
    """What was sampled, with the error; relations of a run that hang on all that their invocation read."""
    source: Mapping[str, object] = field(default_factory=dict)
    """Of a workflow run: run, relation, execution and node."""

    def body(self) -> Mapping[str, object]:
        """Columns and rows; see docs/output.md."""
        return self._body([each.to_dict() for each in self.tuples])

    def as_made(self) -> dict[str, object]:
        """The JSON object, in which long annotations are ``LongText`` and ``LongList``."""
        return envelope(self.schema, self._body([each.as_made() for each in self.tuples]))

    def _body(self, tuples: list[dict[str, object]]) -> dict[str, object]:
        gains = {"gains_possible": True} if self.gains_possible else {}
        notes = {"notes": list(self.notes)} if self.notes else {}
        return {
            **self.source,
            "columns": list(self.columns),
            "tuples": tuples,
            **gains,
            "engine": self.engine,
            **notes,
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a tuple; values and annotations as JSON."""
        for each in self.tuples:
            values = json.dumps([json_value(value) for value in each.values], ensure_ascii=False)
            annotations = json.dumps(dict(each.annotations), ensure_ascii=False)
            yield values, each.multiplicity > 0, each.multiplicity, annotations
