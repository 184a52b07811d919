"""Executors that share a database see nothing of each other."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from govtool.app.records.engines import engines
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import LocalRows, Session
from govtool.records.plan.types import LONG
from govtool.records.sql.dialect import NotExact

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

SESSION = Session("4.0", True, "Europe/Berlin")


def _rows(*values: int) -> LocalRows:
    return LocalRows(1, (Attribute(1, "n", LONG),), tuple((value,) for value in values))


def test_tables_of_one_name_are_each_executors_own() -> None:
    from govtool.records.execute.duckdb import DuckDatabase, DuckExecutor

    database = DuckDatabase(threads=1)
    first, second = DuckExecutor(SESSION, database=database), DuckExecutor(SESSION, database=database)
    one, other = first.keep(_rows(1, 2)), second.keep(_rows(3))
    assert one.dataset == other.dataset  # the name, which both count from 1
    assert sorted(first.fetch(one)) == [(1,), (2,)]
    assert second.fetch(other) == [(3,)]
    second.connection.execute("SET TimeZone = 'Asia/Tokyo'")
    for executor in (first, DuckExecutor(SESSION, database=database)):
        assert executor.connection.execute("SELECT current_setting('TimeZone')").fetchone() == ("UTC",)
    del second, other
    assert sorted(first.fetch(one)) == [(1,), (2,)]


def test_engines_share_a_database_when_they_are_given_one() -> None:
    from govtool.records.execute.duckdb import DuckDatabase

    database = DuckDatabase()
    asked: list[DuckDatabase] = []

    def shared() -> DuckDatabase:
        asked.append(database)
        return database

    executors = [engines(SESSION, database=shared)[0].start() for _ in range(2)]
    assert [executor.fetch(executor.keep(_rows(7))) for executor in executors] == [[(7,)], [(7,)]]  # type: ignore[attr-defined]
    assert len(asked) == 2


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_the_rows_of_what_is_kept_are_known(count: int) -> None:
    from govtool.records.execute.duckdb import DuckExecutor

    executor = DuckExecutor(SESSION)
    kept = executor.keep(_rows(*range(count)))
    assert executor.kept_rows(kept) == len(executor.fetch(kept)) == count
    assert executor.kept_rows(replace(kept, dataset="another")) is None


def test_a_version_that_nobody_tried_does_not_answer(monkeypatch) -> None:
    import duckdb

    monkeypatch.setattr(duckdb, "__version__", "2.0.0")
    first, _ = engines(SESSION)
    with pytest.raises(NotExact, match=r"DuckDB 2\.0\.0 is not used.*pip install 'govtool\[records\]'"):
        first.start()


def test_a_database_takes_a_part_of_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from govtool.records.execute.duckdb import open_duckdb

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    connection = open_duckdb()
    settings = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
    limit, folder = connection.execute(settings).fetchall()[0]
    number, _, unit = limit.partition(" ")
    assert unit == "MiB" or (unit == "GiB" and float(number) <= 4)
    connection.execute("SET memory_limit = '100MiB'; CREATE TEMP TABLE t AS SELECT range AS n FROM range(30000000)")
    assert connection.execute("SELECT count(*), max(n) FROM t").fetchall() == [(30_000_000, 29_999_999)]
    assert Path(folder).parent == tmp_path
    connection.close()
    assert list(tmp_path.iterdir()) == [], "what did not fit is removed"
