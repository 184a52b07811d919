"""Functions over lists in DuckDB, compared with Spark over random lists: of numbers, texts, structs, lists.

python tests/records/list_functions.py 20 [first seed]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import catalyst
from govtool.records.spooled_plans import session_of
from govtool.records.sql.dialect import NotExact

ROW = pa.struct([("id", pa.int64()), ("x", pa.int64()), ("g", pa.string())])
NUMBERS, TEXTS, BAG = pa.list_(pa.int64()), pa.list_(pa.string()), pa.list_(ROW)
COLUMNS = {
    "k": pa.int64(), "n": pa.int64(), "m": pa.int32(), "g": pa.string(), "xs": NUMBERS, "ys": NUMBERS, "ts": TEXTS,
    "us": TEXTS, "l": BAG, "r": BAG, "b": pa.list_(pa.bool_()), "xx": pa.list_(NUMBERS), "ll": pa.list_(BAG),
}  # fmt: skip
EXPRESSIONS = """
transform(xs, x -> x * n); transform(xs, (x, i) -> x * i); transform(l, (e, i) -> struct(e.id as id, i as x))
transform(l, e -> named_struct('id', e.id, 'x', e.x + n, 'g', e.g)); transform(ts, x -> concat(x, ': v1', g))
transform(xx, a -> transform(a, x -> x + n)); transform(xx, a -> aggregate(a, 0L, (s, x) -> s + x))
transform(xs, x -> exists(ys, y -> y = x)); transform(xs, x -> get(ys, cast(x as int)))
transform(xs, x -> x + aggregate(ys, 0L, (s, y) -> s + coalesce(y, x)))
filter(xs, x -> x > n); filter(xs, (x, i) -> x > i); filter(l, e -> e.g = g); filter(l, e -> e is null)
filter(xx, a -> exists(a, x -> x > n)); filter(array_distinct(xs), x -> array_contains(ys, x))
exists(xs, x -> x = n); exists(l, e -> e.x = 1); exists(xs, x -> x is null); exists(filter(xs, x -> x > 0), x -> x > 2)
forall(xs, x -> x = n); forall(l, e -> e.x >= 0); forall(xs, x -> exists(ys, y -> x = y))
aggregate(xs, 0L, (s, x) -> s * 2 + coalesce(x, 0L)); aggregate(xs, n, (s, x) -> s + x, s -> s * 10)
aggregate(l, '', (s, e) -> concat(s, coalesce(e.g, '-'))); aggregate(xs, cast(null as bigint), (s, x) -> coalesce(s, x))
aggregate(xx, 0L, (s, a) -> s + aggregate(a, 0L, (u, x) -> u + coalesce(x, 1L))); aggregate(l, 0, (s, e) -> s + 1)
aggregate(xs, 0L, (s, x) -> s + coalesce(x, 0L), s -> s > 3); aggregate(ll, 0, (s, e) -> s + size(e))
array_max(xs); array_min(ts); array_max(b); array_min(transform(l, e -> e.x))
array_distinct(xs); array_distinct(ts); array_distinct(l); array_distinct(b)
array_union(xs, ys); array_union(l, r); array_except(ts, us); array_except(l, r); array_intersect(xs, ys)
array_intersect(l, r); arrays_overlap(xs, ys); arrays_overlap(ts, us); arrays_overlap(l.x, r.x)
concat(xs, ys, xs); concat(l, r); concat(ts, us); flatten(xx); flatten(ll); array_distinct(concat(xs, ys))
slice(xs, 1, 2); slice(xs, 1, 0); slice(xs, 5, 3); slice(sort_array(l), 1, 2); l.x; r.g
sort_array(l); sort_array(l, false); sort_array(ts, false); sort_array(array_union(l, r)); sort_array(l.x)
sort_array(transform(l, e -> struct(e.g as a, struct(e.x as b, e.id as c) as d)), false)
array_sort(xs); array_sort(ts); array_sort(transform(l, e -> e.x)); array_sort(b)
size(array_distinct(xs)); size(filter(l, e -> e.x > n)); array_contains(l.x, n); array_join(transform(xs, x -> cast(x as string)), ',')
try_element_at(sort_array(l), 1); try_element_at(sort_array(l), -1).x; try_element_at(xs, -3); get(xs, m)
case when size(xs) > 1 then element_at(xs, 2) end; case when size(xs) > m then xs[m] end
if(size(l) > n, l, r); coalesce(xs, ys); xs = ys; xs <=> ys; l = r; l <=> r; get(l, 0) = get(r, 0); ts = us
sort_array(xs) = sort_array(ys)
"""
REFUSED = """
xx = xx; array_sort(xs, (p, q) -> case when p < q then 1 when p > q then -1 else 0 end); transform(ts, t -> upper(t))
element_at(xs, 1); xs[1]; array_distinct(transform(xs, x -> cast(x as double)))
"""
"""What DuckDB does not evaluate, or not for every value: it gives an error where Spark has a result or an error."""


def listed(text: str) -> list[str]:
    """The expressions of a text."""
    return [each.strip() for line in text.strip().splitlines() for each in line.split(";") if each.strip()]


def random_rows(rng: Random, count: int) -> pa.Table:
    """Rows with lists, with NULLs at every place."""

    def number() -> int | None:
        return None if rng.random() < 0.2 else rng.randint(-2, 3)

    def text() -> str | None:
        return rng.choice([None, "a", "b", "B", "é", "", "a'b"])

    def row() -> dict[str, Any] | None:
        return None if rng.random() < 0.12 else {"id": number(), "x": number(), "g": text()}

    def several(make: Any, lost: float = 0.1) -> list[Any] | None:
        return None if rng.random() < lost else [make() for _ in range(rng.choice((0, 0, 1, 2, 3, 5)))]

    makers = {
        "n": number, "m": lambda: rng.randint(0, 3), "g": text, "xs": lambda: several(number),
        "ys": lambda: several(number), "ts": lambda: several(text), "us": lambda: several(text),
        "l": lambda: several(row), "r": lambda: several(row), "b": lambda: several(lambda: rng.choice((None, True, False))),
        "xx": lambda: several(lambda: several(number, 0.2)), "ll": lambda: several(lambda: several(row, 0.2)),
    }  # fmt: skip
    rows = [{"k": k, **{name: make() for name, make in makers.items()}} for k in range(count)]
    return pa.Table.from_pylist(rows, pa.schema(COLUMNS.items()))


def in_both(spark: Any, sql: str) -> tuple[list[str], list[str]]:
    """The rows of a query in Spark and in DuckDB, in order.

    Raises:
        NotExact: DuckDB does not evaluate it.
    """
    from govtool.spark.live.records.exact import Walker

    walker = Walker(spark.sparkContext._gateway, spark.version)
    frame = spark.sql(sql)
    captured = json.loads(walker.read(frame._jdf.queryExecution()))
    session = session_of(walker.version, captured["settings"])
    found = DuckExecutor(session).fetch(catalyst.read(captured["exact"], session).root)
    return _shown(frame.collect()), _shown(found)


def _shown(rows: Iterable[Any]) -> list[str]:
    return sorted(repr([_plain(cell) for cell in row]) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    fields = value if isinstance(value, dict) else getattr(value, "asDict", dict)()
    return {name: _plain(each) for name, each in fields.items()} if fields else value


def problems(spark: Any, rng: Random, folder: Path, count: int = 60) -> list[str]:
    """What DuckDB gives otherwise than Spark."""
    folder.mkdir()
    pq.write_table(random_rows(rng, count), folder / "t.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("lists")
    every = listed(EXPRESSIONS)
    columns = ", ".join(f"{each} as c{at}" for at, each in enumerate(every))
    one, other = in_both(spark, f"select k, {columns} from lists")
    if one == other:
        return []
    return [each for each in every if len({*map(repr, in_both(spark, f"select k, {each} as v from lists"))}) > 1]


def refused(spark: Any, each: str) -> bool:
    """Return whether DuckDB refuses an expression, or fails on a value."""
    try:
        spark.sql(f"select k, {each} as v from lists").collect()
        in_both(spark, f"select k, {each} as v from lists")
    except NotExact:
        return True
    except Exception:
        return _fails_in_duckdb(spark, each)
    return False


def _fails_in_duckdb(spark: Any, each: str) -> bool:
    from govtool.spark.live.records.exact import Walker

    walker = Walker(spark.sparkContext._gateway, spark.version)
    captured = json.loads(walker.read(spark.sql(f"select k, {each} as v from lists")._jdf.queryExecution()))
    session = session_of(walker.version, captured["settings"])
    try:
        DuckExecutor(session).fetch(catalyst.read(captured["exact"], session).root)
    except NotExact:
        return True
    return False


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(Path(__file__).parents[1] / "workflow" / "modules"))
    from spark_workflows import session

    count, first = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    found = []
    with tempfile.TemporaryDirectory() as folder:
        spark = session()
        for seed in range(first, first + count):
            own = problems(spark, Random(seed), Path(folder) / str(seed), 300)
            print(f"seed {seed}: {len(own)} of {len(listed(EXPRESSIONS))} differ", *own, flush=True)
            found += own
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
