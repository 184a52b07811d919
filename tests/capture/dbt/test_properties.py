"""Property files of dbt projects: where sources are, which columns are described, and what that is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from govtool.capture.dbt.files import yaml_mapping
from govtool.capture.dbt.project import read_projects, unread_settings
from govtool.capture.dbt.properties import properties_in
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import read_scripts
from govtool.capture.sql.resolve.deferred import described_tables
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.capture.sql.templates.properties import DescribedColumn, SourceTable

SOURCES = """
sources:
  - name: shop
    tables:
      - name: orders
        columns: [{name: id}, {name: amount}]
      - name: users
        columns: [{name: id}, {name: Email, description: never null}]
      - name: visits
"""
PROJECT = {"dbt_project.yml": "name: shop\n", "models/sources.yml": SOURCES}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def read(folder: Path, dialect: str = "postgres", schema: object = None, **variables: object) -> Extraction:
    options = Options(
        dialect=dialect,
        projects=read_projects([folder], folder),
        schema=schema_from_mapping(schema, dialect) if schema is not None else None,
        variables=variables,
    )
    return extract(list(read_scripts([folder], root=folder)), options)


def edges(extraction: Extraction) -> set[tuple[str, str]]:
    """Value flow, as pairs of columns."""
    return {
        (f"{edge.source.dataset}.{edge.source.path}", f"{derivation.target}.{edge.target_path}")
        for derivation in extraction.derivations
        for edge in derivation.edges
        if edge.kind.label in ("identity", "transformation", "aggregation")
    }


def codes(extraction: Extraction) -> set[str]:
    return {note.code for note in extraction.diagnostics if note.severity != "info"}


JOIN = "select {} from {{{{ source('shop', '{}') }}}} o join {{{{ source('shop', '{}') }}}} u on u.key = o.key"


def joined(column: str, left: str = "orders", right: str = "users") -> dict[str, str]:
    return {"models/m.sql": JOIN.format(column, left, right)}


# -- which relation a column is of -------------------------------------------------------------------------------------


def test_a_column_is_of_the_one_relation_that_describes_it(tmp_path: Path):
    made = read(write(tmp_path, {**PROJECT, **joined("email, amount")}))
    assert edges(made) == {("shop.users.email", "m.email"), ("shop.orders.amount", "m.amount")}
    assert made.understood == 1


@pytest.mark.parametrize(
    ("column", "right"),
    [
        ("id", "users"),  # both describe it
        ("note", "users"),  # none does
        ("amount", "visits"),  # of one nothing is described, and descriptions go out of date
    ],
)
def test_otherwise_it_stays_ambiguous(tmp_path: Path, column: str, right: str):
    made = read(write(tmp_path, {**PROJECT, **joined(column, right=right)}))
    assert codes(made) == {"ambiguous"}
    assert edges(made) == set()
    (note,) = [note for note in made.diagnostics if note.code == "ambiguous"]
    assert set(note.candidates) == {f"shop.orders.{column}", f"shop.{right}.{column}"}


def test_usage_goes_before_a_description(tmp_path: Path):
    usage = "select u.amount from {{ source('shop', 'users') }} u"
    made = read(write(tmp_path, {**PROJECT, **joined("amount"), "models/usage.sql": usage}))
    assert ("shop.users.amount", "m.amount") in edges(made)
    assert ("shop.orders.amount", "m.amount") not in edges(made)


def test_usage_of_both_is_not_decided_by_a_description(tmp_path: Path):
    usage = "select u.amount as a, o.amount as b from {{ source('shop', 'users') }} u, {{ source('shop', 'orders') }} o"
    made = read(write(tmp_path, {**PROJECT, **joined("amount"), "models/usage.sql": usage}))
    assert codes(made) == {"ambiguous"}


def test_a_schema_goes_before_descriptions(tmp_path: Path):
    write(tmp_path, {**PROJECT, **joined("amount")})
    schema = {"shop.users": ["key", "amount"], "shop.orders": ["key", "total"]}
    assert edges(read(tmp_path, schema=schema)) == {("shop.users.amount", "m.amount")}


def test_a_description_reaches_through_subqueries_and_common_tables(tmp_path: Path):
    model = """
        with o as (select * from {{ source('shop', 'orders') }})
        select amount, email from o join (select * from {{ source('shop', 'users') }}) as u on o.key = u.key
    """
    made = read(write(tmp_path, {**PROJECT, "models/m.sql": model}))
    assert edges(made) == {("shop.users.email", "m.email"), ("shop.orders.amount", "m.amount")}


def test_a_column_that_an_outer_query_is_known_to_have_stays_ambiguous(tmp_path: Path):
    model = """
        select 1 as one from (select 2 as amount) as known where exists (
            select 1 from {{ source('shop', 'orders') }} o join {{ source('shop', 'users') }} u on o.key = u.key
            where amount > 0)
    """
    assert codes(read(write(tmp_path, {**PROJECT, "models/m.sql": model}))) == {"ambiguous"}


def test_a_described_column_is_not_the_row_of_an_alias_of_its_name(tmp_path: Path):
    model = "with email as (select * from {{ source('shop', 'users') }}) select id, email from email"
    made = read(write(tmp_path, {**PROJECT, "models/m.sql": model}))
    assert edges(made) == {("shop.users.id", "m.id"), ("shop.users.email", "m.email")}


# -- what is described is not all, and need not be there ---------------------------------------------------------------


def test_a_star_stays_open_and_descriptions_make_no_column(tmp_path: Path):
    made = read(write(tmp_path, {**PROJECT, "models/m.sql": "select * from {{ source('shop', 'orders') }}"}))
    (derivation,) = made.derivations
    assert (derivation.columns_complete, [column.path for column in derivation.columns]) == (False, [])
    assert codes(made) == {"star-unresolved"}


def test_columns_in_a_relation_are_not_those_described(tmp_path: Path):
    model = """
        select {% for c in adapter.get_columns_in_relation(source('shop', 'orders')) %}{{ c.name }}, {% endfor %} 1 as n
        from {{ source('shop', 'orders') }}
    """
    made = read(write(tmp_path, {**PROJECT, "models/m.sql": model}))
    assert any("are not all known" in note.message for note in made.diagnostics)


CONTRACT = """
models:
  - name: m
    config: {contract: {enforced: %s}}
    columns:
      - {name: id, data_type: integer}
      - {name: email, data_type: text}
"""


@pytest.mark.parametrize("enforced", [True, False])
def test_an_enforced_contract_names_all_columns(tmp_path: Path, enforced: bool):
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/m.yml": CONTRACT % str(enforced).lower(),
        "models/m.sql": "select * from {{ source('raw', 'users') }}",
        "models/n.sql": "select * from {{ ref('m') }}",
    }
    made = read(write(tmp_path, files))
    (columns,) = [[c.path for c in d.columns] for d in made.derivations if d.target == "n"]
    assert columns == (["id", "email"] if enforced else [])


def test_what_sql_says_of_a_model_goes_before_its_description(tmp_path: Path):
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/m.yml": "models: [{name: m, columns: [{name: gone}, {name: id}]}]\n",
        "models/m.sql": "select id, email from {{ source('raw', 'users') }}",
        "models/n.sql": "select * from {{ ref('m') }}",
    }
    made = read(write(tmp_path, files))
    assert [[c.path for c in d.columns] for d in made.derivations if d.target == "n"] == [["id", "email"]]


# -- where sources are -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "table", "expected"),
    [
        ("", "", "crm.users"),
        ("schema: raw_crm", "identifier: users_v2", "raw_crm.users_v2"),
        ("{schema: raw_crm, database: lake}", "", "lake.raw_crm.users"),
        ("schema: \"{{ var('raw') }}\"", "", "landing.users"),
        ("schema: \"{{ env_var('RAW', var('raw')) }}_crm\"", "", "landing_crm.users"),
        # What depends on the connection or on the environment is not known.
        ("schema: \"{{ env_var('RAW') }}\"", "", "crm.users"),
        ("{schema: a, database: \"{{ 'b' if target.name == 'prod' else 'c' }}\"}", "", "a.users"),
        ('schema: "{{ broken"', "", "crm.users"),
    ],
)
def test_sources_are_called_as_their_properties_say(tmp_path: Path, source: str, table: str, expected: str):
    body = "".join(f", {part.strip('{}')}" if part.startswith("{s") else f", {part}" for part in [source] if part)
    files = {
        "dbt_project.yml": "name: shop\nvars: {raw: landing}\n",
        "models/s.yml": f"sources: [{{name: crm{body}, tables: [{{name: users{f', {table}' if table else ''}}}]}}]\n",
        "models/m.sql": "select email from {{ source('crm', 'users') }}",
    }
    made = read(write(tmp_path, files))
    assert edges(made) == {(f"{expected}.email", "m.email")}


def test_descriptions_belong_to_what_the_projects_own_macro_calls_a_source(tmp_path: Path):
    macro = """
        {% macro source(source_name, table_name, database='lake') %}
          {% set relation = builtins.source(source_name, table_name) %}
          {% if target.type == 'trino' %}{% do return(relation.replace_path(database=database)) %}{% endif %}
          {% do return(relation) %}
        {% endmacro %}
    """
    write(tmp_path, {**PROJECT, **joined("email"), "macros/source.sql": macro})
    assert edges(read(tmp_path, "trino")) == {("lake.shop.users.email", "m.email")}
    assert edges(read(tmp_path, "dune")) == {("lake.shop.users.email", "m.email")}
    assert edges(read(tmp_path, "postgres")) == {("shop.users.email", "m.email")}
    options = Options(dialect="trino", projects=read_projects([tmp_path], tmp_path))
    assert set(described_tables(options).described) == {"lake.shop.orders", "lake.shop.users"}
    with_schema = replace(options, schema=schema_from_mapping({"lake.shop.users": ["key"]}, "trino"))
    assert set(described_tables(with_schema).described) == {"lake.shop.orders"}


# -- reading -----------------------------------------------------------------------------------------------------------


def test_names_of_columns():
    text = """
models:
  - name: m
    columns:
      - name: plain
        data_type: varchar(10)
      - {name: Mixed, quote: true}
      - {name: '"In Quotes"'}
      - {name: address.zip}
      - {name: 'sku.'}
      - {name: 'a, b'}
      - {name: as renamed}
      - {name: 7}
      - just text
"""
    assert properties_in(yaml_mapping(text)).described["m"] == (
        DescribedColumn("plain", type="varchar(10)"),
        DescribedColumn("Mixed", quoted=True),
        DescribedColumn("In Quotes", quoted=True),
        DescribedColumn("address"),
    )


def test_versions_contracts_and_what_is_not_as_it_should_be():
    text = """
models:
  - name: m
    config: {contract: {enforced: true}}
    columns: [{name: a}]
    versions: [{v: 1}, {v: 2, columns: [{name: b}]}, {v: 3, defined_in: other}]
  - name: whole
    contract: {enforced: true}
    columns: [{name: a}]
  - name: odd
    config: {contract: {enforced: true}}
    columns: [{name: a}, {name: "b c"}]
  - columns: [{name: a}]
  - [nothing]
sources: {name: no list}
seeds: [{name: s, columns: {a: b}}]
snapshots: [{name: history, columns: [{name: id}]}]
"""
    stated = properties_in(yaml_mapping(text))
    assert {name: [c.name for c in columns] for name, columns in stated.described.items()} == {
        "m_v1": ["a"],
        "m_v2": ["b"],
        "other": ["a"],
        "m": ["a"],
        "whole": ["a"],
        "odd": ["a"],
        "history": ["id"],
    }
    assert stated.contracts == {"whole"}
    assert stated.sources == {}


@pytest.mark.parametrize(
    ("call", "latest", "expected"),
    [
        ("ref('m', v=1)", "", "m_v1"),
        ("ref('shop', 'm', version=2)", "", "second"),
        ("ref('m')", "", "m_v10"),
        ("ref('m')", "latest_version: 2, ", "second"),
        ("ref('other')", "", "other"),
    ],
)
def test_versions_are_called_as_their_files(tmp_path: Path, call: str, latest: str, expected: str):
    versions = "[{v: 10}, {v: 1}, {v: 2, defined_in: second}]"
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/m.yml": f"models: [{{name: m, {latest}versions: {versions}}}]\n",
        "models/n.sql": f"select a from {{{{ {call} }}}}",
    }
    assert edges(read(write(tmp_path, files))) == {(f"{expected}.a", "n.a")}


def test_the_project_goes_before_its_packages_and_files_are_read_once_for_all(tmp_path: Path):
    shared = "sources: [{name: raw, schema: from_%s, tables: [{name: t}, {name: %s}]}]\n"
    files = {
        "shared/s.yml": shared % ("shared", "u"),
        "a/dbt_project.yml": "name: a\nmodel-paths: [models, ../shared]\n",
        "a/dbt_packages/p/dbt_project.yml": "name: p\n",
        "a/dbt_packages/p/models/s.yaml": shared % ("package", "v"),
        "b/dbt_project.yml": "name: b\nmodel-paths: [../shared]\n",
    }
    first, second = read_projects([write(tmp_path, files)], tmp_path)
    schemas = {table: found.schema for (_, table), found in first.properties.sources.items()}
    assert schemas == {"t": "from_shared", "u": "from_shared", "v": "from_package"}
    assert second.properties.sources["raw", "t"] is first.properties.sources["raw", "t"]
    assert second.properties.sources["raw", "t"] == SourceTable(schema="from_shared")


def test_another_description_is_another_ingest(tmp_path: Path):
    write(tmp_path, PROJECT)
    (before,) = read_projects([tmp_path], tmp_path)
    write(tmp_path, {"models/sources.yml": SOURCES.replace("amount", "total")})
    (after,) = read_projects([tmp_path], tmp_path)
    assert before.digest != after.digest


def test_aliases_that_repeat_themselves_without_end_say_nothing(tmp_path: Path):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for last, name in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]\n"
    write(tmp_path, {**PROJECT, "models/bomb.yml": bomb + "sources: [{name: s, tables: [{name: t}]}]\n"})
    (project,) = read_projects([tmp_path], tmp_path)
    assert set(project.properties.sources) == {("shop", "orders"), ("shop", "users"), ("shop", "visits")}


def test_what_is_no_yaml_is_named_with_its_line(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: shop\nvars: [1\n")
    (tmp_path / "models" / "m.yml").write_text("models:\n  - name: !!python/name:os.system a\n")
    (tmp_path / "models" / "good.yml").write_text("models: [{name: a}]\n")
    notes = {note.file: note.message for note in unread_settings([tmp_path], tmp_path)}
    assert sorted(notes) == ["dbt_project.yml", "models/m.yml"]
    assert "line 3, column 1" in notes["dbt_project.yml"]
    assert "line 2, column 11" in notes["models/m.yml"]
