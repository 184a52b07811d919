"""``govtool ingest log`` that is interrupted, or whose workers die: nothing is left behind, and it goes on later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from depth import LONG
from hardlogs import write_logs

from govtool.app.ingest.logs import local
from govtool.store import Store

SCRIPT = """
import multiprocessing, os, signal, sys
from govtool.app.ingest.logs import local, meter, steps
from govtool.capture.logs import pieces
from govtool.cli.main import main

def ends():
    what, at = sys.argv[1], int(sys.argv[2])
    tell = meter.Meter._notify
    told = 0

    def telling(self, *arguments):
        nonlocal told
        told += 1
        if told == at:
            if what == "worker":
                os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
            elif what.endswith(" group"):
                os.killpg(0, getattr(signal, what.split()[0]))
            else:
                os.kill(os.getpid(), getattr(signal, what))
        tell(self, *arguments)

    meter.Meter._notify = telling
    meter._SELDOM = float("inf")  # only whole steps are counted

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever it was for the tests
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    pieces.RANGE, steps.GROUP, local.DERIVATIONS_PER_FRAGMENT, local.SMALL, local.BATCH = 20_000, 50, 40, 1000, 100
    ends()
    sys.exit(main(["ingest", "log", *sys.argv[3:]]))
"""


ENDS = (("SIGINT group", 3), ("SIGTERM group", 7), ("SIGTERM", 10), ("SIGINT", 12), ("SIGHUP group", 14))
"""Signals, and the steps at which they come; an ordinary run takes every other one."""


@pytest.fixture
def ingest(tmp_path):
    """Run an ingest of hard logs that ends at its nth step of progress, as the leader of a group of its own."""
    Store.init(str(tmp_path / "store"))
    write_logs(tmp_path / "logs", sessions=40)
    script = tmp_path / "ends.py"
    script.write_text(SCRIPT)
    (tmp_path / "tmp").mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(local.__file__).parents[4]),
        "GOVTOOL_CACHE": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
    }

    def run(what: str, at: int, log: str = "logs", store: str = "store") -> tuple[int, str]:
        # A worker that lives on has the pipe open still, and this would not return.
        done = subprocess.run(
            [sys.executable, script, what, str(at), log, "--store", store, "--workers", "2", "-d", "postgres"],
            cwd=tmp_path, env=environment, input=(tmp_path / "logs" / "a.jsonl").read_bytes(),
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


@pytest.mark.slow
@pytest.mark.long
def test_an_interrupt_leaves_nothing_behind_and_the_next_run_goes_on(ingest, tmp_path):
    Store.init(str(tmp_path / "other"))
    assert ingest("nothing", 0, store="other")[0] == 0
    expected = graph(tmp_path / "other")
    spools = tmp_path / "cache" / "ingest"
    kept: set[str] = set()
    for what, at in ENDS if LONG else ENDS[::2]:
        assert ingest(what, at) == (130, "interrupted\n"), what
        assert Store.open(str(tmp_path / "store")).head() is None
        (folder,) = spools.iterdir()
        now = {path.name for path in folder.iterdir()}
        assert kept <= now
        assert not [name for name in now if name.startswith(".part")]
        kept = now
    assert "definitions" in kept
    assert ingest("nothing", 0)[0] == 0
    assert graph(tmp_path / "store") == expected
    assert list(spools.iterdir()) == []


def test_what_was_read_of_a_pipe_is_removed(ingest, tmp_path):
    for what in ("SIGTERM group", "SIGINT"):
        assert ingest(what, 2, log="-") == (130, "interrupted\n")
        assert list((tmp_path / "tmp").iterdir()) == []


def test_a_worker_that_the_system_kills_is_an_error_and_the_next_run_goes_on(ingest, tmp_path):
    code, stated = ingest("worker", 9)
    assert code == 4
    assert "error[engine.worker] a worker process ended without an answer" in stated
    assert "it goes on where it was" in stated
    assert "Traceback" not in stated
    assert Store.open(str(tmp_path / "store")).head() is None
    (folder,) = (tmp_path / "cache" / "ingest").iterdir()
    assert any(path.name.startswith("read-") for path in folder.iterdir())
    assert ingest("nothing", 0)[0] == 0
    assert graph(tmp_path / "store")


def test_what_a_killed_process_was_writing_is_removed_by_the_next(tmp_path, monkeypatch):
    from govtool.app.ingest.logs.step_files import StepFiles, spooled

    def full(spool: StepFiles) -> None:
        (spool.folder / ".part-1").write_bytes(b"half")
        spool.put("a", b"1")
        raise OSError("full")

    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path))
    with pytest.raises(OSError, match="full"), spooled("key") as spool:
        full(spool)
    assert sorted(path.name for path in spool.folder.iterdir()) == [".lock", "a"]
    (spool.folder / ".part-2").write_bytes(b"half")
    with spooled("key") as spool:
        assert sorted(path.name for path in spool.folder.iterdir()) == [".lock", "a"]


def test_ends_that_are_asked_for_are_interrupts_unless_they_are_ignored():
    from govtool.cli.shared.exit_codes import interruptible

    before = signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before[1])
    assert signal.getsignal(signal.SIGTERM) == before[0]
