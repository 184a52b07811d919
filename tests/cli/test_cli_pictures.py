"""Pictures: impact, path, explain, diff and dry runs as Mermaid and Graphviz DOT."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

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


NODES = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize(
    "command",
    [
        ("impact", "crm.users.email"),
        ("impact", "mart.audience.email", "--upstream"),
        ("path", "crm.users.email", "mart.audience.email"),
        ("explain", "stg.users.email"),
        ("lineage", "all.sql", "--dialect", "postgres"),
    ],
)
def test_svg_has_what_the_others_have(graph, command):
    columns, _ = drawn(graph(*command, "-f", "mermaid").out)
    root = ElementTree.fromstring(graph(*command, "-f", "svg").out)
    texts = {node.text for node in root.iter(NODES)}
    assert texts == {name.rpartition(".")[0] for name in columns} | {name.rpartition(".")[2] for name in columns}


def test_svg_of_hostile_names_is_xml_and_shows_them(govtool):
    Path("odd.sql").write_text('create view v as select "<script>&\x01\u202e" as "]]>" from "<b>"')
    root = ElementTree.fromstring(govtool("lineage", "odd.sql", "--dialect", "postgres", "-f", "svg").out)
    texts = "".join(node.text or "" for node in root.iter(NODES))
    assert "<script>&" in texts
    assert "]]>" in texts
    assert not re.search("[\x01\u202e]", texts)


def test_svg_of_a_circle_ends(govtool):
    Path("circle.sql").write_text("create view a as select x from b; create view b as select x from a")
    assert govtool("lineage", "circle.sql", "-f", "svg").out.count("<rect") >= 3


def test_a_tree_shows_each_entry_once_below_what_it_is_reached_by(graph):
    lines = graph("impact", "crm.users.email", "--tree").out.splitlines()
    assert lines[1:-2] == [
        "└─ stg.users.email  changes  lower()  all.sql:1:37",
        "   ├─ mart.audience.email  changes  lower() → copy  all.sql:2:37",
        "   └─ mart.audience.* (2 columns)  rows  lower() → group key  all.sql:2:87",
    ]
    up = graph("impact", "mart.audience.email", "--upstream", "--tree").out
    assert re.search(r"├─ stg\.users\.email .*\n│  └─ crm\.users\.email", up)
    assert graph("impact", "crm.users.email", "-f", "tree", "-o", "t.txt").code == 0
    assert Path("t.txt").read_text().splitlines()[1:] == lines[1:]


def test_the_comment_of_a_pull_request_has_a_picture(graph):
    Path("all.sql").write_text(SQL.replace("lower(email)", "upper(email)"))
    assert graph("ingest", "sql", "all.sql", "--dialect", "postgres").code == 0
    shown = graph("impact", "changed:HEAD~1", "-f", "markdown").out
    inside = shown.partition("```mermaid\n")[2].partition("```")[0]
    assert ("stg.users.email", "mart.audience.email") in drawn(inside)[1]
    Path("policy.yml").write_text(
        "version: 1\nname: p\nclasses: {personal: {}}\nclassify: [{class: personal, columns: [crm.users.email]}]\n"
        "rules: [{id: P1, title: Never, deny: {flow: {class: personal, to: {datasets: ['mart.**']}}}}]\n"
    )
    checked = graph("check", "--policy", "policy.yml", "-f", "markdown").out
    inside = checked.partition("```mermaid\n")[2].partition("```")[0]
    assert ("crm.users.email", "stg.users.email") in drawn(inside)[1]
    assert "class " in inside


def test_a_difference_without_edges_is_said_in_the_picture(govtool):
    govtool("init", "--no-sources")
    for tag in ("", " with tag (pii = 'email')"):
        Path("t.sql").write_text(f"create table t (a text{tag}, b int);\n")
        assert govtool("ingest", "sql", "t.sql", "--dialect", "snowflake").code == 0
    words = ["no column or edge differs", "+ fact t.a tag: pii:email"]
    assert f'note0["{"; ".join(words)}"]' in govtool("diff", "1", "2", "-f", "mermaid").out
    assert f'label="{"; ".join(words)}"' in govtool("diff", "1", "2", "-f", "dot").out
    root = ElementTree.fromstring(govtool("diff", "1", "2", "-f", "svg").out.split("\n", 1)[1])
    texts = [each for each in root if each.tag.endswith("text")]
    assert [each.text for each in texts][::-1] == words
    assert float(root.attrib["width"]) > 7 * max(map(len, words))  # nothing is cut off
    assert 0 < float(texts[1].attrib["y"]) < float(texts[0].attrib["y"]) < float(root.attrib["height"])
    same = govtool("diff", "2", "2", "-f", "mermaid").out
    assert 'note0["no column or edge differs"]' in same
