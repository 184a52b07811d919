"""The page of attacks: a table whose rows are measured part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.page import machine, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "store-attacks.md"
_HEAD = """# Attacks on a store

Made by `python -m bench.attacks`, which takes some hours; do not edit. A part alone replaces its rows, as in
`python -m bench.attacks kills flips`. Every row says what was tried, how often, and what came of it; smaller versions
of all of them are among the tests. Rows of parts that the program does not have are attacks that were tried by hand.

The tests that attack a store, alone: `pytest tests/store/test_store_kill.py tests/store/test_store_faults.py
tests/store/test_store_writers.py tests/store/test_store_clocks.py tests/store/test_store_upkeep.py
tests/store/test_forget.py tests/store/test_damaged_records.py tests/app/test_causal_order.py
tests/app/test_hostile_programs.py tests/cli/test_cli_untrusted.py tests/cli/test_cli_secrets.py
tests/cli/test_cli_serve.py tests/test_fuzz_fixtures.py tests/workflow/modules/test_run_record_checks.py`.
Together they took 59 s by the clock in one process on a quiet machine, 38 s of them CPU, servers apart.
"""
_COLUMNS = ["attack", "tries", "result"]


class Row(NamedTuple):
    """A row of the table."""

    part: str
    attack: str
    tries: int
    result: str


def shown(outcome: Counter[str], good: str) -> str:
    """What went wrong, and how often; the good result where nothing did."""
    return "; ".join(f"**{text}: {count:,}**" for text, count in sorted(outcome.items())) or good


def merge(rows: Iterable[Row], parts: Iterable[str]) -> None:
    """Put the rows of some parts in place of their earlier ones; the parts give the order of the page."""
    new = list(rows)
    measured = {row.part for row in new}
    kept = [line for line in _lines() if line.split(" · ", 1)[0].strip("| ") not in measured]
    made = table(_COLUMNS, ((f"{row.part} · {row.attack}", f"{row.tries:,}", row.result) for row in new))
    order = {part: at for at, part in enumerate(parts)}
    all_lines = [*kept, *made.splitlines()[2:]]
    lines = sorted(all_lines, key=lambda line: order.get(line.split(" · ", 1)[0].strip("| "), len(order)))
    head = table(_COLUMNS, ())
    PAGE.write_text("\n".join((_HEAD, head, *lines, "", machine(), "")))


def _lines() -> list[str]:
    """The rows that stand on the page."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return [line for line in text.splitlines() if line.startswith("|")][2:]
