"""Pictures of answers about the graph, as Graphviz DOT and as Mermaid: the ways that an answer is about.

Limits hold for a picture, too: what they leave off stands in it as a note, as nothing is dropped without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.answers.impact import verdict_of
from govtool.render.drawing import Drawing, dot, mermaid
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.answers.diff import ChangesAnswer
    from govtool.answers.explain import ExplainAnswer
    from govtool.answers.impact import ImpactAnswer
    from govtool.answers.path import PathAnswer
    from govtool.query.evidence import WayStep

PICTURES = ("dot", "mermaid")
"""Formats that are pictures."""
_NO_VALUE = "names"
"""The label of an edge over which nothing is handed on."""


def picture(form: str, drawing: Drawing) -> Iterator[str]:
    """A drawing in one of ``PICTURES``."""
    return (dot if form == "dot" else mermaid)(drawing)


def impact_drawing(answer: ImpactAnswer) -> Drawing:
    """The subjects, and what is reached by the shortest way with its verdict; nodes are coloured by verdict."""
    result = answer.result
    drawn = Drawing(note=_more(result.truncated))
    _add_steps(drawn, (step for entry in answer.entries for step in entry.steps))
    for entry in answer.entries:
        drawn.mark(entry.column, verdict_of(entry) or "")
    for subject in result.subjects:
        if result.subject_kind == "column":
            drawn.mark(subject, "subject")
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
    """The columns and edges that were added, removed or changed, each with its sign."""
    others = sum(change.what not in ("column", "edge") for change in answer.changes)
    notes = [_more(answer.truncated), f"{count(others, 'other change')} (-f table)" if others else ""]
    drawn = Drawing(note="; ".join(filter(None, notes)))
    for change in answer.changes:
        if change.what == "edge" and change.source is not None:
            drawn.add_edge(change.source, change.name, [change.kind or _NO_VALUE], mark=change.change)
        elif change.what == "column":
            drawn.mark(change.name, change.change)
    return drawn


def _add_steps(drawn: Drawing, steps: Iterable[WayStep]) -> None:
    for step in steps:
        drawn.add_edge(step.source, step.target, [step.kind.label if step.kind is not None else _NO_VALUE])


def _more(number: int) -> str:
    return f"{number:,} more (--all)" if number else ""
