"""Checkpoints: what a job writes of a DataFrame that it kept has the lineage, and the rows, of one that it did not."""

from __future__ import annotations

import itertools

import pytest
from recorders import own_recorder

import govtool
import govtool.spark

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

HELD = [(1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "d", 40), (5, "e", 50)]


def filtered_twice(data, held, keep):
    """All RDDs have columns of the same ids."""
    more = keep(keep(data).where("v > 10"))
    return keep(more.where("v < 50"))


def of_the_driver(data, held, keep):
    return keep(keep(held).where("v > 20"))


def joined_with_itself(data, held, keep):
    from pyspark.sql import functions as F

    kept = keep(data.where("k <> 3").withColumn("v", F.col("v") + 1))
    return kept.alias("x").join(kept.alias("y"), F.col("x.k") == F.col("y.k") + 1).select("x.k", "y.n", "x.v")


def of_the_same_query(data, held, keep):
    """Spark tells of a ``QueryExecution`` once, here as the rows are collected."""
    some = data.where("k in (2, 4)")
    assert some.collect()
    return keep(some).union(keep(some))


JOBS = [filtered_twice, of_the_driver, joined_with_itself, of_the_same_query]
KINDS = [
    lambda frame: frame.localCheckpoint(),
    lambda frame: frame.localCheckpoint(False),
    lambda frame: frame.checkpoint(),
]


@pytest.fixture(scope="module")
def graph(spark, tmp_path_factory):
    """The graph of a job that wrote each of ``JOBS`` with checkpoints (``kept``) and without (``plain``)."""
    folder = tmp_path_factory.mktemp("checkpoints")
    spark.sparkContext.setCheckpointDir(str(folder / "rdds"))
    store = str(folder / "store")
    govtool.init(store)
    with own_recorder():
        capture = govtool.spark.attach(spark, source="run:job", store=store, spool=str(folder / "spool"), records=True)
        held = spark.createDataFrame(HELD, "k int, n string, v int")
        held.coalesce(1).write.parquet(str(folder / "data"))
        data = spark.read.parquet(str(folder / "data"))
        for job in JOBS:
            kinds = itertools.cycle(KINDS)
            kept = job(data, held, lambda frame, kinds=kinds: next(kinds)(frame))
            kept.coalesce(1).write.parquet(str(folder / "kept" / job.__name__))
        for job in JOBS:
            job(data, held, lambda frame: frame).coalesce(1).write.parquet(str(folder / "plain" / job.__name__))
        assert capture.commit(identify=0) is not None
    return folder, govtool.open(store)


def places(folder, graph, kind, job):
    """The rows behind each row, without names that tell the runs apart."""
    every = graph.records(str(folder / kind / job.__name__))
    found = {}
    for key in [row["k"] for row in every.arrow().to_pylist()]:
        traced = every.where(f"k = {key}").go_back_all()
        found[key] = sorted(str(each).rpartition(":")[2] for each in traced.ids())
    return found


def edges(folder, graph, kind, job):
    """The edges into what a job wrote."""
    drawn = graph.to_networkx()
    prefix = f"file://{folder / kind / job.__name__}."
    for source, target, edge in drawn.edges(data=True):
        name = drawn.nodes[target]["name"]
        if name.startswith(prefix):
            yield (
                drawn.nodes[source]["name"],
                name.removeprefix(prefix),
                edge["kind"],
                edge["functions"],
                edge["reason"],
            )


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_rows_are_traced_through_checkpoints(graph, job):
    found = places(*graph, "kept", job)
    assert found == places(*graph, "plain", job)
    assert all(found.values())


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_columns_are_followed_through_checkpoints(graph, job):
    found = set(edges(*graph, "kept", job))
    assert found == set(edges(*graph, "plain", job))
    assert found or job is of_the_driver
