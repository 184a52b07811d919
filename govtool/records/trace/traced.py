"""The interface of sets of records, traced by a plan, by the log of an RDD program, or by stored positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from govtool.model.token import Token
    from govtool.records.trace.answer import TraceAnswer


class TracedRecords(Protocol):
    """Rows at one place or at several: of the output, between two boundaries, or of inputs."""

    def where(self, condition: str, dataset: str | None = None) -> TracedRecords:
        """The rows that meet a condition, a Spark SQL boolean expression."""

    def go_back(self) -> TracedRecords:
        """The rows one boundary below."""

    def go_back_all(self) -> TracedRecords:
        """The input rows."""

    def go_next(self) -> TracedRecords:
        """The rows one boundary above."""

    def go_next_all(self) -> TracedRecords:
        """The output rows whose trace has one of these rows."""

    def count(self) -> int:
        """Return the number of rows."""

    def names(self) -> list[str]:
        """The places of the rows."""

    def arrow(self, dataset: str | None = None) -> Any:
        """The rows as a pyarrow table."""

    def df(self, dataset: str | None = None) -> Any:
        """The rows as a data frame."""

    def ids(self, dataset: str | None = None) -> Sequence[Token]:
        """The tokens of input rows."""

    def explain(self) -> str:
        """The steps in words, one a line."""

    def answer(self, limit: int = 1000) -> TraceAnswer:
        """The answer in the form of ``trace/1``."""
