"""The file map agrees with the tree: what docs/architecture.md and CONTRIBUTING.md name is there, and every folder of
the package is named.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("docs/architecture.md", "CONTRIBUTING.md")
_PATH = re.compile(
    r"`((?:govtool|tests|bench|fixtures|docs|scripts|policies)/[\w{}/.,*-]*|hatch_build\.py|action\.yml)`"
)
_BRACES = re.compile(r"\{([^{}]*)\}")


def spelled_out(path: str) -> list[str]:
    """``a/{b,c}.py`` is two paths."""
    braces = _BRACES.search(path)
    if braces is None:
        return [path]
    return [
        each
        for choice in braces[1].split(",")
        for each in spelled_out(f"{path[: braces.start()]}{choice}{path[braces.end() :]}")
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_is_named_exists(document):
    named = [path for found in _PATH.findall((ROOT / document).read_text()) for path in spelled_out(found)]
    assert len(named) > 5
    assert [path for path in named if not list(ROOT.glob(path.rstrip("/")))] == []


def test_every_folder_of_the_package_is_named():
    map_ = (ROOT / DOCUMENTS[0]).read_text()
    folders = {file.parent.relative_to(ROOT).as_posix() for file in (ROOT / "govtool").rglob("*.py")}
    assert sorted(folder for folder in folders if f"{folder}/" not in map_) == []


def test_every_file_of_the_tests_has_a_name_of_its_own():
    """The tests are no packages, so that two files of one name would be one module."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []
