"""Every question in README.md and docs/*.md, asked through the command line and through Python: one answer.

A page's blocks run in order, in a project with a copy of ``fixtures/shop/postgres`` and the store that ``SETUP`` makes.
Questions are translated by name: a command is a method, its options are keywords.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from records.recorded import shop as shop_with_records

import govtool
from govtool.api.graph import Graph
from govtool.cli.commands import COMMANDS as ENTRIES
from govtool.cli.main import main
from govtool.cli.shared.command import as_command
from govtool.errors import GovtoolError
from govtool.store import Store

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))

SETUP = (
    ("init",),
    ("ingest", "sql", "warehouse/", "--dialect", "postgres", "--schema", "ddl.sql"),
    ("ingest", "prov", "provenance/"),
)
"""What stands before the first block of every page; the files that it names are copied from ``fixtures``."""

COMMANDS: Mapping[tuple[str, ...], str] = {
    ("lineage",): "lineage",
    ("impact",): "impact",
    ("path",): "path",
    ("explain",): "explain",
    ("ls",): "ls",
    ("classes",): "classes",
    ("classify",): "suggest_classes",
    ("check",): "check",
    ("whatif", "several"): "whatif_several",
    **{("whatif", action): "whatif" for action in ("drop", "rename", "retype", "mask", "delete")},
    ("erase", "plan"): "erase_plan",
    ("diff",): "diff",
    ("runs",): "runs",
    ("show",): "show",
    ("coverage",): "coverage",
    ("log",): "log",
    ("sources", "list"): "sources",
    ("verify",): "verify",
    ("workflow", "list"): "workflow_runs",
    ("workflow", "show"): "workflow_run",
    ("trace", "back"): "trace_back",
    ("trace", "forward"): "trace_forward",
    ("replay",): "replay",
    ("compare", "static"): "compare_static",
    ("compare", "oracle"): "compare_oracle",
}
"""Commands that ask, and the method of the same question."""

PRESENTATION = frozenset(
    {
        "format",
        "output",
        "all",
        "fail_on",
        "exit_code",
        "allow_empty",
        "min_coverage",
        "details",
        "suggest",
        "tree",
        "root",
        "show_values",
        "batch",
        "show",
        "ids",
    }
    | {"quiet", "verbose", "progress", "color", "timings", "debug", "other"}
)
"""Options that say how an answer is shown or what becomes of it."""
PLACE = frozenset({"store", "at", "branch"})
"""Options that say which version is asked."""

CANNOT_RUN: Mapping[tuple[str, str], str] = {
    ("docs/ci.md", 'govtool check --branch "$BRANCH" --base main'): "a branch that the CI of a pull request makes",
    ("docs/ci.md", "govtool check --sql warehouse"): "--sql asks a store that is thrown away; the method asks its own",
    ("docs/policies.md", "govtool check --base main --format github"): "annotations of GitHub, which are no JSON",
    ("docs/store.md", "import govtool.spark"): "a data source of Spark on S3",
}
"""Questions and blocks that cannot run here, by page and beginning, with the reason. This list may only shrink."""
MOST_THAT_CANNOT_RUN = 4

FEWEST: Mapping[str, tuple[int, int]] = {
    "README.md": (1, 1),
    "docs/erasure.md": (1, 1),
    "docs/policies.md": (3, 0),
    "docs/python.md": (0, 31),
    "docs/records.md": (5, 0),
    "docs/runs.md": (4, 0),
}
"""Questions that are found, at the least: in console blocks, and in Python blocks."""

RECORDED = frozenset({"docs/erasure.md", "docs/python.md", "docs/records.md"})
"""Pages that trace rows: their projects have a recorded run besides."""

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, whichever face it is written for: the command, and its parameters by name."""

    command: tuple[str, ...]
    parameters: Mapping[str, Any]


def blocks(page: str) -> Iterator[Block]:
    """The blocks of Python and console of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])


def reason_not_to_run(page: str, text: str) -> str | None:
    """Why something is not run here; None if it is."""
    return next((why for (at, start), why in CANNOT_RUN.items() if at == page and text.startswith(start)), None)


# ---- questions of the command line -------------------------------------------------------------------


def commands(block: Block) -> Iterator[str]:
    """The commands of a console block, without prompts, comments and answers."""
    for line in block.text.splitlines():
        if line.startswith("$ govtool "):
            yield from (part.strip() for part in re.sub(r"\s#.*$", "", line[2:]).split("&&"))


def command_of(words: list[str]) -> tuple[str, ...] | None:
    """The command that words begin with, if it asks the column graph a question."""
    if "--graph" in words:
        return None  # a question about a provenance graph: test_provenance_graph_docs.py
    if "--sql" in words and words[1] == "whatif":
        return None  # a question about the rows of a query, which needs no store: govtool.whatif_delete
    return next((command for command in COMMANDS if tuple(words[1 : 1 + len(command)]) == command), None)


def command_called(command: tuple[str, ...]) -> Any:
    """A command by the words that call it."""
    entry: Any = ENTRIES
    for word in command:
        entry = entry[word]
    return as_command(command[-1], entry.load())


def parameters_of(command: tuple[str, ...]) -> list[Any]:
    """The parameters of a command, as the command line has them."""
    return list(command_called(command).params)


def asked_on_the_command_line(words: list[str], command: tuple[str, ...]) -> Question:
    """The question in the words of a command."""
    parsed = command_called(command).make_context("govtool", words[1 + len(command) :])
    defaults = {parameter.name: parameter.default for parameter in parsed.command.params}
    given = {
        name: value
        for name, value in parsed.params.items()
        if value not in (None, [], ()) and value != defaults[name] and name not in PRESENTATION
    }
    return Question(command, given)


def command_line(question: Question) -> list[str]:
    """The words of a question, with JSON as the format."""
    words, arguments = list(question.command), []
    for parameter in parameters_of(question.command):
        if parameter.name not in question.parameters:
            continue
        value = question.parameters[parameter.name]
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if parameter.param_type_name == "argument":
            arguments += [str(one) for one in values]
        elif value is True:
            words.append(parameter.opts[0])
        else:
            words += [word for one in values for word in (parameter.opts[0], str(one))]
    return [*words, "--format", "json", *arguments]


# ---- questions in Python -----------------------------------------------------------------------------


def calls(block: Block, names: Mapping[str, Any]) -> Iterator[ast.Call]:
    """The calls in a Python block that ask a question: methods of a graph, and ``govtool.lineage``."""
    for node in ast.walk(ast.parse(block.text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in COMMANDS.values() and node.func.attr != "run":
            continue
        owner = value_of(node.func.value, names)
        if owner is govtool or isinstance(owner, Graph):
            yield node


def value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression of a block that ran; None if a name of it is gone."""
    try:
        return eval(compile(ast.Expression(node), "<docs>", "eval"), dict(names))
    except NameError:
        return None


def asked_in_python(call: ast.Call, names: Mapping[str, Any]) -> Question:
    """The question of a call."""
    assert isinstance(call.func, ast.Attribute)
    owner, method = value_of(call.func.value, names), call.func.attr
    arguments = [value_of(one, names) for one in call.args]
    keywords = {str(one.arg): value_of(one.value, names) for one in call.keywords}
    given: dict[str, Any] = dict(inspect.signature(getattr(owner, method)).bind(*arguments, **keywords).arguments)
    if method == "whatif":
        command: tuple[str, ...] = ("whatif", given.pop("action"))
    elif method == "run":
        command, given = ("show",), {"ref": given["id"]}
    else:
        command = next(command for command, name in COMMANDS.items() if name == method)
    if isinstance(owner, Graph) and "at" in {parameter.name for parameter in parameters_of(command)}:
        given["at"] = owner.commit.id
    return Question(command, given)


def ask_in_python(question: Question) -> dict[str, object]:
    """The answer of the method."""
    given = {name: value for name, value in question.parameters.items() if name not in PLACE}
    if question.command == ("lineage",):
        return govtool.lineage(**given).to_dict()
    place = {name: question.parameters.get(name) for name in PLACE}
    graph = govtool.open(place["store"], ref=place["at"], branch=place["branch"])
    method = getattr(graph, COMMANDS[question.command])
    several = given.pop("selector", ()) if question.command[0] in ("ls", "classes", "whatif") else ()
    action = question.command[1:] if question.command[0] == "whatif" else ()
    return method(*action, *several, **given).to_dict()


# ---- running -----------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch, capsys, request):
    """A working directory with the shop, policies and a store."""
    shop = ROOT / "fixtures" / "shop" / "postgres"
    folder = tmp_path / "project"
    shutil.copytree(shop, folder / "warehouse")
    shutil.copytree(ROOT / "fixtures" / "prov", folder / "provenance")
    shutil.copytree(ROOT / "policies", folder / "policies")
    shutil.copy(shop / "ddl.sql", folder / "ddl.sql")
    shutil.copy(ROOT / "fixtures" / "graphs" / "dealership.json", folder / "run.json")
    (folder / "data").mkdir()
    (folder / "data" / "customers.csv").write_text("_tok,id,city\nc1,1,Paris\nc2,2,Rome\n", encoding="utf-8")
    (folder / "data" / "orders.csv").write_text("_tok,cust,amount\no1,1,10.5\no2,2,20\n", encoding="utf-8")
    guests = "create table shop.guests (uid bigint, email text);"
    (folder / "warehouse" / "guests.sql").write_text(guests, encoding="utf-8")
    (folder / "query.sql").write_text("select u.email, count(*) as n from crm.users u group by 1", encoding="utf-8")
    monkeypatch.chdir(folder)
    for words in SETUP:
        assert main(list(words)) == 0
    if request.node.callspec.params.get("page") in RECORDED:
        pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
        shop_with_records(folder, Store.open(str(folder / ".govtool")))
    capsys.readouterr()
    return folder


@pytest.fixture
def on_the_command_line(project, capsys, monkeypatch):
    """Ask a question on the command line; the JSON answer, or the error message."""

    def ask(question: Question) -> Any:
        text = question.parameters.get("sql") if question.command == ("lineage",) else None
        given = {name: value for name, value in question.parameters.items() if name != "sql" or text is None}
        if text is not None:
            given["paths"] = "-"
        if isinstance(given.get("schema"), Mapping):
            (project / "schema.json").write_text(json.dumps(given["schema"]), encoding="utf-8")
            given["schema"] = "schema.json"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((text or "").encode()), encoding="utf-8"))
        capsys.readouterr()
        code = main(command_line(Question(question.command, given)))
        shown = capsys.readouterr()
        return json.loads(shown.out) if code in (0, 1, 3) else shown.err

    return ask


def outcome(call: ast.Call, names: Mapping[str, Any]) -> dict[str, object] | GovtoolError:
    """The answer of a call as JSON has it, or the error that it raises."""
    try:
        answer: dict[str, object] = value_of(call, names).to_dict()
    except GovtoolError as error:
        return error
    return answer


def agree(shown: Any, answer: dict[str, object] | GovtoolError) -> bool:
    """Whether both faces gave one answer, or raised one error."""
    if isinstance(answer, GovtoolError):
        return isinstance(shown, str) and f"error[{answer.code}]" in shown
    return bool(shown == as_json(answer))


def as_json(answer: object) -> Any:
    return json.loads(json.dumps(answer))


@pytest.mark.parametrize("page", PAGES)
def test_both_faces_give_one_answer(page, on_the_command_line):
    names: dict[str, Any] = {}
    requested = {"console": 0, "python": 0}
    for block in blocks(page):
        place = f"{page}:{block.line}"
        if block.language == "console":
            for text in commands(block):
                command = command_of(shlex.split(text))
                if command is None or reason_not_to_run(page, text):
                    continue
                question = asked_on_the_command_line(shlex.split(text), command)
                assert on_the_command_line(question) == as_json(ask_in_python(question)), f"{place}: {text}"
                requested["console"] += 1
        elif not reason_not_to_run(page, block.text):
            exec(compile(block.text, place, "exec"), names)
            for call in calls(block, names):
                shown = on_the_command_line(asked_in_python(call, names))
                assert agree(shown, outcome(call, names)), f"{place}: {ast.unparse(call)}"
                requested["python"] += 1
    fewest = FEWEST.get(page, (0, 0))
    assert requested["console"] >= fewest[0]
    assert requested["python"] >= fewest[1]


def test_what_cannot_run_is_still_there_and_gets_less():
    written = [
        (page, text)
        for page in PAGES
        for block in blocks(page)
        for text in (commands(block) if block.language == "console" else [block.text])
    ]
    gone = [key for key in CANNOT_RUN if not any(page == key[0] and text.startswith(key[1]) for page, text in written)]
    assert gone == [], "the list names what no page has any more"
    assert len(CANNOT_RUN) <= MOST_THAT_CANNOT_RUN


def test_a_command_that_asks_has_a_method_and_every_method_a_command():
    questions = {name for name, _ in inspect.getmembers(Graph, inspect.isfunction) if not name.startswith("_")}
    assert {name for name in COMMANDS.values() if name != "lineage"} <= questions
    assert questions - set(COMMANDS.values()) <= {
        "at",
        "index",
        "index_records",
        "records",
        "run",
        "snapshot",
        "workflow_why",
        "workflow_delete",
        "workflow_deletions",
        "to_networkx",
        "report",
        "to_html",
        "openlineage_events",
        "send_openlineage",
    }
