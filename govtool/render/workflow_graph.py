"""Answers about provenance graphs as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from govtool.render.formats.envelope import compact
from govtool.render.layout.rows import ROW_FORMATS, rendered
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count, printable
from govtool.render.workflow_runs import unlisted_lines

if TYPE_CHECKING:
    from govtool.answers.answer import Answer
    from govtool.answers.workflow_graph import (
        DependsAnswer,
        GraphDeletionAnswer,
        GraphListAnswer,
        SubgraphAnswer,
        ZoomAnswer,
    )

FORMATS = ROW_FORMATS
_NUMBERS = frozenset({"nodes", "edges", "invocation", "commit"})


def render_workflow(form: str, answer: Answer, limit: int | None = None) -> Table | Iterable[str]:
    """An answer in one of ``FORMATS``.

    Args:
        form: The format.
        answer: The answer.
        limit: Rows of ``table``, ``plain``, ``markdown`` and ``csv``; None: all.
    """
    if form == "table" and answer.schema == "zoom/1":
        return _zoomed(answer)
    return rendered(form, answer, lambda: _table(answer, limit), limit)


def answer_line(answer: Answer) -> str:
    """An answer as one line of JSON."""
    return compact(answer.to_dict())


def _table(answer: Answer, limit: int | None) -> Table:
    rows = list(answer.rows())
    shown = [tuple(map(_cell, row)) for row in islice(rows, limit)]
    kept = [at for at in range(len(answer.fields)) if not shown or any(row[at] for row in shown)]
    left = f"\n{count(len(rows) - len(shown), 'more row')} (--all)" if len(shown) < len(rows) else ""
    return Table(
        columns=tuple(_column(answer.fields[at]) for at in kept),
        rows=[[row[at] for at in kept] for row in shown],
        heading=_heading(answer),
        summary=_summary(answer) + left,
    )


def _zoomed(answer: Any) -> Table:
    """A zoom for people: the ids of each part on a line, numbers in a row as a range."""
    parts: dict[str, list[str]] = {}
    for part, node in answer.rows():
        parts.setdefault(str(part), []).append(str(node))
    rows = [(part, f"{len(ids):,}", ", ".join(_ranges(ids))) for part, ids in parts.items()]
    columns = (TableColumn("part"), TableColumn("nodes", "right"), TableColumn("ids", style="bold"))
    return Table(columns=columns, rows=rows, heading=_heading(answer), summary=_summary(answer))


def _ranges(ids: Sequence[str]) -> Iterator[str]:
    """``5–12`` for ids that are numbers in a row, others as they are."""
    for _, group in groupby(enumerate(ids), lambda pair: int(pair[1]) - pair[0] if pair[1].isdecimal() else pair[1]):
        run = [node for _, node in group]
        yield run[0] if len(run) == 1 else f"{run[0]}–{run[-1]}"


def _column(name: str) -> TableColumn:
    return TableColumn(name, "right" if name in _NUMBERS else "left", "bold" if name in ("id", "name") else "")


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _heading(answer: Any) -> str:
    headings = {
        "zoom/1": lambda: f"{answer.graph} with {', '.join(answer.zoomed) or 'no module'} zoomed out",
        "subgraph/1": lambda: f"subgraph of {_called(answer)} in {answer.graph}",
        "depends/1": lambda: f"does {_called(answer)} depend on {', '.join(answer.on)}?",
        "whatif-graph/1": lambda: f"{answer.graph} without {', '.join(answer.deleted)}",
    }
    return str(headings.get(answer.schema, str)())


def _called(answer: SubgraphAnswer | DependsAnswer) -> str:
    """A node as the question called it, with its id where that is another name."""
    is_id = answer.address in ("", str(answer.node))
    return str(answer.node) if is_id else f"{printable(answer.address)} (node {answer.node})"


def _summary(answer: Any) -> str:
    summaries: dict[str, Any] = {
        "zoom/1": _zoom,
        "subgraph/1": _subgraph,
        "depends/1": _depends,
        "whatif-graph/1": _deletion,
        "graphs/1": _graphs,
    }
    made = summaries.get(answer.schema)
    return made(answer) if made is not None else ""


def _sizes(nodes: int, edges: int) -> str:
    return f"{count(nodes, 'node')}, {count(edges, 'edge')}"


def _zoom(answer: ZoomAnswer) -> str:
    removed, added = count(len(answer.removed_nodes), "node"), len(answer.added_nodes)
    return f"{_sizes(answer.nodes, answer.edges)} shown · {removed} removed, {added:,} added"


def _subgraph(answer: SubgraphAnswer) -> str:
    parts = ", ".join(count(len(nodes), name.removesuffix("s")) for name, nodes in answer.parts())
    return f"{_sizes(answer.nodes, answer.edges)} · {parts}"


def _depends(answer: DependsAnswer) -> str:
    verdicts = {
        True: "depends: it falls with them",
        False: f"does not depend: {_independence(answer)}",
        "unknown": "unknown: only a new run can decide",
    }
    return f"{verdicts[answer.depends]}\n{_needed(answer)}"


def _needed(answer: DependsAnswer) -> str:
    lineage = f"{len(answer.lineage):,} in the lineage"
    if answer.necessary or not answer.lineage:
        return f"{count(len(answer.necessary), 'record')} necessary, {lineage}"
    without = ", ".join(str(node.label) for node in answer.together)
    together = f"; it falls without all of {printable(without)}" if without else ""
    known = "known to be " if answer.by_values or answer.depends == "unknown" else ""
    return f"no record is {known}necessary alone, {lineage}{together}"


def _independence(answer: DependsAnswer) -> str:
    """Why a node does not fall with records."""
    if answer.by_values:
        return "it stays; govtool whatif delete shows which of its values change"
    if answer.reached:
        return "it has another derivation without them"
    if answer.in_cells:
        return "only values in it come from them; govtool whatif delete shows which change"
    return "it comes from none of them" if answer.lineage else "no record leads to it"


def _deletion(answer: GraphDeletionAnswer) -> str:
    lines = [
        f"{len(answer.removed):,} deleted, {len(answer.recomputed):,} recomputed, {len(answer.unknown):,} unknown"
        f" · {_sizes(answer.left_nodes, answer.left_edges)} left"
    ]
    if answer.gains_possible:
        lines.append("rows may appear: only a new run can decide")
    for name, found in answer.relations.items():
        counts = Counter(row.status for _, row in found.rows)
        lines.append(
            f"{name}: {', '.join(f'{times:,} {status}' for status, times in sorted(counts.items())) or 'no row'}"
        )
    return "\n".join(lines)


def _graphs(answer: GraphListAnswer) -> str:
    """How many there are, and a line for each that is not listed because it cannot be read."""
    lines = [count(len(answer.graphs), "graph")]
    for each in answer.damaged:
        lines += unlisted_lines(each.name or "graphs of recorded programs", each)
    return "\n".join(lines)


def answers_lines(answers: Iterable[Answer]) -> Iterator[str]:
    """Several answers, one a line."""
    return map(answer_line, answers)
