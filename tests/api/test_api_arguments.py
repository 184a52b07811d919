"""What a caller may pass to the Python interface: other types are refused by name, before anything is computed."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import govtool
from govtool.api.arguments import CONVERTERS, checked
from govtool.errors import GovtoolError, UsageError

UNCHECKED = {"return", "self", "progress", "report", "spark", "stdin", "trace"}
"""Parameters that are functions, streams, sessions, or answers of other questions."""

HOSTILE: tuple[object, ...] = (
    *("", " ", "\0", "\ud800", "a\nb", "**", "class:", ",", "1+", "@", "pack:", "rename:", "HEAD~-1", "/", "~nobody"),
    *("((", "[a", "{", "%s", "C:\\x\\y.yml", "2026-13-45", "x" * 5000),
    *(0, -1, 10**30, 1.5, float("nan"), True, b"crm", [], [""], [None], [1], {}, object(), ("crm.users.email",)),
    *(date(2026, 11, 20), datetime(2026, 11, 20, 5), Path("nowhere")),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with a small store of two commits."""
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "a.sql").write_text("create table a (id bigint, email text);")
    (folder / "b.sql").write_text("create view b as select lower(email) as mail, id from a;")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOVTOOL_CACHE", str(folder / "cache"))
        patch.delenv("GOVTOOL_STORE", raising=False)
        patch.chdir(folder)
        govtool.init()
        govtool.ingest_sql("a.sql", source="first")
        govtool.ingest_sql(["a.sql", Path("b.sql")], source="second")
        yield folder


QUESTIONS: dict[str, tuple[object, ...]] = {
    "at": ("1",),
    "impact": ("a.email",),
    "path": ("a.email", "b.mail"),
    "explain": ("b",),
    "ls": (),
    "classes": (),
    "check": (),
    "whatif": ("drop", "a.email"),
    "erase_plan": ("a.id",),
    "diff": ("1", "2"),
    "runs": (),
    "show": ("1",),
    "run": ("r",),
    "log": (),
    "coverage": (),
    "openlineage_events": (),
    "send_openlineage": ("ftp://127.0.0.1",),  # refused once everything else is checked: nothing is sent
    "compare_static": (),
    "verify": ("a.sql",),
    "compare_oracle": ("a.csv",),
    "workflow_runs": (),
    "workflow_run": ("accounts",),
    "workflow_why": ("accounts", "Balances[ann]"),
    "workflow_delete": ("accounts", "t"),
    "workflow_deletions": ("accounts", [["t"]]),
}
"""Each question with arguments that make sense."""


@pytest.mark.parametrize("name", QUESTIONS)
def test_whatever_is_passed_an_error_is_one_of_govtool(
    project: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    method, given = getattr(govtool.open(), name), QUESTIONS[name]
    parameters = [p for p in inspect.signature(method).parameters.values() if p.name not in UNCHECKED]
    for at, parameter in enumerate(parameters):
        for value in HOSTILE:
            if parameter.name == "policy" and value == "/":
                continue  # a search of the whole machine
            positional = parameter.kind is not parameter.KEYWORD_ONLY
            words: tuple[object, ...] = (*given[:at], value, *given[at + 1 :]) if positional else given
            with contextlib.suppress(GovtoolError):
                method(*words, **({} if positional else {parameter.name: value}))
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


NO_FUNCTIONS = {
    *("BoundedLoop", "Graph", "Workflow", "WorkflowGraph", "__version__", "errors", "module"),
    "load_ipython_extension",  # IPython calls it
}


def test_every_parameter_is_checked() -> None:
    """A new method, option or annotation is known to ``CONVERTERS``, or named as an exception above."""
    faces = [getattr(govtool, name) for name in govtool.__all__ if name not in NO_FUNCTIONS]
    for graph in (govtool.Graph, govtool.WorkflowGraph):
        faces += [method for name, method in inspect.getmembers(graph, inspect.isfunction) if name[0] != "_"]
    faces = [face for face in faces if face.__name__ not in ("snapshot", "index", "difference", "to_networkx")]
    assert len(faces) > 25
    assert [face.__name__ for face in faces if face.__name__ != "<lambda>" and not hasattr(face, "__wrapped__")] == []
    unknown = {
        (face.__name__, name, str(each.annotation))
        for face in faces
        for name, each in inspect.signature(face).parameters.items()
        if name not in UNCHECKED and name != "self" and each.annotation not in CONVERTERS
    }
    assert unknown == set()


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda g: g.ls(limit=-1), "limit is not a whole number, 0 or more: -1"),
        (lambda g: g.ls(limit=True), "limit is not a whole number, 0 or more: True"),
        (lambda g: g.ls(columns="no"), "columns is not True or False: 'no'"),
        (lambda g: g.impact(7), "column is not a text: int"),
        (lambda g: g.impact("a.email", exclude=["b", 7]), "exclude is not a text: int"),
        (lambda g: g.erase_plan(None), "subject is not a text or several: NoneType"),
        (lambda g: g.erase_plan([]), "no subject is given"),
        (lambda g: g.at(1.5), "ref is not a version: a number, an id, a tag, a branch, or a date: 1.5"),
        (lambda g: g.verify("a\0b"), "place is not a path: 'a\\x00b'"),
        (lambda g: g.verify(""), "place is not a path: ''"),
        (lambda g: govtool.ingest_sql(""), "paths is not a path: ''"),
        (lambda g: govtool.ingest_log("q.csv", map=5), "map is not a text or several: int"),
        (lambda g: govtool.lineage("select 1", schema=5), "schema is not a path or several: 5"),
        (lambda g: govtool.lineage("select 1", schema=[None]), "schema is not a path: None"),
        (lambda g: govtool.lineage("select 1", var=5), "var is not a text or several: int"),
        (lambda g: g.whatif("drop", "a.email", to="b"), "drop has no new name or type: b"),
        (lambda g: g.whatif("remove", "a.email"), "no action remove"),
        (lambda g: g.classes(policy=""), "policy is not a path: ''"),
        (lambda g: g.classes(policy="x" * 5000), "no such file or folder"),
    ],
)
def test_a_mistake_is_named(project: Path, call: Any, wanted: str) -> None:
    with pytest.raises(UsageError) as caught:
        call(govtool.open())
    assert caught.value.message == wanted
    assert caught.value.code


def test_versions_are_numbers_dates_and_names(project: Path) -> None:
    graph, now = govtool.open(ref=2), datetime.now(UTC)
    assert graph.at(1).commit.seq == govtool.open(ref="1").commit.seq == 1
    number: Any = np.int64(1)
    assert graph.at(number).commit.seq == 1
    assert govtool.open(ref=now.date()).commit.seq == 2
    assert graph.at(now + timedelta(hours=1)).commit.seq == 2
    assert graph.diff(1, 2).to_dict() == graph.diff("1", "2").to_dict()
    assert graph.show(1).to_dict() == graph.show("1").to_dict()


def test_days_and_paths_are_texts_or_objects(project: Path) -> None:
    graph = govtool.open()
    expected = graph.check(policy="pack:gdpr", today="2026-11-20", base="1").to_dict()
    assert graph.check(policy="pack:gdpr", today=date(2026, 11, 20), base=1).to_dict() == expected
    moment = datetime(2026, 11, 20, 23, 30, tzinfo=timezone(timedelta(hours=-2)))  # the 21st in UTC
    assert graph.check(policy="pack:gdpr", today=moment, base=1).to_dict() == (
        graph.check(policy="pack:gdpr", today="2026-11-21", base=1).to_dict()
    )
    rules = project / "rules.yml"
    rules.write_text("version: 1\nname: keys\nclasses: {key: {}}\nclassify: [{class: key, columns: [a.id]}]\n")
    assert graph.classes(policy=rules).to_dict() == graph.classes(policy=[str(rules)]).to_dict()


def test_texts_may_be_an_iterator(project: Path) -> None:
    graph = govtool.open()
    expected = graph.impact("a.email", kind=["identity", "transformation"], evidence="sql").to_dict()
    assert graph.impact("a.email", kind=iter(["identity", "transformation"]), evidence=iter(["sql"])).to_dict() == (
        expected
    )


def test_missing_and_unknown_arguments_are_those_of_python(project: Path) -> None:
    graph: Any = govtool.open()
    with pytest.raises(TypeError, match="column"):
        graph.impact()
    with pytest.raises(TypeError, match="colour"):
        graph.impact("a.email", colour=True)


def test_checked_keeps_name_documentation_and_signature() -> None:
    @checked
    def question(column: str, *, limit: int | None = None) -> tuple[str, int | None]:
        """A question."""
        return column, limit

    assert (question.__name__, question.__doc__) == ("question", "A question.")
    assert list(inspect.signature(question).parameters) == ["column", "limit"]
    assert question("a", limit=3) == ("a", 3)


def test_repr_of_an_answer_is_one_line(project: Path) -> None:
    graph = govtool.open()
    assert repr(graph.impact("a.email")).startswith("<govtool.ImpactAnswer 1 × verdict, column, dataset …>")
    answers = [graph.ls(), graph.explain("a"), graph.coverage(), graph.diff(), graph.log(), graph.runs()]
    assert [text for text in map(repr, answers) if "\n" in text or len(text) > 120] == []


def test_names_that_are_no_unicode_are_escaped_in_arrow(project: Path) -> None:
    answer = govtool.open().verify("a.sql", name="\udcff")
    assert "\\udcff" in answer.to_arrow().to_pylist()[0].values()


def test_the_package_says_that_it_is_typed() -> None:
    """PEP 561: without the marker, mypy takes every answer for ``Any``."""
    assert (Path(govtool.__file__).parent / "py.typed").is_file()
