"""Wildcard tables of BigQuery are tied to their shards, whichever ingest names them."""

from __future__ import annotations

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.query.changes.impact import impact

SHARDS = "CREATE TABLE ds.s_20240101 (c INT64, x INT64); CREATE TABLE ds.t (c INT64); CREATE TABLE other.s_1 (c INT64);"


def _index(*texts: str, dialect: str = "bigquery") -> Index:
    """A graph of several ingests, in order."""
    options = [Options(dialect=dialect, source=f"s{number}") for number in range(len(texts))]
    found = [extract([Script("q.sql", text)], option) for text, option in zip(texts, options, strict=True)]
    return index_of([derivation for extraction in found for derivation in extraction.derivations])


def _reached(index: Index, column: str) -> set[str]:
    return {entry.column for entry in impact(index, column).columns}


def test_a_column_of_a_shard_of_another_ingest_reaches_what_reads_the_wildcard():
    for texts in (
        (SHARDS, "CREATE VIEW d AS SELECT c FROM `ds.s_*`"),
        ("CREATE VIEW d AS SELECT c FROM `ds.s_*`", SHARDS),
    ):
        index = _index(*texts)
        assert _reached(index, "ds.s_20240101.c") == {'ds."s_*".c', "d.c"}
        assert _reached(index, "ds.t.c") == _reached(index, "other.s_1.c") == set()


def test_an_open_star_over_a_wildcard_carries_every_column_of_a_shard():
    index = _index(SHARDS, "CREATE VIEW d AS SELECT * FROM `ds.s_2024*`")
    assert _reached(index, "ds.s_20240101.x") == {'ds."s_2024*".x', "d.?"}


def test_shards_of_both_ingests_count_where_one_ingest_knows_some():
    index = _index(SHARDS, "CREATE TABLE ds.s_20240102 (c INT64); CREATE VIEW d AS SELECT c FROM `ds.s_*`")
    for shard in ("ds.s_20240101", "ds.s_20240102"):
        assert "d.c" in _reached(index, f"{shard}.c")


def test_a_star_that_the_shards_of_its_own_ingest_closed_is_open_to_columns_of_others():
    own = "CREATE TABLE ds.s_20240102 (c INT64); CREATE VIEW d AS SELECT * FROM `ds.s_*`"
    index = _index(SHARDS, own)
    assert "d.c" in _reached(index, "ds.s_20240101.c")
    assert "d.?" in _reached(index, "ds.s_20240101.x")
    assert _reached(index, "ds.t.c") == set()
    assert "d.?" not in _reached(_index(own), "ds.s_20240102.c")


def test_files_and_other_dialects_have_no_wildcards():
    index = _index(SHARDS, 'CREATE VIEW d AS SELECT c FROM ds."s_*"', dialect="postgres")
    assert _reached(index, "ds.s_20240101.c") == set()
