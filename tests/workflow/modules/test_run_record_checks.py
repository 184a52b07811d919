"""Records of workflow runs of which a part is changed: refused as damaged, never fewer rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from govtool.app.workflow_runs.record_checks import require_sound, require_written
from govtool.app.workflow_runs.run_graph import StoredRunFiles
from govtool.errors import IntegrityError
from govtool.model.parquet import read_parquet, write_parquet
from govtool.model.records import RecordRun
from govtool.model.workflow_run import (
    BoundaryRelation,
    ModuleInvocation,
    RelationFile,
    WorkflowRun,
    decode_workflow_runs,
    encode_workflow_run,
    run_from,
    run_text,
)
from govtool.records.plan.codec import dumps
from govtool.records.plan.nodes import File, Plan, Relation, Session, Union
from govtool.records.plan.types import Struct
from govtool.records.split_plans import relation_text

SESSION = Session("", True, "UTC")


def relation(path):
    return path, BoundaryRelation(path, "parquet", "", (RelationFile(f"file://{path}/0", 3, 4),))


def post(execution, *state):
    made = f"/s/{execution}"
    inputs, left = (("In", f"/in/{execution}", ""),), (("S", "Post.S", f"{made}/S"),)
    outputs = (("Out", f"{made}/Out"), ("Fresh", f"{made}/Fresh"))
    return ModuleInvocation(execution, "post", "Post", execution, inputs, state, left, outputs, ("Fresh",))


def alert(execution):
    inputs, outputs = (("Out", f"/s/{execution}/Out", "post"),), (("Big", f"/s/{execution}/Big"),)
    return ModuleInvocation(execution, "alert", "Alert", execution, inputs, (), (), outputs, ("Big",))


def made():
    """Two executions of two nodes; the state of the first is read by the second."""
    places = [
        f"/{place}"
        for n in (1, 2)
        for place in (f"in/{n}", *(f"s/{n}/{name}" for name in ["S", "Out", "Fresh", "Big"]))
    ]
    invocations = (post(1), alert(1), post(2, ("S", "Post.S", "/s/1/S")), alert(2))
    edges = (("post", "alert", "Out"),)
    return WorkflowRun(
        "w-1",
        "w",
        "complete",
        "records",
        ("app-1",),
        "2026",
        "",
        "",
        edges,
        invocations,
        dict(map(relation, places)),
        2,
    )


def written(path, application="app-1"):
    leaf = Relation(0, path, "parquet", (File(0, f"file://{path}/0", 3, 4),), (), Struct(()))
    listing = dumps(Plan(Union((), ()), SESSION))
    return RecordRun(f"{application}/1", "p", f"file://{path}", (), listing, relation_text(leaf, SESSION))


def places(value, place=()):
    if place:
        yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def changed(body, place, change):
    copy = json.loads(json.dumps(body))
    holder = copy
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = change(holder[place[-1]])
    return run_from(json.dumps(copy))


def test_a_sound_record_passes():
    require_sound(made())
    require_written(made(), [written("/s/1/S"), written("/s/2/Big"), written("/elsewhere", "app-2")])


@pytest.mark.parametrize("application", ["app-1", "app-0"])
def test_the_state_that_a_run_begins_with_is_of_an_earlier_run(application):
    whole = made()
    later = tuple(each for each in whole.invocations if each.execution == 2)
    named = {path for each in later for path in (*(p for _, p, _ in each.inputs), *(p for *_, p in each.state))}
    named |= {path for each in later for path in (*(p for _, p in each.outputs), *(p for *_, p in each.new_state))}
    run = replace(whole, invocations=later, relations={p: r for p, r in whole.relations.items() if p in named})
    require_written(run, [written("/s/1/S", application), written("/s/2/S")])
    with pytest.raises(IntegrityError, match="is no application of it"):
        require_written(run, [written("/s/2/S", "app-0")])


def test_every_name_and_place_of_an_invocation_counts():
    body = json.loads(run_text(made()))
    texts = [place for place in places(body["invocations"]) if isinstance(value_at(body["invocations"], place), str)]
    missed = [place for place in texts if is_sound(changed(body, ("invocations", *place), lambda text: f"{text}x"))]
    assert missed == []


def is_sound(run):
    try:
        require_sound(run)
    except IntegrityError:
        return False
    return True


def value_at(value, place):
    for key in place:
        value = value[key]
    return value


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (("invocations",), lambda every: every[:-1]),
        (("invocations",), lambda every: every[:1] + every[2:]),
        (("invocations", 2, "kept"), lambda names: []),
        (("invocations", 3, "kept"), lambda names: []),
        (("invocations", 2, "outputs"), lambda names: names[:1]),
        (("invocations", 2, "state"), lambda names: []),
        (("invocations", 2, "execution"), lambda number: 3),
        (("invocations", 3, "number"), lambda number: 1),
        (("whole",), lambda number: 1),
        (("edges",), lambda names: []),
        (("edges",), lambda names: names * 2),
        (("invocations", 2, "state"), lambda names: names * 2),
        (("applications",), lambda names: []),
        (("relations",), lambda every: every[1:]),
        (("relations", 0, "format"), lambda text: "orc"),
        (("relations", 0, "files"), lambda files: files * 2),
    ],
)
def test_a_record_of_which_a_part_is_gone_is_damaged(place, change):
    with pytest.raises(IntegrityError) as refused:
        require_sound(changed(json.loads(run_text(made())), place, change))
    assert refused.value.code == "store.corrupt-fragment"


@pytest.mark.parametrize(
    ("place", "change", "word"),
    [
        (("invocations", 0, "new_state"), lambda names: [], "no invocation made /s/1/S"),
        (("applications", 0), lambda name: "app-2", "is no application of it"),
        (("relations", 1, "files"), lambda files: [], "lacks the file"),
    ],
)
def test_what_a_recorded_write_made_is_in_the_record(place, change, word):
    with pytest.raises(IntegrityError, match=word):
        require_written(changed(json.loads(run_text(made())), place, change), [written("/s/1/S")])


def test_a_fragment_holds_one_run_that_its_columns_agree_with():
    import pyarrow as pa

    table = read_parquet(encode_workflow_run(made()))
    other = table.set_column(0, "id", pa.array(["w-2"])).replace_schema_metadata(table.schema.metadata)
    for spoilt in (table.slice(1), pa.concat_tables([table, table]), other):
        with pytest.raises(IntegrityError, match="no runs of workflows"):
            decode_workflow_runs(write_parquet(spoilt))


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    facts = path.stat()
    file = RelationFile(path.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000)
    files = StoredRunFiles.__new__(StoredRunFiles)
    files._rows = {}
    with pytest.raises(IntegrityError, match="is no parquet file"):
        files.rows(BoundaryRelation(str(path), "parquet", "", (file,)))
