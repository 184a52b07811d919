"""Events to derivations: the fixtures, merging in any order, and what hostile input leaves behind."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.openlineage.derive import OpenLineageFindings, derive
from govtool.capture.openlineage.events import EventReader
from govtool.capture.openlineage.facts import facts_of
from govtool.capture.openlineage.merge import MergedEvents
from govtool.capture.openlineage.sql import attach

FIXTURES = Path(__file__).parents[3] / "fixtures" / "openlineage"
PG = {"namespace": "postgres://dw:5432"}


def fixture_events() -> list[dict]:
    events = json.loads((FIXTURES / "airflow_sql.json").read_text())
    for name in ("catalog.jsonl", "spark_orders.jsonl"):
        events += [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]
    return events


def merged(events, state: MergedEvents | None = None) -> tuple[MergedEvents, dict[str, str], EventReader]:
    state = state or MergedEvents()
    reader = EventReader("events.jsonl")
    texts: dict[str, str] = {}
    for number, value in enumerate(events, 1):
        for event in reader.events(value, number):
            sql = attach(event)
            texts |= dict([sql]) if sql else {}
            state.add(event)
    return state, texts, reader


def derived(events) -> OpenLineageFindings:
    state, texts, _ = merged(events)
    return derive(state, texts)


def lines(found: OpenLineageFindings, target: str) -> list[str]:
    """Edges into a dataset as ``source kind target``, without what is only declared."""
    return sorted(
        f"{e.source.text.rpartition('/')[2]} {e.kind.label} {e.target_path}"
        for d in found.derivations
        if d.target == target and d.statement.kind != "alias"
        for e in d.edges
    )


def one(found: OpenLineageFindings, target: str):
    (only,) = [
        d for d in found.derivations if d.target == target and d.mode != "declare" and d.statement.kind != "alias"
    ]
    return only


def run(job: str, kind: str, time: str, run: str = "r1", **more) -> dict:
    return {
        "eventType": kind,
        "eventTime": time,
        "run": {"runId": run},
        "job": {"namespace": "jobs", "name": job},
    } | more


def output(name: str, fields: dict, **facets) -> dict:
    lineage = {
        column: {"inputFields": [{**PG, "name": table, "field": source} for table, source in sources]}
        for column, sources in fields.items()
    }
    return {**PG, "name": name, "facets": {"columnLineage": {"fields": lineage}, **facets}}


def test_a_spark_run_told_in_three_events():
    found = derived(fixture_events())
    assert lines(found, "s3://lake/shop/orders") == [
        "orders.* read *",
        "orders.amount aggregation amount",
        "orders.customer.email transformation email",
        "orders.id group_by *",
        "orders.id identity id",
        "orders.state conditional amount",
        "orders.state filter *",
    ]
    made = one(found, "s3://lake/shop/orders")
    assert made.mode == "replace"
    assert made.statement.how == "openlineage"
    assert made.statement.file == "spark/nightly.orders"
    assert made.statement.run == "0193400a-0000-7000-8000-000000000001"
    assert (made.statement.first_seen, made.statement.last_seen) == (
        "2026-11-20T02:00:00.000000Z",
        "2026-11-20T02:00:09.000000Z",
    )
    assert [(c.path, c.type) for c in made.columns] == [("id", "long"), ("email", "string"), ("amount", "double")]
    assert [e.masking for e in made.edges if e.target_path == "email"] == [True]


def test_symlinks_are_aliases_both_ways():
    found = derived(fixture_events())
    aliases = [d for d in found.derivations if d.statement.kind == "alias"]
    assert [d.target for d in aliases] == ["hive://metastore:9083/shop.orders", "s3://lake/shop/orders"]
    assert aliases[0].statement.text == "symlink TABLE"
    assert {e.target_path for e in aliases[0].edges if e.star} == {"id", "email", "amount"}


def test_sql_without_column_lineage_is_read_as_sql():
    made = one(derived(fixture_events()), "postgres://dw:5432/dw.mart.audience")
    assert made.statement.how == "sql"
    assert made.statement.run == "0193400a-0000-7000-8000-000000000010"
    assert "Freedonia" not in made.statement.text
    assert {(e.source.text, e.kind.label, e.target_path) for e in made.edges} >= {
        ("postgres://dw:5432/dw.crm.users.email", "transformation", "email"),
        ("postgres://dw:5432/dw.crm.users.country", "filter", "*"),
        ("postgres://dw:5432/dw.shop.orders.user_id", "join", "*"),
    }
    assert [reference.text for reference in made.references] == ["postgres://dw:5432/dw.mart.audience.*"]


def test_the_old_form_of_column_lineage():
    made = one(derived(fixture_events()), 'snowflake://org-acc/"SHOP"."PUBLIC"."OFFERS"')
    flow = {(e.source.path, e.kind.label, e.target_path, e.masking) for e in made.edges if e.kind.label != "read"}
    assert flow == {
        ('"NAME"', "transformation", '"NAME"', True),
        ('"AMOUNT"', "identity", '"AMOUNT"', False),
        ('"AMOUNT"', "transformation", '"TOTAL"', False),
        ('"TAX"', "transformation", '"TOTAL"', False),
    }


def test_explicit_lineage_of_datasets_and_jobs():
    found = derived(fixture_events())
    assert lines(found, "postgres://dw:5432/dw.crm.people") == [
        "dw.crm.users.* read *",
        "dw.crm.users.country filter *",
        "dw.crm.users.email identity mail",
    ]
    assert one(found, "postgres://dw:5432/dw.crm.people").target_kind == "view"
    assert lines(found, "postgres://dw:5432/dw.mart.enriched") == [
        "dw.crm.users.* read *",
        "dw.crm.users.country opaque segment",
        "geocode.* opaque segment",
        "geocode.* read *",
    ]
    assert lines(found, "job:airflow/enrich") == ["dw.crm.users.* read *", "dw.crm.users.country filter *"]


def test_lifecycle():
    found = derived(fixture_events())
    assert one(found, "postgres://dw:5432/dw.tmp.scratch").mode == "drop"
    assert one(found, "postgres://dw:5432/dw.stage.inbox").statement.kind == "truncate"
    renamed = one(found, "postgres://dw:5432/dw.mart.buyers")
    assert renamed.mode == "rename"
    assert {e.source.text for e in renamed.edges if e.star} == {
        "postgres://dw:5432/dw.mart.audience.email",
        "postgres://dw:5432/dw.mart.audience.orders",
    }


def test_a_run_that_names_no_columns_is_opaque_and_one_without_end_is_noted():
    found = derived(fixture_events())
    assert lines(found, "s3://lake/shop/totals") == ["orders.* opaque *", "orders.* read *"]
    assert one(found, "s3://lake/shop/totals").status == "partial"
    assert {d.code for d in found.diagnostics} >= {"no-column-lineage", "unfinished-run"}


def test_secrets_and_literals_are_not_kept():
    state, texts, _ = merged(fixture_events())
    kept = json.dumps(list(map(list, (row for rows in state.rows().values() for row in rows))))
    for secret in ("hunter2", "Freedonia", "ann@example.org"):
        assert secret not in kept
        assert secret not in repr(derive(state, texts).derivations)


def test_every_dataset_is_declared_with_its_namespace():
    found = derived(fixture_events())
    declared = {d.target: d.namespace for d in found.derivations if d.mode == "declare"}
    assert declared["postgres://dw:5432/dw.crm.users"] == "postgres://dw:5432"
    sources = {e.source.dataset for d in found.derivations for e in d.edges}
    assert {s for s in sources if not s.startswith("job:")} <= declared.keys()


def test_runs_that_say_the_same_are_one_derivation():
    events = [
        run(
            "load",
            kind,
            f"2026-11-{day:02d}T00:00:{second:02d}Z",
            f"r{day}",
            outputs=[output("b", {"x": [("a", "x")]})],
        )
        for day in (1, 2, 3)
        for kind, second in (("START", 0), ("COMPLETE", 9))
    ]
    made = one(derived(events), "postgres://dw:5432/b")
    assert (made.statement.count, made.statement.run) == (3, "r3")
    assert made.statement.first_seen == "2026-11-01T00:00:00.000000Z"
    assert made.statement.last_seen == "2026-11-03T00:00:09.000000Z"


def test_an_overwrite_that_changes_back_is_three_generations():
    overwrite = {"lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"}}
    events = [
        run(
            "load",
            "COMPLETE",
            f"2026-11-0{day}T00:00:00Z",
            f"r{day}",
            outputs=[output("b", {"x": [(t, "x")]}, **overwrite)],
        )
        for day, t in ((1, "a"), (2, "other"), (3, "a"))
    ]
    found = [d for d in derived(events).derivations if d.target.endswith("/b") and d.mode == "replace"]
    assert [d.statement.run for d in found] == ["r1", "r2", "r3"]


def test_a_failed_run_replaces_nothing():
    overwrite = {"lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"}}
    events = [
        run("load", "COMPLETE", "2026-11-01T00:00:00Z", "r1", outputs=[output("b", {"x": [("a", "x")]}, **overwrite)]),
        run("load", "FAIL", "2026-11-02T00:00:00Z", "r2", outputs=[output("b", {"x": [("c", "x")]}, **overwrite)]),
    ]
    found = {d.statement.run: d for d in derived(events).derivations if d.target.endswith("/b") and d.mode != "declare"}
    assert found["r1"].mode == "replace"
    assert (found["r2"].mode, found["r2"].status) == ("append", "partial")
    assert [n.code for n in found["r2"].diagnostics] == ["failed-run"]


def test_figures_of_an_earlier_event_stay():
    figures = {"outputFacets": {"outputStatistics": {"rowCount": 7}}}
    state, _, _ = merged(
        [
            run("load", "COMPLETE", "2026-11-01T00:00:09Z", outputs=[{**PG, "name": "b"}]),
            run("load", "RUNNING", "2026-11-01T00:00:05Z", outputs=[{**PG, "name": "b", **figures}]),
        ]
    )
    stated = {facet: value.text for facets in state.entities.values() for (_, facet), value in facets.items()}
    assert stated["outputStatistics/rowCount"] == "7"


def test_owners_tags_versions_and_figures_are_facts():
    found = {
        (f.dataset.rpartition("/")[2], f.column, f.name, f.value) for f in facts_of(merged(fixture_events())[0], "s")
    }
    assert found == {
        ("dw.crm.users", None, "owner", "team:growth"),
        ("dw.crm.users", "email", "tag", "pii"),
        ("dw.crm.users", None, "version", "7"),
        ("orders", None, "written.rowCount", "1200"),
        ("orders", None, "written.size", "8192"),
    }


# Merging.


@settings(max_examples=examples(30))
@given(st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(chance: random.Random):
    events = fixture_events()
    shuffled = [*events, *chance.choices(events, k=5)]
    chance.shuffle(shuffled)
    assert merged(shuffled)[0].digest() == merged(events)[0].digest()


@settings(max_examples=examples(30))
@given(st.randoms(use_true_random=False), st.integers(0, 12))
def test_merging_states_is_merging_events(chance: random.Random, cut: int):
    events = fixture_events()
    chance.shuffle(events)
    left, right = merged(events[:cut])[0], merged(events[cut:])[0]
    right.update(left)
    assert right.digest() == merged(events)[0].digest()


def test_a_state_is_stored_and_read_again():
    state = merged(fixture_events())[0]
    rows = [row for rows in state.rows().values() for row in rows]
    assert MergedEvents.of_rows(rows).digest() == state.digest()


def test_sql_whose_text_is_gone_keeps_what_it_said():
    state, texts, _ = merged(fixture_events())
    before = derive(state, texts)
    after = derive(MergedEvents.of_rows(r for rows in state.rows().values() for r in rows), {}, before.derivations)
    assert after.derivations == before.derivations


# Hostile input.

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "run",
                    "runId",
                    "job",
                    "name",
                    "namespace",
                    "inputs",
                    "outputs",
                    "facets",
                    "dataset",
                    "eventTime",
                    "columnLineage",
                    "fields",
                    "inputFields",
                    "transformations",
                    "type",
                    "subtype",
                    "lineage",
                    "entries",
                    "schema",
                    "symlinks",
                    "identifiers",
                    "sql",
                    "query",
                    "field",
                    "events",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["run", "job", "inputs", "outputs", "dataset", "eventTime", "eventType", "events"]), junk
    )
)
def test_no_event_breaks_the_reader(value):
    state, texts, _ = merged([value])
    derive(state, texts)
    facts_of(state, "s")


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_no_facet_breaks_the_reader(data):
    names = [
        "columnLineage",
        "lineage",
        "schema",
        "symlinks",
        "lifecycleStateChange",
        "datasetType",
        "sql",
        "tags",
        "ownership",
        "dataQualityMetrics",
    ]
    facets = st.dictionaries(st.sampled_from(names), junk)
    event = run("j", "COMPLETE", "2026-11-01T00:00:00Z", inputs=[{**PG, "name": "a", "facets": data.draw(facets)}])
    event["outputs"] = [{**PG, "name": "b", "facets": data.draw(facets)}]
    event["job"]["facets"] = data.draw(facets)
    state, texts, _ = merged([event])
    found = derive(state, texts)
    facts_of(state, "s")
    assert any(d.target == "postgres://dw:5432/b" for d in found.derivations)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"a": 1}, "neither job nor dataset"),
        ({"job": 1}, "job is not an object"),
        ({"job": {"namespace": "x"}}, "job has no name"),
        ({"job": {"name": "x"}, "run": {}}, "run has no runId"),
        ({"dataset": {"name": ""}}, "dataset has no namespace or name"),
    ],
)
def test_what_is_no_event_is_said(event, message):
    _, _, reader = merged([event])
    assert any(n.severity == "error" and message in n.message for n in reader.notes)


def test_deep_nesting_and_strange_text():
    deep: object = "x"
    for _ in range(400):
        deep = {"fields": [deep]}
    event = run(
        "j\udc80", "COMPLETE", "yesterday", outputs=[{**PG, "name": "b\u0000\u202e", "facets": {"schema": deep}}]
    )
    state, texts, reader = merged([event])
    derive(state, texts)
    assert any("eventTime" in n.message for n in reader.notes)
