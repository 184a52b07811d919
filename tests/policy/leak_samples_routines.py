"""Attempts by way of routines: what a call hands to a routine that writes it somewhere."""

from __future__ import annotations

ROUTINES: dict[str, tuple[str, str]] = {
    "a function in SQL that writes": (
        "postgres",
        "create table {sink} (w text); create function put(k text) returns void language sql as $$ "
        "insert into {sink} values (k) $$; select put({col}) from {src};",
    ),
    "a function of statements that writes": (
        "postgres",
        "create table {sink} (w text); create function put(k text) returns int language plpgsql as "
        "$$ begin insert into {sink} (w) values (k); return 1; end $$; create table x as select "
        "put({col}) from {src};",
    ),
    "performed": (
        "postgres",
        "create table {sink} (w text); create function put(k text) returns int language plpgsql as "
        "$$ begin insert into {sink} (w) values (k); return 1; end $$; do $$ begin perform "
        "put({col}) from {src}; end $$;",
    ),
    "called with a query": (
        "postgres",
        "create table {sink} (w text); create procedure put(k text) language plpgsql as $$ begin "
        "insert into {sink} (w) values (k); end $$; call put((select {col} from {src} limit 1));",
    ),
    "called with a variable": (
        "postgres",
        "create table {sink} (w text); create procedure put(k text) language plpgsql as $$ begin "
        "insert into {sink} (w) values (k); end $$; do $$ declare e text; begin select {col} into "
        "e from {src} limit 1; call put(e); end $$;",
    ),
    "called in a loop": (
        "postgres",
        "create table {sink} (w text); create procedure put(k text) language plpgsql as $$ begin "
        "insert into {sink} (w) values (k); end $$; do $$ declare r record; begin for r in select "
        "{col} as e from {src} loop call put(r.e); end loop; end $$;",
    ),
    "a procedure of T-SQL": (
        "tsql",
        "create table {sink} (w varchar(80));\ngo\ncreate procedure put @k varchar(80) as insert "
        "into {sink} (w) values (@k);\ngo\ndeclare @e varchar(80); select @e = {col} from {src}; "
        "exec put @e;",
    ),
    "a procedure of Oracle": (
        "oracle",
        "create table {sink} (w varchar2(80));\ncreate procedure keep_it(k varchar2) as begin "
        "insert into {sink} (w) values (k); end;\n/\nbegin for r in (select {col} e from {src}) loop "
        "keep_it(r.e); end loop; end;\n/",
    ),
    "a procedure of BigQuery": (
        "bigquery",
        "create table {sink} (w string); create procedure tmpx.put(k string) begin insert into "
        "{sink} (w) values (k); end; call tmpx.put((select {col} from {src} limit 1));",
    ),
    "a procedure of Snowflake": (
        "snowflake",
        "create table {sink} (w varchar); create procedure put(k varchar) returns varchar language "
        "sql as $$ begin insert into {sink} (w) values (:k); return 'x'; end $$; call put((select "
        "{col} from {src} limit 1));",
    ),
    "handed back by a parameter": (
        "postgres",
        "create procedure get(out k text) language plpgsql as $$ begin select {col} into k from "
        "{src} limit 1; end $$; create table {sink} (w text); do $$ declare e text; begin call "
        "get(e); insert into {sink} values (e); end $$;",
    ),
    "handed back by a parameter of T-SQL": (
        "tsql",
        "create table {sink} (w varchar(80));\ngo\ncreate procedure get @k varchar(80) output as "
        "select @k = {col} from {src};\ngo\ndeclare @e varchar(80); exec get @e output; insert into "
        "{sink} (w) values (@e);",
    ),
    "a function that calls another": (
        "postgres",
        "create table {sink} (w text); create function a(k text) returns int language plpgsql as "
        "$$ begin insert into {sink} (w) values (k); return 1; end $$; create function b(k text) "
        "returns int language plpgsql as $$ begin perform a(k); return 1; end $$; select b({col}) "
        "from {src};",
    ),
    "a procedure of MySQL": (
        "mysql",
        "create table {sink} (w varchar(80));\ndelimiter //\ncreate procedure keep_it(in k "
        "varchar(80)) begin insert into {sink} (w) values (k); end//\ndelimiter ;\nset @e = (select "
        "{col} from {src} limit 1);\ncall keep_it(@e);",
    ),
}
