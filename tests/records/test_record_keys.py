"""Declared keys, tokens that are read, and what is incomplete."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import govtool
from govtool.app.records.keys import equals_text
from govtool.cli.main import main
from govtool.errors import UsageError
from govtool.model.token import KeyToken, PositionToken, parse_token


@pytest.fixture
def gov(shop, capsys):
    """Run a command in the shop: exit code and what it printed."""

    def command(*words):
        capsys.readouterr()
        code = main(list(words))
        return code, capsys.readouterr().out

    return command


def configured(text):
    """Write a configuration into the working directory."""
    Path("govtool.toml").write_text(text, encoding="utf-8")


def test_ids_are_tokens_of_declared_keys(gov):
    configured('[keys]\n"users" = "name"\n')
    code, text = gov("trace", "back", "report", "--where", "land = 'de'", "--ids")
    assert code == 0
    tokens = [parse_token(line) for line in text.splitlines()]
    assert [each.key for each in tokens if isinstance(each, KeyToken)] == [(("name", "bob"),)]
    assert sum(isinstance(each, PositionToken) for each in tokens) == 2


def test_null_is_no_value_of_a_key(shop):
    configured('[keys]\nviews = ["user", "page"]\n')
    found = govtool.open().records("report").lineage.input("views")
    tokens = found.ids()
    keys = [token.key for token in tokens if isinstance(token, KeyToken)]
    assert [dict(key)["user"] for key in keys] == ["ann", "ann", "bob", "bob", "eve"]
    assert [dict(key)["page"] for key in keys] == ["1", "2", "1", "1", "9"]
    assert [(token.file, token.row) for token in tokens if isinstance(token, PositionToken)] == [(1, 1)]


def test_a_key_column_that_is_not_there(gov):
    configured('[keys]\nusers = "id"\n')
    code, _ = gov("trace", "back", "report", "--where", "land = 'de'")
    assert code == 2


def test_tokens_are_read_as_they_are_printed(shop):
    configured('[keys]\nusers = "name"\n')
    lineage = govtool.open().records("report").lineage
    tokens = lineage.where("land = 'fr'").go_back_all().ids()
    assert {type(each) for each in tokens} == {KeyToken, PositionToken}
    assert tuple(parse_token(str(each)) for each in tokens) == tokens


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.int64(), "7", 7),
        (pa.date32(), "2026-11-22", date(2026, 11, 22)),
        (pa.decimal128(9, 2), "1.50", Decimal("1.50")),
        (pa.bool_(), "true", True),
        (pa.string(), 'O\'Neil, "Jr"', 'O\'Neil, "Jr"'),
    ],
)
def test_keys_of_types(shop, monkeypatch, kind, text, value):
    import recorded

    from govtool.records.lineage import Lineage
    from govtool.records.plan import types as t
    from govtool.records.plan.nodes import outputs

    more = {pa.date32(): t.DATE, pa.decimal128(9, 2): t.Decimal(9, 2)}
    monkeypatch.setattr(recorded, "_TYPES", {**recorded._TYPES, **more})
    shop.table("things", {"k": kind, "v": pa.int64()}, [(None, 0), (value, 1)])
    from govtool.records.execute.duckdb import DuckExecutor

    plan = shop.plan("SELECT k, v FROM things", "things")
    lineage = Lineage.of(plan.root, DuckExecutor(plan.session))
    (leaf,) = lineage.leaves()
    key = next(column for column in outputs(leaf) if column.name == "k")
    found = lineage.input(leaf.dataset, equals_text(key, text))
    assert found.arrow().to_pydict() == {"k": [value], "v": [1]}
    if kind != pa.string():
        with pytest.raises(UsageError, match="no value of column 'k'"):
            equals_text(key, "x?")


def test_rows_may_be_missing_where_files_are_refused(shop, gov):
    (shop.folder / "views" / "part-0.parquet").unlink()
    code, text = gov("trace", "back", "report", "--where", "land = 'fr' or land = 'de'", "--format", "json")
    assert code == 3
    answer = json.loads(text)
    grades = {each["exactness"] for each in (*answer["inputs"], *answer["steps"])}
    assert grades == {"incomplete"}
    assert all("rows may be missing" in each["why"] for each in answer["inputs"])
    code, text = gov("trace", "forward", "users", "--where", "name = 'bob'", "--format", "json")
    assert code == 3
    assert {each["exactness"] for each in json.loads(text)["outputs"]} == {"incomplete"}
