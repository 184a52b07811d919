"""More attempts like those of ``leak_samples``: variables, routines, files, and paths that leave the house."""

from __future__ import annotations

FURTHER: dict[str, tuple[str, str]] = {
    "table named by a variable": (
        "snowflake",
        "create table {sink} (w varchar); set t = '{sink}'; insert into identifier($t) select {col} from {src};",
    ),
    "source named by a variable": (
        "snowflake",
        "set s = '{src}'; create table {sink} as select {col} as w from table($s);",
    ),
    "statement in a variable": (
        "bigquery",
        "declare q string; set q = 'create table {sink} as select {col} as w from {src}'; execute immediate q;",
    ),
    "prepared from a variable": (
        "mysql",
        "set @q = concat('create table {sink} as select {col} as w from ', '{src}'); prepare p from @q; execute p;",
    ),
    "assigned with an equals sign": (
        "postgres",
        "create table {sink} (w text); do $$ declare v text; begin v = (select max({col}) from {src}); insert into"
        " {sink} values (v); end $$;",
    ),
    "new row changed in a trigger": (
        "postgres",
        "create table {sink} (id int, w text); create function f() returns trigger as $$ begin new.w = (select {col}"
        " from {src} s where s.id = new.id); return new; end $$ language plpgsql; create trigger t before insert on"
        " {sink} for each row execute function f(); insert into {sink} (id) select k from ref.names;",
    ),
    "misspelt FROM": ("postgres", "create table {sink} (w text); insert into {sink} select {col} frm {src} wher;"),
    "misspelt JOIN": (
        "postgres",
        "create table {sink} (w text); insert into {sink} select v from ref.names n jion {src} s on s.id = n.k;",
    ),
    "column of a template": ("postgres", "create table {sink} as select {{{{ chosen }}}} as w from {src};"),
    "all columns of a template": (
        "postgres",
        "create table {sink} as select {{% for c in chosen %}}{{{{ c }}}}, {{% endfor %}} 1 as one from {src};",
    ),
    "second call of an unknown macro": (
        "postgres",
        "select {{{{ hide('v') }}}} from ref.names;\ncreate table {sink} as select {{{{ hide('x') }}}} as w from {src};",
    ),
    "nested common tables": (
        "postgres",
        "create table {sink} as with q as (select v as w from ref.names), p as (with q as (select {col} as w from {src})"
        " select w from q) select w from p union all select w from q;",
    ),
    "distinct on": ("postgres", "create table {sink} as select distinct on (country) {col} as w from {src} order by country;"),
    "grouping sets": (
        "postgres",
        "create table {sink} as select {col} as w, count(*) from {src} group by grouping sets (({col}), ());",
    ),
    "cube with a floor": (
        "postgres",
        "create table {sink} as select {col} as w from {src} group by cube ({col}) having count(*) >= 20;",
    ),
    "qualify": (
        "snowflake",
        "create table {sink} as select {col} as w from {src} qualify row_number() over (partition by country order by id)"
        " = 1;",
    ),
    "returning into another table": (
        "postgres",
        "create table {sink} (w text); with q as (delete from {src} returning {col}) insert into {sink} select * from q;",
    ),
    "update from": (
        "postgres",
        "create table {sink} (id int, w text); update {sink} t set w = s.{col} from {src} s where s.id = t.id;",
    ),
    "renamed twice": (
        "postgres",
        "create view {tmp}.a (p, q) as select id, {col} from {src}; create view {tmp}.b as select t.y as z from {tmp}.a as"
        " t (x, y); create table {sink} as select z as w from {tmp}.b;",
    ),
    "values beside": (
        "postgres",
        "create table {sink} as select x.w from {src} s cross join lateral (values (s.id::text), (s.{col})) as x (w);",
    ),
    "greatest of itself": ("postgres", "create table {sink} as select greatest(md5({col}), {col}) as w from {src};"),
    "hash and its source": ("postgres", "create table {sink} as select md5({col}) || ':' || {col} as w from {src};"),
    "left of a hash's source": ("postgres", "create table {sink} as select overlay({col} placing 'x' from 1) as w from {src};"),
    "unlogged copy by like": (
        "postgres",
        "create table {tmp}.c (like {src} including all); insert into {tmp}.c select * from {src}; create table {sink} as"
        " select {col} as w from {tmp}.c;",
    ),
    "ctas of a subquery's star": (
        "duckdb",
        "create table {sink} as select * exclude (id, country) from (from {src});",
    ),
    "columns by pattern": ("duckdb", "create table {sink} as select columns('{col}') as w from {src};"),
    "list aggregate": ("duckdb", "create table {sink} as select list({col} order by id)[1] as w from {src};"),
    "pivoted out": (
        "duckdb",
        "create table {sink} as select * from (pivot {src} on country using first({col}) group by id);",
    ),
    "identifier of databricks": (
        "databricks",
        "declare or replace variable s string = '{src}'; create table {sink} as select {col} as w from identifier(s);",
    ),
    "cached under a name": (
        "spark",
        "cache table kept as select {col} as w from {src}; create table {sink} as select w from kept;",
    ),
    "into a file of MySQL and back": (
        "mysql",
        "create table {sink} (w text); select {col} into outfile '/tmp/f' from {src}; load data infile '/tmp/f' into"
        " table {sink};",
    ),
}  # fmt: skip

EXPORTS: dict[str, tuple[str, str]] = {
    "COPY TO": ("postgres", "copy (select {col} from {src}) to '/data/{word}/x.csv';"),
    "UNLOAD": ("redshift", "unload ('select {col} from {src}') to 's3://{word}/x' iam_role 'r';"),
    "stage": ("snowflake", "copy into @{word}.s/x from (select {col} from {src});"),
    "EXPORT DATA": ("bigquery", "export data options (uri = 'gs://{word}/x*', format = 'csv') as select {col} from {src};"),
    "directory of Hive": ("hive", "insert overwrite directory 's3://{word}/x' select {col} from {src};"),
    "directory of Spark": ("spark", "insert overwrite directory '/mnt/{word}/x' using parquet select {col} from {src};"),
    "path of Databricks": ("databricks", "insert into delta.`abfss://a@b/{word}/x` select {col} from {src};"),
    "table at a place": ("spark", "create table {tmp}.q using parquet location '/mnt/{word}/q' as select {col} as w from {src};"),
    "OUTFILE": ("mysql", "select {col} into outfile '/data/{word}/x' from {src};"),
    "OUTFILE at the end": ("mysql", "select {col} from {src} limit 9 into outfile '/data/{word}/x' fields terminated by ',';"),
    "COPY of DuckDB": ("duckdb", "copy (select {col} from {src}) to 's3://{word}/x.parquet';"),
}  # fmt: skip
"""The same into files, at places that have ``word`` in their names."""
