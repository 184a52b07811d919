"""Waivers in SQL comments, through ``govtool check``."""

from __future__ import annotations

import json

import pytest

ALLOW = "govtool: allow R1 until 2027-01-31 because it was agreed"
RULE = """version: 1
name: p
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.users.*"]}]
rules: [{id: R1, title: t, deny: {flow: {class: personal, to: {datasets: ["mart.**"]}}}}]
"""


@pytest.mark.parametrize(
    ("sql", "waived"),
    [
        (f"create table mart.m as\nselect email, -- {ALLOW}\n  phone\nfrom crm.users;", ["mart.m.email"]),
        (
            f"-- {ALLOW}\ncreate table mart.m as\nselect email,\n  phone\nfrom crm.users;",
            ["mart.m.email", "mart.m.phone"],
        ),
        (
            f"create table mart.m as\nselect email,\n  phone\nfrom crm.users -- {ALLOW}\n;",
            ["mart.m.email", "mart.m.phone"],
        ),
    ],
)
def test_a_comment_beside_an_expression_waives_it_alone(govtool, project, sql, waived):
    (project / "all.sql").write_text(f"create table crm.users (email text, phone text);\n{sql}", "utf-8")
    (project / "p.yaml").write_text(RULE, "utf-8")
    assert (govtool("init", "--no-sources").code, govtool("ingest", "sql", "all.sql").code) == (0, 0)
    done = govtool("check", "--policy", "p.yaml", "--today", "2026-11-21", "-f", "json")
    found = [(one["column"], one["verdict"]) for one in json.loads(done.out)["findings"]]
    assert sorted(column for column, verdict in found if verdict == "waived") == waived
    assert (len(found), done.code) == (2, 0 if len(waived) == 2 else 1)
    sarif = json.loads(govtool("check", "--policy", "p.yaml", "--today", "2026-11-21", "-f", "sarif").out)
    reasons = [s["justification"] for one in sarif["runs"][0]["results"] for s in one.get("suppressions", ())]
    assert len(reasons) == len(waived)
    assert all(reason.startswith("it was agreed (all.sql:") for reason in reasons)


def test_a_comment_that_was_there_before_a_change_accepts_no_more_than_then(govtool, project):
    def ingested(value: str, comment: str) -> None:
        text = f"create table crm.users (email text);\n-- {comment}\ncreate table mart.m as select {value} as e"
        (project / "all.sql").write_text(f"{text} from crm.users;", "utf-8")
        assert govtool("ingest", "sql", "all.sql").code == 0

    (project / "p.yaml").write_text(RULE, "utf-8")
    assert govtool("init", "--no-sources").code == 0
    ingested("substr(email, 1, 1)", ALLOW)
    ingested("email", ALLOW)
    check = ("check", "--policy", "p.yaml", "--today", "2026-11-21", "--base")
    done = govtool(*check, "main~1")
    assert (done.code, "worse than what was accepted: whole, not part" in done.out) == (1, True)
    ingested("email", f"{ALLOW}, for all of it")
    assert govtool(*check, "main~2").code == 0
