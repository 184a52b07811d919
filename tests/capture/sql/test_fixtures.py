"""The extractor against the cases of ``fixtures/lineage``, one test a case."""

from __future__ import annotations

import pytest
from lineage_cases import FOLDER, Case, column_of, lines_of, load_cases, run_case

CASES = load_cases()

HELD_DIALECTS = {
    "spark", "databricks", "postgres", "snowflake", "bigquery", "redshift",
    "trino", "mysql", "tsql", "oracle", "duckdb", "hive",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_lineage(case: Case) -> None:
    found = lines_of(run_case(case), full_paths=case.headers.get("paths") == "full", expected=case.expected)
    missing = [f"  - {line}" for line in case.expected if line not in found]
    surplus = [f"  + {line}" for line in found if line not in case.expected]
    if missing or surplus:
        difference = "\n".join(["  (- expected, + found)", *missing, *surplus])
        pytest.fail(
            f"fixtures/lineage/{case.file}:{case.line}: {case.title}\n\n{case.sql}\n{difference}", pytrace=False
        )


def test_titles_are_unique() -> None:
    ids = [case.id for case in CASES]
    assert sorted(set(ids)) == sorted(ids)


def test_every_held_dialect_has_cases() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders >= HELD_DIALECTS


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("a", "a"),
        ("*", "*"),
        ("a.b", "a"),
        ("a['x'].y", "a"),
        ("a[]", "a"),
        ('"A ""b"".c".d', '"A ""b"".c"'),
        ('"A"[]', '"A"'),
    ],
)
def test_column_of(path: str, column: str) -> None:
    assert column_of(path) == column
