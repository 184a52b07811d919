"""Boundaries of random plans, by name: what the reference gives for an edited plan, or over the rows that are there.

A boundary is found in the reference's plan by its operator and its rows. Then a replay without some of its rows is the
plan with a filter in that place; a replay that is compared there is the part below it over fewer input rows; a trace
forward from there is that of the plan in which a relation takes the place of that part, and a trace back is that of the
part itself.

python tests/records/trace/boundary_cases.py 500 [first seed] [--files]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import duckdb
from differential import Case, normal, normal_rows
from reference.algebra import Aggregate, Col, Distinct, Filter, Lit, Op, Scan, SetOp, Window, bag, present, width

from govtool.errors import EngineError, UsageError
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Literal
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.nodes import LocalRows, outputs
from govtool.records.replay.changes import Exclusion
from govtool.records.replay.compare import replay
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.forward import input_key
from govtool.records.trace.named_boundaries import ROW_BY_ROW, NamedBoundary

Edit = Callable[[Any], Any]
"""The whole plan with another in the place of one of its parts."""


@dataclass
class BoundaryReport:
    """What a run of cases came to."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def parts(plan: Any, edit: Edit = lambda part: part) -> Iterator[tuple[str, Any, Edit]]:
    """The parts of a plan below its boundaries: the operator, the part, and the plan with another in its place."""
    names = {Aggregate: ("aggregate", ["child"]), Distinct: ("distinct", ["child"]), Window: ("window", ["child"])}
    if isinstance(plan, SetOp):
        word, own = f"{plan.kind}{'-all' if plan.every else ''}", ["left", "right"]
    else:
        word, own = names.get(type(plan), ("", []))
    for each in ("child", "left", "right"):
        if is_dataclass(plan) and each in {one.name for one in fields(plan)}:

            def changed(part: Any, each: str = each) -> Any:
                return edit(replace(plan, **{each: part}))

            if each in own:
                yield word, getattr(plan, each), changed
            yield from parts(getattr(plan, each), changed)


def check(seed: int, report: BoundaryReport, folder: Path | None = None) -> None:
    """Compare what is said of the boundaries of one plan."""
    case = Case(seed, folder)
    report.counts["cases"] += 1
    try:
        lineage = Lineage.of(from_sql(case.sql, case.tables.catalog), case.duck)
        for boundary in lineage.boundaries():
            Compared(case, lineage, boundary, report).run()
    except (duckdb.NotImplementedException, NotExact, EngineError):
        report.counts["skipped"] += 1
    finally:
        case.tables.close()


@dataclass
class Compared:
    """One boundary of a case."""

    case: Case
    lineage: Lineage
    boundary: NamedBoundary
    report: BoundaryReport

    def run(self) -> None:
        rows = self.lineage.at_boundary(self.boundary.name).all()
        raw = self.case.duck.fetch(self.boundary.plan)
        found, word = Counter(normal_rows(raw)), self.boundary.name.rstrip("0123456789").rstrip("-").lower()
        same = [each for each in parts(self.case.plan) if each[0] == word and self._gives(each[1], found)]
        if len(same) != 1 or not raw or self._is_twice(found):
            self.report.counts["not told apart"] += 1
            return
        _, part, edit = same[0]
        at = self._column(raw)
        if at is None:
            return
        value = self.case.rng.choice(raw)[at]
        column = outputs(self.boundary.plan)[at]
        meets = Call("<=>", (column, Literal(value, column.type)), t.BOOLEAN)
        self.report.counts["boundaries"] += 1
        self._left_out(part, edit, at, value, meets)
        if self.boundary.stages[0].operator not in ROW_BY_ROW:
            self._forward(part, edit, at, value, meets)
        self._back(part, at, value, rows.where(meets))
        self._compared_there(part)

    def _gives(self, part: Any, found: Counter[Any]) -> bool:
        return Counter(normal_rows(bag(part, self.case.data))) == found

    def _is_twice(self, found: Counter[Any]) -> bool:
        others = [each for each in self.lineage.boundaries() if each.name != self.boundary.name]
        return any(Counter(normal_rows(self.case.duck.fetch(each.plan))) == found for each in others)

    def _column(self, raw: list[Any]) -> int | None:
        plain = (t.INTEGER, t.STRING, t.LONG)
        fit = [n for n, column in enumerate(outputs(self.boundary.plan)) if column.type in plain]
        return self.case.rng.choice(fit) if fit else None

    def _wrong(self, what: str, found: object, expected: object) -> None:
        self.report.wrong.append(
            f"{self.case.seed} {what} {self.boundary.name}: {found} instead of {expected}: {self.case.sql}"
        )

    def _left_out(self, part: Any, edit: Edit, at: int, value: Any, meets: Any) -> None:
        """A replay without rows of the boundary."""
        answer = replay(self.lineage, [Exclusion(self.boundary.name, meets)])
        kept = Filter(part, Op("NOT", (Op("<=>", (Col(at), Lit(normal(value)))),)))
        expected = Counter(normal_rows(bag(edit(kept), self.case.data)))
        before = Counter(normal_rows(bag(self.case.plan, self.case.data)))
        self.report.counts["narrowed"] += answer.groups is not None
        self.report.counts["different"] += before != expected
        found = applied(before, answer)
        if found != expected:
            self._wrong(f"without {at}={value!r} of", found, expected)

    def _forward(self, part: Any, edit: Edit, at: int, value: Any, meets: Any) -> None:
        """The output rows that rows of the boundary reach."""
        names = tuple(f"c{n}" for n in range(width(part)))
        rows = [(f"m{n}", values) for n, values in enumerate(bag(part, self.case.data))]
        data = {**self.case.data, "mid": rows}
        chosen = {token for token, values in rows if normal(values[at]) == normal(value)}
        expected = Counter(
            normal_rows(
                row.values
                for row in present(edit(Scan("mid", names)), data)
                for _ in range(row.annotation.count())
                if chosen & row.trace.rows
            )
        )
        reached = self.lineage.all().boundary(self.boundary.name).where(meets).go_next_all()
        found: Counter[Any] = Counter()
        exact = True
        for position in reached.positions():
            exact = exact and position.grade.exactness == "exact"
            found += Counter(normal_rows(self.case.duck.fetch(reached._visible(position))))
        if len(reached.positions()) > 1 or ((found != expected) if exact else (expected - found)):
            self._wrong(f"forward from {at}={value!r} of", found, expected)
        self.report.counts["forward, exact" if exact else "forward, superset"] += 1

    def _back(self, part: Any, at: int, value: Any, rows: Any) -> None:
        """The input rows behind rows of the boundary."""
        expected: set[str] = set()
        for row in present(part, self.case.data):
            if normal(row.values[at]) == normal(value):
                expected |= row.trace.rows
        reached = [each for each in rows.go_back_all().parts if not each.against]
        found = self.case.tokens(reached, False)
        exact = all(each.grade.exactness == "exact" for each in reached)
        if (found != expected) if exact else not found >= expected:
            self._wrong(f"back from {at}={value!r} of", sorted(found), sorted(expected))
        self.report.counts["back, exact" if exact else "back, superset"] += 1

    def _compared_there(self, part: Any) -> None:
        """A replay without an input row, compared at the boundary."""
        names = [leaf.dataset for leaf in self.lineage.at_boundary(self.boundary.name).leaves()]
        names = [name for name in names if self.case.data.get(name)]
        if not names:
            return
        name = self.case.rng.choice(names)
        place = self.case.rng.randrange(len(self.case.data[name]))
        record = self.lineage.ids.attribute("record", t.LONG)
        kept = self.case.duck.keep(LocalRows(0, (record,), ((self.case.tables.record(name, place),),)))
        change = Exclusion(name, None, ((input_key(self.case.tables.catalog[name]), kept),))
        positions = self.lineage.all().boundary(self.boundary.name).positions()
        answer = replay(self.lineage, [change], positions)
        rest = {**self.case.data, name: [row for n, row in enumerate(self.case.data[name]) if n != place]}
        before, after = (Counter(normal_rows(bag(part, data))) for data in (self.case.data, rest))
        if applied(before, answer) != after:
            self._wrong(f"without {name} {place}, at", applied(before, answer), after)
        self.report.counts["compared there"] += 1


def applied(before: Counter[Any], answer: Any) -> Counter[Any]:
    """Rows after a replay, by its answer; those that it takes away and that are not there count below zero."""
    found = Counter(before)
    found.subtract(Counter(normal_rows(answer.gone)))
    found.subtract(Counter(normal_rows(row.before for row in answer.changed)))
    found.update(Counter(normal_rows(answer.new)))
    found.update(Counter(normal_rows(row.after for row in answer.changed)))
    return Counter({row: count for row, count in found.items() if count})


def run(seeds: range, folder: Path | None = None) -> BoundaryReport:
    """Compare the boundaries of the plans of some seeds."""
    report = BoundaryReport()
    for seed in seeds:
        try:
            check(seed, report, folder)
        except (UsageError, AssertionError, KeyError) as error:
            report.wrong.append(f"{seed}: {type(error).__name__}: {error}")
    return report


def main(arguments: list[str]) -> int:
    """Compare many cases; print what is wrong, and the totals."""
    numbers = [int(text) for text in arguments if not text.startswith("-")]
    start = numbers[1] if len(numbers) > 1 else 0
    with tempfile.TemporaryDirectory() as folder:
        report = run(range(start, start + numbers[0]), Path(folder) if "--files" in arguments else None)
    print(*report.wrong, sep="\n")
    print(dict(report.counts), len(report.wrong), "wrong")
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
