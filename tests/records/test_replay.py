"""``govtool replay`` and the methods of the same question: a recorded run over changed inputs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import USERS, VIEWS

import govtool
from govtool.cli.main import main
from govtool.errors import EvidenceError, UnknownNameError, UsageError

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "replay-1.json").read_text(encoding="utf-8"))
VIEW_COLUMNS = {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}


@pytest.fixture
def run(shop, capsys):
    """Run a replay in the shop: exit code, stdout, stderr."""

    def command(*words):
        capsys.readouterr()
        code = main(["replay", *[str(word) for word in words]])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def replayed(run, *words):
    code, out, err = run(*words, "--format", "json")
    assert code in (0, 3), err
    answer = json.loads(out)
    jsonschema.validate(answer, SCHEMA)
    return code, answer


def kinds(answer):
    return tuple(answer[name]["count"] for name in ("gone", "changed", "new"))


def test_a_group_is_changed_where_a_row_of_it_is_left_out(run):
    code, answer = replayed(run, "app-1/0", "--without", "views", "--where", "user = 'ann' and page = 2")
    assert code == 0
    assert kinds(answer) == (1, 0, 0)  # 10 is not over 20
    code, answer = replayed(run, "app-1/0", "--without", "views", "--where", "spent = 10")
    assert kinds(answer) == (1, 0, 0)


def test_changed_cells_are_named(run, shop):
    shop.commit(shop.run("SELECT user, sum(spent) AS total FROM views GROUP BY user", "sums", "views", run="app-2/0"))
    _, answer = replayed(run, "app-2/0", "--without", "views", "--where", "page = 2")
    assert kinds(answer) == (0, 1, 0)
    assert answer["changed"]["rows"] == [
        {"before": {"user": "ann", "total": 30}, "after": {"user": "ann", "total": 10}, "columns": ["total"]}
    ]
    assert answer["reached"] == {"columns": ["user"], "groups": 1}
    assert (answer["before"], answer["after"], answer["recorded"]) == (1, 1, True)


def test_a_row_that_a_condition_kept_out_is_new(run, shop):
    few = "SELECT land, count(*) AS n FROM users GROUP BY land HAVING count(*) < 2"
    shop.commit(shop.run(few, "few", "users", run="app-2/0"))
    _, answer = replayed(run, "app-2/0", "--without", "users", "--where", "name = 'zoe'")
    assert kinds(answer) == (0, 0, 1)
    assert answer["new"]["rows"] == [{"land": "fr", "n": 1}]


def test_what_an_antijoin_took_off_comes_back_and_everything_is_evaluated(run, shop):
    unknown = "SELECT user, page FROM views WHERE NOT EXISTS (SELECT 1 FROM users WHERE name = views.user)"
    shop.commit(shop.run(unknown, "unknown", "views", "users", run="app-2/0"))
    _, answer = replayed(run, "app-2/0", "--without", "users", "--where", "name = 'bob'")
    assert kinds(answer) == (0, 0, 2)
    assert answer["reached"]["groups"] is None


def test_an_input_is_replaced(run, shop, tmp_path):
    rows = [*VIEWS, ("zoe", 7, 70)]
    arrays = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(VIEW_COLUMNS.values())]
    pq.write_table(pa.table(dict(zip(VIEW_COLUMNS, arrays, strict=True))), tmp_path / "more.parquet")
    shop.commit(shop.run("SELECT user, sum(spent) AS total FROM views GROUP BY user", "sums", "views", run="app-2/0"))
    _, answer = replayed(run, "app-2/0", "--with", f"views={tmp_path / 'more.parquet'}")
    assert kinds(answer) == (0, 0, 1)
    assert answer["reached"]["groups"] == 1
    _, answer = replayed(
        run, "app-1/0", "--with", f"views={tmp_path / 'more.parquet'}", "--without", "users", "--where", "name = 'ann'"
    )
    assert answer["changed"]["rows"] == [
        {
            "before": {"land": "fr", "total": 30, "n": 2},
            "after": {"land": "fr", "total": 70, "n": 1},
            "columns": ["total", "n"],
        }
    ]


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        (pa.array([1], pa.int32()), True),
        (pa.array([1.6]), False),
        (pa.array(["1"]), False),
        (pa.array([1], pa.uint64()), False),
        (pa.array([None]), True),
    ],
)
def test_a_file_of_other_types_is_refused(run, tmp_path, values, fits):
    file = tmp_path / "other.parquet"
    pq.write_table(pa.table({"user": ["ann"], "page": pa.array([1]), "spent": values}), file)
    code, _, err = run("app-1/0", "--with", f"views={file}")
    assert code == (0 if fits else 2)
    assert ("usage.format" in err and "'spent'" in err) == (not fits)


def test_several_conditions_of_one_input_are_alternatives(run):
    words = ["--without", "views", "--where", "user = 'bob'", "--without", "views", "--where", "page = 2"]
    _, answer = replayed(run, "app-1/0", *words)
    assert kinds(answer) == (2, 0, 0)


def test_a_change_that_reaches_nothing(run):
    code, answer = replayed(run, "app-1/0", "--without", "views", "--where", "user = 'eve'")
    assert (code, kinds(answer)) == (0, (0, 0, 0))


def test_a_condition_that_leaves_out_nothing_is_refused(run):
    code, out, err = run("app-1/0", "--without", "views", "--where", "user = 'nobody'")
    assert (code, out) == (2, "")
    assert "usage.no-rows" in err


@pytest.mark.parametrize(
    ("order", "frame", "ties"),
    [("page", "", False), ("user", "", True), ("user", "ROWS 1 PRECEDING", True), ("user", "RANGE CURRENT ROW", False)],
)
def test_ties_in_a_window_that_counts_rows_are_not_certain(run, shop, order, frame, ties):
    call = "sum(spent)" if frame else "row_number()"
    query = f"SELECT user, page, {call} OVER (PARTITION BY user ORDER BY {order} {frame}) AS n FROM views"
    shop.commit(shop.run(f"{query} WHERE user <> 'bob'", "numbered", "views", run="app-2/0"))
    code, answer = replayed(run, "app-2/0", "--without", "views", "--where", "user = 'eve'")
    assert (code, answer["doubts"]) == (0, [])  # the rows that tie are not reached
    code, answer = replayed(run, "app-2/0", "--without", "views", "--where", "spent = 20")
    assert code == (3 if ties else 0)
    assert any("rows tie" in doubt for doubt in answer["doubts"]) == ties


def test_a_limit_is_not_certain(run, shop):
    shop.commit(shop.run("SELECT user FROM views ORDER BY page LIMIT 2", "top", "views", run="app-2/0"))
    code, answer = replayed(run, "app-2/0", "--without", "views", "--where", "user = 'ann'")
    assert code == 3
    assert any("limit" in doubt for doubt in answer["doubts"])
    code, out, _ = run("app-2/0", "--without", "views", "--where", "user = 'ann'")
    assert code == 3
    assert "NOT CERTAIN" in out


def test_formats_and_pages(run, shop, tmp_path):
    words = ["app-1/0", "--without", "views", "--where", "true"]
    code, out, _ = run(*words)
    assert code == 0
    assert "2 gone, 0 changed, 0 new" in out
    _, out, _ = run(*words, "--show", "1")
    assert "1 more row" in out
    _, out, _ = run(*words, "--format", "jsonl")
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["gone", "gone"]
    _, out, _ = run(*words, "--format", "csv")
    assert [row["kind"] for row in csv.DictReader(io.StringIO(out))] == ["gone", "gone"]
    assert run(*words, "-o", tmp_path / "rows.json")[1] == ""
    assert json.loads((tmp_path / "rows.json").read_text())["gone"]["count"] == 2
    _, answer = replayed(run, *words, "--limit", "1")
    assert (answer["gone"]["count"], len(answer["gone"]["rows"]), answer["gone"]["truncated"]) == (2, 1, True)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["app-9", "--without", "views", "--where", "true"], "usage.unknown-run", "app-1"),
        (["app-1/0", "--without", "veiws", "--where", "true"], "usage.unknown-dataset", "shop/views\n"),
        (["app-1/0", "--without", "views", "--where", "pge = 1"], "usage.unknown-column", "page"),
        (["app-1/0", "--without", "views", "--where", "page ="], "usage.sql-syntax", "^"),
        (["app-1/0"], "usage.arguments", "--without"),
        (["app-1/0", "--without", "views"], "usage.arguments", "--where"),
        (["app-1/0", "--with", "views"], "usage.arguments", "DATASET=FILE"),
        (["app-1/0", "--with", "views=nowhere.parquet"], "usage.path", "nowhere"),
        (["app-1/0", "--with", "views=users"], "usage.unknown-column", "user"),
        (["app-1/0", "--with", "views=.govtool/govtool.json"], "usage.format", "govtool.json"),
        (["app-1/0", "--with", "views=views", "--without", "views", "--where", "true"], "usage.arguments", "twice"),
    ],
)
def test_bad_input(run, words, code, text):
    exit_code, out, err = run(*words)
    assert (exit_code, out) == (2, "")
    assert code in err
    assert text in err


def test_an_application_with_several_writes_needs_one(run, shop):
    shop.commit(shop.run("SELECT DISTINCT land FROM users", "lands", "users", run="app-1/1"))
    words = ["app-1", "--without", "users", "--where", "name = 'bob'"]
    exit_code, _, err = run(*words)
    assert exit_code == 2
    assert "usage.ambiguous-run" in err
    assert kinds(replayed(run, *words, "--of", "lands")[1]) == (1, 0, 0)


def test_an_input_that_changed_is_refused(run, shop):
    shop.table("users", {"name": pa.string(), "land": pa.string()}, [*USERS, ("eve", "fr")])
    exit_code, _, err = run("app-1/0", "--without", "views", "--where", "true")
    assert exit_code == 3
    assert "evidence.changed" in err


def test_an_output_that_is_gone_is_compared_with_the_plan(run, shop):
    (shop.folder / "report" / "out.parquet").unlink()
    _, answer = replayed(run, "app-1/0", "--without", "views", "--where", "user = 'bob'")
    assert (answer["recorded"], kinds(answer)) == (False, (1, 0, 0))


def test_of_a_folder_the_files_are_read_that_spark_reads(run, shop):
    folder = shop.folder / "other"
    shop.table("other", VIEW_COLUMNS, VIEWS[:3])
    hidden = [".part.parquet", "_part.parquet", "_temporary/0/part.parquet"]
    for name in [*hidden, "more.parq", "deep/part.snappy.parquet"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pq.read_table(shop.folder / "views" / "part-1.parquet"), folder / name)
    _, answer = replayed(run, "app-1/0", "--with", f"views={folder}")
    assert [row["after"]["n"] for row in answer["changed"]["rows"]] == [3]  # one of bob a file
    (folder / "_delta_log").mkdir()
    exit_code, _, err = run("app-1/0", "--with", f"views={folder}")
    assert exit_code == 2
    assert "Delta" in err


SIZES = "SELECT n, count(*) AS lands FROM (SELECT land, count(*) AS n FROM users GROUP BY land) GROUP BY n"


@pytest.fixture
def sizes(shop):
    """A run of two groups, one over the other: ``aggregate`` has lands, ``aggregate-2`` users."""
    shop.commit(shop.run(SIZES, "sizes", "users", run="app-3/0"))


@pytest.mark.usefixtures("sizes")
def test_rows_of_a_boundary_are_left_out_or_read_from_a_file(run, tmp_path):
    code, answer = replayed(run, "app-3/0", "--without", "aggregate", "--where", "land = 'de'")
    assert (code, answer["recorded"]) == (0, True)
    assert [row["after"] for row in answer["changed"]["rows"]] == [{"n": 1, "lands": 1}]
    pq.write_table(pa.table({"land": ["fr", "de"], "n": pa.array([2, 2])}), tmp_path / "lands.parquet")
    _, answer = replayed(run, "app-3/0", "--with", f"aggregate={tmp_path / 'lands.parquet'}")
    assert answer["gone"]["rows"] == [{"n": 1, "lands": 2}]
    assert [row["after"] for row in answer["changed"]["rows"]] == [{"n": 2, "lands": 2}]
    code, _, err = run("app-3/0", "--with", "aggregate=users")
    assert (code, "usage.unknown-column" in err) == (2, True)


@pytest.mark.usefixtures("sizes")
def test_rows_are_compared_at_a_boundary(run):
    _, answer = replayed(run, "app-3/0", "--without", "users", "--where", "name = 'zoe'", "--to", "aggregate")
    assert (answer["output"], answer["recorded"]) == ("aggregate", False)
    assert [(row["before"], row["after"]) for row in answer["changed"]["rows"]] == [
        ({"land": "fr", "n": 2}, {"land": "fr", "n": 1})
    ]
    assert govtool.open().replay("app-3/0", without="aggregate-2", where="name = 'bob'").replay.changed


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (
            ["--without", "users", "--where", "true", "--to", "agregate"],
            "usage.unknown-boundary",
            "aggregate (land, n)",
        ),
        (["--without", "aggregat-2", "--where", "true"], "usage.unknown-boundary", "aggregate-2 (name, land)"),
        (["--without", "usres", "--where", "true"], "usage.unknown-dataset", "shop/users\n"),
        (["--without", "aggregate", "--where", "land = 'xx'"], "usage.no-rows", "aggregate"),
        (["--without", "aggregate", "--where", "lnd = 'xx'"], "usage.unknown-column", "land"),
        (["--without", "aggregate", "--where", "true", "--to", "aggregate-2"], "usage.boundary", "not made of"),
        (["--script", "job.py", "--to", "aggregate"], "usage.arguments", "--to"),
    ],
)
def test_bad_names_of_boundaries(run, words, code, text):
    exit_code, out, err = run("app-3/0", *words)
    assert (exit_code, out) == (2, "")
    assert code in err
    assert text in err


# ---- Python -------------------------------------------------------------------------------------------


def test_rows_of_a_trace_are_left_out(shop):
    graph = govtool.open()
    report = graph.records("report")
    rows = report.where("land = 'de'").go_back_all()
    answer = report.replay(exclude=rows)
    assert (answer.gone, answer.changed, answer.new) == ((("de", 60, 2),), (), ())
    assert report.where("land = 'fr'").replay(exclude=rows).gone == ()
    with pytest.raises(UsageError):
        graph.records("report").replay(exclude=rows)
    with pytest.raises(UsageError):
        rows.replay(exclude=rows)


def test_rows_at_a_boundary_are_replayed(shop):
    shop.commit(shop.run("SELECT land, count(*) AS n FROM users GROUP BY land", "lands", "users", run="app-2/0"))
    shop.commit(
        shop.run(
            "SELECT n, count(*) AS lands FROM (SELECT land, count(*) AS n FROM users GROUP BY land) GROUP BY n",
            "sizes",
            "users",
            run="app-3/0",
        )
    )
    boundary = govtool.open().records("sizes").where("n = 2").go_back()
    answer = boundary.replay(exclude={"users": "name = 'zoe'"})
    assert not answer.recorded
    assert [(row.before, row.after) for row in answer.changed] == [(("fr", 2), ("fr", 1))]


def test_the_method_is_the_command(run, shop, tmp_path):
    report = govtool.open().replay("app-1/0", without="views", where="user = 'bob'")
    assert (
        json.loads(json.dumps(report.to_dict()))
        == replayed(run, "app-1/0", "--without", "views", "--where", "user = 'bob'")[1]
    )
    assert report.to_arrow().column("kind").to_pylist() == ["gone"]
    with pytest.raises(UnknownNameError):
        govtool.open().replay("app-1/0", without=["vews"], where=["true"])
    (shop.folder / "users" / "part-0.parquet").unlink()
    with pytest.raises(EvidenceError):
        govtool.open().replay("app-1/0", without="views", where="true")
