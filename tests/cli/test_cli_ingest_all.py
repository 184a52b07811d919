"""``[[sources]]`` of govtool.toml, ``govtool ingest`` that brings all up to date, and ``govtool init`` that writes them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from answers import check

import govtool as package
from govtool.config import load_config

FIXTURES = Path(__file__).parents[2] / "fixtures"


def write(path: str, text: str) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def sources(govtool):
    """A project with a source of nearly every kind, and the file that init writes for it."""
    write("wh/x.sql", "create view v as select a from t")
    write("dbt/dbt_project.yml", "name: shop\nversion: '1'\n")
    write("dbt/models/m.sql", "select 1 as id")
    write(
        "prov/d.provn",
        "document\nprefix ex <http://e/>\nentity(ex:a)\nentity(ex:b)\nwasDerivedFrom(ex:b, ex:a)\nendDocument\n",
    )
    for kind, name in (("logs", "generic.jsonl"), ("openlineage", "spark_orders.jsonl")):
        Path(kind).mkdir()
        shutil.copy(FIXTURES / kind / name, kind)
    with sqlite3.connect("shop.db") as connection:
        connection.execute("create table users (id int, email text)")
    write("node_modules/x.sql", "create view hidden as select a from t")
    write("data/table.csv", "id,email\n1,a@b\n")
    write("package.json", "{}")
    govtool("init")
    return govtool


def outcomes(govtool, *options: str) -> dict[str, dict]:
    answer = check(govtool("ingest", "-f", "json", *options).out, "ingest-1")
    return {each["source"]: each for each in answer["sources"]}


def test_init_writes_what_is_in_the_folder(sources):
    found = {(source.kind, source.written) for source in load_config(Path.cwd()).sources}
    assert found == {
        ("sql", ("dbt",)),
        ("sql", ("wh",)),
        ("catalog", ("sqlite:///shop.db",)),
        ("log", ("logs",)),
        ("openlineage", ("openlineage",)),
        ("prov", ("prov",)),
    }


def test_init_names_the_folders_that_hold_nothing_but_their_kind(govtool):
    write("work/a/dbt_project.yml", "name: a\nversion: '1'\n")
    write("work/a/models/m.sql", "select 1 as id")
    write("work/b/etl/x.sql", "create view v as select a from t")
    event = (FIXTURES / "openlineage" / "spark_orders.jsonl").read_text()
    write("work/events/2026/a.jsonl", event)
    write("work/events/2027/b.jsonl", event)
    log = (FIXTURES / "logs" / "generic.jsonl").read_text()
    for name in ("one", "two"):
        write(f"work/logs/{name}.jsonl", log)
    write("work/logs/README.md", "queries")
    write("work/schemas/OpenLineage.json", (FIXTURES / "openlineage_spec" / "OpenLineage.json").read_text())
    govtool("init")
    found = {(source.kind, source.written, source.label) for source in load_config(Path.cwd()).sources}
    assert found == {
        ("sql", ("work/a",), "sql:work/a"),
        ("sql", ("work/b",), "sql:work/b"),
        ("openlineage", ("work/events",), "openlineage:work/events"),
        ("log", ("work/logs/one.jsonl", "work/logs/two.jsonl"), "log:work/logs"),
    }
    assert set(outcomes(govtool)) == {label for _, _, label in found}


def test_init_passes_over_folders_of_macros(govtool):
    """They are no source of their own: nothing runs them, and their ingest would fail for ever."""
    write(
        "shared/macros/cents.sql", "{# a % b #}\n{% macro cents(c) -%}\n {{ c }} / 100\n{%- endmacro %}\n-- the end\n"
    )
    write("shared/macros/empty.sql", "")
    write("shared/tests/some.sql", "{% test some(model) %}select 1 from {{ model }}{% endtest %}")
    write("etl/both.sql", "{% macro two() %}2{% endmacro %}\ncreate view v as select a * {{ two() }} as b from t")
    write("cut/off.sql", "{% macro two() %}2")
    govtool("init")
    assert {source.written for source in load_config(Path.cwd()).sources} == {("etl",), ("cut",)}


def test_init_leaves_a_file_that_is_there_and_a_store_elsewhere_writes_none(govtool):
    write("wh/x.sql", "create view v as select a from t")
    assert govtool("init", "--store", "elsewhere").code == 0
    assert not Path("govtool.toml").exists()
    write("govtool.toml", "# mine\n")
    assert govtool("init").code == 0
    assert Path("govtool.toml").read_text() == "# mine\n"


def test_a_compiled_dbt_project_is_read_from_its_artifacts(govtool):
    shutil.copytree(FIXTURES / "dbt" / "shop", "shop")
    write("shop/dbt_project.yml", "name: shop\n")
    govtool("init")
    assert [(s.kind, s.written) for s in load_config(Path.cwd()).sources] == [("dbt", ("shop/target",))]
    assert govtool("ingest").code == 0


def test_init_names_what_it_did_not_look_at(govtool, monkeypatch):
    monkeypatch.setattr("govtool.app.project.discover._MAX_FILES", 1)
    write("a/x.sql", "create view v as select a from t")
    write("b/y.sql", "create view w as select a from t")
    write("/".join(["c"] * 9) + "/z.sql", "create view z as select a from t")
    err = govtool("init").err
    assert "not looked at: files after the first 1; add sources there by hand" in err
    Path("govtool.toml").unlink()
    monkeypatch.setattr("govtool.app.project.discover._MAX_FILES", 9)
    assert "not looked at: folders more than 8 deep;" in govtool("init", "--sources").err


def test_files_of_the_root_are_one_source(govtool):
    write("a.sql", "create view v as select a from t")
    write("below/b.sql", "create view w as select a from v")
    govtool("init")
    assert [source.written for source in load_config(Path.cwd()).sources] == [(".",)]


def test_one_ingest_commits_all_and_again_nothing(sources):
    first = outcomes(sources)
    assert {each["state"] for each in first.values()} == {"committed"}
    assert set(first) == {
        *("sql:dbt", "sql:wh", "catalog:shop", "log:logs", "openlineage:openlineage", "prov:prov"),
    }
    again = outcomes(sources)
    assert {each["state"] for each in again.values()} == {"unchanged"}
    assert sources("ingest").code == 0


def test_each_command_reads_the_source_that_the_file_names(sources):
    outcomes(sources)
    for words in (
        ("sql", "wh"),
        ("catalog", "sqlite:///shop.db"),
        ("log", "logs"),
        ("openlineage", "openlineage"),
        ("prov", "prov"),
    ):
        done = sources("ingest", *words)
        assert (done.code, "no change" in done.out or "nothing new" in done.out) == (0, True), (words, done)


def test_one_that_fails_keeps_its_version_and_the_others_commit(sources):
    outcomes(sources)
    write("wh/x.sql", "create view v as select a, b from t")
    shutil.rmtree("prov")
    write("logs/generic.jsonl", "\x00" * 100)
    done = sources("ingest", "-f", "json")
    assert done.code == 3
    states = {each["source"]: each["state"] for each in json.loads(done.out)["sources"]}
    assert [name for name, state in states.items() if state == "failed"] == ["log:logs", "prov:prov"]
    assert states["sql:wh"] == "committed"
    assert "prov:prov keeps its last version" in done.err
    names = {each["source"] for each in json.loads(sources("sources", "-f", "json").out)["sources"]}
    assert {"prov:prov", "log:logs"} <= names, "the last versions are live"


def test_a_threshold_of_one_source_is_its_own(govtool):
    write("good/x.sql", "create view v as select a from t")
    write("bad/y.sql", "create view w as select a from t; select foo( from")
    write(
        "govtool.toml",
        "[[sources]]\nkind='sql'\npath='good'\n[[sources]]\nkind='sql'\npath='bad'\nstrict=true\nname='b'\n",
    )
    govtool("init")
    done = govtool("ingest")
    assert done.code == 3
    assert "evidence.coverage" in done.out
    assert [each["source"] for each in json.loads(govtool("sources", "-f", "json").out)["sources"]] == ["sql:good"]


def test_a_dry_run_commits_nothing(sources):
    done = sources("ingest", "--dry-run", "-f", "json")
    assert {each["state"] for each in json.loads(done.out)["sources"]} == {"planned"}
    assert all(each["plan"]["summary"] and each["commit"] is None for each in json.loads(done.out)["sources"])
    assert json.loads(sources("log", "-f", "json").out)["commits"] == []
    assert "would be committed" in sources("ingest", "--dry-run").out


@pytest.mark.parametrize("name", ["wh", "sql:wh"])
def test_only_one(sources, name):
    assert set(outcomes(sources, "--only", name)) == {"sql:wh"}


def test_from_a_subfolder_the_sources_are_the_same(sources, monkeypatch):
    outcomes(sources)
    monkeypatch.chdir("wh")
    assert {each["state"] for each in outcomes(sources).values()} == {"unchanged"}


@pytest.mark.parametrize("form", ["table", "plain", "csv", "jsonl", "markdown"])
def test_every_format_names_every_source_and_every_failure(sources, form):
    shutil.rmtree("prov")
    done = sources("ingest", "-f", form)
    assert done.code == 3
    assert all(name in done.out for name in ("sql:wh", "catalog:shop", "prov:prov", "usage."))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sources = 1", "sources must be an array of tables"),
        ("[[sources]]\npath = 'a'", "kind must be one of sql, dbt"),
        ("[[sources]]\nkind = 'sq'\npath = 'a'", "kind must be one of"),
        ("[[sources]]\nkind = 'sql'", "path is missing"),
        ("[[sources]]\nkind = 'sql'\npath = '-'", "path is missing"),
        ("[[sources]]\nkind = 'catalog'\npath = 'x'", "unknown key sources[0].path"),
        ("[[sources]]\nkind = 'sql'\npath = 'a'\ndialct = 'x'", "unknown key sources[0].dialct"),
        ("[[sources]]\nkind = 'sql'\npath = 'a'\nstrict = 'yes'", "strict must be true or false"),
        ("[[sources]]\nkind = 'sql'\npath = 'a'\nmin_coverage = '9'", "min_coverage must be a number"),
        ("[[sources]]\nkind = 'dbt'\npath = ['a', 'b']", "path must be one folder"),
        ("[[sources]]\nkind = 'sql'\npath = 'a'\n[[sources]]\nkind = 'sql'\npath = 'a'", "two [[sources]] are sql:a"),
        (
            "[[sources]]\nkind='sql'\npath='a'\nname='n'\n[[sources]]\nkind='log'\npath='b'\nname='n'",
            "two [[sources]] are n",
        ),
        ("", "has no [[sources]]"),
    ],
)
def test_mistakes_in_the_file(govtool, text, message):
    govtool("init")
    write("govtool.toml", text)
    done = govtool("ingest")
    assert done.code == 2
    assert message in done.err


def test_an_option_of_one_source_is_refused_with_where_it_belongs(sources):
    done = sources("ingest", "--dialect", "postgres")
    assert done.code == 2
    assert "set dialect below its [[sources]] in govtool.toml" in done.err
    assert "--quiet" not in done.err


def test_without_a_file(govtool):
    govtool("init")
    done = govtool("ingest")
    assert done.code == 2
    assert "govtool init --sources" in done.err
    assert govtool("ingest", "--only", "x").code == 2


def test_unknown_names_have_near_ones(sources):
    done = sources("ingest", "--only", "sql:w")
    assert done.code == 2
    assert "sql:wh" in done.err


def test_in_python(sources):
    answer = package.ingest("sql:wh", message="nightly")
    (outcome,) = answer.outcomes
    assert outcome.result is not None
    assert (outcome.state, outcome.result.commit.message) == ("committed", "nightly")
    assert answer.failed == ()


def test_secrets_of_addresses_are_never_shown(govtool, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    govtool("init")
    url = "postgresql://reader:hunter2@127.0.0.1:1/shop"
    write("govtool.toml", f"[[sources]]\nkind='catalog'\nurl='{url}'\n")
    shown = [
        govtool("config", "show"),
        govtool("ingest"),
        govtool("trust"),
        govtool("ingest"),
        govtool("ingest", "-f", "json"),
        govtool("ingest", "-f", "csv"),
    ]
    assert [done.code for done in shown] == [0, 2, 0, 3, 3, 3]
    assert not any("hunter2" in done.out + done.err for done in shown)


@pytest.mark.parametrize("before", [None, "# mine\n[sql]\ndialect = 'duckdb'"])
def test_the_hint_of_ingest_without_sources_leads_to_an_ingest(govtool, before):
    write("wh/x.sql", "create view v as select a from t")
    govtool("init", "--no-sources")
    if before is not None:
        write("govtool.toml", before)
    assert "govtool init --sources" in govtool("ingest").err
    done = govtool("init", "--sources")
    assert (done.code, "hint: govtool ingest" in done.err) == (0, True)
    assert Path("govtool.toml").read_text().startswith(before or "# What")
    assert set(outcomes(govtool)) == {"sql:wh"}
    again = govtool("init", "--sources")
    assert (again.code, "hint: govtool ingest\n" in again.err) == (0, True)
    assert len(load_config(Path.cwd()).sources) == 1


def test_init_beside_settings_with_sources_leads_to_their_ingest(govtool):
    write("govtool.toml", "[[sources]]\nkind='sql'\npath='wh'\n")
    assert "hint: govtool ingest\n" in govtool("init").err
    assert govtool("init").code == 2, "without --sources a store that exists is a mistake"


def test_init_sources_where_there_are_none(govtool):
    govtool("init")
    done = govtool("init", "--sources")
    assert (done.code, "nothing to ingest" in done.err, Path("govtool.toml").exists()) == (0, True, False)


def test_a_source_that_never_was_in_the_graph_keeps_nothing(sources):
    shutil.rmtree("prov")
    done = sources("ingest")
    assert "prov:prov failed, and nothing of it is in the graph" in done.err
    outcomes(sources)
    shutil.rmtree("wh")
    assert "sql:wh keeps its last version" in sources("ingest").err


def test_a_source_that_the_file_lists_no_more_is_named(sources):
    outcomes(sources)
    remark = "in the graph, not in govtool.toml: sql:wh (govtool sources drop sql:wh)"
    assert "not in govtool.toml" not in sources("ingest").err + sources("sources").err
    text = Path("govtool.toml").read_text()
    at = text.index('[[sources]]\nkind = "sql"\npath = "wh"')
    write("govtool.toml", text[:at] + text[text.index("[[sources]]", at + 1) :])
    for words in (("ingest",), ("sources",)):
        done = sources(*words)
        assert (done.code, done.err.count("not in govtool.toml"), remark in done.err) == (0, 1, True)
    sources("sources", "drop", "sql:wh")
    assert "not in govtool.toml" not in sources("ingest").err


@pytest.mark.parametrize(
    ("key", "code"), [("dialect='postgre'", "usage.unknown-dialect"), ("min_coverage=101", "usage.config")]
)
def test_mistaken_settings_are_found_before_anything_is_read(govtool, key, code):
    write("wh/x.sql", "create view v as select a from t")
    write("bad/x.sql", "create view w as select a from t")
    govtool("init", "--no-sources")
    write("govtool.toml", f"[[sources]]\nkind='sql'\npath='wh'\n[[sources]]\nkind='sql'\npath='bad'\n{key}\n")
    done = govtool("ingest")
    assert (done.code, code in done.err, "govtool.toml" in done.err) == (2, True, True)
    Path("govtool.toml").unlink()  # a mistake in it ends other commands, too
    assert json.loads(govtool("log", "-f", "json").out)["commits"] == []


@pytest.mark.parametrize(("name", "source"), [("shop", "catalog:shop"), ("catalog:shop", "catalog:shop"), ("d", None)])
def test_the_end_of_a_name_will_do(sources, name, source):
    done = sources("ingest", "--only", name, "-f", "json")
    assert done.code == (0 if source else 2)
    assert source is None or [each["source"] for each in json.loads(done.out)["sources"]] == [source]


def test_an_ambiguous_end_of_a_name_is_a_mistake(govtool):
    for folder in ("eu/etl", "us/etl"):
        write(f"{folder}/x.sql", "create view v as select a from t")
    govtool("init", "--no-sources")
    write("govtool.toml", "".join(f"[[sources]]\nkind='sql'\npath='{area}/etl'\n" for area in ("eu", "us")))
    done = govtool("ingest", "--only", "etl")
    assert (done.code, "usage.ambiguous-source" in done.err, "sql:eu/etl" in done.err) == (2, True, True)
    assert set(outcomes(govtool, "--only", "us/etl")) == {"sql:us/etl"}


@pytest.mark.parametrize(
    ("setting", "given", "expected"), [(True, None, 1), (True, False, 0), (False, True, 1), (False, None, 0)]
)
def test_the_index_is_published_once_at_the_end(sources, monkeypatch, setting, given, expected):
    published: list[str] = []

    def publish(store, result):
        published.append(result.source)
        return result

    monkeypatch.setattr("govtool.app.ingest.dry_run.published_ingest", publish)
    text = Path("govtool.toml").read_text()
    Path("govtool.toml").write_text(f"[store]\npublish = {str(setting).lower()}\n{text}")
    answer = package.ingest(publish=given)
    made = [each.source for each in answer.outcomes if each.state == "committed"]
    assert len(made) > 2
    assert published == made[-1:] * expected
    published.clear()
    assert package.ingest(publish=given).outcomes[0].state == "unchanged"
    assert package.ingest(dry_run=True, publish=True)
    assert published == []
    package.ingest_sql("wh", source="again", publish=given)
    assert published == ["again"] * expected


def test_quiet_prints_nothing_on_success_and_the_error_of_a_source_that_failed(govtool, project):
    (project / "a.sql").write_text("create view v as select a from t")
    (project / "govtool.toml").write_text("[[sources]]\nkind = 'sql'\npath = 'a.sql'\n")
    assert govtool("init").code == 0
    for _ in range(2):  # the second time nothing is new
        done = govtool("ingest", "--quiet")
        assert (done.code, done.out, done.err) == (0, "", "")
    assert json.loads(govtool("ingest", "-q", "-f", "json").out)["sources"]
    assert govtool("ingest", "-q", "--dry-run").out
    done = govtool("ingest", "sql", "a.sql", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    (project / "a.sql").unlink()
    failed = govtool("ingest", "-q")
    assert (failed.code, failed.out) == (3, "")
    assert "error[usage.no-such-path]" in failed.err
