"""The official OpenLineage listener beside our recorder on one job: every difference between them, and who is right.

The job writes csv, json, Parquet and tables; it has partitions, CREATE TABLE AS, INSERT, a view, Python and pandas
UDFs, a window, explode, a union, joins, aggregates, streams, an RDD and a failure (``fixtures/spark/jobs/shop.py``).
`DIFFERENCES` has every edge that only one side has; an edge more, or one less, and the test fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.spark_listener import settings

pytestmark = pytest.mark.maven("openlineage")

JOB = Path(__file__).parents[2] / "fixtures" / "spark" / "jobs" / "shop.py"


class Difference(NamedTuple):
    """Edges that one side has and the other has not."""

    side: str
    edges: frozenset[str]
    right: str
    why: str


def only(side: str, right: str, why: str, *edges: str) -> Difference:
    return Difference(side, frozenset(edges), right, why)


DIFFERENCES = (
    only("listener", "ours", "Spark writes the empty string of a partition as NULL: a function nobody wrote",
         "stage/users.country <- raw/users.country transformation",
         "stage/users.* <- raw/users.country opaque"),
    only("ours", "ours", "the value of a partition column stays as it is",
         "stage/users.country <- raw/users.country identity"),
    only("listener", "ours", "the optimizer keeps NULLs away from a join: not a filter of the query",
         "default.best.* <- stage/users.id filter",
         "default.best.* <- default.totals.user filter"),
    only("listener", "both", "a view is seen through; ours has it as a dataset between the two",
         "out/loud.* <- default.best.* read",
         "out/loud.* <- default.best.total filter",
         "out/loud.email <- default.best.email transformation",
         "out/loud.total <- default.best.total identity"),
    only("ours", "both", "a view is a dataset of its own",
         "out/loud.* <- default.loud.* read",
         "out/loud.email <- default.loud.email identity",
         "out/loud.total <- default.loud.total identity",
         "default.loud.* <- default.best.* read",
         "default.loud.* <- default.best.total filter",
         "default.loud.email <- default.best.email transformation",
         "default.loud.total <- default.best.total identity"),
    only("ours", "ours", "the arguments of Python functions; the listener gives such a column no source",
         "out/domains.domain <- stage/users.email opaque",
         "out/ranked.twice <- raw/orders.amount opaque"),
    only("listener", "both", "rows without an element fall away; the optimizer says so as a filter, for explode and not "
         "for explode_outer. Ours has the edge of the value only",
         "out/tags.* <- raw/orders.tags filter"),
    only("ours", "ours", "UNION ALL: what the rows of both arms are made of",
         "out/names.* <- raw/users.country union_all",
         "out/names.* <- raw/users.id union_all",
         "out/names.* <- stage/users.email union_all",
         "out/names.* <- stage/users.id union_all"),
    only("listener", "ours", "the key of a full outer join is coalesce(left, right): no side of it is handed through, "
         "and nobody wrote a condition",
         "out/sizes.id <- raw/orders.user identity",
         "out/sizes.id <- stage/users.id conditional",
         "out/sizes.* <- raw/orders.user opaque"),
    only("ours", "ours", "the same key: it is made of both sides, and both decide on the rows",
         "out/sizes.id <- raw/orders.user transformation",
         "out/sizes.* <- raw/orders.user join"),
    only("ours", "ours", "a stream into files: the listener names neither its target nor any column",
         "out/cents.* <- raw/orders.* read",
         "out/cents.* <- raw/orders.amount filter",
         "out/cents.cents <- raw/orders.amount transformation",
         "out/cents.id <- raw/orders.id identity"),
    only("ours", "ours", "foreachBatch: traced through to the source of the stream",
         "out/batches.* <- raw/orders.amount filter",
         "out/batches.cents <- raw/orders.amount transformation",
         "out/batches.id <- raw/orders.id identity"),
    only("listener", "ours", "foreachBatch: only that the folder is read",
         "out/batches.* <- raw/orders.* opaque"),
    only("listener", "both", "an RDD: the listener asks it for the files that it was read from",
         "out/rdd.* <- raw/orders.* opaque"),
    only("ours", "ours", "an RDD: the columns of the DataFrame that it is the rows of, each of which may be anywhere",
         *(f"out/rdd.{target} <- raw/orders.{source} opaque"
           for target in ("*", "id", "amount") for source in ("id", "user", "amount", "tags"))),
    only("listener", "ours", "the columns of a write that failed are none, as it selects nothing",
         "out/failed.* <- raw/orders.* opaque"),
)  # fmt: skip


@pytest.fixture(scope="module")
def job(tmp_path_factory, jars):
    """The job, recorded by both at once, and both committed to one store: its folder and the store."""
    from govtool.app.project.project import open_store

    folder = tmp_path_factory.mktemp("listener")
    (folder / "events").mkdir()
    conf = settings(jars("openlineage")[0], folder / "events.jsonl")
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": " ".join([*(f"--conf {name}={value}" for name, value in conf.items()), "pyspark-shell"]),
    }
    govtool = [sys.executable, "-c", "import sys; from govtool.cli.main import main; sys.exit(main())"]

    def run(*words: str, code: int = 0) -> None:
        done = subprocess.run(
            [*govtool, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == code, done.stderr

    run("init", "-q")
    run("run", "--identify", "0", "--", str(JOB), str(folder / "data"), str(folder / "events"), code=3)
    run("ingest", "openlineage", "events.jsonl", "--source", "listener")
    return folder, open_store(str(folder / ".govtool"))


def derivations(store):
    from govtool.model.columnar import DERIVATIONS, decode

    refs = store.fragments(store.head("main"))
    return [d for ref in refs if ref.table == DERIVATIONS for d in decode(store.read(ref))]


def named(dataset, folder):
    """A dataset by the name that both sides use here: tables by theirs, files below the job's folder by their path."""
    data = f"file://{folder}/data/"
    for table in ("best", "totals"):
        if dataset in (f"{data}warehouse/{table}", f"file:{folder}/data/warehouse/default.{table}"):
            return f"default.{table}"
    return dataset.removeprefix(data)


def edges(found, how, folder):
    return {
        f"{named(d.target, folder)}.{e.target_path} <- {named(e.source.dataset, folder)}.{e.source.path} {e.kind.label}"
        for d in found
        if d.statement.how == how and d.statement.kind not in ("alias", "dataset")
        for e in d.edges
    }


def test_every_difference_is_listed_with_its_reason(job):
    folder, store = job
    found = derivations(store)
    theirs, ours = edges(found, "openlineage", folder), edges(found, "plan", folder)
    listed = {side: set().union(*(d.edges for d in DIFFERENCES if d.side == side)) for side in ("listener", "ours")}
    assert theirs - ours == listed["listener"]
    assert ours - theirs == listed["ours"]
    assert len(theirs & ours) >= 30
    assert {d.right for d in DIFFERENCES} <= {"ours", "listener", "both"}


def test_compare_finds_nothing_that_is_not_listed(job):
    from govtool.app.versions.index import open_index
    from govtool.query.compare import compare

    folder, store = job
    head = store.head("main")
    result = compare(
        open_index(store, head, None, evidence=["openlineage"]), open_index(store, head, None, evidence=["plan"])
    )
    pairs = {edge.rpartition(" ")[0] for d in DIFFERENCES for edge in d.edges}

    def text(name: str) -> str:
        dataset, _, column = name.rpartition(".")
        return f"{named(dataset, folder)}.{column}"

    stated = {f"{text(one.flow.target)} <- {text(one.flow.source)}" for one in result.only}
    assert stated <= pairs
    assert result.both >= 30
    assert {named(one.dataset, folder) for one in result.unmatched} == {"out/cents"}


def test_names_of_datasets(job):
    folder, store = job
    found = derivations(store)

    def datasets(how):
        return {d.target for d in found if d.statement.how == how and d.statement.kind != "alias"} | {
            e.source.dataset for d in found if d.statement.how == how for e in d.edges
        }

    theirs, ours = datasets("openlineage"), datasets("plan")
    data = f"file://{folder}/data/"
    for table in ("best", "totals"):
        # The listener: a table is its folder, and its symlink is qualified by the folder of the warehouse.
        assert {f"{data}warehouse/{table}", f"file:{folder}/data/warehouse/default.{table}"} <= theirs
        assert f"default.{table}" in ours - theirs
    same = {name for name in ours if name.startswith(data)}
    assert same - theirs == {f"{data}out/cents"}
    # A stream reads a folder; the listener has a dataset for each file that a batch found there.
    strange = {name for name in theirs - ours if not name.startswith((f"file:{folder}", f"{data}warehouse/"))}
    assert strange
    assert all(name.startswith(f"{data}raw/orders/part-") for name in strange)


def test_modes_and_statuses(job):
    from govtool.model.run import RUNS, decode_runs

    folder, store = job
    data = f"file://{folder}/data/"
    found = derivations(store)
    modes = {
        how: {named(d.target, folder): d.mode for d in found if d.statement.how == how and d.target.startswith(data)
              and d.statement.kind not in ("alias", "dataset")}
        for how in ("openlineage", "plan")
    }  # fmt: skip
    replaced = {target for target, mode in modes["plan"].items() if mode == "replace"}
    assert {"raw/users", "stage/users", "out/loud", "out/most"} <= replaced
    # An event of a write to a path says nothing of what was there before.
    assert {modes["openlineage"][target] for target in replaced} == {"append"}
    # After the event that a write failed the listener sends one that it is complete.
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    last = [e["eventType"] for e in events if e["job"]["name"].endswith("out_failed")]
    assert last[-2:] == ["FAIL", "COMPLETE"]
    refs = store.fragments(store.head("main"))
    runs = [run for ref in refs if ref.table == RUNS for run in decode_runs(store.read(ref))]
    ended = {run.how: run.status for run in runs for one in run.outputs if one.dataset == f"{data}out/failed"}
    assert ended["plan"] == "failed"
