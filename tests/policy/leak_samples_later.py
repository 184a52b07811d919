"""More attempts like those of ``leak_samples``: rows that move, functions that return, values that unfold."""

from __future__ import annotations

LATER: dict[str, tuple[str, str]] = {
    "masked then unmasked by a join": (
        "postgres",
        "create table {tmp}.m as select id, md5({col}) as h from {src}; create table {sink} as select "
        "s.{col} as w from {tmp}.m m join {src} s using (id);",
    ),
    "computed column added": (
        "tsql",
        "create table {sink} (e varchar(80)); alter table {sink} add w as (upper(e)); insert into {sink}"
        " (e) select {col} from {src};",
    ),
    "moved to another schema": (
        "postgres",
        "create table {tmp}.t as select {col} as w from {src}; alter table {tmp}.t set schema share; "
        "create table {sink} as select w from share.t;",
    ),
    "moved by transfer": (
        "tsql",
        "select {col} as w into {tmp}.q from {src};\n"
        "go\n"
        "alter schema other transfer {tmp}.q;\n"
        "go\n"
        "select w into {sink} from other.q;",
    ),
    "prepared rows": (
        "postgres",
        "prepare p as select {col} from {src}; create table {sink} as execute p;",
    ),
    "function of bigquery": (
        "bigquery",
        "create temp function f(i int64) as ((select {col} from {src} where id = i)); create table "
        "{sink} as select f(k) as w from ref.names;",
    ),
    "having max": (
        "bigquery",
        "create table {sink} as select any_value({col} having max id) as w from {src};",
    ),
    "ml predict": (
        "bigquery",
        "create model {tmp}.m options(model_type='x') as select {col} as label, id from {src}; create "
        "table {sink} as select * from ml.predict(model {tmp}.m, (select id, {col} from {src}));",
    ),
    "pipe rename": (
        "bigquery",
        "create table {sink} as from {src} |> rename {col} as w |> select w;",
    ),
    "as value": (
        "bigquery",
        "create table {sink} as select as value struct({col} as w) from {src};",
    ),
    "unnest of array_agg": (
        "bigquery",
        "create table {sink} as select w from unnest((select array_agg({col}) from {src})) as w;",
    ),
    "object_agg keys": (
        "snowflake",
        "create table {sink} as select f.key as w from (select object_agg({col}, 1) o from {src}) q, "
        "lateral flatten(input => q.o) f;",
    ),
    "flatten of split": (
        "snowflake",
        "create table {sink} as select f.value as w from {src}, lateral split_to_table({col}, '@') f;",
    ),
    "resultset loop": (
        "snowflake",
        "create table {sink} (w varchar); begin let r resultset := (select {col} as e from {src}); let c"
        " cursor for r; for x in c do let v varchar := x.e; insert into {sink} values (:v); end for; "
        "end;",
    ),
    "insert overwrite": (
        "snowflake",
        "create table {sink} (w varchar); insert overwrite into {sink} select {col} from {src};",
    ),
    "try_cast of hex": (
        "snowflake",
        "create table {sink} as select try_hex_decode_string(hex_encode({col})) as w from {src};",
    ),
    "decompress": (
        "snowflake",
        "create table {sink} as select to_varchar(decompress_string(compress({col}, 'zlib'), 'zlib')) as w from {src};",
    ),
    "translate, once more": (
        "postgres",
        "create table {sink} as select translate({col}, 'abc', 'bcd') as w from {src};",
    ),
    "soundex": (
        "postgres",
        "create table {sink} as select soundex({col}) as w from {src};",
    ),
    "characters": (
        "postgres",
        "create table {sink} as select ascii(substr({col}, n, 1)) as w from {src}, generate_series(1, 80) n;",
    ),
    "regexp rows": (
        "postgres",
        "create table {sink} as select (regexp_matches({col}, '(.*)@(.*)'))[1] as w from {src};",
    ),
    "string to table": (
        "postgres",
        "create table {sink} as select w from {src}, string_to_table({col}, '@') as w;",
    ),
    "array position": (
        "postgres",
        "create table {sink} as select a[1] as w from (select array_agg({col} order by id) a from {src}) q;",
    ),
    "json each": (
        "postgres",
        "create table {sink} as select e.value as w from {src} s, jsonb_each_text(to_jsonb(s)) e;",
    ),
    "json path": (
        "postgres",
        "create table {sink} as select to_jsonb(s) ->> '{col}' as w from {src} s;",
    ),
    "merge returning": (
        "postgres",
        "create table {sink} (w text); with m as (update {src} set country = 'x' returning {col}) insert"
        " into {sink} select {col} from m;",
    ),
    "on conflict": (
        "postgres",
        "create table {sink} (id int primary key, w text); insert into {sink} (id, w) select id, 'x' "
        "from {src} on conflict (id) do update set w = (select {col} from {src} s where s.id = "
        "excluded.id);",
    ),
    "default of a function": (
        "postgres",
        "create function f() returns text language sql as 'select max({col}) from {src}'; create table "
        "{sink} (id int, w text default f()); insert into {sink} (id) values (1);",
    ),
    "window first_value partition": (
        "postgres",
        "create table {sink} as select first_value({col}) over (partition by id) as w from {src};",
    ),
    "string_agg over one": (
        "postgres",
        "create table {sink} as select string_agg({col}, '') as w from {src} group by id having count(*) >= 20;",
    ),
    "max of k": (
        "postgres",
        "create table {sink} as select max({col}) as w from {src} group by country having count(*) >= 20;",
    ),
    "within group": (
        "postgres",
        "create table {sink} as select percentile_disc(0.5) within group (order by {col}) as w from "
        "{src} having count(*) >= 20;",
    ),
    "lateral values": (
        "postgres",
        "create table {sink} as select x.w from {src} s, lateral (values (s.{col}), (s.country)) x(w);",
    ),
    "recursive, once more": (
        "postgres",
        "create table {sink} as with recursive r(w, n) as (select {col}, 1 from {src} union all select "
        "w, n + 1 from r where n < 2) select w from r where n = 2;",
    ),
    "left join other side": (
        "postgres",
        "create table {sink} as select coalesce(s.{col}, n.v) as w from ref.names n left join {src} s on s.id = n.k;",
    ),
    "full join using": (
        "postgres",
        "create table {tmp}.k as select {col} as v from {src}; create table {sink} as select v as w from"
        " ref.names full join {tmp}.k using (v);",
    ),
    "natural join": (
        "postgres",
        "create table {tmp}.k as select id as k, {col} as w from {src}; create table {sink} as select w "
        "from ref.names natural join {tmp}.k;",
    ),
    "output clause": (
        "tsql",
        "create table {sink} (w varchar(80)); delete {src} output deleted.{col} into {sink};",
    ),
    "for xml attribute": (
        "tsql",
        "create table {sink} (w xml); insert {sink} select (select {col} as [@a] from {src} for xml path('r'), type);",
    ),
    "string_split": (
        "tsql",
        "select value as w into {sink} from {src} cross apply string_split({col}, '@');",
    ),
    "openjson": (
        "tsql",
        "select j.w into {sink} from (select (select * from {src} for json path) as doc) q cross apply "
        "openjson(q.doc) with (w varchar(80) '$.{col}') j;",
    ),
    "table variable of a function": (
        "tsql",
        "create function dbo.f() returns @r table (w varchar(80)) as begin insert @r select {col} from "
        "{src} return end;\n"
        "go\n"
        "select w into {sink} from dbo.f();",
    ),
    "select into variable": (
        "tsql",
        "declare @v varchar(max) = ''; select @v += {col} from {src}; select @v as w into {sink};",
    ),
    "trigger instead of": (
        "tsql",
        "create table {sink} (w varchar(80));\n"
        "go\n"
        "create trigger tr on {src} instead of insert as insert {sink} select {col} from inserted;",
    ),
    "synonym chain": (
        "tsql",
        "create synonym {tmp}.a for {src};\n"
        "go\n"
        "create synonym {tmp}.b for {tmp}.a;\n"
        "go\n"
        "select {col} as w into {sink} from {tmp}.b;",
    ),
    "stack": (
        "spark",
        "create table {sink} as select stack(2, {col}, country) as (w) from {src};",
    ),
    "transform array": (
        "spark",
        "create table {sink} as select transform(collect_list({col}), x -> concat(x, '')) as w from {src};",
    ),
    "map entries": (
        "spark",
        "create table {sink} as select explode(map_from_arrays(array('a'), array({col}))) as (k, w) from {src};",
    ),
    "from_json": (
        "spark",
        "create table {sink} as select from_json(to_json(struct({col})), '{col} string').{col} as w from {src};",
    ),
    "insert replace where": (
        "spark",
        "create table {sink} (w string); insert into {sink} replace where true select {col} from {src};",
    ),
    "a digest of its own": (
        "postgres",
        "create function sha256(x text) returns text language plpgsql as $$ begin return x; end $$;"
        " create table {sink} as select sha256({col}) as w from {src};",
    ),
    "a digest of its own in SQL": (
        "postgres",
        "create function sha256(x text) returns text language sql as 'select x';"
        " create table {sink} as select sha256({col}) as w from {src};",
    ),
    "explained and run": (
        "postgres",
        "create table {sink} (w text); explain analyze insert into {sink} select {col} from {src};",
    ),
    "encryption undone in an update": (
        "postgres",
        "create table {sink} (id int, w text); insert into {sink} select id, pgp_sym_encrypt({col}, 'k') from {src};"
        " update {sink} set w = pgp_sym_decrypt(w::bytea, 'k');",
    ),
    "k over rows that VALUES multiplies": (
        "postgres",
        "create table {sink} as select s.id, sum(ascii(s.{col})) as w from {src} s, lateral (values (1), (2)) v(x)"
        " group by s.id having count(*) >= 20;",
    ),
}
