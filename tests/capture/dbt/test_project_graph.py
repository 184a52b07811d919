"""dbt's ``graph`` in templates: nodes and sources of a project, as its files tell them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from govtool.capture.dbt.project import read_projects
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import read_scripts
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.template import render

FILES = {
    "dbt_project.yml": "name: shop\nmodel-paths: [sql/models]\nmodels: {shop: {marts: {+tags: [nightly]}}}\n",
    "sql/models/schema.yml": """
sources:
  - {name: raw, schema: landing, tables: [{name: orders, identifier: ord_1, columns: [{name: id}]}]}
models:
  - name: people
    latest_version: 2
    versions: [{v: 1}, {v: 2}]
  - name: orders
    description: All of them
    config: {meta: {owner: ann, rank: 1, since: 2024-01-02}}
    columns: [{name: id, data_type: int, meta: {key: natural}}, {name: total}]
""",
    "sql/models/marts/orders.sql": "select id, total from {{ source('raw', 'orders') }}",
    "sql/models/marts/visits.sql": "select id from {{ source('raw', 'visits') }}",
    "sql/models/people_v1.sql": "select 1 as a",
    "sql/models/people_v2.sql": "select 1 as b",
    "seeds/lands.csv": "code\nde\n",
    "snapshots/kept.sql": "{% snapshot kept %} select id from {{ ref('orders') }} {% endsnapshot %}",
    "dbt_packages/util/dbt_project.yml": "name: util\n",
    "dbt_packages/util/models/days.sql": "select 1 as day",
}


def rendered(folder: Path, template: str) -> str:
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    library = MacroLibrary([], read_projects([folder], folder))
    (variant,) = render(template, {}, "sql/models/m.sql", macros=library).variants
    return re.sub(r"[\ue000-\uf8ff]\d*", "", variant.text)


def extracted(folder: Path) -> Extraction:
    options = Options(dialect="postgres", projects=read_projects([folder], folder))
    return extract(list(read_scripts([folder / "sql"], root=folder)), options)


def test_nodes_have_ids_files_and_packages(tmp_path: Path):
    found = rendered(
        tmp_path, "{% for id, n in graph.nodes.items() %}{{ id }} {{ n.original_file_path }}\n{% endfor %}"
    )
    assert found.split("\n") == [
        "model.shop.people.v1 sql/models/people_v1.sql",
        "model.shop.people.v2 sql/models/people_v2.sql",
        "model.shop.orders sql/models/marts/orders.sql",
        "model.shop.visits sql/models/marts/visits.sql",
        "seed.shop.lands seeds/lands.csv",
        "snapshot.shop.kept snapshots/kept.sql",
        "model.util.days models/days.sql",
        "",
    ]


def test_a_node_has_what_files_state_of_it(tmp_path: Path):
    template = """{% set n = graph['nodes']['model.shop.orders'] %}
        {{ n.name }}, {{ n.description }}, {{ n.tags | join }}, {{ n.meta.owner }}, {{ n.config.meta['owner'] }},
        {{ n.fqn | join('.') }}, {{ n.path }}, {{ n.columns.keys() | join(' ') }}, {{ n.columns.id.data_type }},
        {{ n.columns.id.meta.key }}, {{ n.meta.get('absent') is none }}, {{ graph.nodes['seed.shop.lands'].resource_type }},
        {{ graph.nodes['model.shop.people.v1'].name }}"""
    assert [text.strip() for text in rendered(tmp_path, template).split(",")] == [
        *("orders", "All of them", "nightly", "ann", "ann", "shop.marts.orders", "marts/orders.sql", "id total", "int"),
        *("natural", "True", "seed", "people"),
    ]


def test_a_source_is_where_its_file_has_it(tmp_path: Path):
    template = """{% for s in graph.sources.values() %}
        {{ s.unique_id }}, {{ s.source_name }}, {{ s.identifier }}, {{ s.relation_name }}{% endfor %}"""
    assert [text.strip() for text in rendered(tmp_path, template).split(",")] == [
        *("source.shop.raw.orders", "raw", "ord_1", "landing.ord_1"),
    ]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            "select {{ graph.nodes['model.shop.orders'].meta.rank }} as a from t",
            "graph.nodes: the files do not tell all",
        ),
        (
            "select a from {{ graph.nodes['model.shop.orders'].schema }}.orders",
            "graph.nodes: the files do not tell all",
        ),
        ("select a from {{ graph.exposures.values() | first }}", "graph.exposures: what dbt knows"),
    ],
)
def test_where_no_file_tells_a_value_sql_is_missing(tmp_path: Path, model: str, reason: str):
    rendered(tmp_path, "")
    (tmp_path / "sql" / "models" / "m.sql").write_text(model)
    made = extracted(tmp_path)
    assert [note.message for note in made.diagnostics if note.message.startswith(reason)]
    assert not any(edge.source.dataset.startswith("graph_nodes") for each in made.derivations for edge in each.edges)


def test_no_template_changes_what_another_sees(tmp_path: Path):
    change = "{% do graph.nodes.update({'x': 1}) %}{% do graph.nodes.clear() %}{{ graph.nodes | length }}"
    assert "7" in rendered(tmp_path, "{{ graph.nodes | length }}")
    library = MacroLibrary([], read_projects([tmp_path], tmp_path))
    render(change, {}, "sql/models/m.sql", macros=library)
    assert "7" in rendered(tmp_path, "{{ graph.nodes | length }}")


def test_a_model_over_nodes_that_a_loop_finds_reads_them(tmp_path: Path):
    model = """{% for node in graph.nodes.values() | sort(attribute='name') if 'nightly' in node.tags %}
        select id from {{ adapter.get_relation(node.database, node.schema, node.alias) }}
        {{ "union all" if not loop.last }}
    {% endfor %}"""
    rendered(tmp_path, "")
    (tmp_path / "sql" / "models" / "ids.sql").write_text(model)
    (ids,) = [each for each in extracted(tmp_path).derivations if each.target == "ids"]
    assert {edge.source.dataset for edge in ids.edges} == {"orders", "visits"}
