"""Where settings come from."""

from __future__ import annotations

import pytest

from govtool.config import load_config, settings, store_setting
from govtool.errors import UsageError


def test_the_file_is_found_from_below_and_its_paths_are_its_own(tmp_path):
    (tmp_path / "govtool.toml").write_text(
        "store = 'lineage'\n[sql]\ndialect = 'spark'\nschema = 'ddl.sql'\n[sql.variables]\ntarget = 'prod'\n"
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    config = load_config(below)
    assert config.root == tmp_path
    assert config.store == str(tmp_path / "lineage")
    assert config.sql.schema == (tmp_path / "ddl.sql",)
    assert config.sql.variables == {"target": "prod"}


def test_a_store_marks_the_root_too(tmp_path):
    (tmp_path / ".govtool").mkdir()
    (tmp_path / "a").mkdir()
    assert store_setting(None, load_config(tmp_path / "a"), {}).value == str(tmp_path / ".govtool")


def test_the_option_wins_over_the_environment_over_the_file(tmp_path):
    (tmp_path / "govtool.toml").write_text("store = 's3://bucket/x'\n")
    config = load_config(tmp_path)
    environ = {"GOVTOOL_STORE": "here"}
    assert store_setting("there", config, environ).value == "there"
    assert store_setting(None, config, environ).origin == "GOVTOOL_STORE"
    assert store_setting(None, config, {}).value == "s3://bucket/x"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("store = 1", "usage.config-type"),
        ("stor = 'x'", "usage.config-key"),
        ("[sql]\nschema = [1]", "usage.config-type"),
        ("sql = 'postgres'", "usage.config-type"),
        ("[sql]\ndialekt = 'x'", "usage.config-key"),
        ("= nonsense", "usage.config"),
    ],
)
def test_mistakes_are_named(tmp_path, text, code):
    (tmp_path / "govtool.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(tmp_path)
    assert caught.value.code == code
    assert caught.value.location == str(tmp_path / "govtool.toml")


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "govtool.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_config(tmp_path)


def test_every_setting_has_an_origin(tmp_path):
    assert {setting.origin for setting in settings(None, load_config(tmp_path), {})} == {"default"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a" + ".a" * 100_000 + " = 1", "nested too deeply"),
        ("a = " + "9" * 5000, "not valid TOML"),
        (f'store = "{"x" * 2_000_000}"', "more than 1024 KB"),
    ],
    ids=["deep", "dotted", "number", "large"],
)
def test_a_file_that_somebody_made_to_be_costly(tmp_path, text, why):
    (tmp_path / "govtool.toml").write_text(text)
    with pytest.raises(UsageError, match=why) as caught:
        load_config(tmp_path)
    assert caught.value.code == "usage.config"
