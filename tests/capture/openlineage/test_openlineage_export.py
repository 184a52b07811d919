"""Export: every event as the spec asks, and the same again after a round trip."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from openlineage_spec import problems
from test_openlineage_derive import derived, fixture_events, merged

from govtool.capture.openlineage.derive import derive
from govtool.capture.openlineage.events import EventReader, InvalidEventError
from govtool.capture.openlineage.export import export
from govtool.capture.openlineage.facets import Kept
from govtool.capture.openlineage.run_events import run_events
from govtool.names import quote

sys.path.insert(0, str(Path(__file__).parents[1] / "sql"))  # the cases of fixtures/lineage
from lineage_cases import load_cases

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

TIME = "2026-11-20T00:00:00.000000Z"


def round_trip(events: list[dict]) -> list[dict]:
    state, texts, reader = merged(json.loads(json.dumps(events)))
    assert reader.notes == []
    return export(derive(state, texts).derivations, time=TIME, kept=Kept(state), queries=True).events


def same(one: list[dict], other: list[dict]) -> bool:
    return sorted(json.dumps(e, sort_keys=True) for e in one) == sorted(json.dumps(e, sort_keys=True) for e in other)


def test_events_that_came_in_go_out_valid_and_settle():
    state, texts, _ = merged(fixture_events())
    first = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    assert [problem for event in first for problem in problems(event)] == []
    assert same(round_trip(first), first)


def test_owners_tags_versions_and_parents_go_through():
    state, texts, _ = merged(fixture_events())
    events = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    (users,) = [e["dataset"] for e in events if e.get("dataset", {}).get("name") == "dw.crm.users"]
    assert users["facets"]["ownership"]["owners"] == [{"name": "team:growth", "type": "OWNER"}]
    assert users["facets"]["tags"]["tags"] == [{"field": "email", "key": "pii", "value": "true"}]
    assert users["facets"]["version"]["datasetVersion"] == "7"
    (ended,) = [e for e in events if e.get("eventType") == "COMPLETE" and e["job"]["name"] == "nightly.orders"]
    assert ended["run"]["facets"]["parent"]["job"]["name"] == "shop.nightly"
    assert ended["run"]["facets"]["processing_engine"]["version"] == "4.0.1"


def test_facets_that_are_not_as_the_spec_asks_are_not_passed_on():
    wrong = {
        "ownership": {"owners": "me"},
        "version": {},
        "tags": {"tags": [{"key": 1}]},
        "storage": {"storageLayer": 3},
    }
    event = {"eventTime": TIME, "dataset": {"namespace": "x", "name": "y", "facets": wrong}}
    state, texts, _ = merged([event])
    (out,) = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    assert out["dataset"]["facets"] == {}
    assert problems(out) == []


CASES = load_cases()


@pytest.mark.parametrize("dialect", sorted({case.headers.get("dialect", "") for case in CASES}))
def test_all_that_sql_can_say_survives_the_round_trip(dialect):
    for case in CASES:
        if case.headers.get("dialect", "") != dialect:
            continue
        extraction = extract([Script("etl/a.sql", case.sql)], Options(dialect=dialect, source="warehouse"))
        events = export(extraction.derivations, time=TIME, queries=True).events
        assert [p for event in events for p in problems(event)] == [], case.title
        assert same(round_trip(events), events), case.title


def test_edges_survive_the_round_trip():
    sql = (
        "create view v as select lower(a.email) e, sum(b.x) over (partition by b.y) w, case when a.c then a.d end f "
        "from a join b on a.id = b.id where a.z > 1 union all select g, h, i from d"
    )
    extraction = extract([Script("v.sql", sql)], Options(dialect="postgres", source="s"))
    events = export(extraction.derivations, time=TIME).events
    back = derived(events)
    (before,) = extraction.derivations
    (after,) = [d for d in back.derivations if d.target == "v" and d.mode != "declare"]

    def edges(derivation):
        return {e._replace(arm=0) if e.kind.label == "read" else e for e in derivation.edges}

    assert edges(after) == edges(before)
    assert (after.target_kind, after.mode, after.columns) == ("view", "replace", before.columns)


def test_bare_queries_are_left_out_and_counted():
    extraction = extract([Script("q.sql", "select a from t")], Options(source="s"))
    assert export(extraction.derivations, time=TIME).queries == 1
    assert len(export(extraction.derivations, time=TIME).events) == 0
    assert len(export(extraction.derivations, time=TIME, queries=True).events) == 3


def test_runs_have_uuids():
    (made,) = extract([Script("q.sql", "insert into b select x from a")], Options(source="s")).derivations
    ran = made._replace(
        statement=made.statement._replace(run="query-17", first_seen="2026-11-01", last_seen="2026-11-02")
    )
    events = export([ran], time=TIME).events
    assert [e["eventType"] for e in events if "run" in e] == ["START", "COMPLETE"]
    assert [p for event in events for p in problems(event)] == []
    assert same(round_trip(events), events)


def test_as_runs_every_event_is_a_valid_run_event_and_keeps_its_id():
    (file,) = [Script("v.sql", "create table a (id int); create view b as select id from a; create table c (x int);")]
    derivations = extract([file], Options()).derivations
    exported = export(derivations, time=TIME)
    events, unused = run_events(exported.events)
    assert unused == 1, "nothing reads or writes c"
    assert [problem for event in events for problem in problems(event)] == []
    assert {event["eventType"] for event in events} == {"COMPLETE"}
    assert {event["schemaURL"].rpartition("/")[2] for event in events} == {"RunEvent"}
    later, _ = run_events([{**event, "eventTime": "2027-01-01T00:00:00.000000Z"} for event in exported.events])
    assert [event["run"]["runId"] for event in later] == [event["run"]["runId"] for event in events]
    (read,) = events[0]["inputs"]
    assert [each["name"] for each in read["facets"]["schema"]["fields"]] == ["id"]


def test_runs_stay_the_runs_that_they_are():
    state, texts, _ = merged(fixture_events())
    exported = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    runs = [event["run"]["runId"] for event in exported if "run" in event]
    events, _ = run_events(exported)
    assert [problem for event in events for problem in problems(event)] == []
    assert {event["run"]["runId"] for event in events} >= set(runs)
    assert runs


NAMED = ("description", "transformationDescription", "fields", "name", "type", "password", "id")
"""Names of columns that are also words of the format."""


def _copied() -> dict:
    """A run that copies columns of such names, with figures of what it read and wrote, and with assertions."""
    source = {"namespace": "s3://lake%27s", "name": "in"}
    inputs = [
        {**source, "field": name, "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]} for name in NAMED
    ]
    fields = {name: {"inputFields": [given]} for name, given in zip(NAMED, inputs, strict=True)}
    assertions = [{"assertion": "not_null", "success": True, "column": "id"}]
    read = {"inputStatistics": {"rowCount": 7, "size": 90}, "dataQualityAssertions": {"assertions": assertions}}
    written = {"outputStatistics": {"rowCount": 5, "size": 40, "fileCount": 2}}
    return {
        "eventType": "COMPLETE", "eventTime": "2026-11-20T00:00:00Z", "job": {"namespace": "n", "name": "j"},
        "run": {"runId": "01900000-0000-7000-8000-000000000001"}, "inputs": [{**source, "inputFacets": read}],
        "outputs": [{"namespace": "s3://lake", "name": "out", "outputFacets": written,
                     "facets": {"columnLineage": {"fields": fields}}}],
    }  # fmt: skip


def test_a_column_may_be_called_like_a_word_of_the_format():
    state, texts, reader = merged([_copied()])
    (made,) = [d for d in derive(state, texts).derivations if d.target == "s3://lake/out" and d.mode != "declare"]
    assert {(edge.source.path, edge.target_path) for edge in made.edges if edge.kind.label == "identity"} == {
        (quote(name), quote(name)) for name in NAMED
    }
    assert reader.notes == []


def test_figures_and_assertions_of_a_run_go_through_and_names_stay():
    state, texts, _ = merged([_copied()])
    events = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    assert [problem for event in events for problem in problems(event)] == []
    (ended,) = [event for event in events if event.get("eventType") == "COMPLETE"]
    given = _copied()
    found = {name: _bodies(ended["inputs"][0]["inputFacets"][name]) for name in given["inputs"][0]["inputFacets"]}
    assert found == given["inputs"][0]["inputFacets"]
    assert _bodies(ended["outputs"][0]["outputFacets"]["outputStatistics"]) == {
        "rowCount": 5, "size": 40, "fileCount": 2,
    }  # fmt: skip
    assert {(each["namespace"], each["name"]) for each in ended["inputs"]} == {("s3://lake%27s", "in")}
    assert same(round_trip(events), events)


def _bodies(facet: dict) -> dict:
    return {name: value for name, value in facet.items() if not name.startswith("_")}


@pytest.mark.parametrize("time", ["not a time", "2026-13-45T00:00:00Z", [], {"a": 1}, True])
def test_an_event_whose_time_is_none_is_refused(time):
    with pytest.raises(InvalidEventError, match="eventTime is no time"):
        EventReader("x").event({**_copied(), "eventTime": time})


def test_lineage_of_columns_that_is_no_object_is_noted_and_unknown():
    event = _copied()
    event["outputs"][0]["facets"]["columnLineage"]["fields"] = [1]
    state, texts, reader = merged([event])
    assert [note.message for note in reader.notes] == ["columnLineage.fields is not an object"]
    (made,) = [d for d in derive(state, texts).derivations if d.target == "s3://lake/out" and d.mode != "declare"]
    assert {edge.kind.label for edge in made.edges} == {"read", "opaque"}


def test_a_run_that_is_exported_began_when_it_began_and_not_when_another_run_had_the_same_lineage():
    first, second = _copied(), _copied()
    second["run"] = {"runId": "01890000-0000-7000-8000-0000000000ff"}
    second["eventTime"] = "2027-01-01T00:00:00Z"
    state, texts, _ = merged([first, second])
    events = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    assert {(e["eventType"], e["eventTime"]) for e in events if "run" in e} == {
        ("START", "2027-01-01T00:00:00.000000Z"), ("COMPLETE", "2027-01-01T00:00:00.000000Z"),
    }  # fmt: skip
    assert same(round_trip(events), events)


def test_a_figure_that_is_no_number_is_noted_and_the_others_are_kept():
    event = _copied()
    event["outputs"][0]["outputFacets"]["outputStatistics"] |= {"rowCount": "many", "size": 7}
    state, texts, reader = merged([event])
    assert [note.message for note in reader.notes] == ["outputStatistics.rowCount is no integer: many"]
    events = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    (ended,) = [each for each in events if each.get("eventType") == "COMPLETE"]
    assert _bodies(ended["outputs"][0]["outputFacets"]["outputStatistics"]) == {"size": 7, "fileCount": 2}


def versioned(number, reads, wrote):
    """A run that reads versions of t, and writes one of o."""
    side = lambda name, version: {  # noqa: E731
        "namespace": "s3://b", "name": name, "facets": {"version": {"datasetVersion": version}},
    }  # fmt: skip
    return {
        "eventType": "COMPLETE", "eventTime": f"2026-01-0{number}T00:00:00Z", "producer": "p",
        "run": {"runId": f"{number}1111111-1111-4111-8111-111111111111"}, "job": {"namespace": "n", "name": f"compare{number}"},
        "inputs": [side("t", each) for each in reads], "outputs": [side("o", wrote)],
    }  # fmt: skip


def test_each_run_keeps_the_versions_that_it_read_and_wrote():
    state, texts, _ = merged([versioned(1, ["7", "6"], "1"), versioned(2, ["8"], "2")])
    first = export(derive(state, texts).derivations, time=TIME, kept=Kept(state)).events
    assert [problem for event in first for problem in problems(event)] == []
    assert same(round_trip(first), first)
    for events in (first, run_events(first)[0]):
        ended = [event for event in events if event.get("eventType") == "COMPLETE"]
        stated = lambda side: [each["facets"]["version"]["datasetVersion"] for each in side]  # noqa: E731
        assert [(stated(e["inputs"]), stated(e["outputs"])) for e in ended] == [(["6", "7"], ["1"]), (["8"], ["2"])]
