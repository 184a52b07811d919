"""``govtool trace back|forward`` and the methods of the same questions, over a store with records."""

from __future__ import annotations

import csv
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import BY_LAND, USERS, VIEWS

import govtool
from govtool.cli.main import main
from govtool.errors import AmbiguousNameError, EvidenceError, UnknownNameError, UsageError
from govtool.model.run import RunOutput
from govtool.render.trace import render_trace

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "trace-1.json").read_text(encoding="utf-8"))
VIEW_COLUMNS = {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}


@pytest.fixture
def run(shop, capsys):
    """Run a command in the shop: exit code, stdout, stderr."""

    def command(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def back(run, *words):
    code, out, err = run("trace", "back", *words, "--format", "json")
    assert code in (0, 3), err
    answer = json.loads(out)
    jsonschema.validate(answer, SCHEMA)
    return code, answer


def forward(run, *words):
    code, out, err = run("trace", "forward", *words, "--format", "json")
    assert code in (0, 3), err
    answer = json.loads(out)
    jsonschema.validate(answer, SCHEMA)
    return code, answer


def counts(groups):
    return {group["dataset"].rpartition("/")[2]: group["count"] for group in groups}


def test_back_to_the_rows_of_both_inputs(run):
    code, answer = back(run, "report", "--where", "land = 'de'")
    assert code == 0
    assert (answer["selected"], answer["run"]) == (1, "app-1/0")
    assert counts(answer["inputs"]) == {"views": 2, "users": 1}
    views = answer["inputs"][0]
    assert [(Path(row["_file"]).name, row["_row"]) for row in views["rows"]] == [
        ("part-0.parquet", 2),
        ("part-1.parquet", 0),
    ]
    assert {step["exactness"] for step in answer["steps"]} == {"exact"}


@pytest.mark.parametrize("place", ["report", "./report", "{folder}/report", "file://{folder}/report"])
def test_an_output_is_named_by_its_end_its_path_or_its_id(run, shop, place):
    _, answer = back(run, place.format(folder=shop.folder), "--where", "land = 'de'")
    assert counts(answer["inputs"]) == {"views": 2, "users": 1}


def test_a_computed_column_chooses_rows(run):
    _, answer = back(run, "report", "--where", "total >= 60 AND n = 2")
    assert counts(answer["inputs"]) == {"views": 2, "users": 1}


@pytest.mark.parametrize(
    ("where", "found"),
    [("isnan(v)", {1, 3}), ("NOT isnan(v)", {2, 4}), ("isnan(n) OR n = 4", {4}), ("isnan(v) AND n > 1", {3})],
)
def test_values_that_are_no_numbers_choose_rows(run, shop, where, found):
    """As in Spark, NULL is no NaN."""
    shop.table(
        "cells", {"n": pa.int64(), "v": pa.float64()}, [(1, float("nan")), (2, None)], [(3, float("nan")), (4, 0.5)]
    )
    shop.commit(shop.run("SELECT n, v FROM cells", "kept", "cells", run="app-2/0"))
    _, answer = back(run, "kept", "--where", where)
    assert {row["n"] for each in answer["inputs"] for row in each["rows"]} == found


def test_the_written_rows_are_asked_where_another_evaluation_chooses_others(run, shop, capsys):
    sql = "SELECT user, page, spent FROM views ORDER BY page LIMIT 1"
    write = shop.run(sql, "top", "views", run="app-2/0")
    place = shop.folder / "top" / "out.parquet"
    columns = zip(("user", "page", "spent"), VIEWS[-1], strict=True)  # a row that no evaluation of the plan gives
    pq.write_table(pa.table({name: [value] for name, value in columns}), place)
    shop.commit(replace(write, output_files=shop.relation(place.parent)))
    words = ["trace", "back", "top", "--where", "user = 'eve'"]
    assert main(words) == 3
    assert "does not give these rows again" in capsys.readouterr().err
    assert main([*words[:-1], "user IN ('ann', 'bob')"]) == 2
    assert "no row of top meets" in capsys.readouterr().err


def test_a_limit_without_ties_is_traced_by_the_written_rows(run, shop):
    sql = "SELECT user, page, spent FROM views ORDER BY spent DESC NULLS LAST, page LIMIT 3"
    shop.commit(shop.run(sql, "top", "views", run="app-2/0"))
    _, answer = back(run, "top", "--where", "user = 'ann'")
    assert counts(answer["inputs"]) == {"views": 1}
    assert answer["inputs"][0]["exactness"] == "exact"


def test_forward_to_rows_of_the_written_files(run):
    code, answer = forward(run, "views", "--where", "page = 1")
    assert code == 0
    assert answer["selected"] == 3
    assert answer["output"].endswith("/views")
    (group,) = answer["outputs"]
    assert group["dataset"].endswith("/report")
    assert sorted(row["land"] for row in group["rows"]) == ["de", "fr"]
    written = pq.read_table("report").to_pylist()
    assert [written[row["_row"]]["land"] for row in group["rows"]] == [row["land"] for row in group["rows"]]


def test_forward_from_what_no_result_has(run):
    code, answer = forward(run, "views", "--where", "user = 'eve'")
    assert code == 0
    assert answer["outputs"] == [] or answer["outputs"][0]["count"] == 0


def test_forward_through_a_window_is_exact_where_no_row_that_is_reached_ties(run, shop):
    frame = "PARTITION BY user ORDER BY page ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
    sql = f"SELECT user, page, sum(spent) OVER ({frame}) AS s FROM views"
    shop.commit(shop.run(sql, "sums", "views", run="app-2/0"))
    _, answer = forward(run, "views", "--where", "user = 'ann' AND page = 1", "--run", "app-2/0")
    (group,) = answer["outputs"]
    assert ([(row["page"], row["s"]) for row in group["rows"]], group["exactness"]) == ([(1, 10), (2, 30)], "exact")
    _, answer = forward(run, "views", "--where", "user = 'bob'", "--run", "app-2/0")
    (group,) = answer["outputs"]
    assert (group["count"], group["exactness"]) == (2, "superset")
    assert "rows tie" in group["why"]


def test_one_step_stops_at_the_group(run):
    _, answer = back(run, "report", "--where", "land = 'de'", "--step")
    assert [(group["dataset"], group["count"]) for group in answer["between"]] == [("aggregate", 2)]
    assert answer["inputs"] == []
    _, answer = forward(run, "views", "--where", "page = 1", "--step")
    assert [(group["dataset"], group["count"]) for group in answer["between"]] == [("aggregate", 3)]


def test_counts_are_whole_where_rows_are_cut(run):
    _, answer = back(run, "report", "--where", "true", "--limit", "1")
    assert [(group["count"], len(group["rows"]), group["truncated"]) for group in answer["inputs"]] == [
        (4, 1, True),
        (2, 1, True),
    ]
    code, out, _ = run("trace", "back", "report", "--where", "true", "--show", "1")
    assert code == 0
    assert "3 more rows (--show N)" in out


def test_the_plan_is_verified_against_the_written_rows(run):
    code, answer = back(run, "report", "--where", "land = 'de'", "--verify")
    assert (code, answer["verified"]) == (0, True)


def test_a_plan_that_gives_other_rows_is_not_verified(run, shop):
    write = shop.run("SELECT user, page FROM views", "pages", "views", run="app-2/0")
    other = shop.plan("SELECT user, page + 1 AS page FROM views", "views")
    from dataclasses import replace

    shop.commit(replace(write, plan=other))
    code, out, _ = run("trace", "back", "pages", "--where", "user = 'ann'", "--verify")
    assert code == 3
    assert "NOT VERIFIED" in out


def test_ids_are_tokens_one_a_line(run, shop):
    code, out, _ = run("trace", "back", "report", "--where", "land = 'de'", "--ids")
    assert code == 0
    tokens = [govtool.model.token.parse_token(line) for line in out.splitlines()]
    assert sorted((token.dataset.rpartition("/")[2], token.file, token.row) for token in tokens) == [
        ("users", 0, 1),
        ("views", 0, 2),
        ("views", 1, 0),
    ]
    code, out, _ = run("trace", "forward", "views", "--where", "page = 1", "--ids")
    assert len(out.splitlines()) == 2


def test_rows_as_csv_jsonl_and_parquet(run, tmp_path):
    code, out, _ = run("trace", "back", "report", "--where", "land = 'de'", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(row["user"], row["spent"], row["land"]) for row in rows] == [("bob", "30", "")] * 2 + [("", "", "de")]
    code, out, _ = run("trace", "back", "report", "--where", "land = 'de'", "--format", "jsonl")
    assert [json.loads(line)["part"] for line in out.splitlines()] == ["input"] * 3
    file = tmp_path / "rows.parquet"
    assert run("trace", "back", "report", "--where", "land = 'de'", "-o", file)[:2] == (0, "")
    table = pq.read_table(file)
    assert table.num_rows == 3
    assert table.schema.field("spent").type == pa.int64()


def test_a_table_at_eighty_columns_names_steps_and_rows(run):
    code, out, err = run("trace", "back", "report", "--where", "land = 'de'")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[2].split() == ["step", "rows", "trace"]
    assert [line.split() for line in lines[3:5]] == [["output", "1", "exact"], ["aggregate", "2", "exact"]]
    assert "1 row selected → 3 rows in 2 places · run app-1/0 · DuckDB" in lines
    assert " 0/2     bob      1     30" in lines


def test_a_write_that_failed_is_named_and_not_said_to_lack_records(run, shop):
    lost = replace(shop.runs[-1], id="app-3/0", status="failed", outputs=(RunOutput("file:///data/lost"),))
    shop.runs.append(lost)
    shop.commit(shop.run("SELECT land FROM users", "report", "users", run="app-4/0", part="new"))
    code, _, err = run("trace", "back", "/data/lost", "--where", "land = 'de'")
    assert code == 2
    assert "run app-3/0 failed" in err
    assert "govtool show app-3/0" in err


# ---- which run ----------------------------------------------------------------------------------------


def test_the_run_is_found_by_the_files_that_are_there_not_by_time(run, shop):
    kept = {file.name: file.read_bytes() for file in (shop.folder / "report").iterdir()}
    times = {file.name: file.stat() for file in (shop.folder / "report").iterdir()}
    import os

    (shop.folder / "report" / "out.parquet").unlink()
    shop.commit(shop.run("SELECT land, 1 AS total, 2 AS n FROM users", "report", "users", run="app-2/0", part="new"))
    assert back(run, "report", "--where", "land = 'de'")[1]["run"] == "app-2/0"
    (shop.folder / "report" / "new.parquet").unlink()
    for name, data in kept.items():
        file = shop.folder / "report" / name
        file.write_bytes(data)
        os.utime(file, ns=(times[name].st_atime_ns, times[name].st_mtime_ns))
    assert back(run, "report", "--where", "land = 'de'")[1]["run"] == "app-1/0"


@pytest.mark.parametrize("is_whole", [True, False])
def test_several_writes_that_fit_are_listed(run, shop, is_whole):
    other = shop.folder / "report" / "once-more.parquet"
    other.write_bytes((shop.folder / "report" / "out.parquet").read_bytes())
    shop.commit(shop.run("SELECT land, 1 AS total, 2 AS n FROM users", "report", "users", run="app-2/0", part="more"))
    if not is_whole:  # of two files that the last write left, one is gone
        other.unlink()
    code, _, err = run("trace", "back", "report", "--where", "land = 'de'")
    assert code == 2
    assert "usage.ambiguous-run" in err
    assert "app-1/0" in err
    assert "app-2/0" in err
    assert back(run, "report", "--where", "land = 'de'", "--run", "app-1")[1]["run"] == "app-1/0"
    assert back(run, "report", "--where", "land = 'de'", "--run", "job.py → out~1")[1]["run"] == "app-1/0"


def test_of_several_writes_the_time_and_the_rows_that_meet_the_condition_are_named(run, shop):
    shop.commit(shop.run("SELECT land, 1 AS total, 2 AS n FROM users", "report", "users", run="app-2/0", part="more"))
    _, _, err = run("trace", "back", "report", "--where", "total > 20")
    first, second = (line for line in err.splitlines() if "→" in line)
    assert first.endswith("2 rows meet it")
    assert second.endswith("0 rows meet it")
    assert "choose one: --run app-1/0" in err
    _, _, err = run("trace", "back", "report", "--where", "no_such > 20")
    assert "meet it" not in err
    assert "choose one: --run app-2/0" in err


def test_an_application_with_several_writes_is_narrowed_by_the_output(run, shop):
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-1/1"))
    with pytest.raises(AmbiguousNameError) as error:
        govtool.open().records(run="app-1")
    assert [name.partition(" ")[0] for name in error.value.nearest] == ["app-1/0", "app-1/1"]
    assert back(run, "lands", "--where", "land = 'fr'", "--run", "app-1")[1]["run"] == "app-1/1"


def test_of_many_writes_the_last_are_listed_as_the_hint_names_the_last(shop):
    parts = [f"part{n:02}" for n in range(22)]
    sql = "SELECT DISTINCT land FROM users"
    shop.commit(*(shop.run(sql, "lands", "users", run=f"app-2/{n}", part=part) for n, part in enumerate(parts)))
    with pytest.raises(AmbiguousNameError) as error:
        govtool.open().records("lands")
    assert [name.partition(" ")[0] for name in error.value.nearest] == [f"app-2/{n}" for n in range(2, 22)]
    assert error.value.hint == "choose one: --run app-2/21"


def test_a_script_is_its_last_application(run, shop):
    writes = [shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-1/1")]
    writes.append(shop.run("SELECT DISTINCT name FROM users", "names", "users", run="app-2/0"))
    shop.runs[:] = [replace(each, job=f"job.py:{each.outputs[0].dataset}") for each in shop.runs]
    shop.commit(*writes)
    assert govtool.open().records(run="job.py").lineage.run == "app-2/0"
    assert govtool.open().records(run="run:job.py").lineage.run == "app-2/0"
    with pytest.raises(AmbiguousNameError) as error:
        govtool.open().records(run="job.py~1")
    assert [name.partition(" ")[0] for name in error.value.nearest] == ["app-1/0", "app-1/1"]
    assert back(run, "lands", "--where", "land = 'fr'", "--run", "job.py~1")[1]["run"] == "app-1/1"
    assert run("replay", "job.py~2", "--without", "users", "--where", "true")[0] == 2
    assert "did you mean  job.py\n" in run("replay", "jbo.py", "--without", "users", "--where", "true")[2]


def test_several_readers_that_fit_may_all_be_followed(run, shop):
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-1/1"))
    code, _, err = run("trace", "forward", "users", "--where", "name = 'bob'")
    assert code == 2
    assert "--all-runs" in err


def test_a_write_whose_files_are_not_known(run, shop):
    write = shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-2/0")
    shop.commit(replace(write, output_files=None))
    code, _, err = run("trace", "back", "lands", "--where", "land = 'de'")
    assert code == 2
    assert "which files in 'lands' app-2/0 wrote is not known" in err
    assert "--run app-2/0" in err


def test_data_that_no_recorded_write_left(run, shop):
    pq.write_table(pa.table({"land": ["xx"]}), shop.folder / "report" / "out.parquet")
    code, _, err = run("trace", "back", "report", "--where", "land = 'de'")
    assert code == 2
    assert "usage.no-run" in err
    assert "--run app-1/0" in err
    assert counts(back(run, "report", "--where", "land = 'de'", "--run", "app-1/0")[1]["inputs"])["views"] == 2


@pytest.mark.parametrize(
    ("words", "code", "near"),
    [
        (("reprt",), "usage.unknown-dataset", "report"),
        (("reprot",), "usage.unknown-dataset", "report"),
        (("report", "--run", "app-7"), "usage.unknown-run", "app-1/0"),
    ],
)
def test_unknown_names_come_with_near_ones(run, words, code, near):
    exit_code, _, err = run("trace", "back", *words, "--where", "land = 'de'")
    assert exit_code == 2
    assert code in err
    assert near in err


def test_the_other_direction_is_named_where_a_dataset_has_but_that(run):
    code, _, err = run("trace", "forward", "report", "--where", "land = 'de'")
    assert code == 2
    assert "no recorded run read 'report'; app-1/0 wrote it" in err
    assert "govtool trace back" in err
    code, _, err = run("trace", "back", "views", "--where", "page = 1")
    assert code == 2
    assert "no recorded run wrote 'views'; app-1/0 read it" in err
    assert "govtool trace forward" in err


def test_a_store_without_records_names_the_command_that_records(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    (tmp_path / "v.sql").write_text("create view v as select 1 as a", encoding="utf-8")
    assert main(["init"]) == 0
    assert main(["ingest", "sql", "v.sql", "--dialect", "postgres"]) == 0
    assert main(["trace", "back", "v", "--where", "a = 1"]) == 2
    err = capsys.readouterr().err
    assert "usage.no-records" in err
    assert "govtool run --records -- job.py" in err


# ---- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "code", "caret"),
    [
        ("land =", "usage.sql-syntax", 6),
        ("land == == 'de'", "usage.sql-syntax", 9),
        ("lnd = 'de'", "usage.unknown-column", 1),
        ("land = 'de' and totl > 3", "usage.unknown-column", 17),
    ],
)
def test_mistakes_in_the_expression_have_a_caret(run, where, code, caret):
    exit_code, out, err = run("trace", "back", "report", "--where", where)
    assert (exit_code, out) == (2, "")
    lines = err.splitlines()
    assert f"error[{code}]" in lines[0]
    assert lines[3] == f" 1 | {where}"
    assert lines[4].index("^") == 5 + caret - 1


def test_columns_are_listed_where_none_has_a_near_name(run):
    assert "one of land, total, n" in run("trace", "back", "report", "--where", "_c0 = 'de'")[2]


def test_a_value_is_no_condition(run):
    code, _, err = run("trace", "back", "report", "--where", "land")
    assert code == 2
    assert "a condition is expected, and this is of type string" in err
    assert "--where:1:1" in err


def test_a_selection_that_matches_nothing(run):
    code, _, err = run("trace", "back", "report", "--where", "land = 'xx'")
    assert code == 2
    assert "usage.no-rows" in err


def test_a_file_that_is_gone_is_refused_and_the_others_are_shown(run, shop):
    (shop.folder / "views" / "part-1.parquet").unlink()
    code, answer = back(run, "report", "--where", "total = 60")
    assert code == 3
    assert [(Path(each["file"]).name, each["reason"]) for each in answer["refused"]] == [("part-1.parquet", "is gone")]
    assert counts(answer["inputs"]) == {"views": 1, "users": 1}
    code, out, _ = run("trace", "back", "report", "--where", "total = 60")
    assert code == 3
    assert "1 input file refused" in out


def test_an_input_that_is_gone_altogether_is_refused_file_by_file(run, shop):
    for file in (shop.folder / "users").iterdir():
        file.unlink()
    code, answer = back(run, "report", "--where", "land = 'de'")
    assert code == 3
    assert len(answer["refused"]) == 1
    # Which views were joined with the users of this land is not known: all of them may have been.
    assert (answer["selected"], counts(answer["inputs"])) == (1, {"views": 6})
    assert {each["exactness"] for each in answer["inputs"]} == {"incomplete"}
    assert run("trace", "back", "report", "--where", "land = 'xx'")[0] == 2
    code, answer = forward(run, "users", "--where", "name = 'bob'", "--run", "app-1/0")
    assert (code, answer["selected"]) == (3, 0)


def test_a_file_that_changed_is_refused_on_the_way_forward(run, shop):
    shop.table("users", {"name": pa.string(), "land": pa.string()}, [*USERS, ("eve", "fr")])
    code, answer = forward(run, "views", "--where", "page = 1", "--run", "app-1/0")
    assert code == 3
    assert [Path(each["file"]).parent.name for each in answer["refused"]] == ["users"]


# ---- Python -------------------------------------------------------------------------------------------


def test_rows_are_followed_in_python(shop):
    graph = govtool.open()
    chosen = graph.records("report").where("land = 'de'")
    rows = chosen.go_back_all()
    assert rows.df("views").to_dict("list") == {"user": ["bob"] * 2, "page": [1] * 2, "spent": [30] * 2}
    assert rows.go_next_all().arrow().to_pylist() == [{"land": "de", "total": 60, "n": 2}]
    assert graph.records("report", run="app-1/0").count() == 2
    with pytest.raises(UnknownNameError):
        graph.records("reprt")
    with pytest.raises(UsageError):
        graph.records("report").where("nothing = 1")


def test_threads_share_a_trace(shop):
    report = govtool.open().records("report")

    def users(number):
        land = ("de", "fr")[number % 2]
        behind = report.where(f"land = '{land}'").go_back_all()
        return land, tuple(behind.arrow("views")["user"].to_pylist()), len(behind.ids()), behind.go_next_all().count()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(users, range(24))) == {("de", ("bob",) * 2, 3, 1), ("fr", ("ann",) * 2, 3, 1)}


def test_a_trace_of_no_rows_comes_to_no_rows_of_each_input(shop):
    none = govtool.open().records("report").where("false").go_back_all()
    assert none.ids() == ()
    assert none.arrow("views").to_pylist() == []
    assert list(none.df("users").columns) == ["name", "land"]
    with pytest.raises(UsageError, match="there are no rows"):
        none.arrow()
    with pytest.raises(UnknownNameError):
        none.arrow("view")
    with pytest.raises(UnknownNameError):
        govtool.open().records("report").where("false").arrow("views")  # rows of the output


def test_an_answer_is_the_json_of_the_command(run, shop):
    graph = govtool.open()
    for step in (False, True):
        words = ["--step"] if step else []
        answer = graph.trace_back("report", "land = 'de'", step=step).to_dict()
        assert json.loads(json.dumps(answer)) == back(run, "report", "--where", "land = 'de'", *words)[1]
        answer = graph.trace_forward(shop.folder / "views", "page = 1", step=step).to_dict()
        assert json.loads(json.dumps(answer)) == forward(run, "views", "--where", "page = 1", *words)[1]
    table = graph.trace_back("report", "land = 'de'").to_arrow()
    assert table.column("row").to_pylist() == [2, 0, 1]


def test_columns_that_are_called_as_ours_get_an_underscore(shop):
    shop.table("odd", {"_id": pa.int64(), "_row": pa.string()}, [(1, "a"), (2, "b")])
    shop.commit(shop.run("SELECT _id AS k, count(*) AS n FROM odd GROUP BY _id", "odds", "odd", run="app-3/0"))
    (group,) = govtool.open().trace_back("odds", "k = 2").trace.inputs
    assert [(row["__id"], row["__row"], row["_row"]) for row in group.rows] == [(2, "b", 1)]


@pytest.mark.parametrize("change", ["gone", "other rows", "same size"])
def test_records_of_files_that_change_while_they_are_traced_are_refused(shop, change):
    """What was evaluated before stays; nothing is evaluated over other files, in no other engine either."""
    rows = govtool.open().records("report")
    chosen = rows.where("land = 'de'")
    behind = chosen.go_back_all()
    before = behind.arrow("views").to_pylist()
    file = shop.folder / "views" / "part-1.parquet"
    facts = file.stat()
    if change == "gone":
        file.unlink()
    elif change == "other rows":
        shop.table("views", {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}, [], [("bob", 7, 70)])
    else:
        file.write_bytes(file.read_bytes().replace(b"bob", b"zob"))
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    for again in (
        lambda: chosen.where("n = 2").go_back_all().count(),
        lambda: rows.where("land = 'fr'").go_back_all().arrow("views"),
        lambda: rows.replay(exclude={"views": "user = 'bob'"}),
    ):
        with pytest.raises(EvidenceError) as found:
            again()
        assert found.value.code == "evidence.changed"
    assert behind.count() == 3
    assert before == [{"user": "bob", "page": 1, "spent": 30}] * 2


@pytest.mark.parametrize("change", ["gone", "other rows"])
def test_records_of_files_that_change_before_the_first_question_are_refused(shop, change):
    rows = govtool.open().records("report")
    if change == "gone":
        (shop.folder / "views" / "part-1.parquet").unlink()
    else:
        shop.table("views", {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}, [], [("bob", 7, 70)])
    with pytest.raises(EvidenceError) as found:
        rows.where("land = 'de'").go_back_all().arrow("views")
    assert found.value.code == "evidence.changed"


def test_rows_that_nothing_distinguishes_are_a_superset_forward(shop):
    shop.commit(shop.run("SELECT page FROM views", "pages", "views", run="app-4/0"))
    report = govtool.open().trace_forward("views", "user = 'bob'", run="app-4/0")
    (group,) = report.outputs
    assert (group.count, group.exactness) == (3, "superset")
    assert "duplicates" in group.why


def test_two_reports_of_the_same_trace_are_equal(shop):
    graph = govtool.open()
    assert graph.trace_back("report", "land = 'de'") == graph.trace_back("report", "land = 'de'")
    assert BY_LAND


def test_a_run_that_did_not_write_the_output_is_told_from_one_without_records(run, shop):
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-2/0"))
    code, _, err = run("trace", "back", "report", "--where", "true", "--run", "app-2/0")
    assert code == 2
    assert "usage.other-run" in err
    assert "--run app-1/0" in err
    code, _, err = run("trace", "forward", "views", "--where", "true", "--run", "app-2/0")
    assert code == 2
    assert "run app-2/0 did not read" in err


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "back", "report", "--where", "n = 1"),
        ("trace", "forward", "views", "--where", "n = 1"),
        ("replay", "app-1", "--without", "views", "--where", "n = 1"),
        ("index", "app-1", "--records"),
    ],
)
def test_an_empty_store_names_the_command_that_records(tmp_path, run, words):
    govtool.init(tmp_path / "empty")
    code, _, err = run(*words, "--store", tmp_path / "empty")
    assert code == 2
    assert "usage.empty-store" in err
    assert "govtool run --records -- job.py" in err


def test_a_mistaken_comparison_starts_no_engine(run):
    code, _, err = run("trace", "back", "report", "--where", "n > 'abc'")
    assert code == 2
    assert "'abc' is no number, and is compared with one" in err
    assert "--where:1:1" in err
    _, answer = back(run, "report", "--where", "n = '2' AND land IN ('de')")
    assert answer["selected"] == 1


def test_bytes_are_written_as_in_spark(run, shop):
    shop.table("sums", {"id": pa.int64(), "sum": pa.binary()}, [(1, b"\x00\xff"), (2, b"\x0a"), (3, b""), (4, None)])
    shop.commit(shop.run("SELECT sum, count(*) AS n FROM sums GROUP BY sum", "by_sum", "sums", run="app-3/0"))
    for text, expected in (("X'00FF'", 1), ("x'a'", 2), ("X''", 3)):
        code, answer = back(run, "by_sum", "--where", f"sum = {text}")
        assert (code, [row["id"] for row in answer["inputs"][0]["rows"]]) == (0, [expected]), text
    code, _, err = run("trace", "back", "by_sum", "--where", "sum = X'zz'")
    assert code == 2
    assert "does not parse" in err


def test_moments_keep_their_zone_in_arrow_and_parquet(run, shop, tmp_path):
    moment, kind = datetime(2026, 3, 1, 12, 30), pa.timestamp("us")
    columns = {"id": pa.int64(), "at": kind, "all": pa.list_(kind), "in": pa.struct([("at", kind)])}
    shop.table("seen", columns, [(1, moment, [moment], {"at": moment})])
    shop.commit(shop.run("SELECT id, at FROM seen", "moments", "seen", run="app-3/0"))
    file, aware = tmp_path / "rows.parquet", moment.replace(tzinfo=UTC)
    assert run("trace", "back", "moments", "--where", "id = 1", "-o", file)[0] == 0
    rows = govtool.open().records("moments").where("id = 1")
    for table in (pq.read_table(file), rows.go_back_all().arrow()):
        (row,) = table.to_pylist()
        assert (row["at"], row["all"], row["in"]) == (aware, [aware], {"at": aware})
    assert rows.arrow().schema.field("at").type == pa.timestamp("us", "UTC")
    assert str(rows.df()["at"].dtype) == "datetime64[us, UTC]"


def test_steps_that_are_alike_and_have_no_rows_are_one_line(shop):
    """A pivot has an aggregate for each value."""
    report = govtool.open().trace_back("report", "land = 'de'")
    step = replace(report.trace.steps[-1], operator="aggregate", rows=0)
    report = replace(report, trace=replace(report.trace, steps=(*report.trace.steps, *[step] * 64)))
    shown = "\n".join(render_trace("plain", report, 1))
    assert shown.count("64 × aggregate") == 1
    assert shown.count("aggregate") < 4


def test_a_reason_of_every_step_is_given_once(shop):
    report = govtool.open().trace_back("report", "land = 'de'")
    steps = [replace(step, exactness="incomplete", why="files are gone") for step in report.trace.steps]
    shown = "\n".join(render_trace("plain", replace(report, trace=replace(report.trace, steps=tuple(steps))), 1))
    assert shown.count("files are gone") == shown.count("incomplete: files are gone") == 1
    steps[0] = replace(steps[0], why="other files are gone")
    shown = "\n".join(render_trace("plain", replace(report, trace=replace(report.trace, steps=tuple(steps))), 1))
    assert shown.count("files are gone") == len(steps) > 1


def test_a_write_whose_private_values_lost_a_text_is_not_traced(shop, tmp_path, capsys):
    """With ``***`` in the place of a literal its plan would be another one, and give other rows."""
    shop.commit(
        shop.run("SELECT name, land FROM users WHERE land <> 'nowhere'", "some", "users", run="app-7/0"),
        shop.run("SELECT name FROM users WHERE name = 'bob'", "bobs", "users", run="app-7/1"),
    )
    text = tmp_path / "texts"
    text.write_text("nowhere")
    assert main(["store", "forget", "--text-file", str(text), "-q"]) == 0
    for words in (
        ["trace", "back", "some", "--where", "land = 'de'"],
        ["replay", "app-7/0", "--without", "users", "--where", "name = 'bob'"],
    ):
        capsys.readouterr()
        assert main(words) == 2
        assert "usage.forgotten" in capsys.readouterr().err
    assert main(["trace", "back", "bobs", "--where", "true", "--run", "app-7/1"]) == 0


def test_a_trace_starts_at_a_boundary(run, shop):
    query = "SELECT n, count(*) AS lands FROM (SELECT land, count(*) AS n FROM users GROUP BY land) GROUP BY n"
    shop.commit(shop.run(query, "sizes", "users", run="app-3/0"))
    code, out, err = run("trace", "back", "sizes", "--start", "aggregate", "--where", "land = 'fr'", "--format", "json")
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["output"], answer["selected"]) == ("aggregate", 1)
    assert [row["name"] for row in answer["inputs"][0]["rows"]] == ["ann", "zoe"]
    forward = ["trace", "forward", "users", "--run", "app-3/0", "--start", "aggregate", "--where", "n = 1"]
    code, out, err = run(*forward, "--format", "json")
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["selected"], [row["lands"] for row in answer["outputs"][0]["rows"]]) == (2, [2])
    for words, text in (
        (["--start", "agregate", "--where", "n = 1"], "aggregate (land, n)"),
        (["--start", "aggregate", "--where", "n = 7"], "usage.no-rows"),
        (["--start", "aggregate", "--where", "m = 7"], "usage.unknown-column"),
        (["--start", "aggregate", "--where", "n = 1", "--all-runs"], "--all-runs"),
    ):
        code, out, err = run("trace", "back", "sizes", *words)
        assert (code, out) == (2, "")
        assert text in err
