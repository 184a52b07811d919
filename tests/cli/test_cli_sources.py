"""Sources: names by kind and place, what replaces what, taking over those of older stores, and ``govtool sources``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import check


def write(path: str, text: str) -> str:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return path


@pytest.fixture
def two_folders(govtool):
    """Two folders of one name, and a store."""
    write("a/models/x.sql", "create table t1 as select a from s1")
    write("b/models/y.sql", "create table t2 as select b from s2")
    govtool("init")
    return govtool


def sources(govtool) -> dict[str, dict]:
    answer = check(govtool("sources", "--format", "json").out, "sources-1")
    return {each["source"]: each for each in answer["sources"]}


def names(govtool) -> set[str]:
    return {json.loads(line)["name"] for line in govtool("ls", "--format", "jsonl").out.splitlines()}


def test_two_folders_of_one_name_are_two_sources(two_folders):
    two_folders("ingest", "sql", "a/models")
    two_folders("ingest", "sql", "b/models")
    assert set(sources(two_folders)) == {"sql:a/models", "sql:b/models"}
    assert {"t1", "t2"} <= names(two_folders)


def test_a_source_within_another_is_warned_of(two_folders):
    two_folders("ingest", "sql", "a/models")
    assert "source-overlap" not in two_folders("ingest", "sql", "b/models").err
    within = two_folders("ingest", "sql", "b/models/y.sql").err
    assert "source-overlap" in within
    assert "sql:b/models" in within
    assert "sql:a/models, sql:b/models" in two_folders("ingest", "sql", ".").err
    write("a/models_of_2024/z.sql", "create table t3 as select c from s3")
    two_folders("sources", "drop", "sql:.")
    assert "source-overlap" not in two_folders("ingest", "sql", "a/models_of_2024").err


def test_a_source_within_another_is_warned_of_whatever_it_is_called(two_folders, monkeypatch, tmp_path):
    two_folders("ingest", "sql", "a/models", "--source", "etl")
    assert "also those of etl" in two_folders("ingest", "sql", "a").err
    store = str(Path(".govtool").resolve())
    monkeypatch.chdir(tmp_path)  # both lie outside of this project
    write("elsewhere/models/x.sql", "create table t4 as select c from s4")
    assert "source-overlap" not in two_folders("ingest", "sql", "elsewhere", "--store", store).err
    within = two_folders("ingest", "sql", "elsewhere/models", "--store", store).err
    assert "also those of sql:elsewhere" in within


def test_the_run_of_a_script_is_no_second_source_of_its_statements(govtool):
    pytest.importorskip("duckdb")
    write("x.sql", "create table t as select a from s")
    write("data/s.csv", "a\n1\n")
    govtool("init", "--no-sources")
    assert govtool("workflow", "run", "x.sql", "--inputs", "data").code == 0
    done = govtool("ingest", "sql", ".")
    assert done.code == 0
    assert "source-overlap" not in done.err


@pytest.mark.parametrize("path", ["./a/models", "a/../a/models/", "b/../a/./models"])
def test_the_way_to_a_folder_changes_nothing(two_folders, path):
    two_folders("ingest", "sql", "a/models")
    done = two_folders("ingest", "sql", path)
    assert "no change" in done.out + done.err or len(sources(two_folders)) == 1
    assert set(sources(two_folders)) == {"sql:a/models"}


def test_a_subfolder_of_the_project_names_sources_as_its_root_does(two_folders, monkeypatch):
    two_folders("ingest", "sql", "a/models")
    monkeypatch.chdir("b")
    two_folders("ingest", "sql", "../a/models")
    assert set(sources(two_folders)) == {"sql:a/models"}


def test_another_kind_of_ingest_replaces_nothing(two_folders):
    write("k/orders.sql", "create table orders as select id from raw_orders")
    write("m/orders.sql", '{"prefix": {"e": "http://e/"}, "entity": {"e:x": {}}}')
    two_folders("ingest", "sql", "k/orders.sql")
    two_folders("ingest", "prov", "m/orders.sql")
    assert "sql:k/orders.sql" in sources(two_folders)


def test_what_was_read_elsewhere_is_replaced_only_where_that_is_meant(two_folders):
    two_folders("ingest", "sql", "a/models", "--source", "wh")
    refused = two_folders("ingest", "sql", "b/models", "--source", "wh")
    assert refused.code == 2
    assert "usage.source-replaced" in refused.err
    assert "sql:a/models" in refused.err
    assert "sql:b/models" in refused.err
    assert sources(two_folders)["wh"]["place"] == "a/models"
    assert two_folders("ingest", "sql", "b/models", "--source", "wh", "--replace").code == 0
    assert sources(two_folders)["wh"]["place"] == "b/models"


def test_a_kind_is_part_of_where_a_source_was_read(two_folders):
    write("log.jsonl", '{"text": "create table t3 as select c from s3"}\n')
    two_folders("ingest", "sql", "a/models", "--source", "wh")
    assert two_folders("ingest", "log", "log.jsonl", "--source", "wh").code == 2
    assert two_folders("ingest", "log", "log.jsonl").code == 0
    assert sources(two_folders)["log:log.jsonl"]["kind"] == "log"


def test_drop_retracts_one_source_and_leaves_the_others(two_folders):
    two_folders("ingest", "sql", "a/models")
    two_folders("ingest", "sql", "b/models")
    unknown = two_folders("sources", "drop", "models")
    assert unknown.code == 2
    assert "sql:a/models" in unknown.err
    assert two_folders("sources", "drop", "sql:a/models").code == 0
    assert set(sources(two_folders)) == {"sql:b/models"}
    left = names(two_folders)
    assert "t1" not in left
    assert "t2" in left
    assert "t1" in two_folders("ls", "--at", "HEAD~1").out


def test_every_format_has_every_source(two_folders):
    two_folders("ingest", "sql", "a/models")
    two_folders("ingest", "sql", "b/models", "--source", "mine")
    for form in ("table", "plain", "json", "jsonl", "csv", "markdown"):
        shown = two_folders("sources", "list", "-f", form).out
        assert "sql:a/models" in shown
        assert "mine" in shown


def test_a_name_that_is_markup_stays_text(two_folders):
    two_folders("ingest", "sql", "a/models", "--source", "[red]x[/red]")
    assert "[red]x[/red]" in two_folders("sources").out


def test_the_first_ingest_takes_over_the_source_of_an_older_store(two_folders):
    from govtool.app.ingest import sql_texts
    from govtool.app.project.sources import SourceOrigin, former_name

    def former(
        kind: str, paths, name, *, store, replace=False, root=None
    ):  # the folder's name, and no record of its place
        return former_name(paths), SourceOrigin("", "", root)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql_texts, "named_source", former)
        two_folders("ingest", "sql", "a/models")
    assert [each["kind"] for each in sources(two_folders).values()] == [None]
    two_folders("ingest", "sql", "b/models")
    assert set(sources(two_folders)) == {"models", "sql:b/models"}, "another folder of that name takes nothing over"
    two_folders("ingest", "sql", "a/models")
    assert set(sources(two_folders)) == {"sql:a/models", "sql:b/models"}


def test_a_folder_read_from_outside_of_the_project_is_the_same_source(two_folders, monkeypatch, tmp_path_factory):
    two_folders("ingest", "sql", "a/models")
    project = Path.cwd()
    monkeypatch.chdir(tmp_path_factory.mktemp("outside"))
    done = two_folders("ingest", "sql", str(project / "a/models"), "--store", str(project / ".govtool"))
    assert done.code == 0
    monkeypatch.chdir(project)
    assert set(sources(two_folders)) == {"sql:a/models"}


def test_settings_that_name_the_store_make_the_project(govtool, monkeypatch, tmp_path_factory):
    write("govtool.toml", "store = 'kept/store'")
    write("models/x.sql", "create table t1 as select a from s1")
    project = Path.cwd()
    govtool("init", "--store", str(project / "kept/store"))
    assert govtool("ingest", "sql", "models", "--store", str(project / "kept/store")).code == 0
    monkeypatch.chdir(tmp_path_factory.mktemp("outside"))
    govtool("ingest", "sql", str(project / "models"), "--store", str(project / "kept/store"))
    answer = json.loads(govtool("sources", "-f", "json", "--store", str(project / "kept/store")).out)
    assert [each["source"] for each in answer["sources"]] == ["sql:models"]


def test_another_projects_folder_of_the_same_name_replaces_nothing(two_folders, tmp_path_factory):
    two_folders("ingest", "sql", "a/models")
    other = tmp_path_factory.mktemp("other")
    write(str(other / ".git/HEAD"), "")
    write(str(other / "a/models/z.sql"), "create table t9 as select z from s9")
    assert two_folders("ingest", "sql", str(other / "a/models")).code == 0
    assert set(sources(two_folders)) == {"sql:a/models", "sql:models"}


def test_a_link_within_the_project_is_what_it_leads_to(two_folders):
    two_folders("ingest", "sql", "a/models")
    Path("link").symlink_to("a/models")
    assert two_folders("ingest", "sql", "link").code == 0
    assert set(sources(two_folders)) == {"sql:a/models"}


def test_a_link_that_leads_out_has_its_own_name(two_folders, tmp_path_factory):
    other = tmp_path_factory.mktemp("shared")
    write(str(other / "z.sql"), "create table t9 as select z from s9")
    Path("shared").symlink_to(other)
    assert two_folders("ingest", "sql", "shared").code == 0
    assert set(sources(two_folders)) == {"sql:shared"}


def test_two_standard_inputs_replace_each_other_only_if_it_is_meant(govtool):
    govtool("init")
    assert govtool("ingest", "sql", "-", stdin=b"create table t1 as select a from s1").code == 0
    assert govtool("ingest", "sql", "-", stdin=b"create table t1 as select a from s1").code == 0
    refused = govtool("ingest", "sql", "-", stdin=b"create table t2 as select b from s2")
    assert refused.code == 2
    assert "--source NAME" in refused.err
    assert "t1" in names(govtool)
    assert govtool("ingest", "sql", "-", "--source", "two", stdin=b"create table t2 as select b from s2").code == 0
    assert govtool("ingest", "sql", "-", "--source", "two", stdin=b"create table t3 as select b from s2").code == 0
    assert {"t1", "t3"} <= names(govtool)
    assert govtool("ingest", "sql", "-", "--replace", stdin=b"create table t4 as select b from s2").code == 0
    assert {"t4", "t3"} <= names(govtool)
    assert "t1" not in names(govtool)


def test_a_log_has_a_dry_run(govtool):
    option = "--dry-run"
    govtool("init")
    write("q.jsonl", '{"sql": "create view v as select a from t", "ts": "2026-11-20T01:00:00Z"}\n')
    done = govtool("ingest", "log", "q.jsonl", option, "-f", "json")
    plan = check(done.out, "ingest-plan-1")
    assert plan["summary"]["columns"]["added"] == 2
    assert govtool("ingest", "log", "q.jsonl", option, "--engine", "spark").code == 2
    assert json.loads(govtool("log", "-f", "json").out)["commits"] == []
