"""Macros that are understood without their package: dbt's own, dbt_utils, fivetran_utils."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.capture.sql.templates.macros import DbtProject, Package
from govtool.capture.sql.templates.packages.known import PACKAGES

DIALECTS = (
    "postgres", "snowflake", "bigquery", "redshift", "duckdb", "spark", "databricks", "trino", "athena", "tsql",
    "mysql", "clickhouse", "hive", "oracle", "fabric", "",
)  # fmt: skip


def read(
    models: dict[str, str], dialect: str = "postgres", *, variables: dict[str, object] | None = None
) -> Extraction:
    schema = schema_from_mapping({"shop": {"raw": {"id": "int", "Name": "text", "price": "int"}}}, dialect)
    project = DbtProject("", Package("test", {}, variables or {}))
    scripts = [Script(f"{name}.sql", text) for name, text in models.items()]
    return extract(scripts, Options(dialect=dialect, relation_from="{table}.sql", schema=schema, projects=(project,)))


def columns(extraction: Extraction, model: str = "m") -> list[str]:
    """The output columns of a model."""
    (derivation,) = [d for d in extraction.derivations if d.target == model]
    return [column.path for column in derivation.columns]


def flow(extraction: Extraction, kinds: tuple[str, ...] = ("identity", "transformation", "aggregation")) -> set[str]:
    """Edges of these kinds between columns, as ``a.b -> c.d``."""
    return {
        f"{e.source.dataset}.{e.source.path} -> {d.target}.{e.target_path}"
        for d in extraction.derivations
        for e in d.edges
        if e.kind.label in kinds
    }


def warnings(extraction: Extraction) -> list[str]:
    return [note.message for note in extraction.diagnostics if note.severity != "info"]


EXPRESSIONS = {
    "dbt.dateadd('day', 'n', 'd')": {"n", "d"},
    "dbt.dateadd(datepart='month', interval=-1, from_date_or_timestamp='d')": {"d"},
    "dbt.datediff('d', 'e', 'hour')": {"d", "e"},
    "dbt.datediff('d', 'e', \"'day'\")": {"d", "e"},
    "dbt.date_trunc('month', 'd')": {"d"},
    "dbt.last_day('d', 'month')": {"d"},
    "dbt.safe_cast('d', dbt.type_string())": {"d"},
    "dbt.cast('d', api.Column.translate_type('bigint'))": {"d"},
    "dbt.concat(['a', \"'-'\", 'b'])": {"a", "b"},
    "dbt.hash('a')": {"a"},
    "dbt.split_part('a', \"'/'\", 2)": {"a"},
    "dbt.array_append('a', 'b')": {"a", "b"},
    "dbt.position(\"'x'\", 'a')": {"a"},
    "dbt.right('a', 3)": {"a"},
    "dbt.length('a')": {"a"},
    "dbt.replace('a', \"'x'\", \"'y'\")": {"a"},
    "dbt.current_timestamp()": set(),
    'dbt.string_literal(dbt.escape_single_quotes("it\'s"))': set(),
    "dateadd('day', 1, 'd')": {"d"},
    "dbt_utils.dateadd('day', 1, 'd')": {"d"},
    "dbt_utils.generate_surrogate_key(['a', 'b'])": {"a", "b"},
    "dbt_utils.surrogate_key('a', 'b')": {"a", "b"},
    "dbt_utils.safe_divide('a', 'b')": {"a", "b"},
    "dbt_utils.safe_add(['a', 'b'])": {"a", "b"},
    "dbt_utils.safe_subtract('a', 'b')": {"a", "b"},
    "fivetran_utils.timestamp_add('day', 'n', 'd')": {"n", "d"},
    "fivetran_utils.json_parse('a', ['x', 0, 'y'])": {"a"},
    "fivetran_utils.json_extract(string='a', string_path='x')": {"a"},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_expressions_contribute_their_columns_in_every_dialect(dialect: str):
    wrong = {}
    for call, expected in EXPRESSIONS.items():
        made = read({"m": "select {{ " + call + " }} as x from t"}, dialect)
        found = {line.removeprefix("t.").partition(" -> ")[0].partition("[")[0] for line in flow(made)}
        if found != expected or warnings(made) or columns(made) != ["x"]:
            wrong[call] = (found, warnings(made))
    assert wrong == {}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_types_and_aggregates_parse_in_every_dialect(dialect: str):
    types = "".join(
        f", cast(a as {{{{ dbt.type_{kind}() }}}}) as c_{kind}"
        for kind in ("string", "timestamp", "float", "numeric", "bigint", "int", "boolean")
    )
    made = read(
        {"m": "select {{ dbt.bool_or('a > 1') }} as b, {{ dbt.any_value('a') }} as v" + types + " from t"}, dialect
    )
    assert warnings(made) == []
    assert len(columns(made)) == 9
    listed = read({"m": "select {{ dbt.listagg('a', \"', '\", 'order by b') }} as l from t group by d"}, dialect)
    assert warnings(listed) == []
    assert "t.a -> m.l" in flow(listed)


@pytest.mark.parametrize("dialect", ["postgres", "snowflake", "bigquery", "trino", "tsql"])
def test_star_with_known_columns(dialect: str):
    model = "select {{ dbt_utils.star(from=source('shop', 'raw'), except=['ID'], relation_alias='r', prefix='p_') }} from shop.raw r"
    made = read({"m": model}, dialect)
    assert warnings(made) == []
    assert [c.lower().strip('"') for c in columns(made)] == ["p_name", "p_price"]
    assert len(flow(made)) == 2


def test_star_without_known_columns_is_a_star_and_its_new_names_are_marked():
    made = read({"m": "select {{ dbt_utils.star(ref('t'), except=['id']) }} from t", "t": "select * from u"})
    assert [d for d in made.derivations if d.target == "m" and d.columns_complete] == []
    assert not any("macro" in message for message in warnings(made))
    made = read({"m": "select {{ dbt_utils.star(ref('t'), suffix='_x') }} from t", "t": "select * from u"})
    assert any("prefix or suffix" in message for message in warnings(made))
    assert made.understood == 0


def test_columns_come_from_models_in_any_order_through_other_templates():
    models = {
        "a_last": "select {{ dbt_utils.star(ref('b_middle'), except=['x']) }} from {{ ref('b_middle') }}",
        "b_middle": "select {{ dbt_utils.star(ref('c_first')) }}, 1 as x from {{ ref('c_first') }}",
        "c_first": "select {{ dbt_utils.star(source('shop', 'raw')) }} from {{ source('shop', 'raw') }}",
        "d_other": "select * from {{ ref('a_last') }}",
    }
    made = read(models)
    assert warnings(made) == []
    assert columns(made, "a_last") == columns(made, "d_other") == ["id", "name", "price"]
    again = read(dict(reversed(models.items())))
    assert flow(again) == flow(made)


def test_templates_that_wait_for_each_other_are_told_nothing():
    made = read(
        {
            "a": "select {{ dbt_utils.star(ref('b')) }} from {{ ref('b') }}",
            "b": "select {{ dbt_utils.star(ref('a')) }} from {{ ref('a') }}",
            "c": "select {{ dbt_utils.star(this) }} from {{ this }}",
        }
    )
    assert made.understood == 0
    assert made.statements == 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unpivot(dialect: str):
    model = (
        "{{ dbt_utils.unpivot(relation=source('shop', 'raw'), cast_to='int', exclude=['id'], remove=['name'], "
        "field_name='key', value_name='number') }}"
    )
    made = read({"m": model}, dialect)
    assert warnings(made) == []
    assert [c.lower().strip('"') for c in columns(made)] == ["id", "key", "number"]
    assert {line.lower().replace('"', "") for line in flow(made)} == {
        "shop.raw.id -> m.id",
        "shop.raw.price -> m.number",
    }


def test_unpivot_of_unknown_columns_is_marked():
    made = read({"m": "select * from ({{ dbt_utils.unpivot(ref('t'), exclude=['id']) }}) u"})
    assert any("dbt_utils.unpivot: the columns of t are not all known" in message for message in warnings(made))


def test_union_relations():
    models = {
        "m": "{{ dbt_utils.union_relations([ref('a'), ref('b')], exclude=['z'], source_column_name='src') }}",
        "a": "select id, name, 1 as z from shop.raw",
        "b": "select price, id from shop.raw",
    }
    made = read(models)
    assert warnings(made) == []
    assert columns(made) == ["src", "id", "name", "price"]
    assert {line for line in flow(made) if line.endswith("m.name")} == {"a.name -> m.name"}
    assert {line for line in flow(made) if line.endswith("m.id")} == {"a.id -> m.id", "b.id -> m.id"}
    unknown = read({**models, "b": "select * from nowhere"})
    assert warnings(unknown)[-1].startswith("* over b: its columns are not all known")


def test_pivot():
    made = read(
        {"m": "select id, {{ dbt_utils.pivot('name', ['S', 'M'], then_value='price') }} from shop.raw group by 1"}
    )
    assert warnings(made) == []
    assert columns(made) == ["id", '"S"', '"M"']
    assert 'shop.raw.price -> m."S"' in flow(made)
    assert 'shop.raw.name -> m."S"' in flow(made, ("conditional",))
    unknown = read(
        {"m": "select id, {{ dbt_utils.pivot('name', dbt_utils.get_column_values(ref('t'), 'name')) }} from shop.raw"}
    )
    assert unknown.understood == 0


def test_values_of_a_column_are_not_known():
    made = read(
        {
            "m": "{% set names = dbt_utils.get_column_values(source('shop', 'raw'), 'name') %}"
            "select id{% for n in names %}, sum(case when name = '{{ n }}' then price end) as {{ n }}_price{% endfor %}"
            " from shop.raw group by 1"
        }
    )
    assert any("the values of shop.raw.name are not known here" in message for message in warnings(made))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries(dialect: str):
    deduplicated = (
        "{{ dbt_utils.deduplicate(relation=source('shop', 'raw'), partition_by='id', order_by='price desc') }}"
    )
    made = read({"m": f"with d as ({deduplicated}) select * from d"}, dialect)
    assert warnings(made) == []
    assert len(columns(made)) == 3
    spine = "{{ dbt_utils.date_spine(datepart='day', start_date='(select min(d) from t)', end_date='current_date') }}"
    made = read({"m": f"with s as ({spine}) select date_day from s"}, dialect)
    assert (warnings(made), columns(made)) == ([], ["date_day"])
    assert flow(made) == {"t.d -> m.date_day"}
    for query, column in (("{{ dbt_utils.generate_series(10) }}", "generated_number"),):
        made = read({"m": f"with s as ({query}) select {column} from s"}, dialect)
        assert (query, warnings(made), columns(made)) == (query, [], [column])


def test_columns_of_a_relation_for_macros_of_the_project():
    model = (
        "{% set cols = adapter.get_columns_in_relation(source('shop', 'raw')) %}"
        "select {% for c in cols if c.is_number() %}{{ c.name }} as {{ c.name }}_n{{ ',' if not loop.last }}{% endfor %}"
        " from shop.raw"
    )
    assert columns(read({"m": model})) == ["id_n", "price_n"]
    names = "select {{ dbt_utils.get_filtered_columns_in_relation(source('shop', 'raw'), except=['id'])|join(', ') }} from shop.raw"
    assert columns(read({"m": names}, "bigquery")) == ["name", "price"]


def test_staging_models_of_fivetran():
    stage = (
        "select {{ fivetran_utils.fill_staging_columns(adapter.get_columns_in_relation(REL), "
        "[{'name': 'id', 'datatype': 'int', 'alias': 'raw_id'}, {'name': 'gone', 'datatype': 'int'}]) }}"
        "{{ fivetran_utils.apply_source_relation('shop') }}{{ fivetran_utils.fill_pass_through_columns('more') }} from REL"
    )
    variables: dict[str, object] = {"more": ["price", {"name": "name", "alias": "n"}]}
    known = stage.replace("from REL", "from (select *, name as n from shop.raw) r").replace(
        "REL", "source('shop', 'raw')"
    )
    made = read({"m": known}, variables=variables)
    assert warnings(made) == []
    assert flow(made) == {"shop.raw.id -> m.raw_id", "shop.raw.price -> m.price", "shop.raw.name -> m.n"}
    assert "gone" in columns(made)
    unknown = stage.replace("from REL", "from t").replace("REL", "ref('t')")
    made = read({"m": unknown}, variables=variables)
    assert any("one that it lacks is null there" in message for message in warnings(made))
    assert "t.id -> m.raw_id" in flow(made)


def test_unions_of_fivetran_connections():
    model = "{{ fivetran_utils.union_connections('zendesk_sources', 'zendesk', 'ticket') }}"
    assert any("zendesk.ticket" in m for m in warnings(read({"m": model})))
    made = read({"m": model}, variables={"zendesk_sources": [{"name": "a"}]})
    assert any("fivetran_utils.union_connections" in message for message in warnings(made))
    over = "select row_number() over (partition by a{{ fivetran_utils.partition_by_source_relation('zendesk') }}) as x from t"
    assert warnings(read({"m": over})) == []


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package, macros in PACKAGES.items() for name in macros]
)
def test_no_macro_fails_without_arguments_or_with_unknown_ones(package: str, name: str):
    for arguments in ("", "nobody", "nobody, nobody, nobody", "none", "[], {}", "x=nobody"):
        made = read({"m": "select a {{ " + f"{package}.{name}({arguments})" + " }} from t"})
        assert not any("cannot be rendered" in message for message in warnings(made))


def test_a_project_overrides_what_is_understood_here():
    project = DbtProject("", Package("shop", {"default__star": "{% macro default__star(r) %}a as mine{% endmacro %}",
                                           "default__dateadd": "{% macro default__dateadd(p, n, d) %}mine({{ d }}){% endmacro %}"}))  # fmt: skip
    text = "select {{ dbt_utils.star(ref('t')) }}, {{ dbt.dateadd('day', 1, 'b') }} as c from t"
    made = extract([Script("m.sql", text)], Options("postgres", relation_from="{table}.sql", projects=(project,)))
    assert flow(made) == {"t.a -> m.mine", "t.b -> m.c"}


def test_a_warning_of_a_macro_is_shown_and_beside_a_parse_error_it_is_a_warning():
    for text, severity in (("select 1 as a", "info"), ("select ( as a", "warning")):
        made = extract([Script("m.sql", "{% do exceptions.warn('no columns') %}" + text)], Options("postgres"))
        (note,) = (note for note in made.diagnostics if note.code == "template")
        assert (note.severity, note.message) == (severity, "a macro warns: no columns")
