"""Pictures of answers about the graph, as Graphviz DOT and as Mermaid: the ways that an answer is about.

Limits hold for a picture, too: what they leave off stands in it as a note, as nothing is dropped without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from govtool.answers.impact import verdict_of
from govtool.render.change_words import change_words
from govtool.render.layout.text import count
from govtool.render.pictures.drawing import Drawing, dot, mermaid

if TYPE_CHECKING:
    from govtool.answers.diff import ChangesAnswer
    from govtool.answers.explain import ExplainAnswer
    from govtool.answers.impact import ImpactAnswer
    from govtool.answers.path import PathAnswer
    from govtool.policy.rules.finding import Finding
    from govtool.query.evidence import WayStep

PICTURES = ("dot", "mermaid", "svg")
"""Formats that are pictures."""
MOST_EDGES = 60
"""Edges in a picture of a comment; GitHub draws no more than 500, and nobody reads as many."""
MOST_LISTED = 10
"""Changes of neither columns nor edges that a picture lists, where there is nothing to draw."""
_NO_VALUE = "names"
"""The label of an edge over which nothing is handed on."""


def picture(form: str, drawing: Drawing) -> Iterator[str]:
    """A drawing in one of ``PICTURES``."""
    if form == "svg":
        from govtool.render.pictures.svg import svg

        return svg(drawing)
    return (dot if form == "dot" else mermaid)(drawing)


def fenced(drawing: Drawing) -> Iterator[str]:
    """A drawing within Markdown, as GitHub shows it in comments; nothing where nothing is drawn."""
    if drawing.edges:
        yield "```mermaid"
        yield from mermaid(drawing)
        yield "```"
        yield ""


def check_drawing(findings: Sequence[Finding]) -> Drawing:
    """The ways of findings, the worst first, as many as a comment can show."""
    drawn = Drawing()
    left = 0
    for finding in findings:
        if len(drawn.edges) + len(finding.steps) > MOST_EDGES:
            left += bool(finding.steps)
            continue
        _add_steps(drawn, finding.steps)
        for start in finding.source.split(" + ") if finding.steps else ():
            drawn.mark(start, "subject", only_known=True)
    for finding in findings:
        violated = finding.verdict.label == "violated"
        drawn.mark(finding.column, "breaks" if violated else "unknown", only_known=True)
    drawn.note = f"{count(left, 'more finding')} not drawn" if left else ""
    return drawn


def impact_drawing(answer: ImpactAnswer, most: int | None = None) -> Drawing:
    """The subjects, and what is reached by the shortest way with its verdict; nodes are coloured by verdict.

    Args:
        answer: The answer.
        most: Edges to draw at most; None draws all.
    """
    result = answer.result
    drawn = Drawing()
    left = result.truncated
    for entry in answer.entries:
        if most is not None and len(drawn.edges) + len(entry.steps) > most:
            left += 1
            continue
        _add_steps(drawn, entry.steps)
        drawn.mark(entry.column, verdict_of(entry) or "")
    drawn.note = _more(left)
    for subject in result.subjects:
        if result.subject_kind == "column" or not subject.endswith(".*"):
            drawn.mark(subject, "subject", only_known=result.subject_kind != "column")
    return drawn


def path_drawing(answer: PathAnswer) -> Drawing:
    """Every hop of every way, temporary datasets included."""
    none = "" if answer.ways else "no path was found"
    drawn = Drawing(note="there are more ways (--limit)" if answer.result.more else none)
    _add_steps(drawn, (step for way in answer.ways for hop in way.hops for step in hop.steps))
    for end in (answer.result.source, answer.result.target):
        drawn.mark(end, "subject", only_known=True)
    return drawn


def explain_drawing(answer: ExplainAnswer) -> Drawing:
    """The edges into the subjects and out of them."""
    cut = answer.truncated + sum(subject.explanation.truncated for subject in answer.subjects)
    drawn = Drawing(note=_more(cut))
    for subject in answer.subjects:
        one = subject.explanation
        _add_steps(drawn, (*one.incoming, *one.rows, *one.outgoing))
        if one.subject_kind == "column":
            drawn.mark(one.subject, "subject")
    return drawn


def diff_drawing(answer: ChangesAnswer) -> Drawing:
    """The columns and edges that were added, removed or changed, each with its sign; without any, the other changes."""
    drawn = Drawing()
    for change in answer.changes:
        if change.what == "edge" and change.source is not None:
            drawn.add_edge(change.source, change.name, [change.kind or _NO_VALUE], mark=change.change)
        elif change.what == "column":
            drawn.mark(change.name, change.change)
    others = [change for change in answer.changes if change.what not in ("column", "edge")]
    parts = [_more(answer.truncated), f"{count(len(others), 'other change')} (-f table)" if others else ""]
    if not drawn.datasets:
        listed = [change_words(change) for change in others[:MOST_LISTED]]
        rest = f"{count(len(others) - len(listed), 'more change')} (-f table)" if len(others) > len(listed) else ""
        parts = ["no column or edge differs", *listed, rest, parts[0]]
    drawn.note = "\n".join(filter(None, parts))
    return drawn


def _add_steps(drawn: Drawing, steps: Iterable[WayStep]) -> None:
    for step in steps:
        drawn.add_edge(step.source, step.target, [step.kind.label if step.kind is not None else _NO_VALUE])


def _more(number: int) -> str:
    return f"{number:,} more (--all)" if number else ""
