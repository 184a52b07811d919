"""Modules of a workflow whose functions ran jobs, and only show what these gave: nothing that they made hangs on it.

Read off the workflow's own Python code, as it ran; see ``driver_code``. Where the code does not show it, it is not so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from govtool.app.workflow_runs.programs.code_words import called, named
from govtool.app.workflow_runs.programs.driver_code import functions_that_hang
from govtool.app.workflow_runs.source import contents_digest, file_of

OnlyShown = Callable[[str], frozenset[str]]
"""The names of such modules, by the digest of a workflow's source."""
_MAKES_ROWS: Final = frozenset(
    """createDataFrame freqItems crosstab transpose pivot toDF parallelize exec eval getattr globals locals
    vars""".split()  # noqa: SIM905
)
"""Functions that make a DataFrame of what jobs gave, or that hide which function is called."""


def only_shown_in(folder: Path, programs: Mapping[str, str]) -> OnlyShown:
    """The modules that only show what their jobs gave, of workflows whose file is found.

    Args:
        folder: Where, and below which, the files are looked for.
        programs: The recorded places of programs, by the digests of their sources.
    """

    @cache
    def shown(source: str) -> frozenset[str]:
        for file in _candidates(folder, programs.get(source, "")):
            with suppress(OSError, UnicodeDecodeError):
                content = file.read_bytes()
                if contents_digest([content]) == source:
                    return only_shown(content.decode("utf-8-sig"))
        return frozenset()

    return shown


def _candidates(folder: Path, program: str) -> Iterator[Path]:
    from govtool.app.records.engines import own_files

    if program:
        yield Path(file_of(program))
    yield from own_files(folder)


def only_shown(source: str) -> frozenset[str]:
    """The names of the modules in a file that only show what their jobs gave."""
    try:
        tree = ast.parse(source)
        if any(map(_is_hidden, ast.walk(tree))):
            return frozenset()
        functions = _functions_of_modules(tree)
        hanging = functions_that_hang(tree, frozenset(functions.values()))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    if hanging is None:
        return frozenset()
    return frozenset(name for name, function in functions.items() if function not in hanging)


def _is_hidden(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in _MAKES_ROWS


def _functions_of_modules(tree: ast.Module) -> dict[str, str]:
    """The function of each module; a name that two modules have, or a function that two have, is left out."""
    defined = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    found = [(_module_name(each), node.name) for node in defined for each in node.decorator_list]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and len(node.args) == 1:
            found.append((_module_name(node.func), named(node.args[0])))
    named_so = [name for name, _ in found]
    functions = [node.name for node in defined]
    return {
        name: function
        for name, function in found
        if name and named_so.count(name) == 1 and functions.count(function) == 1
    }


def _module_name(node: ast.expr) -> str:
    """The name that ``govtool.module("Post", …)`` gives; empty where it is no such call."""
    if not isinstance(node, ast.Call) or called(node) != "module" or not node.args:
        return ""
    name = node.args[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
