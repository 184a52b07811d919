"""``impact``, ``path``, ``explain``, ``index`` and the completion of names, on a graph of three files."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from answers import check

from govtool.app.questions.completion import complete_names

FILES = {
    "ddl.sql": "create table crm.users (id int, email text, deleted_at timestamp);\n"
    "create table shop.orders (id int, user_id int, total numeric);\n",
    "users.sql": "create view stg.users as\n"
    "select id, lower(email) as email from crm.users where deleted_at is null;\n",
    "audience.sql": "create table mart.audience as\n"
    "select u.email, count(*) as orders from stg.users u join shop.orders o on o.user_id = u.id group by u.email;\n",
}


@pytest.fixture
def graph(govtool, project):
    """The command line in a project that has ingested ``FILES``."""
    folder = project / "etl"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    assert govtool("init").code == 0
    assert govtool("ingest", "sql", "etl", "--dialect", "postgres").code == 0
    return govtool


def table_of(done) -> list[str]:
    """The lines of a table without the heading, whose commit and time differ from run to run."""
    heading, blank, *lines = done.out.splitlines()
    assert " · " in heading
    assert blank == ""
    return lines


def test_impact_of_a_drop(graph):
    assert table_of(graph("impact", "crm.users.email", "--change", "drop")) == [
        " verdict  column                                hops  via                  evidence",
        " breaks   stg.users.* (2 columns: email …)         1  lower()              users.sql:2:12",
        " breaks   mart.audience.* (2 columns: email …)     2  lower() → group key  audience.sql:2:101",
        "",
        "4 break, 5 unaffected · coverage 100.0% (4/4 statements)",
    ]


def test_impact_of_a_change_of_logic(graph):
    lines = table_of(graph("impact", "deleted_at"))
    assert lines[1].split() == ["rows", "stg.users.*", "(2", "columns)", "1", "filter", "users.sql:2:55"]


def test_impact_as_json_has_an_entry_for_every_column(graph):
    answer = check(graph("impact", "crm.users.email", "--change", "drop", "-f", "json").out, "impact-1")
    assert [entry["column"] for entry in answer["columns"]] == [
        "stg.users.*",
        "stg.users.email",
        "stg.users.id",
        "mart.audience.*",
        "mart.audience.email",
        "mart.audience.orders",
    ]
    email = answer["columns"][4]
    assert email["path"] == ["crm.users.email", "stg.users.email", "mart.audience.email"]
    assert email["evidence"][0]["file"] == "audience.sql"
    assert answer["subject"] == "crm.users.email"
    assert answer["summary"]["breaks"] == 4


def test_impact_as_csv_and_markdown(graph):
    rows = list(csv.DictReader(io.StringIO(graph("impact", "crm.users.email", "-f", "csv").out)))
    assert {row["column"] for row in rows if row["verdict"] == "changes"} >= {"stg.users.email", "mart.audience.email"}
    assert "| verdict | column |" in graph("impact", "crm.users.email", "-f", "markdown").out


def test_upstream(graph):
    answer = check(graph("impact", "mart.audience.email", "--upstream", "-f", "json").out, "impact-1")
    assert {"crm.users.email", "stg.users.email", "shop.orders.user_id"} <= {c["column"] for c in answer["columns"]}
    assert "verdict" not in table_of(graph("impact", "mart.audience.email", "--upstream"))[0]


def test_depth_kind_and_limit(graph):
    def columns(*arguments):
        return [
            c["column"] for c in json.loads(graph("impact", "crm.users.email", "-f", "json", *arguments).out)["columns"]
        ]

    assert columns("--depth", "1") == ["stg.users.email"]
    assert columns("--kind", "transformation") == ["stg.users.email"]
    assert columns("--kind", "identity") == []
    limited = check(graph("impact", "crm.users.email", "-f", "json", "--limit", "1").out, "impact-1")
    assert limited["truncated"] > 0
    assert "more entr" in graph("impact", "crm.users.email", "--limit", "1").out


def test_fail_on_is_the_exit_code(graph):
    ask = ("impact", "crm.users.email", "--change", "drop", "--fail-on")
    assert graph(*ask, "none").code == 0
    assert graph(*ask, "breaks").code == 1
    assert graph("impact", "crm.users.email", "--fail-on", "breaks").code == 0
    assert graph("impact", "crm.users.email", "--fail-on", "changes").code == 1
    assert graph(*ask, "everything").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["impact", "users.emial"], "did you mean"),
        (["impact", "email"], "candidates"),
        (["impact", "crm.users.email", "--change", "explode"], "usage.change"),
        (["impact", "crm.users.email", "--kind", "jion"], "did you mean  join"),
        (["impact", "crm.users.email", "--upstream", "--change", "drop"], "--upstream has no verdicts"),
        (["impact", "crm.users.email", "--at", "HEAD~9"], "usage.unknown-ref"),
        (["impact", "crm.users.email", "--limit", "-1"], "usage.arguments"),
        (["path", "crm.users.email", "nothing"], "usage.unknown-column"),
        (["explain", "x\x1b[2Jy"], r"\x1b[2J"),
    ],
)
def test_bad_questions(graph, arguments, says):
    done = graph(*arguments)
    assert done.code == 2
    assert says in done.err
    assert "\x1b" not in done.err
    assert done.out == ""


def test_at_an_earlier_commit(graph, project):
    (project / "etl" / "audience.sql").unlink()
    graph("ingest", "sql", "etl", "-d", "postgres")
    assert "mart.audience" not in graph("impact", "crm.users.email").out
    assert "mart.audience" in graph("impact", "crm.users.email", "--at", "HEAD~1").out
    assert "mart.audience" in graph("impact", "crm.users.email", "--at", "1").out


def test_path(graph):
    assert table_of(
        graph(
            "path",
            "crm.users.email",
            "mart.audience.email",
            "--limit",
            "1",
            "--kind",
            "identity",
            "--kind",
            "transformation",
        )
    ) == [
        " way  column                 via      evidence",
        "   1  crm.users.email",
        "      → stg.users.email      lower()  users.sql:2:12",
        "      → mart.audience.email  copy     audience.sql:2:8",
        "",
        "1 shortest path (2 hops) · coverage 100.0% (4/4 statements)",
    ]
    answer = check(graph("path", "crm.users.email", "mart.audience.email", "-f", "json").out, "path-1")
    assert answer["ways"][0]["hops"] == 2


def test_no_path(graph):
    done = graph("path", "mart.audience.email", "crm.users.email")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "no path · coverage 100.0% (4/4 statements)"


def test_explain(graph):
    answer = check(graph("explain", "stg.users.email", "-f", "json").out, "explain-1")
    assert [step["source"] for step in answer["made_of"]] == ["crm.users.email"]
    assert answer["made_of"][0]["functions"] == ["lower"]
    assert [step["source"] for step in answer["rows_by"]] == ["crm.users.deleted_at"]
    assert answer["read_by"] == ["mart.audience"]
    shown = graph("explain", "stg.users.email", "-v").out
    assert "create view stg.users as" in shown.lower()
    assert "lower()" in shown


def test_explain_of_a_dataset_lists_its_columns(graph):
    answer = check(graph("explain", "crm.users", "-f", "json").out, "explain-1")
    assert {column["path"] for column in answer["columns"]} == {"id", "email", "deleted_at"}


def test_the_index_can_be_built_ahead(graph):
    done = graph("index")
    assert done.code == 0
    assert "4 datasets" in done.err


def test_a_damaged_index_is_built_again(graph, project):
    graph("impact", "crm.users.email")
    cache = Path(os.environ["GOVTOOL_CACHE"])
    for file in [path for path in cache.rglob("*") if path.is_file()]:
        file.chmod(0o600)
        file.write_bytes(b"damaged")
    assert "mart.audience.email" in graph("impact", "crm.users.email").out


def test_a_cache_that_cannot_be_written_is_done_without(graph, project, monkeypatch):
    blocked = project / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("GOVTOOL_CACHE", str(blocked))
    assert "mart.audience.email" in graph("impact", "crm.users.email").out


POLICY = """version: 1
name: privacy
classes: {personal: {}, personal.contact: {}}
classify: [{class: personal.contact, columns: ["crm.users.email"]}]
zones: {mart: {datasets: ["mart.**"]}}
"""


@pytest.fixture
def governed(graph, project):
    """The same with a policy."""
    (project / "policies").mkdir()
    (project / "policies" / "privacy.yml").write_text(POLICY)
    return graph


def test_paths_between_any_of_several(governed):
    one = check(governed("path", "crm.users.email", "mart.audience.email", "--format", "json").out, "path-1")
    assert "from_subjects" not in one
    assert "to_subjects" not in one
    done = governed("path", "crm.**", "zone:mart", "--format", "json", "--limit", "9")
    several = check(done.out, "path-1")
    assert several["from"] == "crm.users"
    assert several["to"] == "mart.audience"
    done = governed("path", "class:personal,crm.**", "mart.audience.email mart.audience.orders", "--format", "json")
    answer = check(done.out, "path-1")
    assert answer["to_subjects"] == ["mart.audience.email", "mart.audience.orders"]
    assert one["ways"][0] in answer["ways"]
    assert {way["path"][0] for way in answer["ways"]} == {"crm.users.email"}


def test_a_way_between_columns_that_are_start_and_end(graph):
    answer = (
        check(graph("path", "users.email", "users.email audience.email", "--format", "json").out, "path-1")
        if False
        else None
    )
    both = "crm.users.email stg.users.email mart.audience.email"
    answer = check(
        graph("path", both, both, "--kind", "identity", "--kind", "transformation", "--format", "json").out, "path-1"
    )
    assert [way["path"] for way in answer["ways"]] == [
        ["crm.users.email", "stg.users.email"],
        ["stg.users.email", "mart.audience.email"],
    ]


def test_explain_of_several_says_each(governed):
    alone = [
        check(governed("explain", name, "--format", "json").out, "explain-1")
        for name in ("stg.users", "mart.audience.email")
    ]
    done = governed("explain", "stg.users mart.audience.email", "--format", "json")
    answer = check(done.out, "explain-1")
    assert answer["subject_kind"] == "selection"
    for reported, one in zip(answer["subjects"], alone, strict=True):
        assert reported == {key: value for key, value in one.items() if key in reported}
        assert one["subject"] == reported["subject"]
    lines = table_of(governed("explain", "class:personal.*", "--limit", "2"))
    assert [line.split()[:2] for line in lines if line.lstrip().startswith("column ")] == [
        ["column", "crm.users.email"],
        ["column", "mart.audience.email"],
    ]
    assert "2 subjects · 1 more subject" in lines[-1]
    header, *rows = csv.reader(io.StringIO(governed("explain", "stg.** mart.**", "--format", "csv").out))
    assert header == ["subject", "about", "name", "how", "evidence"]
    assert {row[0] for row in rows} == {"stg.users", "mart.audience"}


def test_explain_shows_what_variants_of_a_template_share_once(govtool, project):
    (project / "v.sql").write_text(
        "create view v as select a, {% if x %} 1 {% else %} 2 {% endif %} as n, {% if x %} b {% else %} c {% endif %} as d from t"
    )
    assert govtool("init").code == 0
    assert govtool("ingest", "sql", "v.sql", "--dialect", "postgres").code == 0
    lines = table_of(govtool("explain", "v"))
    assert sum(" t.a → v.a " in line for line in lines) == 1
    assert sum(" t.b → v.d " in line for line in lines) == sum(" t.c → v.d " in line for line in lines) == 1
    steps = check(govtool("explain", "v.a", "-f", "json").out, "explain-1")["made_of"]
    assert [step["source"] for step in steps] == ["t.a", "t.a"]  # a statement each


@pytest.mark.parametrize("where", [["explain"], ["path", "mart.audience"]])
@pytest.mark.parametrize(
    ("selector", "code"), [("tag:nothing", "usage.unknown-tag"), ("nothing.*", "usage.nothing-selected")]
)
def test_nothing_that_is_selected_is_a_mistake(governed, where, selector, code):
    done = governed(where[0], selector, *where[1:])
    assert done.code == 2
    assert code in done.err


def test_a_star_for_several_parts_of_a_name_is_pointed_out(governed):
    assert "'**.email'" in governed("ls", "*.email").err
    assert "'**.us*.email'" in governed("explain", "*.*.*.us*.email").err


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("crm.us", ["crm.users"]),
        ("us", ["users"]),
        ("stg.users.e", ["stg.users.email"]),
        ("users.em", ["users.email"]),
        ("zzz", []),
    ],
)
def test_names_complete_once_there_is_an_index(graph, typed, names):
    assert complete_names(None, typed) == []
    graph("index")
    assert complete_names(None, typed) == names


def test_the_shell_s_completion(graph):
    graph("index")
    code = "import sys; from govtool.cli.main import main; sys.exit(main([]))"

    def complete(words: str) -> list[str]:
        environment = os.environ | {
            "_GOVTOOL_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
        )
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("govtool im") == ["impact"]
    assert complete("govtool impact mart.audience.e") == ["mart.audience.email"]
    assert complete("govtool lineage --dialect snow") == ["snowflake"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("impact", "crm.users.email", "--change", "delete", "--depth", "1"), "leave out --depth"),
        (("impact", "crm.users.email", "--change", "rename"), "--change rename:NEW"),
        (("impact", "crm.users.email", "--change", "rename:a", "--to", "b"), "--change rename --to b"),
        (("whatif", "rename", "crm.users.email", "mail"), "govtool whatif rename crm.users.email --to mail"),
        (("whatif", "retype", "crm.users.email"), "govtool whatif retype crm.users.email --to NEW"),
    ],
)
def test_a_change_that_is_written_as_elsewhere_is_answered_with_the_right_words(graph, words, hint):
    done = graph(*words)
    assert done.code == 2
    assert hint in done.err


def test_impact_and_whatif_take_the_same_words(graph):
    short = graph("impact", "crm.users.email", "--change", "rename:mail")
    assert graph("impact", "crm.users.email", "--change", "rename", "--to", "mail").out == short.out
    assert graph("impact", "crm.users.email", "--to", "mail").out == short.out
    for change in ("delete", "mask"):
        options = ("--limit", "1", "--fail-on", "changes")
        done = graph("impact", "crm.users.email", "--change", change, *options)
        assert (done.out, done.code) == (graph("whatif", change, "crm.users.email", *options).out, 1)
    assert graph("impact", "crm.users.email", "--change", "mask", "-f", "tree").code == 2


def test_the_limit_of_a_table_counts_its_rows(graph):
    every, first = (
        graph("impact", "crm.users.email", "--change", "drop", *more).out for more in ((), ("--limit", "1"))
    )
    rows = [line for line in every.splitlines() if line.startswith((" breaks", "breaks"))]
    assert first.count("breaks") == 1
    assert f"{len(rows) - 1} more entr" in first
    whole = json.loads(graph("impact", "crm.users.email", "--change", "drop", "--limit", "1", "-f", "json").out)
    assert whole["truncated"] > len(rows) - 1


@pytest.mark.parametrize(
    "words", [("impact", "zzz.**"), ("explain", "zzz.**"), ("ls", "zzz.**"), ("whatif", "drop", "zzz.**")]
)
def test_selecting_nothing_is_a_mistake_unless_it_is_allowed(graph, words):
    refused = graph(*words)
    assert refused.code == 2
    assert "--allow-empty" in refused.err
    assert graph(*words, "--allow-empty").code == 0


@pytest.mark.parametrize(
    ("asked", "written"),
    [("**nobody**", "**.*nobody*"), ("zzz.us**", "zzz.us*"), ("**.zz**.x", "**.zz*.x")],
)
def test_two_stars_within_a_part_of_a_name_are_explained(graph, asked, written):
    for command in ("ls", "impact", "explain"):
        done = graph(command, asked)
        assert (done.code, f"write '{written}'" in done.err) == (2, True), (command, done.err)
