"""One vocabulary of options over all commands: what a word means in one command it means in every other."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from govtool.cli.commands import COMMANDS, PANELS
from govtool.cli.shared.command import as_command
from govtool.cli.shared.complete import formats_of
from govtool.cli.shared.help import SHARED_OPTIONS

LINES_OF_A_SCREEN = 40
WIDTH = 80


def leaves(entries, path=()):
    for name, entry in entries.items():
        if isinstance(entry, dict):
            yield from leaves(entry, (*path, name))
        else:
            yield (*path, name), entry.load()


LEAVES = list(leaves(COMMANDS))


def command_of(path: tuple[str, ...], function):
    return as_command(path[-1], function)


def options() -> list[tuple[tuple[str, ...], object]]:
    """Every option of every command."""
    return [
        (path, param)
        for path, function in LEAVES
        for param in command_of(path, function).params
        if param.param_type_name == "option" and not param.hidden
    ]


ALL = options()

SHARED = (
    *("--at", "--all", "--allow-empty", "--author", "--branch", "--exclude", "--format", "--message"),
    *("--min-coverage", "--output", "--store", "--policy", "--replace", "--source", "--today"),
)
"""Options that are declared once: their texts in the help are the same in all commands."""
OF_THEIR_OWN = {
    "--source": {("run",), ("serve", "openlineage"), ("export", "openlineage"), ("store", "forget")},
    "--output": {("report", "html")},
}
"""Commands whose option of this name is about something else. This list may only shrink."""


def _text(param) -> str:
    return param.help or ""


@pytest.mark.parametrize("word", SHARED)
def test_a_shared_option_is_declared_once(word):
    texts: dict[str, set[str]] = {}
    for path, param in ALL:
        if word in param.opts and path not in OF_THEIR_OWN.get(word, ()):
            texts.setdefault(_text(param), set()).add(" ".join(path))
    assert len(texts) == 1, texts


def test_from_is_the_format_of_what_is_read():
    assert {path for path, param in ALL if "--from" in param.opts} == {("ingest", "log")}


def test_rows_compares_rows():
    found = {path: _text(param) for path, param in ALL if "--rows" in param.opts}
    assert set(found) == {("diff",), ("verify",)}
    assert all("rows" in text and ("compare" in text or "differ" in text) for text in found.values())


def test_strict_is_about_what_is_not_known():
    for path, param in ALL:
        if "--strict" in param.opts:
            assert "exit with 3" in _text(param).lower(), path


def test_fail_on_is_a_level_and_none_of_the_others_gate():
    for path, param in ALL:
        if "--fail-on" in param.opts:
            assert "|" in param.metavar, path
            assert _text(param).startswith("Exit with 1"), path


def test_exit_code_is_a_flag_for_a_yes_or_no():
    found = {path for path, param in ALL if "--exit-code" in param.opts}
    assert found == {("path",), ("diff",), ("depends",), ("compare", "static")}
    assert all(
        param.is_flag and _text(param).startswith("Exit with 1 if") for _, param in ALL if "--exit-code" in param.opts
    )


def test_every_command_that_commits_takes_the_same():
    for path, function in LEAVES:
        names = {each.name for each in command_of(path, function).params}
        if "message" in names:
            assert {"author", "branch", "store"} <= names, path


NOTHING = {
    **{(name,): ("zzz.**",) for name in ("impact", "explain", "ls")},
    ("classes",): ("zzz.**", "--policy", "pack:starter"),
    ("path",): ("zzz.**", "a.t"),
    ("classify",): ("--suggest", "zzz.**"),
    ("export", "graph"): ("zzz.**",),
    ("report", "html"): ("zzz.**", "-o", "report.html"),
    **{("whatif", change): ("zzz.**",) for change in ("drop", "mask", "delete")},
    ("whatif", "rename"): ("zzz.**", "--to", "x"),
    ("whatif", "retype"): ("zzz.**", "--to", "int"),
    ("whatif", "several"): ("--drop", "zzz.**"),
    ("runs",): ("zzz",),
    ("workflow", "list"): ("zzz",),
}
"""Every command that asks about a selection, and how it selects nothing."""


def test_what_asks_about_a_selection_takes_allow_empty():
    asking = {path for path, param in ALL if "--allow-empty" in param.opts}
    selecting = {
        path
        for path, function in LEAVES
        for param in command_of(path, function).params
        if param.param_type_name == "argument" and re.search("SELECTOR|COLUMN|JOB", param.metavar or "")
    }
    assert selecting <= asking
    assert asking == set(NOTHING)


@pytest.mark.parametrize("path", NOTHING, ids=" ".join)
def test_selecting_nothing_is_a_mistake_unless_it_is_allowed(ingested, path):
    govtool = ingested("create table a.t as select x from b.s;")
    done = govtool(*path, *NOTHING[path])
    assert (done.code, "usage.nothing-selected" in done.err) == (2, True), done.err
    assert govtool(*path, *NOTHING[path], "--allow-empty").code == 0


def test_short_options_mean_one_thing():
    seen: dict[str, set[str]] = {}
    for _, param in ALL:
        for short in (one for one in param.opts if not one.startswith("--")):
            seen.setdefault(short, set()).add(next(one for one in param.opts if one.startswith("--")))
    twice = {short: words for short, words in seen.items() if len(words) > 1}
    assert twice == {"-m": {"--message", "--module"}}, "this list may only shrink"


@pytest.mark.parametrize(("path", "function"), LEAVES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_help_is_within_a_screen_and_names_formats(govtool, monkeypatch, path, function):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    shown = govtool(*path, "--help").out
    lines = shown.splitlines()
    assert len(lines) <= LINES_OF_A_SCREEN, f"{len(lines)} lines"
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("  $ ")] == []
    assert "<bool>" not in shown
    formats = formats_of(function)
    if len(formats) > 1:
        assert f"--format {'|'.join(formats)}" in shown.replace("\n      ", " "), shown
        assert "metavar" not in shown
    assert inspect.getdoc(function)


def test_the_list_of_commands_is_within_forty_lines(govtool, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    shown = govtool("--help").out
    assert len(shown.splitlines()) <= 40
    for name in COMMANDS:
        assert f" {name}" in shown


def test_each_command_has_one_heading_and_the_headings_are_those_of_the_readme():
    assert sorted(name for panel in PANELS for name in (*panel.shown, *panel.named)) == sorted(COMMANDS)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.*) \|$", readme, re.MULTILINE))
    for panel in PANELS:
        assert panel.title.lower() in rows
        missing = [name for name in panel.shown if f"`{name}" not in rows[panel.title.lower()]]
        assert not set(missing) - {"lineage", "doctor"}, missing  # README has lineage above its table


def test_common_options_are_explained_in_one_place(govtool):
    shown = govtool("help", "options").out
    taken = {name for _, param in ALL for name in [param.name] if name in SHARED_OPTIONS}
    for name in taken:
        assert f"--{name.replace('_', '-')}" in shown, name
    assert govtool("help", "ingest", "sql").out == govtool("ingest", "sql", "--help").out
    assert govtool("help").out == govtool("--help").out
