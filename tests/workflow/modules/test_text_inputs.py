"""Inputs of workflows in text that other readers take otherwise than Spark: quotes, blank and short lines, bad cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import govtool
from govtool.app.workflow_runs.opened import opened_run
from govtool.store import Store

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

TEXTS = {
    "csv": [
        "id,name,price,at",
        '1,"a ""x""",1.25,2024-01-31 10:00:00',
        "",
        "2,b",
        "   ",
        'three,"c\\"d",7.999',
        "4,NULL,,,9",
        '5,"open',
    ],
    "json": [
        '{"id": 1, "name": "2024-01-31", "price": 1.25}',
        "",
        '{"id": "x", "name": "b"}',
        "broken",
        '{"price": 3}',
    ],
}


@govtool.module("Keep", {"T": "id int, name string, price decimal(6,2), at timestamp"}, outputs=["Rows", "Names"])
def keep(t):
    return {"Rows": t, "Names": t.groupBy("name").count()}


FLOW = govtool.Workflow("texts", nodes={"keep": keep}, edges=[])


def rows_of(path):
    return Counter(
        tuple(row.values()) for file in Path(path).glob("*.parquet") for row in pq.read_table(file).to_pylist()
    )


def run(folder, kind, lines, spark, **options):
    (folder / "in").mkdir(parents=True)
    (folder / "in" / f"T.{kind}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = govtool.run_workflow(FLOW, folder / "in", state=folder / "state", spark=spark, **options).run
    return made, {name: rows_of(path) for each in made.invocations for name, path in each.outputs}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_line_is_a_record_and_its_values_are_those_that_spark_reads(kind, spark, tmp_path):
    store = Store.init(str(tmp_path / "store"))
    lines = TEXTS[kind]
    made, before = run(tmp_path / "all", kind, lines, spark, mode="records", store=store.uri)
    with opened_run(store, store.head("main"), made.id) as opened:
        (source,) = (each for path, each in made.relations.items() if path.endswith(f"T.{kind}"))
        tokens = list(opened.files.rows(source).tokens)
    records = [at for at, line in enumerate(lines) if line.strip()][kind == "csv" :]
    assert len(tokens) == len(records) == before["Rows"].total()
    graph = govtool.open(store.uri)
    why = graph.workflow_why(made.id, "keep/Rows", semirings=["which"])
    assert why.notes == ()
    assert sorted(each for row in why.tuples for each in row.annotations["which"]) == sorted(tokens)
    without = records[-1]
    _, after = run(tmp_path / "less", kind, lines[:without] + lines[without + 1 :], spark, mode="untracked")
    for mode in ("propagate", "replay"):
        answer = graph.workflow_delete(made.id, tokens[-1], mode=mode, program=FLOW, spark=spark)
        for name, found in answer.relations.items():
            left = Counter(row.after for _, row in found.rows if row.after is not None)
            assert (left, found.gains_possible) == (after[name], False), (mode, name)


@govtool.module("Wide", ["T"], outputs=["Kinds"])
def wide(t):
    return {"Kinds": t.groupBy("id").pivot("name").count()}


def test_columns_that_hang_on_the_records_are_no_crash(spark, tmp_path):
    """Without b, a pivot has one column less: only the schema of a new run tells which."""
    store = Store.init(str(tmp_path / "store"))
    flow = govtool.Workflow("wide", nodes={"wide": wide}, edges=[])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "T.csv").write_text("id,name\n1,a\n1,b\n", encoding="utf-8")
    made = govtool.run_workflow(
        flow, tmp_path / "in", state=tmp_path / "state", spark=spark, mode="records", store=store.uri
    ).run
    with opened_run(store, store.head("main"), made.id) as opened:
        (source,) = (each for path, each in made.relations.items() if path.endswith("T.csv"))
        token = opened.files.rows(source).tokens[1]
    answer = govtool.open(store.uri).workflow_delete(made.id, token, mode="auto", program=flow, spark=spark)
    assert [row.status for _, row in answer.relations["Kinds"].rows] == ["unknown"]
    assert "has other columns without the records: id, a" in str(answer.not_replayable)
