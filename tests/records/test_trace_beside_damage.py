"""Damaged records of a run stop the questions that need them, and no others."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from recorded import Warehouse

import govtool
from govtool.app.datasets.places import path_id
from govtool.app.erasure.report import ErasureRequest, planned_erasure
from govtool.app.trace.affected_rows import RowRequest, affected_rows
from govtool.app.trace.measured_groups import RecordedGroups
from govtool.cli.main import main
from govtool.errors import IntegrityError
from govtool.model.records import PLANS, PRIVATE_VALUES, RECORD_RUNS
from govtool.store import Store


@pytest.fixture
def house(tmp_path, monkeypatch):
    """orders → clean → totals, and people → lands, which has to do with none of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    warehouse.table("orders", {"name": pa.string(), "spent": pa.int64()}, [("ann", 10), ("bob", 1)])
    warehouse.table("people", {"person": pa.string(), "land": pa.string()}, [("ann", "fr")])
    for sql, output, read, run in (
        ("SELECT name, spent FROM orders WHERE spent > 5", "clean", "orders", "a/0"),
        ("SELECT name, sum(spent) AS total FROM clean GROUP BY name", "totals", "clean", "b/0"),
        ("SELECT DISTINCT land FROM people WHERE land <> 'x'", "lands", "people", "c/0"),
    ):
        warehouse.commit(warehouse.run(sql, output, read, run=run))
    return warehouse


def damage(house, table, run):
    """Overwrite the fragment of a table that holds a run's records."""
    from govtool.app.upkeep.record_fragments import read_record_fragments

    found = read_record_fragments(house.store)
    plans = {one.run: one.plan for group in found.groups for one in group.runs.values()}
    ref = found.refs[found.holders[table, plans[run] if table == PLANS else run]]
    path = Path(house.store.uri, ref.key)
    path.chmod(0o600)
    path.write_bytes(b"\0" * path.stat().st_size)


def erasure(house, run=None):
    request = ErasureRequest(("orders.name=ann",), run=run, all_runs=True)
    return planned_erasure(
        house.store, house.store.head("main"), request, lambda: govtool.open().snapshot().index
    ).answer.body()


def affected(house):
    place = partial(path_id_of, house)
    request = RowRequest(place("orders"), "name = 'ann'", (place("clean"), place("totals")))
    return affected_rows(house.store, house.store.head("main"), request).datasets


def measured(house, output, source):
    meter = RecordedGroups(house.store, house.store.head("main"))
    return meter.measure(path_id_of(house, output), path_id_of(house, source), ())


def path_id_of(house, name):
    return path_id(str(house.folder / name))


@pytest.mark.parametrize("table", [PLANS, RECORD_RUNS, PRIVATE_VALUES])
def test_what_is_damaged_stops_only_what_needs_it(house, table, capsys):
    damage(house, table, "c/0")
    graph = govtool.open()
    back = graph.trace_back("totals", "name = 'ann'", all_runs=True)
    assert json.loads(json.dumps(back.to_dict()))["hops"]
    assert graph.trace_forward("orders", "name = 'ann'", all_runs=True).to_dict()["hops"]
    assert graph.trace_back("totals", "name = 'ann'", run="b/0")
    for question in (lambda: graph.trace_back("lands", "land = 'fr'"), lambda: graph.trace_forward("people", "1 = 1")):
        with pytest.raises(IntegrityError, match=f"{table} of c/0 cannot be read") as refused:
            question()
        assert "govtool store forget --source 'run:job.py'" in (refused.value.hint or "")
    assert main(["show", "b/0"]) == 0
    assert not erasure(house)["not_reached"]
    assert {each.exactness for each in affected(house)} == {"exact"}
    assert [measured(house, *each).why for each in (("clean", "orders"), ("totals", "clean"))] == ["", ""]
    assert f"{table} of c/0 cannot be read" in measured(house, "lands", "people").why
    assert main(["trace", "back", "lands", "--where", "1 = 1"]) == 4
    capsys.readouterr()


def test_a_trace_through_runs_needs_those_between(house):
    damage(house, RECORD_RUNS, "a/0")
    graph = govtool.open()
    assert graph.trace_back("totals", "name = 'ann'")
    with pytest.raises(IntegrityError, match="record_runs of a/0 cannot be read"):
        graph.trace_back("totals", "name = 'ann'", all_runs=True)


def test_what_a_lost_run_wrote_is_unknown_to_erasures_affected_rows_and_groups(house):
    damage(house, RECORD_RUNS, "b/0")
    why = "record_runs of b/0 cannot be read"
    for run in (None, "a/0"):
        (lost,) = erasure(house, run)["not_reached"]
        assert lost["dataset"] == path_id_of(house, "totals")
        assert why in lost["why"]
        assert "govtool store forget" in lost["hint"]
    clean, totals = affected(house)
    assert (clean.exactness, clean.count) == ("exact", 1)
    assert (totals.exactness, totals.count) == ("unknown", None)
    assert why in totals.why
    assert "govtool store" in totals.why
    assert measured(house, "clean", "orders").at_most == 1
    assert why in measured(house, "totals", "clean").why


def test_what_was_made_of_the_output_of_a_lost_run_is_unknown(house):
    damage(house, RECORD_RUNS, "a/0")
    plan = erasure(house)
    assert [(each["dataset"], each["hint"][:7]) for each in plan["not_searched"]][-1:] == [
        (path_id_of(house, "orders"), "restore")
    ]
    assert [each["dataset"] for each in plan["not_reached"]] == [path_id_of(house, "clean")]
    (totals,) = (each for each in plan["datasets"] if each["dataset"] == path_id_of(house, "totals"))
    assert "record_runs of a/0 cannot be read" in totals["unknown"][0]["why"]
    with pytest.raises(IntegrityError, match="a/0"):
        affected(house)
    with pytest.raises(IntegrityError, match="a/0"):
        erasure(house, "a/0")
