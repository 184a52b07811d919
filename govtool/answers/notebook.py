"""Answers as a notebook shows them: a table of HTML."""

from __future__ import annotations

import html
from itertools import islice
from typing import TYPE_CHECKING

from govtool.answers.coverage import sentence
from govtool.answers.version import GraphVersion
from govtool.report.marks import INVISIBLE

if TYPE_CHECKING:
    from govtool.answers.answer import Answer, Cell

MOST_ROWS = 50
"""Rows of a table in a notebook at most; ``to_pandas()`` has them all."""


def table(answer: Answer) -> str:
    """HTML of the first rows of an answer, everything escaped, with a line about the version of the graph."""
    rows = list(islice(answer.rows(), MOST_ROWS + 1))
    head = "".join(f"<th>{text(name)}</th>" for name in answer.fields)
    body = "".join(f"<tr>{''.join(_cell(one) for one in row)}</tr>" for row in rows[:MOST_ROWS])
    more = "<p>… to_pandas() has all rows</p>" if len(rows) > MOST_ROWS else ""
    table = f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f"<div>{_about(answer)}{table}{more}</div>"


def frame(page: str, height: int = 680) -> str:
    """HTML of a page within a notebook: its scripts run, and reach neither the notebook nor its cookies."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(page)}" width="100%" height="{height}"'
        ' style="border: 1px solid #d9dee7; border-radius: 8px" title="Lineage"></iframe>'
    )


def text(value: str) -> str:
    """A text of other people as HTML: escaped, and what is invisible or turns the direction is written out."""
    return html.escape(INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", value))


def _about(answer: Answer) -> str:
    """The commit and the coverage of an answer about a version of the graph; nothing of another."""
    version = getattr(answer, "version", None)
    if not isinstance(version, GraphVersion):
        return ""
    return f"<p>commit {version.commit.seq} ({text(version.commit.short)}) · {sentence(version.coverage)}</p>"


def _cell(value: Cell) -> str:
    if value is None:
        return "<td></td>"
    words = ", ".join(value) if isinstance(value, tuple) else str(value)
    side = ' style="text-align: right"' if isinstance(value, (int, float)) else ' style="text-align: left"'
    return f"<td{side}>{text(words)}</td>"
