"""Dynamic SQL and names of tables in variables: read where every operand is constant, said to be unknown elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import govtool

DDL = "create table s(c int, k int); create table t(c int); create table d(x int);\n"
FILL = "insert into d(x) select c from "


def _edges(dialect: str, sql: str) -> tuple[list[list[str]], list[str]]:
    """The edges into ``d``, and what was not understood."""
    answer: Any = govtool.lineage(DDL + sql, dialect=dialect).to_dict()
    result = answer["results"][0]
    notes = [n["message"] for n in result["diagnostics"] if n["severity"] != "info"]
    return [edge for edge in result["edges"] if edge[1].startswith("d.")], notes


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("snowflake", f"set t='s'; {FILL} identifier($t);"),
        ("snowflake", f"set t='s'; {FILL} table($t);"),
        ("snowflake", "set (a, b) = ('s', 'd'); insert into identifier($b)(x) select c from identifier($a);"),
        ("snowflake", "set t='c'; insert into d(x) select identifier($t) from s;"),
        ("snowflake", f"set t='s'; set q='{FILL}' || $t; execute immediate $q;"),
        ("snowflake", f"execute immediate $$ begin let t := 's'; {FILL} identifier(:t); end; $$;"),
        ("snowflake", f"begin let t varchar := 's'; {FILL} table(:t); end;"),
        ("snowflake", f"declare q varchar; begin q := '{FILL}s'; execute immediate q; end;"),
        ("bigquery", f"declare t string default 's'; execute immediate '{FILL}' || t;"),
        ("bigquery", f"declare t string; set t = 's'; execute immediate format('{FILL} %s limit %d', t, 3);"),
        ("mysql", f"set @t='s'; set @q = concat('{FILL}', @t); prepare st from @q; execute st;"),
        ("postgres", f"do $$ declare t text; begin t := 's'; execute '{FILL}' || t; end $$;"),
        ("postgres", f"do $$ declare t text; begin t := 't'; t = 's'; execute format('{FILL} %I', t); end $$;"),
        ("tsql", f"declare @t sysname = N's', @q nvarchar(99); set @q = N'{FILL}' + quotename(@t); exec(@q);"),
        ("oracle", f"declare q varchar2(9); begin q := '{FILL}' || 's'; dbms_output.put_line(q); execute immediate q; end;"),
        ("databricks", f"declare or replace variable t string default 't'; set var t = 's'; {FILL} identifier(t);"),
        ("databricks", f"{FILL} identifier('s' || '');"),
    ],
)  # fmt: skip
def test_a_text_all_of_whose_operands_are_constant_is_read(dialect: str, sql: str) -> None:
    assert _edges(dialect, sql) == ([["s.c", "d.x"]], [])


def _block(body: str, declared: str = "t text") -> str:
    return f"do $$ declare {declared}; begin {body} end $$;"


RUN = f"execute '{FILL}' || t;"


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", _block(f"t := 's'; if random() > 0.5 then t := 't'; end if; {RUN}")),
        ("postgres", _block(f"t := 's'; select c::text into t from s; {RUN}")),
        ("postgres", _block(f"t := 's'; for i in 1..2 loop {RUN} t := 't'; end loop;")),
        ("postgres", _block(f"t := 't'; begin t := 's'; exception when others then {RUN} end;")),
        ("postgres", _block(f"t := 't'; declare t text; begin t := 's'; end; {RUN}")),
        ("postgres", _block(f"t := 's'; for t in select c from t loop null; end loop; {RUN}")),
        ("postgres", _block(f"t := 's'; fetch cur into t; {RUN}")),
        ("postgres", _block(f"t := 's'; execute 'select 1' into t; {RUN}")),
        ("postgres", _block(f"t := 's'; get diagnostics t = row_count; {RUN}")),
        ("postgres", _block(f"t := 's'; delete from s returning c into t; {RUN}")),
        ("snowflake", f"set t='s'; set t=(select max(c) from t); {FILL} identifier($t);"),
        ("snowflake", f"set t='s'; call p(); {FILL} identifier($t);"),
        ("snowflake", f"set t='s'; unset t; {FILL} identifier($t);"),
        ("snowflake", f"{FILL} table($t);"),
        ("snowflake", f"begin let t := 't'; begin let t := 's'; end; {FILL} identifier(:t); end;"),
        ("snowflake", f"begin let t := 't'; for i in 1 to 2 do {FILL} identifier(:t); t := 's'; end for; end;"),
        ("bigquery", f"declare t string default 't'; begin declare t string default 's'; end; {RUN[:8]}immediate{RUN[7:]}"),
        ("bigquery", f"declare t string default 's'; set (t, k) = (select 't', 1); execute immediate '{FILL}' || t;"),
        ("mysql", f"set @t='s'; select c into @t from t; set @q = concat('{FILL}', @t); prepare st from @q;"),
        ("mysql", f"set @t='s'; insert into d select @t := c from t; set @q = concat('{FILL}', @t); prepare st from @q;"),
        ("mysql", f"set @t='s'; call p(); set @q = concat('{FILL}', @t); prepare st from @q;"),
        ("oracle", f"declare t varchar2(9); begin t := 's'; <<a>> execute immediate '{FILL}' || t; t := 't'; goto a; end;"),
        ("oracle", f"declare t varchar2(9); procedure a is begin t := 't'; end; begin t := 's'; a; "
                   f"execute immediate '{FILL}' || t; end;"),
        ("databricks", f"declare t string = 's'; set var t = (select max(c) from t); {FILL} identifier(t);"),
    ],
)  # fmt: skip
def test_a_text_that_may_be_another_is_said_to_be_unknown(dialect: str, sql: str) -> None:
    edges, notes = _edges(dialect, sql)
    assert ["s.c", "d.x"] not in edges
    assert notes


@pytest.mark.parametrize("body", ["v = (select c from s)", "v := (select c from s)", "r.v = (select c from s)"])
def test_an_assignment_of_plpgsql_with_an_equals_sign_counts(body: str) -> None:
    name = body.split()[0]
    sql = f"do $$ declare v int; r record; begin {body}; insert into d(x) values ({name}); end $$;"
    assert _edges("postgres", sql) == ([["s.c", "d.x"]], [])


def test_a_text_is_no_variable_of_its_name() -> None:
    sql = "do $$ declare s text; v text; begin s := (select c from t); v := 's'; insert into d(x) values (v); end $$;"
    assert _edges("postgres", sql) == ([], [])
