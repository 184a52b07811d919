"""Programs of RDDs and kept positions that somebody made: refused with a code, never run, never another row."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from govtool.api.graph import Graph
from govtool.app.rdd.programs import log_of, stored_program
from govtool.app.records.frame_positions import KeptPositions
from govtool.errors import FormatError, IntegrityError
from govtool.model.positions import PRIVATE_POSITIONS, StoredPositions, decode_positions, encode_positions
from govtool.model.records import (
    PLANS,
    PRIVATE_VALUES,
    RECORD_RUNS,
    encode_plans,
    encode_private,
    encode_record_runs,
)
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.types import LONG, Field, Struct
from govtool.records.trace.normal import spare_ids
from govtool.spark.rdd import functions
from govtool.spark.rdd.eager import text_id
from govtool.store import Changes, Fragment, Store
from govtool.store.codec import digest

RUN = "app-1/rdd-1"
FACTS = {"tables": [[2, 0, "exact", ""], [-1, 2, "exact", ""]], "coarse": [], "texts": [], "seconds": 1.0}


def identity(path):
    return [path.stat().st_size, path.stat().st_mtime_ns // 1_000_000]


@pytest.fixture
def made(tmp_path):
    """The run, the plan and the private values of a program over a file of three lines."""
    read, written = tmp_path / "in.txt", tmp_path / "out" / "part-0"
    written.parent.mkdir()
    read.write_text("a b\nc\na\n")
    written.write_text("('a', 2)\n('c', 1)\n")
    function = {"function": {"library": "str.split"}, "per_record": False}
    nodes = [
        {"number": 4, "name": "textFile", "label": "in.txt", "parents": [], "partitions": 1, "unicode": True}
        | {"path": str(read), "dataset": str(read), "files": {str(read): identity(read)}},
        {"number": 5, "name": "map", "label": "map", "parents": [4], "arguments": {"f": function}},
        {"number": 6, "name": "sample", "label": "groups", "parents": [5], "arguments": {"seed": {"value": "1"}}},
    ]
    log = {"schema": "rdd-log/1", "nodes": nodes, "outputs": {"": 6}}
    output = f"file://{written.parent}"
    return stored_program(RUN, {"log": log, "written": {str(written): identity(written)}}, output)


PAIRS = (
    np.array([[1, 0], [1, 2], [2, 1]]),
    np.array([[text_id("('a', 2)"), 1], [text_id("('c', 1)"), 2]]),
)


def graph_with(made, data):
    """A store that holds the program with positions."""
    run, plan, private = made
    run = replace(run, positions=digest(data))
    tables = {
        PLANS: encode_plans([plan]),
        RECORD_RUNS: encode_record_runs([run]),
        PRIVATE_VALUES: encode_private([private]),
        PRIVATE_POSITIONS: data,
    }
    store = Store.init("memory://")
    add = [Fragment("job", table, content, 1) for table, content in tables.items()]
    store.commit(Changes(("job",), tuple(add)), message="m", author="ann", batch="b")
    return Graph(store, store.resolve("HEAD"))


def traced(made, facts=FACTS, pairs=PAIRS):
    graph = graph_with(made, encode_positions(StoredPositions(facts, pairs)))
    answer = graph.trace_back(made[0].output, "value like '%a%'", run=RUN)
    return [row["_row"] for each in answer.trace.inputs for row in each.rows]


def test_sound_positions_lead_to_their_lines(made):
    assert traced(made) == [0, 2]


@pytest.mark.parametrize(
    "facts",
    [
        {"tables": [[2, 0, "exact", ""], [-1, 2, "exact", ""], [0, 2, "exact", ""]]},
        {"tables": [[2, 2, "exact", ""], [-1, 2, "exact", ""]]},
        {"tables": [[2, -1, "exact", ""], [-1, 2, "exact", ""]]},
        {"tables": [[2, 0, "surely", ""], [-1, 2, "exact", ""]]},
        {"tables": [[2.0, 0, "exact", ""], [-1, 2, "exact", ""]]},
        {"tables": [[2, 0, "exact", None], [-1, 2, "exact", ""]]},
        {"tables": [[9, 0, "exact", ""], [-1, 9, "exact", ""]]},
        {"tables": [[2, 0, "exact", ""]]},
        {"tables": "x"},
        {"coarse": [[2, 3, ""]]},
        {"coarse": [[2, [9], ""]]},
        {"coarse": [[2, "", ""]]},
        {"texts": [[0, {}]]},
        {"texts": {}},
        {"coarse": [[0, [2], ""]]},
        {"texts": [[0, [[True, "x"]]]]},
        {"texts": [[0, [[1 << 63, "x"]]]]},
        {"texts": [[0, [[1, 5]]]]},
    ],
)
def test_facts_that_do_not_fit_are_refused(made, facts):
    with pytest.raises(IntegrityError) as refused:
        traced(made, FACTS | facts)
    assert refused.value.code == "store.corrupt-fragment"


@pytest.mark.parametrize("origin", [3, 1 << 33, -1, 1 << 34, 64 << 34, (1 << 63) - 1])
def test_a_row_that_no_file_has_is_refused(made, origin):
    first = np.array([[1, 0], [1, origin], [2, 1]])
    with pytest.raises(IntegrityError, match=r"of no file that was read|beyond the 3"):
        traced(made, pairs=(first[np.lexsort(first.T)], PAIRS[1]))


def test_pairs_of_other_types_are_refused(made):
    import pyarrow as pa

    from govtool.model.parquet import read_parquet, write_parquet

    table = read_parquet(encode_positions(StoredPositions(FACTS, PAIRS)))
    for name, column in (
        ("id", pa.nulls(5, pa.int64())),
        ("origin", pa.array([0.0] * 5)),
        ("table", pa.array([0, 0, 0, 1, 2], pa.int32())),
        ("table", pa.array([1, 1, 0, 0, 0], pa.int32())),
        ("table", pa.array([-1, 0, 0, 1, 1], pa.int32())),
    ):
        place = table.schema.names.index(name)
        changed = table.set_column(place, name, column).replace_schema_metadata(table.schema.metadata)
        with pytest.raises(IntegrityError, match="a fragment holds no positions"):
            decode_positions(write_parquet(changed))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("output",), -1),
        (("output",), True),
        (("output",), 3),
        (("taken",), "x"),
        (("taken",), 1 << 40),
        (("result",), [3, "collect"]),
        (("nodes",), "abc"),
        (("nodes", 1, "parents"), [1]),
        (("nodes", 1, "parents"), [-1]),
        (("nodes", 1, "parents"), [2]),
        (("nodes", 1, "number"), 7),
        (("nodes", 1, "label"), None),
        (("nodes", 1, "name"), ["map"]),
        (("nodes", 1, "path"), "/etc/passwd"),
        (("nodes", 1, "arguments", "f", "function"), ["str.split"]),
        (("nodes", 2, "arguments", "seed"), {"value": {"$": -1}}),
        (("nodes", 2, "arguments", "seed"), {"value": 1}),
        (("nodes", 0, "partitions"), -1),
        (("nodes", 0, "partitions"), 1.5),
    ],
)
def test_a_log_that_does_not_fit_is_refused(made, place, value):
    run, plan, private = made
    assert log_of(run, plan.body, private.values)["nodes"][2]["arguments"]["seed"] == {"value": "1"}
    body = json.loads(plan.body)
    holder = body
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(FormatError):
        log_of(run, json.dumps(body), private.values)


def test_a_log_names_no_function_that_calls_or_reaches_attributes():
    """Out of `getattr` and `operator.call` a log could make any call: it may come from another's store."""
    allowed = ("builtins.len", "builtins.int", "operator.add", "operator.getitem", "str.split", "dict.get")
    assert all(functions.find({"library": name}, ()) for name in allowed)
    refused = [
        "getattr",
        "setattr",
        "delattr",
        "vars",
        "globals",
        "type",
        "object",
        "super",
        "map",
        "filter",
        "eval",
        "exec",
        "open",
        "print",
        "help",
    ]
    names = [f"builtins.{name}" for name in refused]
    names += [f"operator.{name}" for name in ("call", "attrgetter", "methodcaller", "itemgetter", "__call__")]
    names += ["str.format", "str.format_map"]
    assert not any(functions.find({"library": name}, ()) for name in [*names, "os.system", "str.__class__", "x", ""])
    with pytest.raises(ValueError, match="no plain function"):
        functions.reference(getattr)


def test_a_row_beyond_the_end_of_a_parquet_file_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)
    column = Attribute(0, "a", LONG)
    leaf = Relation(0, "a", "parquet", (File(0, path.as_uri(), 1, 1),), (column,), Struct((Field("a", LONG),)))
    facts = {"tables": [[-1, 0, "exact", ""]], "labels": [], "sources": [[0, 0]]}
    for row in (2, 3):
        kept = KeptPositions(StoredPositions(facts, (np.array([[0, 0], [1, row]]),)))
        kept.require_fit(leaf)
        if row < 3:
            assert len(kept.trace(leaf, spare_ids(leaf)).tables[0].pairs) == 2
        else:
            with pytest.raises(IntegrityError, match="beyond the 3"):
                kept.trace(leaf, spare_ids(leaf))
    for sources in ([[0, 7]], [[1, 0], [0, 0]]):
        fits = KeptPositions(StoredPositions({**facts, "sources": sources}, (np.array([[0, 1 << 34]]),)))
        with pytest.raises(IntegrityError, match="do not fit their plan"):
            fits.require_fit(leaf)


def test_a_result_that_no_written_line_has_is_said_to_be_incomplete(made):
    """Positions name results by their text: of a mangled one, the line is not found again."""
    positions = (PAIRS[0], np.array([[5, 1], [text_id("('c', 1)"), 2]]))
    graph = graph_with(made, encode_positions(StoredPositions(FACTS, positions)))
    forward = graph.trace_forward(made[0].inputs[0][1], "value like '%a%'", run=RUN)
    (answer,) = forward.outputs
    assert (answer.count, answer.exactness) == (0, "incomplete")
    assert answer.why == "1 of these records are no line of the written files"


def test_a_record_between_that_has_no_positions_makes_a_trace_incomplete(made):
    """The first result came from a record that the operator before it does not know."""
    first = text_id("('a', 2)")
    graph = graph_with(made, encode_positions(StoredPositions(FACTS, (PAIRS[0], np.array([[first, 7]])))))
    (answer,) = graph.trace_back(made[0].output, "value like '%a%'", run=RUN).trace.inputs
    assert (answer.count, answer.exactness) == (0, "incomplete")
    assert "no positions" in answer.why
