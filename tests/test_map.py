"""The file map agrees with the tree: what docs/architecture.md and CONTRIBUTING.md name is there, and every folder of
the package is named. Words of a row without a folder belong to the folder named before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("docs/architecture.md", "CONTRIBUTING.md")
_PATH = re.compile(
    r"`((?:govtool|tests|bench|fixtures|docs|scripts|policies)/[\w{}/.,*-]*|hatch_build\.py|action\.yml)`"
)
_ROW = re.compile(r"^\| (?!\|).*? \| (.*) \|$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"(?:\w|\{[\w,]+\})+(?:\.(?:py|js))?")
_SECTION = re.compile(r'docs/(\w+\.md), "([^"]+)"')
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


def named_in(row: str) -> Iterator[tuple[Path, str]]:
    """The words of a row without a folder: files or names of Python, each with the folder named last before it."""
    folder = None
    for quoted in _QUOTED.findall(row):
        for path in spelled_out(quoted):
            if path.startswith(("govtool/", "bench/", "tests/")):
                folder = ROOT / path if path.endswith("/") else (ROOT / path).parent
            elif folder and _WORD.fullmatch(path):
                yield folder, path


def is_there(folder: Path, word: str) -> bool:
    """True for a file, a folder, or a function, class or constant that a file of the folder defines."""
    if (folder / word).exists() or (folder / f"{word}.py").exists():
        return True
    definition = re.compile(rf"^(?:\s*(?:async )?(?:def|class) )?{word}\b(?=[(:\[]| =)", re.MULTILINE)
    return any(definition.search(file.read_text(encoding="utf-8")) for file in folder.glob("*.py"))


def test_every_word_of_a_row_is_in_the_folder_named_before_it():
    rows = _ROW.findall((ROOT / DOCUMENTS[0]).read_text(encoding="utf-8"))
    words = [named for row in rows for named in named_in(row)]
    assert len(words) > 150
    assert [f"{folder.relative_to(ROOT)}: {word}" for folder, word in words if not is_there(folder, word)] == []


def test_every_section_of_a_page_that_code_names_exists():
    found = {
        (file.relative_to(ROOT).as_posix(), page, " ".join(title.split()))
        for folder in ("govtool", "bench", "tests")
        for file in (ROOT / folder).rglob("*.py")
        for page, title in _SECTION.findall(file.read_text(encoding="utf-8"))
    }
    assert found
    pages = {page: (ROOT / "docs" / page).read_text(encoding="utf-8") for _, page, _ in found}
    assert [
        each
        for each in sorted(found)
        if not re.search(rf"^(#+ |\*\*){re.escape(each[2])}\b", pages[each[1]], re.MULTILINE)
    ] == []


def test_every_folder_of_the_package_is_named():
    map_ = (ROOT / DOCUMENTS[0]).read_text()
    folders = {file.parent.relative_to(ROOT).as_posix() for file in (ROOT / "govtool").rglob("*.py")}
    assert sorted(folder for folder in folders if f"{folder}/" not in map_) == []


def test_every_file_of_the_tests_has_a_name_of_its_own():
    """The tests are no packages, so that two files of one name would be one module."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []
