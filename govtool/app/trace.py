"""Questions about rows: what is behind the rows of an output, and what rows of an input reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.trace import BACK, FORWARD, TraceReport
from govtool.app.history import version_of
from govtool.app.record_runs import find_readers, find_writer, input_name, only
from govtool.app.records import OpenedWrite, open_write
from govtool.errors import UsageError
from govtool.records.plan.expressions import Named
from govtool.records.plan.nodes import Limit, Project
from govtool.records.trace.answer import InputAnswer, json_value, row_key
from govtool.records.trace.back import StagePosition, count_rows
from govtool.records.trace.recordset import SHOWN, RecordSet, part_name
from govtool.records.trace.segment import Grade

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.store import Commit, Reader

ALL_ROWS = (1 << 31) - 1
"""A limit that no page reaches; Spark's limits are 32-bit."""
_NOT_FOUND = Grade("superset", "the rows are not found again in the written files: shown as the plan gives them")


def record_set(store: Reader, commit: Commit, output: str | None, run: str | None = None) -> RecordSet:
    """Every row of an output, to be traced back.

    Raises:
        UsageError: see ``find_writer`` and ``open_write``.
    """
    return open_write(store, commit, find_writer(store, commit, output, run)).rows()


def trace_back(
    store: Reader,
    commit: Commit,
    output: str,
    where: str,
    *,
    run: str | None = None,
    step: bool = False,
    limit: int = SHOWN,
    verify: bool = False,
) -> TraceReport:
    """The input rows behind the rows of an output that meet a condition.

    Args:
        store: The store.
        commit: Writes are those of this commit.
        output: A dataset or its path.
        where: A Spark SQL boolean expression over the columns of the output.
        run: The write: the id of a run or of an application, or ``JOB~n``; by default the one that left the files
            which are there now.
        step: Go one boundary only.
        limit: The most rows that are listed of each input; counts are whole.
        verify: Evaluate the plan again and compare all its rows with the written ones.

    Raises:
        UsageError: see ``find_writer``; nothing meets the condition (``usage.no-rows``).
        EngineError: no engine evaluates the plan exactly, or Spark is needed and missing.
    """
    opened = open_write(store, commit, find_writer(store, commit, output, run))
    chosen = opened.rows(where)
    _some(chosen, where, output)
    found = chosen.go_back() if step else chosen.go_back_all()
    return _report(opened, (store, commit), (BACK, where), found, limit, opened.verified() if verify else None)


def trace_forward(
    store: Reader,
    commit: Commit,
    dataset: str,
    where: str,
    *,
    run: str | None = None,
    step: bool = False,
    limit: int = SHOWN,
    verify: bool = False,
) -> TraceReport:
    """The output rows that rows of an input reached.

    Args:
        store: The store.
        commit: Writes are those of this commit.
        dataset: A dataset or its path.
        where: A Spark SQL boolean expression over the columns of the input.
        run: As for ``trace_back``; by default the write that read the files which are there now.
        step: Go one boundary only.
        limit: The most rows that are listed.
        verify: As for ``trace_back``.

    Raises:
        UsageError: see ``find_readers``; nothing meets the condition (``usage.no-rows``).
        EngineError: no engine evaluates the plan exactly, or Spark is needed and missing.
    """
    chosen_run = only(find_readers(store, commit, dataset, run), dataset)
    opened = open_write(store, commit, chosen_run)
    name = input_name(chosen_run, dataset)
    chosen = opened.lineage.input(name, where)
    selected = name, _some(chosen, where, dataset)
    found = chosen.go_next() if step else chosen.go_next_all()
    checked = opened.verified() if verify else None
    return _report(opened, (store, commit), (FORWARD, where), found, limit, checked, selected)


def _some(chosen: RecordSet, where: str, place: str) -> int:
    """How many rows are chosen: at least one, unless they may be in files that were refused."""
    count = chosen.count()
    if not count and not chosen.lineage.refused:
        raise UsageError(
            f"no row of {place} meets {where!r}",
            code="usage.no-rows",
            hint="quote text with '…' within the expression; names of columns are those of the data",
        )
    return count


def _report(
    opened: OpenedWrite,
    at: tuple[Reader, Commit],
    choice: tuple[str, str],
    found: RecordSet,
    limit: int,
    verified: bool | None,
    selected: tuple[str, int] | None = None,
) -> TraceReport:
    direction, where = choice
    trace = found.answer(limit)
    if selected is not None:
        trace = replace(trace, output=selected[0], selected=selected[1])
    places = [part for part in found.parts if isinstance(part, StagePosition)]
    at_output = [part for part in places if direction == FORWARD and part.stage.above is None]
    return TraceReport(
        version=version_of(*at),
        direction=direction,
        where=where,
        trace=trace,
        between=tuple(_position_rows(found, part, limit) for part in places if part not in at_output),
        outputs=tuple(_output_rows(opened, found, part, limit) for part in at_output),
        verified=verified,
        engine=opened.executor.engine,
        refusals=tuple(opened.executor.refusals),
        records=found,
    )


def _output_rows(opened: OpenedWrite, found: RecordSet, part: StagePosition, limit: int) -> InputAnswer:
    written = opened.in_output(part)
    if written is not None:
        (rows,) = written.answer(limit).inputs
        return rows
    return _position_rows(found, part, limit, opened.run.output or opened.run.run, _NOT_FOUND)


def _position_rows(
    found: RecordSet, part: StagePosition, limit: int, name: str = "", grade: Grade | None = None
) -> InputAnswer:
    """Rows between two boundaries, which have no ids."""
    executor = found.lineage.executor
    visible = part.stage.segment.visible
    shown = Project(part.rows, tuple(Named(column, column.id, column.name) for column in visible))
    rows = tuple(
        {row_key(column.name): json_value(value) for column, value in zip(visible, row, strict=True)}
        for row in executor.fetch(Limit(shown, limit))
    )
    count = count_rows(executor, part.rows)
    worst = found.lineage.graded(part.grade if grade is None else part.grade.worst(grade))
    return InputAnswer(name or part_name(part), "", worst.exactness, worst.why, count, count > len(rows), rows)


def token_lines(report: TraceReport) -> Iterable[str]:
    """The tokens of all rows that have one, a line each: every row of the inputs, whatever is shown."""
    if report.direction == FORWARD or report.records is None:
        return (str(row["_id"]) for _, group in report.parts for row in group.rows if "_id" in row)
    return map(str, report.records.ids())


def write_parquet(report: TraceReport, file: Path) -> None:
    """Write all rows of the trace, in the types of the data; several datasets become one table with a column each.

    Raises:
        UsageError: the file cannot be written (``usage.output``).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(_table(report), file)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"cannot write it: {error}", code="usage.output", location=str(file)) from error


def _table(report: TraceReport) -> object:
    import pyarrow as pa

    tables = []
    records = report.records
    names = [part_name(part) for part in records.parts if not part.against] if records is not None else []
    for name in dict.fromkeys(names):
        assert records is not None
        table = records.arrow(None if len(names) == 1 else name)
        tables.append(table.add_column(0, "dataset", pa.array([name] * table.num_rows, pa.string())))
    if not tables:
        return pa.table({"dataset": pa.array([], pa.string())})
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:  # columns of one name and types that have nothing in common
        return pa.concat_tables([_as_text(table) for table in tables], promote_options="permissive")


def _as_text(table: object) -> object:
    import pyarrow as pa

    assert isinstance(table, pa.Table)
    columns = [pa.array([None if v is None else str(v) for v in column.to_pylist()]) for column in table.columns]
    return pa.Table.from_arrays([column.cast(pa.string()) for column in columns], names=table.column_names)
