"""Layers look down only, and ``govtool --help`` imports nothing heavy (docs/architecture.md, "Layers")."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from modules import PACKAGE, modules, tree

LAYERS = {
    "errors": 0,
    "functions": 0,
    "names": 0,
    "clock": 0,
    "linear": 0,
    "config": 0,
    "config_sources": 0,
    "redaction": 0,
    "given_files": 0,
    "release": 0,
    "build_form": 0,
    "wording": 0,
    "model": 1,
    "arrays": 1,
    "graph": 2,
    "capture": 3,
    "store": 3,
    "query": 4,
    "policy": 4,
    "records": 4,
    "workflow": 4,
    "report": 4,
    "answers": 5,
    "app": 6,
    "api": 7,
    "render": 7,
    "cli": 8,
    "spark": 8,
    "__main__": 9,
    "spark.rdd": 5,
    "spark.live": 0,  # runs inside of jobs, beside nothing of govtool but itself and `redaction`
}
NEVER = {
    ("capture", "store"),
    ("store", "capture"),
    ("query", "policy"),
    ("arrays", "model"),
    ("model", "arrays"),
}
HEAVY = {"pyspark", "networkx", "numpy", "pyarrow", "boto3", "sqlglot", "pydantic", "jinja2", "yaml", "obstore"}


def part_of(module: str) -> str | None:
    """``graph`` of ``govtool.graph.index``; None outside the package and for the package itself."""
    names = module.split(".")
    if names[0] != "govtool":
        return None
    return next((part for part in (".".join(names[1:3]), ".".join(names[1:2])) if part in LAYERS), None)


def imports() -> Iterator[tuple[str, int, str, str]]:
    """File, line, importing part and imported part of every import of one part by another."""
    for file in modules():
        module = ".".join(("govtool", *file.relative_to(PACKAGE).with_suffix("").parts))
        if module == "govtool.__init__":
            continue
        own = part_of(module)
        assert own is not None, f"{file}: no layer for {module}"
        for node in ast.walk(tree(file)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                other = part_of(name)
                if other and other != own:
                    yield f"{file.relative_to(PACKAGE)}", node.lineno, own, other


def test_layers_look_down_only():
    wrong = [
        f"{file}:{line}: {own} (L{LAYERS[own]}) imports {other} (L{LAYERS[other]})"
        for file, line, own, other in imports()
        if LAYERS[other] > LAYERS[own] or (own, other) in NEVER
    ]
    assert wrong == []


def test_product_never_imports_tests_or_benchmarks():
    for file in modules():
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in {"tests", "bench"}, file


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["impact", "--help"], {"pydantic"}),  # typer checks a command's options with it
        (["ingest", "sql", "--help"], {"pydantic"}),
    ],
)
def test_help_imports_nothing_heavy(arguments, allowed):
    code = (
        "import sys; from govtool.cli.main import main; main(sys.argv[1:]); "
        f"print('LOADED', *sorted({HEAVY - allowed!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"


@pytest.mark.parametrize("root", [PACKAGE, PACKAGE.parent / "bench"], ids=lambda root: root.name)
def test_files_import_one_another_without_circles(root):
    """Imports inside of functions and for types only count, too; a package's own file counts where it is the end."""
    files = {_module(file, root): file for file in sorted(root.rglob("*.py"))}
    below = {name: _imported(file, files.keys()) - {name} for name, file in files.items()}
    order = TopologicalSorter(below)
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(f"import circle: {' -> '.join(error.args[1])}")


def _module(file: Path, root: Path) -> str:
    return ".".join((root.name, *file.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")


def _imported(file: Path, known: Collection[str]) -> set[str]:
    """The modules that a file imports; where it takes a module out of a package, that module and not the package."""
    found: set[str] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(known)
            found |= inner if len(inner) == len(node.names) else {node.module, *inner}
    return found & set(known)
