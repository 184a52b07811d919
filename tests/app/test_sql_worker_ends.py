"""``govtool ingest sql --workers`` that is ended, or whose workers are: nothing is left behind, and the next is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from depth import LONG

import govtool
from govtool.store import Store

SCRIPT = """
import multiprocessing, os, signal, sys
from govtool.app.ingest import sql_workers
from govtool.app.ingest.logs import pool
from govtool.cli.main import main

def ends():
    what = sys.argv[1]
    submit = pool.Pool._submit
    submitted = []

    def submitting(self, *arguments):
        future = submit(self, *arguments)
        submitted.append(future)
        if len(submitted) == 2:  # both workers are there
            if what == "worker":
                os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
            elif what.endswith(" group"):
                os.killpg(0, getattr(signal, what.split()[0]))
            elif what != "nothing":
                os.kill(os.getpid(), getattr(signal, what))
        return future

    pool.Pool._submit = submitting

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever it was for the tests
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sql_workers.WORTH = 0  # so small an ingest would start no workers
    ends()
    sys.exit(main(["ingest", "sql", *sys.argv[2:]]))
"""
ENDED = -9


@pytest.fixture
def ingest(tmp_path):
    """Run an ingest of 40 files by two workers that ends when both have work, as the leader of a group of its own."""
    folder = tmp_path / "sql"
    folder.mkdir()
    for number in range(40):
        text = f"CREATE TABLE t{number + 1} AS SELECT a, b + {number} AS b FROM t{number};"
        (folder / f"f{number:02}.sql").write_text(text)
    script = tmp_path / "ends.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(govtool.__file__).parents[1])}

    def run(what: str, store: str = "store", **more: str) -> tuple[int, str]:
        if not (tmp_path / store).exists():
            Store.init(str(tmp_path / store))
        # A worker that lives on has the pipe open still, and this would not return.
        done = subprocess.run(
            [sys.executable, script, what, "sql", "--store", store, "--workers", "2", "-d", "postgres"],
            cwd=tmp_path, env={**environment, "GOVTOOL_CACHE": str(tmp_path / "cache"), **more},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr.decode()

    return run


def graph(store: Path) -> list[tuple]:
    opened = Store.open(str(store))
    head = opened.head()
    assert head is not None
    assert head.seq == 1
    return sorted(tuple(ref) for ref in opened.fragments(head))


def test_one_that_is_ended_leaves_nothing_behind_and_the_next_is_right(ingest, tmp_path):
    assert ingest("nothing", "other")[0] == 0
    expected = graph(tmp_path / "other")
    for what in ("SIGINT group", "SIGTERM", *(["SIGINT"] if LONG else [])):
        assert ingest(what) == (130, "interrupted\n"), what
        assert Store.open(str(tmp_path / "store")).head() is None
    assert ingest("SIGKILL")[0] == ENDED
    assert Store.open(str(tmp_path / "store")).head() is None
    assert ingest("nothing")[0] == 0
    assert graph(tmp_path / "store") == expected


def test_the_work_of_a_worker_that_is_killed_is_done_all_the_same(ingest, tmp_path):
    assert ingest("nothing", "other")[0] == 0
    assert ingest("worker")[0] == 0
    assert graph(tmp_path / "store") == graph(tmp_path / "other")


@pytest.mark.long
def test_without_a_temporary_folder_or_a_cache_it_is_the_same(ingest, tmp_path):
    (tmp_path / "file").write_text("no folder")
    nowhere = str(tmp_path / "file" / "x")
    assert ingest("nothing", "other")[0] == 0
    assert ingest("nothing", TMPDIR=nowhere, GOVTOOL_CACHE=nowhere)[0] == 0
    assert graph(tmp_path / "store") == graph(tmp_path / "other")
