"""What event logs say is put aside on disk while they are read: it is the same as if it had stayed in memory."""

from __future__ import annotations

import errno
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from govtool.app.ingest import spark as app
from govtool.app.ingest.spark import SparkRequest, ingest_spark
from govtool.capture.spark.eventlog import spill
from govtool.capture.spark.eventlog.files import find
from govtool.capture.spark.eventlog.gathered import EventLogFindings
from govtool.capture.spark.eventlog.read import read_logs
from govtool.errors import StoreError
from govtool.model.columnar import DERIVATIONS, decode
from govtool.model.run import RUNS, decode_runs
from govtool.store import Store

LOGS = Path(__file__).parents[3] / "fixtures" / "spark" / "logs"
NAMES = ("spark-4.3.0.gz", "sources-4.3.0.gz", "delta-3.3.2.gz")


def committed(folder):
    store = Store.init(str(folder))
    ingest_spark(store, SparkRequest(tuple(str(LOGS / name) for name in NAMES), source="s"))
    refs = store.fragments(store.head("main"))
    derivations = [each for ref in refs if ref.table == DERIVATIONS for each in decode(store.read(ref))]
    runs = [run for ref in refs if ref.table == RUNS for run in decode_runs(store.read(ref))]
    return store, derivations, runs


def test_what_was_on_disk_is_what_would_be_in_memory(tmp_path, monkeypatch):
    _, held, runs = committed(tmp_path / "held")
    monkeypatch.setattr(spill, "HELD", 3)
    monkeypatch.setattr(app, "EDGES_PER_FRAGMENT", 5)
    monkeypatch.setattr(app, "DERIVATIONS_PER_FRAGMENT", 2)
    store, spilled, again = committed(tmp_path / "spilled")
    gathered = read_logs([(log, log.name) for name in NAMES for log in find(LOGS / name)], EventLogFindings("s"))

    def plain(derivations):
        return sorted(repr(each) for each in derivations)

    assert plain(spilled) == plain(held) == plain(gathered.derivations())
    assert plain(again) == plain(runs) == plain(replace(run, config=dict(run.config)) for run in gathered.runs)
    summary = store.head("main").summary
    assert summary["edges"] == sum(len(each.edges) for each in held)
    assert summary["columns"] == len({(each.target, column.path) for each in held for column in each.columns})
    assert sum(ref.table == DERIVATIONS for ref in store.fragments(store.head("main"))) > 10


def test_a_full_disk_leaves_the_store_as_it_was(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spill, "HELD", 3)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    store = Store.init(str(tmp_path / "store"))
    with pytest.raises(StoreError) as error:
        ingest_spark(store, SparkRequest((str(LOGS / NAMES[0]),)))
    assert error.value.code == "store.full"
    assert store.head("main") is None
