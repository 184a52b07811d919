"""Damaged records of a run stop the questions that need them, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from recorded import Warehouse

import govtool
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
    assert main(["erase", "plan", "--subject", "orders.name=ann", "--all-runs"]) == (4 if table == RECORD_RUNS else 0)
    assert main(["trace", "back", "lands", "--where", "1 = 1"]) == 4
    capsys.readouterr()


def test_a_trace_through_runs_needs_those_between(house):
    damage(house, RECORD_RUNS, "a/0")
    graph = govtool.open()
    assert graph.trace_back("totals", "name = 'ann'")
    with pytest.raises(IntegrityError, match="record_runs of a/0 cannot be read"):
        graph.trace_back("totals", "name = 'ann'", all_runs=True)
