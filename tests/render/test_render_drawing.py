from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from govtool.answers.coverage import Coverage
from govtool.answers.lineage import LineageAnswer, LineageEdge, SqlLineage
from govtool.app.ingest.sql_options import SourceText
from govtool.render.layout.table import Table
from govtool.render.lineage import FORMATS, render

RESULT = SqlLineage(
    id="a.sql",
    edges=(LineageEdge("t.a", "v.x", ("identity", "conditional")), LineageEdge('t."b ""q"""', "v.x", ("window",))),
    referenced=(LineageEdge("t.d", "v.*", ("filter",)),),
    columns={"v": ("x", "y")},
    sources=("t",),
    targets=("v",),
)


def answer(result: SqlLineage) -> LineageAnswer:
    return LineageAnswer((result,), Coverage(statements=2, understood=2), (), SourceText(Path()))


def shown(form: str) -> str:
    made = render(form, answer(RESULT))
    assert not isinstance(made, Table)
    return "\n".join(made)


def test_plain_lists_every_column_with_its_sources():
    assert shown("plain").splitlines() == [
        " column  from         kinds",
        " v.x     t.a          identity, conditional",
        '         t."b ""q"""  window',
        " v.y",
        " v.*     t.d          filter",
        "",
        "2 edges into 1 relation from 1 relation · coverage 100.0% (2/2 statements)",
    ]


def test_csv():
    assert shown("csv").splitlines() == [
        "target,source,kinds,file",
        "v.x,t.a,identity conditional,a.sql",
        'v.x,"t.""b """"q""""""",window,a.sql',
        "v.*,t.d,filter,a.sql",
    ]


def test_mermaid():
    assert shown("mermaid").splitlines() == [
        "flowchart LR",
        '  subgraph d0["v"]',
        '    n0["x"]',
        '    n1["y"]',
        '    n5["*"]',
        "  end",
        '  subgraph d1["t"]',
        '    n2["a"]',
        '    n3["#quot;b #quot;#quot;q#quot;#quot;#quot;"]',
        '    n4["d"]',
        "  end",
        '  n2 -->|"identity, conditional"| n0',
        '  n3 -.->|"window"| n0',
        '  n4 -.->|"filter"| n5',
    ]


def test_dot_is_quoted():
    text = shown("dot")
    assert r'n3 [label="\"b \"\"q\"\"\""];' in text
    assert 'n2 -> n0 [label="identity, conditional", style=solid];' in text
    assert 'n4 -> n5 [label="filter", style=dotted];' in text
    assert text.count("{") == text.count("}")
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=text, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_hostile_names(form):
    hostile = SqlLineage(
        id="\x1b[2J", edges=(LineageEdge('"\x1b[31m".a', "v.\u202ex", ("identity",)),), columns={"v": ()}
    )
    made = render(form, answer(hostile))
    if not isinstance(made, Table):
        text = "\n".join(made)
        assert "\x1b" not in text
        assert "\u202e" not in text
