"""A folder of dbt as people have it: single models, descriptions, owners, tests and tags, selectors of dbt."""

from __future__ import annotations

import json

import pytest

FILES = {
    "dbt_project.yml": "name: shop\n",
    "models/staging/stg_users.sql": "select id as user_id, mail as email from {{ source('crm', 'users') }}",
    "models/marts/audience.sql": "select *, 1 as one from {{ ref('stg_users') }}",
    "models/docs.md": "{% docs whose %}Whose it is.\nReally.{% enddocs %}",
    "models/schema.yml": """
sources:
  - name: crm
    tags: [raw]
    tables:
      - name: users
        description: All users
        columns: [{name: mail, description: "E-mail address, PII"}]
models:
  - name: audience
    description: Who is written to
    group: growth
    config: {tags: [nightly], meta: {since: 2024-01-02, 1: odd}}
    columns:
      - name: email
        description: '{{ doc("whose") }}'
        data_tests: [not_null, {relationships: {to: ref('stg_users'), field: email}}, {accepted_values: {values: [x]}}]
groups:
  - name: growth
    owner: {name: Growth, email: growth@acme.test}
""",
}


@pytest.fixture
def dbt(store, project):
    """A project in ``shop``, ingested."""
    for name, text in FILES.items():
        file = project / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert store("ingest", "sql", "shop").code == 0
    return store


def test_what_property_files_state_is_explained(dbt):
    facts = json.loads(dbt("explain", "audience", "-f", "json").out)["facts"]
    assert {(fact["column"], fact["name"], fact["value"]) for fact in facts} == {
        (None, "dbt.id", "model.shop.audience"),
        (None, "description", "Who is written to"),
        (None, "tag", "nightly"),
        (None, "group", "growth"),
        (None, "owner", "Growth <growth@acme.test>"),
        (None, "meta.since", "2024-01-02"),
        (None, "meta.1", "odd"),
        ("email", "description", "Whose it is. Really."),
        ("email", "test", "not_null"),
        ("email", "test", "relationships(to: ref('stg_users'), field: email)"),
        ("email", "test", "accepted_values"),
    }
    assert {fact["file"] for fact in facts} == {"models/schema.yml"}
    assert "E-mail address, PII" in dbt("explain", "crm.users.mail").out


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("dbt_project.yml", "name: shop\nmodels: {shop: {marts: {+schema: gold}}}\n"),
        ("models/marts/audience.sql", "{{ config(materialized='view', alias='people') }} select 1 as one"),
        ("models/marts/audience.sql", "{{ config(tags=[var('t', 'a')], alias='people') }} select 1 as one"),
    ],
)
def test_names_that_dbt_would_give_are_noted(dbt, project, file, text):
    assert "dbt-names" not in dbt("coverage", "--details").out
    (project / "shop" / file).write_text(text)
    done = dbt("ingest", "sql", "shop")
    assert done.code == 0
    assert f"{file.rpartition('models/')[-1]} gives models another schema or alias" in done.err.replace("models/", "")
    assert "ingest dbt" in done.err


def test_a_changed_description_is_a_new_commit(dbt, project):
    file = project / "shop" / "models" / "schema.yml"
    file.write_text(file.read_text().replace("Who is written to", "Whom we write to"))
    assert "commit 2" in dbt("ingest", "sql", "shop").out
    assert "Whom we write to" in dbt("explain", "audience").out


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("path:models/staging", {"stg_users"}),
        ("path:./models/staging/", {"stg_users"}),
        ("path:models/marts/audience.sql", {"audience"}),
        ("path:models/*/stg_*", {"stg_users"}),
        ("path:shop/models/staging", {"stg_users"}),  # as a shell completes it, where the folder was named
        ("path:shop", {"audience", "stg_users"}),
        ("resource_type:model", {"audience", "stg_users"}),
        ("resource_type:source", {"crm.users"}),
        ("resource_type:source+,path:models/marts", {"audience"}),
        ("tag:raw", {"crm.users"}),
        ("owner:Growth*", {"audience"}),
    ],
)
def test_selectors_of_dbt(dbt, selector, names):
    entries = json.loads(dbt("ls", selector, "-f", "json").out)["items"]
    assert {entry["name"] for entry in entries} == names


def test_every_owner_of_a_dataset_or_a_column_can_be_selected(store, project):
    texts = {
        "dbt_project.yml": "name: shop\nmodels: {shop: {+meta: {owner: Data Team}}}\n",
        "models/lands.sql": "select code, mail from raw.lands",
        "models/schema.yml": """
groups: [{name: maps, owner: {name: Maps, email: maps@acme.test}}]
models:
  - name: lands
    config: {group: maps}
    columns: [{name: mail, meta: {owner: carla}}]
""",
    }
    for name, text in texts.items():
        file = project / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert store("ingest", "sql", "shop").code == 0

    def owned(name):
        return [entry["name"] for entry in json.loads(store("ls", f"owner:{name}", "-f", "json").out)["items"]]

    assert owned("Maps*") == owned("Data?Team") == ["lands"]
    assert owned("carla") == ["lands.mail"]
    assert "one of Data Team, Maps <maps@acme.test>, carla" in store("ls", "owner:nobody").err


def test_nodes_without_a_property_file_have_their_type(store, project):
    texts = {
        "dbt_project.yml": "name: shop\npackages-install-path: packs\n",
        "seeds/countries.csv": "code,name\nde,Germany\n",
        "models/lands.sql": "select code from {{ ref('countries') }}",
        "models/people_v2.sql": "select 1 as one",
        "models/schema.yml": "models: [{name: people, versions: [{v: 2}]}]",
        "snapshots/kept.sql": "{% snapshot kept %} select code from {{ ref('lands') }} {% endsnapshot %}",
        "packs/util/dbt_project.yml": "name: util\n",
        "packs/util/models/days.sql": "select 1 as day",
    }
    for name, text in texts.items():
        file = project / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert store("ingest", "sql", "shop").code == 0

    def of(kind: str) -> set[str]:
        return {entry["name"] for entry in json.loads(store("ls", f"resource_type:{kind}", "-f", "json").out)["items"]}

    assert of("seed") == {"countries"}
    assert of("model") == {"lands", "people_v2", "days"}
    assert of("snapshot") == {"kept"}
    ids = {
        (fact["value"], fact["file"])
        for name in ("lands", "people_v2", "days", "kept", "countries")
        for fact in json.loads(store("explain", name, "-f", "json").out)["facts"]
    }
    assert ids == {
        ("model.shop.lands", "models/lands.sql"),
        ("model.shop.people.v2", "models/schema.yml"),
        ("model.util.days", "packs/util/models/days.sql"),
        ("snapshot.shop.kept", "snapshots/kept.sql"),
        ("seed.shop.countries", "seeds/countries.csv"),
    }


@pytest.mark.parametrize(
    ("selector", "near"), [("path:models/stagin", "models/staging"), ("resource_type:modl", "model"), ("path:.", "")]
)
def test_selectors_of_nothing_name_what_is_near(dbt, selector, near):
    done = dbt("ls", selector)
    assert (done.code, near in done.err) == (2, True)


@pytest.mark.parametrize("path", ["shop/models/marts/audience.sql", "shop/models/marts", "shop/models/marts/../marts"])
def test_a_model_alone_knows_the_models_that_it_names(dbt, path):
    answer = json.loads(dbt("lineage", path, "-f", "json").out)
    (result,) = answer["results"]
    assert result["edges"] == [["stg_users.email", "audience.email"], ["stg_users.user_id", "audience.user_id"]]
    assert result["columns"] == {"audience": ["user_id", "email", "one"]}
    assert "coverage 100.0% (1/1 statement)" in dbt("lineage", path).out


def test_models_that_name_each_other_in_a_circle_end(dbt, project):
    folder = project / "shop" / "models" / "marts"
    (folder / "a.sql").write_text("select * from {{ ref('b') }}")
    (folder / "b.sql").write_text("select * from {{ ref('a') }}")
    assert "b.?" in dbt("lineage", str(folder / "a.sql"), "-f", "csv").out


def test_tags_and_meta_of_the_project_file_and_of_config_are_explained(store, project):
    texts = {
        **FILES,
        "dbt_project.yml": """
name: shop
models:
  +tags: everything
  shop:
    +meta: {tier: 2, owner: Data}
    marts: {+tags: [mart, gold], +meta: {tier: 1}, +group: growth}
    tags: {+tags: of-a-folder}
seeds: {shop: {+tags: [seeded]}}
""",
        "models/marts/audience.sql": "{{ config(materialized='table', tags=['own', 'gold'],\n meta={'checked': true}) }}\n"
        "select *, 1 as one from {{ ref('stg_users') }}",
        "models/marts/odd.sql": "{{ config(tags=var('x'), group=1) }} select id from {{ ref('lands') }}",
        "seeds/lands.csv": "id,name\n",
    }
    for name, text in texts.items():
        file = project / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert store("ingest", "sql", "shop").code == 0

    def facts(name: str, *wanted: str) -> list[str]:
        found = json.loads(store("explain", name, "-f", "json").out)["facts"]
        return sorted(f"{f['name']}={f['value']}" for f in found if f["name"] in wanted and f["column"] is None)

    assert facts("audience", "tag") == ["tag=everything", "tag=gold", "tag=mart", "tag=nightly", "tag=own"]
    assert facts("audience", "meta.tier", "meta.checked", "group") == [
        "group=growth",
        "meta.checked=true",
        "meta.tier=1",
    ]
    assert facts("stg_users", "tag", "meta.tier", "owner") == ["meta.tier=2", "owner=Data", "tag=everything"]
    assert facts("odd", "tag") == ["tag=everything", "tag=gold", "tag=mart"]
    assert facts("lands", "tag") == ["tag=seeded"]


def test_nodes_of_a_package_bear_its_name(store, project):
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/m.sql": "select a as b from {{ ref('base') }}",
        "models/m.yml": "models: [{name: m, description: mine}]",
        "dbt_packages/acme_utils/dbt_project.yml": "name: acme\n",
        "dbt_packages/acme_utils/models/base.sql": "select 1 as a",
        "dbt_packages/acme_utils/models/base.yml": "models: [{name: base, description: theirs}]",
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    assert store("ingest", "sql", ".").code == 0
    found = {name: json.loads(store("explain", name, "-f", "json").out)["facts"] for name in ("m", "base")}
    ids = {name: [fact["value"] for fact in facts if fact["name"] == "dbt.id"] for name, facts in found.items()}
    assert ids == {"m": ["model.shop.m"], "base": ["model.acme.base"]}


def test_what_the_template_says_is_named_as_it_is_written(store, project):
    (project / "models").mkdir()
    (project / "dbt_project.yml").write_text("name: shop\n")
    (project / "models/a.sql").write_text(
        "{% for item in given.nodes.values() %}\nselect {{ item.alias }} as x, y from {{ item.relation_name }}\n{% endfor %}"
    )
    (project / "models/b.sql").write_text("select a\nfrom t where {{ given['nodes']['x'].config.tags[0] }}")
    (project / "models/c.sql").write_text("select a from t")
    assert store("ingest", "sql", ".").code == 0
    details = store("coverage", "--details", "--all", "-f", "plain").out
    assert "item.relation_name(…)" in details
    assert "given['nodes']['x'].config.tags[0] has no value" in details
    assert "given_nodes" not in details


def test_a_project_that_is_not_compiled_is_no_workflow_yet(govtool, tmp_path):
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    govtool("init", "--no-sources")
    done = govtool("workflow", "run", str(tmp_path), "--inputs", str(tmp_path))
    assert done.code == 2
    assert "is not compiled" in done.err
    assert "dbt compile" in done.err
