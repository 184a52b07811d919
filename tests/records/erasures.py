"""The comparison of erasures with the programs themselves: random chains of queries, run again without the subject.

python tests/records/erasures.py 300 [first seed]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent)]

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from recorded import Warehouse

from govtool.app.erasure.apply import apply_erasure
from govtool.app.erasure.certify import verify_erasure
from govtool.app.erasure.report import ErasureRequest, planned_erasure
from govtool.app.versions.index import open_index
from govtool.errors import EvidenceError, UsageError
from govtool.records.sql.dialect import NotExact
from govtool.store import Store

KINDS = {"n": pa.int64(), "s": pa.string()}
SOURCES = {
    "users": (("id", "n"), ("land", "s"), ("age", "n")),
    "orders": (("user_id", "n"), ("amount", "n"), ("item", "s")),
    "lands": (("code", "s"), ("tax", "n")),
}
SUBJECT = 3


@dataclass
class Erasures:
    """What a run of cases came to."""

    cases: int = 0
    datasets: int = 0
    rewritten: int = 0
    unknown: int = 0
    cut: int = 0
    skipped: int = 0
    refused: int = 0
    """Erasures that were given up with nothing written, as a certificate would not have held."""
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Erasures) -> None:
        for name in ("cases", "datasets", "rewritten", "unknown", "cut", "skipped", "refused", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Relation:
    name: str
    columns: tuple[tuple[str, str], ...]

    def some(self, rng: Random, kind: str | None = None) -> str:
        names = [name for name, own in self.columns if kind in (None, own)]
        return rng.choice(names) if names else ""


class Queries:
    """Random queries over relations, each with the columns of its result."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def query(self, known: list[Relation]) -> tuple[str, tuple[tuple[str, str], ...], list[str]]:
        rng = self.rng
        made = None
        while made is None:
            one, other = rng.choice(known[-4:]), rng.choice(known)
            if len(known) == len(SOURCES):  # the subject's rows are in the first query, or nothing would be erased
                one = known[0]
            kind = rng.choice(
                [
                    "project",
                    "filter",
                    "group",
                    "having",
                    "window",
                    "rank",
                    "anti",
                    "notin",
                    "except",
                    "intersect",
                    "topk",
                    "distinct",
                    "union",
                    "left",
                    "join",
                    "scalar",
                    "exists",
                    "whole",
                    "countd",
                    "minmax",
                    "full",
                    "total",
                    "share",
                ]
            )
            made = getattr(self, f"_{kind}")(one, other)
        text, columns, used = made
        return text, columns, sorted({each.name for each in used})

    def _pair(self, one, other):
        """Columns of one kind on both sides."""
        kinds = [k for k in "ns" if one.some(self.rng, k) and other.some(self.rng, k)]
        if not kinds:
            return None
        kind = self.rng.choice(kinds)
        return one.some(self.rng, kind), other.some(self.rng, kind), kind

    def _condition(self, relation, alias=""):
        name = relation.some(self.rng, "n")
        if not name:
            return "true"
        return f"{alias}{name} {self.rng.choice(['<', '>=', '<>'])} {self.rng.randint(0, 12)}"

    def _project(self, one, other):
        names = self.rng.sample(one.columns, self.rng.randint(1, len(one.columns)))
        return f"SELECT {', '.join(n for n, _ in names)} FROM {one.name}", tuple(names), [one]

    def _filter(self, one, other):
        return f"SELECT * FROM {one.name} WHERE {self._condition(one)}", one.columns, [one]

    def _group(self, one, other, having=""):
        key, value = one.some(self.rng), one.some(self.rng, "n")
        kind = dict(one.columns)[key]
        call = (
            self.rng.choice([f"sum({value})", "count(*)", f"max({value})", f"count({value})"]) if value else "count(*)"
        )
        text = f"SELECT {key} AS k, {call} AS v FROM {one.name} GROUP BY {key}{having}"
        return text, (("k", kind), ("v", "n")), [one]

    def _having(self, one, other):
        return self._group(one, other, f" HAVING count(*) {self.rng.choice(['>', '<', '='])} {self.rng.randint(1, 3)}")

    def _countd(self, one, other):
        key, value = one.some(self.rng), one.some(self.rng)
        text = f"SELECT {key} AS k, count(DISTINCT {value}) AS v FROM {one.name} GROUP BY {key}"
        return text, (("k", dict(one.columns)[key]), ("v", "n")), [one]

    def _minmax(self, one, other):
        value = one.some(self.rng, "n")
        if not value:
            return None
        return f"SELECT min({value}) AS lo, max({value}) AS hi FROM {one.name}", (("lo", "n"), ("hi", "n")), [one]

    def _whole(self, one, other):
        return f"SELECT count(*) AS n FROM {one.name}", (("n", "n"),), [one]

    def _window(self, one, other):
        key, value = one.some(self.rng), one.some(self.rng, "n")
        if not value:
            return None
        names = ", ".join(n for n, _ in one.columns)
        text = f"SELECT {names}, sum({value}) OVER (PARTITION BY {key}) AS w{len(one.columns)} FROM {one.name}"
        return text, (*one.columns, (f"w{len(one.columns)}", "n")), [one]

    def _rank(self, one, other):
        key, value = one.some(self.rng), one.some(self.rng, "n")
        if not value:
            return None
        names = ", ".join(n for n, _ in one.columns)
        call = self.rng.choice(["rank()", "row_number()", "dense_rank()"])
        # All columns are in the order, so that only equal rows tie.
        text = f"SELECT {names}, CAST({call} OVER (PARTITION BY {key} ORDER BY {value}, {names}) AS BIGINT) AS r{len(one.columns)} FROM {one.name}"
        return text, (*one.columns, (f"r{len(one.columns)}", "n")), [one]

    def _semi(self, one, other, word):
        pair = self._pair(one, other)
        if pair is None or one.name == other.name:
            return None
        mine, theirs, _ = pair
        text = (
            f"SELECT * FROM {one.name} AS a WHERE {word} (SELECT 1 FROM {other.name} AS b WHERE b.{theirs} = a.{mine})"
        )
        return text, one.columns, [one, other]

    def _anti(self, one, other):
        return self._semi(one, other, "NOT EXISTS")

    def _exists(self, one, other):
        return self._semi(one, other, "EXISTS")

    def _notin(self, one, other):
        pair = self._pair(one, other)
        if pair is None or one.name == other.name:
            return None
        mine, theirs, _ = pair
        where = f"WHERE {self._condition(other)}" if self.rng.random() < 0.5 else ""
        text = f"SELECT * FROM {one.name} WHERE {mine} NOT IN (SELECT {theirs} FROM {other.name} {where})"
        return text, one.columns, [one, other]

    def _set(self, one, other, word):
        pair = self._pair(one, other)
        if pair is None:
            return None
        mine, theirs, kind = pair
        text = f"SELECT {mine} AS x FROM {one.name} {word} SELECT {theirs} AS x FROM {other.name}"
        return text, (("x", kind),), [one, other]

    def _except(self, one, other):
        return self._set(one, other, self.rng.choice(["EXCEPT", "EXCEPT ALL"]))

    def _intersect(self, one, other):
        return self._set(one, other, self.rng.choice(["INTERSECT", "INTERSECT ALL"]))

    def _union(self, one, other):
        return self._set(one, other, self.rng.choice(["UNION", "UNION ALL"]))

    def _distinct(self, one, other):
        names = self.rng.sample(one.columns, self.rng.randint(1, len(one.columns)))
        return f"SELECT DISTINCT {', '.join(n for n, _ in names)} FROM {one.name}", tuple(names), [one]

    def _topk(self, one, other):
        names = ", ".join(n for n, _ in one.columns)
        first = one.some(self.rng)
        order = f"{first} {self.rng.choice(['ASC', 'DESC'])}, {names}" if self.rng.random() < 0.8 else first
        return f"SELECT {names} FROM {one.name} ORDER BY {order} LIMIT {self.rng.randint(1, 5)}", one.columns, [one]

    def _joined(self, one, other, word):
        pair = self._pair(one, other)
        if pair is None:
            return None
        mine, theirs, _ = pair
        columns, items = [], []
        for alias, relation in (("a", one), ("b", other)):
            for name, kind in self.rng.sample(relation.columns, self.rng.randint(1, min(2, len(relation.columns)))):
                columns.append((f"{alias}{len(columns)}", kind))
                items.append(f"{alias}.{name} AS {columns[-1][0]}")
        text = f"SELECT {', '.join(items)} FROM {one.name} AS a {word} JOIN {other.name} AS b ON a.{mine} = b.{theirs}"
        return text, tuple(columns), [one, other]

    def _join(self, one, other):
        return self._joined(one, other, "")

    def _left(self, one, other):
        return self._joined(one, other, "LEFT")

    def _full(self, one, other):
        return self._joined(one, other, "FULL")

    def _scalar(self, one, other):
        mine, theirs = one.some(self.rng, "n"), other.some(self.rng, "n")
        if not (mine and theirs):
            return None
        call = self.rng.choice([f"max({theirs})", f"min({theirs})", "count(*)"])
        text = f"SELECT * FROM {one.name} WHERE {mine} < (SELECT {call} FROM {other.name})"
        return text, one.columns, [one, other]

    def _total(self, one, other, keep=True):
        """Rows beside the total of all rows, which is there where there are none, and often compared with it."""
        mine, theirs = one.some(self.rng, "n"), other.some(self.rng, "n")
        if not (mine and theirs):
            return None
        call = self.rng.choice([f"sum({theirs})", f"max({theirs})", f"min({theirs})", f"count({theirs})", "count(*)"])
        inner = f"SELECT {call} AS t FROM {other.name}" + (
            f" WHERE {self._condition(other)}" if self.rng.random() < 0.4 else ""
        )
        number = len(one.columns)
        names = ", ".join(f"a.{n}" for n, _ in one.columns) + (f", b.t AS t{number}" if keep else "")
        where = ""
        if not keep or self.rng.random() < 0.6:
            where = f" WHERE a.{mine} {self.rng.choice(['<', '>', '=', '<>'])} b.t"
        text = f"SELECT {names} FROM {one.name} AS a CROSS JOIN ({inner}) AS b{where}"
        return text, (*one.columns, *([(f"t{number}", "n")] if keep else ())), [one, other]

    def _share(self, one, other):
        """Rows that a total decides on, which is not kept."""
        return self._total(one, other, keep=False)


def random_rows(rng: Random, columns) -> list[tuple]:
    values = {
        "n": lambda: None if rng.random() < 0.08 else rng.randint(0, 6),
        "s": lambda: None if rng.random() < 0.08 else rng.choice("abc"),
    }
    return [tuple(values[kind]() for _, kind in columns) for _ in range(rng.randint(4, 14))]


def check(seed: int, folder: Path) -> Erasures:
    """Erase a subject from one chain, and compare every dataset with that of a run without its rows."""
    rng = Random(seed)
    folder.mkdir()
    os.chdir(folder)
    house = Warehouse(folder, Store.init(str(folder / ".govtool")))
    data, known = {}, []
    for name, columns in SOURCES.items():
        rows = random_rows(rng, columns)
        if name == "users":
            rows += [(SUBJECT, rng.choice("abc"), rng.randint(0, 6)) for _ in range(rng.randint(1, 2))]
        cut = rng.randint(1, len(rows) - 1)
        house.table(name, {n: KINDS[kind] for n, kind in columns}, rows[:cut], rows[cut:])
        data[name] = rows
        known.append(Relation(name, columns))
    steps = []
    queries = Queries(rng)
    for number in range(rng.randint(1, 4)):
        text, columns, used = queries.query(known)
        name, part = f"out{number}", "out"
        earlier = [step for step in steps if step[3] == columns]
        if earlier and rng.random() < 0.3:  # another run appends to a dataset
            name, part = earlier[0][0], f"more{number}"
        try:
            house.commit(house.run(text, name, *used, run=f"app-{number}/0", part=part))
        except (UsageError, NotExact, duckdb.Error):
            continue
        steps.append((name, text, used, columns, part))
        if name not in [each.name for each in known]:
            known.append(Relation(name, columns))
    also = ("orders.user_id",) if rng.random() < 0.5 and any("orders" in step[2] for step in steps) else ()
    if not any("users" in step[2] for step in steps):
        return Erasures(cases=1, skipped=1)
    return _compared(seed, folder, house, data, steps, also)


def _compared(seed, folder, house, data, steps, also) -> Erasures:
    report = Erasures(cases=1)
    commit = house.store.head("main")
    # Four of five cases say which inputs hold nothing about the subject; without that, rows of these alone are unknown.
    others = {"lands"} if also else {"lands", "orders"}
    without = sorted(others & {name for step in steps for name in step[2]}) if seed % 5 else []
    request = ErasureRequest((f"users.id={SUBJECT}",), also, None, True, no_subject=tuple(without))
    planned = planned_erasure(house.store, commit, request, lambda: open_index(house.store, commit))
    plan = folder / "plan.json"
    plan.write_text(json.dumps(planned.answer.to_dict()))
    try:
        certificate = apply_erasure(plan, folder / "fixed", str(folder / ".govtool"))
    except EvidenceError:
        return Erasures(cases=1, refused=1)
    problems = verify_erasure(folder / "fixed" / "certificate.json").problems
    where = {each["dataset"]: folder / "fixed" / each["folder"] for each in certificate.document["datasets"]}
    planned_sets = {each.dataset.rpartition("/")[2]: each for each in planned.answer.datasets}
    truth, before = again(data, steps, also), again(data, steps, also, erased=False)
    for name in {step[0]: None for step in steps}:
        each = planned_sets.get(name)
        report.datasets += 1
        if each is None:  # its rows are those of the run; of ties at a limit another engine may keep others
            if truth[name] != before[name]:
                report.wrong.append(f"{seed} {name}: not in the plan, and changes: {steps}")
            continue
        if each.unknown:
            report.unknown += 1
            continue
        report.cut += not each.recompute
        place = where.get(each.dataset)
        report.rewritten += place is not None
        found = rows_of(place or folder / name)
        if found != truth[name]:
            report.wrong.append(f"{seed} {name}: {found - truth[name]} instead of {truth[name] - found}: {steps}")
    report.wrong += [f"{seed}: {problem}" for problem in problems]
    return report


def again(data, steps, also, *, erased=True) -> dict[str, Counter]:
    """The rows of every output of a run without the subject's rows, or with them, by DuckDB alone."""
    connection = duckdb.connect()
    keys = {"users": "id", **dict(text.split(".") for text in also)}
    for name, columns in SOURCES.items():
        place = [n for n, _ in columns].index(keys[name]) if name in keys else None
        rows = [row for row in data[name] if place is None or not erased or row[place] != SUBJECT]
        kinds = {"n": "BIGINT", "s": "VARCHAR"}
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{n} {kinds[k]}' for n, k in columns)})")
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    made: set[str] = set()
    for name, text, _, columns, _ in steps:
        query = sqlglot.transpile(text, read="spark", write="duckdb")[0]
        casts = ", ".join(f"CAST({n} AS {'BIGINT' if k == 'n' else 'VARCHAR'}) AS {n}" for n, k in columns)
        body = f"SELECT {casts} FROM ({query})"
        connection.execute(f"INSERT INTO {name} {body}" if name in made else f"CREATE TABLE {name} AS {body}")
        made.add(name)
    return {name: Counter(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in made}


def rows_of(place: Path) -> Counter:
    tables = [pq.ParquetFile(file).read() for file in sorted(place.rglob("*.parquet"))]
    return Counter(row for table in tables for row in zip(*(c.to_pylist() for c in table.columns), strict=True))


def main(arguments: list[str]) -> int:
    """Run many cases; print what is wrong, and the totals."""
    count, start = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    total = Erasures()
    with tempfile.TemporaryDirectory() as place:
        for seed in range(start, start + count):
            try:
                total.add(check(seed, Path(place) / str(seed)))
            except Exception as error:
                total.add(Erasures(cases=1, wrong=[f"{seed}: {type(error).__name__}: {error}"]))
            os.chdir("/")
    print(*total.wrong, sep="\n")
    print({name: value for name, value in vars(total).items() if name != "wrong"}, "wrong", len(total.wrong))
    return bool(total.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
