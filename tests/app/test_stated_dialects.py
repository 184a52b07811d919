"""The SQL dialect of a source that ``govtool init`` finds, where a file of the project states it."""

import os

import pytest

from govtool.app.project.dialects import stated_dialect
from govtool.app.project.discover import write_config
from govtool.config import load_config

PROFILES = """
config: {send_anonymous_usage_stats: false}
shop:
  target: prod
  outputs:
    ci: {type: duckdb}
    prod: {type: snowflake, password: "{{ env_var('PASSWORD') }}"}
"""


@pytest.fixture
def project(tmp_path):
    def write(files: dict[str, str]):
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return write


DBT = {"etl/dbt_project.yml": "name: shop\nprofile: shop\n", "etl/models/m.sql": "select 1 as id"}


@pytest.mark.parametrize("place", ["etl/profiles.yml", "etl/profile/profiles.yml", "profiles.yml"])
def test_a_dbt_profile_states_the_dialect_of_its_target(project, place):
    root = project({**DBT, place: PROFILES})
    assert stated_dialect(root, "etl") == ("snowflake", place)


@pytest.mark.parametrize(
    ("profiles", "dialect"),
    [
        (PROFILES.replace("target: prod", "target: \"{{ env_var('TARGET') }}\""), None),  # two adapters, either of them
        (PROFILES.replace("target: prod", "target: x").replace("duckdb", "snowflake"), "snowflake"),
        (PROFILES.replace("shop:", "other:"), None),
        (PROFILES.replace("type: snowflake", "type: dream"), None),
        (PROFILES.replace("type: snowflake", "type: sqlserver"), "tsql"),
        ("shop: [1, 2]", None),
        ("shop: {outputs: {prod: text}}", None),
        ("shop: !!python/object/apply:os.system [ls]", None),
        (": {", None),
    ],
)
def test_only_a_profile_that_is_clear_states_one(project, profiles, dialect):
    stated = stated_dialect(project({**DBT, "etl/profiles.yml": profiles}), "etl")
    assert (stated.dialect if stated else None) == dialect


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wh/.sqlfluff", "[sqlfluff]\ndialect = sparksql\n"),
        (".sqlfluff", "[sqlfluff]\ntemplater = jinja\nDialect: spark\n"),
        ("pyproject.toml", '[tool.sqlfluff.core]\ndialect = "databricks"\n'),
    ],
)
def test_settings_of_sqlfluff_state_it_for_the_folders_below(project, name, text):
    stated = stated_dialect(project({"wh/etl/x.sql": "select 1", name: text}), "wh/etl")
    assert stated == ("databricks" if "databricks" in text else "spark", name)


@pytest.mark.parametrize("text", ["[sqlfluff]\ndialect = ansi\n", "dialect = spark\n", "[sqlfluff]\n", "\x00[["])
def test_settings_that_name_no_dialect_state_none(project, text):
    assert stated_dialect(project({".sqlfluff": text, "x.sql": "", "pyproject.toml": text}), "x.sql") is None


def test_files_outside_the_root_are_not_read(project):
    root = project({"in/etl/dbt_project.yml": "profile: shop\n", "profiles.yml": PROFILES}) / "in"
    (root / "etl" / "profiles.yml").symlink_to(root.parent / "profiles.yml")
    assert stated_dialect(root, "etl") is None


def test_a_profile_whose_aliases_grow_without_end_states_none(project):
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    profile = "shop: {outputs: {prod: {type: *a29}}}"
    root = project({**DBT, "profiles.yml": "\n".join(["a0: &a0 [x]", *levels, profile])})
    assert stated_dialect(root, "etl") is None


def test_a_link_to_itself_states_none(project):
    root = project(DBT)
    for name in (".sqlfluff", "pyproject.toml", "etl/profiles.yml"):
        (root / name).symlink_to((root / name).name)
    assert stated_dialect(root, "etl") is None


def test_init_writes_the_dialect_and_asks_for_the_others(project):
    root = project({**DBT, "etl/a\nstore = 'x'/profiles.yml": PROFILES, "wh/x.sql": "select 1"})
    written = write_config(root, None)
    assert written is not None
    assert written.needs_dialect
    found = load_config(root)
    assert {each.written: each.options.get("dialect") for each in found.sources} == {
        ("etl",): "snowflake",
        ("wh",): None,
    }
    assert found.store is None
    assert '# dialect = "postgres"' in written.file.read_text()


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"a\x1b[31mb"])
def test_folders_whose_names_no_source_can_have_are_left_out(project, name):
    root = project({"etl/a.sql": "select 1"})
    folder = root / os.fsdecode(name)
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system takes no such names")
    (folder / "b.sql").write_text("select 2")
    written = write_config(root, ".govtool")
    assert [source.paths for source in written.sources] == [("etl",)]
    assert [source.written for source in load_config(root).sources] == [("etl",)]
