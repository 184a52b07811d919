"""Templates: what a model's file configures, items that are not there, types and names that are not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from govtool.capture.dbt.project import read_projects
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script, read_scripts
from govtool.capture.sql.templates.template import render


def texts(template: str) -> list[str]:
    return [" ".join(variant.text.split()) for variant in render(template, dialect="snowflake").variants]


@pytest.mark.parametrize(
    "requested", ["model.config.materialized", "model.config.get('materialized')", "config.get('materialized')"]
)
@pytest.mark.parametrize(("kind", "expected"), [("table", ["select 1"]), ("incremental", ["select 1 where a"])])
def test_a_setting_of_the_file_is_known(requested: str, kind: str, expected: list[str]):
    template = "{{ config(materialized='%s') }}select 1{%% if %s == 'incremental' %%} where a{%% endif %%}"
    assert texts(template % (kind, requested)) == expected


def test_a_setting_that_the_file_has_not_may_be_made_elsewhere():
    template = "select 1{% if model.config.materialized == 'incremental' %} where a{% endif %}"
    assert texts(template) == ["select 1 where a", "select 1"]


def test_null_is_no_value():
    macro = "{% macro m(name = null) %}{% if name %}t.{{ name }}{% else %}null{% endif %}{% endmacro %}"
    assert texts(macro + "select {{ m() }} as taker from t") == ["select null as taker from t"]


def test_an_item_that_a_list_lacks_is_missing_sql():
    made = render("{% set rows = [] %}select a from {{ rows[0] }} where b", dialect="snowflake")
    assert " ".join(made.variants[0].text.split()) == "select a from item_0() where b"
    assert [note.message for note in made.diagnostics] == [
        "a list has no item 0: what it would be in the warehouse is not known here"
    ]


def test_a_part_of_an_unknown_name_is_called_after_it():
    template = (
        "{% set relation = run_query('show tables')[0] %}"
        "with {{ (['x', relation]|join).split('.')[2]|lower }} as (select 1 as a) select a from t"
    )
    (text,) = texts(template)
    assert text == "with run_query_0_2 as (select 1 as a) select a from t"


def test_a_part_of_a_name_is_no_call():
    assert texts("select a from {{ f() }}_raw, {{ g() }}_{{ h() }}_raw") == ["select a from f_raw, g_h_raw"]


@pytest.mark.parametrize("written", ["cast(a as {{ f() }})", "cast(g(a, b) as {{ kind }})", "a::{{ f() }}"])
def test_an_unknown_type_is_a_type(written: str):
    (text,) = texts(f"select {written} as x from t")
    assert "UNKNOWN" in text
    made = extract([Script("q.sql", f"create view v as select {written} as x from t")], Options(dialect="snowflake"))
    assert made.opaque == 0


def test_a_relation_may_follow_a_keyword_without_a_space():
    assert texts("select a from{{ ref('t') }} left join{{ ref('u') }} on b") == ["select a from t left join u on b"]


def read(root: Path, **files: str) -> Extraction:
    (root / "dbt_project.yml").write_text("name: shop\n")
    (root / "models").mkdir()
    for name, text in files.items():
        (root / "models" / f"{name}.sql").write_text(text)
    return extract(
        list(read_scripts([root], root=root)), Options(dialect="snowflake", projects=read_projects([root], root))
    )


def test_a_model_whose_template_lacks_sql_may_have_more_columns(tmp_path: Path):
    made = read(
        tmp_path,
        m="select a, {{ absent.columns() }} from t",
        n="select * from {{ ref('m') }}",
        o="select b from {{ ref('m') }} m",
    )
    complete = {derivation.target: derivation.columns_complete for derivation in made.derivations}
    assert not complete["n"]
    assert not [note for note in made.diagnostics if note.code == "unresolved"]
    (edge,) = [e for d in made.derivations if d.target == "o" for e in d.edges if e.target_path == "b"]
    assert (edge.source.dataset, edge.source.path) == ("m", "b")
