"""What random warehouses showed of verdicts, kept seed by seed, so that a long run can be stopped and resumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

MISSED = "missed"
"""It fails, or holds other values, and has no verdict."""
FALSE_ALARM = "false alarm"
"""It is said to break, and works as before."""
BY_POSITION = "by position"
"""Likewise, where a list of columns behind an alias, ``t(a, b)``, makes the table's own names of no account."""
ANOTHER_MEANING = "another meaning"
"""It is said to break, and works; but the name is found elsewhere then, and the view holds other values."""

_COUNTS = ("questions", "failing", "broken", "compared")


@dataclass(frozen=True)
class Finding:
    """An answer that DuckDB contradicts."""

    seed: int
    change: str
    subject: str
    what: str
    """``MISSED``, ``FALSE_ALARM``, ``BY_POSITION`` or ``ANOTHER_MEANING``."""
    column: str
    sql: str
    """The definition of the view."""
    reason: str = ""
    """DuckDB's message."""


@dataclass
class Report:
    """What many warehouses showed."""

    warehouses: int = 0
    questions: Counter[str] = field(default_factory=Counter)
    """Pairs of a changed column and a column of a view, by change."""
    failing: Counter[str] = field(default_factory=Counter)
    """Those of them that fail."""
    broken: Counter[str] = field(default_factory=Counter)
    """Those of them that are said to break."""
    compared: Counter[str] = field(default_factory=Counter)
    """Those without a verdict that hold the values that they held: a sample."""
    findings: list[Finding] = field(default_factory=list)

    def of(self, what: str, change: str = "") -> list[Finding]:
        """The findings of one sort, of one change or of all."""
        return [one for one in self.findings if one.what == what and change in ("", one.change)]

    def add(self, other: Report) -> None:
        """Add what other warehouses showed."""
        self.warehouses += other.warehouses
        self.questions += other.questions
        self.failing += other.failing
        self.broken += other.broken
        self.compared += other.compared
        self.findings += other.findings

    @property
    def line(self) -> str:
        """As a line of JSON."""
        counts = {name: dict(getattr(self, name)) for name in _COUNTS}
        return json.dumps({**counts, "warehouses": self.warehouses, "findings": [asdict(one) for one in self.findings]})

    @classmethod
    def parse(cls, line: str) -> Report:
        """Read a ``line``."""
        data = json.loads(line)
        counts = {name: Counter(data[name]) for name in _COUNTS}
        return cls(data["warehouses"], **counts, findings=[Finding(**one) for one in data["findings"]])


def resumed(seeds: Iterable[int], examine: Callable[[int], Report], log: Path | None) -> Report:
    """Examine the seeds that are not in a log, and add each to it; return what all of them showed."""
    report, done = Report(), set[int]()
    if log is not None and log.exists():
        for line in log.read_text().splitlines():
            number, _, text = line.partition(" ")
            done.add(int(number))
            report.add(Report.parse(text))
    for seed in seeds:
        if seed in done:
            continue
        one = examine(seed)
        report.add(one)
        if log is not None:
            with log.open("a") as file:
                file.write(f"{seed} {one.line}\n")
    return report
