"""Answers as a notebook shows them: a table of HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable
from itertools import islice

from govtool.answers.coverage import sentence
from govtool.answers.version import GraphVersion
from govtool.report.drawing import drawing
from govtool.report.escaping import escaped
from govtool.report.html import page
from govtool.report.model import LineageView
from govtool.report.workflow_view import WorkflowView

MOST_ROWS = 50
"""Rows of a table in a notebook at most; ``to_pandas()`` has them all."""


def table(fields: Iterable[str], every: Iterable[tuple[object, ...]], version: object) -> str:
    """HTML of the first rows of an answer, everything escaped.

    Args:
        fields: The names of the columns.
        every: The rows.
        version: The version of the graph that the answer is about, named below; anything else is not.
    """
    rows = list(islice(every, MOST_ROWS + 1))
    head = "".join(f"<th>{escaped(name)}</th>" for name in fields)
    body = "".join(f"<tr>{''.join(_cell(one) for one in row)}</tr>" for row in rows[:MOST_ROWS])
    more = "<p>… to_pandas() has all rows</p>" if len(rows) > MOST_ROWS else ""
    table = f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f"<div>{_about(version)}{table}{more}</div>"


def frame(page: str, height: int = 680) -> str:
    """HTML of a page within a notebook: its scripts run, and reach neither the notebook nor its cookies."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(page)}" width="100%" height="{height}"'
        ' style="border: 1px solid #d9dee7; border-radius: 8px" title="Lineage"></iframe>'
    )


def workflow_frame(view: WorkflowView) -> str:
    """A provenance graph in the page of a report, without a lineage, in a frame."""
    nothing = LineageView((), (), ())
    body = {"title": view.graph, "selection": [], "graph": nothing.body(), "drawing": drawing(nothing), "folders": []}
    return frame(page({**body, "traces": [], "workflows": [view.body()]}, title=view.graph, fallback=""))


def _about(version: object) -> str:
    """The commit and the coverage of a version of the graph; nothing of anything else."""
    if not isinstance(version, GraphVersion):
        return ""
    return f"<p>commit {version.commit.seq} ({escaped(version.commit.short)}) · {sentence(version.coverage)}</p>"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    words = ", ".join(value) if isinstance(value, tuple) else str(value)
    side = ' style="text-align: right"' if isinstance(value, (int, float)) else ' style="text-align: left"'
    return f"<td{side}>{escaped(words)}</td>"
