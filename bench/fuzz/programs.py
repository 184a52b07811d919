"""A recorded program of RDDs with its positions, and a run of a workflow, of which a part is spoiled, asked everything.

Nothing of it needs Spark: rows are traced by positions, and the program is put together, not run.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.fuzz.mutate import spoiled_json

if TYPE_CHECKING:
    from govtool.api.graph import Graph
    from govtool.model.records import PrivateValues, RecordRun, StoredPlan
    from govtool.model.workflow_run import BoundaryRelation, WorkflowRun
    from govtool.store import Store

RUN = "app-1/rdd-1"
"""The run of the program."""
_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "long"), ("name", "string"))
        ],
    }
)
FLOW, FLOW_RUN = "w", "w-1"
"""The workflow and its run."""
_PARTS = ("log", "values", "listings", "written", "facts", "workflow", "plan", "literals", "read", "made")
"""What is spoiled: the operators, the driver's values, the files read and written, the positions, a workflow's run, and
the plan, the literals and the files of the write that its module made."""
_FACTS = json.dumps(
    {
        "tables": [[3, 0, "exact", ""], [3, 2, "superset", "by value"], [-1, 3, "exact", ""]],
        "coarse": [[3, [2], "a black box"]],
        "texts": [[2, [[0, "(1, 2)"], [1, "(3, 4)"]]]],
        "seconds": 1.5,
    }
)


@lru_cache(maxsize=1)
def _program() -> tuple[RecordRun, StoredPlan, PrivateValues]:
    """The program over a file of three lines; its files stay until the process ends."""
    from govtool.app.rdd.programs import stored_program

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    read, written = folder / "in.txt", folder / "out" / "part-0"
    written.parent.mkdir()
    read.write_text("a b\nc\na\n")
    written.write_text("('a', 2)\n('c', 1)\n")

    def identity(path: Path) -> list[int]:
        return [path.stat().st_size, path.stat().st_mtime_ns // 1_000_000]

    function = {"function": {"library": "str.split"}, "per_record": False}
    source = {"path": str(read), "dataset": str(read), "files": {str(read): identity(read)}}
    nodes: list[dict[str, Any]] = [
        {"number": 0, "name": "textFile", "label": "in", "parents": [], "partitions": 1, "unicode": True, **source},
        {"number": 1, "name": "map", "label": "map", "parents": [0], "arguments": {"f": function}},
        {
            "number": 2,
            "name": "parallelize",
            "label": "p",
            "parents": [],
            "partitions": 1,
            "records": "[(1, 2), (3, 4)]",
        },
        {
            "number": 3,
            "name": "join",
            "label": "join",
            "parents": [1, 2],
            "arguments": {"numPartitions": {"value": "2"}},
        },
    ]
    log = {"schema": "rdd-log/1", "nodes": nodes, "outputs": {"": 3}, "result": ["collect", 2, None]}
    line = {"log": log, "written": {str(written): identity(written)}}
    return stored_program(RUN, line, written.parent.as_uri())


@lru_cache(maxsize=1)
def _relations() -> dict[str, BoundaryRelation]:
    """What the modules of the workflow read and made, by name: files that stay until the process ends."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from govtool.model.workflow_run import BoundaryRelation, RelationFile

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    found = {}
    for name, rows in {"A": {1: "ann", 2: "bob", 3: "ann"}, "B": {1: "ann", 3: "ann"}, "C": {3: "ann"}}.items():
        path = folder / name / "part-0.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({"id": list(rows), "name": list(rows.values())}), path)
        facts = path.stat()
        file = RelationFile(path.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000)
        found[name] = BoundaryRelation(str(path.parent), "parquet", _SCHEMA, (file,))
    return found


@lru_cache(maxsize=1)
def _workflow() -> WorkflowRun:
    from govtool.model.workflow_run import ModuleInvocation, WorkflowRun

    made = _relations()
    a, b, c = (made[name].path for name in "ABC")
    first = ModuleInvocation(1, "post", "Post", 1, (("A", a, ""),), (), (), (("B", b),), ())
    second = ModuleInvocation(1, "alert", "Alert", 1, (("B", b, "post"),), (), (), (("C", c),), ("C",))
    edges = (("post", "alert", "B"),)
    times = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    relations = {each.path: each for each in made.values()}
    return WorkflowRun(
        FLOW_RUN, FLOW, "complete", "records", (FLOW_RUN,), *times, "", edges, (first, second), relations, 1
    )


@lru_cache(maxsize=1)
def _write() -> tuple[RecordRun, StoredPlan, PrivateValues]:
    """The write that made B: the rows of A whose name is a literal. That of C was not recorded."""
    from govtool.app.datasets.places import path_id
    from govtool.model.records import PrivateValues, RecordRun, StoredPlan
    from govtool.records.plan import types
    from govtool.records.plan.expressions import Attribute, Call, Literal
    from govtool.records.plan.nodes import File, Filter, Plan, Relation, Session
    from govtool.records.split_plans import relation_text, taken_apart

    columns = (Attribute(1, "id", types.LONG), Attribute(2, "name", types.STRING))
    schema = types.Struct(tuple(types.Field(each.name, each.type, True) for each in columns))
    session = Session("4.0.0", True, "UTC")

    def relation(name: str) -> Relation:
        each = _relations()[name]
        files = tuple(File(n, *file) for n, file in enumerate(each.files))
        return Relation(0, path_id(each.path), "parquet", files, columns, schema)

    condition = Call("=", (columns[1], Literal("ann", types.STRING)), types.BOOLEAN)
    parts = taken_apart(Plan(Filter(relation("A"), condition), session))
    made = relation("B")
    run = RecordRun(
        f"{FLOW_RUN}/0", parts.digest, made.dataset, parts.datasets, parts.listings, relation_text(made, session)
    )
    return run, StoredPlan(parts.digest, parts.body), PrivateValues(run.run, parts.values)


def _sound() -> dict[str, str]:
    from govtool.model.workflow_run import run_text

    run, plan, private = _program()
    write, step, literals = _write()
    own = plan.body, private.values, run.listings, run.written, _FACTS
    texts = (*own, run_text(_workflow()), step.body, literals.values, write.listings, write.written)
    return dict(zip(_PARTS, texts, strict=True))


def program_corpus() -> list[bytes]:
    """The sound parts; an input is a part's name, NUL, and its text."""
    return [f"{name}\0{text}".encode() for name, text in _sound().items()]


def ask_program(data: bytes) -> object:
    """Put a part into the store in the place of the sound one, and ask everything about the runs and the rows."""
    name, _, content = data.partition(b"\0")
    sound = _sound()
    at = name.decode("utf-8", "replace")
    part = at if at in sound else _PARTS[len(data) % len(_PARTS)]
    text = spoiled_json(content.decode("utf-8", "replace"), sound[part], data)
    _ask(_store({**sound, part: text.encode("utf-8", "replace").decode()}))
    return None


def _store(texts: dict[str, str]) -> Store:
    """A store in memory with the parts."""
    from govtool.model.positions import PRIVATE_POSITIONS
    from govtool.model.records import (
        PLANS,
        PRIVATE_VALUES,
        RECORD_RUNS,
        PrivateValues,
        StoredPlan,
        encode_plans,
        encode_private,
        encode_record_runs,
    )
    from govtool.model.workflow_run import WORKFLOW_RUNS
    from govtool.store import Changes, Fragment, Store

    run, _, _ = _program()
    plan = StoredPlan(hashlib.sha256(texts["log"].encode()).hexdigest(), texts["log"])
    positions = _positions(texts["facts"])
    run = replace(run, plan=plan.digest, listings=texts["listings"], written=texts["written"])
    run = replace(run, positions=hashlib.sha256(positions).hexdigest())
    tables = {
        PLANS: encode_plans([plan]),
        RECORD_RUNS: encode_record_runs([run]),
        PRIVATE_VALUES: encode_private([PrivateValues(RUN, texts["values"])]),
        PRIVATE_POSITIONS: positions,
    }
    write, _, _ = _write()
    step = StoredPlan(hashlib.sha256(texts["plan"].encode()).hexdigest(), texts["plan"])
    write = replace(write, plan=step.digest, listings=texts["read"], written=texts["made"])
    flow = {
        PLANS: encode_plans([step]),
        RECORD_RUNS: encode_record_runs([write]),
        PRIVATE_VALUES: encode_private([PrivateValues(write.run, texts["literals"])]),
    }
    sources = {
        "job": tables,
        f"workflow:{FLOW}": flow,
        f"workflow-run:{FLOW}:{FLOW_RUN}": {WORKFLOW_RUNS: _workflow_fragment(texts["workflow"])},
    }
    seal = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()
    store = Store.init(f"memory://fuzz-{seal}")
    add = tuple(Fragment(name, *part, 1) for name, parts in sources.items() for part in parts.items())
    store.commit(Changes(tuple(sources), add), message="m", author="a", batch="b")
    return store


def _positions(facts: str) -> bytes:
    import numpy as np

    from govtool.model.parquet import read_parquet, write_parquet
    from govtool.model.positions import StoredPositions, encode_positions
    from govtool.spark.rdd.eager import text_id

    last = np.array(sorted([[text_id("('a', 2)"), 1], [text_id("('c', 1)"), 2]]))
    pairs = (np.array([[1, 0], [1, 2], [2, 1]]), np.array([[1, 0]]), last)
    table = read_parquet(encode_positions(StoredPositions(json.loads(_FACTS), pairs)))
    metadata = {**table.schema.metadata, b"govtool.positions.facts": facts.encode()}
    return write_parquet(table.replace_schema_metadata(metadata))


def _workflow_fragment(body: str) -> bytes:
    import pyarrow as pa

    from govtool.model.parquet import read_parquet, write_parquet
    from govtool.model.workflow_run import encode_workflow_run

    table = read_parquet(encode_workflow_run(_workflow()))
    place = table.schema.names.index("body")
    changed = table.set_column(place, "body", pa.array([body])).replace_schema_metadata(table.schema.metadata)
    return write_parquet(changed)


def positions_fragment() -> bytes:
    """The sound positions of the program."""
    return _positions(_FACTS)


def output() -> str:
    """What the program wrote."""
    return _program()[0].output


def source() -> str:
    """What it read."""
    return _program()[0].inputs[0][1]


def tables(positions: bytes) -> list[tuple[str, str, bytes]]:
    """Sources, names and contents of the tables of the program alone, with positions."""
    from govtool.model.positions import PRIVATE_POSITIONS
    from govtool.model.records import PLANS, PRIVATE_VALUES, RECORD_RUNS, encode_plans, encode_private
    from govtool.model.records import encode_record_runs as encode_runs

    run, plan, private = _program()
    run = replace(run, positions=hashlib.sha256(positions).hexdigest())
    return [
        ("job", PLANS, encode_plans([plan])),
        ("job", RECORD_RUNS, encode_runs([run])),
        ("job", PRIVATE_VALUES, encode_private([private])),
        ("job", PRIVATE_POSITIONS, positions),
    ]


@contextmanager
def _without_spark() -> Iterator[None]:
    """A JVM would take all of the time. What is imported meanwhile stays, which `mock.patch.dict` would undo."""
    before = sys.modules.get("pyspark.sql")
    sys.modules["pyspark.sql"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pyspark.sql"]
        if before is not None:
            sys.modules["pyspark.sql"] = before


def _token(graph: Graph) -> str:
    """A record that went into the workflow's run."""
    answer: Any = graph.workflow_why(FLOW_RUN, "post/B@1", semirings=["which"]).to_dict()
    return str(answer["tuples"][0]["which"][0])


def _ask(store: Store) -> None:
    from govtool.api.graph import Graph
    from govtool.app.upkeep.store import check
    from govtool.app.workflow_graphs.graphs import graph_in
    from govtool.errors import GovtoolError

    run, _, _ = _program()
    graph, source = Graph(store, store.resolve("HEAD")), run.inputs[0][1]
    asks: tuple[Callable[[], object], ...] = (
        lambda: check(store, anchor=None, contents=True, progress=lambda *_: None),
        lambda: graph.trace_back(run.output, "value like '%a%'", run=RUN, all_runs=True).to_dict(),
        lambda: graph.trace_back(run.output, "value like '%a%'", run=RUN, verify=True).to_dict(),
        lambda: graph.trace_forward(source, "value = 'a'", run=RUN).to_dict(),
        lambda: graph.records(run=RUN).go_back_all().ids(),
        lambda: graph.replay(RUN, without=[source], where=["value = 'a'"]).to_dict(),
        lambda: graph.erase_plan([f"{source}.value=a"], run="app-1").to_dict(),
        lambda: graph.workflow_runs().to_dict(),
        lambda: graph.workflow_run(FLOW_RUN).to_dict(),
        lambda: graph.workflow_why(FLOW_RUN, "post/B@1").to_dict(),
        lambda: graph.workflow_why(FLOW_RUN, "C", semirings=["which"]).to_dict(),
        lambda: graph.workflow_delete(FLOW_RUN, [_token(graph)], mode="propagate").to_dict(),
        lambda: graph.workflow_delete(FLOW_RUN, ["a@b:0/0"]).to_dict(),
        lambda: graph.trace_back(_write()[0].output, "name = 'ann'", run=f"{FLOW_RUN}/0").to_dict(),
        lambda: graph_in(store, store.resolve("HEAD"), f"run:{FLOW_RUN}"),
        lambda: graph_in(store, store.resolve("HEAD"), "run:app-1"),
        lambda: graph.show(FLOW_RUN).to_dict(),
    )
    with _without_spark():
        for ask in asks:
            try:
                ask()
            except GovtoolError:
                continue
