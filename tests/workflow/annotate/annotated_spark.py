"""Annotated queries through Spark's executor, and constructs of Spark SQL against Spark's own answers.

python tests/workflow/annotate/annotated_spark.py [random queries] [first seed] [--like TEXT]

``--like`` takes the constructs that hold a text; without random queries if none are wanted.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from annotated_cases import SESSION
from annotated_differential import Report, run

from govtool.app.why.deletion import delete_rows
from govtool.app.why.rows import why
from govtool.workflow.queries.statuses import key_of

ROWS = {
    "r": """_tok,id,k,x,g,d,b
r0,0,1,10,a,2020-01-31,true
r1,1,1,20,a,2020-02-29,false
r2,2,2,5,b,2019-03-01,
r3,3,,7,,2021-12-31,true
r4,4,2,,b,,false
r5,5,1,20,a,2020-01-31,
r6,6,3,1,c,2018-06-30,false
""",
    "s": """_tok,id,k
s0,0,1
s1,1,3
s2,2,
s3,3,1
""",
}
CONSTRUCTS = [
    "select id, explode(array(x, k)) as e from r",
    "select id, explode_outer(array(x)) as e from r where id > 1",
    "select distinct explode(array(k, x)) as e from r",
    "select g, sort_array(collect_list(x)) as l from r group by g",
    "select g, sort_array(collect_list(x), false) as l from r group by g",
    "select id, sort_array(array(x, k, 9)) as l, sort_array(array(x, k), false) as m from r",
    "select bool_or(b) as o, bool_and(b) as a from r",
    "select g, bool_or(b) as o, every(b) as e, any(b) as y, some(x > 6) as s from r group by g",
    "select g, count_if(x > 6) as c from r group by g having any(b)",
    "select g, stddev(x) as s, variance(x) as v, var_pop(x) as p, stddev_pop(x) as q from r group by g",
    "select stddev(x) as s, var_samp(x) as v from r where id > 100",
    "select id, d + interval 1 month as n, d - interval 1 year as m, d + interval '3' day as o from r",
    "select id, round(x / 3, 1) as r, round(cast(x as decimal(7, 3)) / 8, 2) as d, round(k) as k from r",
    "select id, date_add(d, 3) as n, date_sub(d, k) as s, datediff(d, date'2020-01-01') as f from r",
    "select id, add_months(d, k) as n from r",
    "select id, date_trunc('month', d) as m, date_trunc('week', cast(d as timestamp)) as w, md5(g) as h from r",
    "select date_trunc('year', d) as y, count(*) as n from r group by date_trunc('year', d)",
    "select max(d) as m, datediff(max(d), min(d)) as f from r",
    "select g, k, sum(x) as s from r group by rollup(g, k)",
    "select g, k, count(*) as n from r group by cube(g, k)",
    "select g, k, count(*) as n from r group by grouping sets ((g), (k), ())",
    "select id from r where x > (select max(k) from s where s.k = r.k)",
    "select id, bool_or(b) over (partition by g) as o from r",
    "select g, k, count(*) as n, sum(x) as s from r where id > 100 group by rollup(g, k)",
    "select g, k, count(*) as n from r where id > 100 group by cube(g, k)",
    "select g, count(*) as n from r where id > 100 group by grouping sets ((g), ())",
    "select g, count(*) as n from r where id > 100 group by grouping sets ((g))",
    "select g, k, sum(x) as s from r group by rollup(g, k) having count(*) <> 2",
    "select g, k, grouping(g) as a, grouping(k) as b, grouping_id() as i, count(*) as n from r group by cube(g, k)",
    "select g, k, rank() over (partition by grouping(g) + grouping(k), if(grouping(k) = 0, g, null) "
    "order by sum(x) desc) as p from r group by rollup(g, k)",
    "select g, 12 / sum(x) as q from r group by g having sum(x) <> 0 and 12 / sum(x) > 0.2",
    "select g, q from (select g, 12 / (sum(x) - 6) as q, sum(x) as s from r group by g) where s <> 6",
    "select id, 6 / k as q from r where not exists (select 1 from s where s.k = r.k and s.id > 0) and k <> 0",
]


DELETIONS = [["r1", "r5"], ["r2", "r4", "s0"], [f"r{at}" for at in range(6)], [f"r{at}" for at in range(7)]]


def frames(spark: Any, folder: Path) -> dict[str, Any]:
    """The relations as Spark reads them."""
    return {
        name: spark.read.csv(str(folder / f"{name}.csv"), header=True, inferSchema=True).coalesce(1).cache()
        for name in ROWS
    }


def answers(spark: Any, sql: str, relations: dict[str, Any], gone: list[str]) -> Counter[Any]:
    """The rows that Spark gives without some records."""
    for name, frame in relations.items():
        frame.where(~frame["_tok"].isin(gone)).drop("_tok").createOrReplaceTempView(name)
    return Counter(key_of(tuple(row)) for row in spark.sql(sql).collect())


def problems(spark: Any, sql: str, folder: Path, relations: dict[str, Any]) -> list[str]:
    """Differences between the rows of ``why`` and of deletions, and Spark's."""
    found = []
    answer = why(sql, str(folder), ["polynomial", "count"])
    rows: Counter[Any] = Counter()
    for each in answer.tuples:
        rows[key_of(each.values)] += each.multiplicity
    rows = +rows
    expected = answers(spark, sql, relations, [])
    if rows != expected:
        found.append(f"rows {rows - expected} instead of {expected - rows}")
    made = {mode: delete_rows(sql, str(folder), DELETIONS, mode=mode) for mode in ("propagate", "auto", "replay")}
    for at, gone in enumerate(DELETIONS):
        expected = answers(spark, sql, relations, gone)
        for mode, deletions in made.items():
            result = deletions[at].result
            sure = Counter(key_of(row.after) for row in result.rows if row.after is not None)
            sure += Counter(map(key_of, result.gains))
            if sure - expected or (result.is_certain and sure != expected):
                found.append(f"{mode} without {gone}: {sure} instead of {expected}")
            if mode != "propagate" and not result.is_certain:
                found.append(f"{mode} without {gone} is not certain")
    return [f"{sql} ({answer.engine}): {problem}" for problem in found]


def session() -> Any:
    """A Spark session as ``why`` makes it."""
    from pyspark.sql import SparkSession

    from govtool.app.records.engines import engines
    from govtool.app.why.query import session as settings

    quiet = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.log.level": "OFF"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in quiet.items():
        builder = builder.config(name, value)
    builder.getOrCreate()
    return engines(settings())[1].start().spark


def constructs(spark: Any, like: str) -> list[str]:
    """The differences of the constructs that hold a text."""
    chosen = [sql for sql in CONSTRUCTS if like in sql]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ROWS.items():
            (Path(folder) / f"{name}.csv").write_text(text)
        relations = frames(spark, Path(folder))
        for sql in chosen:
            try:
                wrong += problems(spark, sql, Path(folder), relations)
            except Exception as error:
                wrong.append(f"{sql}: {type(error).__name__} {str(error).splitlines()[0]}")
    print(*wrong, f"{len(chosen)} constructs, {len(wrong)} wrong", sep="\n", flush=True)
    return wrong


def main(arguments: list[str]) -> int:
    from govtool.records.execute.spark_executor import SparkExecutor

    numbers = [int(text) for text in arguments if text.isdigit()]
    spark = session()
    like = arguments[arguments.index("--like") + 1] if "--like" in arguments else ""
    wrong = constructs(spark, like)
    first = numbers[1] if len(numbers) > 1 else 0
    report = Report()
    for seed in range(first, first + (numbers[0] if numbers else 20)):
        own = run(range(seed, seed + 1), lambda: SparkExecutor(SESSION, spark))
        report.add(own)
        print(*(text[:600] for text in own.wrong), f"{report.cases} done", sep="\n", flush=True)
    print(
        f"{report.cases} random, {report.skipped} skipped,",
        f"{len(report.wrong)} wrong",
        dict(report.statuses),
    )
    return bool(wrong or report.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
