"""A checkout that nobody vouches for: its settings, its links, its secrets."""

from __future__ import annotations

import json
import os
import shlex
import shutil

import pytest

from govtool.cli.commands import COMMANDS


@pytest.fixture
def nothing_agreed(monkeypatch, tmp_path):
    """No settings of a user, and no agreement yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)


@pytest.fixture
def checkout(project, govtool, nothing_agreed, tmp_path_factory):
    """A repository whose settings name a store elsewhere, and no agreement yet."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "store"
    assert govtool("init", "--store", str(elsewhere)).code == 0
    (project / "govtool.toml").write_text(f"store = {json.dumps(str(elsewhere))}\n")
    (project / "a.sql").write_text("create view v as select a from t")
    return elsewhere


def commits(govtool, store):
    return json.loads(govtool("log", "-f", "json", "--store", str(store)).out)["commits"]


def test_lineage_is_not_sent_to_a_store_that_the_checkout_chose(checkout, govtool):
    refused = govtool("ingest", "sql", "a.sql")
    assert refused.code == 2
    assert "usage.untrusted-store" in refused.err
    assert "govtool trust" in refused.err
    assert str(checkout) in refused.err
    assert commits(govtool, checkout) == []


OPENING = """
ingest all | ingest sql no.sql | ingest sql no.sql --dry-run | ingest dbt no | ingest log no.jsonl
ingest catalog sqlite:///no.db | ingest openlineage no.jsonl | ingest prov no.json | ingest spark no
run no.py | run -- sh -c true | run --commit no | workflow run no.sql --inputs linked
workflow run no.py --inputs linked | workflow list | workflow show r | serve openlineage --port 0
export openlineage | export openlineage --to http://127.0.0.1:1 | export graph -f csv -o x
graph import no.json | graph export g | graph list
impact t.a | path t.a v.a | why t:0 --run r | explain t.a | report html -o x.html | compare oracle no.csv
compare static | sources list | sources drop s | coverage | coverage --details
whatif drop t.a | whatif rename t.a --to b | whatif retype t.a --to int | whatif mask t.a | whatif delete t.a
whatif delete t:0 --run r | whatif several --drop t.a
erase plan --subject t.a=1 | erase plan --subject t.a=1 --run r | erase apply no.json --to x
ls | classes | classify | check | check --policy policies | policy lint
trace back t --where a=1 | trace forward t --where a=1
zoom out --graph g -m m | zoom in --run r -m m | subgraph n --graph g | depends n --on m --run r
replay r | runs | diff | diff HEAD | diff r1 r2 --rows | snapshot no --run r | verify t | log | show | show t
revert HEAD | index | index --publish | branch create b | branch list | branch delete b | branch merge b
tag create t | tag list | tag delete t
store compact | store gc | store fsck | store anchor | store copy elsewhere | store repair-clock
store forget --text-file no.txt | store forget --run r | store forget --source s | init
"""
"""Every command that opens a store; what they name besides is not there, or would be refused: that shows later."""
WITHOUT_STORE = {"lineage", "erase verify", "policy test", "policy explain", "policy schema"}
"""Commands that open no store; some settle trust, or show the settings."""
SETTLING = {"doctor", "trust", "help", "config show"}
COMMAND_LINES = [line.strip() for line in OPENING.replace("\n", "|").split("|") if line.strip()]


def test_every_command_is_on_the_list():
    names = {
        f"{group} {name}" if name else group
        for group, entry in COMMANDS.items()
        for name in (entry if isinstance(entry, dict) else [""])
    }
    opening = {" ".join(line.split()[:2]) for line in COMMAND_LINES} | {line.split()[0] for line in COMMAND_LINES}
    assert names - WITHOUT_STORE - SETTLING <= opening


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_no_command_opens_a_store_that_the_checkout_chose(nothing_agreed, govtool, project, line):
    """Or reads anything before it says so: the error is the same where all else is amiss."""
    (project / "a.sql").write_text("create view v as select a from t")
    (project / "govtool.toml").write_text('store = "s3://attacker/p"\n[[sources]]\nkind = "sql"\npath = "no"\n')
    (project / "policies").mkdir()
    (project / "policies" / "p.yml").write_text("version: 1\nname: p\n")
    (project / "linked").mkdir()
    (project / "linked" / "out").symlink_to(project.parent)
    before = sorted(project.rglob("*"))
    refused = govtool(*shlex.split(line))
    assert refused.code == 2
    assert "usage.untrusted-store" in refused.err, refused.err
    assert "s3://attacker/p" in refused.err
    assert "govtool trust" in refused.err
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize("rest", [("--", "sh", "-c", "touch ran"), ("--commit", "spool")], ids=["job", "commit"])
def test_no_job_runs_for_a_store_that_the_checkout_chose(checkout, govtool, project, rest):
    refused = govtool("run", *rest)
    assert refused.code == 2
    assert "usage.untrusted-store" in refused.err
    assert not (project / "ran").exists()


def test_doctor_and_python_do_not_open_it_either(checkout, govtool, project):
    import govtool as package
    from govtool.errors import UsageError

    (project / "govtool.toml").write_text('store = "s3://attacker/p"\n')
    assert "govtool trust" in govtool("doctor").out
    with pytest.raises(UsageError, match="s3://attacker/p"):
        package.open()
    (project / "govtool.toml").write_text(f"store = {json.dumps(str(checkout))}\n")
    assert govtool("trust").code == 0
    assert govtool("log").code == 0


def test_the_user_may_name_the_store_or_agree_once(checkout, govtool, monkeypatch, project):
    assert govtool("ingest", "sql", "a.sql", "--store", str(checkout)).code == 0
    assert govtool("trust").code == 0
    (project / "a.sql").write_text("create view v as select b from t")
    assert govtool("ingest", "sql", "a.sql").code == 0
    assert len(commits(govtool, checkout)) == 2
    assert govtool("trust", "--revoke").code == 0
    assert govtool("ingest", "sql", "a.sql").code == 2
    monkeypatch.setenv("GOVTOOL_STORE", str(checkout))
    assert govtool("ingest", "sql", "a.sql").code == 0


def test_an_agreement_is_for_one_address(checkout, govtool, project, tmp_path_factory):
    assert govtool("trust").code == 0
    (project / "govtool.toml").write_text('store = "s3://attacker/p"\n')
    refused = govtool("ingest", "sql", "a.sql")
    assert refused.code == 2
    assert "s3://attacker/p" in refused.err


@pytest.mark.parametrize("setting", ['store = "linked"', '[[sources]]\nkind = "sql"\npath = "linked"'])
def test_an_agreement_to_a_link_is_one_to_where_it_leads(nothing_agreed, project, govtool, tmp_path_factory, setting):
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    for place in (one, other):
        (place / "a.sql").write_text("create view v as select a from t")
    for store in (one, other) if "store" in setting else (project / ".govtool",):
        assert govtool("init", "--store", str(store), "--no-sources").code == 0
    link = project / "linked"
    link.symlink_to(one)
    (project / "govtool.toml").write_text(setting + "\n")
    words = ("ingest", "sql", "a.sql") if "store" in setting else ("ingest",)
    (project / "a.sql").write_text("create view v as select a from t")
    assert govtool(*words).code == 2
    assert str(one) in govtool("trust").out
    assert govtool(*words).code == 0
    link.unlink()
    link.symlink_to(other)
    assert govtool(*words).code == 2


def test_nothing_is_deleted_or_written_behind_a_link_of_a_store(nothing_agreed, project, govtool, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "mine.txt").write_text("mine")
    os.utime(elsewhere / "mine.txt", (0, 0))
    (project / "a.sql").write_text("create view v as select a from t")
    assert govtool("init", "--no-sources").code == 0
    assert govtool("ingest", "sql", "a.sql").code == 0
    for name in ("pack", "manifest"):
        (project / ".govtool" / name).symlink_to(elsewhere)
    shutil.rmtree(project / ".govtool" / "tmp")
    (project / ".govtool" / "tmp").symlink_to(elsewhere)
    refused = govtool("store", "gc")
    assert refused.code == 4
    assert "store.link" in refused.err
    assert [each.name for each in elsewhere.iterdir()] == ["mine.txt"]
    shutil.move(project / ".govtool" / "log", elsewhere / "log")
    (project / ".govtool" / "log").symlink_to(elsewhere / "log")
    (project / "a.sql").write_text("create view v as select b from t")
    assert govtool("ingest", "sql", "a.sql").code == 4
    assert len(list((elsewhere / "log" / "main").iterdir())) == 1


@pytest.mark.parametrize("key", ["hint/main", "govtool.json", "log/main/000000000001.json", "tags/x"])
@pytest.mark.parametrize("device", ["/dev/zero", "pipe"])
def test_a_device_in_the_place_of_an_object_is_not_read(nothing_agreed, project, govtool, key, device):
    (project / "a.sql").write_text("create view v as select a from t")
    assert govtool("init", "--no-sources").code == 0
    assert govtool("ingest", "sql", "a.sql").code == 0
    assert govtool("tag", "create", "x").code == 0
    os.mkfifo(project / "pipe")
    place = project / ".govtool" / key
    place.unlink()
    place.symlink_to(project / device)
    for words in (("ls", "--at", "x"), ("ingest", "sql", "a.sql"), ("store", "fsck"), ("tag", "list")):
        assert govtool(*words).code in (0, 4)


def test_a_linked_store_folder_is_no_way_out(project, govtool, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "store"
    assert govtool("init", "--store", str(elsewhere)).code == 0
    (project / ".govtool").symlink_to(elsewhere)
    (project / "a.sql").write_text("create view v as select a from t")
    assert govtool("ingest", "sql", "a.sql").code == 2


@pytest.mark.parametrize(
    "address",
    [
        "file://{store}",
        "file://localhost{store}",
        "FILE://{store}",
        "file://{project}/%2e%2e/{name}",
        "file://{store}#/../../{inside}",
        "file://{store}?/../../{inside}",
    ],
)
def test_an_address_is_read_as_the_store_reads_it(checkout, govtool, project, address):
    text = address.format(
        store=checkout, project=project, name=os.path.relpath(checkout, project.parent), inside=project.relative_to("/")
    )
    (project / "govtool.toml").write_text(f"store = {json.dumps(text)}\n")
    refused = govtool("ingest", "sql", "a.sql")
    assert refused.code == 2
    is_cut = any(mark in address for mark in "?#")
    assert ("usage.store" if is_cut else "usage.untrusted-store") in refused.err
    assert commits(govtool, checkout) == []


def test_nothing_to_trust(project, govtool, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    done = govtool("trust")
    assert done.code == 2
    assert "usage.nothing-to-trust" in done.err


def test_damaged_agreements_are_none(checkout, govtool, monkeypatch, tmp_path):
    folder = tmp_path / "govtool"
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for text in ("", "[]", '{"trusted": [1]}', '{"trusted": [{"file": "x"}]}', "[" * 100_000):
        (folder / "trusted.json").write_text(text)
        assert govtool("ingest", "sql", "a.sql").code == 2


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_do_not_leave_the_folder(project, govtool, tmp_path_factory, kind):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "stolen.sql").write_text("create view stolen as select a from secret")
    folder = project / "s"
    folder.mkdir()
    (folder / "own.sql").write_text("create view own as select a from t")
    (folder / "inside.sql").symlink_to(folder / "own.sql")
    target = outside / "stolen.sql" if kind == "file" else outside
    (folder / "link.sql").symlink_to(target)
    govtool("init")
    done = govtool("ingest", "sql", "s")
    assert done.code == 0
    assert "link.sql" in done.err
    assert "--follow-links" in done.err
    assert "stolen" not in govtool("ls").out
    assert govtool("ingest", "sql", "s", "--follow-links").code == 0
    assert "stolen" in govtool("ls").out


def test_a_log_with_a_bare_carriage_return_is_no_crash(project, govtool):
    (project / "a.csv").write_bytes(b'id,qu\rery,"x\r1,select 1\r')
    govtool("init")
    assert govtool("ingest", "log", "a.csv").code in (2, 3)


def test_versions_as_a_system_states_them_are_found(project, govtool):
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "https://x",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "job": {"namespace": "n", "name": "j"},
    }
    lines = []
    for number in (1, 2):
        output = {"namespace": "s3://b", "name": "b"}
        output["facets"] = {
            "version": {"_producer": "https://x", "_schemaURL": "https://x", "datasetVersion": f"v{number}"}
        }
        run = {"runId": f"0190b0d0-0000-7000-8000-00000000000{number}"}
        lines.append(
            json.dumps({**event, "eventTime": f"2026-01-0{number}T00:00:00Z", "run": run, "outputs": [output]})
        )
    (project / "e.jsonl").write_text("\n".join(lines))
    govtool("init")
    assert govtool("ingest", "openlineage", "e.jsonl").code == 0
    for version, run in (("v1", "000000000001"), ("v2", "000000000002"), ("latest", "000000000002")):
        done = govtool("show", f"s3://b/b@{version}")
        assert done.code == 0
        assert run in done.out
    assert govtool("show", "s3://b/b@v3").code == 2


def test_the_address_of_a_remote_store_stands_in_each_answer(project, govtool, monkeypatch, tmp_path_factory):
    from govtool.store import Store

    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    place = str(tmp_path_factory.mktemp("elsewhere") / "store")
    (project / "a.sql").write_text("create view v as select a from t")
    (project / "l.jsonl").write_text('{"query": "create table z as select a from t"}')
    assert govtool("init", "--store", place).code == 0
    assert place not in govtool("ingest", "sql", "a.sql", "--store", place).out
    monkeypatch.setattr(Store, "is_remote", property(lambda self: True))
    for command in (("sql", "a.sql"), ("sql", "a.sql", "--source", "b"), ("log", "l.jsonl"), ("log", "l.jsonl")):
        done = govtool("ingest", *command, "--store", place)
        assert (done.code, f" in {place}" in done.out) == (0, True), done
    (project / "govtool.toml").write_text('[[sources]]\nkind = "sql"\npath = "a.sql"\n')
    assert f" in {place}" in govtool("ingest", "--store", place).out


def test_commands_beside_ingest_name_a_remote_store_too(project, govtool):
    """``memory://`` is no folder either, and lives as long as this process."""
    pytest.importorskip("duckdb")
    store = "memory://of-a-test"
    (project / "d").mkdir()
    (project / "d" / "t.csv").write_text("a\n1\n")
    (project / "q.sql").write_text("create table r as select a from t")
    (project / "g.json").write_text('{"nodes": [{"id": "n", "kind": "p", "type": "st", "label": "A:0"}], "edges": []}')
    assert govtool("init", "--store", store).code == 0
    for command in ("snapshot d/t.csv --run r", "graph import g.json", "workflow run q.sql --inputs d"):
        done = govtool(*command.split(), "--store", store)
        assert (done.code, f"store: {store}" in done.err) == (0, True), done
    for _ in range(2):
        assert f" in {store}" in govtool("ingest", "sql", "q.sql", "--dry-run", "--store", store).out
        assert govtool("ingest", "sql", "q.sql", "--store", store).code == 0


@pytest.fixture
def linked(project, tmp_path_factory):
    """A folder of data with a relation of its own, and one behind a link out of the folder."""
    outside = tmp_path_factory.mktemp("outside") / "users.csv"
    outside.write_text("name,land\nann,fr\n")
    (project / "data").mkdir()
    (project / "data" / "own.csv").write_text("a\n1\n")
    (project / "data" / "again.csv").symlink_to("own.csv")  # within: as good as a file
    (project / "query.sql").write_text("SELECT name FROM users")
    return outside


OF_DATA = [
    ("why", "--sql", "query.sql", "--data", "data"),
    ("whatif", "delete", "users:0", "--sql", "query.sql", "--data", "data"),
    ("workflow", "run", "query.sql", "--inputs", "data"),
]


@pytest.mark.parametrize("at", ["users.csv", "deep/er/users.csv", "folder"])
@pytest.mark.parametrize("words", OF_DATA, ids=lambda words: words[0])
def test_data_behind_a_link_out_of_its_folder_is_not_read(govtool, project, linked, words, at):
    link = project / "data" / at
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(linked.parent if at == "folder" else linked)
    govtool("init")
    refused = govtool(*words)
    assert refused.code == 2
    assert f"data/{at}" in refused.err
    assert "usage.link" in refused.err
    assert "--follow-links" in refused.err
    if at == "users.csv":
        assert "usage.link" not in govtool(*words, "--follow-links").err


@pytest.mark.parametrize("words", OF_DATA[:2], ids=lambda words: words[0])
def test_links_are_followed_where_they_are_allowed(govtool, project, linked, words):
    (project / "data" / "users.csv").symlink_to(linked)
    assert "ann" in govtool(*words, "--follow-links").out


def test_links_within_a_folder_of_data_are_files(govtool, project, linked):
    (project / "query.sql").write_text("SELECT a FROM again")
    assert govtool("why", "--sql", "query.sql", "--data", "data").code == 0
    (project / "named").symlink_to("data")
    assert govtool("why", "--sql", "query.sql", "--data", "named").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "sql", "a.sql", "--schema", "endless.json"),
        ("ingest", "spark", "endless.json"),
        ("ingest", "dbt", "endless.json"),
        ("check", "--policy", "pack:starter", "--baseline", "endless.json"),
        ("check", "--policy", "endless.json"),
        ("erase", "verify", "endless.json"),
        ("erase", "apply", "endless.json", "--to", "x"),
        ("graph", "import", "endless.json", "--name", "g"),
        ("store", "forget", "--text-file", "endless.json"),
    ],
    ids=" ".join,
)
def test_a_link_to_a_device_is_refused(store, project, command):
    (project / "a.sql").write_text("create view v as select a from t")
    assert store("ingest", "sql", "a.sql").code == 0
    (project / "endless.json").symlink_to("/dev/zero")
    refused = store(*command)
    assert refused.code == 2, refused.err


@pytest.mark.parametrize("kind", ["log", "openlineage", "prov", "spark"])
@pytest.mark.parametrize("of", ["file", "folder"])
def test_links_out_of_folders_of_evidence_are_refused(store, project, tmp_path_factory, kind, of):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "more").mkdir()
    (outside / "more" / "events.json").write_text("{}\n")
    (project / "in").mkdir()
    (project / "in" / "own.json").write_text("{}\n")
    (project / "in" / "inner.json").symlink_to(project / "in" / "own.json")
    (project / "in" / "stolen").symlink_to(outside / "more" / "events.json" if of == "file" else outside / "more")
    refused = store("ingest", kind, "in")
    assert refused.code == 2
    assert "usage.link" in refused.err
    assert "in/stolen" in refused.err
    (project / "in" / "stolen").unlink()
    assert "usage.link" not in store("ingest", kind, "in").err


OUTSIDE = [
    'kind = "sql"\npath = "{away}"',
    'kind = "sql"\npath = ["in", "../{name}"]',
    'kind = "sql"\npath = "linked"',
    'kind = "sql"\npath = "in"\nfollow_links = true',
    'kind = "sql"\npath = "in"\nschema = "{away}/a.sql"',
    'kind = "sql"\npath = "in"\ncatalog = "postgresql://127.0.0.1:1/shop"',
    'kind = "dbt"\npath = "linked/target"',
    'kind = "log"\npath = "{away}/log.jsonl"',
    'kind = "log"\npath = "in"\nengine = "spark"\nmaster = "spark://attacker:7077"',
    'kind = "catalog"\nurl = "postgresql://ann:secret@127.0.0.1:1/shop"',
    'kind = "catalog"\nurl = "sqlite:///{away}/a.db"',
    'kind = "catalog"\nurl = "sqlite:///../{name}/a.db"',
    'kind = "catalog"\nurl = "linked/a.db.sqlite"',
    'kind = "catalog"\nurl = "spark:///srv/warehouse"',
    'kind = "catalog"\nurl = "sqlite:///a.db"\nsql = "{away}"',
    'kind = "spark"\npath = "{away}"',
]


@pytest.fixture
def away(nothing_agreed, project, tmp_path_factory):
    """A folder outside of the checkout, with a link to it in the checkout."""
    made = tmp_path_factory.mktemp("away")
    (made / "a.sql").write_text("create view stolen as select a from t")
    (project / "linked").symlink_to(made)
    (project / "own").mkdir()
    (project / "own" / "a.sql").write_text("create view v as select a from t")
    return made


def list_sources(project, *entries):
    text = "".join(f"[[sources]]\n{entry}\n" for entry in entries)
    (project / "govtool.toml").write_text(text)


@pytest.mark.parametrize("entry", OUTSIDE)
def test_sources_outside_of_the_checkout_need_an_agreement(away, project, entry):
    from govtool.app.ingest.all_sources import chosen_sources
    from govtool.app.project.trust import trust
    from govtool.errors import UsageError

    list_sources(project, entry.format(away=away, name=os.path.relpath(away, project.parent)))
    with pytest.raises(UsageError, match="outside of its folder") as refused:
        chosen_sources(())
    assert refused.value.code == "usage.untrusted-source"
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"
    assert trust()
    assert len(chosen_sources(())) == 1


def test_no_source_is_read_before_those_outside_are_agreed_to(away, govtool, project):
    list_sources(project, 'kind = "sql"\npath = "own"', f'kind = "sql"\npath = "{away}"')
    assert govtool("init", "--store", str(project / ".govtool"), "--no-sources").code == 0
    for line in ("ingest", "ingest --dry-run"):
        refused = govtool(*line.split())
        assert refused.code == 2
        assert f"govtool trust, once; or name it yourself: govtool ingest sql {away}" in refused.err
    assert commits(govtool, project / ".govtool") == []
    assert govtool("ingest", "--only", "own").code == 0
    assert govtool("trust").code == 0
    assert govtool("ingest").code == 0
    assert govtool("trust", "--revoke").code == 0
    assert "usage.untrusted-source" in govtool("ingest").err
    assert govtool("ingest", "sql", str(away)).code == 0


def test_a_schema_outside_of_the_checkout_is_not_read(nothing_agreed, govtool, project, tmp_path_factory):
    file = tmp_path_factory.mktemp("away") / "ddl.sql"
    file.write_text("create table t (a int)")
    (project / "govtool.toml").write_text(f"[sql]\nschema = {json.dumps(str(file))}\n")
    (project / "a.sql").write_text("create view v as select * from t")
    refused = govtool("lineage", "a.sql")
    assert refused.code == 2
    assert f"--schema {file}" in refused.err
    assert govtool("lineage", "a.sql", "--schema", str(file)).code == 0
    assert govtool("trust").code == 0
    assert govtool("lineage", "a.sql").code == 0
