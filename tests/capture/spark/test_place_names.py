"""The datasets that a relation of files is of."""

from __future__ import annotations

import pytest

from govtool.capture.spark.analyzed.place_names import MAX_PLACES, places_of
from govtool.capture.spark.live import actions


def ids(*paths: str) -> list[str]:
    return [place.id for place in places_of({"paths": list(paths)})]


def test_each_path_that_a_reader_was_given_is_a_dataset() -> None:
    assert ids("file:/in/a", "file:/other/b", "file:/in/a") == ["file:///in/a", "file:///other/b"]
    assert ids("s3a://lake/t/day=1", "s3a://lake/t/day=2") == ["s3://lake/t"]
    assert ids("file:/in/a") == ["file:///in/a"]


def test_of_very_many_paths_only_their_folder_is_a_dataset() -> None:
    many = [f"file:/in/{number}.csv" for number in range(MAX_PLACES + 1)]
    assert ids(*many) == ["file:///in"]
    assert ids(*many[:-1], "file:/other/x.csv") == []


def test_the_paths_of_a_table_are_its_own() -> None:
    (place,) = places_of({"table": ["spark_catalog", "shop", "t"], "paths": ["file:/a", "file:/b"]})
    assert place.id == "shop.t"


def test_a_table_of_a_database_is_known_by_its_catalog_and_by_its_place() -> None:
    facts = {"url": "jdbc:postgresql://h/erp", "dbtable": "public.items"}
    (place,) = places_of({"table": ["pg", "public", "items"], **facts})
    assert (place.id, [name.id for name in place.aliases]) == (
        "pg.public.items",
        ["postgres://h:5432/erp.public.items"],
    )
    assert [place.id for place in places_of(facts)] == ["postgres://h:5432/erp.public.items"]
    assert places_of({**facts, "dbtable": "", "query": "d1"}) == ()


@pytest.mark.parametrize("paths", [{}, {"paths": ["file:/lake/db/t"]}])
def test_an_iceberg_table_that_was_read_by_its_path_is_that_path(paths) -> None:
    facts = {"relation": "org.apache.iceberg.spark.source.SparkTable", **paths}
    for state in ([], ["branch_x"]):
        (place,) = places_of({**facts, "table": ["default_iceberg", "/lake/db", "t", *state]})
        assert (place.id, place.kind) == ("file:///lake/db/t", "file")
    (named,) = places_of({**facts, "table": ["lake", "db", "t"]})
    assert named.id == "lake.db.t"


def test_two_streams_of_one_query_are_two_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "_ids", lambda line: (1,))
    line = {"application": "app", "name": "stream", "plan": [], "leaves": {}}
    lines = [
        {**line, "n": n, "query": f"q{n}", "command": {"path": f"file:/out/{n}", "mode": "Append"}} for n in (1, 2)
    ]
    assert [len(group) for group in actions.grouped(lines)] == [1, 1]
    assert [len(group) for group in actions.grouped([{**each, "name": "save"} for each in lines])] == [2]
