"""Pictures: impact, path, explain, diff and dry runs as Mermaid and Graphviz DOT."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SQL = """create view stg.users as select id, lower(email) as email from crm.users where deleted_at is null;
create view mart.audience as select email, count(*) as orders from stg.users group by email;
"""


@pytest.fixture
def graph(govtool):
    Path("all.sql").write_text(SQL)
    govtool("init", "--no-sources")
    assert govtool("ingest", "sql", "all.sql", "--dialect", "postgres").code == 0
    return govtool


def drawn(text: str) -> tuple[set[str], set[tuple[str, str]]]:
    """The columns and edges of a Mermaid flowchart, by full name."""
    names: dict[str, str] = {}
    dataset = ""
    for line in text.splitlines():
        if found := re.match(r'  subgraph d\d+\["(.*)"\]', line):
            dataset = found[1]
        elif found := re.match(r'    (n\d+)\["(.*)"\]', line):
            names[found[1]] = f"{dataset}.{found[2]}"
    edges = re.findall(r'^  (n\d+) -\.?->\|"[^|]*"\| (n\d+)$', text, re.MULTILINE)
    return set(names.values()), {(names[source], names[target]) for source, target in edges}


def test_impact_draws_what_the_table_lists(graph):
    columns, edges = drawn(graph("impact", "crm.users.email", "--change", "drop", "-f", "mermaid").out)
    assert {"crm.users.email", "stg.users.email", "stg.users.*", "mart.audience.email", "mart.audience.*"} == columns
    assert ("crm.users.email", "stg.users.email") in edges
    assert ("stg.users.email", "mart.audience.email") in edges


def test_verdicts_and_the_subject_are_marked(graph):
    shown = graph("impact", "crm.users.email", "--change", "drop", "-f", "mermaid").out
    assert "classDef breaks fill:#ffc9c9" in shown
    assert "classDef subject " in shown
    dot = graph("impact", "crm.users.email", "--change", "drop", "-f", "dot").out
    assert dot.count('fillcolor="#ffc9c9"') == 4


def test_upstream_and_paths(graph):
    _, up = drawn(graph("impact", "mart.audience.email", "--upstream", "-f", "mermaid").out)
    assert ("crm.users.email", "stg.users.email") in up
    _, path = drawn(graph("path", "crm.users.email", "mart.audience.email", "-f", "mermaid").out)
    assert path >= {("crm.users.email", "stg.users.email"), ("stg.users.email", "mart.audience.email")}
    assert "no path was found" in graph("path", "mart.audience.email", "crm.users.email", "-f", "mermaid").out


def test_explain_draws_both_sides(graph):
    _, edges = drawn(graph("explain", "stg.users.email", "-f", "mermaid").out)
    assert {("crm.users.email", "stg.users.email"), ("stg.users.email", "mart.audience.email")} <= edges


def test_diff_and_dry_run_mark_what_changes(graph):
    Path("all.sql").write_text(SQL.replace("id, lower", "id, phone, lower"))
    plan = graph("ingest", "sql", "all.sql", "--dialect", "postgres", "--dry-run", "-f", "mermaid").out
    graph("ingest", "sql", "all.sql", "--dialect", "postgres")
    shown = graph("diff", "-f", "mermaid").out
    for text in (plan, shown):
        assert ("crm.users.phone", "stg.users.phone") in drawn(text)[1]
        assert '"+ identity"' in text
        assert "classDef added " in text


@pytest.mark.parametrize("limit", ["1", "2"])
def test_what_a_limit_leaves_off_is_in_the_picture(graph, limit):
    shown = graph("impact", "crm.users.email", "--change", "drop", "-f", "mermaid", "--limit", limit).out
    assert "more (--all)" in shown


def test_names_that_are_markup_stay_names(govtool):
    Path("x.sql").write_text('create view "a""]-->" as select "x|y<b>" from "t#1";')
    govtool("init", "--no-sources")
    govtool("ingest", "sql", "x.sql", "--dialect", "postgres")
    shown = govtool("impact", '"t#1"', "-f", "mermaid").out
    assert "<b>" not in shown
    assert all(line.count('"') % 2 == 0 for line in shown.splitlines())


def test_file_endings_choose_the_picture(graph):
    assert graph("impact", "crm.users.email", "-o", "i.mmd").code == 0
    assert Path("i.mmd").read_text().startswith("flowchart LR")
    assert graph("path", "crm.users.email", "mart.audience.email", "-o", "p.dot").code == 0
    assert Path("p.dot").read_text().startswith("digraph")
