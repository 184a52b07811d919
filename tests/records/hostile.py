"""Programs that try to make a rebuilt plan give other rows: NULL keys, duplicates, names, modes, nesting, correlation."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any


def write_tables(spark: Any, folder: Path) -> None:
    """Parquet tables with everything in them, in several files, one partitioned."""
    from pyspark.sql import types as T

    D, at = decimal.Decimal, datetime.datetime
    rows = [
        (1, "a", D("1.50"), 1.5, at(2026, 3, 29, 0, 30), [1, 2], {"x": 1}, (7, "p", [D("0.1")]), datetime.date(2026, 2, 28), True, b"\x00\xff"),
        (2, "a", D("1.50"), -0.0, at(2026, 10, 25, 0, 30), [], {}, (None, "q", []), datetime.date(1969, 12, 31), False, b""),
        (3, None, None, float("nan"), None, None, None, None, None, None, None),
        (4, "B", D("-99999999.99"), float("inf"), at(1900, 1, 1), [None, 3], {"x": None, "y": 2}, (8, None, None), datetime.date(2000, 2, 29), True, b"z"),
        (4, "B", D("-99999999.99"), float("inf"), at(1900, 1, 1), [None, 3], {"x": None, "y": 2}, (8, None, None), datetime.date(2000, 2, 29), True, b"z"),
        (None, "ärger ß", D("0.01"), 1e-9, at(2026, 1, 1, 12), [5], {"z": 9}, (1, "it's", [D("2"), None]), datetime.date(2026, 12, 31), False, b"'"),
        (7, "100%_\\$", D("2.00"), 2.0, at(2026, 1, 1, 12), [1, 1], {"a": 0}, (1, "", []), datetime.date(2026, 1, 1), None, None),
        (8, "", D("3.33"), 3.25, at(2026, 6, 1), [9, 8, 7], {"q": 1}, (2, "r", [D("9")]), datetime.date(2026, 6, 1), True, b"x"),
    ]  # fmt: skip
    schema = T._parse_datatype_string(
        "k bigint, s string, d decimal(10,2), f double, ts timestamp, xs array<int>, m map<string,int>,"
        " st struct<a:int,b:string,c:array<decimal(4,1)>>, day date, flag boolean, bin binary"
    )
    spark.createDataFrame(rows, schema).repartition(3).write.mode("overwrite").parquet(str(folder / "t"))
    parts = [(i, "x/y z" if i % 3 else None, i % 2, f"v{i}") for i in range(9)]
    frame = spark.createDataFrame(parts, "id int, p string, q int, v string")
    frame.write.mode("overwrite").partitionBy("p", "q").parquet(str(folder / "parted table"))
    keys = [(1, 10), (1, 11), (4, 12), (None, 13), (9, 14)]
    spark.createDataFrame(keys, "k bigint, w int").write.mode("overwrite").parquet(str(folder / "u"))
    (folder / "c").mkdir(exist_ok=True)
    (folder / "c" / "one.csv").write_text('a;b;c\n1;"x;y";2026-01-01\n;z;\n', encoding="utf-8")
    spark.range(0).selectExpr("id", "cast(id as string) s").write.mode("overwrite").parquet(str(folder / "empty"))


SQL = {
    "select with arithmetic of each kind": "select k + 1 a, k * 2 - 1 b, f * 2 c, d + d e, d * d g, d - 1 h, -k i, abs(k) j, k % 3 l, k div 2 n, f / 3 o from t where f < 100",
    "decimals divided": "select d / 3 a, d / d b, cast(d as decimal(20,6)) c, cast(d as int) e, cast(d as double) f, round(d, 1) g, avg(d) over () h from t where d > 1",
    "null-safe and three-valued": "select k <=> 4 a, s <=> null b, k = null c, not (s = 'a') e, flag and k > 1 f, flag or null g, coalesce(s, 'none') h, nullif(s, 'a') i, k in (1, 4, null) j, k not in (1, 2) l from t",
    "where with null": "select k from t where not (s = 'a')",
    "strings": "select upper(s) a, length(s) b, concat(s, '-', s) c, substring(s, 2, 2) e, s like '%\\\\_%' f, s like 'a%' g, trim('  x ') h, concat_ws(',', s, null, 'z') i, '${hiveconf:x}' j, 'it''s \\\\ $x \\n' l, left(s, 1) m from t",
    "like with escape": "select s like '100/%/_%' escape '/' a, s rlike '^[a-z]+$' b, s ilike 'A' c from t",
    "casts": "select cast(k as string) a, cast(k as double) b, cast(flag as int) c, cast(day as string) e, cast(ts as date) f, cast(ts as string) g, cast('12' as int) h, cast(' 7 ' as int) i, try_cast('x' as int) j, cast(f as string) l, cast(day as timestamp) m from t",
    "timestamps around daylight saving": "select ts, ts + interval 1 hour a, date_trunc('day', ts) b, hour(ts) c, timestamp '2026-03-29 03:30:00' e, timestamp '2026-10-25 02:30:00' f, unix_micros(ts) g, date_format(ts, 'yyyy-MM-dd HH:mm XXX') h, ts - timestamp'2020-01-01' i from t",
    "dates": "select year(day) a, month(day) b, day(day) c, date_add(day, 1) e, datediff(day, date'2026-01-01') f, last_day(day) g, add_months(day, 1) h, day + interval 1 month i, date'0001-01-01' j, quarter(day) l, weekday(day) m from t",
    "literals": "select 1Y a, 2S b, 3 c, 4L e, 1.50 f, 1.5D g, 1.5F h, X'00FF' i, true j, null l, -128Y m, -9223372036854775808L n, 1e-300D o, date'1582-10-04' p, timestamp_ntz'2026-01-01 00:00:00.123456' q, cast('NaN' as double) v, cast('-Infinity' as float) w, 0.000001 x, 12345678901234567890123456789012345678 y",
    "intervals": "select cast(interval 3 days as string) r, cast(interval '1-2' year to month as string) u, cast(make_interval(1, 2, 0, 3, 4, 5, 6.7) as string) v, ts + interval '-1 02:03:04.5' day to second w, day - interval 13 months x, cast((ts - timestamp'2020-01-01') as string) y from t",
    "nested literals": "select array(1, null) b, map('a', 1, 'b', null) c, named_struct('x', 1, 'y', array('q')) e, struct(1, 'a') f, array(named_struct('k', 1)) g",
    "nested access": "select st.a, st.b, get(st.c, 0) c0, xs[0] x0, m['x'] mx, size(xs) n, size(m) n2, st, xs, m from t where xs is null or size(xs) > 0",
    "array out of bounds without failing": "select try_element_at(xs, 9) a, get(xs, 9) b, try_element_at(m, 'none') c from t",
    "higher-order functions": "select transform(xs, x -> x + k) a, filter(xs, (x, i) -> i > 0) b, aggregate(xs, 0L, (acc, x) -> acc + coalesce(x, 0)) c, exists(xs, x -> x is null) e, map_filter(m, (key, v) -> v > 1) f, zip_with(xs, xs, (x, y) -> x * y) g, transform_values(m, (key, v) -> v + 1) h, array_sort(xs) i from t",
    "arrays": "select array_contains(xs, 1) a, array_distinct(xs) b, sort_array(xs, false) c, flatten(array(xs, xs)) e, array_union(xs, array(1)) f, arrays_zip(xs, st.c) g, sequence(1, 3) h, slice(xs, 1, 1) i, array_join(transform(xs, x -> cast(x as string)), ',', '?') j from t",
    "structs rebuilt": "select named_struct('k', k, 'K2', struct(s as `odd name`, d)) v from t",
    "json": "select from_json('{\"a\": 1, \"b\": [1.5]}', 'a int, b array<double>') a, to_json(struct(k, s)) b, get_json_object('{\"a\": {\"b\": 7}}', '$.a.b') c, from_json('{\"t\": \"31/12/2026\"}', 't date', map('dateFormat', 'dd/MM/yyyy')) e from t where k = 1",
    "case and if": "select case when k > 3 then 'big' when k is null then 'none' end a, case s when 'a' then 1 else 2 end b, if(flag, 1, 0) c, nvl2(s, 1, 2) e, ifnull(s, 'q') f, decode(k, 1, 'one', 'many') g, greatest(k, 3) h, least(k, w) i from t left join u using (k)",
    "between and common expressions": "select k between 1 and 4 a, k + 1 not between 2 and 3 b, nullif(nullif(nullif(s, 'a'), 'B'), '') c from t",
    "hashes": "select hash(k, s) a, xxhash64(d) b, md5(s) c, sha2(s, 256) e, crc32(s) f from t",
    "session windows": "select session_window(ts, '90 minutes').start w, sum(k) s from t group by session_window(ts, '90 minutes')",
    "inner join with null keys and duplicates": "select t.k, u.w, t.s from t join u on t.k = u.k",
    "join on null-safe equality": "select t.k, u.w from t join u on t.k <=> u.k",
    "left join using": "select * from t left join u using (k)",
    "right and full joins": "select * from (select k, s from t) a full join u using (k)",
    "natural join": "select * from (select k, s from t) natural join u",
    "cross join with condition": "select a.k, b.k k2 from t a cross join u b where a.k < b.w",
    "self-join": "select a.s, b.s s2, a.k from t a join t b on a.k = b.k and a.s <> b.s or a.k = b.k + 1",
    "three self-joins": "select a.w, b.w w2, c.w w3 from u a join u b on a.k = b.k left join u c on b.w = c.w - 1",
    "semi and anti joins": "select k, s from t left semi join u on t.k = u.k union all select k, s from t left anti join u on t.k = u.k",
    "names in several cases, and odd ones": "select k as `a b`, k as `A``b`, s as `select`, K as k2, T.s as `ärger` from t",
    "the same name twice": "select k, k, s as k from t",
    "the same column twice in a union": "select k, k from t union all select w, k from u",
    "group by with null keys": "select s, count(*) n, count(k) nk, count(distinct k) dk, sum(k) sk, sum(d) sd, min(day) a, max(ts) b, avg(k) c, sum(f) e from t group by s",
    "group by expressions": "select k % 2 + 1 a, upper(s) b, count(*) n, sum(k % 2 + 1) q, (k % 2 + 1) * 10 r from t group by k % 2 + 1, upper(s) having count(*) >= 1 and max(k) is not null",
    "group by position and constants": "select 'x' c, k, 3 e, count(*) from t group by 1, 2, 3",
    "aggregates without groups over nothing": "select count(*), sum(k), max(s), collect_list(k) from t where false",
    "filters of aggregates": "select sum(k) filter (where s = 'a') a, count(*) filter (where k > 3) b, count(distinct s, day) c, count_if(flag) e, bool_and(flag) f, bit_or(k) g from t",
    "statistics": "select stddev(k) a, var_pop(k) b, corr(k, f) c, percentile(k, 0.5) e, percentile_approx(k, array(0.25, 0.75)) f, skewness(k) g, median(k) h, approx_count_distinct(s) i, mode(s) j from t where f < 100",
    "ordered lists": "select listagg(s, '|') within group (order by s desc nulls last) a, percentile_cont(0.5) within group (order by k) b, sort_array(collect_set(s)) c, max_by(s, k) e from t where k < 3",
    "rollup": "select s, flag, grouping(s) g, grouping_id() gi, count(*) n, sum(k) sk from t group by rollup (s, flag)",
    "cube with having": "select s, flag, sum(d) x from t group by cube (s, flag) having grouping(flag) = 1 or sum(d) > 0",
    "grouping sets": "select k, s, count(*) from t group by grouping sets ((k), (s), ()) order by 1, 2",
    "pivot": "select * from (select s, flag, k from t) pivot (sum(k) as total, count(*) as n for flag in (true as yes, false as no))",
    "unpivot with nulls": "select * from (select k, w, w + 1 w2 from u) unpivot include nulls (v for name in (w, w2))",
    "windows": "select k, row_number() over (partition by flag order by k, s, d, w) a, rank() over (order by s) b, dense_rank() over (order by s desc nulls last) c, sum(k) over (partition by s) e, sum(k) over (order by w rows between 1 preceding and current row) f, lag(w, 1, 0) over (order by w) g, lead(w, 2) over (order by w) h, ntile(2) over (order by w) i, percent_rank() over (order by w) j, cume_dist() over (order by w) l, first_value(w) over (order by w) m, nth_value(w, 2) over (order by w) n from t join u using (k)",
    "range frames": "select w, sum(w) over (order by w range between 1 preceding and 1 following) a, count(*) over (order by k range between unbounded preceding and current row) b, max(w) over (order by w rows between 2 following and 3 following) c from u",
    "range frame over dates": "select day, count(*) over (order by day range between interval 30 days preceding and current row) n from t",
    "ignore nulls": "select w, last_value(k) ignore nulls over (order by w) a, lag(k) ignore nulls over (order by w) b, first(k) ignore nulls over (order by w rows between unbounded preceding and unbounded following) c from u",
    "window over an aggregate": "select s, sum(k) sk, sum(sum(k)) over () total, rank() over (order by sum(k) desc) r from t group by s",
    "qualify by a subquery": "select * from (select w, k, row_number() over (partition by k order by w desc) n from u) where n = 1",
    "scalar subqueries": "select k, (select max(w) from u) m, (select sum(w) from u where u.k = t.k) c from t",
    "a correlated subquery with the same table": "select k, (select count(*) from t i where i.k < t.k) n from t",
    "exists and not exists": "select k from t where exists (select 1 from u where u.k = t.k and u.w > 10) or not exists (select 1 from u where u.k = t.k)",
    "in and not in with nulls": "select k, k in (select k from u) a, k not in (select k from u) b, k not in (select k from u where k is not null) c from t",
    "in of two columns": "select k, s from t where (k, s) in (select k, 'a' from u)",
    "a subquery in a subquery": "select k from t where k in (select k from u where w > (select min(w) from u) and exists (select * from t t2 where t2.k = u.k))",
    "a subquery in case": "select case when k in (select k from u) then 'in' else 'out' end c, count(*) from t group by 1",
    "lateral": "select k, x.m from t, lateral (select max(w) m from u where u.k = t.k) x",
    "left lateral": "select k, x.w from t left join lateral (select w from u where u.k = t.k order by w limit 1) x on true",
    "definitions used twice": "with a as (select k, s from t where k > 1), b as (select k, count(*) n from a group by k) select a.s, b.n from a join b on a.k = b.k union all select s, 0 from a",
    "a definition within a definition": "with a as (with b as (select 1 x) select x + 1 y from b) select * from a, a a2",
    "explode": "select k, x from t lateral view explode(xs) e as x",
    "explode outer, twice": "select k, x, y, z from t lateral view outer posexplode(xs) e as x, y lateral view outer explode(array(y, 1)) e2 as z",
    "explode of maps": "select k, a, b from t lateral view outer explode(m) e as a, b",
    "inline and stack": "select k, inline(array(struct(1 as a, 'x' as b), struct(k as a, s as b))) from (select cast(k as int) k, s from t)",
    "stack": "select stack(2, 'a', k, 'b', k + 1) as (n, v) from t",
    "union all and distinct": "select k from t union select k from u union all select w from u",
    "intersect and except": "(select k, s from t intersect select k, s from t where flag) except select 7, '100%_\\\\$'",
    "all sets": "(select k from t intersect all select k from t) union all (select k from t except all select k from u) union all (select k from u except select k from t)",
    "distinct": "select distinct s, d, f from t",
    "order and limit": "select k, s from t order by k desc nulls last, s limit 3",
    "limit and offset by a column that is not selected": "select w + 1 x from u order by w limit 2 offset 1",
    "limit in a subquery": "select * from t where k in (select k from u order by w desc limit 2)",
    "values": "select * from values (1, 'a', null), (null, 'b', 1.5) v(x, y, z)",
    "range": "select id, id * 2 from range(10, 0, -3)",
    "partitioned": "select p, q, count(*), min(v) from parted group by p, q",
    "partition column in a filter": "select v from parted where q = 1 and p is not null",
    "csv": "select a, b, c, a + 1 from csv",
    "an empty table": "select s, count(*) from empty_table group by s union all select 'none', count(*) from empty_table",
    "try functions": "select try_divide(k, 0) a, try_add(k, 1) b, try_multiply(k, 9223372036854775807) c, try_subtract(d, 1) e, try_to_timestamp('nope') f, try_to_number('1', '9') g, try_sum(k) over () h from t",
    "time windows": "select window(ts, '1 hour').start a, count(*) n from t group by window(ts, '1 hour')",
    "bits and shifts": "select k & 1 a, k | 8 b, k ^ 3 c, ~k e, shiftleft(w, 2) f, shiftright(w, 1) g from t join u using (k)",
    "collation": "select s collate utf8_lcase = 'b' a, lower(s) b from t",
    "reading a view": "select v.k + 1 x, count(*) n from v join u using (k) group by v.k + 1",
    "math": "select sqrt(k) a, ln(k) b, pow(k, 2) c, round(f, 1) e, bround(2.5) g, floor(f) h, ceil(f) i, floor(d) j, pmod(-7, 3) l, -7 div 2 n, -7 % 3 o, sign(d) p, log(2, k) q from t where f between 0 and 100 and k > 0",
    "a parameter marker's kin": "select s || ? from t where s = ':x' or s = '?'",
    "current time": "select current_date() a, current_timestamp() b, now() c, localtimestamp() d, date_add(current_date(), int(k % 7)) e from t where day <= current_date()",
    "current time within": "select k, current_timestamp() - interval 1 hour < timestamp '2100-01-01 00:00:00' a from t",
    "random": "select rand(1), uuid() from t",
    "a sample": "select k from t tablesample (50 percent) repeatable (1)",
}  # fmt: skip


def frames(spark: Any) -> dict[str, Any]:
    """Programs of the DataFrame API, by title; each gives a DataFrame, or None if it is about more than a query."""
    from pyspark.sql import Window as W
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    t, u, parted = (spark.table(name) for name in ("t", "u", "parted"))

    def many_columns() -> Any:
        frame = u
        for i in range(60):
            frame = frame.withColumn("w", F.col("w") + i).withColumn(f"x{i % 5}", F.col("w") * 2)
        return frame

    def of_the_driver() -> Any:
        schema = T._parse_datatype_string(
            "a int, b string, d decimal(5,2), f float, ts timestamp, n timestamp_ntz, xs array<int>, m map<string,double>, st struct<p:int,q:date>, bin binary"
        )
        rows = [
            (1, "it's $1", decimal.Decimal("1.5"), 0.1, datetime.datetime(2026, 10, 25, 2, 30), datetime.datetime(2026, 1, 1), [1, None], {"k": 1.5}, (1, datetime.date(2026, 1, 1)), b"\x00"),
            (None,) * 10,
        ]  # fmt: skip
        return spark.createDataFrame(rows, schema).filter("a is null or a > 0").withColumn("z", F.col("d") * 2)

    a, b = u.alias("a"), u.alias("b")
    return {
        "a frame joined with itself": u.join(u.withColumnRenamed("w", "w2"), "k"),
        "aliases of one frame": a.join(b, F.col("a.k") == F.col("b.k")).select("a.w", F.col("b.w").alias("w2")),
        "the same frame united with itself": u.union(u).union(u),
        "union by name with missing columns": u.unionByName(u.select("w", F.lit(1).alias("new")), allowMissingColumns=True),
        "a hundred columns after each other": many_columns(),
        "rows of the driver": of_the_driver(),
        "groups and pivot without values": t.groupBy("flag").pivot("s").agg(F.sum("k"), F.max("day").alias("m")),
        "pivot with values": t.groupBy("k").pivot("flag", [True, False]).agg(F.sum("d")),
        "drop duplicates of all columns": t.select("s", "flag").dropDuplicates(),
        "drop duplicates by a key that decides": u.dropDuplicates(["k", "w"]).groupBy("k").count(),
        "fill, replace and drop": t.select("k", "s", "f").na.fill({"k": 0, "s": "?"}).na.replace(["a"], ["A"], "s").na.drop(),
        "sets with duplicates": u.select("k").intersectAll(t.select("k")).exceptAll(u.select("k").limit(0)),
        "repartition, coalesce, sort within partitions, hint": u.repartition(3, "k").sortWithinPartitions("w").coalesce(1).hint("broadcast").join(t.select("k", "s"), "k", "left"),
        "explode outer of arrays of structs": t.select("k", F.explode_outer("st.c").alias("c")).withColumn("c2", F.col("c") + 1),
        "window with a range between": u.withColumn("n", F.count("*").over(W.partitionBy("k").orderBy("w").rangeBetween(-1, 1))),
        "the first of each group": u.withColumn("r", F.row_number().over(W.partitionBy("k").orderBy(F.desc("w")))).filter("r = 1").drop("r"),
        "a subquery of frames": u.filter(u.k.isin([1, 4]) | (u.w > u.agg(F.avg("w").alias("m")).scalar())),
        "cached": u.filter("w > 10").cache().groupBy("k").agg(F.count("*").alias("n")),
        "partitions with odd names": parted.filter("q = 1").groupBy("p").agg(F.max("id").alias("m")),
        "rollup of expressions": t.rollup(F.upper("s").alias("u"), F.year("day")).agg(F.count("*").alias("n")),
        "struct of everything": t.select(F.struct("*").alias("all")).select("all.k", "all.st.a", F.col("all")["s"].alias("s2")),
        "melt": u.melt(["k"], ["w"], "name", "value"),
        "offset and tail": u.orderBy("w").offset(1).limit(2),
        "describe": u.describe("w"),
        "a frame of nothing": u.filter(F.lit(False)).agg(F.sum("w").alias("s"), F.count("*").alias("n")),
        "observed": u.observe("o", F.count(F.lit(1))).select("w"),
        "a global distinct count of all": t.select("s", "d").distinct().agg(F.count("*").alias("n")),
    }  # fmt: skip
