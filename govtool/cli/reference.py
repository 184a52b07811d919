"""The reference of all commands as Markdown, made from their own help: docs/cli.md."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Mapping

from govtool.cli.commands import COMMANDS
from govtool.cli.main import main

_WIDTH = "100"
_INTRODUCTION = """\
# Commands

Everything that `govtool COMMAND --help` prints, on one page; `scripts/cli-reference` writes it from the program. Exit
codes mean the same everywhere: 0 done, 1 findings, 2 usage or configuration, 3 not enough evidence, 4 store, network or
integrity, 130 interrupted ([output](output.md#exit-codes)).
"""


def reference() -> Iterator[str]:
    """The lines of the page, each with its end."""
    yield _INTRODUCTION
    yield from _section("Options that many commands share", ("help", "options"))
    for path in _paths(COMMANDS):
        yield from _section(f"govtool {' '.join(path)}", (*path, "--help"))


def _paths(entries: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, entry in entries.items():
        path = (*above, name)
        if isinstance(entry, dict):
            yield from _paths(entry, path)
        else:
            yield path


def _section(title: str, words: tuple[str, ...]) -> Iterator[str]:
    yield f"\n## {title}\n\n```text\n"
    yield from (f"{line.rstrip()}\n" for line in _shown(words).strip("\n").splitlines())
    yield "```\n"


def _shown(words: tuple[str, ...]) -> str:
    """The text that a command line prints at a fixed width, on any terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    buffer = io.StringIO()
    try:
        with contextlib.redirect_stdout(buffer):
            main(list(words))
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return buffer.getvalue()
