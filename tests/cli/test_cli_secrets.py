"""A catalogue of statements with a secret, by every path on which text reaches the disk or the screen: it never does."""

from __future__ import annotations

import json

import pytest
from secret_statements import SECRET, STATEMENTS

from govtool.app.upkeep.fragment_text import TextForms

FORMS = TextForms([SECRET])
PLAIN = [text for _, text in STATEMENTS if f'"{SECRET}"' not in text]
"""Statements that come without their dialect: a text in double quotes is a name then, as the standard has it."""
DIALECTS = sorted({dialect for dialect, _ in STATEMENTS})


def leaks(project, *outputs):
    """Outputs, and files of the store and the cache, that hold the secret."""
    found = [text[max(0, at - 60) : at + 40] for text in outputs if (at := text.lower().find(SECRET.lower())) >= 0]
    for folder in (project / ".govtool", project.parent / "cache", project / "spool"):
        for path in sorted(folder.rglob("*")) if folder.exists() else ():
            if path.is_file() and FORMS.in_fragment(path.read_bytes()):
                found.append(str(path.relative_to(project.parent)))
    return found


def of_dialect(dialect):
    return [text for each, text in STATEMENTS if each == dialect]


def test_the_catalogue_is_large_enough():
    assert len(STATEMENTS) >= 52
    assert all(SECRET in text for _, text in STATEMENTS)


def leaks_of_sql(store, project, texts, *options):
    """What is left of statements that are ingested and asked about."""
    for number, text in enumerate(texts):
        (project / f"s{number}.sql").write_text(f"{text};\n")
    done = store("ingest", "sql", ".", "--replace", "--explain-failures", *options)
    words = (["coverage", "-v"], ["ls", "-f", "json"], ["show"], ["sources"], ["explain", "**", "-f", "json"])
    shown = [store(*each) for each in words]
    exported = store("export", "openlineage", "-o", "-")
    answers = [store("lineage", ".", *options, "-f", form) for form in ("table", "json", "dot")]
    return leaks(project, *(part for each in (done, exported, *shown, *answers) for part in (each.out, each.err)))


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect])
def test_sql_files(store, project, dialect):
    assert leaks_of_sql(store, project, of_dialect(dialect), "--dialect", dialect) == []


def test_sql_files_without_their_dialect(store, project):
    """All of them, as a text in double quotes is a name then, as the standard has it, but for those."""
    assert leaks_of_sql(store, project, PLAIN) == []


def test_query_logs(store, project):
    lines = [
        json.dumps({"query": text, "timestamp": "2026-11-20T10:00:00Z", "user": "ann", "session": str(number)})
        for number, text in enumerate(PLAIN)
    ]
    (project / "log.jsonl").write_text("\n".join(lines))
    done = store("ingest", "log", "log.jsonl", "--workers", "1")
    shown = store("coverage", "-v")
    assert leaks(project, done.out, done.err, shown.out, shown.err) == []


def test_openlineage_events(store, project):
    """In the SQL, in the message of an error, in parameters and properties."""
    events = []
    plain = [text for text in PLAIN if '"ann-' not in text and " -> " not in text]  # of PostgreSQL: a key of JSON
    for number, text in enumerate(plain):
        lineage = {"fields": {"c": {"inputFields": [{"namespace": f"s3://AK:{SECRET}@b", "name": "x", "field": "f"}]}}}
        symlinks = {"identifiers": [{"namespace": f"hive://u:{SECRET}@h", "name": "t", "type": "TABLE"}]}
        facets = {
            "errorMessage": {"message": f"failed: {text}", "programmingLanguage": "SQL", "stackTrace": f"at x\n{text}"},
            "environment-properties": {"password": SECRET, "url": f"https://u:{SECRET}@h/x"},
        }
        events.append(
            {
                "eventType": "FAIL",
                "eventTime": "2026-11-20T10:00:00Z",
                "producer": f"https://u:{SECRET}@h/x",
                "schemaURL": "s",
                "run": {"runId": f"r{number}", "facets": facets},
                "job": {
                    "namespace": f"mysql://u:{SECRET}@h",
                    "name": f"j{number} of https://h/x?sig={SECRET}",
                    "facets": {"sql": {"query": text}},
                },
                "inputs": [
                    {"namespace": f"s3://AK:{SECRET}@b", "name": "x", "facets": {"symlinks": symlinks}},
                    {"namespace": "https://h", "name": f"/x.parquet?sp=r&sig={SECRET}"},
                    {"namespace": f"abfss://c@a?sig={SECRET}", "name": f"x?X-Amz-Signature={SECRET}"},
                ],
                "outputs": [
                    {"namespace": "postgres://h:5432", "name": f"t{number}", "facets": {"columnLineage": lineage}}
                ],
            }
        )
    (project / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    done = store("ingest", "openlineage", "events.jsonl")
    shown = [
        store(*words)
        for words in (["coverage", "-v"], ["runs", "-f", "json"], ["show", "r3"], ["show", "r3", "-f", "json"])
    ]
    exported = store("export", "openlineage", "-o", "-")
    texts = [part for each in (done, exported, *shown) for part in (each.out, each.err)]
    assert leaks(project, *texts) == []


def test_the_batch_protocol(store, project):
    lines = b"".join(
        json.dumps({"id": 1, "sql": text, "dialect": dialect}).encode() + b"\n" for dialect, text in STATEMENTS
    )
    done = store("lineage", "--batch", stdin=lines)
    assert leaks(project, done.out, done.err) == []


def test_what_people_write(store, project):
    """Messages, authors and reasons of commits, comments, descriptions, and names in errors."""
    text = f"see postgres://u:{SECRET}@h/db password={SECRET}"
    (project / "a.sql").write_text(f"create table t (a int);\ncomment on table t is '{text}';")
    dbt = {"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"}, "nodes": {}}
    dbt["sources"] = {
        "source.p.s.t": {
            "resource_type": "source", "schema": "s", "name": "t", "identifier": "t", "database": "d", "columns": {},
            "description": text, "meta": {"password": SECRET, "token_owner": "ann"},
        }
    }  # fmt: skip
    (project / "manifest.json").write_text(json.dumps(dbt))
    done = [store("ingest", "sql", "a.sql", "--dialect", "postgres", "--author", text, "-m", text)]
    done += [store("ingest", "dbt", "manifest.json"), store("branch", "create", "next", "--author", text)]
    done += [store("explain", "**", "-f", "json"), store("log", "-f", "json")]
    done += [store("store", "forget", "--source", "sql:a.sql", "--reason", text, "-m", text)]
    done += [store("branch", f"s3://AK:{SECRET}@b"), store("impact", f"s3://AK:{SECRET}@b/x")]
    assert [each.code for each in done] == [0, 0, 0, 0, 0, 0, 2, 2]
    assert leaks(project, *(part for each in done for part in (each.out, each.err))) == []


def test_settings(store, project):
    (project / "govtool.toml").write_text(
        f'store = "s3://AK:{SECRET}@bucket/p"\n[sql]\nnamespace = "postgres://u:{SECRET}@h"\n'
        f'[sql.variables]\npassword = "{SECRET}"\nurl = "https://h/x?sig={SECRET}"\n'
    )
    for form in ("table", "json", "csv"):
        done = store("config", "show", "-f", form)
        assert "s3://bucket" in done.out
        assert leaks(project, done.out, done.err) == []
    done = store("ls")
    assert leaks(project, done.out, done.err) == []


@pytest.mark.parametrize(
    "store_option", [f"az://acc:{SECRET}@c", f"s3://b/x?X-Amz-Signature={SECRET}", f"file://u:{SECRET}@h/x"]
)
def test_addresses_of_stores(project, govtool, monkeypatch, store_option):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AK")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for command in (["ls"], ["ls", "--debug"], ["init"], ["doctor"]):
        done = govtool(*command, "--store", store_option)
        assert done.code != 0
        assert leaks(project, done.out, done.err) == []


def test_prov_documents(store, project):
    entity = {"prov:location": f"s3://AK:{SECRET}@b/x", "ex:password": SECRET, "prov:label": f"password={SECRET}"}
    activity = {"prov:label": f"curl -u u:{SECRET} --password={SECRET}", "ex:url": f"https://h/x?sig={SECRET}"}
    document = {
        "prefix": {"ex": f"http://u:{SECRET}@h/"},
        "entity": {"ex:a": entity, "ex:b": {}},
        "activity": {"ex:act": activity},
        "used": {"_:u": {"prov:activity": "ex:act", "prov:entity": "ex:a"}},
        "wasGeneratedBy": {"_:g": {"prov:entity": "ex:b", "prov:activity": "ex:act"}},
    }
    (project / "p.json").write_text(json.dumps(document))
    done = store("ingest", "prov", "p.json")
    shown = [
        store(*words) for words in (["runs", "-f", "json"], ["ls", "-f", "json"], ["export", "openlineage", "-o", "-"])
    ]
    assert done.code == 0
    assert leaks(project, *(part for each in (done, *shown) for part in (each.out, each.err))) == []


def test_rows_of_a_mistaken_csv_file_are_not_repeated(project, govtool):
    (project / "data").mkdir()
    (project / "data" / "people.csv").write_text(f"id,name\n1,ann\n2,bob,{SECRET}\n")
    (project / "q.sql").write_text("select name from people")
    refused = govtool("why", "--sql", "q.sql", "--data", "data")
    assert refused.code == 2
    assert "people.csv:3" in refused.err
    assert leaks(project, refused.out, refused.err) == []


@pytest.fixture
def recorded(store, project):
    """A script of SQL with a secret in literals, comments and rows, run with its records; its name and its places."""
    pytest.importorskip("duckdb")
    (project / "in").mkdir()
    (project / "in" / "users.csv").write_text(f"id,name,note\n1,ann,x\n2,bob,{SECRET}\n")
    (project / "job.sql").write_text(
        f"-- password={SECRET}\ncreate table a as select id, name, case when note = '{SECRET}' then 1 else 0 end as hit"
        f" from users where name <> '{SECRET}' /* {SECRET} */;\n"
        f"create table b as select hit, count(*) as n from a group by hit having max(name) <> '{SECRET}'"
    )
    done = store("workflow", "run", "job.sql", "--inputs", "in")
    assert done.code == 0
    run = done.out.split()[0]
    state = project / "job.state" / run
    return run, str(state / "inputs" / "users.parquet"), str(state / "a")


def private(places):
    return [place for place in places if "/private_" in place]


def test_a_recorded_run_keeps_literals_in_private_tables_alone(store, project, recorded):
    """Answers, exports, reports, certificates and messages have none; the cache has what was made of rows, privately."""
    run, users, output = recorded
    subject = f"{users}.note={SECRET}"
    words = [
        ["runs", "-f", "json"], ["show", f"{run}/0", "-f", "json"], ["workflow", "show", run, "-f", "json"],
        ["log", "-v"], ["explain", "**", "-f", "json"], ["export", "openlineage", "-o", "-"], ["store", "fsck", "-f", "json"],
        ["diff", f"{run}/0", f"{run}/1", "-f", "json"], ["diff", f"{run}/0", f"{run}/0", "--rows", "-f", "json"],
        ["trace", "back", output, "--where", "id = 1", "--verify", "-f", "json"],
        ["trace", "back", output, "--where", f"password = '{SECRET}"],
        ["trace", "back", output, "--where", f"cast('{SECRET}' as int) = id", "--verify"],
        ["erase", "plan", "--subject", subject, "--run", run, "-f", "table"],
        ["erase", "plan", "--subject", f"{users}.id={SECRET}", "--run", run],
        ["zoom", "out", "--run", run, "-m", "a", "-f", "json"], ["export", "graph", "-f", "prov-json", "-o", "-"],
        ["report", "html", "--workflow", f"run:{run}"], ["check", "--policy", "pack:gdpr", "-f", "sarif"],
    ]  # fmt: skip
    texts = [part for each in words for done in [store(*each)] for part in (done.out, done.err)]
    plan, copies = project / "plan.json", project / "corrected"
    assert store("erase", "plan", "--subject", subject, "--run", run, "-f", "json", "-o", str(plan)).code == 0
    traced = project / "trace.json"
    assert store("trace", "back", output, "--where", "id = 1", "-f", "json", "-o", str(traced)).code == 0
    kept = [path for path in (project / ".govtool").rglob("*") if "private_" in str(path.parent)]
    assert kept
    assert [path for path in (plan, traced) if path.stat().st_mode & 0o077] == []
    assert [path for path in kept if path.stat().st_mode & 0o007] == []
    done = store("erase", "apply", str(plan), "--to", str(copies), "-f", "json")
    checked = store("erase", "verify", str(copies), "-f", "json")
    assert (done.code, checked.code) == (0, 0)
    texts += [done.out, done.err, checked.out, checked.err, (copies / "certificate.json").read_text()]
    found = leaks(project, *texts)
    cached = [place for place in found if place.startswith("cache/")]
    assert [place for place in found if place not in private(found) and place not in cached] == []
    for place in cached:
        folder = next(each for each in (project.parent / place).parents if each.parent.name == "commits")
        assert folder.stat().st_mode & 0o077 == 0


def test_a_recorded_run_that_is_forgotten_leaves_nothing(store, project, recorded):
    run, _, output = recorded
    assert private(leaks(project))
    store("graph", "export", "--run", run, "-f", "json", "-o", "graph.json")
    store("store", "copy", str(project / "spool"))
    assert store("store", "forget", "--run", run).code == 0
    assert store("store", "copy", str(project / "spool")).code == 0
    assert leaks(project) == []
    assert store("store", "gc", "--grace", "0").code == 0
    for place in ([], ["--store", str(project / "spool")]):
        assert store("store", "fsck", *place).code == 0
    refused = store("trace", "back", output, "--where", "id = 1")
    assert (refused.code, "usage.forgotten" in refused.err) == (2, True)
    by = json.loads(store("log", "-f", "json").out)["commits"][0]
    removed = f"commit {by['seq']} ({by['id'][:7]}) at {by['time'][:16]} removed them"
    drawn = store("graph", "export", "--run", run, "-f", "json")
    zoomed, again = store("zoom", "out", "--run", run, "-m", "a"), store("graph", "export", "--run", run, "--at", "1")
    assert [removed in each.err for each in (refused, drawn, zoomed, again)] == [True] * 4
    assert store("runs").code == store("workflow", "show", run).code == 0
