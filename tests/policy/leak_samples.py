"""Attempts to carry a column past a policy, in templates: ``{src}.{col}`` must not be known to reach ``{sink}`` unseen.

``{src}`` has the columns ``id``, ``{col}`` and ``country``; ``{tmp}`` is a schema that no policy speaks of, ``ref.names``
a table of no personal data. Each has the dialect that it is written in.
"""

from __future__ import annotations

TABLES = """
create table {src} (id int, {col} varchar(80), country varchar(2));
create table ref.names (k int, v varchar(80));
create table shop.orders (user_id int, amount int);
"""

P, M, O, T, S, B, H, D, C = "postgres", "mysql", "oracle", "tsql", "snowflake", "bigquery", "hive", "duckdb", "spark"  # noqa: E741
_HAVING = "having count(*) >= 20"

PLAIN: dict[str, tuple[str, str]] = {
    "copied": (P, "create table {sink} as select {col} as w from {src};"),
    "positional insert": (P, "create table {sink} (w text); insert into {sink} select {col} from {src};"),
    "two steps": (
        P,
        "create table {tmp}.e as select {col} as e from {src}; create table {sink} as select e as w from {tmp}.e;",
    ),
    "star": (P, "create view {tmp}.v as select * from {src}; create table {sink} as select * from {tmp}.v;"),
    "whole row": (P, "create table {sink} as select s::text as w from {src} s;"),
    "row as JSON": (P, "create table {sink} as select row_to_json(s) as w from {src} s;"),
    "object of all": (S, "create table {sink} as select object_construct(*) as w from {src};"),
    "struct of all": (C, "create table {sink} as select struct(*) as w from {src};"),
    "set operation": (P, "create table {sink} as select v as w from ref.names union select {col} from {src};"),
    "except": (P, "create table {sink} as select {col} as w from {src} except select v from ref.names;"),
    "a part": (P, "create table {sink} as select substr({col}, 1, 3) as w from {src};"),
    "reversed": (P, "create table {sink} as select reverse({col}) as w from {src};"),
    "encoded": (P, "create table {sink} as select encode({col}::bytea, 'base64') as w from {src};"),
    "hash beside clear": (P, "create table {sink} as select coalesce(md5({col}), {col}) as w from {src};"),
    "joined back": (
        P,
        "create table {tmp}.h as select md5({col}) as h, {col} as e from {src};"
        " create table {sink} as select b.e as w from {tmp}.h a join {tmp}.h b on a.h = b.h;",
    ),
    "window": (
        P,
        "create table {sink} as select first_value({col}) over (partition by country order by id) as w from {src};",
    ),
    "collected": (P, "create table {sink} as select string_agg({col}, ',') as w from {src} group by country;"),
    "maximum": (P, "create table {sink} as select max({col}) as w from {src} group by country having count(*) >= 50;"),
    "scalar subquery": (
        P,
        "create table {sink} as select (select {col} from {src} s where s.id = n.k) as w from ref.names n;",
    ),
    "lateral": (P, "create table {sink} as select q.x as w from {src} s, lateral (select s.{col} as x) q;"),
    "unpivot": (S, "create table {sink} as select val as w from {src} unpivot (val for nm in ({col}, country));"),
    "array": (P, "create table {sink} as select unnest(array[{col}, country]) as w from {src};"),
    "recursive": (
        P,
        "create table {sink} as with recursive r(n, x) as (select 1, {col} from {src} union all"
        " select n + 1, x from r where n < 2) select x as w from r;",
    ),
    "update": (
        P,
        "create table {sink} (id int, w text); update {sink} t set w = s.{col} from {src} s where s.id = t.id;",
    ),
    "merge": (
        S,
        "create table {sink} (id int, w varchar); merge into {sink} t using {src} s on s.id = t.id"
        " when matched then update set w = s.{col} when not matched then insert (id, w) values (s.id, s.{col});",
    ),
    "merge by name": (
        D,
        "create table {sink} (w varchar); merge into {sink} using (select {col} as w from {src}) s on false"
        " when not matched then insert by name;",
    ),
    "multi insert": (
        O,
        "create table {sink} (w varchar2(80)); insert all into {sink} (w) values (x) select {col} as x from {src};",
    ),
    "returning": (
        P,
        "create table {sink} (w text); with d as (delete from {src} returning {col}) insert into {sink} select * from d;",
    ),
    "output into": (T, "create table {sink} (w varchar(80)); delete from {src} output deleted.{col} into {sink} (w);"),
    "swap": (
        S,
        "create table {tmp}.e as select {col} as w from {src}; create table {sink} (w varchar); alter table {tmp}.e swap with {sink};",
    ),
    "clone": (S, "create table {tmp}.e as select {col} as w from {src}; create table {sink} clone {tmp}.e;"),
    "rename": (
        P,
        "create table {tmp}.e as select {col} as w from {src}; alter table {tmp}.e rename column w to x; create table {sink} as select x from {tmp}.e;",
    ),
    "generated column": (
        P,
        "create table {tmp}.g (e text, f text generated always as (lower(e)) stored); insert into {tmp}.g (e) select {col} from {src}; create table {sink} as select f as w from {tmp}.g;",
    ),
    "function": (
        P,
        "create function {tmp}.f(i int) returns text language sql as $$ select {col} from {src} where id = i $$; create table {sink} as select {tmp}.f(k) as w from ref.names;",
    ),
    "block function": (
        P,
        "create function {tmp}.f(i int) returns text language plpgsql as $$ begin return (select {col} from {src} where id = i); end $$; create table {sink} as select {tmp}.f(k) as w from ref.names;",
    ),
    "procedure": (
        P,
        "create table {sink} (w text); create procedure {tmp}.p() language plpgsql as $$ declare x text; begin select {col} into x from {src} limit 1; insert into {sink} values (x); end $$;",
    ),
    "cursor": (
        O,
        "create table {sink} (w varchar2(80)); begin for r in (select {col} as e from {src}) loop insert into {sink} (w) values (r.e); end loop; end;",
    ),
    "dynamic": (
        P,
        "create table {sink} (w text); do $$ begin execute 'insert into {sink} select {col} from {src}'; end $$;",
    ),
    "dynamic, a constant": (
        P,
        "create table {sink} (w text); create procedure {tmp}.p() language plpgsql as $$ declare t constant text := '{src}'; begin execute 'insert into {sink} select {col} from ' || t; end $$;",
    ),
    "dynamic, put together": (
        P,
        "create table {sink} (w text); create procedure {tmp}.p(t text) language plpgsql as $$ begin execute 'insert into {sink} select {col} from ' || t; end $$;",
    ),
    "trigger": (
        M,
        "create table {sink} (w varchar(80)); create trigger x after insert on {src} for each row insert into {sink} (w) values (new.{col});",
    ),
    "trigger of Oracle": (
        O,
        "create table {sink} (w varchar2(80)); create trigger x after insert on {src} for each row begin insert into {sink} (w) values (:new.{col}); end;",
    ),
    "trigger function": (
        P,
        "create table {sink} (w text); create function {tmp}.f() returns trigger language plpgsql as $$ begin insert into {sink} values (new.{col}); return new; end $$; create trigger x after insert on {src} for each row execute function {tmp}.f();",
    ),
    "trigger of SQL Server": (
        T,
        "create table {sink} (w varchar(80)); create trigger x on {src} after insert as begin insert into {sink} (w) select {col} from inserted end",
    ),
    "rule": (
        P,
        "create table {sink} (w text); create rule r as on insert to {src} do also insert into {sink} values (new.{col});",
    ),
    "synonym": (O, "create table {tmp}.e as select {col} as w from {src}; create synonym {sink} for {tmp}.e;"),
    "partition": (
        P,
        "create table {sink} (w text) partition by list (w); create table {tmp}.e as select {col} as w from {src}; alter table {sink} attach partition {tmp}.e for values in ('a');",
    ),
    "inheritance": (
        P,
        "create table {sink} (w text); create table {tmp}.e as select {col} as w from {src}; alter table {tmp}.e inherit {sink};",
    ),
    "file": (
        P,
        "copy (select {col} as w from {src}) to 'out/x.csv'; create table {sink} (w text); copy {sink} (w) from 'out/x.csv';",
    ),
    "wildcard": (
        B,
        "create table {tmp}.s_1 as select {col} as w from {src}; create table {sink} as select w from `{tmp}.s_*`;",
    ),
    "query in a text": (
        P,
        "create table {sink} as select query_to_xml('select {col} from {src}', true, true, '') as w;",
    ),
    "table in a text": (P, "create table {sink} as select table_to_xml('{src}', true, true, '') as w;"),
    "remote": (P, "create table {sink} as select w from dblink('db', 'select {col} from {src}') as t(w text);"),
    "generated statements": (
        P,
        "create table {sink} (w text); select 'insert into {sink} select {col} from {src}' \\gexec\n",
    ),
    "numbered column": (D, "create table {sink} as select #2 as w from {src};"),
    "not parsed": (P, "create table {sink} as select {col} frm {src} whre;"),
    "parsed in another dialect only": (P, "create table {sink} as select encrypt({col}) as w from {src};"),
    "template": (P, "create table {sink} as select {{{{ mask('{col}') }}}} as w from {src};"),
    "encrypted and decrypted": (
        C,
        "create table {sink} as select aes_decrypt(aes_encrypt({col}, 'k'), 'k') as w from {src};",
    ),
    "decrypted later": (
        P,
        "create table {tmp}.e as select pgp_sym_encrypt({col}, 'k') as e from {src};"
        " create table {sink} as select pgp_sym_decrypt(e, 'k') as w from {tmp}.e;",
    ),
    "detokenized": (S, "create table {sink} as select detokenize(tokenize({col})) as w from {src};"),
    "a key": (C, "create table {sink} as select hmac_sha256('const', {col}) as w from {src};"),
    "its own key": (C, "create table {sink} as select aes_encrypt('x', {col}) as w from {src};"),
    "a function called tokenize": (
        S,
        "create function tokenize(x string) returns string language python as 'return x'; create table {sink} as select tokenize({col}) as w from {src};",
    ),
    "a function called tokenize, of statements": (
        "postgres",
        "create function u.tokenize(x text) returns text language plpgsql as $$ begin return x; end $$; create table {sink} as select u.tokenize({col}) as w from {src};",
    ),
    "what was there before an UPDATE": (
        "postgres",
        "create table {sink} (w text); with d as (update {src} set {col} = 'x' returning old.{col}) insert into {sink} select {col} from d;",
    ),
    "a MERGE in WITH": (
        "postgres",
        "create table {sink} (id int, w text); with m as (merge into {sink} t using {src} s on s.id = t.id when matched then update set w = s.{col} returning t.w) select w from m;",
    ),
    "a function called tokenize, in SQL": (
        P,
        "create function tokenize(x text) returns text language sql as $$ select x $$; create table {sink} as select tokenize({col}) as w from {src};",
    ),
    "rows of a join": (
        P,
        f"create table {{sink}} as select u.id, sum(ascii(u.{{col}})) w from {{src}} u join shop.orders o on o.user_id = u.id group by u.id {_HAVING};",
    ),
    "crossed with itself": (
        P,
        f"create table {{sink}} as select sum(ascii(x.{{col}})) w from (select {{col}} from {{src}} where id = 42) x cross join {{src}} y {_HAVING};",
    ),
    "a join that is true": (
        P,
        f"create table {{sink}} as select sum(ascii(s.{{col}})) w from {{src}} s join ref.names n on s.id = s.id and n.k = n.k {_HAVING};",
    ),
    "united with itself": (
        P,
        f"create table {{sink}} as select sum(ascii({{col}})) w from (select * from {{src}} union all select * from {{src}}) q group by id {_HAVING};",
    ),
    "chosen by arithmetic": (
        P,
        f"create table {{sink}} as select sum(ascii({{col}}) * power(0, abs(id - 42))) w from {{src}} {_HAVING};",
    ),
    "chosen by a condition": (
        P,
        f"create table {{sink}} as select sum(case when id = 42 then ascii({{col}}) end) w from {{src}} {_HAVING};",
    ),
    "chosen by a filter": (
        P,
        f"create table {{sink}} as select sum(ascii({{col}})) filter (where id = 42) w from {{src}} {_HAVING};",
    ),
}
"""Attempts by name: the dialect and the statements."""

MORE: dict[str, tuple[str, str]] = {
    "key derived": (
        C,
        "create table {sink} as select hmac_sha256('const', concat('k', lower({col}))) as w from {src};",
    ),
    "key in a CTE": (
        P,
        "create table {sink} as with q as (select {col} as kk from {src}) select pgp_sym_encrypt('x', kk) as w from q;",
    ),
    "k over fan-out": (
        P,
        "create table {sink} as select s.country, sum(ascii(s.{col})) w from {src} s left join "
        "shop.orders o on o.user_id = s.id group by s.country, s.id having count(*) >= 20;",
    ),
    "k over a view that multiplies": (
        P,
        "create view {tmp}.j as select s.id, s.{col} as e from {src} s join shop.orders o on o.user_id ="
        " s.id; create table {sink} as select id, sum(ascii(e)) w from {tmp}.j group by id having "
        "count(*) >= 20;",
    ),
    "decrypted over three": (
        P,
        "create table {tmp}.a as select pgp_sym_encrypt({col}, 'k') as e from {src}; create table "
        "{tmp}.b as select e as f from {tmp}.a; create table {sink} as select pgp_sym_decrypt(f, 'k') as"
        " w from {tmp}.b;",
    ),
    "decrypted over a union": (
        S,
        "create table {tmp}.a as select encrypt({col}, 'k') as e from {src} union all select encrypt(v, "
        "'k') from ref.names; create table {sink} as select decrypt(e, 'k') as w from {tmp}.a;",
    ),
    "lag": (P, "create table {sink} as select lag({col}) over (order by id) as w from {src};"),
    "nth_value": (
        P,
        "create table {sink} as select nth_value({col}, 2) over (partition by country order by id) as w from {src};",
    ),
    "sum over one row": (
        P,
        "create table {sink} as select sum(ascii({col})) over (order by id rows between current row and "
        "current row) as w from {src};",
    ),
    "running differences": (
        P,
        "create table {sink} as select id, sum(length({col})) over (order by id) as w from {src};",
    ),
    "listagg": (
        O,
        "create table {sink} as select listagg({col}, ',') within group (order by id) as w from {src} "
        "group by country having count(*) >= 20;",
    ),
    "xmlagg": (O, "create table {sink} as select xmlagg(xmlelement(e, {col})) as w from {src};"),
    "pivot": (D, "create table {sink} as pivot (select country, {col}, id from {src}) on country using first({col});"),
    "pivot on values": (S, "create table {sink} as select * from {src} pivot (max({col}) for country in ('de','fr'));"),
    "json_build": (P, "create table {sink} as select json_build_object('a', json_agg({col})) as w from {src};"),
    "for json": (
        T,
        "create table {sink} (w nvarchar(max)); insert into {sink} select (select {col} from {src} for json path);",
    ),
    "for xml": (
        T,
        "create table {sink} (w nvarchar(max)); insert into {sink} select stuff((select ',' + {col} from"
        " {src} for xml path('')), 1, 1, '');",
    ),
    "error message": (
        P,
        "create function f() returns void language plpgsql as $$ declare m text; begin begin perform "
        "1/0; exception when others then select string_agg({col}, ',') into m from {src}; insert into "
        "{sink} values (m); end; end $$; create table {sink} (w text);",
    ),
    "raise to a log": (
        P,
        "create table {sink} (w text); do $$ declare v text; begin select {col} into v from {src} limit "
        "1; begin raise exception '%', v; exception when others then insert into {sink} values "
        "(sqlerrm); end; end $$;",
    ),
    "count differencing": (
        P,
        "create table {sink} as select count(*) filter (where {col} like 'a%') - count(*) filter (where "
        "{col} like 'b%') as w, max({col} = 'x') y from {src};",
    ),
    "sum of case on value": (
        P,
        "create table {sink} as select sum(ascii({col}) * (case when id = 1 then 1 else 0 end)) as w "
        "from {src} having count(*) >= 20;",
    ),
    "tag lost by rename": (
        S,
        "create table {tmp}.x as select {col} as a1 from {src}; alter table {tmp}.x rename column a1 to "
        "b2; create table {sink} as select b2 as w from {tmp}.x;",
    ),
    "renamed table": (
        P,
        "create table {tmp}.x as select {col} as a1 from {src}; alter table {tmp}.x rename to y; create "
        "table {sink} as select a1 as w from {tmp}.y;",
    ),
    "export stage": (S, "create table {tmp}.x as select {col} as w from {src}; copy into @{sink} from {tmp}.x;"),
    "export data": (
        B,
        "export data options(uri='gs://b/x*.csv', format='csv') as select {col} from {src}; load data "
        "into {sink} (w string) from files (format='csv', uris=['gs://b/x*.csv']);",
    ),
    "unload and load": (
        P,
        "copy (select {col} from {src}) to '/tmp/e.csv'; create table {sink} (w text); copy {sink} from '/tmp/e.csv';",
    ),
    "outfile": (
        M,
        "select {col} into outfile '/tmp/e2.csv' from {src}; create table {sink} (w text); load data "
        "infile '/tmp/e2.csv' into table {sink} (w);",
    ),
    "list behind alias": (P, "create table {sink} as select q.b as w from {src} as q(a, b, c);"),
    "list behind CTE": (P, "create table {sink} as with q(a, b, c) as (select * from {src}) select b as w from q;"),
    "list of a view": (
        P,
        "create view {tmp}.v(a, b, c) as select * from {src}; create table {sink} as select b as w from {tmp}.v;",
    ),
    "map": (C, "create table {sink} as select map_values(map('a', {col})) as w from {src};"),
    "translate": (P, "create table {sink} as select translate({col}, 'abc', 'bcd') as w from {src};"),
    "cursor again": (
        T,
        "create table {sink} (w varchar(9)); declare c cursor for select {col} from {src}; declare @v "
        "varchar(9); open c; fetch next from c into @v; insert into {sink} values (@v);",
    ),
    "temp table": (
        T,
        "select {col} as w into #t from {src}; create table {sink} (w varchar(9)); insert into {sink} "
        "select w from #t;",
    ),
    "merge output": (
        T,
        "create table {sink} (w varchar(9)); merge ref.names as d using {src} as s on d.k = s.id when "
        "matched then update set v = s.{col} output inserted.v into {sink};",
    ),
    "percentile": (
        P,
        "create table {sink} as select percentile_disc(0.5) within group (order by {col}) as w from "
        "{src} having count(*) >= 20;",
    ),
    "histogram": (D, "create table {sink} as select histogram({col}) as w from {src};"),
    "approx top": (B, "create table {sink} as select approx_top_count({col}, 10) as w from {src};"),
    "detokenized by a name cut short": (
        S,
        "create table {sink} as select detok({col}) as w from (select tokenize({col}) as {col} from {src});",
    ),
    "function in SQL that decrypts": (
        P,
        "create function f(x text) returns text language sql as $$ select pgp_sym_decrypt(x::bytea, 'k')"
        " $$; create table {sink} as select f(pgp_sym_encrypt({col}, 'k')::text) as w from {src};",
    ),
}
"""More of them: what steers, collects, renames or exports."""
