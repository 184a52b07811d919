"""The folders of ``govtool/capture/spark`` look down too: terms, then forms of plans, then where they are written."""

from __future__ import annotations

import ast
from pathlib import Path

from govtool.capture import spark

FOLDER = Path(spark.__file__).parent
LEVELS = {"": 0, "plantext": 1, "analyzed": 1, "eventlog": 2, "live": 2}


def rooms() -> list[tuple[str, str, str]]:
    """File, its folder, and the folder of what it imports."""
    found = []
    for file in sorted(FOLDER.rglob("*.py")):
        own = file.relative_to(FOLDER).parts[0] if file.parent != FOLDER else ""
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(spark.__name__):
                inner = f"{node.module}.".removeprefix(f"{spark.__name__}.").split(".")
                found.append((file.name, own, inner[0] if inner[0] in LEVELS else ""))
    return found


def test_every_folder_has_a_level():
    assert {own for _, own, _ in rooms()} == set(LEVELS)


def test_folders_import_what_is_below_them():
    assert [(file, own, other) for file, own, other in rooms() if own != other and LEVELS[other] >= LEVELS[own]] == []
