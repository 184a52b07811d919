"""Names that may mean the same data: tables and the files they lie in, tables whose schema a template leaves open."""

from __future__ import annotations

import pytest

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.query.changes.impact import expand, impact

S = "create table s (c int);"
OUT = "insert overwrite directory 's3://b/p' using parquet select c from s;"


def reached(text: str, subject: str, dialect: str = "spark") -> dict[str, str]:
    index = index_of(extract([Script("a.sql", text)], Options(dialect=dialect)).derivations)
    return {e.column: e.verdict.label for e in expand(index, impact(index, subject))}


@pytest.mark.parametrize(
    "text",
    [
        f"{S} {OUT} create external table t (c int) location 's3a://b/p/'; create view v as select c from t;",
        f"{S} create table t (c int) using parquet location 's3n://b/p/'; insert into t select c from s;"
        " create view v as select c from parquet.`s3://b/p`;",
        f"{S} create table t (c int) using parquet options (path 's3://b/p'); insert overwrite t select c from s;"
        " create view v as select c from parquet.`s3a://b/p/`;",
        f"{S} create table t using parquet location 's3://b/p/' as select c from s;"
        " create view v as select c from parquet.`s3://b/p`;",
    ],
)
def test_a_table_and_the_files_that_it_lies_in_hold_the_same(text):
    assert reached(text, "s.c")["v.c"] == "changes"


def test_columns_of_files_that_nobody_here_writes_are_taken_by_name():
    text = "create external table t (c int) location 's3://b/p'; create view v as select c from t;"
    assert reached(text, "s3://b/p.c")["v.c"] == "changes"


OPEN = "create table prod.t (a int); create table prod.d (x int); create table s (a int);"


def test_a_table_whose_schema_a_template_leaves_open_may_be_any_of_its_name():
    text = (
        f"{OPEN} insert into {{{{ env }}}}.d (x) select a from {{{{ env }}}}.t; create view v as select x from prod.d;"
    )
    found = extract([Script("a.sql", text)], Options(dialect="postgres"))
    index = index_of(found.derivations)
    assert {e.column: e.verdict.label for e in expand(index, impact(index, "prod.t.a"))}["v.x"] == "unknown"
    messages = [note.message for note in found.diagnostics]
    assert "env has no value: env.t may be prod.t: give --var env=NAME" in messages
    given = extract([Script("a.sql", text)], Options(dialect="postgres", variables={"env": "prod"}))
    assert not given.diagnostics


def test_a_schema_that_is_left_open_is_a_name_where_no_other_table_is_called_so():
    text = "create table d (x int); insert into d (x) select a from {{ env }}.t;"
    assert not extract([Script("a.sql", text)], Options(dialect="postgres")).diagnostics
