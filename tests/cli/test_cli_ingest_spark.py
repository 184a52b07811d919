"""``govtool ingest spark`` from the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

LOGS = Path(__file__).parents[2] / "fixtures" / "spark" / "logs"
SHOP = LOGS / "spark-4.3.0.gz"


def test_a_log_is_one_commit_and_the_same_again_is_none(store):
    first = store("ingest", "spark", SHOP)
    assert first.code == 0
    assert "1 application, 20 executions (1 failed)" in first.out
    assert "coverage 89.5%" in first.out
    assert "1 break (1 rdd)" in first.out
    again = store("ingest", "spark", SHOP)
    assert "nothing new" in again.out
    assert "commit 2" in store("ingest", "spark", SHOP, "--source", "spark-4.3.0.gz", "--default-schema", "lake").out


def test_the_graph_and_the_runs_answer(store):
    store("ingest", "spark", SHOP)
    reached = {
        entry["column"]
        for entry in json.loads(store("impact", "file:///tmp/shop/orders.csv.customer", "-f", "json").out)["columns"]
    }
    assert {"file:///tmp/shop/orders.customer", "default.names.name", "default.big.who"} <= reached
    runs = json.loads(store("runs", "-f", "json").out)
    assert "shop_nightly.py:default.names" in json.dumps(runs)


def test_names_below_the_root_of_paths_are_relative(store, project):
    (project / "govtool.toml").write_text('[paths]\nroot = "/tmp/shop"\n')
    store("ingest", "spark", SHOP)
    names = [item["name"] for item in json.loads(store("ls", "-f", "json").out)["items"]]
    assert {"file:orders", "file:report", "file:warehouse/sales", "default.sales"} <= set(names)
    assert "/tmp/shop" not in store("runs", "-f", "json").out
    answers = [
        json.loads(store("impact", f"{orders}.customer", "-f", "json").out)["columns"]
        for orders in ("file:orders", "orders", "file:///tmp/shop/orders", "file//tmp/shop/orders")
    ]
    assert answers[0]
    assert all(answer == answers[0] for answer in answers)
    assert json.loads(store("show", "shop_nightly.py:file:report", "-f", "json").out)["run"]["status"] == "complete"


def test_scripts_and_what_ran_meet_in_the_same_names(store, project):
    (project / "view.sql").write_text("create view mart.who as select name from default.names;")
    store("ingest", "spark", SHOP)
    store("ingest", "sql", "view.sql", "--dialect", "spark")
    done = json.loads(store("impact", "file:///tmp/shop/orders.customer", "-f", "json").out)
    assert "mart.who.name" in {entry["column"] for entry in done["columns"]}


def test_secrets_are_nowhere_in_the_store(store, project):
    store("ingest", "spark", LOGS / "spark-3.5.9.gz", SHOP)
    for file in (project / ".govtool").rglob("*"):
        if file.is_file():
            assert b"hunter2" not in file.read_bytes()
    assert "hunter2" not in store("runs", "-f", "json").out


def test_folders_pieces_and_what_is_broken(store, project):
    folder = project / "events"
    folder.mkdir()
    lines = gzip.decompress(SHOP.read_bytes()).splitlines(keepends=True)
    rolling = folder / "eventlog_v2_local-1"
    rolling.mkdir()
    (rolling / "events_1_local-1").write_bytes(b"".join(lines[:40]))
    (rolling / "events_2_local-1").write_bytes(b"".join(lines[40:]))
    (rolling / "appstatus_local-1.inprogress").touch()
    (folder / "cut.inprogress").write_bytes(SHOP.read_bytes()[:9000])
    (folder / "noise").write_text("this is no event log\n")
    done = store("ingest", "spark", "events")
    assert done.code == 0
    assert "2 applications" in done.out
    assert "error[unreadable] the compressed file breaks off" in done.err
    assert "error[not-a-log]" in done.err
    assert store("ingest", "spark", "events", "--strict", "--source", "again").code == 3


@pytest.mark.parametrize(
    ("arguments", "stated"), [(["nowhere"], "no such file"), (["-"], "from a file"), ([], "missing")]
)
def test_what_cannot_be_read_is_a_usage_error(store, arguments, stated):
    done = store("ingest", "spark", *arguments)
    assert done.code == 2
    assert stated in done.err.lower()


def test_two_metastores_are_kept_apart(store):
    store("ingest", "spark", SHOP, "--namespace", "hive://a:9083")
    assert "hive://a:9083/default.sales" in store("ls").out
