"""The comparison of annotated queries with the reference: one case is a random plan over random data.

python tests/workflow/annotate/annotated_differential.py 500 [first seed]; ``--unknown`` prints the share of unknown rows.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import numpy as np
import pyarrow as pa
from annotated_cases import annotated, case
from reference.algebra import bag, evaluate, without
from reference.polynomial import Value

from govtool.records.sql.dialect import NotExact
from govtool.workflow.queries.rerun import rerun, resolved
from govtool.workflow.queries.statuses import key_of, propagated
from govtool.workflow.semirings.lineage import lineage
from govtool.workflow.semirings.polynomial import Polynomials, text_of
from govtool.workflow.semirings.tokens import Tokens
from govtool.workflow.why import QueryProvenance


@dataclass
class Report:
    """What a run of cases came to."""

    cases: int = 0
    skipped: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    unknown: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Add the cases of another run."""
        self.cases += other.cases
        self.skipped += other.skipped
        self.statuses.update(other.statuses)
        self.wrong += other.wrong
        for kind, counts in other.unknown.items():
            self.unknown[kind].update(counts)


def normal(value: Any) -> Any:
    if isinstance(value, (float, Fraction)):
        return round(float(value), 9)
    return tuple(value) if isinstance(value, list) else value


def row_key(row: Any) -> Any:
    """A row by value, whatever types engines give numbers."""
    plain = tuple(float(v) if isinstance(v, (Fraction, int)) and not isinstance(v, bool) else v for v in row)
    return key_of(plain)


def bag_of(rows: Any) -> Counter[Any]:
    return Counter(map(row_key, rows))


class Case:
    """A query in the reference and in the product."""

    def __init__(self, seed: int, folder: Path, executor: Any = None) -> None:
        self.seed = seed
        self.data, self.plan, self.sql = case(seed)
        self.query, self.names = annotated(self.sql, self.data, folder, executor=executor)
        labels = {name: pa.array([t for t, _ in self.data[name]], pa.string()) for name in self.query.sources}
        self.found = QueryProvenance(self.query, Tokens(self.query.sources, labels))
        columns = [column.to_pylist() for column in self.query.table.read(*self.query.columns)]
        self.rows = list(zip(*[[normal(value) for value in column] for column in columns], strict=True))

    def problems(self, report: Report) -> list[str]:
        found = [*self._counts(), *self._polynomials(), *self._by_columns(), *self._lineage()]
        rng = Random(self.seed + 7)
        for share in (0.15, 0.4, 0.8):
            found += self._deletion(report, [t for rows in self.data.values() for t, _ in rows if rng.random() < share])
        return [f"{self.seed} {problem}: {self.sql}" for problem in found]

    def _counts(self) -> list[str]:
        counts = self.found.counts[self.found.annotations]
        if (counts != self.query.times()).any():
            return ["the counts of the annotations are not those of the rows"]
        got = bag_of(row for row, n in zip(self.rows, counts, strict=True) for _ in range(int(n)))
        expected = bag_of(bag(self.plan, self.data))
        return [] if got == expected else [f"rows {got - expected} instead of {expected - got}"]

    def _polynomials(self) -> list[str]:
        cells = self.found.cells
        roots = np.concatenate([self.found.annotations, *cells.values()])
        made = Polynomials(self.query.circuit, self.found.tokens, roots)
        got: Counter[Any] = Counter()
        for at, row in enumerate(self.rows):
            text = text_of(made.of(int(self.found.annotations[at])))
            nodes = [int(cells[c.id][at]) if c.id in cells else -1 for c in self.query.columns]
            values = tuple(made.text(node) if node >= 0 else None for node in nodes)
            if text != "0":
                got[row, text, values] += 1
        expected: Counter[Any] = Counter()
        for each in evaluate(self.plan, self.data):
            values = tuple(str(cell) if isinstance(cell, Value) else None for cell in each.cells)
            if each.annotation.terms:
                expected[tuple(map(normal, each.values)), str(each.annotation), values] += 1
        if re.search(r"\bIN\b", str(expected)) or got == expected:  # IN as a value is written as a CASE
            return []
        return [f"polynomials {got - expected} instead of {expected - got}"]

    def _by_columns(self) -> list[str]:
        """Sums and aggregates that are made by columns are those that are made one by one."""
        columns = QueryProvenance(self.query, self.found.tokens, long_from=1)
        one_by_one = QueryProvenance(self.query, self.found.tokens, long_from=1 << 60)
        rows = columns.rows
        pairs = [
            (list(map(str, columns.whole_polynomials(rows))), one_by_one.polynomials(rows)),
            (
                list(map(str, columns.whole_polynomials(rows, erase_delta=True))),
                one_by_one.polynomials(rows, erase_delta=True),
            ),
            (
                [{k: str(v) for k, v in row.items()} for row in columns.whole_aggregates(rows)],
                one_by_one.aggregates(rows),
            ),
            (columns.polynomials(rows), one_by_one.polynomials(rows)),
        ]
        return [f"by columns {made} instead of {expected}" for made, expected in pairs if made != expected]

    def _lineage(self) -> list[str]:
        nodes = self.found.annotations
        there = np.flatnonzero(self.found.counts[nodes] > 0)
        roots = [nodes[there], *(cells[there] for cells in self.found.cells.values())]
        owners, sources = lineage(
            self.query.circuit, self.found.counts, np.tile(there, len(roots)), np.concatenate(roots)
        )
        which = defaultdict(set)
        for owner, source in zip(owners.tolist(), sources.tolist(), strict=True):
            which[owner].add(self.names[source])
        got = Counter((self.rows[at], frozenset(which[at])) for at in there.tolist())
        rows = [row for row in evaluate(self.plan, self.data) if row.annotation.count()]
        expected = Counter((tuple(map(normal, row.values)), row.trace.rows) for row in rows)
        return [] if got == expected else [f"which {got - expected} instead of {expected - got}"]

    def _deletion(self, report: Report, gone: list[str]) -> list[str]:
        nodes = np.array([node for node, token in self.names.items() if token in gone], np.int64)
        propagation = propagated(self.found, nodes)
        expected = bag_of(bag(self.plan, without(self.data, gone)))
        sure = bag_of(row.after for row in propagation.rows if row.after is not None) + bag_of(propagation.gains)
        unknown = sum(row.status == "unknown" for row in propagation.rows)
        report.statuses.update(row.status for row in propagation.rows)
        for kind in _operators(self.plan):
            report.unknown[kind].update({"rows": len(propagation.rows), "unknown": unknown})
        left = expected - sure
        before = bag_of(row.before for row in propagation.rows)
        taken = bag_of(row.before for row in propagation.rows if row.status == "deleted")
        if returned := taken - (before - expected):
            return [f"without {gone}: {returned} are called deleted, and are in a re-run"]
        if sure - expected or (not propagation.gains_possible and left.total() > unknown):
            return [f"without {gone}: {sure - expected} are not in a re-run, {left} are left for {unknown} unknown"]
        again = rerun(self.query, self.query.plan, nodes, {name: len(rows) for name, rows in self.data.items()})
        computed = [at for at, column in enumerate(self.query.columns) if column.id in self.found.cells]
        done = resolved(propagation, again, computed)
        whole = bag_of(row.after for row in done.rows if row.after is not None) + bag_of(done.gains)
        return [] if done.is_certain and whole == expected else [f"replay without {gone}: {whole} not {expected}"]


def _operators(plan: Any) -> set[str]:
    found = {type(plan).__name__}
    for name in ("child", "left", "right"):
        if hasattr(plan, name):
            found |= _operators(getattr(plan, name))
    return found


def run(seeds: range, executor: Callable[[], Any] = lambda: None) -> Report:
    """Compare the cases of some seeds; the executor is made anew for each, None being DuckDB's."""
    report = Report()
    for seed in seeds:
        report.cases += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                report.wrong += Case(seed, Path(folder), executor()).problems(report)
            except NotExact:
                report.skipped += 1
    return report


def main(arguments: list[str]) -> int:
    numbers = [int(text) for text in arguments if not text.startswith("-")]
    start = numbers[1] if len(numbers) > 1 else 0
    report = run(range(start, start + numbers[0]))
    print(*report.wrong, sep="\n")
    print(f"{report.cases} cases, {report.skipped} skipped, {len(report.wrong)} wrong", dict(report.statuses))
    if "--unknown" in arguments:
        for kind, counts in sorted(report.unknown.items()):
            print(f"| {kind} | {counts['rows']:,} | {100 * counts['unknown'] / max(counts['rows'], 1):.1f}% |")
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
