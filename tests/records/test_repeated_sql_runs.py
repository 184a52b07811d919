"""Several runs of one script of SQL: which run answers, and what differs between two of them."""

from __future__ import annotations

import json
import re
import shutil

import pytest

import govtool
from govtool.app.records.runs import find_readers, find_writer
from govtool.app.runs.lookup import read_history
from govtool.app.workflow_runs.programs.facts import statement_text
from govtool.cli.main import main
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

ORDERS = "id,customer_id,amount\n1,10,20\n2,11,30\n5,12,1000\n"
CUSTOMERS = "id,country\n10,FR\n11,FR\n12,IT\n"
SCRIPT = """create table joined as
select o.id as order_id, c.country, o.amount from orders o join customers c on c.id = o.customer_id;
create table revenue as select country, sum(amount) as revenue from joined group by country;
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a script, its inputs and an empty store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text(ORDERS)
    (tmp_path / "data" / "customers.csv").write_text(CUSTOMERS)
    (tmp_path / "report.sql").write_text(SCRIPT)
    Store.init(str(tmp_path / ".govtool"))
    return tmp_path


def run(script="report.sql", **options):
    return govtool.run_workflow(script, "data", **options).run.id


def head():
    store = Store.open(".govtool")
    return store, store.head("main")


def test_the_last_run_answers_where_each_has_a_relation_of_the_name(folder):
    runs = [run(), run(), run()]
    assert find_writer(*head(), "revenue", None).run == f"{runs[-1]}/1"
    assert [each.run for each in find_readers(*head(), "joined", None)] == [f"{runs[-1]}/1"]
    assert [each.run for each in find_readers(*head(), "orders.parquet", None)] == [f"{runs[-1]}/0"]
    assert find_writer(*head(), "revenue", "report.sql:revenue~1").run == f"{runs[1]}/1"
    assert find_writer(*head(), f"report.state/{runs[0]}/revenue", None).run == f"{runs[0]}/1"


def test_relations_of_two_scripts_stay_ambiguous_and_the_hint_works(folder, capsys):
    run()
    (folder / "other.sql").write_text(SCRIPT)
    run("other.sql")
    trace = ["trace", "back", "revenue", "--where", "country = 'IT'"]
    assert main(trace) == 2
    hint = re.search(r"--run (\S+)", capsys.readouterr().err)
    assert hint is not None
    assert main([*trace, "--run", hint[1], "-f", "json"]) == 0
    assert hint[1] in json.dumps(json.loads(capsys.readouterr().out))


def difference(capsys, *arguments):
    assert main(["diff", *arguments, "-f", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def endings(answer):
    return [(each["aspect"], each["name"].rpartition("/")[2], each["what"]) for each in answer["changes"]]


def test_two_identical_runs_do_not_differ(folder, capsys):
    run()
    run()
    for job in ("report.sql:joined", "report.sql:revenue"):
        answer = difference(capsys, f"{job}~1", job)
        assert (answer["changes"], answer["verdict"]) == ([], "equal")
        assert [answer["compared"][aspect] for aspect in ("input", "output")] == ["equal", "equal"]


def test_the_first_cause_is_the_input_that_changed(folder, capsys):
    run()
    (folder / "data" / "customers.csv").write_text(CUSTOMERS.replace("12,IT", "12,FR\n13,IT"))
    run()
    answer = difference(capsys, "report.sql:joined~1", "report.sql:joined")
    assert ("input", "customers.csv", "content") in endings(answer)
    assert ("input", "customers.csv", "rows") in endings(answer)
    assert ("output", "joined", "content") in endings(answer)
    assert not [name for _, name, _ in endings(answer) if name.startswith("orders")]
    answer = difference(capsys, "report.sql:revenue~1", "report.sql:revenue", "--rows")
    causes = {tuple(name.rpartition("/")[2] for name in each["cause"]["way"]) for each in answer["changes"]}
    assert causes == {("joined", "customers.csv")}
    (rows,) = answer["row_differences"]
    assert "customers.csv" in rows["cause"]


def test_inputs_of_another_folder_pair_by_relation(folder, capsys):
    run()
    shutil.copytree("data", "later")
    (folder / "later" / "customers.csv").write_text(CUSTOMERS.replace("12,IT", "12,FR"))
    govtool.run_workflow("report.sql", "later")
    answer = difference(capsys, "report.sql:joined~1", "report.sql:joined")
    assert endings(answer) == [("input", "customers.parquet", "content"), ("output", "joined", "content")]


def test_rows_that_only_change_places_are_equal_rows(folder, capsys):
    (folder / "report.sql").write_text("create table copied as select * from orders")
    run()
    (folder / "data" / "orders.csv").write_text("id,customer_id,amount\n5,12,1000\n2,11,30\n1,10,20\n")
    run()
    answer = difference(capsys, "report.sql:copied~1", "report.sql:copied")
    assert ("input", "orders.csv", "content") in endings(answer)
    assert answer["verdict"] == "equal rows, files differ"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["report.sql"], "--inputs FOLDER, the folder of NAME.csv and NAME.parquet that it reads"),
        (["data/orders.csv", "--inputs", "data"], "(.py), a script of SQL (.sql), or the folder of a dbt project"),
        (["data", "--inputs", "data"], "(.py), a script of SQL (.sql), or the folder of a dbt project"),
    ],
)
def test_the_error_of_a_run_that_lacks_something_names_it(folder, capsys, arguments, hint):
    assert main(["workflow", "run", *arguments]) == 2
    assert hint in " ".join(capsys.readouterr().err.split())


def test_an_unknown_relation_beside_given_inputs_has_no_hint_of_inputs(folder, capsys):
    (folder / "report.sql").write_text("create table a as select * from ordres")
    assert main(["workflow", "run", "report.sql", "--inputs", "data"]) == 2
    assert "--inputs" not in capsys.readouterr().err


ASPECTS = ("code", "config", "environment", "plan")


def test_code_settings_software_and_statements_are_compared(folder, capsys):
    run()
    run()
    answer = difference(capsys, "report.sql:revenue~1", "report.sql:revenue")
    assert {aspect: answer["compared"][aspect] for aspect in ASPECTS} == dict.fromkeys(ASPECTS, "equal")
    assert answer["unknown"] == []


def test_a_changed_statement_is_the_first_cause(folder, capsys):
    run()
    (folder / "report.sql").write_text(SCRIPT.replace("sum(amount)", "max(amount)"))
    run()
    answer = difference(capsys, "report.sql:revenue~1", "report.sql:revenue")
    assert {each["aspect"] for each in answer["changes"]} == {"code", "plan", "output"}
    (cause,) = {each["cause"]["kind"] for each in answer["changes"] if each["aspect"] == "output"}
    assert cause == "code"
    (plan,) = (each for each in answer["changes"] if each["aspect"] == "plan")
    assert (plan["before"], plan["after"]) == (
        "SELECT country , sum ( amount ) AS revenue",
        "SELECT country , max ( amount ) AS revenue",
    )


def test_literals_are_not_kept_with_the_statement(folder, capsys):
    (folder / "report.sql").write_text("create table a as select * from customers where country = 'IT-secret'")
    run()
    assert main(["runs", "-f", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert "WHERE" in found["plan"]
    assert "secret" not in found["plan"]
    assert [each["name"] for each in found["software"] if each["name"].startswith("script:")] == ["script:report.sql"]


def test_another_dialect_is_another_setting(folder, capsys):
    run()
    run(dialect="duckdb")
    answer = difference(capsys, "report.sql:joined~1", "report.sql:joined")
    assert ("config", "sql.dialect", "value") in endings(answer)


@pytest.mark.parametrize(
    ("query", "dialect", "text"),
    [
        ("select  'IT-1' as x, 1.5 -- note\nfrom t", "spark", "SELECT ? AS x , ?\nFROM t"),
        ('select "IT" from t where a = x\'00ff\'', "spark", "SELECT ?\nFROM t\nWHERE a = ?"),
        ('select "a b" from t', "duckdb", "SELECT a b\nFROM t"),
        ("select date_format(d, 'yyyy') from t where d > now() - interval '3' day", "spark",
         "SELECT date_format ( d , ? )\nFROM t\nWHERE d > now ( ) - INTERVAL ? day"),
    ],
)  # fmt: skip
def test_the_text_of_a_statement_has_neither_layout_nor_literals(query, dialect, text):
    assert statement_text(query, dialect) == text


def test_the_settings_decide_about_digests_of_rows(folder, capsys):
    (folder / "govtool.toml").write_text("[spark]\nrow_digests = false\n")
    (folder / "report.sql").write_text("create table copied as select * from orders")
    run()
    (folder / "data" / "orders.csv").write_text("id,customer_id,amount\n5,12,1000\n2,11,30\n1,10,20\n")
    run()
    answer = difference(capsys, "report.sql:copied~1", "report.sql:copied")
    assert answer["verdict"] == "unknown"
    assert "row_digests" in json.dumps(answer["unknown"])


@pytest.mark.parametrize("beside", ["orders.md", "orders.yml"])
def test_the_copy_of_an_input_is_made_of_the_input_and_of_no_file_beside_it(folder, beside):
    (folder / "data" / beside).write_text("about orders")
    run()
    store, commit = head()
    inputs = {one for each in read_history(store, commit).runs for read in each.inputs for one in read.options}
    assert {origin.rpartition("/")[2] for _, origin in inputs} == {"orders.csv", "customers.csv"}
