"""Questions of ``Graph`` about commits, runs and coverage."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import govtool
from govtool.answers.commits import CommitAnswer
from govtool.answers.diff import DiffAnswer
from govtool.answers.run_diff import RunDiffAnswer
from govtool.answers.runs import ProvenanceAnswer, RunAnswer
from govtool.api.history import log
from govtool.app.questions.history import diff_answer
from govtool.errors import UnknownNameError, UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    govtool.init()
    return folder


@pytest.fixture
def graph(project):
    """Three commits: a view, the view with another column, runs."""
    (project / "etl.sql").write_text("create view v as select a from t")
    govtool.ingest_sql("etl.sql")
    (project / "etl.sql").write_text("create view v as select a, b from t")
    govtool.ingest_sql("etl.sql")
    govtool.ingest_prov(ROOT / "fixtures/prov")
    return govtool.open()


def test_log_ends_at_the_version(graph):
    assert [commit.seq for commit in graph.log().commits] == [3, 2, 1]
    assert [commit.seq for commit in graph.at("2").log().commits] == [2, 1]
    assert graph.log(limit=1).to_dict()["truncated"] == 2
    assert log().commits == graph.log().commits


def test_log_of_a_store_without_commits(project):
    assert log().commits == ()


def test_diff_is_with_the_commit_before(graph):
    answer = graph.at("2").diff()
    assert isinstance(answer, DiffAnswer)
    assert (answer.old.seq, answer.new.seq) == (1, 2)
    assert ("added", "column", "v.b") in [row[:3] for row in answer.rows()]
    assert answer.differs


def test_diff_cut_short_counts_all(graph):
    whole = graph.diff("1", "2")
    assert isinstance(whole, DiffAnswer)
    cut = graph.diff("1", "2", limit=1)
    assert isinstance(cut, DiffAnswer)
    assert len(cut.changes) == 1
    assert cut.truncated == len(whole.changes) - 1 > 0
    assert cut.head(5) == cut
    assert cut.head(0).truncated == len(whole.changes)
    assert cut.to_dict()["summary"] == whole.to_dict()["summary"]


def test_the_first_commit_has_none_before(graph):
    with pytest.raises(UnknownNameError) as caught:
        graph.at("1").diff()
    assert caught.value.code == "usage.unknown-ref"


def test_upkeep_after_the_first_ingest_is_not_called_the_first_commit():
    upkeep, first = (
        SimpleNamespace(short=name, sources=made, merged=()) for name, made in (("b2", ()), ("a1", ("s",)))
    )
    store = SimpleNamespace(history=lambda _: iter((upkeep, first)))
    with pytest.raises(UnknownNameError, match="no commit before b2 has another graph"):
        diff_answer(store, None, None, upkeep)


def test_runs(graph):
    answer = graph.runs()
    assert answer.known == len(answer.runs) == 5
    cut = graph.runs(limit=2)
    assert (len(cut.runs), cut.truncated) == (2, 3)
    assert cut.head(1).truncated == 4
    assert graph.runs(status="failed").runs == ()
    assert graph.at("2").runs().known == 0
    table = answer.to_arrow()
    assert table["inputs"].to_pylist()[0]
    assert str(table.schema.field("rows").type) == "int64"
    assert table["outputs"].to_pylist()[0]


def test_run_and_its_versions(graph):
    answer = graph.run("parse-20")
    assert isinstance(answer, RunAnswer)
    assert answer.run.id.endswith("parse-20")
    assert {row[0] for row in answer.rows()} == {"input", "output"}
    dataset = answer.run.outputs[0].dataset
    made = graph.show(f"{dataset}@parse-20")
    assert isinstance(made, ProvenanceAnswer)
    assert next(made.rows())[0] == 0
    assert made.to_dict()["version"] == made.name


def test_two_runs(graph):
    answer = graph.diff("parse-19", "parse-20")
    assert isinstance(answer, RunDiffAnswer)
    assert answer.differs
    assert len(list(answer.rows())) == len(answer.result.changes)


def test_a_run_and_a_commit_are_not_compared(graph):
    with pytest.raises(UsageError) as caught:
        graph.diff("1", "parse-20")
    assert caught.value.code == "usage.arguments"


def test_show(graph):
    answer = graph.show()
    assert isinstance(answer, CommitAnswer)
    assert answer.commit == graph.commit
    assert sum(answer.to_arrow()["rows"].to_pylist()) > 0
    before = graph.show("HEAD~1")
    assert isinstance(before, CommitAnswer)
    assert before.commit.seq == 2
    with pytest.raises(UnknownNameError):
        graph.show("nothing")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"status": "fine"}, "usage.unknown-status"), ({"since": "yesterday"}, "usage.date")],
)
def test_mistakes_in_conditions(graph, arguments, code):
    with pytest.raises(UsageError) as caught:
        graph.runs(**arguments)
    assert caught.value.code == code


def test_coverage(graph):
    answer = graph.coverage()
    assert answer.total == answer.version.coverage
    assert [row[0] for row in answer.rows()] == ["prov:prov", "sql:etl.sql"]
    assert answer.to_arrow()["statements"].to_pylist()[1] == 1


def test_comparison_of_text_and_runs(graph):
    answer = graph.compare_static()
    assert answer.differs
    assert {row[0] for row in answer.rows()} == {"runtime"}  # nobody expects a view to run
    with pytest.raises(UsageError) as caught:
        graph.at("2").compare_static()
    assert caught.value.code == "usage.no-evidence"


def test_verify(graph, project):
    data = project / "data"
    data.mkdir()
    (data / "part.csv").write_text("id\n1\n")
    answer = graph.verify(data)
    assert (answer.state, answer.matches) == ("no-provenance", False)
    assert next(answer.rows())[1] == "no-provenance"


def test_index_counts(graph):
    built = graph.index()
    assert (built.commit, built.datasets > 2, built.edges > 2) == (graph.commit, True, True)
