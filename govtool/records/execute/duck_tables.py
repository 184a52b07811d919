"""Tables that an executor keeps in DuckDB, written to a file and opened from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.nodes import Session

_NUMBERED = re.compile(r"kept_([0-9]+)")


def save_tables(executor: DuckExecutor, names: Iterable[str], file: Path) -> None:
    """Write kept tables into a database file.

    Args:
        executor: Their executor.
        names: The tables, as leaves of the format ``KEPT`` call them.
        file: The file, which is not there yet.
    """
    connection = executor.connection
    connection.execute(f"ATTACH {_text(file)} AS saved (BLOCK_SIZE 16384)")  # most tables are small
    try:
        for name in sorted(set(names)):
            connection.execute(f"CREATE TABLE saved.main.{name} AS SELECT * FROM {name}")
    finally:
        connection.execute("DETACH saved")


def open_tables(session: Session, file: Path) -> DuckExecutor:
    """Open an executor over tables that were saved; new ones get names of their own.

    Raises:
        duckdb.Error: The file is no such database, or damaged.
    """
    executor = DuckExecutor(session)
    try:
        _attach(executor, file)
    except BaseException:
        executor.connection.close()
        raise
    return executor


def _attach(executor: DuckExecutor, file: Path) -> None:
    """Add the tables of a file to an executor."""
    connection = executor.connection
    connection.execute(f"ATTACH {_text(file)} AS saved (READ_ONLY)")
    found = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'saved'").fetchall()
    for (name,) in found:
        connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM saved.main.{name}")
    numbers = [int(match[1]) for (name,) in found if (match := _NUMBERED.fullmatch(name))]
    executor.skip(max(numbers, default=0))


def _text(file: Path) -> str:
    return "'" + str(file).replace("'", "''") + "'"
