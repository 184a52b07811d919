"""Plans and writes in a store: equal plans once, private values apart, what earlier runs recorded kept."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import BY_LAND

import govtool
from govtool.app.records.runs import recorded
from govtool.app.records.tables import RecordTables, dataset_id, read_plan, read_tables, run_order
from govtool.app.upkeep.fragment_text import rows_without
from govtool.cli.main import main
from govtool.errors import FormatError, IntegrityError, UsageError
from govtool.model.parquet import read_parquet, write_parquet
from govtool.model.records import (
    PLANS,
    PRIVATE,
    PRIVATE_POSITIONS,
    PRIVATE_VALUES,
    RECORD_RUNS,
    RECORD_TABLES,
    RecordRun,
    StoredPlan,
    decode_plans,
    decode_record_runs,
    encode_plans,
    encode_record_runs,
)
from govtool.records.execute.inputs import relations
from govtool.records.plan import codec
from govtool.records.split_plans import put_together, taken_apart
from govtool.store import Changes, Store

SECRET = "SELECT user, 'Eve Miller' AS who FROM views WHERE user = 'ann' AND spent > 4711"


def refs(store, table):
    return [ref for ref in store.fragments(store.head("main")) if ref.table == table]


def content(store):
    return {(ref.source, ref.table, ref.sha256) for ref in store.fragments(store.head("main"))}


def test_a_plan_comes_back_from_its_parts(shop):
    plan = shop.plan(SECRET, "views")
    parts = taken_apart(plan)
    again = put_together(parts.body, parts.listings, parts.values, {})
    versions = {leaf.leaf: leaf.version for leaf in relations(again.root)}
    assert versions[0]
    assert codec.dumps(again).replace(versions[0], "") == codec.dumps(plan)


def test_literals_lie_in_the_private_table_alone(shop):
    shop.commit(shop.run(SECRET, "named", "views", run="app-1/1"))
    for ref in shop.store.fragments(shop.store.head("main")):
        text = repr([plan.body for plan in decode_plans(shop.store.read(ref))]) if ref.table == PLANS else ""
        text += repr(decode_record_runs(shop.store.read(ref))) if ref.table == RECORD_RUNS else ""
        assert "Eve Miller" not in text
        assert "4711" not in text
    assert "Eve Miller" in read_tables(shop.store, shop.store.head("main")).private["app-1/1"].values
    assert PRIVATE_VALUES.startswith(PRIVATE)


def test_without_its_private_values_a_plan_is_refused_and_no_other(shop):
    shop.commit(shop.run(SECRET, "named", "views", run="app-1/1"))
    store, head = shop.store, shop.store.head("main")
    kept = [ref for ref in store.fragments(head) if ref.table != PRIVATE_VALUES]
    store.commit(
        Changes(retract=(shop.source,), uploaded=tuple(kept)),
        message="forget",
        author="test",
        batch="forget",
        summary={},
    )
    runs = {run.run: run for run in recorded(store, store.head("main"))}
    with pytest.raises(UsageError, match="removed from the store") as error:
        read_plan(store, store.head("main"), runs["app-1/1"])
    assert error.value.code == "usage.forgotten"
    assert runs["app-1/1"].output.endswith("/named")


def test_a_plan_that_runs_again_over_other_files_is_stored_once(shop):
    assert len(refs(shop.store, PLANS)) == 1
    shop.table("views", {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}, [("ann", 5, 50)])
    shop.commit(shop.run(BY_LAND, "report", "views", "users", run="app-2/0", part="next"))
    assert len(refs(shop.store, PLANS)) == 1
    assert len(refs(shop.store, RECORD_RUNS)) == len(refs(shop.store, PRIVATE_VALUES)) == 2
    assert [run.run for run in recorded(shop.store, shop.store.head("main"))] == ["app-1/0", "app-2/0"]


def test_plans_that_differ_by_their_paths_alone_are_of_one_shape(shop, monkeypatch):
    """Where a trace stops is found once for them, and is what it is plan by plan."""
    from govtool.app.records import tables

    queries = [BY_LAND, "SELECT DISTINCT land FROM users", "SELECT land FROM users WHERE land NOT IN (SELECT '1')"]
    writes = [
        shop.run(sql, f"out{number}", *(name for name in ("views", "users") if name in sql), run=f"app-{number}/{at}")
        for at, sql in enumerate(queries)
        for number in range(2, 5)
    ]
    asked = []
    found = tables._boundaries
    monkeypatch.setattr(tables, "_boundaries", lambda plan: asked.append(plan) or found(plan))
    made = RecordTables.of(writes)
    assert len(asked) == len(queries)
    assert len(made.plans) == len(writes)  # they are stored with their paths
    for write in writes:
        run = made.runs[write.run_id]
        assert (run.boundaries, run.breaks) == found(write.plan)
    assert len({run.boundaries for run in made.runs.values()}) == len(queries)
    shapes = [taken_apart(write.plan).shape for write in writes]
    assert len(set(shapes)) == len(queries)
    digests = [taken_apart(write.plan).digest for write in writes]
    assert len(set(digests)) == len(writes)


def test_what_a_run_recorded_outlives_later_runs_of_its_job(shop):
    before = {run.run: run for run in recorded(shop.store, shop.store.head("main"))}
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-2/0"))
    shop.commit()
    after = {run.run: run for run in recorded(shop.store, shop.store.head("main"))}
    assert after["app-1/0"] == before["app-1/0"]
    answer = govtool.open().trace_back("report", "land = 'de'")
    assert [group.count for group in answer.trace.inputs] == [2, 1]


def test_a_commit_reads_and_writes_nothing_of_earlier_runs(shop, monkeypatch):
    for number in range(2, 5):
        shop.commit(shop.run(BY_LAND, "report", "views", "users", run=f"app-{number}/0", part=f"p{number}"))
    assert main(["store", "compact"]) == 0  # what is packed is carried along, too
    write = shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-9/0")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "read", None)
        patch.setattr(Store, "read_many", None)
        change = RecordTables.of([write]).beside(shop.store, shop.store.head("main"), shop.source, shop.committed)
    assert len(change.added) == 3  # a plan, a run, private values
    assert len(change.kept) == 1 + 4 + 4
    shop.commit(write)
    runs = recorded(shop.store, shop.store.head("main"))
    assert [run.run for run in runs] == ["app-1/0", "app-2/0", "app-3/0", "app-4/0", "app-9/0"]
    assert read_plan(shop.store, shop.store.head("main"), runs[1])
    assert main(["store", "fsck"]) == 0


def test_an_application_that_goes_on_is_one_fragment(shop):
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-1/1"))
    assert len(refs(shop.store, RECORD_RUNS)) == len(refs(shop.store, PRIVATE_VALUES)) == 1
    assert len(refs(shop.store, PLANS)) == 1
    assert [run.run for run in recorded(shop.store, shop.store.head("main"))] == ["app-1/0", "app-1/1"]


def test_plans_share_fragments_which_few_other_plans_leave_as_they_are():
    plans = {digest: StoredPlan(digest, "{}") for digest in (f"{number:02x}" for number in range(100))}
    before = RecordTables(plans).fragments("run:job")
    assert 3 <= len(before) <= 16  # not a hundred
    assert [plan.digest for part in before for plan in _plans_of(part)] == sorted(plans)
    after = RecordTables({**plans, "ff": StoredPlan("ff", "{}")}).fragments("run:job")
    assert {part.data for part in before} < {part.data for part in after}


def _plans_of(part):
    rows = pq.read_table(BytesIO(part.data)).to_pylist()  # without the check that each has the digest it says
    return [StoredPlan(row["digest"], row["body"]) for row in rows]


def test_the_same_write_again_takes_its_own_place(shop):
    shop.commit(shop.run(BY_LAND, "report", "views", "users"))
    assert len(recorded(shop.store, shop.store.head("main"))) == 1


def test_upkeep_leaves_records_as_they_are(shop, tmp_path, capsys):
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-2/0"))
    before = content(shop.store)
    for words in (["store", "compact"], ["store", "gc"], ["store", "fsck"]):
        assert main(words) == 0, capsys.readouterr()
    assert content(Store.open(shop.store.uri)) == before
    assert main(["store", "copy", str(tmp_path / "copy")]) == 0
    assert content(Store.open(str(tmp_path / "copy"))) == before
    answer = govtool.open(str(tmp_path / "copy")).trace_back("report", "land = 'de'")
    assert [group.count for group in answer.trace.inputs] == [2, 1]


def test_a_branch_brings_its_records_along(shop, capsys):
    assert main(["branch", "create", "dev"]) == 0
    write = shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-9/0")
    tables = RecordTables.of([write])
    shop.store.commit(
        Changes(retract=("run:other.py",), add=tables.fragments("run:other.py")),
        message="run",
        author="test",
        batch="other",
        summary={},
        branch="dev",
    )
    assert main(["branch", "merge", "dev"]) == 0, capsys.readouterr()
    assert [run.run for run in recorded(shop.store, shop.store.head("main"))] == ["app-1/0", "app-9/0"]
    assert govtool.open().trace_back("lands", "land = 'fr'").trace.inputs[0].count == 2


def test_writes_survive_encoding_and_other_data_is_refused():
    run = RecordRun(
        "a/1", "d" * 64, "file:///out", ((0, "file:///in"), (3, "default.t")), "{}", "", ("aggregate",), ("why",)
    )
    assert decode_record_runs(encode_record_runs([run])) == [run]
    assert encode_record_runs([run]) == encode_record_runs([run])
    for data in (b"", b"PAR1", encode_plans([StoredPlan("d", "{}")])):
        with pytest.raises(IntegrityError):
            decode_record_runs(data)


@pytest.mark.parametrize(
    ("column", "value"), [("run", None), ("run", 5), ("output", None), ("plan", None), ("plan", ""), ("body", None)]
)
def test_a_write_with_a_value_that_is_no_text_is_refused(column, value):
    run = RecordRun("a/1", "d" * 64, "file:///out", (), "{}")
    rows = read_parquet(encode_record_runs([run])).to_pylist()
    with pytest.raises(IntegrityError):
        decode_record_runs(write_parquet(pa.Table.from_pylist([{**rows[0], column: value}])))


def test_rows_are_not_removed_from_a_fragment_of_other_columns():
    with pytest.raises(IntegrityError):
        rows_without(write_parquet(pa.table({"x": [1]})), "run", ["a/1"])


def test_runs_are_ordered_by_numbers_of_any_length():
    runs = ["a/" + "9" * 5000, "a/10", "a/09", "a/x", "a/1"]
    assert sorted(runs, key=run_order) == ["a/1", "a/09", "a/10", "a/" + "9" * 5000, "a/x"]


def test_a_part_that_is_missing_is_refused(shop):
    parts = taken_apart(shop.plan(SECRET, "views"))
    with pytest.raises(FormatError):
        put_together(parts.body, parts.listings, "[]", {})
    with pytest.raises(FormatError):
        put_together("{}", parts.listings, parts.values, {})


@pytest.mark.parametrize(
    ("read", "name"),
    [
        ("file:///data/in", "file:///data/in"),
        ("file:/data/in", "file:///data/in"),
        ("file:/data/a,file:/data/b", "file:///data/a,file:///data/b"),
        ("file:/data/a,b", "file:///data/a,b"),
        ("spark_catalog.default.orders", "default.orders"),
        ("s3a://lake/orders", "s3://lake/orders"),
    ],
)
def test_leaves_are_called_as_the_graph_calls_their_datasets(read, name):
    assert dataset_id(read) == name


def test_all_tables_of_records_are_known():
    assert set(RECORD_TABLES) == {PLANS, RECORD_RUNS, PRIVATE_VALUES, PRIVATE_POSITIONS}
