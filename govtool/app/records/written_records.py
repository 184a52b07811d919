"""The rows of a write whose plan does not give all cells as the run had them: chosen ones, and sums of floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
from govtool.records.trace.back import StagePosition

if TYPE_CHECKING:
    from govtool.model.token import Token
    from govtool.records.lineage import Lineage
    from govtool.records.recordset import RecordSet
    from govtool.records.replay.answer import ReplayAnswer
    from govtool.records.trace.answer import TraceAnswer
    from govtool.records.trace.traced_rows import Part, TracedRows


class WrittenRecords:
    """Rows of such a write, with the interface of a ``RecordSet``.

    Whether rows tie for a cell takes about as long to see as the query itself. What is behind rows does not depend on
    it: only conditions on such cells, their values and replays do.

    Args:
        rows: The rows, such cells blank.
        look: Gives the same rows after a look at the cells.
        choose: Of the whole output: the rows that meet a condition, by what the run wrote; None where those of the plan
            do as well.
    """

    def __init__(
        self,
        rows: RecordSet,
        look: Callable[[], RecordSet],
        choose: Callable[[str], RecordSet | None] | None = None,
    ) -> None:
        self._rows = rows
        self._look = look
        self._choose = choose

    @cached_property
    def known(self) -> RecordSet:
        """The same rows, with the cells that another evaluation gives again."""
        return self._look()

    @property
    def lineage(self) -> Lineage:
        """The plan, with the cells that another evaluation gives again."""
        return self.known.lineage  # type: ignore[return-value]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The rows by place, such cells blank."""
        return self._rows.parts

    def where(self, condition: str, dataset: str | None = None) -> WrittenRecords:
        """The rows that meet a condition: see ``RecordSet.where``."""
        chosen = None if self._choose is None else self._choose(condition)
        if chosen is not None:
            return WrittenRecords(chosen, lambda: chosen)
        try:
            return self._moved(lambda rows: rows.where(condition, dataset))
        except UsageError as error:
            if error.code != "usage.opaque-column":
                raise
        found = self.known.where(condition, dataset)
        return WrittenRecords(found, lambda: found)

    def rows(self, ids: Sequence[tuple[int, int]], dataset: str | None = None) -> WrittenRecords:
        """The input rows with given ids: see ``RecordSet.rows``."""
        return self._moved(lambda rows: rows.rows(ids, dataset))

    def kept(self) -> WrittenRecords:
        """The same rows, evaluated once."""
        return self._moved(lambda rows: rows.kept())

    def go_back(self) -> WrittenRecords:
        """The rows one boundary below."""
        return self._moved(lambda rows: rows.go_back())

    def go_back_all(self) -> WrittenRecords:
        """The input rows."""
        return self._moved(lambda rows: rows.go_back_all())

    def go_next(self) -> WrittenRecords:
        """The rows one boundary above."""
        return self._moved(lambda rows: rows.go_next())

    def go_next_all(self) -> WrittenRecords:
        """The output rows whose trace has one of these rows."""
        return self._moved(lambda rows: rows.go_next_all())

    def count(self) -> int:
        """Return the number of rows."""
        return self._rows.count()

    def names(self) -> list[str]:
        """The places of the rows."""
        return self._rows.names()

    def arrow(self, dataset: str | None = None) -> Any:
        """The rows as a pyarrow table."""
        return self._shown().arrow(dataset)

    def df(self, dataset: str | None = None) -> Any:
        """The rows as a data frame."""
        return self._shown().df(dataset)

    def ids(self, dataset: str | None = None) -> tuple[Token, ...]:
        """The tokens of input rows."""
        return self._rows.ids(dataset)

    def explain(self) -> str:
        """The steps in words, one a line."""
        return self._rows.explain()

    def answer(self, limit: int = 1000) -> TraceAnswer:
        """The answer in the form of ``trace/1``."""
        return self._rows.answer(limit)

    def replay(
        self,
        exclude: WrittenRecords | TracedRows | Mapping[str, str] | None = None,
        with_: Mapping[str, str | PathLike[str]] | None = None,
        script: str | PathLike[str] | Sequence[str] | None = None,
    ) -> ReplayAnswer:
        """These rows, evaluated over changed inputs and compared with what they were: see ``RecordSet.replay``."""
        left_out = exclude.known if isinstance(exclude, WrittenRecords) else exclude
        return self.known.replay(left_out, with_, script)

    def _moved(self, move: Callable[[RecordSet], RecordSet]) -> WrittenRecords:
        return WrittenRecords(move(self._rows), lambda: move(self.known))

    def _shown(self) -> RecordSet:
        """Rows whose values can be shown: those of inputs have no chosen cells."""
        places = [part.stage for part in self._rows.parts if isinstance(part, StagePosition)]
        shown = {column.id for stage in places for column in stage.segment.visible}
        return self.known if shown & self._rows.lineage.blank else self._rows
