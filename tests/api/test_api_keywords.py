"""Every option of a question is a keyword of its method, by the same name; and keywords that had other names still work."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping

import pytest

import govtool
from govtool.api.graph import Graph
from govtool.cli.commands import COMMANDS, Command
from govtool.errors import UsageError

SHOWN = frozenset(
    [
        "format",
        "output",
        "all",
        "limit",
        "show",
        "ids",
        "tree",
        "details",
        "root",
        "explain",
        "show_values",
        "batch",
        "fail_on",
        "fail_under",
        "exit_code",
        "allow_empty",
        "min_coverage",
        "strict",
        "suggest",
        "ui",
        "store",
        "at",
        "branch",
    ]
)
"""Options that say how an answer is shown, what becomes of it, or which version is asked."""

METHODS: Mapping[str, str] = {
    **{
        name: name
        for name in ("lineage", "impact", "path", "explain", "ls", "classes", "check", "diff", "runs", "show")
    },
    **{name: name for name in ("coverage", "log", "verify", "replay", "why", "whatif several", "trace back")},
    **{name: name for name in ("trace forward", "compare static", "compare oracle", "erase plan", "ingest sql")},
    **{f"ingest {kind}": f"ingest_{kind}" for kind in ("dbt", "log", "catalog", "openlineage", "prov", "spark")},
    **{f"whatif {action}": "whatif" for action in ("drop", "rename", "retype", "mask")},
    "ingest all": "ingest",
    "classify": "suggest_classes",
    "sources list": "sources",
    "report html": "report",
    "workflow list": "workflow_runs",
    "workflow show": "workflow_run",
    "revert": "revert_commit",
}

OTHERWISE: Mapping[tuple[str, str], str] = {
    **{
        ("check", name): "checks SQL without a store, of which a Graph is a version"
        for name in ("sql", "schema", "dialect")
    },
    ("check", "update_baseline"): "the answer's baseline() is what the file holds",
    ("why", "rows"): "rows of a workflow run: Graph.workflow_why",
    ("why", "run"): "rows of a workflow run: Graph.workflow_why",
    ("why", "all_runs"): "rows of a workflow run: Graph.workflow_why",
    ("workflow show", "same"): "the run once more, by the name that other commands have for it",
    ("compare static", "other"): "always runtime",
}
"""What is no keyword, and the reason. This list may only shrink."""


def options_of(command: str) -> Iterator[str]:
    found: Command | Mapping[str, Command] = COMMANDS
    for part in command.split():
        found = found[part]
    for name, parameter in inspect.signature(inspect.unwrap(found.load()), eval_str=True).parameters.items():
        if dataclasses.is_dataclass(parameter.annotation) and name != "ui":
            yield from (field.name for field in dataclasses.fields(parameter.annotation))
        else:
            yield name


@pytest.mark.parametrize("command", METHODS)
def test_options_are_keywords_of_the_same_names(command: str) -> None:
    method = METHODS[command].replace(" ", "_")
    keywords = set(inspect.signature(getattr(Graph, method, None) or getattr(govtool, method)).parameters)
    excused = {name for about, name in OTHERWISE if about == command}
    assert set(options_of(command)) - keywords - SHOWN == excused


def test_impact_takes_the_new_name_as_the_command_does(tmp_path) -> None:
    graph = _graph(tmp_path)
    renamed = graph.impact("s.a", change="rename", to="b").to_dict()
    assert renamed["columns"]
    assert renamed == graph.impact("s.a", to="b").to_dict() == graph.impact("s.a", change="rename:b").to_dict()
    with pytest.raises(UsageError, match="has a value already"):
        graph.impact("s.a", change="rename:b", to="c")
    with pytest.raises(UsageError, match="no verdicts"):
        graph.impact("s.a", to="b", upstream=True)


def test_keywords_that_had_other_names(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("id,x\n1,2\n")
    named = govtool.why("select x from t", tmp_path, key={"t": "id"}).to_dict()
    assert named["tuples"][0]["which"] == ["1"]
    assert govtool.why("select x from t", tmp_path, keys={"t": "id"}).to_dict() == named


def _graph(folder) -> Graph:
    (folder / "v.sql").write_text("create view s.v as select a from s; create view w as select a from s.v;")
    store = folder / "store"
    govtool.init(store)
    govtool.ingest_sql(folder / "v.sql", store=store, dialect="postgres")
    return govtool.open(store)


def test_impact_of_a_deletion_is_that_of_whatif(tmp_path) -> None:
    graph = _graph(tmp_path)
    for action in ("delete", "mask"):
        answer = graph.impact("s.a", change=action)
        assert answer.to_dict() == graph.whatif(action, "s.a").to_dict()
    with pytest.raises(UsageError, match="depth is not for the change delete"):
        graph.impact("s.a", change="delete", depth=1)
