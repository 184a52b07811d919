"""Functions that hide values keep a name by which policies know them, in every dialect that the extractor is held to."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.functions.facts import MASKING, key_of
from govtool.policy.classes.masking import named

DIALECTS = (
    "spark", "databricks", "postgres", "snowflake", "bigquery", "redshift", "trino", "mysql", "tsql", "oracle", "duckdb",
    "hive", "",
)  # fmt: skip


def edges(function: str, dialect: str):
    """The edges of ``t.a`` through a call, in the forms that functions take: with a key or a length, and behind one."""
    for arguments in ("a", "a, 256", "a, k, v", "'SHA2_256', a"):
        script = Script("q.sql", f"SELECT {function}({arguments}) AS x FROM t")
        for derivation in extract([script], Options(dialect=dialect, evidence=False)).derivations:
            for edge in derivation.edges:
                is_value = edge.target_path == "x" and edge.source.path == "a" and edge.functions
                if is_value and key_of(edge.functions[-1]) is None:
                    yield edge


@pytest.mark.parametrize("dialect", DIALECTS)
def test_functions_that_hide_values_are_known_by_their_names(dialect: str) -> None:
    lost = []
    for function in sorted(MASKING):
        found = list(edges(function, dialect))
        assert found, function
        for edge in found:
            name = edge.functions[-1]
            for members in ("@keyed", "@hash", "@mask"):
                if named([members], function) and not named([members], name):
                    lost.append((function, name, members))
            if not edge.masking:
                lost.append((function, name, "masking"))
    assert lost == []


@pytest.mark.parametrize(
    ("dialect", "call", "name"),
    [
        ("postgres", "sha256(a)", "sha256"),
        ("postgres", "sha512(a)", "sha512"),
        ("bigquery", "SHA256(a)", "sha256"),
        ("bigquery", "SHA1(a)", "sha1"),
        ("bigquery", "MD5(a)", "md5"),
        ("bigquery", "AEAD.ENCRYPT(k, a, '')", "aead.encrypt"),
        ("trino", "sha512(a)", "sha512"),
        ("duckdb", "sha256(a)", "sha256"),
        ("spark", "sha2(a, 256)", "sha2"),
        ("mysql", "SHA2(a, 512)", "sha2"),
        ("snowflake", "SHA2_BINARY(a)", "sha2_binary"),
        ("snowflake", "MD5_NUMBER_LOWER64(a)", "md5_number_lower64"),
        ("tsql", "HASHBYTES('SHA2_256', a)", "hashbytes"),
        ("oracle", "DBMS_CRYPTO.HASH(a, 2)", "dbms_crypto.hash"),
    ],
)
def test_digests_are_named_as_their_dialect_writes_them(dialect: str, call: str, name: str) -> None:
    (derivation,) = extract([Script("q.sql", f"SELECT {call} AS x FROM t")], Options(dialect=dialect)).derivations
    assert [e.functions for e in derivation.edges if e.source.path == "a"] == [(name,)]
