"""``govtool impact COLUMN --where EXPR``: how many rows of each dataset some rows reached, by recorded runs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from affected import run as checked_against_brute_force
from lineage_of import commit_lineage, derivation
from recorded import Warehouse

import govtool
from govtool.app.datasets.stranger_files import stranger_files
from govtool.app.trace.affected_outputs import rows_forward
from govtool.cli.main import main
from govtool.errors import EngineError, EvidenceError, GovtoolError, UsageError
from govtool.records.plan.nodes import Relation
from govtool.records.plan.tree import rewrite_nodes
from govtool.records.split_plans import in_part
from govtool.store import Store

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "impact-1.json").read_text(encoding="utf-8"))
USERS = [(1, "ann@x", "de"), (2, "bob@x", "fr"), (3, "eve@y", "de"), (4, "zoe@z", "uk")]
ORDERS = [(1, 1, 10), (2, 1, 20), (3, 2, 5), (4, 3, 7), (5, 4, 9)]
BY_LAND = "SELECT land, count(email) AS people, sum(spent) AS total FROM stg JOIN orders ON id = uid GROUP BY land"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """users → stg → by_land (with orders) → big; stg → mail; and a view that nobody recorded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    made = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    made.table("users", {"id": pa.int64(), "email": pa.string(), "land": pa.string()}, USERS[:2], USERS[2:])
    made.table("orders", {"oid": pa.int64(), "uid": pa.int64(), "spent": pa.int64()}, ORDERS)
    made.commit(made.run("SELECT id, lower(email) AS email, land FROM users", "stg", "users", run="a/0"))
    made.commit(made.run(BY_LAND, "by_land", "stg", "orders", run="b/0"))
    made.commit(made.run("SELECT land, people FROM by_land WHERE total > 6", "big", "by_land", run="c/0"))
    made.commit(made.run("SELECT email FROM stg WHERE land <> 'uk'", "mail", "stg", run="d/0"))
    commit_lineage(
        made.store,
        derivation(tmp_path, "users", "id email land"),
        derivation(tmp_path, "stg", "id email land", "users.id -> id identity", "users.email -> email transformation lower",
                   "users.land -> land identity"),
        derivation(tmp_path, "by_land", "land people total", "stg.land -> land identity",
                   "stg.email -> people aggregation count", "orders.spent -> total aggregation sum"),
        derivation(tmp_path, "big", "land people", "by_land.people -> people identity"),
        derivation(tmp_path, "mail", "email", "stg.email -> email identity"),
        derivation(tmp_path, "sheet", "email", "mail.email -> email identity"),
    )  # fmt: skip
    return made


@pytest.fixture
def run(house, capsys):
    def command(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def counts(run, column, where, *words):
    code, out, err = run("impact", column, "--where", where, "--format", "json", *words)
    assert code in (0, 3), err
    answer = json.loads(out)
    jsonschema.validate(answer, SCHEMA)
    found = {each["dataset"].rpartition("/")[2]: each for each in answer["affected_rows"]}
    return code, answer, {name: (each["count"], each["total"], each["exactness"]) for name, each in found.items()}


def test_rows_of_every_dataset_that_the_column_and_recorded_runs_reach(run):
    code, answer, found = counts(run, "users.email", "land = 'de'")
    assert code == 0
    assert answer["selection"]["rows"] == 2
    assert found == {
        "stg": (2, 4, "exact"),
        "by_land": (1, 3, "exact"),
        "big": (1, 2, "exact"),
        "mail": (2, 3, "exact"),
        "sheet": (None, None, "not recorded"),
    }


def test_rows_are_followed_only_where_the_column_goes(run):
    _, _, found = counts(run, "orders.spent", "oid = 4")
    assert found == {"by_land": (1, 3, "exact")}  # big takes no total


def test_a_row_that_nothing_is_made_of(run):
    code, _, found = counts(run, "users.email", "land = 'uk'")
    assert (code, found["mail"], found["stg"]) == (0, (0, 3, "exact"), (1, 4, "exact"))


def test_a_table_has_one_more_column_and_the_selection(run):
    code, out, _ = run("impact", "users.email", "--where", "land = 'de'")
    assert code == 0
    assert "2 of 4" in out
    assert "no run" in out
    assert f"rows: 2 rows of file://{Path.cwd()}/users where land = 'de'" in out
    _, out, _ = run("impact", "users.email", "--where", "land = 'de'", "--format", "csv")
    rows = {row["dataset"].rpartition("/")[2]: row for row in csv.DictReader(io.StringIO(out))}
    assert [(rows[n]["rows"], rows[n]["of_rows"], rows[n]["rows_are"]) for n in ("stg", "sheet")] == [
        ("2", "4", "exact"),
        ("", "", "not recorded"),
    ]


def test_counts_are_of_all_datasets_where_entries_are_cut(run):
    _, answer, found = counts(run, "users.email", "id = 1", "--limit", "1")
    assert len(answer["columns"]) == 1
    assert len(found) == 5


def test_a_partition_that_another_writer_added_is_noticed(run, tmp_path):
    _, _, found = counts(run, "users.email", "land = 'de'")
    assert found["stg"] == (2, 4, "exact")
    later = tmp_path / "stg" / "day=2026-11-20"
    later.mkdir()
    (tmp_path / "stg" / "_SUCCESS").touch()
    (tmp_path / "stg" / "notes").mkdir()
    (tmp_path / "stg" / "notes" / "read.me").touch()
    _, _, found = counts(run, "users.email", "land = 'de'")
    assert found["stg"] == (2, 4, "exact")
    (later / "part-0.parquet").touch()
    code, answer, found = counts(run, "users.email", "land = 'de'")
    assert (code, found["stg"]) == (3, (2, 4, "incomplete"))
    assert "1 of its files were not left by a recorded run" in json.dumps(answer)


def test_a_write_that_a_later_one_of_its_job_replaced_leaves_no_rows(house, run):
    first = house.run("SELECT id, email, land FROM users WHERE id < 3", "late", "users", run="e-1/0", part="first")
    (house.folder / "late" / "first.parquet").unlink()
    first = replace(first, output_files=in_part(replace(first.output_files, files=()), 1))
    house.commit(first, house.run("SELECT id, email, land FROM users WHERE id > 1", "late", "users", run="e-1/1"))
    commit_lineage(
        house.store,
        derivation(house.folder, "users", "id email land"),
        derivation(house.folder, "late", "id email land", "users.email -> email identity"),
    )
    code, _, found = counts(run, "users.email", "land = 'de'")
    assert (code, found["late"]) == (0, (1, 3, "exact"))


def test_the_folder_of_a_dataset_is_above_its_partitions(tmp_path):
    for day in ("20", "21"):
        place = tmp_path / "out" / f"day={day}" / "land=de"
        place.mkdir(parents=True)
        (place / "part-0.parquet").touch()
    known = (tmp_path / "out" / "day=20" / "land=de" / "part-0.parquet").as_uri()
    assert stranger_files({known}) == 1
    assert stranger_files({known.replace("%3D", "=")}) == 1  # as Spark writes it


def test_duplicates_that_nothing_distinguishes_are_a_superset(run, house, tmp_path):
    house.commit(house.run("SELECT land FROM stg", "lands", "stg", run="e/0"))
    commit_lineage(
        house.store,
        derivation(tmp_path, "stg", "land", "users.land -> land identity"),
        derivation(tmp_path, "lands", "land", "stg.land -> land identity"),
    )
    _, answer, found = counts(run, "users.land", "id = 1")
    assert found["lands"] == (2, 4, "superset")
    (entry,) = [each for each in answer["affected_rows"] if each["dataset"].endswith("/lands")]
    assert "duplicates" in entry["why"]
    _, out, _ = run("impact", "users.land", "--where", "id = 1")
    assert "≤ 2 of 4" in out


def test_what_the_selected_rows_keep_out_is_stated(run, house, tmp_path):
    sql = "SELECT count(*) AS n FROM users WHERE id NOT IN (SELECT uid FROM orders WHERE uid IS NOT NULL)"
    house.commit(house.run(sql, "idle", "users", "orders", run="e/0"))
    commit_lineage(house.store, derivation(tmp_path, "idle", "n", "orders.uid -> n aggregation count"))
    _, answer, found = counts(run, "orders.uid", "oid = 3")
    assert found == {"idle": (0, 1, "exact")}
    assert answer["affected_rows"][0]["keeps_out"]
    assert (
        "not counted: what rows change that the selected ones keep out"
        in run("impact", "orders.uid", "--where", "oid = 3")[1]
    )


# ---- what has changed since ----------------------------------------------------------------------------


def test_an_output_that_something_else_wrote_again_is_unknown_and_so_is_what_it_feeds(run, house):
    pq.write_table(pa.table({"id": [9], "email": ["x"], "land": ["de"]}), house.folder / "stg" / "out.parquet")
    code, answer, found = counts(run, "users.email", "id = 1")
    assert code == 3
    assert {found[name] for name in ("stg",)} == {(None, None, "unknown")}
    assert found["mail"][2] == "unknown"
    whys = {each["dataset"].rpartition("/")[2]: each["why"] for each in answer["affected_rows"]}
    assert "written again since" in whys["stg"]
    assert "no recorded run left" in whys["mail"]


def test_a_run_that_cannot_be_evaluated_has_no_total(run, monkeypatch):
    def forward(write, *given):
        if write.run.run == "d/0":
            raise EngineError("drawn at random", code="engine.not-exact")
        return rows_forward(write, *given)

    monkeypatch.setattr("govtool.app.trace.affected_rows.rows_forward", forward)
    code, answer, found = counts(run, "users.email", "land = 'de'")
    assert (code, found["mail"], found["stg"]) == (3, (None, None, "unknown"), (2, 4, "exact"))
    assert "drawn at random" in str(answer["affected_rows"])
    assert "of 0" not in run("impact", "users.email", "--where", "land = 'de'")[1]


def test_a_file_that_no_recorded_run_left_makes_a_count_incomplete(run, house):
    pq.write_table(pa.table({"id": [9], "email": ["x"], "land": ["de"]}), house.folder / "mail" / "by_hand.parquet")
    code, _, found = counts(run, "users.email", "id = 1")
    assert (code, found["mail"]) == (3, (1, 3, "incomplete"))
    assert found["stg"] == (1, 4, "exact")


def test_an_input_file_that_is_gone_leaves_the_rows_of_the_others(run, house):
    (house.folder / "users" / "part-1.parquet").unlink()
    code, answer, found = counts(run, "users.email", "land = 'de'")
    assert (code, answer["selection"]["rows"]) == (3, 1)
    assert found["stg"][2] == "incomplete"
    with pytest.raises(EvidenceError) as error:
        govtool.open().impact("users.email", where="id = 3")
    assert error.value.code == "evidence.changed"


def test_a_rerun_takes_the_place_of_the_run_before(run, house):
    house.commit(house.run("SELECT id, upper(email) AS email, land FROM users", "stg", "users", run="a2/0"))
    _, answer, found = counts(run, "users.email", "id = 1")
    assert found["stg"] == (1, 4, "exact")
    assert [each["runs"] for each in answer["affected_rows"] if each["dataset"].endswith("/stg")] == [["a2/0"]]
    assert found["mail"][2] == "unknown"  # it was made of what is there no more


# ---- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "code", "caret"), [("land =", "usage.sql-syntax", 6), ("lnd = 'de'", "usage.unknown-column", 1)]
)
def test_mistakes_in_the_expression_have_a_caret(run, where, code, caret):
    exit_code, out, err = run("impact", "users.email", "--where", where)
    assert (exit_code, out) == (2, "")
    assert f"error[{code}]" in err
    assert err.splitlines()[4].index("^") == 5 + caret - 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("users.email", "--where", "id = 77"), "usage.no-rows"),
        (("sheet.email", "--where", "true"), "usage.no-run"),
        (("users.email", "--where", "id = 1", "--upstream"), "usage.arguments"),
        (("**.email", "--where", "id = 1"), "usage.arguments"),
        (("usrs.email", "--where", "id = 1"), "usage.unknown-column"),
    ],
)
def test_questions_that_have_no_answer(run, words, code):
    exit_code, _, err = run("impact", *words)
    assert exit_code == 2
    assert code in err


def test_a_store_without_records_names_the_command_that_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    store = Store.init(str(tmp_path / ".govtool"))
    commit_lineage(store, derivation(tmp_path, "b", "x", "a.x -> x identity"))
    with pytest.raises(UsageError) as error:
        govtool.open().impact("a.x", where="x = 1")
    assert error.value.code == "usage.no-records"


# ---- against the definition ----------------------------------------------------------------------------


def test_counts_contain_what_brute_force_changes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    total = checked_against_brute_force(range(16))
    assert total.wrong == []
    assert total.exact > 15
    assert total.counted < 2 * total.changed


def test_a_reading_without_the_column_of_the_condition_is_followed_by_places(tmp_path, monkeypatch):
    """A job that reads the folder of one partition has no column of that partition."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    made = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    made.table("users", {"id": pa.int64(), "email": pa.string(), "land": pa.string()}, USERS[:2], USERS[2:])
    narrow = made.run("SELECT email FROM users", "mails", "users", run="b/0")

    def without_land(node):
        if not isinstance(node, Relation):
            return node
        columns = tuple(column for column in node.columns if column.name != "land")
        return replace(node, columns=columns)

    made.commit(replace(narrow, plan=replace(narrow.plan, root=rewrite_nodes(narrow.plan.root, without_land))))
    commit_lineage(
        made.store,
        derivation(tmp_path, "users", "id email land"),
        derivation(tmp_path, "mails", "email", "users.email -> email identity"),
        derivation(tmp_path, "lands", "land", "users.email -> land transformation lower"),
    )
    with pytest.raises(GovtoolError, match="land"):  # no run read it
        govtool.open().impact("users.email", where="land = 'de'")
    made.commit(made.run("SELECT land FROM users", "lands", "users", run="a/0"))
    found = govtool.open().impact("users.email", where="land = 'de'").affected.datasets
    assert {each.dataset.rpartition("/")[2]: (each.count, each.total) for each in found} == {
        "mails": (2, 4),
        "lands": (2, 4),
    }
