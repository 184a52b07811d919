"""The tutorials, how-tos and the README's first block, command by command: from the fixtures they name, as a reader would.

Blocks run in the order of the page. A block with ``title="FILE"`` is written to that file; the lines of a console block
that begin with ``$`` are run, with the exit code of their comment (``# exit code 1``), and the lines below a command must
be in what it prints. ``…`` stands for anything; runs of blanks are one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from govtool.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in ("tutorials", "howto")
    for page in (ROOT / "docs" / folder).glob("*.md")
)
NEEDS_DUCKDB = {"docs/tutorials/wrong-number.md", "docs/howto/compare-runs.md"}

_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"\s+# exit code (\d+)$")
_OF_THE_RUN = re.compile(r"\b[0-9a-f]{7}\b|\d{4}-\d\d-\d\d \d\d:\d\d")  # ids of commits, times


@dataclass
class Step:
    """A command of a page, with what it is to print."""

    command: str
    code: int
    lines: list[str]


def steps(text: str) -> list[Step]:
    """The commands of a console block."""
    found: list[Step] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            code = _CODE.search(line)
            found.append(Step(_CODE.sub("", line[2:]).strip(), int(code[1]) if code else 0, []))
        elif line.strip() and found:
            found[-1].lines.append(" ".join(line.split()))
    return found


def pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part.strip()) for part in line.split("…")))


class Reader:
    """Does what a page says, in a folder; ``cd`` counts for what follows."""

    def __init__(self, capsys) -> None:
        self.capsys = capsys

    def run(self, step: Step) -> None:
        for part in step.command.split(" && "):
            code, shown = self.run_one(part)
        assert code == step.code, f"$ {step.command}\n{shown}"
        printed = [" ".join(line.split()) for line in shown.splitlines()]
        for wanted in step.lines:
            found = any(pattern(wanted).search(line) for line in printed)
            assert found, f"$ {step.command}\nhas no line like: {wanted}\n{shown}"

    def run_one(self, command: str) -> tuple[int, str]:
        words = shlex.split(os.path.expandvars(command))
        if words[0] == "cd":
            os.chdir(words[1])
            return 0, ""
        if words[0] == "govtool":
            self.capsys.readouterr()
            code = main(words[1:])
            shown = self.capsys.readouterr()
            return code, shown.out + shown.err
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_a_reader_who_follows_the_page_gets_what_it_shows(page, tmp_path, monkeypatch, capsys):
    if page in NEEDS_DUCKDB:
        pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    monkeypatch.setenv("GOVTOOL_CLONE", str(ROOT))
    monkeypatch.setenv("HASH_KEY", "secret")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    reader, run = Reader(capsys), 0
    for language, title, text in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if title:
            Path(title).parent.mkdir(parents=True, exist_ok=True)
            Path(title).write_text(text, encoding="utf-8")
        elif language == "console":
            for step in steps(text):
                reader.run(step)
                run += 1
    assert run >= 3


def test_the_first_block_of_the_readme_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(body for language, _, body in _BLOCK.findall(text) if language == "console")
    reader = Reader(capsys)
    for step in steps(re.sub(r"\s+# in a clone.*", "", _OF_THE_RUN.sub("…", block))):
        reader.run(step)
    assert "208 unaffected" in block
