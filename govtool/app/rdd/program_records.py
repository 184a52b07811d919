"""Records of a stored RDD program: by positions that the run kept, else by its operators, built again and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.app.rdd.positions import KeptRecords
    from govtool.app.rdd.records import RddRecords
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader

    ProgramRecords = RddRecords | KeptRecords


def program_records(store: Reader, commit: Commit, run: RecordRun, *, kept: bool = True) -> ProgramRecords:
    """Every row of a program's result, to be traced back.

    Args:
        store: The store.
        commit: Programs are those of this commit.
        run: The action.
        kept: Use positions that the run kept, if there are any.

    Raises:
        EvidenceError: see ``open_program``.
    """
    from govtool.app.rdd.opened_positions import open_positions
    from govtool.app.rdd.positions import kept_result

    opened = open_positions(store, commit, run) if kept else None
    if opened is not None:
        return kept_result(opened)
    from govtool.app.rdd.open import open_program
    from govtool.app.rdd.records import all_records

    return all_records(open_program(store, commit, run))


def input_records(store: Reader, commit: Commit, run: RecordRun, name: str, *, kept: bool = True) -> ProgramRecords:
    """Every row of a program's input, to be traced forward.

    Args:
        store: The store.
        commit: Programs are those of this commit.
        run: The action.
        name: The input.
        kept: Use positions that the run kept, if there are any.

    Raises:
        EvidenceError: see ``open_program``.
        UnknownNameError: The program does not read it.
    """
    from govtool.app.rdd.opened_positions import open_positions
    from govtool.app.rdd.positions import kept_input

    opened = open_positions(store, commit, run) if kept else None
    if opened is not None:
        return kept_input(opened, name)
    from govtool.app.rdd.open import open_program
    from govtool.app.rdd.records import program_input

    return program_input(open_program(store, commit, run), name)
