"""Rows of Delta and Iceberg tables at their versions: what a leaf reads, and traces over it, against plain Python."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from lakes import DeltaTable, IcebergTable, data_file, delta_vector, leaf, remove, vector, z85
from recorded import SESSION

from govtool.app.datasets.places import path_id
from govtool.app.trace.affected_rows import RowRequest, affected_rows
from govtool.app.trace.measured_groups import RecordedGroups
from govtool.capture.tables.vectors import VectorError, vector_rows
from govtool.cli.main import main
from govtool.model.run import Run, RunInput, RunOutput
from govtool.records.capture import RecordedWrite
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.nodes import Plan, Write, outputs
from govtool.records.plan.term_pieces import Unread
from govtool.records.sql.dialect import NotExact

OLD = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}]
NEW = [{"id": 4, "name": "d"}]


def rows(leaf, sql="SELECT * FROM x"):
    return sorted(DuckExecutor(SESSION).fetch(from_sql(sql, {"x": leaf})), key=repr)


def tuples(*parts):
    return sorted((tuple(row.values()) for part in parts for row in part), key=repr)


@pytest.fixture
def delta(tmp_path):
    pytest.importorskip("duckdb")
    table = DeltaTable(tmp_path / "my table", {"id": "long", "name": "string"})
    table.commit(table.file("a.parquet", OLD))
    return table


@pytest.fixture
def iceberg(tmp_path):
    pytest.importorskip("duckdb")
    table = IcebergTable(tmp_path / "my table", {"id": (1, "long"), "name": (2, "string")})
    table.commit(table.file("a.parquet", OLD))
    return table


# ---- which rows a version has -----------------------------------------------------------------------------------


def test_a_version_of_delta_is_what_its_log_says(delta):
    delta.commit(delta.file("b.parquet", NEW))
    delta.commit(delta.file("c.parquet", OLD[:1]), remove("a.parquet"))
    assert rows(delta.relation(0)) == tuples(OLD)
    assert rows(delta.relation(1)) == tuples(OLD, NEW)
    assert rows(delta.relation(2)) == tuples(OLD[:1], NEW)
    assert delta.relation(2).version == "2"
    assert [file.ordinal for file in delta.relation(2).files] == [0, 1]


def test_a_snapshot_of_iceberg_is_what_its_manifests_say(iceberg):
    first = iceberg.number
    iceberg.commit(iceberg.file("b.parquet", NEW))
    iceberg.commit(iceberg.file("c.parquet", OLD[:1]), gone=("a.parquet",))
    assert rows(iceberg.relation(first)) == tuples(OLD)
    assert rows(iceberg.relation(first + 1)) == tuples(OLD, NEW)
    assert rows(iceberg.relation()) == tuples(OLD[:1], NEW)
    assert iceberg.relation().version == str(first + 2)


def test_partitions_are_those_of_the_log(tmp_path):
    pytest.importorskip("duckdb")
    table = DeltaTable(tmp_path / "t", {"id": "long", "day": "date", "k": "string", "n": "integer"}, ("day", "k", "n"))
    odd = "a b/é=%20'x"
    table.commit(
        table.file("day=wrong/k=no%25/1.parquet", [{"id": 1}], {"day": "2024-02-29", "k": odd, "n": "-7"}),
        table.file("2.parquet", [{"id": 2}], {"day": None, "k": None, "n": None}),
    )
    found = rows(table.relation(), "SELECT id, CAST(day AS STRING) AS d, k, n FROM x")
    assert found == [(1, "2024-02-29", odd, -7), (2, None, None, None)]


def test_a_column_that_was_added_is_null_in_older_files(delta, iceberg):
    delta.columns["more"] = "long"
    delta.commit(delta.file("b.parquet", [{"id": 4, "name": "d", "more": 5}]), metadata=True)
    assert rows(delta.relation()) == sorted([*((*row, None) for row in tuples(OLD)), (4, "d", 5)], key=repr)


def test_a_column_that_was_added_to_iceberg_is_null_in_older_files(iceberg):
    iceberg.columns["more"] = (3, "long")
    iceberg.commit(iceberg.file("b.parquet", [{"id": 4, "name": "d", "more": 5}]))
    assert rows(iceberg.relation()) == sorted([*((*row, None) for row in tuples(OLD)), (4, "d", 5)], key=repr)


# ---- deleted rows -----------------------------------------------------------------------------------------------

MANY = 150_000


@pytest.mark.parametrize("kind", ["array", "run"])
@pytest.mark.parametrize("step", [1, 3, 20_000])
def test_rows_of_deletion_vectors(tmp_path, kind, step):
    """Of several containers: arrays, bitmaps and runs, and of another upper half."""
    wanted = [*range(5, MANY, step), *range(9 << 32, (9 << 32) + 3)]
    assert vector_rows(vector(wanted, kind)).tolist() == wanted


@pytest.mark.parametrize("at", range(0, 55, 3))
def test_damaged_vectors_are_refused(at):
    data = bytearray(vector([1, 2, 70_000, 200_000]))
    with suppress(VectorError):
        assert len(vector_rows(bytes(data[:at]))) < 0
    data[at % len(data)] ^= 0xFF
    with suppress(VectorError):
        assert vector_rows(bytes(data)).dtype.kind == "i"


def test_rows_that_a_deletion_vector_deletes_are_left_out(delta):
    both = OLD + NEW
    delta.commit(
        remove("a.parquet"),
        delta.file("a.parquet", OLD, deletionVector=delta_vector(delta.place, [1], prefix="ab")),
        delta.file("b.parquet", both, deletionVector={"storageType": "i", "pathOrInlineDv": z85(vector([0, 3]))}),
        delta.file("c.parquet", NEW),
    )
    found = delta.relation()
    assert found.format == "delta"
    assert rows(found) == tuples([OLD[0], OLD[2]], both[1:3], NEW)
    assert rows(found, "SELECT count(*) AS n FROM x") == [(5,)]
    assert rows(found, "SELECT id FROM x WHERE name = 'b'") == [(2,)]
    assert rows(delta.relation(0)) == tuples(OLD)


def test_rows_that_position_deletes_and_vectors_delete_are_left_out(iceberg):
    first = iceberg.number
    iceberg.commit(
        iceberg.positions("d.parquet", ("a.parquet", 0), ("other.parquet", 1)), iceberg.file("b.parquet", OLD)
    )
    assert rows(iceberg.relation()) == tuples(OLD[1:], OLD)
    iceberg.commit(iceberg.puffin("v.puffin", "b.parquet", [0, 1]))
    assert iceberg.relation().format == "iceberg"
    assert rows(iceberg.relation()) == tuples(OLD[1:], OLD[2:])
    assert rows(iceberg.relation(first)) == tuples(OLD)


# ---- breaks -----------------------------------------------------------------------------------------------------


def test_a_deletion_vector_elsewhere_is_a_break(delta):
    vector = {"storageType": "p", "pathOrInlineDv": "file:/etc/passwd", "offset": 1, "sizeInBytes": 3}
    for place, kind in (("file:/etc/passwd", "p"), ("../" + "0" * 20, "u"), ("short", "u"), ("0", "i")):
        more = {**vector, "storageType": kind, "pathOrInlineDv": place}
        delta.commit(remove("b.parquet"), delta.file("b.parquet", NEW, deletionVector=more))
        with pytest.raises(Unread, match="deletion vectors that are not below its place"):
            delta.relation()
    assert rows(delta.relation(0)) == tuples(OLD)
    delta.commit(remove("b.parquet"))  # it is in no later version
    assert rows(delta.relation()) == tuples(OLD)


def test_a_damaged_deletion_vector_is_no_rows(delta):
    vector = delta_vector(delta.place, [0])
    delta.commit(delta.file("b.parquet", NEW, deletionVector={**vector, "offset": 3}))
    with pytest.raises(NotExact, match=r"the deleted rows of .* cannot be read"):
        rows(delta.relation())
    delta.commit(remove("b.parquet"), delta.file("b.parquet", NEW, deletionVector=vector))
    (file,) = delta.place.glob("deletion_vector_*")
    file.unlink()
    with pytest.raises(NotExact, match="cannot be read"):
        rows(delta.relation())


@pytest.mark.parametrize(
    "path", ["../other/x.parquet", "/etc/x.parquet", "s3://b/x.parquet", "file:/x.parquet", "a/%2e%2e/%2e%2e/x"]
)
def test_files_outside_of_a_table_of_delta_are_not_read(delta, path):
    delta.commit({"add": {"path": path, "size": 1, "partitionValues": {}}})
    with pytest.raises(Unread, match="files of another table"):
        delta.relation()


@pytest.mark.parametrize(
    ("configuration", "features", "reason"),
    [
        ({"delta.columnMapping.mode": "id"}, ["columnMapping"], "column mapping: its files have other names"),
        ({"delta.columnMapping.mode": "name"}, ["columnMapping"], "column mapping whose schema is not read"),
        ({}, ["somethingNew"], "a feature that is not known: somethingNew"),
    ],
)
def test_tables_of_delta_whose_files_mean_something_else(tmp_path, configuration, features, reason):
    table = DeltaTable(tmp_path / "t", {"id": "long"}, configuration=configuration, features=features)
    table.commit(table.file("a.parquet", [{"id": 1}]))
    with pytest.raises(Unread, match=reason):
        table.relation()


@pytest.mark.parametrize(("kind", "is_read"), [("string", True), ("variant", False)])
def test_a_feature_of_variants_matters_where_a_column_is_one(tmp_path, kind, is_read):
    table = DeltaTable(tmp_path / "t", {"id": "long", "v": kind}, features=["deletionVectors", "variantType"])
    if is_read:
        table.commit(table.file("a.parquet", [{"id": 1, "v": "x"}]))
        assert len(table.relation().files) == 1
    else:
        table.commit()
        with pytest.raises(Unread, match="not known: variantType"):
            table.relation()


def test_a_log_that_does_not_tell(delta):
    with pytest.raises(Unread, match="does not tell version 7"):
        delta.relation(7)
    own, delta.id = delta.id, "another"
    with pytest.raises(Unread, match="another table is at its place"):
        delta.relation()
    delta.id = own
    delta.commit({"add": {"path": "x", "size": "big", "partitionValues": {"p": ["deep"]}}})
    assert len(delta.relation().files) == 2
    (delta.place / "_delta_log" / f"{2:020}.json").write_text("[" * 100_000)
    with pytest.raises(Unread, match="does not tell version 2"):
        delta.relation(2)


def test_a_partition_whose_value_is_not_read(tmp_path):
    table = DeltaTable(tmp_path / "t", {"id": "long", "n": "integer"}, ("n",))
    table.commit(table.file("a.parquet", [{"id": 1}], {"n": "many"}))
    with pytest.raises(Unread, match="a partition"):
        table.relation()


def test_deletes_by_values_are_a_break(iceberg):
    first = iceberg.number
    iceberg.commit(iceberg.file("d.parquet", NEW, content=2))
    with pytest.raises(Unread, match="delete files that name values"):
        iceberg.relation()
    assert rows(iceberg.relation(first)) == tuples(OLD)


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_renamed_column_of_iceberg_is_found_by_the_id_of_its_field(iceberg, forgotten):
    """Also where a third column has its former name by now, and where rows are deleted."""
    first = iceberg.number
    del iceberg.columns["name"]
    iceberg.columns["title"] = (2, "string")
    if forgotten:
        iceberg.schemas.clear()
    iceberg.commit(
        iceberg.file("b.parquet", [{"id": 4, "title": "d"}]), iceberg.positions("p.parquet", ("a.parquet", 0))
    )
    found = iceberg.relation()
    assert rows(found) == tuples(OLD[1:], NEW)
    assert rows(found, "SELECT title, count(*) FROM x GROUP BY title") == [("b", 1), ("d", 1), (None, 1)]
    assert found.format == "iceberg"
    iceberg.columns = {"id": (1, "long"), "name": (2, "string")}
    if not forgotten:
        assert rows(iceberg.relation(first)) == tuples(OLD)


def test_a_field_whose_former_name_another_one_has_in_a_file(iceberg):
    """The file says so; its schema is no longer known."""
    iceberg.columns = {"id": (1, "long"), "name": (3, "string")}
    iceberg.schemas.clear()
    iceberg.commit(iceberg.file("b.parquet", NEW))
    assert rows(iceberg.relation()) == tuples(NEW, [{**row, "name": None} for row in OLD])


def test_a_renamed_field_within_a_column_of_iceberg_is_a_break(iceberg):
    for inner in ("a", "b"):
        kind = {"type": "struct", "fields": [{"id": 4, "name": inner, "type": "long", "required": False}]}
        iceberg.schemas.append({"type": "struct", "fields": [{"id": 3, "name": "st", "type": kind}]})
    iceberg.columns["st"] = (3, kind)
    iceberg.commit()
    with pytest.raises(Unread, match=r"column st\.[ab] was renamed"):
        leaf(iceberg.found(), t.Struct((t.Field("st", t.Struct((t.Field("b", t.LONG),))),)), [])


def test_columns_of_delta_under_other_names(tmp_path):
    """Names of columns are swapped, one is a partition, and one was added."""
    pytest.importorskip("duckdb")
    table = DeltaTable(tmp_path / "t", {"id": "long", "name": "string", "day": "string"}, ("day",))
    table.commit(table.file("a.parquet", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], {"day": "x"}))
    table.columns = {"day": "long", "id": "string", "name": "string", "more": "long"}
    table.partitioned = ("name",)
    table.physical = {"day": "id", "id": "name", "name": "day", "more": "col-1"}
    table.configuration, table.features = {"delta.columnMapping.mode": "name"}, ["columnMapping"]
    table.commit(metadata=True)
    assert rows(table.relation()) == [(1, "a", "x", None), (2, "b", "x", None)]
    table.commit(table.file("b.parquet", [{"day": 3, "id": "c", "more": 7}], {"day": None}))
    assert rows(table.relation(), "SELECT * FROM x WHERE more = 7 OR day = 2") == [
        (2, "b", "x", None),
        (3, "c", None, 7),
    ]
    assert table.relation().partitioned == ("name",)


def test_renamed_fields_within_a_column_of_delta_are_a_break(tmp_path):
    inner = {"name": "a", "type": "long", "metadata": {"delta.columnMapping.physicalName": "col-2"}}
    table = DeltaTable(tmp_path / "t", {"st": {"type": "struct", "fields": [inner]}})
    table.physical = {"st": "col-1"}
    table.configuration = {"delta.columnMapping.mode": "name"}
    table.commit()
    with pytest.raises(Unread, match="fields within column st"):
        leaf(table.found(), t.Struct(()), [t.Struct(()), t.Struct(())])


def test_a_column_that_was_dropped_and_added_again_is_a_break(iceberg):
    del iceberg.columns["name"]
    iceberg.commit(iceberg.file("b.parquet", [{"id": 4}]))
    assert rows(iceberg.relation()) == [(1,), (2,), (3,), (4,)]
    iceberg.columns["name"] = (3, "string")
    iceberg.commit(iceberg.file("c.parquet", [{"id": 5, "name": "e"}]))
    with pytest.raises(Unread, match="column name was dropped and added again"):
        iceberg.relation()


def test_files_of_iceberg_without_ids_and_other_formats(iceberg):
    iceberg.commit(iceberg.file("b.parquet", NEW, ids=False))
    with pytest.raises(Unread, match=r"column id of b\.parquet has no id of a field"):
        iceberg.relation()
    iceberg.commit(iceberg.file("c.orc", NEW, file_format="orc"), gone=("b.parquet",))
    with pytest.raises(Unread, match="files of format ORC"):
        iceberg.relation()
    iceberg.commit(iceberg.file("d.parquet", NEW, file_path="/etc/passwd"), gone=("c.orc",))
    with pytest.raises(Unread, match="not below its place"):
        iceberg.relation()
    iceberg.commit(iceberg.file("e.parquet", NEW, file_path=f"{iceberg.place}/../x.parquet"), gone=("passwd",))
    with pytest.raises(Unread, match="not below its place"):
        iceberg.relation()


def test_a_column_that_is_in_partitions_alone_is_a_break(iceberg):
    iceberg.columns["day"] = (3, "string")
    iceberg.commit()
    assert rows(iceberg.relation()) == sorted(((*row, None) for row in tuples(OLD)), key=repr)
    iceberg.write(**{"partition-specs": [{"fields": [{"source-id": 3, "transform": "identity"}]}]})
    with pytest.raises(Unread, match="column day is in no file"):
        iceberg.relation()


def test_changes_between_versions_are_a_break(delta):
    with pytest.raises(Unread, match="a part of a table"):
        leaf({**delta.found(), "part": True}, *delta.schemas())


def test_a_snapshot_that_is_gone_is_a_break(iceberg):
    with pytest.raises(Unread, match="do not tell snapshot 7"):
        iceberg.relation(7)
    iceberg.snapshots.clear()
    iceberg.write()
    with pytest.raises(Unread, match="do not tell"):
        iceberg.relation()


# ---- traces -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(shop, capsys):
    """Run a command in the shop: exit code and its answer."""

    def command(*words):
        capsys.readouterr()
        code = main([*map(str, words), "--format", "json"])
        shown = capsys.readouterr()
        return code, json.loads(shown.out) if shown.out else shown.err

    return command


def recorded(shop, sql, leaves, output, table=None, run="app-2/0"):
    """Run a query over leaves, write its rows into a table or a folder, and commit its record."""
    plan = Plan(from_sql(sql, leaves), SESSION)
    made = DuckExecutor(SESSION).arrow(plan.root).to_pylist()
    left = table(made)
    names = tuple(each.name for each in outputs(plan.root))
    place = left.dataset
    written = Plan(Write(plan.root, place, "parquet", "append", names), SESSION)
    inputs = tuple(RunInput(leaf.dataset) for leaf in leaves.values())
    shop.runs.append(
        Run(id=run, job="job.py → out", status="complete", how="plan", application=run.partition("/")[0],
            inputs=inputs, outputs=(RunOutput(place),))
    )  # fmt: skip
    shop.commit(RecordedWrite(run, written, place, left))
    return made


ORDERS = [{"id": n, "who": "abc"[n % 3], "paid": n * 10} for n in range(9)]
PEOPLE = [{"who": "a", "land": "fr"}, {"who": "b", "land": "de"}, {"who": "c", "land": "fr"}]
SQL = "SELECT land, sum(paid) AS total FROM orders JOIN people ON orders.who = people.who GROUP BY land"


@pytest.fixture
def lake(shop):
    """Orders in Delta, people in Iceberg, and a report over both in a table of Delta."""
    orders = DeltaTable(shop.folder / "orders", {"id": "long", "who": "string", "paid": "long"})
    orders.commit(orders.file("1.parquet", ORDERS[:5]), orders.file("2.parquet", ORDERS[5:]))
    people = IcebergTable(shop.folder / "people", {"who": (1, "string"), "land": (2, "string")})
    people.commit(people.file("p.parquet", PEOPLE))
    report = DeltaTable(shop.folder / "totals", {"land": "string", "total": "long"})

    def write(made):
        report.commit(report.file("r.parquet", made))
        return replace(report.relation(), dataset=report.place.as_uri())

    leaves = {"orders": orders.relation(), "people": people.relation()}
    assert recorded(shop, SQL, leaves, "totals", write)
    return orders, people, report


def ids(answer, name):
    (found,) = (each for each in answer["inputs"] if each["dataset"].endswith(name))
    return found, sorted(row.get("id", row.get("who")) for row in found["rows"])


def check_back(code, answer, version="0"):
    assert code == 0, answer
    orders, found = ids(answer, "orders")
    assert found == [row["id"] for row in ORDERS if row["who"] in "ac"]
    assert orders["exactness"] == "exact"
    assert orders["version"] == version
    assert ids(answer, "people")[1] == ["a", "c"]


def test_back_to_tables_of_both_kinds(lake, run):
    check_back(*run("trace", "back", "totals", "--where", "land = 'fr'", "--verify"))


def test_later_versions_do_not_change_a_trace(lake, run):
    orders, people, _ = lake
    orders.commit(orders.file("3.parquet", [{"id": 99, "who": "a", "paid": 1}]))
    orders.commit(remove("1.parquet"), orders.file("4.parquet", ORDERS[:1]))
    people.columns["more"] = (3, "string")
    people.commit(people.file("q.parquet", [{"who": "a", "land": "xx", "more": "m"}]), gone=("p.parquet",))
    check_back(*run("trace", "back", "totals", "--where", "land = 'fr'", "--verify"))


def test_a_later_version_of_the_output_is_not_that_of_the_run(lake, run):
    _, _, report = lake
    report.commit(remove("r.parquet"), report.file("s.parquet", [{"land": "zz", "total": 1}]))
    code, message = run("trace", "back", "totals", "--where", "land = 'fr'")
    assert code == 2
    assert "was not left by a write that is recorded" in message
    check_back(*run("trace", "back", "totals", "--where", "land = 'fr'", "--run", "app-2/0"))


def test_files_that_a_vacuum_removed(lake, run):
    orders, _, _ = lake
    (orders.place / "1.parquet").unlink()
    code, answer = run("trace", "back", "totals", "--where", "land = 'fr'")
    assert code == 3
    assert [(each["reason"], each["file"].rpartition("/")[2]) for each in answer["refused"]] == [
        ("is gone", "1.parquet")
    ]
    assert ids(answer, "orders")[1] == [row["id"] for row in ORDERS[5:] if row["who"] in "ac"]


def test_forward_and_replay(lake, run):
    code, answer = run("trace", "forward", "orders", "--where", "id = 4")
    assert code == 0, answer
    assert [row["land"] for row in answer["outputs"][0]["rows"]] == ["de"]
    code, answer = run("replay", "app-2/0", "--without", "orders", "--where", "who = 'b'")
    assert code == 0, answer
    assert [row["land"] for row in answer["gone"]["rows"]] == ["de"]


def test_forward_from_a_version_that_is_not_the_present_one(lake, run):
    orders, _, _ = lake
    orders.commit(remove("1.parquet"))
    code, message = run("trace", "forward", "orders", "--where", "id = 4")
    assert code == 2
    assert "was not read by a write that is recorded" in message
    assert run("trace", "forward", "orders", "--where", "id = 4", "--run", "app-2/0")[0] == 0


def test_a_trace_goes_on_through_a_table(lake, run, shop):
    """A second run reads the table that the first one wrote; its output is a snapshot of Iceberg."""
    _, _, report = lake
    best = IcebergTable(shop.folder / "best", {"land": (1, "string")})

    def write(made):
        best.commit(best.file("b.parquet", made))
        return replace(best.relation(), dataset=best.place.as_uri())

    leaves = {"totals": replace(report.relation(), dataset=report.place.as_uri())}
    recorded(shop, "SELECT land FROM totals WHERE total > 130", leaves, "best", write, "app-3/0")
    code, answer = run("trace", "back", "best", "--where", "land = 'fr'", "--all-runs")
    assert code == 0, answer
    assert [hop["run"] for hop in answer["hops"]] == ["app-2/0"]
    code, answer = run("trace", "forward", "orders", "--where", "id = 0", "--all-runs")
    assert code == 0, answer
    assert len(answer["hops"]) == 1


def test_sidecars_over_a_table(lake, run):
    assert main(["index", "app-2/0", "--records"]) == 0
    check_back(*run("trace", "back", "totals", "--where", "land = 'fr'"))


def test_deleted_rows_are_in_no_trace(shop, run):
    """Of either kind of table; also by sidecars, by place, forward, and with a row chosen that is not there."""
    orders = DeltaTable(shop.folder / "orders", {"id": "long", "who": "string", "paid": "long"})
    gone = delta_vector(shop.folder / "orders", [0, 3]) if (shop.folder / "orders").mkdir() is None else {}
    orders.commit(orders.file("1.parquet", ORDERS, deletionVector=gone))
    people = IcebergTable(shop.folder / "people", {"who": (1, "string"), "land": (2, "string")})
    people.commit(
        people.file("p.parquet", PEOPLE + PEOPLE),
        people.positions("x.parquet", ("p.parquet", 0), ("p.parquet", 4), ("p.parquet", 5)),
    )
    report = DeltaTable(shop.folder / "totals", {"land": "string", "total": "long"})

    def write(made):
        report.commit(report.file("r.parquet", made))
        return replace(report.relation(), dataset=report.place.as_uri())

    made = recorded(shop, SQL, {"orders": orders.relation(), "people": people.relation()}, "totals", write)
    there = [row for row in ORDERS if row["id"] not in (0, 3)]
    assert sum(row["total"] for row in made) == sum(row["paid"] for row in there)
    for _ in range(2):
        code, answer = run("trace", "back", "totals", "--where", "land = 'fr'", "--verify")
        assert code == 0, answer
        assert ids(answer, "orders")[1] == [row["id"] for row in there if row["who"] in "ac"]
        assert [each["exactness"] for each in answer["inputs"]] == ["exact", "exact"]
        assert sorted(row["_id"].rpartition(":")[2] for row in ids(answer, "people")[0]["rows"]) == ["0/2", "0/3"]
        assert main(["index", "app-2/0", "--records"]) == 0
    code, answer = run("trace", "forward", "orders", "--where", "id = 3")
    assert code == 2
    assert "no row" in answer
    code, answer = run("trace", "forward", "orders", "--where", "id = 6")
    assert [row["land"] for row in answer["outputs"][0]["rows"]] == ["fr"]
    code, answer = run("replay", "app-2/0", "--without", "orders", "--where", "who = 'b'")
    assert [row["land"] for row in answer["gone"]["rows"]] == ["de"]
    orders.commit(remove("1.parquet"))
    code, answer = run("trace", "back", "totals", "--where", "land = 'fr'", "--verify")
    assert code == 0


def test_a_file_in_the_place_of_another_is_noticed(lake, run):
    orders, _, _ = lake
    place = orders.place / "2.parquet"
    os.utime(place, ns=(1, 1))
    assert data_file(place, ORDERS[:1], {"id": __import__("pyarrow").int64()})
    code, answer = run("trace", "back", "totals", "--where", "land = 'fr'")
    assert code == 3
    assert [each["file"].rpartition("/")[2] for each in answer["refused"]] == ["2.parquet"]


def test_a_table_that_was_overwritten_by_its_own_rows(lake, run, shop):
    """Its first version is traced through the run that made it, though that is not the present one."""
    _, _, report = lake

    def write(made):
        report.commit(remove("r.parquet"), report.file("s.parquet", made))
        return replace(report.relation(), dataset=report.place.as_uri())

    leaves = {"totals": replace(report.relation(), dataset=report.place.as_uri())}
    recorded(shop, "SELECT land, total FROM totals WHERE total > 130", leaves, "totals", write, "app-3/0")
    code, answer = run("trace", "back", "totals", "--where", "land = 'fr'", "--all-runs")
    assert code == 0, answer
    assert answer["run"] == "app-3/0"
    (hop,) = answer["hops"]
    assert hop["run"] == "app-2/0"
    assert ids(hop, "people")[1] == ["a", "c"]


def test_an_erasure_over_tables(lake, run, shop):
    words = ("erase", "plan", "--subject", "orders.who=b", "--no-subject", "people", "--all-runs")
    code, plan = run(*words)
    assert code == 0, plan
    (shop.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert main(["erase", "apply", "plan.json", "--to", "copy"]) == 0
    kept = [
        row for file in (shop.folder / "copy" / "orders").glob("*.parquet") for row in pq.read_table(file).to_pylist()
    ]
    assert sorted(row["id"] for row in kept) == [row["id"] for row in ORDERS if row["who"] != "b"]


def test_an_erasure_never_brings_deleted_rows_back(shop, run):
    orders = DeltaTable(shop.folder / "orders", {"id": "long", "who": "string"})
    orders.place.mkdir()
    rows_ = [{"id": row["id"], "who": row["who"]} for row in ORDERS]
    orders.commit(orders.file("1.parquet", rows_, deletionVector=delta_vector(orders.place, [0])))
    report = DeltaTable(shop.folder / "totals", {"who": "string"})

    def write(made):
        report.commit(report.file("r.parquet", made))
        return replace(report.relation(), dataset=report.place.as_uri())

    recorded(shop, "SELECT DISTINCT who FROM orders", {"orders": orders.relation()}, "totals", write)
    code, plan = run("erase", "plan", "--subject", "orders.who=b", "--all-runs")
    assert code == 0, plan
    (shop.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert main(["erase", "apply", "plan.json", "--to", "copy"]) == 4
    assert not (shop.folder / "copy").exists()


# ---- rows and columns together ----------------------------------------------------------------------------------


@pytest.fixture
def affected(lake, shop):
    """The affected rows of the report: count, all, and how exact; or the message of a mistake."""

    def asked(where):
        place = lake[2].place.as_uri()
        request = RowRequest(path_id(str(lake[0].place)), where, (place,))
        found = affected_rows(shop.store, shop.store.head("main"), request).of(place)
        return found.count, found.total, found.exactness, found.why

    return asked


def test_rows_that_a_version_removed_are_not_affected(lake, shop, affected):
    assert affected("who = 'a'") == (1, 2, "exact", "")
    report = lake[2]
    report.commit(report.file("t.parquet", [{"land": "zz", "total": 1}]))
    assert affected("who = 'a'")[:3] == (1, 2, "incomplete")
    report.commit(remove("t.parquet"))
    assert affected("who = 'a'") == (1, 2, "exact", "")  # its file is still in the folder
    report.commit(remove("r.parquet"), report.file("s.parquet", [{"land": "zz", "total": 1}]))
    count, total, exactness, why = affected("who = 'a'")
    assert (count, total, exactness) == (None, None, "unknown")
    assert "gone, or were written again" in why


def test_groups_that_a_version_removed_are_not_measured(lake, shop):
    place, source = lake[2].place.as_uri(), path_id(str(lake[0].place))
    meter = RecordedGroups(shop.store, shop.store.head("main"))
    assert meter.measure(place, source, ()).at_most == 3
    lake[2].commit(remove("r.parquet"), lake[2].file("s.parquet", [{"land": "zz", "total": 1}]))
    found = RecordedGroups(shop.store, shop.store.head("main")).measure(place, source, ())
    assert found.at_most is None
    assert "are gone" in found.why
