"""Each guard of the fingerprint is needed: without any one of them, two statements of different meaning become one.

The pairs are generated: every form of literal that can carry meaning, in every place where a query can stand. Of most the
extractor gives different lineage; the others (an interval, an argument of a function) are meant to stay apart all the
same, as a fingerprint errs to one side.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.syntax import fingerprint as module
from govtool.model import ColumnRef

FORMS: list[tuple[str, str, tuple[str, str]]] = [
    # dialect, a query with {} for the literal, two literals
    ("", "SELECT a, b FROM t GROUP BY {}", ("1", "2")),
    ("", "SELECT a, b FROM t ORDER BY {}", ("1", "2")),
    ("", "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) >= {}", ("5", "6")),
    ("", "SELECT {} FROM t", ("'x'", "'y'")),
    ("", "SELECT a AS {} FROM t", ('"Odd Name"', '"Odd  Name"')),
    ("", "SELECT {} FROM t", ('"A"', '"a"')),
    ("postgres", "SELECT j->>{} AS v FROM t", ("'k'", "'m'")),
    ("postgres", "SELECT a FROM t WHERE j->{} = 'x'", ("'k'", "'m'")),
    ("postgres", "SELECT a FROM t WHERE j #>> {} = 'x'", ("'{k}'", "'{m}'")),
    ("postgres", "SELECT a FROM t WHERE b IN (j->>{}, 'x')", ("'k'", "'m'")),
    ("postgres", "SELECT a[{}] AS v FROM t", ("1", "2")),
    ("postgres", "SELECT a FROM t WHERE b > now() - INTERVAL {}", ("'1 day'", "'1 hour'")),
    ("snowflake", "SELECT src:{}::string AS v FROM t", ("Key", "key")),
    ("snowflake", "SELECT src[{}] AS v FROM t", ("'k'", "'m'")),
    ("snowflake", "SELECT a FROM t WHERE src:{} = 'x'", ("K", "k")),
    ("snowflake", "SELECT value AS v FROM t, TABLE(FLATTEN(input => t.x, path => {}))", ("'a'", "'b'")),
    ("snowflake", "SELECT a FROM t WHERE f(b, path => {}) = 1", ("'a'", "'b'")),
    ("snowflake", "SELECT * FROM t PIVOT(SUM(a) FOR b IN ({}, 'y')) AS p", ("'x'", "'z'")),
    ("bigquery", "SELECT * FROM t UNPIVOT(v FOR k IN (a AS {}, b AS 'y'))", ("'x'", "'z'")),
    ("bigquery", "SELECT JSON_VALUE(j, {}) AS v FROM t", ("'$.a'", "'$.b'")),
    ("bigquery", "SELECT a FROM t WHERE JSON_VALUE(j, {}) = 'x'", ("'$.a'", "'$.b'")),
    ("bigquery", "SELECT a FROM {}", ("T", "t")),
    ("duckdb", "SELECT a FROM read_csv({})", ("'a.csv'", "'b.csv'")),
    ("duckdb", "SELECT a FROM {}", ("'a.parquet'", "'b.parquet'")),
    ("duckdb", "SELECT a FROM t WHERE b IN (SELECT c FROM {})", ("'a.parquet'", "'b.parquet'")),
    ("hive", "SELECT a FROM t JOIN u ON t.x = {}.b", ("1a", "2a")),
    ("trino", "SELECT element_at(m, {}) AS v FROM t", ("'k'", "'m'")),
    ("tsql", "SELECT a = {} FROM t", ("'x'", "'y'")),
    ("", "SELECT a FROM t WHERE b IN ({} || c)", ("'x'", "'y'")),
    ("", "SELECT a FROM t WHERE f(b, {}) > 1", ("'x'", "'y'")),
    ("", "SELECT a FROM t WHERE b IN (1, {} + c)", ("2", "3")),
    ("", "SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND f({})", ("1", "2")),
    ("", "SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND {} || c = d", ("'x'", "'y'")),
    ("", "SELECT a FROM t WHERE x.in({}, b) = 1", ("'a'", "'b'")),
    ("", "SELECT a FROM t WHERE b = 1 GROUP BY a, {}", ("1", "a")),
    ("", "SELECT CASE WHEN a = 1 THEN {} ELSE b END AS v FROM t", ("'x'", "'y'")),
]  # fmt: skip
"""Literals that carry meaning: ordinals, k of HAVING, paths, subscripts, intervals, PIVOT, names, files, arguments."""

WHOLE: list[tuple[str, str, tuple[str, str]]] = [
    ("duckdb", "PIVOT t ON c IN ({}, 'y') USING sum(a)", ("'x'", "'z'")),
    ("duckdb", "-- nightly\nPIVOT t ON c IN ({}, 'y') USING sum(a)", ("'x'", "'z'")),
    ("", "INSERT INTO t (a) VALUES (f({}))", ("'x'", "'y'")),
    ("postgres", "INSERT INTO t (a) VALUES (1), (f({}))", ("'x'", "'y'")),
    ("snowflake", "SET v = {}", ("'x'", "'y'")),
    ("snowflake", "CALL p({})", ("'x'", "'y'")),
    ("snowflake", "EXECUTE IMMEDIATE {}", ("'select a from t'", "'select b from t'")),
    ("snowflake", "-- nightly\nEXECUTE IMMEDIATE {}", ("'select a from t'", "'select b from t'")),
    ("redshift", "UNLOAD ({}) TO 's3://x/y'", ("'select a from t'", "'select b from t'")),
    ("snowflake", "COPY INTO t FROM {}", ("'s3://a/b'", "'s3://a/c'")),
    ("athena", "CREATE TABLE v WITH (external_location = {}) AS SELECT a FROM t", ("'s3://x'", "'s3://y'")),
    ("hive", "INSERT OVERWRITE TABLE t PARTITION (ds = {}) SELECT a FROM u", ("'x'", "'y'")),
    ("", "UPDATE t SET a = {} WHERE b = 1", ("'x'", "'y'")),
]  # fmt: skip

PLACES = [
    "{}",
    "/* c */ {}",
    "SELECT * FROM ({}) q WHERE q.z = 7",
    "WITH q AS ({}) SELECT * FROM q JOIN w ON q.z = w.z AND w.k = 'k'",
    "CREATE VIEW v AS {}",
    "INSERT INTO tgt {}",
    "SELECT z FROM w WHERE w.y IN (1, 2) UNION ALL {}",
    "SELECT z FROM w WHERE w.k = 'k' AND EXISTS ({})",
]
"""Where a query can stand."""


def pairs() -> Iterator[tuple[str, str, str]]:
    """Dialect and two statements."""
    for (dialect, form, literals), place in product(FORMS, PLACES):
        one, other = (place.replace("{}", form.replace("{}", literal)) for literal in literals)
        yield dialect, one, other
    for dialect, form, literals in WHOLE:
        one, other = (form.replace("{}", literal) for literal in literals)
        yield dialect, one, other


PAIRS = list(pairs())

ALIKE = [
    ("", "SELECT a FROM t WHERE b = {}", ("1", "22")),
    ("", "SELECT a FROM t WHERE b <> {} AND c LIKE 'q%'", ("'x'", "'it''s'")),
    ("", "SELECT a FROM t WHERE b IN ({})", ("1, 2", "1, 2, 3")),
    ("", "SELECT a FROM t WHERE d BETWEEN DATE {} AND DATE '2021-01-01'", ("'2020-01-01'", "'2019-01-01'")),
    ("", "SELECT a FROM t JOIN u ON t.i = u.i AND u.k = {}", ("'x'", "'y'")),
    ("", "SELECT CASE WHEN a > {} THEN b END AS v FROM t", ("1", "22")),
    ("", "SELECT a FROM t LIMIT {}", ("1", "50")),
]  # fmt: skip


@cache
def lineage(sql: str, dialect: str) -> object:
    """What the extractor says of a statement, but for its name and its text."""
    found = extract([Script("q.sql", sql)], Options(dialect=dialect))

    def plain(ref: ColumnRef) -> tuple[str, str]:
        return ref.dataset.split(":")[0], ref.path

    return frozenset(
        (
            d.target.split(":")[0],
            d.mode,
            d.columns,
            d.statement.min_group,
            frozenset((plain(e.source), e.target_path, e.kind, e.functions, e.reason) for e in d.edges),
        )
        for d in found.derivations
    ), tuple(sorted(d.code for d in found.diagnostics))


def merged(normalize: Callable[[str, str], str]) -> list[tuple[str, str, str]]:
    """The pairs that a fingerprint takes for the same."""
    return [
        (dialect, one, other) for dialect, one, other in PAIRS if normalize(one, dialect) == normalize(other, dialect)
    ]


def test_no_two_of_different_lineage_are_one():
    assert merged(module.normalize) == []


def test_most_pairs_differ_in_their_lineage():
    """The forms are no straw men: it is the lineage itself that differs for most kinds of literal."""
    forms = {form for dialect, form, literals in [*FORMS, *WHOLE] if len({lineage(form.replace("{}", x), dialect) for x in literals}) > 1}  # fmt: skip
    assert len(forms) >= 20


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("dialect", "form", "literals"), ALIKE)
def test_literals_that_only_decide_rows_are_merged(dialect, form, literals, place):
    one, other = (place.replace("{}", form.replace("{}", literal)) for literal in literals)
    assert module.fingerprint(one, dialect) == module.fingerprint(other, dialect)
    assert lineage(one, dialect) == lineage(other, dialect)


GUARDS: dict[str, tuple[str, str]] = {
    "only statements of known shape lose literals": ("bool(_HEADS.match(text))", "True"),
    "a comment before the first word hides nothing": ("self.active = bool(_HEADS.match(head))", "self.active = True"),
    "an identifier may begin with digits": ("if number and not NUMBER.match(source[start:end]):", "if False:"),
    "only LIMIT and OFFSET take a number": ("if number and word in _LIMITS:", "if number and word:"),
    "a comparison decides rows only in a predicate": ("if self._clause(source) not in PREDICATES:", "if False:"),
    "arrows and named arguments are no comparisons": ("(char in \"=<>\" and _compares(source, at))", 'char in "=<>"'),
    "a list begins behind IN": (
        'source[at] == "(" and _word_at(source, last_before(source, at)) == "IN"', 'source[at] == "("',
    ),
    "a list decides rows only in a predicate": ("if here in PREDICATES and source", "if source"),
    "a cell ends behind its literal": ("and _cell_ends(source, end) and", "and"),
    "a later cell ends behind its literal": ("return _cell_ends(source, end)", "return True"),
    "an argument within VALUES is no cell": ("return self.depth == 1", "return True"),
    "BETWEEN has one end": ("self.between = self.listing = False\n", "self.listing = False\n"),
    "a name that ends in a keyword is no keyword": ("if first >= 0 and source[first] in '.@$:`\"]':", "if False:"),
    "case matters in some dialects": ("dialect not in _CASE_MATTERS", "True"),
    "case matters in quotes": ("not self.kept", "True"),
    "case matters in paths": ('":" not in plain.replace("::", "")', "True"),
    "blanks matter in quotes": ("_SPACE.sub(_encode, text) if not text.isalnum() else text", "text"),
}  # fmt: skip
"""Each guard as it stands in the source, and the source without it."""


@pytest.mark.parametrize("guard", GUARDS)
def test_without_any_one_guard_meaning_is_lost(guard):
    source = Path(module.__file__).read_text(encoding="utf-8")
    stands, gone = GUARDS[guard]
    assert stands in source, "the guard is written differently now: change it here too"
    without = types.ModuleType("govtool.capture.sql.fingerprint_without_a_guard")
    sys.modules[without.__name__] = without
    try:
        exec(compile(source.replace(stands, gone), module.__file__, "exec"), without.__dict__)
        assert merged(without.normalize)
    finally:
        del sys.modules[without.__name__]
