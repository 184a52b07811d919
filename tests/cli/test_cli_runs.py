"""``runs``, ``show RUN``, ``show DATASET@VERSION``, ``diff RUN RUN``, ``ingest prov``, selectors of runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from answers import check

ROOT = Path(__file__).parents[2]


def answer(done, name):
    assert done.code == 0, done.err
    return check(done.out, name)


@pytest.fixture
def lab(project, govtool):
    shutil.copytree(ROOT / "fixtures" / "prov", project / "prov")
    govtool("init")
    assert govtool("ingest", "prov", "prov").code == 0
    return project


def test_runs(govtool, lab):
    body = answer(govtool("runs", "-f", "json"), "runs-1")
    assert [run["job"] for run in body["runs"]] == ["summarise", "plan-parse", "archive", "summarise", "plan-parse"]
    kept = answer(govtool("runs", "plan-*", "--software", "parser<1.5", "-f", "json"), "runs-1")["runs"]
    assert [run["id"] for run in kept] == ["https://lab.example/prov#parse-19"]
    assert kept[0]["user"] == "Ada"
    assert len(answer(govtool("runs", "--dataset", "report.csv", "-f", "json"), "runs-1")["runs"]) == 3
    for since in ("2026-11-20", "2026-11-20 00:00", "2026-11-20T01:00+01:00"):
        assert len(answer(govtool("runs", "--since", since, "-f", "json"), "runs-1")["runs"]) == 2
    assert answer(govtool("runs", "--limit", "1", "-f", "json"), "runs-1")["truncated"] == 4
    assert "5 runs of 3 jobs" in govtool("runs").out


def test_one_run(govtool, lab):
    run = answer(govtool("show", "archive", "-f", "json"), "run-1")["run"]
    assert run["inputs"][0]["read"] == "file:data/report.csv@report-19"
    assert run["inputs"][0]["exact"]
    assert "Ada" in govtool("show", "plan-parse~1").out


def test_provenance_of_a_version_is_the_first_query_of_the_paper(govtool, lab):
    body = answer(govtool("show", "s3://archive/report@archive-19", "-f", "json"), "version-1")
    assert [(v["version"], v["hops"]) for v in body["versions"]] == [
        ("s3://archive/report@archive-19", 0),
        ("file:data/report.csv@report-19", 1),
        ("file:data/clean.csv@clean-19", 2),
    ]
    assert [lost["dataset"] for lost in body["without_provenance"]] == ["file:data/raw.csv"]
    by_date = govtool("show", "report.csv@2026-11-19").out
    assert "report-19" in by_date
    assert "report-20" not in by_date


def test_outputs_of_a_tool_and_what_follows_are_its_second_and_third(govtool, lab):
    def names(selector):
        return [entry["name"] for entry in answer(govtool("ls", selector, "-f", "json"), "ls-1")["items"]]

    assert names("software:parser==1.5") == ["file:data/clean.csv"]
    assert names("software:parser==1.5+") == ["file:data/clean.csv", "file:data/report.csv", "s3://archive/report"]
    # What version 1.4 wrote has been replaced; only the archive, made of it before, still has it.
    assert names("software:parser==1.4") == ["s3://archive/report"]
    assert names("run:keep-19") == names("job:archive") == ["s3://archive/report"]
    assert names("run:*summarise*") == ["file:data/report.csv"]


def test_two_runs(govtool, lab):
    body = answer(govtool("diff", "plan-parse~1", "plan-parse", "-f", "json"), "run-diff-1")
    assert not body["reproduced"]
    assert {(c["aspect"], c["name"]) for c in body["changes"]} == {
        ("input", "file:data/raw.csv"), ("environment", "parser"), ("output", "file:data/clean.csv"),
    }  # fmt: skip
    assert govtool("diff", "plan-parse~1", "plan-parse", "--exit-code").code == 1
    assert govtool("diff", "plan-parse", "plan-parse", "--exit-code").code == 0
    assert govtool("diff", "plan-parse~1", "plan-parse", "--strict").code == 3
    assert "parser" in govtool("diff", "plan-parse~1", "plan-parse", "-f", "markdown").out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "nothing"), "usage.unknown-ref"),
        (("show", "report.csv@nothing"), "usage.unknown-version"),
        (("show", "raw.csv@1"), "usage.unknown-dataset"),
        (("show", "s3@1"), "usage.unknown-dataset"),
        (("show", "https://lab.example/prov#"), "usage.ambiguous-run"),
        (("runs", "--status", "done"), "usage.unknown-status"),
        (("runs", "--since", "yesterday"), "usage.date"),
        (("runs", "--since", "20261120"), "usage.date"),
        (("runs", "--software", "<2"), "usage.software"),
        (("ls", "software:passer"), "usage.unknown-software"),
        (("ls", "run:nothing"), "usage.unknown-run"),
        (("diff", "plan-parse", "HEAD"), "usage.arguments"),
    ],
)
def test_mistakes(govtool, lab, arguments, code):
    done = govtool(*arguments)
    assert done.code == 2
    assert f"error[{code}]" in done.err


def test_the_same_documents_again_make_no_commit(govtool, lab):
    assert "nothing new" in govtool("ingest", "prov", "prov").out


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"{", "not-json"),
        (b"[]", "not-prov"),
        (b"\xff\xfe\x00", "not-prov"),
        (b'{"entity": []}', "not-prov"),
        (b"[" * 100_000, "nesting"),
    ],
)
def test_what_is_no_document_is_said_and_the_rest_is_read(govtool, lab, text, code):
    (lab / "prov" / "bad.json").write_bytes(text)
    done = govtool("ingest", "prov", "prov")
    assert done.code == 0
    assert f"[{code}]" in done.err
    assert "bad.json" in done.err
    assert len(answer(govtool("runs", "-f", "json"), "runs-1")["runs"]) == 5


def test_other_forms_and_relations(govtool, project):
    govtool("init")
    (project / "doc.provn").write_text(
        """document
  prefix ex <https://ex.org/d#>
  entity(ex:all)
  entity(ex:a, [prov:label="first"])
  entity(ex:b)
  entity(ex:b2)
  entity(ex:c)
  activity(ex:one, 2026-11-20T01:00:00, 2026-11-20T02:00:00)
  activity(ex:two, -, -)
  wasDerivedFrom(ex:b, ex:a, -, -, -)
  wasDerivedFrom(ex:b2, ex:b, -, -, -, [prov:type='prov:Revision'])
  wasGeneratedBy(ex:b, ex:one, -)
  wasInformedBy(ex:two, ex:one)
  wasGeneratedBy(ex:c, ex:two, -)
  hadMember(ex:all, ex:c)
  alternateOf(ex:c, ex:a)
  bundle ex:bundle
    wasInvalidatedBy(ex:a, ex:two, -)
  endBundle
endDocument
"""
    )
    done = govtool("ingest", "prov", "doc.provn")
    assert done.code == 0, done.err
    assert "[break.communication]" in done.err
    runs = {run["job"]: run for run in answer(govtool("runs", "-f", "json"), "runs-1")["runs"]}
    assert [w["dataset"] for w in runs["one"]["outputs"]] == ["https://ex.org/d/b"]
    assert [(w["dataset"], w["mode"]) for w in runs["two"]["outputs"]] == [
        ("https://ex.org/d/a", "drop"), ("https://ex.org/d/c", "overwrite"),
    ]  # fmt: skip
    reached = json.loads(govtool("impact", "d/a", "-f", "json").out)["columns"]
    assert {(c["dataset"], c["verdict"]) for c in reached} == {
        ("https://ex.org/d/b", "unknown"), ("https://ex.org/d/c", "unknown"), ("https://ex.org/d/all", "unknown"),
    }  # fmt: skip


def test_openlineage_tells_of_runs(govtool, project):
    govtool("init")
    assert govtool("ingest", "openlineage", str(ROOT / "fixtures" / "openlineage")).code == 0
    runs = answer(govtool("runs", "-f", "json"), "runs-1")["runs"]
    assert runs
    assert {"spark"} <= {item["name"] for run in runs for item in run["software"]}
    assert any(written["rows"] for run in runs for written in run["outputs"])


def test_a_run_of_a_stream_has_its_batches_and_offsets(govtool, project):
    govtool("init")
    assert govtool("ingest", "spark", str(ROOT / "fixtures/spark/logs/sources-4.3.0.gz")).code == 0
    run, source = "local-1795278798527/21", "FileStreamSource[file:/tmp/shop3/src]"
    expected = {
        "query": "eada077c-c07f-4ab7-a814-9a3b44a1196d",
        "run": "335e94b4-1dd9-4ddb-be5a-3b924b108a5f",
        "first": 0,
        "last": 0,
        "offsets": [{"source": source, "start": "", "end": '{"logOffset":0}', "rows": 2}],
    }
    assert answer(govtool("show", run, "-f", "json"), "run-1")["run"]["batches"] == expected
    runs = answer(govtool("runs", "--all", "-f", "json"), "runs-1")["runs"]
    assert sum("batches" in run for run in runs) == 4
    rows = [line.split(",", 2) for line in govtool("show", run, "-f", "csv").out.splitlines()]
    assert [row[1] for row in rows if row[0] == "stream"] == ["query", "start", "batch", source]
    assert "2 rows" in next(row[2] for row in rows if row[1] == source)
