"""Queries in files of their own, whose results are named by path: which pattern an ingest proposes."""

from __future__ import annotations

import pytest

from govtool.app.ingest.query_paths import unnamed_queries
from govtool.capture.sql.files import Script

TABLES = ("orders", "users", "items", "days")


def proposed(files: dict[str, str]) -> str | None:
    """The pattern that is proposed where every file of a SELECT is a query without a name."""
    scripts = [Script(file, text) for file, text in files.items()]
    notes = unnamed_queries([file for file, text in files.items() if text.startswith("SELECT")], scripts)
    return notes[0].message.split("'")[1] if notes else None


def chain(path: str, read: str) -> dict[str, str]:
    """Files in which each but the first reads what the one before it fills."""
    names = dict(zip(TABLES, ("src.raw", *(read.format(table) for table in TABLES)), strict=False))
    return {path.format(table): f"SELECT a FROM {name}" for table, name in names.items()}


@pytest.mark.parametrize(
    ("path", "read", "pattern"),
    [
        ("sql/prj/mart/{}/query.sql", "`prj.mart.{}`", "{catalog}/{schema}/{table}/query.sql"),
        ("sql/prj/mart/{}/query.sql", "mart.{}", "{schema}/{table}/query.sql"),
        ("sql/prj/Mart/{}.sql", '"prj"."mart".{}', "{catalog}/{schema}/{table}.sql"),
        ("mart/{}.sql", "MART.{}", "{schema}/{table}.sql"),
        ("queries/{}.sql", "mart.{}", "{table}.sql"),
        ("queries/{}.sql", "other", None),
        ("queries/{}.sql", "t -- see {}", None),
        ("queries/{}.sql", "{}_old", None),
        ("{}.sql", "{}.sub", None),
    ],
)
def test_the_longest_pattern_whose_names_are_read(path, read, pattern):
    assert proposed(chain(path, read)) == pattern


def test_a_catalog_that_few_readers_write_is_not_proposed():
    files = chain("prj/mart/{}/query.sql", "mart.{}") | {f"prj/mart/t{n}/query.sql": "SELECT 1" for n in range(9)}
    files |= {f"reads{n}.sql": f"SELECT a FROM mart.t{n}" for n in range(9)}
    assert proposed(files) == "{schema}/{table}/query.sql"


def test_a_query_that_reads_itself_is_not_read_by_others():
    assert proposed({f"mart/{table}.sql": f"SELECT a FROM mart.{table}" for table in TABLES}) is None
