"""``0x``: no bytes, and no column."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script


def columns_read(sql: str, dialect: str) -> set[str]:
    made = extract([Script("q.sql", f"create view v as {sql}")], Options(dialect=dialect))
    assert made.understood == 1, made.diagnostics
    return {edge.source.path for derivation in made.derivations for edge in derivation.edges if edge.source.path != "*"}


@pytest.mark.parametrize("dialect", ["trino", "dune", "tsql"])
def test_it_is_a_literal(dialect: str):
    assert columns_read("select coalesce(a, 0x) as a, 0x as b from t where c <> 0x and d = 0x00", dialect) == {
        "a",
        "c",
        "d",
    }


@pytest.mark.parametrize("dialect", ["trino", "dune"])
def test_in_quotes_it_is_a_name(dialect: str):
    assert columns_read("select \"0x\" as a, '0x' as b from t", dialect) == {'"0x"'}


def test_where_it_may_be_a_name_it_is_one():
    assert columns_read("select 0x as a from t", "mysql") == {'"0x"'}
