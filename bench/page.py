"""docs/benchmarks.md: sections between markers, so that each may be measured and merged alone."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

_HEAD = """# Benchmarks

Made by `python -m bench`; do not edit. A section alone: `python -m bench peers`. Figures are medians of runs in turn
with what they are compared to: read the ratios, the seconds are the machine's. Nothing here is a test: speed is
measured, not asserted.
"""

_SECTION = re.compile(r"<!-- section: (\S+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def merge(name: str, body: str, order: Iterable[str]) -> None:
    """Put a section into the page, in place of an earlier one of its name."""
    sections = dict(_SECTION.findall(PAGE.read_text())) if PAGE.exists() else {}
    sections[name] = body.rstrip("\n") + "\n\n" + machine() + "\n"
    known = list(order)
    names = sorted(sections, key=lambda key: known.index(key) if key in known else len(known))
    text = "\n".join(f"<!-- section: {key} -->\n{sections[key]}<!-- end -->\n" for key in names)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(f"{_HEAD}\n{text}")


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
    return (
        f"*{_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}; load {os.getloadavg()[0]:.1f}; govtool at {_commit()}.*"
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB"


def _commit() -> str:
    command = ["git", "-C", str(PAGE.parents[1]), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown commit"
