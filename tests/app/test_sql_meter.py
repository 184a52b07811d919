"""Progress of an ingest of SQL: every stage moves, and says its rate and what failed."""

from __future__ import annotations

from itertools import groupby

import pytest

from govtool.app.ingest import sql_extraction as module
from govtool.app.ingest import sql_workers
from govtool.app.ingest.logs.request import Status
from govtool.app.ingest.sql import ingest_sql
from govtool.app.ingest.sql_meter import SqlMeter, counting
from govtool.app.ingest.sql_options import SqlRequest
from govtool.capture.sql.stages import StageProgress
from govtool.store import Store

STAGES = ["parsing", "resolving", "describing", "writing"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "etl").mkdir()
    for number in range(150):
        text = f"create view v{number} as select a from t{number};\nselect a from t;\n"
        (tmp_path / "etl" / f"{number}.sql").write_text(text + ("selec b frm;\n" if number % 50 == 0 else ""))
    return tmp_path / "etl"


@pytest.mark.parametrize("memos", [True, False])
def test_every_stage_of_an_ingest_moves(folder, monkeypatch, memos: bool) -> None:
    if not memos:
        monkeypatch.setattr(module, "lineage_with_memos", lambda *_: None)
    seen: list[Status] = []
    result = ingest_sql(Store.init(str(folder.parent / "store")), SqlRequest((str(folder),)), report=seen.append)
    stages = {name: list(found) for name, found in groupby(seen, key=lambda status: status.stage)}
    assert list(stages) == (STAGES if memos else STAGES[:3])  # without memos, nothing is left but the commit itself
    assert [status.done for status in seen] == sorted(status.done for status in seen)
    assert all(len(stages[name]) > 2 for name in STAGES[:3])
    assert stages["parsing"][0].done < 200 < stages["parsing"][-1].done
    last = stages["describing"][-1]
    assert (last.distinct, last.failed) == (152, 3)  # of 303: the view of each file, and two that all have
    assert last.records == result.coverage.statements == 303


def test_unchanged_files_are_counted_and_not_parsed(folder) -> None:
    store = Store.init(str(folder.parent / "store"))
    ingest_sql(store, SqlRequest((str(folder),)))
    (folder / "1.sql").write_text("create view v1 as select c from t1")
    seen: list[Status] = []
    ingest_sql(store, SqlRequest((str(folder),)), report=seen.append)
    parsing = [status for status in seen if status.stage == "parsing"]
    assert parsing[-1].records > 200
    assert parsing[-1].distinct < 10


def test_the_rate_is_that_of_the_stage_and_the_bar_never_runs_back() -> None:
    now = [10.0]
    seen: list[Status] = []
    meter = SqlMeter(seen.append, clock=lambda: now[0])
    report = meter.report
    assert report is not None

    def at(seconds: float, *stage: object) -> Status:
        now[0] = seconds
        report(StageProgress(*stage))  # type: ignore[arg-type]
        return seen[-1]

    assert at(10, "parsing", 0, 100, 0, 0, 0).rate == 0
    assert at(12, "parsing", 50, 100, 300, 200, 4) == Status("parsing", 165, 1000, 300, 150.0, 200, 4, 2 * 835 / 165)
    assert at(20, "resolving", 0, 600, 0, 400, 4).rate == 0
    assert at(21, "resolving", 300, 600, 300, 400, 4).rate == 300
    assert at(22, "parsing", 1, 100, 6, 6, 0).done == 495
    meter.wrote(1, 2)
    assert (seen[-1].stage, seen[-1].done) == ("writing", 910)
    now[0] = 23
    meter.wrote(2, 2)
    assert (seen[-1].rate, seen[-1].left) == (300, 0)


def test_without_a_callback_nothing_is_counted() -> None:
    meter = SqlMeter(counting(None))
    assert meter.report is None
    meter.wrote(1, 2)
    seen: list[tuple[int, int]] = []
    SqlMeter(counting(lambda done, total: seen.append((done, total)))).wrote(2, 2)
    assert seen == [(1000, 1000)]


def test_several_processes_report_their_statements_before_the_stages_of_this_one(folder, monkeypatch) -> None:
    monkeypatch.setattr(sql_workers, "WORTH", 0)
    seen: list[Status] = []
    result = ingest_sql(
        Store.init(str(folder.parent / "store")), SqlRequest((str(folder),), workers=2), report=seen.append
    )
    stages = {name: list(found) for name, found in groupby(seen, key=lambda status: status.stage)}
    assert list(stages) == ["extracting", *STAGES]
    assert [status.done for status in seen] == sorted(status.done for status in seen)
    last = seen[-1]
    assert (last.failed, result.coverage.statements) == (3, 303)
    assert last.distinct >= 152
    assert stages["parsing"][0].done >= 750
