"""Waivers in SQL comments: which statement they belong to, and what is said of those that are none."""

from __future__ import annotations

from datetime import date

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.properties.waiver_comments import waivers_in
from govtool.model.fact import Fact
from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.rules.finding import Finding, RuleVerdict
from govtool.policy.rules.waivers import InlineWaiver, MistakenComment, _of_sql, inline_waivers

ALLOW = "govtool: allow R1 until 2027-01-31 because it was agreed"


def targets(sql: str, dialect: str = "postgres") -> list[tuple[str, str]]:
    return [(fact.dataset, fact.file) for fact in waivers(sql, dialect)]


def waivers(sql: str, dialect: str) -> list[Fact]:
    scripts = [Script("a.sql", sql)]
    derivations = extract(scripts, Options(dialect=dialect)).derivations
    return list(waivers_in(scripts, lambda _: derivations, "sql:x"))


A, B, C = (f"create table {name} as select x\nfrom s" for name in "abc")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"-- {ALLOW}\n{A};\n{B};", [("a", "a.sql:1")]),
        (f"{A};\n-- {ALLOW}\n{B};\n{C}", [("b", "a.sql:3")]),
        (f"{A}; -- {ALLOW}\n{B}", [("a", "a.sql:2")]),
        (f"{A} -- {ALLOW}\n; {B}", [("a", "a.sql:2")]),
        (f"{A};\n{B}\n/* {ALLOW} */\n;{C};", [("b", "a.sql:5")]),
        (f"{A};\n\n{B};\n-- {ALLOW}\n", []),
        (f"create table a as select '-- {ALLOW}' as x;\n{B}", []),
        (f"create table a as select '; -- {ALLOW}' as \"; -- {ALLOW}\";\n{B}; /* -- {ALLOW} */", []),
        (f"drop table a; -- {ALLOW}\n{B}", []),
        (f"-- {ALLOW} -- and more\nselect x from s", "query"),
    ],
)
def test_the_statement_of_a_comment(sql, expected):
    found = targets(sql)
    if expected == "query":
        assert [name.startswith("query:") for name, _ in found] == [True]
    else:
        assert found == expected


V, W, X = (f"create view {name} as select x from s" for name in "vwx")


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [
        ("tsql", f"{V}\nGO\n-- {ALLOW}\n{W}\nGO\n{X}\nGO\n", [("w", "a.sql:3")]),
        ("tsql", f"select 1 as a into v from s\n-- {ALLOW}\nselect 1 as a into w from s", [("w", "a.sql:2")]),
        ("tsql", f"select 1 as a\ninto v from s -- {ALLOW}\nselect 1 as a into w from s", [("v", "a.sql:2")]),
        ("bigquery", f"create view v as select 'a\\'' as q, ' -- {ALLOW}' as r from s;{W}", []),
        ("bigquery", f"create view v as select 1 as a; # don't\n-- {ALLOW}\n{W}", [("w", "a.sql:2")]),
        ("mysql", f"# {ALLOW}\n{W};\n{X}", [("w", "a.sql:1")]),
    ],
)
def test_the_statement_of_a_comment_by_dialect(dialect, sql, expected):
    assert targets(sql, dialect) == expected


def test_a_comment_on_a_line_of_several_statements_waives_none():
    (fact,) = waivers(f"{A.replace(chr(10), ' ')}; {B.replace(chr(10), ' ')}; -- {ALLOW}", "postgres")
    assert fact.value.startswith("several statements of line 1: ")
    (mistaken,) = inline_waivers([ToolFact(fact.dataset, None, fact.name, fact.value, fact.file)])
    assert isinstance(mistaken, MistakenComment)


def test_a_waiver_covers_no_other_dataset_whose_name_begins_like_its_own():
    day = date(2027, 1, 31)
    waiver = _of_sql(InlineWaiver("R1", "crm", day, "a.sql:1"), ["crm", "crm.leak"], [])
    assert [waiver.covers(_finding(column)) for column in ("crm", "crm.email", "crm.leak.email", "crm.leak", "crm2.x")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def _finding(column: str) -> Finding:
    return Finding("R1", "", "error", RuleVerdict.VIOLATED, "", column, (), "value")


def test_what_a_comment_says():
    def read(value: str) -> list[InlineWaiver | MistakenComment]:
        return list(inline_waivers([ToolFact("a", None, "waiver", value, "a.sql:1")]))

    day = date(2027, 1, 31)
    assert read("allow R1, R-2.b until 2027-01-31 because x") == [
        InlineWaiver("R1", "a", day, "a.sql:1", "x"),
        InlineWaiver("R-2.b", "a", day, "a.sql:1", "x"),
    ]
    for text in (
        "allow R1",
        "allow R1 until 2027-02-30 because x",
        "allow R1 until 2027-01-31",
        "allow R1 until 2027-01-31 because",
        "allow until 2027-01-31 because x",
        "allow * until 2027-01-31 because x",
    ):
        assert read(text) == [MistakenComment(text, "a.sql:1")], text
    assert list(inline_waivers([ToolFact("a", None, "tag", "allow R1 until 2027-01-31 because x", "a.sql:1")])) == []
