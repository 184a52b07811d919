"""Waivers in SQL comments: which statement they belong to, and what is said of those that are none."""

from __future__ import annotations

from datetime import date

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.waiver_comments import waivers_in
from govtool.policy.dataset_facts import ToolFact
from govtool.policy.inline import InlineWaiver, MistakenComment, inline_waivers

ALLOW = "govtool: allow R1 until 2027-01-31 because it was agreed"


def targets(sql: str) -> list[tuple[str, str]]:
    scripts = [Script("a.sql", sql)]
    derivations = extract(scripts, Options(dialect="postgres")).derivations
    return [(fact.dataset, fact.file) for fact in waivers_in(scripts, lambda _: derivations, "sql:x")]


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


def test_what_a_comment_says():
    def read(value: str) -> list[InlineWaiver | MistakenComment]:
        return list(inline_waivers([ToolFact("a", None, "waiver", value, "a.sql:1")]))

    day = date(2027, 1, 31)
    assert read("allow R1, R-2.b until 2027-01-31 because x") == [
        InlineWaiver("R1", "a", day, "a.sql:1"),
        InlineWaiver("R-2.b", "a", day, "a.sql:1"),
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
