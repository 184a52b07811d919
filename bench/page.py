"""docs/benchmarks.md: sections between markers, so that each may be measured and merged alone."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
_PAGES = ("docs/benchmarks.md", "docs/accuracy.md", "docs/records.md")
"""Written by measurements: that one of them has changed says nothing of the code."""
MAX_LOAD = 2.0
"""Processes that run, over the last minute; beyond it a figure is that of a busy machine."""

_HEAD = """# Benchmarks

Made by `python -m bench`; do not edit. A section alone: `python -m bench peers`. Figures are medians of runs in turn
with what they are compared to: read the ratios, the seconds are the machine's. Nothing here is a test: speed is
measured, not asserted.
"""

_SEVERAL = """The sections are not of one commit, and later code may be faster or slower:"""
_MEASURED = re.compile(r"^\*.*govtool at (?P<commit>[0-9a-f]+)(?P<notes>.*)\.\*$", re.MULTILINE)
_LOAD = re.compile(r"; load ([0-9.]+);")
_SECTION = re.compile(r"<!-- section: (\S+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def merge(name: str, body: str, order: Iterable[str]) -> None:
    """Put a section into the page, in place of an earlier one of its name."""
    sections = page_sections()
    sections[name] = body.rstrip("\n") + "\n\n" + machine() + "\n"
    known = list(order)
    names = sorted(sections, key=lambda key: known.index(key) if key in known else len(known))
    text = "\n".join(f"<!-- section: {key} -->\n{sections[key]}<!-- end -->\n" for key in names)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(f"{page_head({key: sections[key] for key in names})}\n{text}")


def page_sections() -> dict[str, str]:
    """The sections of the page as it stands, by name."""
    return dict(_SECTION.findall(PAGE.read_text())) if PAGE.exists() else {}


def page_head(sections: Mapping[str, str]) -> str:
    """The head of the page: which sections are of one commit, and which of other code or of a busy machine."""
    commits: dict[str, list[str]] = {}
    dirty, busy, unknown = [], [], []
    for name, text in sections.items():
        found = list(_MEASURED.finditer(text))
        if not found:
            unknown.append(name)
            continue
        last = found[-1]
        commits.setdefault(last["commit"], []).append(name)
        if "dirty" in last["notes"] or "not committed" in last["notes"]:
            dirty.append(name)
        load = _LOAD.search(last[0])
        if load and float(load[1]) > MAX_LOAD:
            busy.append(name)
    lines = [f"* of {commit}: {', '.join(names)}" for commit, names in commits.items()]
    lines += [
        f"* {text}: {', '.join(names)}"
        for text, names in (
            ("of code that was not committed as it was, so that nobody can check it out", dirty),
            (f"of a machine with a load over {MAX_LOAD:g}; only ratios say anything", busy),
            ("of an unknown commit", unknown),
        )
        if names
    ]
    origin = "All sections are of one commit." if len(commits) == 1 and not unknown else _SEVERAL
    return "\n".join((_HEAD, origin, "", *lines, ""))


def put(page: Path, name: str, body: str) -> None:
    """Put a section into a page of another subject, in place of an earlier one of its name, else at its end."""
    text = page.read_text()
    own = f"<!-- section: {name} -->\n{body.rstrip(chr(10))}\n\n{machine()}\n<!-- end -->\n"
    found = next((each for each in _SECTION.finditer(text) if each[1] == name), None)
    kept = f"{text.rstrip(chr(10))}\n\n{own}" if found is None else text[: found.start()] + own + text[found.end() :]
    page.write_text(kept)


def table(head: list[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines.extend("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)
    return "\n".join(lines)


def machine() -> str:
    """One line on where and with what it was measured."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("sqlglot", "sqlglotc", "typer", "rich", "pyarrow"))
    noted = [f"; {note}" for note in (_tree_note(), _load_note()) if note]
    return (
        f"*{_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}; load {os.getloadavg()[0]:.1f}; "
        f"govtool at {commit()}{''.join(noted)}.*"
    )


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """Add the options that allow a measurement under conditions that it is refused under."""
    parser.add_argument("--allow-dirty", action="store_true", help="measure a tree with changes that are not committed")
    parser.add_argument("--allow-load", action="store_true", help=f"measure at a load over {MAX_LOAD:g}")


def check_conditions(*, allow_dirty: bool, allow_load: bool) -> None:
    """Refuse to measure code that nobody can check out, or on a busy machine; where allowed, the page says so.

    Raises:
        SystemExit: With the reason.
    """
    refused = [
        f"{note}: {remedy}"
        for note, allowed, remedy in (
            (_tree_note(), allow_dirty, "commit them, or give --allow-dirty"),
            (_load_note(), allow_load, "wait, or give --allow-load"),
        )
        if note and not allowed
    ]
    if refused:
        raise SystemExit("not measured:\n" + "\n".join(refused))


def changed_files() -> list[str]:
    """Return the files of the working tree that differ from its commit, but for the pages of measurements."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line[3:] for line in done.stdout.splitlines() if line[3:] not in _PAGES]


def _tree_note() -> str:
    changed = changed_files()
    return f"changes that are not committed in {', '.join(changed[:3])}{' …' * (len(changed) > 3)}" if changed else ""


def _load_note() -> str:
    load = os.getloadavg()[0]
    return f"a load of {load:.1f}, over {MAX_LOAD:g}" if load > MAX_LOAD else ""


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB"


def commit() -> str:
    """The commit of the tree, as a page names it."""
    command = ["git", "-C", str(ROOT), "describe", "--always"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown commit"
