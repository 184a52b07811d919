"""The comparison of traces with the reference: one case is a random plan over random data.

python tests/records/trace/differential.py 2000 [first seed]
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import duckdb
from duck import Duck
from reference.algebra import Data, Row, bag, evaluate, only, present
from reference.generate import RELATIONS, Plans, Sql, random_data
from reference.polynomial import NOTHING, Trace, Value

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Expression, Literal, passed
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import LocalRows, Project, Relation
from govtool.records.trace.back import Reached, Stage, chosen, trace_back
from govtool.records.trace.forward import Forward, input_key
from govtool.records.trace.rules import traceable
from govtool.records.trace.segment import alike, both

KINDS: dict[str, tuple[str, t.Type]] = {
    "int": ("INTEGER", t.INTEGER),
    "str": ("VARCHAR", t.STRING),
    "list": ("INTEGER[]", t.Array(t.INTEGER)),
}


@dataclass
class Report:
    """What a run of cases came to."""

    cases: int = 0
    traces: int = 0
    supersets: int = 0
    skipped: int = 0
    wrong: list[str] = field(default_factory=list)


def catalog() -> dict[str, Relation]:
    return {
        name: table(name, t.Struct(tuple(t.Field(column, KINDS[kind][1]) for column, kind in columns)))
        for name, columns in RELATIONS.items()
    }


def load(duck: Duck, data: Data) -> None:
    for name, columns in RELATIONS.items():
        duck.load(name, [(column, KINDS[kind][0]) for column, kind in columns], [values for _, values in data[name]])


def normal(value: Any) -> Any:
    if isinstance(value, (float, Fraction)):
        return round(float(value), 9)
    return tuple(value) if isinstance(value, list) else value


def normal_rows(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(normal(value) for value in row) for row in rows]


def same_as(columns: tuple[Attribute, ...], values: tuple[Any, ...]) -> Expression | None:
    """The condition that a row has these values."""
    return both(alike(column, constant(column, value)) for column, value in zip(columns, values, strict=True))


def constant(column: Attribute, value: Any) -> Expression:
    return Literal(tuple(value) if isinstance(value, list) else value, column.type)


def steered(plan: Any, data: Data) -> bool:
    """Whether computed values steer rows, so that others may take a row's place in a replay of a part of the data."""
    rows = evaluate(plan, data)
    texts = [str(row.annotation) for row in rows] + [str(c) for row in rows for c in row.cells if isinstance(c, Value)]
    return any(mark in text for text in texts for mark in ("[", "RANK", "ROW_NUMBER", "LAG"))


class Case:
    """A plan over data, in the reference and in the product."""

    def __init__(self, duck: Duck, seed: int) -> None:
        rng = Random(seed)
        self.rng = rng
        self.duck = duck
        self.data = random_data(rng)
        self.plan = Plans(rng).plan(rng.randint(1, 4)).plan
        self.sql = Sql().text(self.plan)
        self.seed = seed
        load(duck, self.data)
        self.segment, self.ids = traceable(from_sql(self.sql, catalog()))
        self.stage = Stage(self.segment)

    def run(self, report: Report) -> None:
        report.cases += 1
        expected = Counter(normal_rows(bag(self.plan, self.data)))
        visible = self.segment.visible
        try:
            raw = self.duck.fetch(Project(self.segment.node, tuple(passed(column) for column in visible)))
        except duckdb.NotImplementedException:  # outer joins that are correlated: DuckDB's own limit
            report.skipped += 1
            return
        found = Counter(normal_rows(raw))
        if found != expected:
            report.wrong.append(f"{self.seed}: result {found} instead of {expected}: {self.sql}")
            return
        rows = present(self.plan, self.data)
        values = sorted({normal_rows([row.values])[0] for row in rows}, key=repr)
        originals = {normal_rows([row])[0]: row for row in raw}
        for value in self.rng.sample(values, min(2, len(values))):
            self._back(report, originals[value], value, [r for r in rows if normal_rows([r.values])[0] == value])
        self._forward(report, rows)

    def _back(self, report: Report, raw: tuple[Any, ...], value: tuple[Any, ...], rows: list[Row]) -> None:
        report.traces += 1
        expected = NOTHING
        for row in rows:
            expected |= row.trace
        _, reached = trace_back(self.duck, [chosen(self.stage, same_as(self.segment.visible, raw))])
        exact = all(each.grade.exactness == "exact" for each in reached)
        found = Trace(self.tokens(reached, False), self.tokens(reached, True))
        where = f"{self.seed} row {value}: "
        if exact and found.rows != expected.rows:
            report.wrong.append(f"{where}rows {sorted(found.rows)} instead of {sorted(expected.rows)}: {self.sql}")
        if exact and found.against - found.rows != expected.against - expected.rows:
            report.wrong.append(
                f"{where}against {sorted(found.against - found.rows)} instead of {sorted(expected.against - expected.rows)}: {self.sql}"
            )
        if not exact:
            report.supersets += 1
            if not found.rows >= expected.rows:
                report.wrong.append(
                    f"{where}superset {sorted(found.rows)} misses some of {sorted(expected.rows)}: {self.sql}"
                )
        if steered(self.plan, self.data):
            return
        replayed = Counter(normal_rows(bag(self.plan, only(self.data, found.rows | found.against))))
        if replayed[value] < len(rows):
            report.wrong.append(f"{where}replay gives it {replayed[value]} times, not {len(rows)}: {self.sql}")

    def tokens(self, reached: list[Reached], against: bool) -> frozenset[str]:
        found = set()
        for each in reached:
            if each.against == against:
                assert isinstance(each.leaf, Relation)
                found |= {self.data[each.leaf.dataset][record][0] for (record,) in self.duck.fetch(each.rows)}
        return frozenset(found)

    def _forward(self, report: Report, rows: list[Row]) -> None:
        names = [name for name in self.data if self.data[name]]
        if not names:
            return
        name = self.rng.choice(names)
        number = self.rng.randrange(len(self.data[name]))
        token = self.data[name][number][0]
        expected = Counter(
            normal_rows(row.values for row in rows for _ in range(row.annotation.count()) if token in row.trace.rows)
        )
        record = self.ids.attribute("record", t.LONG)
        kept = self.duck.keep(LocalRows(0, (record,), ((number,),)))
        position = Forward(self.duck, self.ids).from_inputs(self.stage, {input_key(catalog()[name]): kept})
        found: Counter[Any] = Counter()
        if position is not None:
            plan = Project(position.rows, tuple(passed(column) for column in self.segment.visible))
            found = Counter(normal_rows(self.duck.fetch(plan)))
        exact = position is None or position.grade.exactness == "exact"
        if (found != expected) if exact else (expected - found):
            report.wrong.append(f"{self.seed} forward {token}: {found} instead of {expected}: {self.sql}")


def run(seeds: range) -> Report:
    report = Report()
    for seed in seeds:
        duck = Duck()
        Case(duck, seed).run(report)
        duck.connection.close()
    return report


if __name__ == "__main__":
    import traceback

    total = Report()
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for number in range(start, start + int(sys.argv[1])):
        try:
            one = run(range(number, number + 1))
        except Exception as error:
            one = Report(wrong=[f"{number}: {type(error).__name__}: {error}"])
            if "-v" in sys.argv:
                traceback.print_exc()
        total.cases += one.cases
        total.traces += one.traces
        total.supersets += one.supersets
        total.skipped += one.skipped
        total.wrong += one.wrong
    print(*total.wrong, sep="\n")
    print(
        f"{total.cases} cases, {total.traces} traces, {total.supersets} supersets, {total.skipped} skipped, {len(total.wrong)} wrong"
    )
    sys.exit(bool(total.wrong))
