"""Templates to SQL: permissive, every branch, original lines, bounded."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.syntax.lexer import word_set
from govtool.capture.sql.templates.macros import DbtProject, MacroLibrary, Package
from govtool.capture.sql.templates.missing_values import is_unbounded
from govtool.capture.sql.templates.placeholders import fill
from govtool.capture.sql.templates.template import MAX_VARIANTS, Rendered, render


def texts(template: str, variables: dict[str, object] | None = None, **options: object) -> list[str]:
    """The variants, with single spaces."""
    rendered = render(template, variables, "models/orders.sql", **options)  # type: ignore[arg-type]
    return [" ".join(variant.text.split()) for variant in rendered.variants]


def codes(rendered: Rendered) -> list[str]:
    return [d.code for d in rendered.diagnostics]


def test_plain_sql_goes_through_untouched():
    text = "select '{' || a, j->'{}' from t  -- 100%\n"
    rendered = render(text)
    assert rendered.variants[0].text == text
    assert rendered.variants[0].line_of(7) == 7


def test_dbt_model():
    template = """{{ config(materialized='incremental', alias='o') }}
select {{ dbt_utils.star(from=ref('a')) }}, {{ var('days', 7) }} as days
from {{ ref('stg_orders') }} o
join {{ source('shop', 'customers') }} c using (id)
"""
    rendered = render(template, {}, "models/orders.sql")
    assert (
        " ".join(rendered.variants[0].text.split())
        == "select *, 7 as days from stg_orders o join shop.customers c using (id)"
    )
    assert rendered.relations == ("a", "shop.customers", "stg_orders")
    assert rendered.config == {"materialized": "incremental", "alias": "o"}


def test_lines_are_those_of_the_original():
    loop = "{% for c in ['x', 'y'] -%}\n  {{ c }},\n{% endfor %}\n"
    template = "{#- a\nb -#}\n\nselect a,\n" + loop + "  {{ ref(\n 'z'\n) }}\nfrom t\n"
    (variant,) = render(template).variants
    lines = {line.strip(): variant.line_of(number) for number, line in enumerate(variant.text.split("\n"), 1)}
    assert lines["select a,"] == 4
    assert lines["x,"] in (5, 6)
    assert lines["z"] == 8
    assert lines["from t"] == 11


def test_both_branches_of_an_undecided_if():
    template = "select a from t {% if is_incremental() %} where d > 1 {% else %} where true {% endif %}"
    assert texts(template) == ["select a from t where d > 1", "select a from t where true"]
    assert texts(template, {"is_incremental": lambda: False}) == ["select a from t where true"]


def test_tables_are_never_incremental():
    template = "{{ config(materialized='table') }}{% if is_incremental() %}a{% else %}b{% endif %}"
    assert texts(template) == ["b"]


def test_a_test_is_decided_the_same_way_everywhere():
    template = "{% if is_incremental() %}a{% endif %}{% if not is_incremental() %}b{% endif %}"
    assert texts(template) == ["a", "b"]
    template = (
        "{% if target.name == 'prod' %}a{% endif %}{% if target.name == 'dev' %}b{% endif %}"
        "{% if target.name != 'prod' %}c{% endif %}"
    )
    assert texts(template) == ["a", "bc"], "a value equals one constant at most"


def test_elif_and_independent_tests_are_not_multiplied():
    assert sorted(texts("{% if a %}1{% elif b %}2{% else %}3{% endif %}")) == ["1", "2", "3"]
    template = "select 1 " + "".join(f"{{% if f{i} %}}, c{i}{{% endif %}}" for i in range(30))
    rendered = render(template)
    assert len(rendered.variants) == MAX_VARIANTS
    assert codes(rendered) == ["template"]


def test_known_variables_decide():
    assert texts("{% if target.name == 'prod' %}a{% else %}b{% endif %}", {"target.name": "dev"}) == ["b"]
    assert texts("{{ var('x') }} {{ env }} {{ o.p.q }}", {"x": "1", "env": "e", "o": {"p": {"q": 3}}}) == ["1 e 3"]


def test_unknown_names_render_to_identifiers():
    assert texts("select {{ a }}, '{{ ds }}' from {{ project }}.{{ target.schema }}.t") == [
        "select a, 'ds' from project.target_schema.t"
    ]


def test_unknown_values_that_are_compared_are_no_columns():
    assert texts(
        "select a from {{ t }} where b >= {{ day }} and c in ({{ l }}) and d = {{ s }}.f(x) limit {{ n }}"
    ) == ["select a from t where b >= 'day' and c in ('l') and d = s.f(x) limit 'n'"]


def test_unknown_macros_fit_where_they_stand():
    rendered = render("select {{ f(a) }} as x\nfrom {{ t() }}\n{{ tail() }}")
    assert rendered.variants[0].text == "select f() as x\nfrom t()\n/* tail */"
    assert rendered.macros == ("f", "t", "tail")
    assert [(d.code, d.severity, d.line) for d in rendered.diagnostics] == [
        ("template", "warning", 1),
        ("template", "warning", 2),
        ("template", "warning", 3),
    ]


def test_macros_of_the_project():
    library = MacroLibrary(
        [
            "{% macro cents(c, n=2) -%}\n ({{ c }} / 100)\n{%- endmacro %}",
            "{% macro two() %}{{ return([1, 2]) }}{% endmacro %}",
        ]
    )
    assert texts(
        "select {{ cents('a') }}, {{ pkg.cents('b') }} {% for i in two() %}, {{ i }}{% endfor %}", macros=library
    ) == ["select (a / 100), (b / 100) , 1, 2"]


def test_macros_of_the_project_may_begin_with_an_underscore():
    library = MacroLibrary(
        [
            "{% macro _as(name, prefix='') %}as {{ prefix ~ '_' if prefix }}{{ name }}{% endmacro %}",
            "{% macro field(c) %}{{ c }}.x {{ _as('x', c) }}{% endmacro %}",
        ]
    )
    assert texts("select {{ field('a') }}, b {{ pkg._as('y') }}", macros=library) == ["select a.x as a_x, b as y"]
    helper = "{% macro _of(c) %}{{ c }} / 2{% endmacro %}"
    project = DbtProject("", Package("shop", {"_of": helper}), {"half": Package("half", {"_of": helper})})
    template = "select {{ shop._of('a') }}, {{ half._of('b') }}, {{ half._run }}, {{ half.__class__ }}"
    (text,) = texts(template, macros=MacroLibrary([], [project]))
    assert text.startswith("select a / 2, b / 2, ")
    assert "object" not in text


def test_null_has_no_value_to_jinja():
    macro = "{% macro named(c, alias=null) %}{{ c }} as {{ alias | default(c ~ '_1') }}{% endmacro %}"
    template = "select {{ named('a') }}, {{ named('b', 'c') }}, {{ 1 if null is none else 2 }}, {{ null or 3 }}"
    assert texts(template, macros=MacroLibrary([macro])) == ["select a as a_1, b as c, 2, 3"]


def test_names_that_are_not_plain_are_quoted_for_the_dialect():
    assert texts("select 1 from {{ ref('3pool') }}", dialect="trino") == ['select 1 from "3pool"']
    assert texts("select 1 from {{ source('my-db', 't') }}", dialect="bigquery") == ["select 1 from `my-db`.t"]


def test_unknown_values_unpack():
    assert texts("{% for a, b in x %}{{ a }} {{ b }}{% endfor %}{% set c, d = y %} {{ c }} {{ d }}") == [
        "x_item_1 x_item_2 y_1 y_2"
    ]


def test_relations_compare_by_name():
    assert texts("{% if ref('a') == ref('a') %}x{% endif %}{% if ref('a') == ref('b') %}y{% endif %}") == ["x"]


def test_raw_snapshots_tests_and_statements():
    assert texts("{% raw %}{{ a }}{% endraw %}") == ["{{ a }}"]
    assert texts("{% snapshot s %}select 1{% endsnapshot %}{% test t(m) %}select 2{% endtest %}") == [
        "CREATE TABLE s AS WITH dbt_snapshot AS (select 1 ) SELECT dbt_snapshot.*, MD5(CONCAT(CURRENT_TIMESTAMP)) AS "
        "dbt_scd_id, CURRENT_TIMESTAMP AS dbt_updated_at, CURRENT_TIMESTAMP AS dbt_valid_from, "
        "NULLIF(CURRENT_TIMESTAMP, CURRENT_TIMESTAMP) AS dbt_valid_to FROM dbt_snapshot;"
    ]
    assert texts("{% call statement('x') %}select 1{% endcall %}select 2") == ["select 2"]
    assert texts("{% import 'y' as y %}select 1") == ["select 1"]


def test_what_another_file_would_bring_is_reported_as_missing():
    rendered = render("{% import 'y' as y %}\n{% include 'x.sql' %}\nselect a from t\n{% include name %}", {}, "z.sql")
    assert "select a from t" in rendered.variants[0].text
    assert [(note.code, note.line, note.message) for note in rendered.diagnostics] == [
        ("template", 4, "the SQL of another file is missing: include is not followed"),
        ("template", 2, "the SQL of x.sql is missing: include is not followed"),
    ]


def test_an_invalid_template_loses_its_tags_and_is_reported():
    rendered = render("select a from {{ ref('t') }} where {{ b( \n{% if %}", {}, "x.sql")
    assert "from t where" in rendered.variants[0].text
    assert (codes(rendered), rendered.diagnostics[0].file) == (["template"], "x.sql")


def test_braces_of_something_else_are_no_template():
    text = "select format('{\"a\":%d,{%s}}', 1)"
    rendered = render(text)
    assert (rendered.variants[0].text, codes(rendered)) == (text, [])


def test_dataform():
    template = 'config { type: "table" }\njs { const a = 1; }\nselect a from ${ref("stg", "o")} where ${when(a(), "x")}'
    rendered = render(template, {}, "a.sqlx")
    assert "from stg.o where" in rendered.variants[0].text
    assert rendered.variants[0].text.count("\n") == 2


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
        "{{ 'a' * 10**10 }}",
        "{{ 10**10**10 }}",
        "{{ [1] * 10**10 }}",
        "{{ 'x'.ljust(10**9) }}",
        "{{ 'a'|center(10**9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ run_started_at.strftime('%1000000000d') }}",
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% set ns = namespace(x='a') %}{% for i in range(90) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x='a') %}{% for i in range(90) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x='aa') %}{% for i in range(90) %}{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}",
        "{% set ns = namespace(x=9) %}{% for i in range(90) %}{% set ns.x = ns.x * ns.x %}{% endfor %}{{ ns.x }}",
        "{% set l = [1] %}{% for i in range(90) %}{% do l.extend(l) %}{% endfor %}{{ l }}",
        "{% set a0 %}xxxxxxxxxx{% endset %}"
        + "".join(f"{{% set a{i + 1} %}}{f'{{{{ a{i} }}}}' * 10}{{% endset %}}" for i in range(30))
        + "{{ a30 }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% if a %}" * 300 + "{% endif %}" * 300,
        "{% test x",
    ],
)
def test_hostile_templates_are_bounded(template: str):
    rendered = render(template, {}, "x.sql")
    assert rendered.variants
    assert sum(len(variant.text) for variant in rendered.variants) < 20_000_000
    assert codes(rendered) in (["template"], [])


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ref.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ config.__class__.__init__.__globals__ }}",
        "{{ this.__class__ }}",
        "{{ modules.datetime.date.__subclasses__() }}",
        "{{ ('a'|attr('__class__')) }}",
        "{{ foo.__class__ }}",
        "{{ dbt._unknown }}{{ config._call }}{{ foo._name }}",
    ],
)
def test_the_sandbox_holds(template: str):
    for variant in render(template, {}, "x.sql").variants:
        assert "<" not in variant.text
        assert "uid=" not in variant.text


PACKAGED = DbtProject(
    "",
    Package("shop", {"forever": "{% macro forever(n) %}{{ pkg.again(n) }}{% endmacro %}"}),
    {
        "pkg": Package(
            "pkg",
            {
                "again": "{% macro again(n) %}{{ forever(n) }}{{ pkg.again(n) }}{% endmacro %}",
                "wide": "{% macro wide() %}{% for i in range(10**9) %}x{% endfor %}{% endmacro %}",
                "long": "{% macro long() %}{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
                "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}{% endmacro %}",
                "default__again2": "{% macro default__again2() %}{{ adapter.dispatch('again2', 'pkg')() }}{% endmacro %}",
                "include": "{% macro include() %}{% include '../../../etc/passwd' %}{% import '/etc/passwd' as p %}a"
                "{% endmacro %}",
                "queries": "{% macro queries() %}{% call statement('s', fetch_result=true) %}drop table t{% endcall %}"
                "{% set r = run_query('drop table t') %}{% do adapter.execute('drop table t') %}"
                "{% do run_query('drop table t') %}{{ load_result('s')['data'][0][0] }}{% endmacro %}",
            },
        )
    },
)


@pytest.mark.parametrize(
    "call",
    [
        "forever(1)",
        "pkg.again(1)",
        "pkg.wide()",
        "pkg.long()",
        "pkg.default__again2()",
        "adapter.dispatch('again2', 'pkg')()",
        "dbt_utils.group_by(10**9)",
        "dbt_utils.pivot('a', range(10**9))",
        "dbt_utils.generate_surrogate_key(range(10**7)|list)",
        "dbt_utils.star(ref('a'), except=range(10**9))",
        "fivetran_utils.json_parse('a', range(10**9))",
        "dbt.concat(['x' * 900000, 'x' * 900000])",
    ],
)
def test_hostile_packages_are_bounded(call: str):
    rendered = render("select {{ " + call + " }} as a from t", {}, "m.sql", macros=MacroLibrary([], [PACKAGED]))
    assert rendered.variants
    assert sum(len(variant.text) for variant in rendered.variants) < 20_000_000


def test_powers_are_bounded_by_what_they_make():
    assert texts("{% for i in range(1, 101) if 2 ** i > 10 ** 30 %}{{ i }} {% endfor %}") == ["100"]
    for power in ("2 ** 5000", "10 ** 2000", "(10 ** 300) ** 300", "2 ** -5000", "2.0 ** 5000", "'a' ** 2"):
        assert codes(render("{{ " + power + " }}", {}, "x.sql")) == ["template"]


def test_what_a_query_returns_is_said_to_be_missing_by_the_name_of_the_macro():
    template = "select {% for c in run_query('select c from n').columns[0].values() %}{{ c }},{% endfor %} 1 from t"
    rendered = render(template, {}, "m.sql")
    (note,) = rendered.diagnostics
    assert note.message == "the SQL of run_query is missing: what its query returns is not known here"
    assert is_unbounded(note)


def test_what_a_package_on_disk_would_ask_the_warehouse_is_understood_here():
    asking = "{% macro date_spine(a, b, c) %}{{ run_query('select 1').columns[0] }}{% endmacro %}"
    library = MacroLibrary(
        [], [DbtProject("", Package("shop"), {"dbt_utils": Package("dbt_utils", {"date_spine": asking})})]
    )
    (text,) = texts("with d as ({{ dbt_utils.date_spine('day', 'a', 'b') }}) select 1", macros=library)
    assert "as date_day" in text


def test_packages_read_no_files_and_run_nothing():
    library = MacroLibrary([], [PACKAGED])
    assert texts("select {{ pkg.include() }} from t", macros=library) == ["select a from t"]
    rendered = render("select {{ pkg.queries() }} as a from t", {}, "m.sql", macros=library)
    assert "drop" not in rendered.variants[0].text
    assert rendered.macros != ()


@pytest.mark.parametrize(
    "expression",
    [
        "modules.os.popen('id').read()",
        "modules.datetime.sys.modules",
        "modules.pytz.timezone.__globals__",
        "modules.__class__",
        "dbt_utils.__class__.__init__.__globals__",
        "dbt_utils._run.context",
        "dbt_utils.star.__closure__",
        "dbt_utils.star.__globals__",
        "pkg._run",
        "pkg.again.__self__",
        "builtins.ref.__globals__",
        "adapter._run.project",
        "adapter.dispatch.__func__.__globals__",
        "api.Relation._run",
        "api.Relation.create.__func__",
        "api.Column.create('a').__class__.__mro__",
        "target.__class__.__base__.__subclasses__()",
        "target['__class__']",
        "model.__dict__",
        "statement.__class__.__call__.__globals__",
        "ref('a').__class__",
        "ref('a').include.__func__.__globals__",
        "context['__builtins__']",
        "builtins['__import__']('os')",
        "(dbt_utils|attr('_run'))",
        "('{0.__class__.__init__.__globals__}'.format(adapter))",
        "('%s'|format(adapter._run))",
    ],
)
def test_the_sandbox_holds_for_packages(expression: str):
    library = MacroLibrary([], [PACKAGED])
    for variant in render("{{ " + expression + " }}", {}, "x.sql", macros=library).variants:
        for word in ("<", "uid=", "MAX_VALUE", "Package("):
            assert word not in variant.text


def test_rendering_does_not_depend_on_the_day():
    assert texts("{{ modules.datetime.date.today() }} {{ run_started_at.strftime('%Y') }}") == ["2000-01-01 2000"]


def test_templates_do_not_change_the_variables():
    variables: dict[str, object] = {"l": [1]}
    render("{% do l.append(2) %}{{ l }}", variables)
    assert variables == {"l": [1]}


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "\n",
                *sorted(word_set("""
                {{ }} {% %} {# #} if a endif for in endfor set = 'x' ( ) macro endmacro m | upper .
                not else elif select range [ ] raw endraw call endcall ~ -
                """)),
            ]
        ),
        max_size=30,
    ).map(" ".join)
)  # fmt: skip
def test_no_template_raises(template: str):
    rendered = render(template, {}, "x.sql")
    assert rendered.variants
    for variant in rendered.variants:
        assert not any("\ue000" <= char <= "\ue003" for char in variant.text)
        assert variant.line_of(10**6) >= 1


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("select * from ${db}.t_${env}", "select * from db.t_env"),
        ("select '${hiveconf:day}', ${hiveconf:x}", "select 'day', x"),
        ("select * from t where x = %(y)s", "select * from t where x = :y"),
        ("select * from {schema}.{table} where a = '{b}'", "select * from schema.table where a = '{b}'"),
        ("select {'a': 1}, '{x}' -- {y}", "select {'a': 1}, '{x}' -- {y}"),
        ("select :'v', :\"n\" from t", "select 'v', \"n\" from t"),
        ('select src:"key" from t', 'select src:"key" from t'),
        ("select ? , :a, @b, $1", "select ? , :a, @b, $1"),
    ],
)
def test_parameters(text: str, filled: str):
    assert fill(text) == filled


def test_parameters_take_their_value():
    assert fill("select * from ${db}.t where a = {n}", {"db": "prod", "n": 5}) == "select * from prod.t where a = 5"


def test_adapter_dispatch_finds_the_macro_of_the_dialect():
    macros = MacroLibrary(
        [
            "{% macro cents(c) %}{{ return(adapter.dispatch('cents')(c)) }}{% endmacro %}"
            "{% macro default__cents(c) %}({{ c }} / 100){% endmacro %}"
            "{% macro snowflake__cents(c) %}div0({{ c }}, 100){% endmacro %}"
        ]
    )
    template = "select {{ cents('price') }} as price from t"
    assert texts(template, macros=macros, dialect="postgres") == ["select (price / 100) as price from t"]
    assert texts(template, macros=macros, dialect="snowflake") == ["select div0(price, 100) as price from t"]


def test_an_unknown_macro_that_is_a_whole_query():
    template = "with d as ( -- not 'BQ'\n {{ dates.spine(10) }}\n) select * from d where x in ({{ more() }})"
    assert texts(template) == [
        "with d as ( -- not 'BQ' SELECT * FROM dates_spine() ) select * from d where x in (more())"
    ]


@pytest.mark.parametrize(
    ("template", "opaque"),
    [
        ("{{ macro_that_is_not_there() }}", 1),
        ("{% include 'loads.sql' %}", 1),
        ("{% do load() %}\nselect 1 as one", 1),
        ("{% macro all() %}{% do load() %}{% endmacro %}{% do all() %}select 1 as one", 1),
        ("{{ config(pre_hook=load()) }}\nselect 1 as one", 1),
        ("{{ config({'post-hook': ['insert into d select c from s']}) }}\nselect 1 as one", 1),
        ("{{ config(post_hook=['grant select on {{ this }} to r', {'sql': 'analyze t'}]) }}\nselect 1 as one", 0),
        ("{{ config(post_hook='analyze t; insert into d select c from s;') }}\nselect 1 as one", 1),
        ("{{ config(pre_hook='begin insert into d select c from s; end') }}\nselect 1 as one", 1),
        ("{{ config(pre_hook='begin transaction; set x = 1; commit;') }}\nselect 1 as one", 0),
        ("{% call statement('load') %} insert into d select c from s {% endcall %}\nselect 1 as one", 1),
        ("{% call statement('load') %} select 1; delete from d {% endcall %}\nselect 1 as one", 1),
        ("{% call statement('load') %} select c into d from s {% endcall %}\nselect 1 as one", 1),
        ("{% call statement('load') %} {{ load() }} {% endcall %}\nselect 1 as one", 1),
        ("{% call statement('look', fetch_result=True) %} select 1 {% endcall %}\nselect 1 as one", 0),
        ("{% set names = [] %}{% do names.append('a') %}{% do others.append('b') %}select 1 as one", 0),
    ],
)
def test_sql_that_is_run_beside_the_statements_and_not_read_is_counted(template, opaque):
    made = extract([Script("m.sql", template)], Options(dialect="snowflake"))
    assert made.opaque == opaque
    assert made.statements == made.understood + opaque
    assert all(shortfall.words == () for shortfall in made.shortfalls)  # they could reach anything
