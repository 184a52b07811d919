"""Traces through one RDD program on a way through several runs: from lines of files to lines of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from govtool.app.rdd.open import run_again
from govtool.app.rdd.program_records import program_records
from govtool.errors import EvidenceError
from govtool.records.execute.places import place_of

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.execute.places import Place
    from govtool.records.trace.answer import InputAnswer, TraceAnswer
    from govtool.store import Commit, Reader

    Found = list[tuple[str, dict[Place, set[int]]]]

_ALL = 100_001
"""Lines that go from one run to the next, and one more."""


@run_again()
def program_hop_back(
    store: Reader, commit: Commit, run: RecordRun, rows: Mapping[Place, set[int]], limit: int
) -> tuple[TraceAnswer, Found]:
    """The trace back from lines that a program wrote; and the rows of files that it came to.

    Raises:
        EvidenceError: The lines are gone, or the program cannot be run again.
    """
    reached = program_records(store, commit, run).at_lines(rows).go_back_all()
    return reached.answer(limit), reached.file_rows()


@run_again()
def program_hop_forward(
    store: Reader, commit: Commit, run: RecordRun, rows: Mapping[Place, set[int]], limit: int
) -> tuple[TraceAnswer, tuple[InputAnswer, ...], Found]:
    """The trace forward from lines that a program read, its lines of the result, and their places.

    Raises:
        EvidenceError: The program cannot be run again.
    """
    from govtool.app.rdd.opened_positions import open_positions
    from govtool.app.rdd.positions import kept_input_rows

    opened = open_positions(store, commit, run)
    if opened is not None:
        chosen: Any = kept_input_rows(opened, rows)
    else:
        from govtool.app.rdd.open import open_program
        from govtool.app.rdd.records import input_rows

        chosen = input_rows(open_program(store, commit, run), rows)
    reached = chosen.go_next_all()
    trace = replace(reached.answer(limit), selected=chosen.count())
    return trace, reached.outputs(limit), written_lines(reached)


def written_lines(reached: Any) -> Found:
    """Rows of a program's result, as rows of the files that it wrote.

    Raises:
        EvidenceError: They are not found again in the files (``evidence.changed``).
    """
    output = reached.opened.output
    if output is None:
        if reached.opened.run.output and reached.count():
            raise EvidenceError("the files that it wrote are gone or have changed", code="evidence.changed")
        return []
    files = {file.uri: place_of(file) for file in output.files}
    rows: dict[Place, set[int]] = {}
    for group in reached.outputs(_ALL):
        for row in group.rows:
            rows.setdefault(files[row["_file"]], set()).add(row["_row"])
    return [(reached.opened.name, rows)]
