"""Every semiring of ``why --sql``, and deletions, of random queries against brute force.

Annotations are those of the reference, evaluated here by the semirings' definitions. Probabilities and shares come from
all worlds: the query over each set of records. DuckDB runs some of these worlds, and every deletion, from the SQL text.

python tests/workflow/annotate/semirings_differential.py 300 [first seed]
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import factorial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import pyarrow as pa
import pyarrow.parquet as pq
from annotated_cases import KINDS
from annotated_differential import row_key
from reference import algebra
from reference.algebra import (
    Aggregate,
    Col,
    Distinct,
    Explode,
    Filter,
    Given,
    Join,
    Limit,
    Op,
    Project,
    Row,
    Scan,
    SetOp,
    Union,
    Window,
    bag,
    evaluate,
    only,
    without,
)
from reference.generate import RELATIONS, Plans, Sql, random_data
from reference.polynomial import Delta, Guard, Minus, Poly, Steered, Tok, Value, number, total

import govtool
from govtool.errors import EngineError, UsageError

MOST_TOKENS = 9
PLAIN = ("polynomial", "how", "count", "bool")
POSITIVE = ("why", "why-minimal", "cost", "trust")
SHARES = ("shapley", "banzhaf", "responsibility")


# ---- queries ---------------------------------------------------------------------------------------------------------


class DuckSql(Sql):
    """The text of a plan as DuckDB reads it."""

    def _join(self, plan: Any, outer: Any) -> Any:
        text, names = super()._join(plan, outer)
        return text.replace(" LEFT SEMI JOIN ", " SEMI JOIN ").replace(" LEFT ANTI JOIN ", " ANTI JOIN "), names

    def _explode(self, plan: Any, outer: Any) -> Any:
        source, names = self._from(plan.child, outer)
        (new,) = self._new(1)
        column = names[plan.at]
        if plan.outer:
            column = f"CASE WHEN len({column}) > 0 THEN {column} ELSE [NULL] END"
        return f"SELECT {', '.join(names)}, unnest({column}) AS {new} FROM {source}", (*names, new)

    def term(self, term: Any, names: Any, outer: Any) -> str:
        text = super().term(term, names, outer)
        return text.replace(" <=> ", " IS NOT DISTINCT FROM ")


class Case:
    """A random query over few records."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.seed = seed
        while True:
            self.data = random_data(rng)
            self.plan = Plans(rng).plan(rng.randint(1, 3)).plan
            self.data = {name: rows[: rng.randint(1, 5)] for name, rows in self.data.items()}
            read = _read(self.plan)
            self.tokens = [tok for name, rows in self.data.items() if name in read for tok, _ in rows]
            if len(self.tokens) <= MOST_TOKENS:
                break
        self.sql = Sql().text(self.plan)
        self.costs = {tok: rng.randint(1, 9) for rows in self.data.values() for tok, _ in rows}
        self.chances = {tok: rng.randint(1, 9) / 10 for rows in self.data.values() for tok, _ in rows}

    def write(self, folder: Path) -> None:
        for name, columns in RELATIONS.items():
            rows = self.data[name]
            cells = {"_tok": pa.array([tok for tok, _ in rows], pa.string())}
            for at, (column, kind) in enumerate(columns):
                cells[column] = pa.array([values[at] for _, values in rows], KINDS[kind][0])
            pq.write_table(pa.table(cells), folder / f"{name}.parquet")

    @cached_property
    def rows(self) -> list[Merged]:
        """The rows of the reference: those of equal plain values are one."""
        found: dict[Any, list[Row]] = {}
        for at, row in enumerate(evaluate(self.plan, self.data)):
            if row.annotation.terms:
                computed = any(isinstance(cell, Value) for cell in row.cells)
                found.setdefault(at if computed else ("plain", row_key(row.values)), []).append(row)
        return [Merged(tuple(rows)) for rows in found.values()]

    @cached_property
    def worlds(self) -> list[Counter[Any]]:
        """The rows of the query over each set of records, by the plain columns; world i has token t if bit t is set."""
        return [bag_of(bag(self.plan, only(self.data, self._kept(mask)))) for mask in range(1 << len(self.tokens))]

    def _kept(self, mask: int) -> list[str]:
        return [tok for at, tok in enumerate(self.tokens) if mask >> at & 1]

    def presence(self, row: Merged) -> list[bool]:
        """For each world whether a row is there: by the query over it where its plain cells name it."""
        width = algebra.width(self.plan)
        plain = [
            at
            for at in range(width)
            if not any(isinstance(each.cells[at], Value) for one in self.rows for each in one.rows)
        ]
        names = Counter(tuple(one.key[at] for at in plain) for one in self.rows)
        own = tuple(row.key[at] for at in plain)
        if names[own] == 1 and len(plain) == width:
            return [any(tuple(each[at] for at in plain) == own for each in world) for world in self.worlds]
        counts = [{tok: mask >> at & 1 for at, tok in enumerate(self.tokens)} for mask in range(1 << len(self.tokens))]
        return [any(each.annotation.count(world) for each in row.rows) for world in counts]


@dataclass(frozen=True)
class Merged:
    """A row of the answer: the rows of the reference that it stands for."""

    rows: tuple[Row, ...]

    @property
    def poly(self) -> Poly:
        return total(row.annotation for row in self.rows)

    @property
    def key(self) -> Any:
        return row_key(self.rows[0].values)

    @property
    def count(self) -> int:
        return sum(row.annotation.count() for row in self.rows)


def _read(plan: Any) -> set[str]:
    """The relations that a plan reads, subqueries too."""
    if isinstance(plan, Scan):
        return {plan.name}
    found: set[str] = set()
    for value in (
        vars(plan).values() if hasattr(plan, "__dataclass_fields__") else plan if isinstance(plan, tuple) else ()
    ):
        if hasattr(value, "__dataclass_fields__") or isinstance(value, tuple):
            found |= _read(value)
    return found


def bag_of(rows: Iterable[Any]) -> Counter[Any]:
    return Counter(map(row_key, rows))


# ---- the semirings, by their definitions -----------------------------------------------------------------------------


def is_positive(poly: Poly, guards: bool = False) -> bool:
    """``+ · δ`` only; with ``guards`` conditions, too."""
    for atoms in poly.terms:
        for atom in atoms:
            if isinstance(atom, Minus) or (isinstance(atom, (Guard, Steered)) and not guards):
                return False
            if isinstance(atom, Delta) and not is_positive(atom.of, guards):
                return False
    return True


def witnesses(poly: Poly) -> frozenset[frozenset[str]]:
    found: set[frozenset[str]] = set()
    for atoms in poly.terms:
        parts = [{frozenset([a.text])} if isinstance(a, Tok) else witnesses(a.of) for a in atoms]  # type: ignore[attr-defined]
        found |= {frozenset().union(*chosen) for chosen in product(*parts)}
    return frozenset(found)


def minimal(sets: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
    return frozenset(one for one in sets if not any(other < one for other in sets))


def ordered(poly: Poly, values: dict[str, float], best: Any, both: Any, one: float, zero: float) -> float:
    found = zero
    for atoms in poly.terms:
        worth = one
        for a in atoms:
            worth = both(worth, values[a.text] if isinstance(a, Tok) else ordered(a.of, values, best, both, one, zero))  # type: ignore[attr-defined]
        found = best(found, worth)
    return found


def how(poly: Poly) -> Poly:
    """Without δ, on the outside and within differences."""
    made = Poly([])
    for atoms, times in poly.terms.items():
        part = number(times)
        for atom in atoms:
            part = part * _how_atom(atom)
        made = made + part
    return made


def _how_atom(atom: Any) -> Poly:
    if isinstance(atom, Delta):
        return how(atom.of)
    if isinstance(atom, Minus):
        return how(atom.left) - how(atom.right)
    return Poly([((atom,), 1)])


def shares(there: list[bool], size: int) -> dict[str, list[float]]:
    """Shapley and Banzhaf values and responsibility, by token, from the worlds in which a row is there."""
    found: dict[str, list[float]] = {name: [0.0] * size for name in SHARES}
    for at in range(size):
        least = None
        for world in range(1 << size):
            if not world >> at & 1:
                continue
            gain = there[world] - there[world & ~(1 << at)]
            others = world.bit_count() - 1
            found["shapley"][at] += gain * factorial(others) * factorial(size - others - 1) / factorial(size)
            found["banzhaf"][at] += gain / 2 ** (size - 1)
            if gain > 0:
                gone = size - 1 - others
                least = gone if least is None else min(least, gone)
        found["responsibility"][at] = 0.0 if least is None else 1 / (1 + least)
    return found


# ---- where -----------------------------------------------------------------------------------------------------------

Sets = tuple[frozenset[str], ...]
Traced = list[tuple[Row, Sets]]
NONE: frozenset[str] = frozenset()


class Where:
    """The cells that each cell of the rows that are there was copied from."""

    def __init__(self, data: Any, by_equality: bool) -> None:
        self.data, self.by_equality = data, by_equality

    def of(self, plan: Any) -> Traced:
        return getattr(self, "_" + type(plan).__name__.lower())(plan)

    def _given(self, plan: Any, *relations: list[Row]) -> list[Row]:
        """A plan over rows: its children are ``Given``."""
        return algebra.present(plan, {**self.data, **{f"_{at}": rows for at, rows in enumerate(relations)}})

    def _scan(self, plan: Scan) -> Traced:
        rows = evaluate(plan, self.data)
        return [
            (row, tuple(frozenset({f"{plan.name}.{tok}.{column}"}) for column in plan.columns))
            for row, (tok, _) in zip(rows, self.data[plan.name], strict=True)
        ]

    def _filter(self, plan: Filter) -> Traced:
        child = self.of(plan.child)
        found = []
        for row, sets in child:
            kept = self._given(Filter(_over(0, plan.child), plan.condition), [row])
            found += [(each, self._equated(sets, plan.condition)) for each in kept]
        return found

    def _equated(self, sets: Sets, condition: Any) -> Sets:
        if not self.by_equality:
            return sets
        made = list(sets)
        for part in algebra.conjuncts(condition):
            match part:
                case Op("=", (Col(a), Col(b))) if made[a] and made[b]:  # cells that were copied, not computed
                    made[a] = made[b] = made[a] | made[b]
        return tuple(made)

    def _project(self, plan: Project) -> Traced:
        child = self.of(plan.child)
        rows = [self._given(Project(_over(0, plan.child), plan.expressions), [row])[0] for row, _ in child]
        made = [tuple(sets[e.at] if isinstance(e, Col) else NONE for e in plan.expressions) for _, sets in child]
        return list(zip(rows, made, strict=True))

    def _join(self, plan: Join) -> Traced:
        left, right = self.of(plan.left), self.of(plan.right)
        over = (_over(0, plan.left), _over(1, plan.right))
        found = []
        if plan.kind in ("semi", "anti"):
            for row, sets in left:
                kept = self._given(Join(plan.kind, *over, plan.condition), [row], [each for each, _ in right])
                found += [(each, sets) for each in kept]
            return found
        for a, one in left:
            for b, other in right:
                kept = self._given(Join("inner", *over, plan.condition), [a], [b])
                found += [(each, self._equated(one + other, plan.condition)) for each in kept]
        if plan.kind in ("left", "full"):
            for a, one in left:
                if self._given(Join("anti", *over, plan.condition), [a], [b for b, _ in right]):
                    width = algebra.width(plan.right)
                    found.append((Row(a.cells + (None,) * width, a.annotation), one + (NONE,) * width))
        if plan.kind in ("right", "full"):
            for b, other in right:
                if not any(self._given(Join("inner", *over, plan.condition), [a], [b]) for a, _ in left):
                    width = algebra.width(plan.left)
                    found.append((Row((None,) * width + b.cells, b.annotation), (NONE,) * width + other))
        return found

    def _union(self, plan: Union) -> Traced:
        return self.of(plan.left) + self.of(plan.right)

    def _together(self, members: Traced) -> Sets:
        return tuple(frozenset().union(*column) for column in zip(*(sets for _, sets in members), strict=True))

    def _distinct(self, plan: Distinct) -> Traced:
        return [(members[0][0], self._together(members)) for members in _by_values(self.of(plan.child)).values()]

    def _setop(self, plan: SetOp) -> Traced:
        left = _by_values(self.of(plan.left))  # the right side only decides which rows there are
        rows = self._given(
            SetOp(plan.kind, plan.every, _over(0, plan.left), _over(1, plan.right)),
            [row for each in left.values() for row, _ in each],
            algebra.present(plan.right, self.data),
        )
        return [(row, self._together(left[row_key(row.values)])) for row in rows]

    def _aggregate(self, plan: Aggregate) -> Traced:
        child = self.of(plan.child)
        found: Traced = []
        for kept in plan.sets or (plan.keys or (),):
            if plan.keys is None:
                groups = {(): child}
            else:
                groups = {}
                for row, sets in child:
                    groups.setdefault(row_key([row.values[key] for key in kept]), []).append((row, sets))
            one = Aggregate(_over(0, plan.child), plan.keys, plan.calls, (kept,) if plan.sets else ())
            for members in groups.values():
                (row,) = self._given(one, [row for row, _ in members])
                keys = tuple(
                    frozenset().union(*(sets[key] for _, sets in members)) if key in kept else NONE
                    for key in plan.keys or ()
                )
                found.append((row, keys + (NONE,) * len(plan.calls)))
        return found

    def _window(self, plan: Window) -> Traced:
        child = self.of(plan.child)
        rows = self._given(Window(_over(0, plan.child), plan.calls), [row for row, _ in child])
        return [(row, sets + (NONE,) * len(plan.calls)) for row, (_, sets) in zip(rows, child, strict=True)]

    def _explode(self, plan: Explode) -> Traced:
        found = []
        for row, sets in self.of(plan.child):
            made = self._given(Explode(_over(0, plan.child), plan.at, plan.outer), [row])
            found += [(each, (*sets, NONE)) for each in made]
        return found

    def _limit(self, plan: Limit) -> Traced:
        child = self.of(plan.child)
        rows = self._given(Limit(_over(0, plan.child), plan.order, plan.count), [row for row, _ in child])
        sets = {id(row.cells): own for row, own in child}
        return [(row, sets[id(row.cells)]) for row in rows]


def _over(at: int, plan: Any) -> Given:
    return Given(f"_{at}", tuple(map(str, range(algebra.width(plan)))))


def _by_values(rows: Traced) -> dict[Any, Traced]:
    found: dict[Any, Traced] = {}
    for row, sets in rows:
        found.setdefault(row_key(row.values), []).append((row, sets))
    return found


# ---- comparisons -----------------------------------------------------------------------------------------------------


def problems(case: Case, folder: Path, report: Counter[str]) -> list[str]:
    """What the product says otherwise than brute force."""
    case.write(folder)
    checks = (_plain, _which, _positive, _where, _prob, _shares, _worlds_in_duckdb, _deletions)
    wrong = []
    for check in checks:
        try:
            wrong += [f"{check.__name__[1:]}: {each}" for each in check(case, folder, report)]
        except EngineError as error:
            report[f"engine: {error.code}"] += 1
    return [f"seed {case.seed} {each}\n    {case.sql}" for each in wrong]


def asked(case: Case, folder: Path, report: Counter[str], names: tuple[str, ...]) -> dict[Any, Any] | None:
    """The rows of an answer by their values and polynomials; None: the semiring is refused."""
    values = {"cost": case.costs, "trust": case.costs, "prob": case.chances}
    own = {name: values[name] for name in names if name in values}
    try:
        answer = govtool.why(case.sql, folder, semirings=["polynomial", *names], values=own)
    except UsageError as error:
        if error.code not in ("usage.semiring", "usage.why-size"):
            raise
        report[
            f"refused: {names[0]}: {error.message.partition(' over ')[2] or error.message.partition(' without ')[2]}"
        ] += 1
        return None
    report[f"answered: {names[0]}"] += 1
    found: dict[Any, list[Any]] = {}
    for row in answer.tuples:
        found.setdefault((row_key(row.values), row.annotations["polynomial"]), []).append(row)
    return found


def paired(case: Case, answer: dict[Any, Any]) -> list[tuple[Merged, Any]] | None:
    """Rows of the reference with those of the answer; None: rows cannot be told apart by their texts."""
    expected: dict[Any, list[Merged]] = {}
    for row in case.rows:
        expected.setdefault((row.key, str(row.poly)), []).append(row)
    if expected.keys() != answer.keys() or any(len(expected[key]) != len(answer[key]) for key in expected):
        return None
    return [(one, other) for key, rows in expected.items() for one, other in zip(rows, answer[key], strict=True)]


def _plain(case: Case, folder: Path, report: Counter[str]) -> Any:
    answer = asked(case, folder, report, PLAIN)
    assert answer is not None
    pairs = paired(case, answer)
    if pairs is None:
        if re.search(r"\bIN\b", str([str(row.poly) for row in case.rows])):
            report["texts of IN as a value differ"] += 1
            return
        yield f"rows {set(answer) ^ {(row.key, str(row.poly)) for row in case.rows}}"
        return
    for row, got in pairs:
        expected = {"how": str(how(row.poly)), "count": row.count, "bool": row.count > 0}
        own = {name: got.annotations[name] for name in expected}
        if "[" in expected["how"]:  # conditions keep their δ here
            own.pop("how"), expected.pop("how")
        if own != expected or got.multiplicity != row.count:
            yield f"{own} instead of {expected}"


def _which(case: Case, folder: Path, report: Counter[str]) -> Any:
    answer = asked(case, folder, report, ("which",))
    there = [row for row in case.rows if row.count]
    fits = all(is_positive(row.poly, guards=True) for row in there)
    if answer is None:
        if fits and len(there) == len(case.rows):
            yield "which is refused for rows without a difference"
        return
    if not fits:
        yield "which is not refused for a difference"
    for row, got in paired(case, answer) or ():
        if row.count and set(got.annotations["which"]) != set().union(
            *(r.trace.rows for r in row.rows if r.annotation.count())
        ):
            yield f"{row.key}: {got.annotations['which']}"


def _positive(case: Case, folder: Path, report: Counter[str]) -> Any:
    answer = asked(case, folder, report, POSITIVE)
    there = [row for row in case.rows if row.count]
    fits = all(is_positive(row.poly) for row in there)
    if answer is None:
        if fits and len(there) == len(case.rows):
            yield "positive semirings are refused for positive rows"
        return
    if not fits:
        yield "positive semirings are not refused"
    for row, got in paired(case, answer) or ():
        if not row.count:
            continue
        sets = witnesses(row.poly)
        made = {
            "why": sets,
            "why_minimal": minimal(sets),
            "cost": ordered(row.poly, case.costs, min, lambda a, b: a + b, 0, float("inf")),
            "trust": ordered(row.poly, case.costs, max, min, float("inf"), -float("inf")),
        }
        own = {name: got.annotations.get(name) for name in made}
        for name in ("why", "why_minimal"):
            own[name] = frozenset(map(frozenset, own[name]))
        made["trust"] = None if made["trust"] == float("inf") else made["trust"]
        if own != made:
            yield f"{row.key}: {own} instead of {made}"


def _where(case: Case, folder: Path, report: Counter[str]) -> Any:
    answer = asked(case, folder, report, ("where",))
    if answer is None:
        yield "where is refused"
        return
    for key, by_equality in (("where", False), ("where_eq", True)):
        expected: dict[Any, list[set[str]]] = {}
        for row, sets in Where(case.data, by_equality).of(case.plan):
            if row.annotation.count():
                columns = expected.setdefault(row_key(row.values), [set() for _ in sets])
                for column, own in zip(columns, sets, strict=True):
                    column |= own
        for (values, _), rows in answer.items():
            for row in rows:
                if row.multiplicity:
                    got = [set(cells) for cells in row.annotations[key].values()]
                    if got != expected.get(values):
                        yield f"{key} of {values}: {got} instead of {expected.get(values)}"


def _prob(case: Case, folder: Path, report: Counter[str]) -> Any:
    answer = asked(case, folder, report, ("prob",))
    for row, got in paired(case, answer or {}) or ():
        there = case.presence(row)
        chance = 0.0
        for mask, is_there in enumerate(there):
            if is_there:
                part = 1.0
                for at, tok in enumerate(case.tokens):
                    part *= case.chances[tok] if mask >> at & 1 else 1 - case.chances[tok]
                chance += part
        if abs(got.annotations["prob"] - chance) > 1e-9:
            yield f"{row.key}: {got.annotations['prob']} instead of {chance}"


def _shares(case: Case, folder: Path, report: Counter[str]) -> Any:
    answer = asked(case, folder, report, SHARES)
    for row, got in paired(case, answer or {}) or ():
        if not row.count:
            continue
        expected = shares(case.presence(row), len(case.tokens))
        for name in SHARES:
            wanted = {tok: value for tok, value in zip(case.tokens, expected[name], strict=True) if abs(value) > 1e-12}
            own = {tok: value for tok, value in got.annotations[name].items() if abs(value) > 1e-12}
            if own.keys() != wanted.keys() or any(abs(own[tok] - wanted[tok]) > 1e-9 for tok in own):
                yield f"{name} of {row.key}: {own} instead of {wanted}"


def in_duckdb(case: Case, kept: Iterable[str], report: Counter[str]) -> Counter[Any]:
    """The rows that DuckDB gives over some records; those of the reference, and counted, where it cannot run the query."""
    import duckdb

    data = only(case.data, kept)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("SET default_null_order='nulls_first'")
        for name, columns in RELATIONS.items():
            cells = {
                column: pa.array([values[at] for _, values in data[name]], KINDS[kind][0])
                for at, (column, kind) in enumerate(columns)
            }
            connection.register(f"_{name}", pa.table(cells))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM _{name}")
        try:
            return bag_of(connection.execute(DuckSql().text(case.plan)).fetchall())
        except duckdb.NotImplementedException as error:  # some correlated subqueries
            report[f"not run by DuckDB: {error}"] += 1
            return bag_of(bag(case.plan, data))


def _has_sets(plan: Any) -> bool:
    """Whether it groups by GROUPING SETS: over no rows, Spark gives none for the empty set, DuckDB one."""
    return "GROUPING SETS" in Sql().text(plan)


def _worlds_in_duckdb(case: Case, folder: Path, report: Counter[str]) -> Any:
    if _has_sets(case.plan):
        return
    rng = random.Random(case.seed + 5)
    for mask in {len(case.worlds) - 1, *(rng.randrange(len(case.worlds)) for _ in range(4))}:
        kept = case._kept(mask)
        found = in_duckdb(case, kept, report)
        if found != case.worlds[mask]:
            yield f"the reference is wrong with {kept}: {case.worlds[mask]} not {found}"


def _deletions(case: Case, folder: Path, report: Counter[str]) -> Any:
    rng = random.Random(case.seed + 7)
    every = [tok for rows in case.data.values() for tok, _ in rows]
    for share in (0.2, 0.6):
        gone = [tok for tok in case.tokens if rng.random() < share]
        if not gone:
            continue
        reference = bag_of(bag(case.plan, without(case.data, gone)))
        expected = reference if _has_sets(case.plan) else in_duckdb(case, set(every) - set(gone), report)
        for mode in ("propagate", "auto", "replay"):
            answer = govtool.whatif_delete(case.sql, folder, gone, mode=mode)
            rows, gains, is_open = answer.result.rows, answer.result.gains, answer.result.gains_possible
            report.update(f"{mode} {row.status}" for row in rows)
            sure = bag_of(row.after for row in rows if row.after is not None) + bag_of(gains)
            unknown = sum(row.status == "unknown" for row in rows)
            if sure - expected or (not is_open and (expected - sure).total() > unknown):
                yield f"{mode} without {gone}: {sure} instead of {expected}"
            if mode != "propagate" and (unknown or is_open):
                yield f"{mode} without {gone} is not certain"
            before = bag_of(row.before for row in rows)
            taken = bag_of(row.before for row in rows if row.status == "deleted")
            if taken - (before - expected):
                yield f"{mode} without {gone}: {taken - (before - expected)} are called deleted"


def without_spark() -> None:
    """Leave out what only Spark evaluates, which takes long to start: it is counted."""
    from govtool.app.records import engines

    every = engines.engines
    engines.engines = lambda *args, **options: [each for each in every(*args, **options) if each.name == "DuckDB"]


def run(seeds: range) -> tuple[list[str], Counter[str]]:
    """The problems of some seeds, and what was compared."""
    report: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found = problems(Case(seed), Path(folder), report)
        print(*found, sep="\n", end="\n" if found else "", flush=True)
        wrong += found
    return wrong, report


def main(arguments: list[str]) -> int:
    start = int(arguments[1]) if len(arguments) > 1 else 0
    without_spark()
    wrong, report = run(range(start, start + int(arguments[0])))
    print(f"{arguments[0]} queries, {len(wrong)} wrong")
    for name, times in sorted(report.items()):
        print(f"{name}: {times:,}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
