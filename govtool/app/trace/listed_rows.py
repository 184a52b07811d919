"""Rows that an answer lists once, though the traces through several runs come to them."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from govtool.app.trace.file_rows import MAX_ROWS, Found, Rows, is_behind, rows_of
from govtool.records.execute.places import Place, place_of, plain_uri
from govtool.records.plan.nodes import Relation
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows

if TYPE_CHECKING:
    from govtool.records.trace.answer import InputAnswer, TraceAnswer


class ListedRows:
    """The rows of inputs that an answer lists already, by file: a row that several runs read is listed once."""

    def __init__(self) -> None:
        self._rows: dict[Place, set[int]] = {}

    def add(self, found: Found) -> None:
        """Note rows that were listed."""
        for _, rows in found:
            for place, ids in rows.items():
                self._rows.setdefault(place, set()).update(ids)

    def answer(self, back: RecordSet, limit: int) -> tuple[TraceAnswer, Found]:
        """The answer of a trace back with the rows that were not listed before, and all its rows by file.

        Args:
            back: What the trace came to.
            limit: The most rows of an input that are listed.
        """
        parts, repeated, found = [], [], []
        for part in back.parts:
            if not is_behind(part) or not isinstance(part.leaf, Relation):
                parts.append(part)
                continue
            rows = rows_of(back, part)
            found.append((part.leaf.dataset, rows))
            again = self._listed(rows)
            parts.append(self._new(back, part, rows) if again else part)
            repeated.append(again)
        answer = replace(back, parts=tuple(parts)).answer(limit)
        groups = iter(repeated)
        of_files = [is_behind(part) for part in parts if isinstance(part, ReachedRows) and not part.against]
        counts = [next(groups) if is_of_files else 0 for is_of_files in of_files]
        inputs = tuple(map(_with_repeated, answer.inputs, counts))
        return replace(answer, inputs=inputs), found

    def of_program(self, trace: TraceAnswer, found: Found) -> TraceAnswer:
        """The answer of an RDD program without the rows that were listed before."""
        repeated = {dataset: self._listed(rows) for dataset, rows in found}
        listed = {(place[0], row) for place, rows in self._rows.items() for row in rows}
        inputs = []
        for group in trace.inputs:
            new = tuple(row for row in group.rows if (plain_uri(str(row.get("_file"))), row.get("_row")) not in listed)
            again = repeated.get(group.dataset, 0)
            table = group.table and partial(_new_lines, group.table, listed)
            inputs.append(_with_repeated(replace(group, count=group.count - again, rows=new, table=table), again))
        return replace(trace, inputs=tuple(inputs))

    def _listed(self, rows: Rows) -> int:
        """How many of some rows were listed before; 0 where there are too many to know all."""
        if sum(map(len, rows.values())) > MAX_ROWS:
            return 0
        return sum(len(ids & self._rows.get(place, set())) for place, ids in rows.items())

    def _new(self, back: RecordSet, part: ReachedRows, rows: Rows) -> ReachedRows:
        """The rows of an input that were not listed before."""
        assert isinstance(part.leaf, Relation)
        ordinals = {place_of(file): file.ordinal for file in part.leaf.files}
        new = {place: ids - self._rows.get(place, set()) for place, ids in rows.items()}
        return replace(
            part, rows=back.lineage.kept_records((ordinals[place], row) for place, ids in new.items() for row in ids)
        )


def _new_lines(table: Callable[[], Any], listed: Container[tuple[str, int]]) -> Any:
    """The lines of a program's input that were not listed before."""
    lines = table()
    if "_file" not in lines.column_names:
        return lines
    places = zip(lines.column("_file").to_pylist(), lines.column("_row").to_pylist(), strict=True)
    return lines.filter([(plain_uri(file), row) not in listed for file, row in places])


def _with_repeated(group: InputAnswer, repeated: int) -> InputAnswer:
    return replace(group, count=group.count + repeated, repeated=repeated) if repeated else group
