"""``govtool erase plan --run``, ``erase apply``, ``erase verify``: rows of a subject through recorded runs."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import Warehouse

import govtool
from govtool.cli.main import main
from govtool.errors import EvidenceError, FormatError, SourceError, UsageError
from govtool.store import Store

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
USER_COLUMNS = {"id": pa.int64(), "name": pa.string(), "land": pa.string()}
USERS = [(1, "ann", "fr"), (42, "bob", "de"), (3, "zoe", "fr"), (4, "kim", "de")]
ORDERS = [(1, 10), (42, 20), (42, 5), (3, 7), (4, 8)]
CLEAN = "SELECT u.id, u.land, o.amount FROM users u JOIN orders o ON u.id = o.user_id"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """users, orders → clean → by_land → ranked; users → lands → number."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "house"
    folder.mkdir()
    monkeypatch.chdir(folder)
    warehouse = Warehouse(folder, Store.init(str(folder / ".govtool")))
    warehouse.table("users", USER_COLUMNS, USERS[:2], USERS[2:])
    warehouse.table("orders", {"user_id": pa.int64(), "amount": pa.int64()}, ORDERS[:3], ORDERS[3:])
    by_land = "SELECT land, sum(amount) AS total, count(*) AS n FROM clean GROUP BY land"
    ranked = "SELECT land, total, row_number() OVER (ORDER BY total DESC, land) AS r FROM by_land"
    warehouse.commit(warehouse.run(CLEAN, "clean", "users", "orders", run="a/0"))
    warehouse.commit(warehouse.run(by_land, "by_land", "clean", run="b/0"))
    warehouse.commit(warehouse.run(ranked, "ranked", "by_land", run="c/0"))
    warehouse.commit(warehouse.run("SELECT DISTINCT land FROM users", "lands", "users", run="d/0"))
    warehouse.commit(warehouse.run("SELECT count(*) AS n FROM lands", "number", "lands", run="e/0"))
    return warehouse


@pytest.fixture
def run(capsys):
    """Run a command: exit code, stdout, stderr."""

    def command(*words):
        capsys.readouterr()
        code = main(["erase", *[str(word) for word in words]])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def planned(*words, **more):
    """A plan of all runs: its JSON, checked, and its datasets by the ends of their names."""
    more.setdefault("all_runs", more.get("run") is None)
    answer = json.loads(json.dumps(govtool.open().erase_plan(list(words), **more).to_dict()))
    jsonschema.validate(answer, json.loads((SCHEMAS / "erase-2.json").read_text(encoding="utf-8")))
    return answer, {each["dataset"].rpartition("/")[2]: each for each in answer["datasets"]}


def write_plan(place, *words, **more):
    answer, _ = planned(*words, **more)
    place.write_text(json.dumps(answer), encoding="utf-8")
    return place


def rows(place):
    tables = [pq.ParquetFile(file).read() for file in sorted(Path(place).rglob("*.parquet"))]
    return sorted((tuple(row.values()) for table in tables for row in table.to_pylist()), key=repr)


# ---- the plan ---------------------------------------------------------------------------------------------------


def test_rows_are_followed_through_every_run(house):
    answer, found = planned("users.id=42", key="orders.user_id")
    assert [name.rpartition("/")[2] for name in answer["order"]] == [
        *("users", "orders", "clean", "by_land", "ranked", "lands", "number")
    ]
    assert {name.rpartition("/")[2]: len(tokens) for name, tokens in answer["tokens"].items()} == {
        "users": 1,
        "orders": 2,
    }
    assert found["users"]["delete"] == [[42, "bob", "de"]]
    assert found["clean"]["delete"] == [[42, "de", 20], [42, "de", 5]]
    assert found["by_land"]["change"] == [{"key": ["de"], "before": ["de", 33, 3], "after": ["de", 8, 1]}]
    assert found["ranked"]["change"] == [
        {"key": ["de"], "before": ["de", 33, 1], "after": ["de", 8, 2]},
        {"key": ["fr"], "before": ["fr", 17, 2], "after": ["fr", 17, 1]},
    ]
    assert (found["ranked"]["delete"], found["ranked"]["appear"]) == ([], [])
    assert all(each["unknown"] == [] for each in answer["datasets"])


def test_what_stays_says_why_and_nothing_is_evaluated_behind_it(house):
    _, found = planned("users.id=42")
    lands, number = found["lands"], found["number"]
    assert (lands["recompute"], lands["unchanged"], lands["equal"]) == (True, 2, 1)
    assert "same values" in lands["why"]
    assert (number["recompute"], number["unchanged"], number["rows_scanned"]) == (False, 1, 0)
    assert number["why"] == "its inputs stay as they are"


def test_an_input_without_a_known_key_is_stated_not_searched(house):
    answer, _ = planned("users.id=42")
    (entry,) = answer["not_searched"]
    assert entry["dataset"].endswith("/orders")
    answer, _ = planned("users.id=42", key="orders.user_id")
    assert answer["not_searched"] == []


def test_an_input_joined_by_another_key_is_unknown_and_does_not_silently_stay(house):
    house.table("lines", {"order_amount": pa.int64(), "item": pa.string()}, [(20, "pen"), (8, "ink")])
    query = "SELECT user_id, item FROM orders JOIN lines ON amount = order_amount"
    house.commit(house.run(query, "items", "orders", "lines", run="f/0"))
    _, found = planned("orders.user_id=42", run="f/0")
    (unknown,) = found["lines"]["unknown"]
    assert "f/0 read it together with" in unknown["why"]
    assert unknown["why"].endswith("none of its columns is searched: rows of it may be the subject's")
    assert (found["lines"]["kind"], found["lines"]["delete"], "unchanged" in found["lines"]) == ("source", [], False)
    assert found["items"]["delete"] == [[42, "pen"]]
    assert govtool.open().erase_plan(["orders.user_id=42"], run="f/0").is_certain is False


def test_rows_that_come_of_an_unknown_input_alone_are_unknown(house, run, tmp_path):
    """A union has rows of one side alone, and so has an outer join; an inner join has not."""
    house.table("lines", {"amount": pa.int64(), "item": pa.string()}, [(20, "pen"), (8, "ink"), (99, "cap")])
    for name, query, inputs in (
        ("items", "SELECT o.user_id, l.item FROM orders o JOIN lines l ON o.amount = l.amount", ("orders", "lines")),
        ("amounts", "SELECT amount FROM orders UNION ALL SELECT amount FROM lines", ("orders", "lines")),
        ("all_lines", "SELECT user_id, item FROM orders o RIGHT JOIN lines l ON o.amount = l.amount",
         ("orders", "lines")),
        ("no_orders", "SELECT item FROM lines WHERE amount NOT IN (SELECT amount FROM orders)", ("orders", "lines")),
        ("by_user", "SELECT user_id, count(item) AS n FROM items GROUP BY user_id", ("items",)),
        ("total", "SELECT sum(amount) AS total FROM amounts", ("amounts",)),
        ("prices", "SELECT item, max(amount) AS price FROM lines GROUP BY item", ("lines",)),
        ("dear", "SELECT item FROM prices WHERE price > 10", ("prices",)),
    ):  # fmt: skip
        house.commit(house.run(query, name, *inputs, run=f"x-{name}/0"))
    house.commit(house.run("SELECT id FROM users", "ids", "users", run="x-ids/0"))
    _, found = planned("orders.user_id=42", key="users.id")
    reasons = {name: [each["why"] for each in found[name]["unknown"]] for name in found}
    assert reasons["items"] == reasons["by_user"] == reasons["ids"] == []
    lines = "rows that come of FOLDER/lines alone may be the subject's"
    shown = {name: [why.replace(f"file://{Path.cwd()}", "FOLDER") for why in each] for name, each in reasons.items()}
    assert shown["amounts"] == shown["all_lines"] == shown["no_orders"] == shown["prices"] == [lines]
    assert shown["total"] == ["rows of its input FOLDER/amounts are not certain"]
    assert shown["dear"] == ["rows that come of FOLDER/prices alone may be the subject's"]
    assert found["amounts"]["delete"] == [[20], [5]] or found["amounts"]["delete"] == [[20], [5]][::-1]
    assert "unchanged" not in found["prices"]
    plan = write_plan(tmp_path / "plan.json", "orders.user_id=42", key="users.id")
    code, _, err = run("apply", plan, "--to", tmp_path / "copies")
    assert code == 3, err
    certificate = json.loads((tmp_path / "copies" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["not_written"] == []  # nothing of prices is known to change
    named = {each["dataset"].rpartition("/")[2]: each["why"] for each in certificate["unknown"]}
    assert named.keys() == {"lines", "amounts", "all_lines", "no_orders", "total", "prices", "dear"}
    assert named["prices"] == reasons["prices"]
    _, declared = planned("orders.user_id=42", key="users.id", no_subject="lines")
    assert all(each["unknown"] == [] for each in declared.values())
    assert "prices" not in declared


@pytest.fixture
def countries(house):
    """lands of users with their names; the countries hold nothing about a user."""
    house.table("countries", {"code": pa.string(), "title": pa.string()}, [("de", "Germany"), ("fr", "France")])
    query = "SELECT u.id, c.title FROM users u JOIN countries c ON u.land = c.code"
    house.commit(house.run(query, "titled", "users", "countries", run="f/0"))
    return house


def test_a_dataset_without_a_subject_is_listed_as_declared(countries, run, tmp_path):
    words = ["plan", "--subject", "users.id=42", "--run", "f/0"]
    code, out, _ = run(*words)
    assert code == 3
    (line,) = (line for line in out.splitlines() if line.startswith("UNKNOWN: ") and "/countries: " in line)
    assert "--key countries.COLUMN" in line
    assert "--no-subject countries" in line
    plan = tmp_path / "plan.json"
    code, out, _ = run(*words, "--no-subject", "countries", "--strict", "-f", "table", "-f", "json", "-o", plan)
    assert (code, "UNKNOWN" in out, "NOT SEARCHED" in out) == (0, False, False)
    assert "/countries: declared with --no-subject to hold nothing about a subject" in out
    answer, found = planned("users.id=42", run="f/0", no_subject="countries")
    assert answer == json.loads(plan.read_text())
    assert answer["not_searched"] == []
    assert set(found) == {"users", "titled"}
    assert found["titled"]["delete"] == [[42, "Germany"]]
    certificate = govtool.apply_erasure(plan, to=tmp_path / "corrected").document
    jsonschema.validate(certificate, json.loads((SCHEMAS / "erasure-certificate-1.json").read_text(encoding="utf-8")))
    assert certificate["no_subject"] == answer["no_subject"]
    assert certificate["unknown"] == certificate["not_searched"] == []
    assert "NO SUBJECT: " in run("verify", tmp_path / "corrected" / "certificate.json")[1]


def test_datasets_without_a_subject_of_the_settings(countries, tmp_path):
    Path("govtool.toml").write_text('[erasure]\nno_subject = ["countries", "prices", "clean"]\n', encoding="utf-8")
    answer, _ = planned("users.id=42", run="f/0")
    (entry,) = answer["no_subject"]
    assert entry["why"] == "declared in govtool.toml to hold nothing about a subject"
    plan = write_plan(tmp_path / "plan.json", "users.id=42", run="f/0")
    Path("govtool.toml").unlink()
    with pytest.raises(EvidenceError, match="does not give this plan"):
        govtool.apply_erasure(plan, to=tmp_path / "corrected")


def test_an_unrelated_dataset_stays_unknown_beside_a_declared_one(countries):
    countries.table("titles", {"title": pa.string(), "who": pa.string()}, [("Germany", "bob")])
    query = "SELECT u.id, t.who FROM users u JOIN countries c ON u.land = c.code JOIN titles t ON t.title = c.title"
    countries.commit(countries.run(query, "who", "users", "countries", "titles", run="g/0"))
    answer, found = planned("users.id=42", run="g/0", no_subject=["countries"])
    assert found["titles"]["unknown"]
    assert "countries" not in found
    assert [entry["dataset"].rpartition("/")[2] for entry in answer["not_searched"]] == ["titles"]


def test_rows_that_an_antijoin_kept_away_appear(house):
    orphans = "SELECT user_id, amount FROM orders WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = user_id)"
    house.commit(house.run(orphans, "orphans", "orders", "users", run="f/0"))
    _, found = planned("users.id=42", run="f/0")
    assert sorted(found["orphans"]["appear"]) == [[42, 5], [42, 20]]
    _, found = planned("users.id=42", run="f/0", key="orders.user_id")
    assert found["orphans"]["appear"] == []


def test_a_limit_is_certain_unless_rows_tie_across_it(house):
    house.commit(house.run("SELECT amount FROM orders ORDER BY amount LIMIT 2", "few", "orders", run="f/0"))
    house.table("points", {"who": pa.int64(), "points": pa.int64()}, [(42, 1), (1, 2), (3, 2), (4, 2)])
    house.commit(house.run("SELECT who, points FROM points ORDER BY points LIMIT 2", "top", "points", run="g/0"))
    house.commit(house.run("SELECT sum(points) AS p FROM top", "sum", "top", run="h/0"))
    _, found = planned("orders.user_id=42")
    assert (found["few"]["delete"], found["few"]["appear"], found["few"]["unknown"]) == ([[5]], [[8]], [])
    _, found = planned("points.who=42")
    assert "tie at a limit" in found["top"]["unknown"][0]["why"]
    assert "not certain" in found["sum"]["unknown"][0]["why"]
    assert not govtool.open().erase_plan("points.who=42", all_runs=True).is_certain


def test_a_group_of_equal_rows_that_tie_is_certain(house):
    house.table("coins", {"who": pa.int64(), "coin": pa.int64()}, [(42, 1), (1, 2), (3, 2), (4, 2)])
    house.commit(house.run("SELECT coin FROM coins ORDER BY coin LIMIT 2", "top", "coins", run="g/0"))
    _, found = planned("coins.who=42")
    assert (found["top"]["delete"], found["top"]["appear"], found["top"]["unknown"]) == ([[1]], [[2]], [])


def test_a_declared_key_names_tokens_and_pairs_rows(house, tmp_path):
    Path("govtool.toml").write_text('[keys]\nusers = "id"\nranked = "land"\n', encoding="utf-8")
    answer, found = planned("users.id=42", key="orders.user_id")
    (tokens,) = [tokens for name, tokens in answer["tokens"].items() if name.endswith("/users")]
    assert tokens[0].endswith("users[id=42]")
    assert (found["users"]["key"], found["users"]["delete"]) == (["id"], [[42]])
    assert [change["key"] for change in found["ranked"]["change"]] == [["de"], ["fr"]]
    assert found["ranked"]["appear"] == []


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("SELECT land, total FROM by_land WHERE total > 5", [["de"]]),
        ("SELECT land, total + 1 AS more, n FROM by_land ORDER BY total", [["de"]]),
        ("SELECT b.total, l.land AS place FROM by_land b JOIN lands l ON b.land = l.land", [["de"]]),
        ("SELECT total, n FROM by_land", None),  # no column says which row it was
        ("SELECT land, total FROM by_land WHERE total > 20", None),  # it no longer passes
        ("SELECT land, total FROM by_land GROUP BY land, total", None),  # a group of another key
    ],
)
def test_a_row_whose_input_changes_is_the_same_row(house, query, changed):
    house.commit(house.run(query, "more", "by_land", "lands", run="f/0"))
    _, found = planned("users.id=42", key="orders.user_id")
    assert [change["key"] for change in found["by_land"]["change"]] == [["de"]]
    more = found["more"]
    assert [change["key"] for change in more["change"]] == (changed or [])
    if changed:
        assert (more["delete"], more["appear"]) == ([], [])
    else:
        assert len(more["delete"]) == 1


def test_a_subject_of_a_dataset_that_a_run_wrote(house):
    answer, found = planned("clean.id=42")
    assert [len(tokens) for tokens in answer["tokens"].values()] == [2]
    assert len(found["clean"]["delete"]) == 2
    assert found["by_land"]["change"][0]["after"] == ["de", 8, 1]
    assert "users" not in found


def test_runs_that_append_to_one_dataset_are_one_dataset(house):
    house.commit(house.run("SELECT id AS who FROM users", "ids", "users", run="f/0", part="one"))
    house.commit(house.run("SELECT user_id AS who FROM orders", "ids", "orders", run="g/0", part="two"))
    house.commit(house.run("SELECT count(*) AS n FROM ids", "many", "ids", run="h/0"))
    _, found = planned("users.id=42", key="orders.user_id")
    assert (found["ids"]["runs"], found["ids"]["delete"]) == (["f/0", "g/0"], [[42]] * 3)
    assert found["many"]["change"] == [{"key": [], "before": [9], "after": [6]}]
    _, found = planned("users.id=42")
    assert (found["ids"]["delete"], "unchanged" in found["ids"]) == ([[42]], False)
    (unknown,) = found["ids"]["unknown"]  # the rows of g/0: clean was made of users and orders together
    assert unknown["why"].endswith("/orders alone may be the subject's")
    assert found["ids"]["writable"]


def test_an_input_that_was_written_again_makes_what_is_behind_it_unknown(house):
    house.table("orders", {"user_id": pa.int64(), "amount": pa.int64()}, [*ORDERS, (9, 9)])
    _, found = planned("users.id=42")
    assert "since the run read it" in found["clean"]["unknown"][0]["why"]
    assert not found["clean"]["writable"]
    assert "is not known" in found["by_land"]["unknown"][0]["why"]
    assert found["lands"]["unknown"] == []


def test_an_output_that_was_written_again_is_stated(house):
    (house.folder / "ranked" / "out.parquet").unlink()
    answer, found = planned("users.id=42")
    assert "ranked" not in found
    assert [entry["dataset"].rpartition("/")[2] for entry in answer["not_reached"]] == ["ranked"]


def test_formats(house, run, tmp_path):
    words = ["plan", "--subject", "users.id=42", "--key", "orders.user_id", "--all-runs"]
    code, out, _ = run(*words)
    assert code == 0
    assert "users.id=…" in out
    assert "bob" not in out
    assert "recomputed: same values" in out
    assert '["de", 33, 3] → ["de", 8, 1]' in run(*words, "--show-values")[1]
    _, out, _ = run(*words, "-f", "csv")
    actions = [row["action"] for row in csv.DictReader(io.StringIO(out))]
    assert {name: actions.count(name) for name in set(actions)} == {
        "delete": 5, "change": 3, "unchanged": 2,
    }  # fmt: skip
    place = tmp_path / "plan.json"
    assert run(*words, "-o", place)[0] == 0
    assert place.stat().st_mode & 0o777 == 0o600
    assert json.loads(place.read_text())["schema"] == "erase/2"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--subject", "users.id=99", "--all-runs"], "usage.no-rows", "users.id"),
        (["--subject", "userz.id=4711", "--all-runs"], "usage.unknown-dataset", "users"),
        (["--subject", "users.idd=4711", "--all-runs"], "usage.unknown-column", "id"),
        (["--subject", "users.id=s4711", "--all-runs"], "usage.subject", "column 'id'"),
        (["--subject", "users.id", "--all-runs"], "usage.subject", "by a value"),
        (["--subject", "users.id=4711", "--run", "zz"], "usage.unknown-run", "zz"),
        (["--subject", "users.id=4711", "--run", "b/0"], "usage.unknown-dataset", "--all-runs"),
        (["--subject", "users.id=4711", "--all-runs", "--key", "order.user_id"], "usage.unknown-dataset", "orders"),
        (["--subject", "users.id=4711", "--all-runs", "--policy", "p"], "usage.arguments", "--policy"),
        (["--subject", "users.id=4711", "--all-runs", "--no-subject", "order"], "usage.unknown-dataset", "orders"),
        (["--subject", "users.id=4711", "--all-runs", "--no-subject", "users"], "usage.no-subject", "the subject"),
        (
            ["--subject", "users.id=4711", "--all-runs", "--key", "orders.user_id", "--no-subject", "orders"],
            *("usage.no-subject", "declared with --key"),
        ),
        (["--subject", "users.id=4711", "--all-runs", "--no-subject", "clean"], "usage.no-subject", "a/0 wrote"),
        (["--subject", "users.id=4711", "--no-subject", "orders"], "usage.arguments", "--run"),
    ],
)
def test_bad_input_never_repeats_the_value(house, run, words, code, text):
    exit_code, out, err = run("plan", *words)
    assert (exit_code, out) == (2, "")
    assert code in err
    assert text in err
    assert "4711" not in err


def test_several_subjects(house):
    _, found = planned("users.id=42", "users.id=1")
    assert [row[0] for row in found["users"]["delete"]] == [1, 42]
    assert found["lands"]["equal"] == 2


def test_rows_that_are_compared_with_a_total_are_evaluated_again(house):
    """The mean is 10, and 8⅓ without the subject: no trace leads from the subject's rows to those that appear."""
    mean = "SELECT avg(amount) AS mean FROM orders"
    high = f"SELECT o.user_id, o.amount FROM orders o CROSS JOIN ({mean}) AS m WHERE o.amount > m.mean - 2"
    house.commit(house.run(high, "high", "orders", run="f/0"))
    assert rows(house.folder / "high") == [(1, 10), (42, 20)]
    _, found = planned("orders.user_id=42")
    assert (found["high"]["delete"], sorted(found["high"]["appear"])) == ([[42, 20]], [[3, 7], [4, 8]])


# ---- corrected copies -------------------------------------------------------------------------------------------


def test_copies_are_what_the_runs_give_without_the_subject(house, tmp_path, run):
    plan = write_plan(tmp_path / "plan.json", "users.id=42", key="orders.user_id")
    before = {file: file.read_bytes() for file in house.folder.rglob("*.parquet")}
    code, out, _ = run("apply", plan, "--to", tmp_path / "fixed")
    assert code == 0
    assert "replayed" in out
    assert rows(tmp_path / "fixed" / "ranked") == [("de", 8, 2), ("fr", 17, 1)]
    assert rows(tmp_path / "fixed" / "clean") == [(1, "fr", 10), (3, "fr", 7), (4, "de", 8)]
    assert rows(tmp_path / "fixed" / "users") == [row for row in USERS if row[0] != 42]
    assert {file: file.read_bytes() for file in before} == before
    text = (tmp_path / "fixed" / "certificate.json").read_text(encoding="utf-8")
    certificate = json.loads(text)
    jsonschema.validate(certificate, json.loads((SCHEMAS / "erasure-certificate-1.json").read_text(encoding="utf-8")))
    assert "42" not in json.dumps(certificate["subjects"][0]["column"])
    assert "bob" not in text
    assert {each["folder"] for each in certificate["datasets"]} == {"users", "orders", "clean", "by_land", "ranked"}
    assert [name.rpartition("/")[2] for name in certificate["unchanged"]] == ["lands", "number"]
    assert certificate["not_written"] == certificate["unknown"] == certificate["not_searched"] == []


def test_runs_that_read_one_another_in_turn_are_verified(house, tmp_path, run):
    """The last run appends to the dataset that its input was made of: each copy is read by a run of the other."""
    house.commit(house.run("SELECT count(*) AS n FROM users", "sizes", "users", run="f/0", part="first"))
    house.commit(house.run("SELECT n FROM sizes", "seen", "sizes", run="g/0"))
    again = "SELECT n FROM sizes AS a WHERE EXISTS (SELECT 1 FROM seen AS b WHERE b.n = a.n)"
    house.commit(house.run(again, "sizes", "sizes", "seen", run="h/0", part="second"))
    plan = write_plan(tmp_path / "plan.json", "users.id=42", key="orders.user_id")
    code, out, err = run("apply", plan, "--to", tmp_path / "fixed")
    assert (code, err) == (0, ""), out
    assert rows(tmp_path / "fixed" / "sizes") == [(len(USERS) - 1,)] * 2
    assert rows(tmp_path / "fixed" / "seen") == [(len(USERS) - 1,)]


def test_a_run_that_read_one_file_of_a_folder_follows_the_run_that_wrote_it(house, tmp_path, run):
    others = "SELECT id, land, amount FROM clean WHERE id <> 42"
    house.commit(
        house.run("SELECT id, land, amount FROM clean WHERE id = 42", "halves", "clean", run="f/0", part="his")
    )
    house.commit(house.run(others, "halves", "clean", run="g/0", part="others"))
    for name in ("his", "others"):
        sums = f"SELECT land, sum(amount) AS total FROM `halves/{name}.parquet` GROUP BY land"
        house.commit(house.run(sums, f"of_{name}", f"halves/{name}.parquet", run=f"of-{name}/0"))
    plan = write_plan(tmp_path / "plan.json", "users.id=42", key="orders.user_id")
    answer, found = planned("users.id=42", key="orders.user_id")
    assert not [name for name in found if name.endswith(".parquet")]
    assert [each["unknown"] for each in answer["datasets"] if each["unknown"]] == answer["not_searched"] == []
    assert (found["of_his"]["delete"], found["of_others"]["delete"]) == ([["de"]], [])
    code, out, err = run("apply", plan, "--to", tmp_path / "fixed")
    assert (code, err) == (0, ""), out
    assert rows(tmp_path / "fixed" / "of_his") == []
    assert rows(tmp_path / "fixed" / "halves") == [(1, "fr", 10), (3, "fr", 7), (4, "de", 8)]
    assert not (tmp_path / "fixed" / "of_others").exists()


@pytest.mark.parametrize("query", ["b/1", "b/3", "other/1"])
def test_rows_that_went_through_the_driver_are_unknown_unless_they_are_searched(house, query):
    """`createDataFrame(spark.table("clean").toPandas())`; afterwards, or in another application, it says nothing."""
    collected = house.run("SELECT id, land FROM clean", "collected", "clean", run=query)
    held = "SELECT id, land FROM VALUES (42, 'de'), (3, 'fr') AS t(id, land)"
    house.commit(replace(collected, output=None, output_files=None))
    house.commit(house.run(held, "held", run="b/2"))
    house.commit(house.run("SELECT count(*) AS n FROM held", "of_held", "held", run="k/0"))
    answer, found = planned("users.id=42", key="orders.user_id")
    names = {"held", "of_held"} & found.keys()
    assert names == ({"held", "of_held"} if query == "b/1" else set())
    if names:
        assert f"the driver, which had what {query} made" in found["held"]["unknown"][0]["why"]
        assert found["of_held"]["unknown"]
    assert [each["dataset"] for each in answer["not_reached"]] == [query]
    _, found = planned("users.id=42", key=["orders.user_id", "held.id"])
    assert (found["held"]["delete"], found["held"]["unknown"]) == ([[42, "de"]], [])
    assert found["of_held"]["change"][0]["after"] == [1]


def test_a_certificate_is_checked_again(house, tmp_path, run):
    plan = write_plan(tmp_path / "plan.json", "users.id=42", key="orders.user_id")
    fixed = tmp_path / "fixed"
    govtool.apply_erasure(plan, fixed)
    certificate = fixed / "certificate.json"
    assert run("verify", certificate)[0] == 0
    assert govtool.verify_erasure(certificate) == govtool.verify_erasure(certificate.parent)
    assert govtool.verify_erasure(certificate).problems == ()
    (fixed / "users" / "more.parquet").write_bytes((house.folder / "users" / "part-0.parquet").read_bytes())
    (problem,) = govtool.verify_erasure(certificate, fixed).problems
    assert problem == "users/more.parquet was added"
    (fixed / "users" / "more.parquet").unlink()
    (fixed / "users" / "part-0.parquet").write_bytes((house.folder / "users" / "part-0.parquet").read_bytes())
    assert set(govtool.verify_erasure(certificate).problems) == {
        "users/part-0.parquet is not what was written",
        "users has other rows",
        "users holds the subject's value in column id",
    }
    code, out, _ = run("verify", certificate)
    assert code == 1
    assert "DIFFERS" in out
    (fixed / "users" / "part-0.parquet").unlink()
    assert "users/part-0.parquet is gone" in govtool.verify_erasure(certificate).problems


def test_files_keep_schema_compression_and_metadata(house, tmp_path):
    place = house.folder / "typed"
    place.mkdir()
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())], metadata={b"owner": b"crm"}
    )
    table = pa.table([[1, 42, 3] * 5, ["a", "b", None] * 5], schema=schema)
    pq.write_table(table, place / "part-0.parquet", compression="zstd", row_group_size=4)
    house.commit(house.run("SELECT name, count(*) AS n FROM typed GROUP BY name", "names", "typed", run="f/0"))
    govtool.apply_erasure(write_plan(tmp_path / "plan.json", "typed.id=42", run="f/0"), tmp_path / "fixed")
    file = pq.ParquetFile(tmp_path / "fixed" / "typed" / "part-0.parquet")
    assert file.schema_arrow.equals(schema, check_metadata=True)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.metadata.num_row_groups == 4
    assert file.read().to_pylist() == [row for row in table.to_pylist() if row["id"] != 42]


def test_folders_that_are_not_new_or_have_to_do_with_an_original(house, tmp_path):
    plan = write_plan(tmp_path / "plan.json", "users.id=42")
    link = tmp_path / "link"
    link.symlink_to(house.folder / "users")
    full = tmp_path / "full"
    full.mkdir()
    (full / "x").touch()
    for place in (full, house.folder / "users", house.folder / "users" / "in", house.folder, link, link / "in"):
        with pytest.raises(UsageError) as error:
            govtool.apply_erasure(plan, place)
        assert error.value.code == "usage.target"
    assert sorted(path.name for path in (house.folder / "users").iterdir()) == ["part-0.parquet", "part-1.parquet"]
    (tmp_path / "empty").mkdir()
    assert govtool.apply_erasure(plan, tmp_path / "empty").folder == str(tmp_path / "empty")


def test_an_original_that_changed_since_the_plan_is_refused(house, tmp_path, run):
    plan = write_plan(tmp_path / "plan.json", "users.id=42")
    file = house.folder / "users" / "part-0.parquet"
    facts, data = file.stat(), file.read_bytes()
    file.write_bytes(data[:-1] + b"X")  # same size; and the time is put back
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(SourceError):
        govtool.apply_erasure(plan, tmp_path / "fixed")
    file.unlink()
    code, out, err = run("apply", plan, "--to", tmp_path / "fixed")
    assert (code, out) == (4, "")
    assert "source.changed" in err
    assert not (tmp_path / "fixed").exists()


def test_a_plan_that_was_edited_or_is_none_is_refused(house, tmp_path):
    plan = write_plan(tmp_path / "plan.json", "users.id=42")
    body = json.loads(plan.read_text())
    body["datasets"][0]["delete"].append([1, "ann", "fr"])
    plan.write_text(json.dumps(body))
    with pytest.raises(EvidenceError) as error:
        govtool.apply_erasure(plan, tmp_path / "fixed")
    assert error.value.code == "evidence.plan"
    for text in ("", "[]", "{}", '{"schema": "erase/2"}', "\0", "[" * 100_000):
        plan.write_text(text)
        with pytest.raises(FormatError):
            govtool.apply_erasure(plan, tmp_path / "fixed")
        with pytest.raises(FormatError):
            govtool.verify_erasure(plan)
    with pytest.raises(UsageError):
        govtool.apply_erasure(tmp_path / "nothing.json", tmp_path / "fixed")
    assert not (tmp_path / "fixed").exists()


def test_a_certificate_leads_nowhere_else(house, tmp_path):
    plan = write_plan(tmp_path / "plan.json", "users.id=42")
    fixed = tmp_path / "fixed"
    govtool.apply_erasure(plan, fixed)
    place = fixed / "certificate.json"
    body = json.loads(place.read_text())
    body["datasets"][0]["files"][0]["path"] = "../../etc/passwd"
    place.write_text(json.dumps(body))
    assert "../../etc/passwd leads out of the folder" in govtool.verify_erasure(place).problems


OTHERS = ("gone", None, 5, "x", [5], {"a": 1}, "\0", "\ud800")


def places_in(value, found=()):
    """The path of each part of a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in parts:
        yield (*found, name)
        yield from places_in(inner, (*found, name))


def test_a_certificate_that_somebody_wrote_is_checked_or_refused(house, tmp_path, run):
    """Each part is gone, or something else: the command has an answer, and no error of its own."""
    house.table("orders", {"user_id": pa.int64(), "amount": pa.int64()}, [*ORDERS, (9, 9)])
    plan = write_plan(tmp_path / "plan.json", "users.id=42")  # something is unknown, not searched and not written
    govtool.apply_erasure(plan, tmp_path / "fixed")
    place = tmp_path / "fixed" / "certificate.json"
    text = place.read_text()
    codes = set()
    cases = [(path, other) for path in places_in(json.loads(text)) for other in OTHERS]
    for path, other in random.Random(2).sample(cases, 60):
        body = json.loads(text)
        part = body
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = other
        if other == "gone":
            del part[path[-1]]
        place.write_text(json.dumps(body))
        code, _, err = run("verify", place)
        assert code in (0, 1, 4), (path, other, err)
        codes.add(code)
    assert {0, 4} <= codes


def test_what_is_unknown_is_not_written_and_named(house, tmp_path, run):
    house.table("orders", {"user_id": pa.int64(), "amount": pa.int64()}, [*ORDERS, (9, 9)])
    plan = write_plan(tmp_path / "plan.json", "users.id=42")
    code, out, _ = run("apply", plan, "--to", tmp_path / "fixed")
    assert code == 3
    assert "NOT WRITTEN" in out
    certificate = json.loads((tmp_path / "fixed" / "certificate.json").read_text())
    assert {each["dataset"].rpartition("/")[2] for each in certificate["not_written"]} == {"clean", "by_land", "ranked"}
    assert [each["folder"] for each in certificate["datasets"]] == ["users"]


def test_files_beside_those_of_recorded_runs_are_named(house, tmp_path):
    pq.write_table(pa.table({"id": [42]}), house.folder / "users" / "late.parquet")
    plan = write_plan(tmp_path / "plan.json", "users.id=42")
    certificate = govtool.apply_erasure(plan, tmp_path / "fixed").document
    (entry,) = [each for each in certificate["not_reached"] if each["dataset"].endswith("/users")]
    assert entry["why"].startswith("1 file in its folder")


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from govtool.app.erasure import corrected
    from govtool.cli.main import main

    write, left = corrected.write_copy, [2]

    def killed(delta, target):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return write(delta, target)

    corrected.write_copy = killed
    main(["erase", "apply", sys.argv[1], "--to", sys.argv[2]])
"""


def test_a_run_that_was_killed_leaves_nothing_that_looks_complete(house, tmp_path):
    plan = write_plan(tmp_path / "plan.json", "users.id=42", key="orders.user_id")
    words = [sys.executable, "-c", textwrap.dedent(KILLED), str(plan), str(tmp_path / "fixed")]
    done = subprocess.run(words, cwd=house.folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "fixed").exists()
    assert list(tmp_path.glob(".fixed.partial")) != []
    govtool.apply_erasure(plan, tmp_path / "fixed")
    assert govtool.verify_erasure(tmp_path / "fixed" / "certificate.json").problems == ()
    assert list(tmp_path.glob(".fixed*")) == []
