"""dbt projects as files: packages on disk, search orders, variables, seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from govtool.capture.dbt.project import read_projects
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import read_scripts


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def read(folder: Path, dialect: str = "postgres", root: Path | None = None) -> Extraction:
    root = root or folder
    return extract(
        list(read_scripts([folder], root=root)),
        Options(dialect=dialect, projects=read_projects([folder], root)),
    )


def edges(extraction: Extraction) -> set[tuple[str, str]]:
    """Value flow, as pairs of columns."""
    return {
        (f"{edge.source.dataset}.{edge.source.path}", f"{derivation.target}.{edge.target_path}")
        for derivation in extraction.derivations
        for edge in derivation.edges
        if edge.kind.label in ("identity", "transformation", "aggregation")
    }


PACKAGE = {
    "dbt_packages/money/dbt_project.yml": "name: money\nvars: {money: {scale: 100}, unit: cents}\n",
    "dbt_packages/money/macros/cents.sql": """
        {% macro cents(c) %}{{ return(adapter.dispatch('cents', 'money')(c)) }}{% endmacro %}
        {% macro default__cents(c) %}{{ helper(c) }} / {{ var('scale') }}{% endmacro %}
        {% macro bigquery__cents(c) %}safe_divide({{ c }}, {{ var('scale') }}){% endmacro %}
        {% macro helper(c) %}abs({{ c }}){% endmacro %}
        {#- {% macro commented(c) %}no{% endmacro %} -#}
    """,
}
MODEL = "select {{ money.cents('price') }} as price from {{ ref('orders') }}"


def text_of(folder: Path, dialect: str = "postgres") -> str:
    """The one statement of the one model, with single spaces."""
    (derivation,) = read(folder / "models", dialect, folder).derivations
    return " ".join(derivation.statement.text.split())


def test_macros_of_a_package_on_disk(tmp_path: Path):
    write(tmp_path, {"dbt_project.yml": "name: shop\n", "models/m.sql": MODEL, **PACKAGE})
    # A package's ``vars`` count for its own models; a macro sees those of the model that calls it.
    write(tmp_path, {"dbt_project.yml": "name: shop\nvars: {scale: 1000}\n"})
    assert text_of(tmp_path) == "select abs(price) / ? as price from orders"
    assert text_of(tmp_path, "bigquery") == "select safe_divide(price, ?) as price from orders"


@pytest.mark.parametrize(
    ("settings", "macro", "expected"),
    [
        # The project goes before the namespace's package unless ``dispatch:`` says otherwise.
        ("name: shop\n", "{% macro default__cents(c) %}mine({{ c }}){% endmacro %}", "mine(price)"),
        ("name: shop\n", "{% macro bigquery__cents(c) %}mine({{ c }}){% endmacro %}", "abs(price) / scale"),
        (
            "name: shop\ndispatch: [{macro_namespace: money, search_order: [money, shop]}]\n",
            "{% macro default__cents(c) %}mine({{ c }}){% endmacro %}",
            "abs(price) / scale",
        ),
        # What a package calls without its name is its own first.
        ("name: shop\n", "{% macro helper(c) %}mine({{ c }}){% endmacro %}", "abs(price) / scale"),
    ],
)
def test_dispatch(tmp_path: Path, settings: str, macro: str, expected: str):
    write(tmp_path, {"dbt_project.yml": settings, "macros/a.sql": macro, "models/m.sql": MODEL, **PACKAGE})
    assert text_of(tmp_path) == f"select {expected} as price from orders"


def test_redshift_takes_what_is_for_postgres(tmp_path: Path):
    macros = "{% macro default__f() %}a{% endmacro %}{% macro postgres__f() %}b{% endmacro %}"
    model = "select {{ adapter.dispatch('f')() }} from t"
    write(tmp_path, {"dbt_project.yml": "name: shop\n", "macros/f.sql": macros, "models/m.sql": model})
    assert text_of(tmp_path, "redshift") == "select b from t"
    assert text_of(tmp_path, "snowflake") == "select a from t"


def test_local_packages_macro_paths_and_other_install_paths(tmp_path: Path):
    write(
        tmp_path,
        {
            "shop/dbt_project.yml": "name: shop\nmacro-paths: [../shared]\npackages-install-path: deps\n",
            "shop/packages.yml": "packages:\n  - local: ../lib\n  - package: acme/absent\n    version: 1.0.0\n",
            "shop/deps/other/dbt_project.yml": "name: other\n",
            "shop/deps/other/macros/o.sql": "{% macro o(c) %}o({{ c }}){% endmacro %}",
            "lib/dbt_project.yml": "name: lib\n",
            "lib/macros/l.sql": "{% macro l(c) %}l({{ c }}){% endmacro %}",
            "shared/s.sql": "{% macro s(c) %}s({{ c }}){% endmacro %}",
            "shop/models/m.sql": "select {{ lib.l('a') }}, {{ other.o('b') }}, {{ s('c') }} from t",
        },
    )
    (tmp_path / ".git").mkdir()
    assert text_of(tmp_path / "shop") == "select l(a), o(b), s(c) from t"
    (project,) = read_projects([tmp_path / "shop"], tmp_path)
    assert (project.folder, set(project.packages), project.missing) == ("shop", {"lib", "other"}, {"absent"})


def test_two_projects_do_not_share_macros(tmp_path: Path):
    for name in ("a", "b"):
        write(
            tmp_path,
            {
                f"{name}/dbt_project.yml": f"name: {name}\n",
                f"{name}/macros/f.sql": "{% macro f() %}" + name + "_col{% endmacro %}",
                f"{name}/models/{name}_model.sql": "select {{ f() }} as x from t",
            },
        )
    found = edges(read(tmp_path))
    assert found == {("t.a_col", "a_model.x"), ("t.b_col", "b_model.x")}


def test_dots_in_a_path_change_no_folder_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "dw", {"dbt_project.yml": "name: dw\n", "tests/dbt_project.yml": "name: dw_tests\n"})
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = [(project.folder, project.own.name) for project in read_projects(["../dw"], tmp_path / "dw")]
    assert found == [("", "dw"), ("tests", "dw_tests")]


def test_a_macro_of_the_project_goes_before_a_name_of_dbt(tmp_path: Path):
    macro = "{% macro source(a, b) %}{% do return(builtins.source(a, b).replace_path(database='lake')) %}{% endmacro %}"
    model = "select x from {{ source('shop', 'orders') }}"
    write(tmp_path, {"dbt_project.yml": "name: shop\n", "macros/s.sql": macro, "models/m.sql": model})
    assert text_of(tmp_path) == "select x from lake.shop.orders"


def test_variables_of_the_project(tmp_path: Path):
    settings = """
name: shop
vars:
  orders: "{{ source('shop', 'orders') }}"
  flag: false
  nothing: null
  shop: {column: a}
  loop: "{{ var('loop') }}"
"""
    model = (
        "select {{ var('column', 'b') }}, {{ var('loop') }}{% if var('flag', true) %}, c{% endif %}"
        "{% if var('nothing', 1) is none %}, d{% endif %}{% if var('absent', none) is none %}, e{% endif %}"
        " from {{ var('orders') }}"
    )
    write(tmp_path, {"dbt_project.yml": settings, "models/m.sql": model})
    made = text_of(tmp_path)
    assert made.startswith("select a, ")
    assert made.endswith(", d, e from shop.orders")
    assert ", c" not in made


def test_columns_of_seeds(tmp_path: Path):
    write(
        tmp_path,
        {
            "dbt_project.yml": "name: shop\nseed-paths: [data]\n",
            "data/raw/payments.csv": "\ufeffid,Amount\n1,2\n",
            "data/broken.csv": "a,,a\n",
            "models/m.sql": "select * from {{ ref('payments') }}",
            "models/n.sql": "select * from {{ ref('broken') }}",
        },
    )
    made = read(tmp_path)
    assert edges(made) == {("payments.id", "m.id"), ("payments.amount", "m.amount")}
    assert (made.understood, made.partial) == (1, 1)


def test_what_is_missing_is_named_with_the_command(tmp_path: Path):
    write(
        tmp_path,
        {
            "dbt_project.yml": "name: shop\n",
            "packages.yml": "packages: [{package: acme/widgets, version: 1}]\n",
            "package-lock.yml": "packages: [{name: gadgets, package: acme/gizmos, version: 1}]\n",
            "models/m.sql": "select {{ widgets.turn('a') }} as a, {{ gadgets.f() }} as b, {{ other.g() }} as c from t",
        },
    )
    messages = [note.message for note in read(tmp_path).diagnostics]
    assert messages == [
        "macro gadgets.f is not known: package gadgets is not there; `dbt deps` installs it",
        "macro other.g is not known: if other is a package, `dbt deps` installs it",
        "macro widgets.turn is not known: package widgets is not there; `dbt deps` installs it",
    ]


def test_models_are_called_as_their_file_and_nothing_else_is(tmp_path: Path):
    write(
        tmp_path,
        {
            "shop/dbt_project.yml": "name: shop\nmodel-paths: [transform, ./more/models]\n",
            "shop/transform/staging/Orders.sql": "select id, price from {{ source('raw', 'orders') }}",
            "shop/more/models/report.sql": "select * from {{ ref('Orders') }}",
            "shop/analyses/asked.sql": "select price from {{ ref('report') }}",
            "shop/transformations/not_one.sql": "select id from {{ ref('report') }}",
            "elsewhere/models/loose.sql": "select 1 as one",
        },
    )
    targets = {d.statement.file: d.target for d in read(tmp_path).derivations if d.target_kind != "query"}
    assert targets == {"shop/transform/staging/Orders.sql": "orders", "shop/more/models/report.sql": "report"}
    assert len(read(tmp_path).derivations) == 5
    found = edges(read(tmp_path))
    assert {("raw.orders.price", "orders.price"), ("orders.price", "report.price")} <= found
    staging = tmp_path / "shop" / "transform" / "staging"
    assert [d.target for d in read(staging).derivations] == ["orders"]  # read alone, its folder is the root


def test_snapshots_are_tables_with_dbts_columns(tmp_path: Path):
    write(
        tmp_path,
        {
            "dbt_project.yml": "name: shop\n",
            "snapshots/all.sql": """
                {% snapshot orders_history %}
                  {{ config({'strategy': 'timestamp', 'unique_key': ['id', 'shop'], 'updated_at': 'changed'}) }}
                  with o as (select * from {{ source('raw', 'orders') }}) select id, shop, changed, price from o -- all
                {% endsnapshot %}
                {% snapshot shops_history %}
                  {{ config(strategy='check', unique_key='id', check_cols='all', hard_deletes='new_record',
                            snapshot_meta_column_names={'dbt_valid_to': 'until'}) }}
                  select id, name from {{ source('raw', 'shops') }}
                {% endsnapshot %}
            """,
            "models/open.sql": "select * from {{ ref('orders_history') }} where dbt_valid_to is null",
            "models/shops.sql": "select * from {{ ref('shops_history') }}",
        },
    )
    made = read(tmp_path)
    assert not made.diagnostics
    columns = {d.target: [c.path for c in d.columns] for d in made.derivations}
    own = ["dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to"]
    assert columns["open"] == ["id", "shop", "changed", "price", *own]
    assert columns["shops"] == ["id", "name", *own[:3], "until", "dbt_is_deleted"]
    sources = {target: {s for s, t in edges(made) if t == target} for _, target in edges(made)}
    assert sources["orders_history.dbt_scd_id"] == {"raw.orders.id", "raw.orders.shop", "raw.orders.changed"}
    assert sources["orders_history.dbt_valid_to"] == {"raw.orders.changed"}
    assert sources["shops_history.dbt_scd_id"] == {"raw.shops.id"}
    assert sources["open.price"] == {"orders_history.price"}
    assert "shops_history.dbt_valid_from" not in sources
    lines = {d.target: d.statement.line for d in made.derivations if d.statement.file == "snapshots/all.sql"}
    assert lines == {"orders_history": 2, "shops_history": 6}


def test_models_of_packages_on_disk_are_models(tmp_path: Path):
    write(
        tmp_path,
        {
            "dbt_project.yml": "name: shop\npackages-install-path: vendored\n",
            "models/m.sql": "select * from {{ ref('calendar') }}",
            "vendored/dates/dbt_project.yml": "name: dates\nsource-paths: [sql]\n",
            "vendored/dates/sql/calendar.sql": "select day from {{ source('raw', 'days') }}",
        },
    )
    assert ("calendar.day", "m.day") in edges(read(tmp_path))


def test_the_digest_changes_with_a_macro(tmp_path: Path):
    write(tmp_path, {"dbt_project.yml": "name: shop\n", "models/m.sql": MODEL, **PACKAGE})
    (before,) = read_projects([tmp_path / "models"], tmp_path / "models")
    assert before.folder == ""
    write(tmp_path, {"dbt_packages/money/macros/more.sql": "{% macro more() %}1{% endmacro %}"})
    (after,) = read_projects([tmp_path / "models"], tmp_path / "models")
    assert before.digest != after.digest
    assert after.digest == read_projects([tmp_path / "models"], tmp_path / "models")[0].digest


@pytest.mark.parametrize(
    "files",
    [
        {"dbt_project.yml": "[1, 2"},
        {"dbt_project.yml": "- a\n- b\n"},
        {"dbt_project.yml": "name: 5\nvars: 7\nmacro-paths: {a: b}\ndispatch: [1, {macro_namespace: 2}]\n"},
        {"dbt_project.yml": "name: a\n", "packages.yml": "packages: {a: 1}\n", "macros/m.sql": "{% macro broken( %}"},
        {"dbt_project.yml": "name: a\n", "packages.yml": "packages: [{local: .}, {local: ../..}, {git: 5}, x]\n"},
        {"dbt_project.yml": "vars: &a\n  b: *a\n"},
        {"dbt_project.yml": "a0: &a0 [1]\n" + "".join(f"a{i + 1}: &a{i + 1} [{f'*a{i}, ' * 9}*a{i}]\n" for i in range(30)) + "vars: {x: *a30}\n"},
    ],
)  # fmt: skip
def test_projects_that_are_damaged_or_hostile(tmp_path: Path, files: dict[str, str]):
    write(tmp_path, {**files, "models/m.sql": "select a, {{ var('x') }} as x, '{{ f() }}' as y from t"})
    (project,) = read_projects([tmp_path], tmp_path)
    assert project.digest
    assert ("t.a", "m.a") in edges(read(tmp_path))


def test_a_package_that_holds_itself(tmp_path: Path):
    write(
        tmp_path,
        {
            "dbt_project.yml": "name: a\n",
            "packages.yml": "packages: [{local: b}]\n",
            "b/dbt_project.yml": "name: b\n",
            "b/packages.yml": "packages: [{local: ..}, {local: .}]\n",
            "b/macros/f.sql": "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ b.f() }}{% endmacro %}",
            "models/m.sql": "select a, {{ b.f() }} as x from t",
        },
    )
    made = read(tmp_path)
    assert [note.code for note in made.diagnostics if note.severity == "warning"] == ["template"]


def test_macro_paths_that_lead_to_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("govtool.capture.dbt.files.MAX_FILES", 5)
    for i in range(12):
        write(tmp_path, {f"big/{i:02}/m.sql": "{% macro f" + str(i) + "() %}{% endmacro %}"})
    write(tmp_path, {"p/dbt_project.yml": f"name: a\nmacro-paths: ['{tmp_path}/big']\n"})
    (project,) = read_projects([tmp_path / "p"], tmp_path)
    assert len(project.own.macros) <= 6
