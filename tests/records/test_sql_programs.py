"""Scripts of SQL and dbt projects, run without Spark and asked about their rows as workflows are."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest

import govtool
from govtool.api.graph import Graph
from govtool.app.records import engines as record_engines
from govtool.app.workflow_runs.programs.recorded import find_recorded_run
from govtool.app.workflow_runs.programs.sql import read_script
from govtool.cli.main import main
from govtool.errors import EngineError, GovtoolError, UsageError
from govtool.render.workflow_runs import render_workflow_runs
from govtool.store import Store

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

VIEWS = "user,page,spent\nann,1,10\nann,2,20\nbob,1,30\ncid,2,5\nbob,3,7\n"
USERS = "name,land\nann,de\nbob,fr\ncid,de\n"
SCRIPT = """-- a report
CREATE OR REPLACE TEMP VIEW big AS SELECT * FROM views WHERE spent > 6;
CREATE TABLE stage USING parquet AS
  SELECT user, sum(spent) AS spent, count(*) AS n FROM big GROUP BY user;
INSERT INTO stage VALUES ('cid', 1, 1);
CREATE TABLE report AS SELECT land, sum(spent) AS total FROM stage JOIN users ON user = name GROUP BY land;
SELECT total, land FROM report WHERE total > 10;
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with inputs and an empty store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "views.csv").write_text(VIEWS)
    (tmp_path / "in" / "users.csv").write_text(USERS)
    Store.init(str(tmp_path / ".govtool"))
    return tmp_path


def ran(folder, text, **options):
    (folder / "report.sql").write_text(text)
    return govtool.run_workflow("report.sql", "in", **options).run


def rows(run, relation):
    """The last content of a relation that a run made."""
    paths = [path for each in run.invocations for name, path in each.outputs if name == relation]
    files = run.relations[paths[-1]].files
    return sorted(
        tuple(row.values()) for file in files for row in pq.read_table(file.uri.removeprefix("file://")).to_pylist()
    )


def tokens(store, run):
    """Tokens of the inputs of a run."""
    at = Store.open(str(store))
    with find_recorded_run(at, at.head("main"), run.id).opened() as (own, files):
        sources = files.layout.sources
        return {path.rpartition("/")[2]: list(files.rows(own.relations[path]).tokens) for path in sources}


def test_a_script_is_no_run_to_compare_but_its_writes_are(folder, capsys):
    ran(folder, SCRIPT)
    assert main(["diff", "report.sql~1", "report.sql"]) == 2
    error = capsys.readouterr().err
    assert "error[usage.ambiguous-run] each write of 'report.sql' is a job of its own: name one of 4" in error
    assert "report.sql:stage~1" in error
    assert "report.sql:report~1" in error


def test_rows_that_may_come_into_a_relation_are_seen_by_what_reads_it(folder):
    """A row moves up into a limit, into a relation that was empty: totals over it are not what they were."""
    text = "CREATE TABLE top AS SELECT spent FROM (SELECT * FROM views ORDER BY page, spent LIMIT 1) WHERE spent > 15;"
    run = ran(folder, text + " CREATE TABLE total AS SELECT max(spent) AS most, count(*) AS n FROM top;")
    assert (rows(run, "top"), rows(run, "total")) == ([], [(None, 0)])
    first = tokens(folder / ".govtool", run)["views.parquet"][0]
    graph = govtool.provenance_graph(f"run:{run.id}")
    answer = graph.delete(first)
    assert answer.gains_possible
    (row,) = answer.relations["total"].rows
    assert row[1].status == "unknown"  # a new run has (20, 1)
    total = next(str(n) for n, d in graph.to_networkx().nodes(data=True) if (d["type"], d["label"]) == ("o", "value"))
    assert graph.depends(total, first).depends == "unknown"
    view = graph.zoom_out("top", "total")
    assert {data["type"] for _, data in view.to_networkx().nodes(data=True)} == {"wi", "m", "i", "o", "zoom"}
    assert view.zoom_in("top", "total").to_networkx().edges == graph.to_networkx().edges


def test_a_list_that_one_statement_sorts_is_in_order_in_the_next(folder):
    """The order of ``collect_list`` alone is not that of a new run, and its first element is not known."""
    lists = "CREATE TABLE {0} AS SELECT page, {1} AS l FROM views GROUP BY page;"
    text = lists.format("sorted", "sort_array(collect_list(spent))") + lists.format("loose", "collect_list(spent)")
    text += "CREATE TABLE both AS SELECT * FROM sorted UNION ALL SELECT page + 10, l FROM loose;"
    text += "".join(
        f"CREATE TABLE of_{name} AS SELECT page, l[0] AS l FROM {name};" for name in ("sorted", "loose", "both")
    )
    run = ran(folder, text)
    answer = govtool.open().workflow_delete(
        run.id,
        [tokens(folder / ".govtool", run)["views.parquet"][0]],
        mode="propagate",
        outputs=["of_sorted", "of_loose", "of_both"],
    )
    found = {
        name: sorted((row.before[0], row.status, row.after) for _, row in relation.rows)
        for name, relation in answer.relations.items()
    }
    kept = [(page, "kept", (page, spent)) for page, spent in ((2, 5), (3, 7), (12, 20), (13, 7))]
    assert found["of_sorted"] == [(1, "recomputed", (1, 30)), *kept[:2]]
    assert found["of_loose"] == [(1, "unknown", None), (2, "kept", (2, 20)), (3, "kept", (3, 7))]
    assert found["of_both"] == [(1, "unknown", None), *kept[:2], (11, "unknown", None), *kept[2:]]


def test_rows_with_instants_are_told_apart(folder):
    """The files have instants of UTC, and DuckDB gives times without a zone."""
    (folder / "in" / "seen.csv").write_text("user,at\nann,2026-01-01 10:00:00\nbob,2026-01-02 11:30:00\n")
    text = "CREATE TABLE days AS SELECT user, date_trunc('day', CAST(at AS TIMESTAMP)) AS day FROM seen;"
    run = ran(folder, text + " CREATE TABLE last AS SELECT user, max(day) AS day FROM days GROUP BY user;")
    for relation in ("days", "last"):
        (path,) = (path for each in run.invocations for name, path in each.outputs if name == relation)
        kind = pq.read_schema(run.relations[path].files[0].uri.removeprefix("file://")).field("day").type
        assert (kind.unit, kind.tz) == ("us", "UTC")
    answer = govtool.open().workflow_delete(
        run.id, [tokens(folder / ".govtool", run)["seen.parquet"][0]], mode="propagate"
    )
    assert {row.status for relation in answer.relations.values() for _, row in relation.rows} == {"deleted", "kept"}
    assert not answer.notes


def test_a_row_that_moves_up_may_have_the_values_of_the_one_that_is_gone(folder):
    run = ran(folder, "CREATE TABLE top AS SELECT 1 AS one FROM (SELECT * FROM views ORDER BY page, spent LIMIT 1);")
    first = tokens(folder / ".govtool", run)["views.parquet"][0]
    (row,) = govtool.provenance_graph(f"run:{run.id}").delete(first).relations["top"].rows
    assert row[1].status == "unknown"  # a new run has the same row, of another record


def test_a_script_is_a_module_a_statement_that_writes(folder):
    run = ran(folder, SCRIPT)
    assert [each.module for each in run.invocations] == ["big", "stage", "stage.2", "report", "query_4"]
    assert [tuple(name for name, *_ in each.inputs) for each in run.invocations][3] == (
        "stage",
        "stage",
        "users.parquet",
    )
    assert rows(run, "report") == [("de", 31), ("fr", 37)]


def test_rows_of_a_script_after_a_deletion_are_those_of_a_run_without_it(folder, capsys):
    run = ran(folder, SCRIPT)
    gone = tokens(folder / ".govtool", run)["views.parquet"][0]  # ann, 1, 10
    assert main(["whatif", "delete", gone, "--run", "report.sql", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)["relations"]
    after = {tuple(row["after"]) for row in answer["report"]["tuples"]}
    (folder / "in" / "views.csv").write_text(VIEWS.replace("ann,1,10\n", ""))
    assert after == set(rows(ran(folder, SCRIPT), "report")) == {("de", 21), ("fr", 37)}


def test_the_commands_that_ask_a_workflow_ask_a_script(folder, capsys):
    assert main(["workflow", "list"]) == 2  # the store is empty
    (folder / "report.sql").write_text(SCRIPT)
    assert main(["workflow", "run", "report.sql", "--inputs", "in"]) == 0
    assert "query_4" in capsys.readouterr().out
    assert main(["workflow", "show", "report.sql", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["modules"]["stage"] == 1
    assert main(["zoom", "out", "--run", "report.sql", "-m", "big", "-m", "stage"]) == 0
    assert main(["trace", "back", "report", "--where", "land = 'de'"]) == 0
    assert "exact" in capsys.readouterr().out


def test_a_condition_on_a_computed_value_decides_what_a_row_depends_on(folder, capsys):
    """The graph has no conditions: only the run's plans say whether a value still meets one."""
    run = ran(
        folder, "CREATE TABLE big AS SELECT user, sum(spent) AS s FROM views GROUP BY user HAVING sum(spent) > 15;"
    )
    graph = govtool.provenance_graph(f"run:{run.id}")
    views = tokens(folder / ".govtool", run)["views.parquet"]
    found = {n: graph.depends("big[ann]", views[n]) for n in (0, 1)}
    assert [(found[n].depends, [each.label for each in found[n].necessary]) for n in found] == [
        (False, []),
        (True, [views[1]]),
    ]
    assert graph.depends(str(found[0].node), views[0]).depends == "unknown"
    assert main(["depends", "big[ann]", "--run", "report", "--on", views[0]]) == 0
    out = capsys.readouterr().out
    assert f"does big[ann] (node {found[0].node}) depend on" in out
    assert "it stays; govtool whatif delete shows which of its values change" in out
    assert "no record is known to be necessary alone" in out


def test_a_row_of_a_script_has_the_provenance_of_the_run(folder, capsys):
    run = ran(folder, SCRIPT)
    views = tokens(folder / ".govtool", run)["views.parquet"]
    chances = folder / "prob.json"
    chances.write_text(json.dumps(dict.fromkeys(views, 0.5)))
    words = ["--run", "report.sql", "--as", "which,where", "-f", "json"]
    assert main(["why", "stage[ann]", *words]) == 0
    (row,) = [each for each in json.loads(capsys.readouterr().out)["tuples"] if each["present"]]
    assert (row["values"], set(row["which"])) == (["ann", 30, 2], set(views[:2]))
    assert row["where"]["user"] == [f"{token}.user" for token in sorted(views[:2])]
    assert main(["why", "1/stage", *words]) == 0
    assert len(json.loads(capsys.readouterr().out)["tuples"]) == 2
    assert main(["why", "stage", *words]) == 2
    assert "stage was written 2 times" in capsys.readouterr().err
    assert main(["why", "stage[land=de]", *words]) == 2
    assert "no column land" in capsys.readouterr().err
    assert main(["why", "report[land=de]", *words]) == 0


LIMITED = SCRIPT + "CREATE TABLE best AS SELECT user FROM stage ORDER BY spent DESC LIMIT 1;"


def test_a_limit_of_a_script_is_evaluated_again(folder, capsys):
    run = ran(folder, LIMITED)
    gone = tokens(folder / ".govtool", run)["views.parquet"][2]  # bob, 1, 30
    words = ["whatif", "delete", gone, "--run", "report.sql", "--outputs", "best", "--outputs", "stage", "-f", "json"]
    for mode in ("auto", "replay"):
        assert main([*words, "--mode", mode]) == 0
        answer = json.loads(capsys.readouterr().out)
        best, stage = answer["relations"]["best"], answer["relations"]["stage"]
        assert [(row["before"], row["status"]) for row in best["tuples"]] == [(["bob"], "deleted")]
        assert best["gains"] == [["ann"]]
        assert {row["status"] for row in stage["tuples"]} == {"kept", "recomputed"}
    assert main([*words, "--program", "other.py"]) == 2
    assert "leave --program out" in capsys.readouterr().err


def test_a_view_shows_what_was_inserted_since(folder):
    text = """
    CREATE TABLE t AS SELECT spent FROM views WHERE spent > 20;
    CREATE VIEW v (s) AS SELECT spent + 1 FROM t;
    CREATE TABLE a AS SELECT s FROM v;
    INSERT INTO t SELECT spent FROM views WHERE spent = 5;
    CREATE TABLE b AS SELECT s FROM v;
    INSERT OVERWRITE TABLE t SELECT 1;
    CREATE TABLE c AS SELECT s FROM v
    """
    run = ran(folder, text)
    assert (rows(run, "a"), rows(run, "b"), rows(run, "c")) == ([(31,)], [(6,), (31,)], [(2,)])
    assert [each.number for each in run.invocations if each.module == "v"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("SELECT 1;\nDELETE FROM views", "DELETE is not run here", "2:1"),
        ("MERGE INTO views USING users ON true WHEN MATCHED THEN DELETE", "MERGE", "1:1"),
        ("CREATE TABLE t (a int)", "a column with a type", "1:1"),
        ("CREATE TABLE t USING parquet", "without AS", "1:1"),
        ("CREATE FUNCTION f AS 'x'", "CREATE FUNCTION", "1:1"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "WITH … INSERT", "1:1"),
        ("INSERT INTO nothing SELECT 1", "no table nothing", "1:1"),
        ("CREATE TABLE views AS SELECT 1", "there already", "1:1"),
        ("CREATE TABLE t AS SELECT 1 AS a, 2 AS A", "one name", "1:1"),
        ("CREATE TABLE t AS SELECT 'x' AS a; INSERT INTO t SELECT 1", "CAST it", "1:36"),
        ("DROP TABLE t", "no relation t", "1:1"),
        ("CREATE TABLE t AS\nSELECT nothing FROM views", "nothing", "2:8"),
        ("CREATE TABLE t AS SELECT * FROM vews", "vews", "1:33"),
        ("CREATE TABLE `../../x` AS SELECT 1", "cannot be the name", "1:1"),
        (";;", "no statements", None),
    ],
)
def test_what_is_not_run_is_refused_with_its_place(folder, text, message, place):
    with pytest.raises(UsageError, match=message) as found:
        ran(folder, text)
    assert (found.value.location or "").endswith(f"report.sql:{place}" if place else "report.sql")
    assert not any(each.is_dir() and "report.sql-" in each.name for each in folder.rglob("*"))  # nothing is left


def test_a_statement_that_fails_leaves_nothing(folder, monkeypatch):
    every = record_engines.engines
    monkeypatch.setattr(
        record_engines, "engines", lambda session: every(session)[:1]
    )  # DuckDB, as Spark takes long to start
    with pytest.raises(EngineError, match="t could not be made"):
        ran(folder, "CREATE TABLE u AS SELECT 1 AS a; CREATE TABLE t AS SELECT CAST(user AS int) AS n FROM views")
    assert Store.open(str(folder / ".govtool")).head("main") is None


def test_options_of_the_other_kind_are_refused(folder, capsys):
    (folder / "report.sql").write_text(SCRIPT)
    for words in (
        ["report.sql", "--untracked"],
        ["report.sql", "--executions", "2"],
        ["flow.py", "--dialect", "duckdb"],
    ):
        assert main(["workflow", "run", *words, "--inputs", "in"]) == 2
    for options in ({"executions": 2}, {"mode": "eager"}, {"mode": "untracked"}, {"mode": "row"}, {"spark": object()}):
        with pytest.raises(GovtoolError, match=r"applies only to workflows in Python|no mode row"):
            govtool.run_workflow("report.sql", "in", **options)
    with pytest.raises(UsageError, match="--dialect applies only to SQL"):
        govtool.run_workflow(govtool.Workflow("flow", {}, {}), "in", dialect="duckdb")
    with pytest.raises(UsageError, match="there is no such file"):
        govtool.run_workflow("flow.py:other", "in")
    assert main(["workflow", "run", "report.sql", "--inputs", "nowhere"]) == 2
    assert main(["workflow", "run", "nothing.sql", "--inputs", "in"]) == 2
    assert "internal" not in capsys.readouterr().err


def test_statements_are_cut_at_semicolons_outside_of_texts():
    found = read_script("SELECT ';' AS a; -- ;\nINSERT INTO `A`.b (x, y) VALUES (1, 2)", "spark")
    assert [(each.kind, each.target, each.columns, each.location) for each in found] == [
        ("query", "", (), "1:1"), ("append", "a.b", ("x", "y"), "2:1"),
    ]  # fmt: skip
    assert found[1].query.splitlines()[1].rstrip().endswith("SELECT * FROM VALUES (1, 2)")


# ---- dbt --------------------------------------------------------------------------------------------------------------


def node(name, kind="model", sql=None, depends=(), **config):
    return {
        "resource_type": kind, "name": name, "alias": name, "identifier": name, "unique_id": f"{kind}.shop.{name}",
        "database": "dwh", "schema": "main", "language": "sql", "compiled_code": sql,
        "relation_name": None if config.get("materialized") == "ephemeral" else f'"dwh"."main"."{name}"',
        "original_file_path": f"seeds/{name}.csv" if kind == "seed" else f"models/{name}.sql",
        "config": {"materialized": kind, **config}, "depends_on": {"nodes": list(depends)},
    }  # fmt: skip


def project(folder, *nodes, incremental=None):
    """A dbt project with seeds and models; ``incremental`` is its compiled SQL, which changes when it has run."""
    (folder / "shop" / "target").mkdir(parents=True, exist_ok=True)
    (folder / "shop" / "seeds").mkdir(exist_ok=True)
    (folder / "shop" / "seeds" / "users.csv").write_text(USERS)
    every = {each["unique_id"]: each for each in nodes}
    manifest = {
        "metadata": {"adapter_type": "duckdb", "project_name": "shop"},
        "nodes": {key: each for key, each in every.items() if each["resource_type"] != "source"},
        "sources": {key: each for key, each in every.items() if each["resource_type"] == "source"},
    }
    (folder / "shop" / "target" / "manifest.json").write_text(json.dumps(manifest))
    return str(folder / "shop")


def shop(folder, log='SELECT "user", spent FROM "dwh"."main"."views" WHERE page = 1', **config):
    return project(
        folder,
        node("views", "source"),
        node("users", "seed"),
        node("report", sql='SELECT land, sum(spent) AS total FROM "dwh"."main"."stage" s JOIN "dwh"."main"."users" u '
             "ON s.who = u.name GROUP BY 1", depends=["model.shop.stage", "seed.shop.users"], materialized="table"),
        node("stage", sql='WITH __dbt__cte__large AS (SELECT * FROM "dwh"."main"."views" WHERE spent > 6) '
             'SELECT "user" AS who, spent FROM __dbt__cte__large', depends=["model.shop.large"], materialized="view"),
        node("large", sql="SELECT 1", depends=["source.shop.views"], materialized="ephemeral"),
        node("log", sql=log, depends=["source.shop.views"], materialized="incremental", **config),
        node("old", "snapshot", sql="SELECT 1", depends=["model.shop.report"]),
    )  # fmt: skip


def test_a_dbt_project_is_a_module_a_model(folder, capsys):
    run = govtool.run_workflow(shop(folder), "in").run
    assert {each.module: [name for name, *_ in each.inputs] for each in run.invocations} == {
        "stage": ["views.parquet"], "report": ["stage", "users.parquet"], "log": ["views.parquet"],
    }  # fmt: skip
    assert rows(run, "report") == [("de", 30), ("fr", 37)]
    assert main(["workflow", "run", "shop/target", "--inputs", "in"]) == 0
    assert "snapshot.shop.old is not run" in capsys.readouterr().err
    gone = tokens(folder / ".govtool", run)["users.parquet"][1]  # bob
    answer = govtool.provenance_graph(f"run:{run.id}").delete(gone).to_dict()["relations"]
    assert [(row["before"], row["status"]) for row in answer["report"]["tuples"] if row["status"] != "kept"] == [
        (["fr", 37], "deleted")
    ]


def test_a_model_whose_rows_are_given_is_not_run(folder):
    place = project(
        folder,
        node("days", sql="SELECT power(2, 3) AS day", materialized="table"),
        node("after", sql='SELECT day FROM "dwh"."main"."days" WHERE day > 1', depends=["model.shop.days"], materialized="table"),
    )  # fmt: skip
    with pytest.raises(UsageError, match="POWER") as refused:
        govtool.run_workflow(place, "in")
    assert refused.value.hint.startswith("days.csv or days.parquet in --inputs")
    (folder / "in" / "days.csv").write_text("day\n1\n2\n")
    run = govtool.run_workflow(place, "in").run
    assert [(each.module, [name for name, *_ in each.inputs]) for each in run.invocations] == [
        ("after", ["days.parquet"])
    ]
    assert rows(run, "after") == [(2,)]


@pytest.mark.parametrize("name", ["../../made", "/tmp/made", "..", "inputs", "Inputs"])
def test_what_a_script_makes_lies_in_a_folder_of_its_own(folder, name):
    with pytest.raises(UsageError, match="cannot be"):
        ran(folder, f"CREATE TABLE `{name}` AS SELECT name FROM users")
    assert not list(folder.glob("*.state/*/*"))


@pytest.mark.parametrize("way", ["../outside.csv", "absolute", "seeds/link.csv"])
def test_a_seed_lies_within_its_project(folder, way):
    shop(folder)
    outside = folder / "outside.csv"
    outside.write_text(USERS)
    (folder / "shop" / "seeds" / "link.csv").symlink_to(outside)
    manifest = folder / "shop" / "target" / "manifest.json"
    body = json.loads(manifest.read_text())
    body["nodes"]["seed.shop.users"]["original_file_path"] = str(outside) if way == "absolute" else way
    manifest.write_text(json.dumps(body))
    with pytest.raises(UsageError, match="outside of the project"):
        govtool.run_workflow("shop/target", "in")
    assert not list(folder.glob("*.state/*/*"))


@pytest.mark.parametrize(
    ("key", "value"), [("config", 1), ("original_file_path", "a" * 5000), ("original_file_path", "/a\0b")]
)
def test_a_manifest_of_odd_values_is_read(folder, key, value):
    shop(folder)
    manifest = folder / "shop" / "target" / "manifest.json"
    body = json.loads(manifest.read_text())
    body["nodes"]["seed.shop.users"][key] = value
    manifest.write_text(json.dumps(body))
    assert govtool.run_workflow("shop/target", "in").run.invocations


def test_kinds_of_nodes_that_are_no_texts_are_left_out(folder):
    shop(folder)
    manifest = folder / "shop" / "target" / "manifest.json"
    body = json.loads(manifest.read_text())
    body["nodes"]["snapshot.shop.old"]["resource_type"] = []
    manifest.write_text(json.dumps(body))
    assert govtool.run_workflow("shop/target", "in").run.invocations


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_killed_run_leaves_the_state_of_the_last_committed_one(folder, monkeypatch, is_committed):
    """Killed behind the commit, the run is in the store, and its state counts; before it, neither."""
    from govtool.app.workflow_runs.programs import run as runs

    place, commit = shop(folder), runs._commit

    def killed(*arguments):
        if is_committed:
            commit(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(runs, "_commit", killed)
        with pytest.raises(KeyboardInterrupt):
            govtool.run_workflow(place, "in")
    assert list(folder.rglob("tables.next.json"))
    store = Store.open(str(folder / ".govtool"))
    assert (store.head("main") is not None) == is_committed
    place = shop(folder, log='SELECT "user", spent FROM "dwh"."main"."views" WHERE page = 2')
    last = govtool.run_workflow(place, "in").run
    before = [("ann", 10), ("bob", 30)] if is_committed else []
    assert rows(last, "log") == sorted([*before, ("ann", 20), ("cid", 5)])
    assert not list(folder.rglob("tables.next.json"))


@pytest.mark.parametrize("text", ["{", "[]", '{"source": "s", "tables": {}}'])
def test_a_state_that_cannot_be_read_is_refused(folder, text):
    govtool.run_workflow(shop(folder), "in")
    (tables,) = folder.rglob("tables.json")
    tables.with_name("tables.next.json").write_text(text)
    with pytest.raises(UsageError, match="does not say what the last run left"):
        govtool.run_workflow(shop(folder), "in")


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, [("ann", 10), ("ann", 20), ("bob", 30), ("cid", 5)]),
        ({"unique_key": "user"}, [("ann", 20), ("bob", 30), ("cid", 5)]),
        ({"unique_key": ["user", "spent"]}, [("ann", 10), ("ann", 20), ("bob", 30), ("cid", 5)]),
        ({"unique_key": "user", "incremental_strategy": "append"}, [("ann", 10), ("ann", 20), ("bob", 30), ("cid", 5)]),
        ({"unique_key": "user", "full_refresh": True, "on_schema_change": "fail"}, [(5, "cid"), (20, "ann")]),
    ],
)
def test_an_incremental_model_has_state(folder, config, wanted):
    first = govtool.run_workflow(shop(folder, **config), "in").run
    assert rows(first, "log") == [("ann", 10), ("bob", 30)]
    later = 'SELECT spent, "user" FROM "dwh"."main"."views" WHERE page = 2 AND spent > (SELECT min(spent) - 100 FROM "dwh"."main"."log")'
    if config.get("full_refresh"):
        later = later.partition(" AND ")[0]
    second = govtool.run_workflow(shop(folder, later, **config), "in").run
    assert rows(second, "log") == wanted
    if config.get("full_refresh"):
        return  # nothing of the last run is read
    (log,) = [each for each in second.invocations if each.module == "log"]
    paths = {name.rpartition("/")[2]: path for name, path, _ in log.inputs}
    assert sorted(paths) == ["log", "views.parquet"]
    assert first.id in paths["log"]  # what the last run left


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"unique_key": "user", "merge_update_columns": ["spent"]}, "merge_update_columns"),
        ({"unique_key": "user", "incremental_predicates": ["spent > 7"]}, "incremental_predicates"),
        ({"unique_key": "\"user\" || 'a'"}, "unique_key"),
        ({"unique_key": "user, spent"}, "unique_key user, spent"),
        ({"on_schema_change": "append_new_columns"}, r"columns \(user, page\), the table \(user, spent\)"),
    ],
)
def test_settings_that_change_which_rows_are_left_are_refused(folder, config, message):
    govtool.run_workflow(shop(folder), "in")
    later = 'SELECT "user", page FROM "dwh"."main"."views"' if "on_schema_change" in config else None
    with pytest.raises(UsageError, match=message):
        govtool.run_workflow(shop(folder, *filter(None, [later]), **config), "in")


def test_the_default_strategy_is_that_of_the_adapter(folder):
    for adapter, wanted in {"spark": [("ann", 10), ("ann", 20), ("cid", 5)], "trino": None}.items():
        shutil.rmtree(folder / "shop.state", ignore_errors=True)
        made = None
        for page in (1, 2):
            place = shop(folder, f"SELECT user, spent FROM dwh.main.views WHERE page = {page}", unique_key="user")
            manifest = folder / "shop" / "target" / "manifest.json"
            text = manifest.read_text().replace('"adapter_type": "duckdb"', f'"adapter_type": "{adapter}"')
            body = json.loads(text.replace('\\"', "`") if adapter == "spark" else text)
            body["nodes"] = {"model.shop.log": body["nodes"]["model.shop.log"]}
            manifest.write_text(json.dumps(body))
            if page == 2 and wanted is None:
                with pytest.raises(UsageError, match="default strategy of trino"):
                    govtool.run_workflow(place, "in")
                return
            made = govtool.run_workflow(place, "in").run
        assert rows(made, "log") == sorted([*wanted, ("bob", 30)])


def test_hooks_are_named(folder, capsys):
    place = shop(folder, **{"post-hook": [{"sql": "delete from log", "transaction": True}]})
    assert main(["workflow", "run", place, "--inputs", "in"]) == 0
    assert "model.shop.log: its post-hook is not run" in " ".join(capsys.readouterr().err.split())


def test_a_subject_is_erased_from_every_run_of_a_project_by_the_name_of_its_relation(folder):
    first = govtool.run_workflow(shop(folder), "in").run
    later = 'SELECT "user", spent FROM "dwh"."main"."views" WHERE page = 2'
    second = govtool.run_workflow(shop(folder, later), "in").run
    plan = govtool.open().erase_plan("views.user=ann", no_subject="users", all_runs=True).to_dict()
    gone = {each["dataset"].partition("shop.state/")[2]: len(each["delete"]) for each in plan["datasets"]}
    assert {name.partition("/")[0] for name in gone} == {first.id, second.id}
    own = {"inputs/views.parquet": 2, "stage": 2, "report": 1}  # of her land, cid spent too little
    assert gone == {
        **{f"{first.id}/{name}": rows for name, rows in {**own, "log": 1}.items()},
        **{f"{second.id}/{name}": rows for name, rows in {**own, "log": 2}.items()},
    }
    assert not plan["not_searched"]


def test_state_is_of_one_project_however_it_is_named(folder):
    govtool.run_workflow(shop(folder), "in")
    second = govtool.run_workflow(f"{shop(folder)}/target", "in").run
    assert any(name.endswith("/log") for each in second.invocations for name, *_ in each.inputs)
    manifest = folder / "shop" / "target" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"project_name": "shop"', '"project_name": "bank"'))
    with pytest.raises(UsageError, match="this state is of workflow shop, not of bank"):
        govtool.run_workflow("shop", "in")


def test_what_of_dbt_is_not_run_is_refused(folder):
    reads_itself = 'SELECT * FROM "dwh"."main"."log"'
    with pytest.raises(UsageError, match="reads itself"):
        govtool.run_workflow(shop(folder, reads_itself), "in")
    govtool.run_workflow(shop(folder), "in")
    with pytest.raises(UsageError, match="microbatch"):
        govtool.run_workflow(shop(folder, incremental_strategy="microbatch"), "in")
    with pytest.raises(UsageError, match="unknown relation") as refused:
        govtool.run_workflow(shop(folder))
    assert refused.value.hint.startswith("--inputs FOLDER")
    with pytest.raises(UsageError, match="not compiled"):
        govtool.run_workflow(project(folder, node("a", materialized="table")), "in")
    place = shop(folder)
    for file in (folder / "shop" / "seeds" / "users.csv", folder / "in" / "users.csv"):
        file.unlink()
    shutil.rmtree(folder / "shop.state")
    with pytest.raises(UsageError, match="users"):
        govtool.run_workflow(place, "in")


def forgotten(folder, text):
    """A run whose first write has no private values any more."""
    run = ran(folder, text)
    assert main(["store", "forget", "--run", run.id, "-q"]) == 0
    return run


def test_a_write_whose_private_values_were_forgotten_still_has_its_inputs(folder):
    run = forgotten(folder, SCRIPT)
    store = Store.open(str(folder / ".govtool"))
    listed = Graph(store, store.head("main")).workflow_runs()
    assert [each.get("forgotten") for each in listed.to_dict()["runs"]] == [True]
    assert render_workflow_runs("table", listed).summary.endswith(f"so that rows cannot be traced: {run.id}")
    found = find_recorded_run(store, store.head("main"), run.id).run
    names = {each.module: {name for name, *_ in each.inputs} for each in found.invocations}
    assert {module: names[module] for module in ("big", "stage", "report")} == {
        "big": {"views.parquet"},
        "stage": {"big"},
        "report": {"stage", "users.parquet"},
    }
    first = next(each for each in tokens(folder / ".govtool", run)["views.parquet"] if each.endswith("/0"))
    answer = govtool.provenance_graph(f"run:{run.id}").delete(first).to_dict()["relations"]
    assert {row["status"] for row in answer["report"]["tuples"]} == {"unknown"}


def test_what_cannot_be_searched_any_more_is_unknown_and_not_free_of_the_subject(folder):
    run = forgotten(folder, SCRIPT)
    plan = govtool.open().erase_plan("views.parquet.user=ann", run=run.id)
    assert not plan.is_certain
    assert "private values" in next(each.why for each in plan.not_searched if each.what.endswith("views.parquet"))
    assert {each.dataset.rpartition("/")[2] for each in plan.datasets if each.unknown} >= {"big", "stage", "report"}
