"""Traces where a column of the output is a map, which no engine compares."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from govtool.cli.main import main

ROWS = [("a", [("x", 1), ("y", 2)]), ("a", [("x", 1)]), ("b", []), ("c", None), ("d", [("y", None)])]


@pytest.fixture
def traced(shop, capsys):
    """Run a query over tags, and trace: exit code and answer."""
    shop.table("tags", {"k": pa.string(), "m": pa.map_(pa.string(), pa.int64())}, ROWS)

    def command(sql: str, *words: str) -> tuple[int, Any]:
        shop.commit(shop.run(sql, "out", "tags", run="app-2/0"))
        capsys.readouterr()
        code = main(["trace", *words, "--run", "app-2/0", "--format", "json"])
        shown = capsys.readouterr()
        return code, json.loads(shown.out) if shown.out else shown.err

    return command


@pytest.mark.parametrize(("key", "count"), [("b", 1), ("c", 1), ("d", 1), ("a", 2)])
def test_forward_matches_rows_by_the_columns_beside_a_map(traced, key, count):
    code, answer = traced("SELECT k, m FROM tags", "forward", "tags", "--where", f"k = '{key}'")
    (group,) = answer["outputs"]
    assert (code, group["count"], group["exactness"]) == (0, count, "exact")
    assert [row["k"] for row in group["rows"]] == [key] * count


def test_forward_is_a_superset_where_only_a_map_tells_rows_apart(traced):
    code, answer = traced("SELECT k, m FROM tags", "forward", "tags", "--where", "k = 'a' AND size(m) = 1")
    (group,) = answer["outputs"]
    assert (code, group["count"], group["exactness"]) == (0, 2, "superset")


def test_forward_to_maps_alone_is_a_superset(traced):
    code, answer = traced("SELECT m FROM tags", "forward", "tags", "--where", "k = 'b'")
    (group,) = answer["outputs"]
    assert (code, group["count"], group["exactness"]) == (0, 5, "superset")


def test_written_rows_are_matched_by_the_columns_beside_a_map(traced):
    sql = "SELECT k, m FROM tags ORDER BY k DESC LIMIT 2"
    code, answer = traced(sql, "back", "out", "--where", "k = 'c'")
    (group,) = answer["inputs"]
    assert (code, group["count"]) == (0, 1)


def test_rows_of_two_runs_and_their_inputs_are_compared_by_their_maps(shop, capsys):
    changed = [("a", [("y", 2), ("x", 1)]), ("b", [("z", 3)]), ("c", None), ("d", []), ("d", [("y", None)])]
    kinds = {"k": pa.string(), "m": pa.map_(pa.string(), pa.int64())}
    shop.table("before", kinds, ROWS)
    shop.table("after", kinds, changed)
    for name in ("before", "after"):
        shop.commit(shop.run(f"SELECT k, m FROM {name}", f"{name}_out", name, run=f"{name}-1/0"))
    capsys.readouterr()
    assert main(["diff", "before-1/0", "after-1/0", "--rows", "--format", "json"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["row_differences"]
    assert [(row["kind"], (row["before"] or row["after"])["k"]) for row in output["rows"]] == [
        ("gone", "a"),
        ("gone", "b"),
        ("new", "b"),
        ("new", "d"),
    ]
    (behind,) = output["rows"][0]["inputs"]
    assert [row["k"] for row in behind["removed"]] == ["a"]
    assert behind["added"] == []


def test_a_replay_compares_rows_by_their_maps(shop, capsys):
    shop.table("tags", {"k": pa.string(), "m": pa.map_(pa.string(), pa.int64())}, ROWS)
    shop.commit(shop.run("SELECT k, m FROM tags", "out", "tags", run="app-2/0"))
    capsys.readouterr()
    assert main(["replay", "app-2/0", "--without", "tags", "--where", "size(m) = 2", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [answer[kind]["count"] for kind in ("gone", "changed", "new")] == [1, 0, 0]
