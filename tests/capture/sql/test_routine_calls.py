"""Calls of routines: known where a script defines them, of unknown reach where none does."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

PROCEDURE = "CREATE PROCEDURE etl.load(a INT) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO d SELECT c FROM s; END $$;"


def _opaque(dialect: str, *texts: str) -> int:
    scripts = [Script(f"{number}.sql", text) for number, text in enumerate(texts)]
    return extract(scripts, Options(dialect=dialect)).opaque


@pytest.mark.parametrize(
    ("dialect", "texts"),
    [
        ("postgres", (PROCEDURE, "CALL etl.load(1);")),
        ("postgres", ("CALL etl.load(1);", PROCEDURE)),  # in whatever order the files are read
        ("postgres", (PROCEDURE + 'CALL "etl"."load"(1);',)),
        ("postgres", ("PREPARE p AS INSERT INTO d SELECT c FROM s; EXECUTE p; DEALLOCATE p;",)),
        ("tsql", ("CREATE PROC dbo.[load it] AS INSERT INTO d SELECT c FROM s\nGO\nEXEC @r = dbo.[load it]",)),
        ("oracle", ("CREATE PACKAGE BODY p AS PROCEDURE q IS BEGIN NULL; END; END;\n/\nCALL p.q();",)),
        ("tsql", ("EXEC sys.sp_addextendedproperty @name = 'x';EXEC sp_help 't';",)),
        ("oracle", ("CALL dbms_stats.gather_table_stats('A', 'B');",)),
        ("spark", ("CALL cat.system.rewrite_data_files('db.t');",)),
        ("tsql", ("EXEC msdb.dbo.sp_add_job @job_name = N'x';",)),
        ("postgres", ("SET search_path TO etl; CALL load(1);", PROCEDURE)),
        ("tsql", ("CREATE OR ALTER PROCEDURE dbo.load AS INSERT INTO d SELECT c FROM s\nGO\nEXEC db..load",)),
        ("snowflake", ("CREATE TASK etl.t AS INSERT INTO d SELECT c FROM s; EXECUTE TASK etl.t;",)),
        ("postgres", ("SELECT pg_catalog.set_config('search_path', '', false); SELECT setval('s', 1); SELECT now()",)),
        ("postgres", ("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT 1'; SELECT f();",)),
        ("postgres", ("SELECT f(a) FROM t",)),  # a value of each row
        ("duckdb", ("SELECT f()",)),  # whose functions change nothing
    ],
)
def test_a_call_of_what_is_defined_or_only_administers_is_understood(dialect: str, texts: tuple[str, ...]) -> None:
    assert _opaque(dialect, *texts) == 0


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", PROCEDURE + "CALL etl.load_all();"),
        ("mysql", "CALL `load`(@a);"),
        ("snowflake", "CALL db.etl.load();"),
        ("tsql", "EXEC srv.db..load;"),
        ("tsql", "EXEC @name;"),
        ("tsql", "EXEC msdb.dbo.sp_update_jobstep @command = N'x';"),
        ("spark", "CALL cat.system.add_files(table => 'db.t', source_table => 'p');"),
        ("postgres", "EXECUTE nobody_prepared_it(1);"),
        ("tsql", "EXEC dbo.sp_update_orders;"),
        ("tsql", "EXEC sp_refresh_sales_mart 1;"),
        ("tsql", "EXEC etl.sp_help;"),
        ("postgres", "CALL add_orders_policy();"),
        ("trino", "CALL a.system.load_orders();"),
        # Mentions that define nothing.
        ("postgres", "GRANT EXECUTE ON FUNCTION f() TO etl; CALL f();"),
        ("postgres", "ALTER PROCEDURE f() OWNER TO etl; CALL f();"),
        ("snowflake", "ALTER TASK f RESUME; CALL f();"),
        ("postgres", "CREATE TABLE s AS -- filled by procedure f\nSELECT 1 AS event; CALL f();"),
        ("postgres", PROCEDURE + "CALL finance.load(1);"),  # of another schema
        # Calls by other statements of PostgreSQL.
        ("postgres", "SELECT f();"),
        ("postgres", "SELECT etl.f(1, 'a FROM b') AS done"),
        ("postgres", "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();"),
        ("postgres", "DO $$ BEGIN PERFORM f(c) FROM t; END $$;"),
        # Calls in tasks and events.
        ("snowflake", "CREATE TASK t AS CALL load_all();"),
        ("mysql", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO CALL load_all();"),
    ],
)
def test_a_call_of_what_nobody_defines_is_not_understood(dialect: str, text: str) -> None:
    assert _opaque(dialect, text) == 1


@pytest.mark.parametrize(
    ("head", "opaque"),
    [
        ("LANGUAGE plpython3u", 1),
        ("LANGUAGE plperl STABLE", 1),
        ("LANGUAGE plpython3u IMMUTABLE", 0),  # cannot read a table
        ("LANGUAGE c STRICT", 0),
    ],
)
def test_a_function_that_may_run_sql_in_another_language_is_not_understood(head: str, opaque: int) -> None:
    assert _opaque("postgres", f"CREATE FUNCTION f() RETURNS int {head} AS 'x';") == opaque


def test_functions_of_systems_that_only_compute_are_no_reason() -> None:
    assert _opaque("redshift", "CREATE FUNCTION f(a int) RETURNS int STABLE AS $$ return a $$ LANGUAGE plpythonu;") == 0
    assert _opaque("snowflake", "CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS 'x';") == 0


def test_a_call_is_known_by_the_definitions_of_another_batch() -> None:
    from govtool.capture.sql.resolve.knowledge import Knowledge

    known = Knowledge(routines=frozenset({"load"}))
    assert Knowledge.from_json(known.to_json()).routines == {"load"}


def test_a_create_that_does_not_parse_has_the_place_where_the_parser_gave_up() -> None:
    (note,) = extract([Script("q.sql", "create view w as\nselec b frm u;")], Options(dialect="postgres")).diagnostics
    assert (note.code, note.line, note.column) == ("opaque", 2, 9)
    assert note.message.startswith("a CREATE that is not understood: ")


def test_an_open_star_names_the_table_of_the_schema_that_a_default_would_mean() -> None:
    from govtool.capture.sql.schemas.supplied import schema_from_mapping

    for text, option in (("p.t", "--default-catalog d"), ("t", "--default-catalog and --default-schema d and p")):
        options = Options(dialect="postgres", schema=schema_from_mapping({"d.p.t": ["a"]}, "postgres"))
        (note,) = extract([Script("q.sql", f"create view w as select * from {text}")], options).diagnostics
        assert note.message.endswith(f"; the schema has d.p.t: give {option}")
