"""The modules of the package as syntax trees, each parsed once for all tests, and what they import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import govtool

PACKAGE = Path(govtool.__file__).parent


@cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


def modules() -> list[Path]:
    """The files of the package, sorted."""
    return sorted(PACKAGE.rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """Dotted names that a file imports when it runs, inside of functions too: modules, and names in them."""
    stack: list[ast.AST] = [tree(file)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))


def file_of(name: str) -> Path | None:
    """The file of a module by its dotted name; None where it is no module of the package."""
    first, *rest = name.split(".")
    if first != "govtool":
        return None
    path = PACKAGE.joinpath(*rest)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if rest and file.exists()), None)


def closure(starts: Iterable[Path], stop: Iterable[Path] = ()) -> tuple[set[Path], set[str]]:
    """The files that some files need, themselves included, and the libraries that all of these import.

    Args:
        starts: The files.
        stop: Files that are not followed, and not among the result.
    """
    found: set[Path] = set()
    libraries: set[str] = set()
    stopped = set(stop)
    stack = list(starts)
    while stack:
        file = stack.pop()
        if file in found or file in stopped:
            continue
        found.add(file)
        for name in imported(file):
            other = file_of(name)
            if other is not None:
                stack.append(other)
            elif (first := name.partition(".")[0]) not in {"govtool", *sys.stdlib_module_names}:
                libraries.add(first)
    return found, libraries
