"""The local engine: the same graph whatever the number of processes, killed and resumed or not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hardlogs import write_logs

from govtool.app.ingest.logs import local, pool, steps
from govtool.app.ingest.logs.ingest import ingest_log
from govtool.app.ingest.logs.request import LogRequest, Status
from govtool.app.ingest.logs.step_files import StepFiles, spooled
from govtool.app.ingest.sql_options import SqlRequest
from govtool.capture.logs import pieces
from govtool.errors import EngineError, EvidenceError, UsageError
from govtool.store import Store
from govtool.store.cache import cache_root


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Hard logs, in pieces so small that there are many of everything."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pieces, "RANGE", 20_000)
    monkeypatch.setattr(steps, "GROUP", 50)
    monkeypatch.setattr(local, "DERIVATIONS_PER_FRAGMENT", 40)
    monkeypatch.setattr(local, "SMALL", 1000)
    monkeypatch.setattr(local, "BATCH", 100)
    return write_logs(tmp_path / "logs")


def request(folder: Path, **more) -> LogRequest:
    return LogRequest(SqlRequest((str(folder),), dialect="postgres"), **more)


def graph(store: Store) -> list[tuple]:
    """All that a store holds of its head, but for who committed it when."""
    head = store.head()
    assert head is not None
    return [sorted(tuple(ref) for ref in store.fragments(head)), head.batch, json.dumps(head.summary, sort_keys=True)]


def ingested(folder: Path, **more) -> list[tuple]:
    store = Store.init("memory://")
    ingest_log(store, request(folder, **more))
    return graph(store)


def test_any_number_of_processes_makes_the_same_graph(logs):
    alone = ingested(logs, workers=1)
    assert len([ref for ref in alone[0] if ref[1] == "derivations"]) > 8
    assert ingested(logs, workers=3) == alone
    assert list((cache_root() / "ingest").iterdir()) == []


def test_pieces_and_groups_do_not_change_what_is_read(logs, monkeypatch):
    in_pieces = ingested(logs, workers=1)
    summary = json.loads(in_pieces[2])
    monkeypatch.setattr(pieces, "RANGE", 1 << 24)
    monkeypatch.setattr(local, "SMALL", 1 << 24)
    whole = ingested(logs, workers=1)
    assert json.loads(whole[2]) == summary
    assert whole[0] == in_pieces[0]


def test_every_run_is_counted_once(logs):
    store = Store.init("memory://")
    result = ingest_log(store, request(logs, workers=1))
    counts = result.counts
    coverage = result.coverage
    assert counts["rejected"] == 5  # the script among them, which may be code
    assert counts["records"] > 1000
    assert {"unknown-dialect", "reject", "truncated", "parse-error"} <= {d.code for d in result.diagnostics}
    runs = coverage.runs_understood + coverage.runs_partial + coverage.runs_opaque
    assert 0 < runs <= counts["records"] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_done_is_not_done_again(logs, monkeypatch, workers):
    expected = ingested(logs, workers=1)

    class StopError(Exception):
        pass

    reported: list[Status] = []
    monkeypatch.setattr("govtool.app.ingest.logs.meter._SELDOM", float("inf"))  # only whole steps are counted

    def stop(status: Status) -> None:
        reported.append(status)
        if [s.stage for s in reported].count("resolving") == 5:
            raise StopError

    store = Store.init("memory://")
    with pytest.raises(StopError):
        ingest_log(store, request(logs, workers=workers), progress=stop)
    assert store.head() is None
    (folder,) = (cache_root() / "ingest").iterdir()
    done = {path.name for path in folder.iterdir()}
    assert "definitions" in done
    assert any(name.startswith("queries-") for name in done)
    torn = next(name for name in sorted(done) if name.startswith("read-"))
    (folder / torn).write_bytes((folder / torn).read_bytes()[:-7])
    ran: list[str] = []
    submit, here = pool.Pool._submit, pool.Pool._here
    monkeypatch.setattr(
        pool.Pool,
        "_submit",
        lambda self, function, *a: (
            ran.extend(j.name for j in a if isinstance(j, pool.Job)) or submit(self, function, *a)
        ),
    )
    monkeypatch.setattr(pool.Pool, "_here", lambda self, job: here(self, job._replace(step=_noted(ran, job))))
    ingest_log(store, request(logs, workers=workers))
    assert graph(store) == expected
    assert torn in ran
    assert not (done - {torn, ".lock"}) & set(ran)


def _noted(ran: list[str], job: pool.Job):
    def step(*arguments):
        ran.append(job.name)
        return job.step(*arguments)

    return step


KILLED = """
import os, signal, sys
from pathlib import Path
from govtool.app.ingest.logs import local, steps
from govtool.app.ingest.logs.ingest import ingest_log
from govtool.app.ingest.logs.request import LogRequest
from govtool.app.ingest.sql_options import SqlRequest
from govtool.capture.logs import pieces
from govtool.store import Store

def main():
    pieces.RANGE, steps.GROUP, local.DERIVATIONS_PER_FRAGMENT, local.SMALL, local.BATCH = 20_000, 50, 40, 1000, 100
    at, told = int(sys.argv[3]), 0
    def kill(status):
        nonlocal told
        told += 1
        if told == at:
            os.kill(os.getpid(), signal.SIGKILL)
    request = LogRequest(SqlRequest((sys.argv[1],), dialect="postgres"), workers=2)
    ingest_log(Store.open(sys.argv[2]), request, progress=kill)

if __name__ == "__main__":
    main()
"""


@pytest.mark.long
def test_killed_again_and_again_it_arrives_at_the_same_graph(logs, tmp_path):
    expected = ingested(logs, workers=1)
    Store.init(str(tmp_path / "store"))
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    root = Path(local.__file__).parents[4]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    codes = []
    for at in (3, 12, 25, 10_000):
        done = subprocess.run(
            [sys.executable, str(script), str(logs), str(tmp_path / "store"), str(at)], env=environment, check=False
        )
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL] * 3 + [0]
    fragments, _, summary = graph(Store.open(str(tmp_path / "store")))
    assert [fragments, summary] == expected[::2]


def test_a_log_that_changed_meanwhile_has_work_of_its_own(logs):
    class StopError(Exception):
        pass

    def stop(status: Status) -> None:
        if status.stage == "resolving":
            raise StopError

    store = Store.init("memory://")
    with pytest.raises(StopError):
        ingest_log(store, request(logs, workers=1), progress=stop)
    with (logs / "a.jsonl").open("a") as file:
        file.write('{"sql": "CREATE TABLE only_now AS SELECT q FROM r"}\n')
    ingest_log(store, request(logs, workers=1))
    again = Store.init("memory://")
    os.environ["GOVTOOL_CACHE"] += "-other"
    ingest_log(again, request(logs, workers=1))
    assert graph(store) == graph(again)


def test_a_log_that_changes_under_our_hands_is_refused(logs):
    def rewrite(status: Status) -> None:
        if status.stage == "resolving":
            text = (logs / "a.jsonl").read_text()
            (logs / "a.jsonl").write_text(text.replace("SELECT", "select"))

    store = Store.init("memory://")
    with pytest.raises(EngineError) as error:
        ingest_log(store, request(logs, workers=1), progress=rewrite)
    assert error.value.code == "engine.log-changed"
    assert store.head() is None


def test_lines_that_are_added_under_our_hands_wait_for_another_time(logs):
    expected = ingested(logs, workers=1)

    def append(status: Status) -> None:
        with (logs / "a.jsonl").open("a") as file:
            file.write('{"sql": "SELECT 1 FROM added"}\n')

    store = Store.init("memory://")
    ingest_log(store, request(logs, workers=1), progress=append)
    assert graph(store) == expected


def _dies(setup: pool.Setup, *arguments: object) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_a_worker_that_is_killed_is_an_error_and_no_commit(logs, monkeypatch):
    monkeypatch.setattr(local, "_definitions", _dies)
    store = Store.init("memory://")
    with pytest.raises(EngineError) as error:
        ingest_log(store, request(logs, workers=2))
    assert error.value.code == "engine.worker"
    assert store.head() is None
    monkeypatch.undo()


def test_too_many_rejects_end_it_early(logs):
    with pytest.raises(EvidenceError) as error:
        ingested(logs, workers=1, max_errors=2)
    assert error.value.location == "a.jsonl:8"


def test_two_at_the_same_time_do_not_share_their_work(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path))
    with spooled("key") as one, spooled("key") as two:
        one.put("a", b"1")
        assert two.get("a") is None
    assert list((tmp_path / "ingest").iterdir()) == []


def test_work_that_is_torn_counts_as_missing(tmp_path):
    spool = StepFiles(tmp_path)
    spool.put("a", b"content")
    assert spool.get("a") == b"content"
    assert bytes(spool.view("a")) == b"content"
    data = (tmp_path / "a").read_bytes()
    for torn in (data[:-1], data[1:], b"", data[:3] + b"x" + data[4:]):
        (tmp_path / "a").write_bytes(torn)
        assert spool.get("a") is None


def test_options_that_do_not_go_together_are_refused(logs):
    for more in ({"engine": "flink"}, {"engine": "spark", "workers": 2}, {"master": "local[2]"}):
        with pytest.raises(UsageError):
            ingested(logs, **more)


def test_progress_goes_forward_and_counts(logs):
    reported: list[Status] = []
    store = Store.init("memory://")
    result = ingest_log(store, request(logs, workers=1), progress=reported.append)
    assert [s.done for s in reported] == sorted(s.done for s in reported)
    assert {s.stage for s in reported} == {"reading", "resolving", "writing"}
    assert reported[-1].done == reported[-1].total
    assert reported[-1].distinct == result.counts["distinct"]
    assert reported[-1].records == result.counts["records"]
