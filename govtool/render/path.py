"""``govtool path``: the ways from one column to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.answers.path import kinds_of, labels_of
from govtool.render.answer import closing, heading, places
from govtool.render.layout.rows import ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count
from govtool.render.pictures.answers import PICTURES, path_drawing, picture

if TYPE_CHECKING:
    from govtool.answers.path import PathAnswer
    from govtool.answers.version import GraphVersion
    from govtool.query.path import PathResult, Way

FORMATS = (*ROW_FORMATS, *PICTURES)


def render(form: str, answer: PathAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form in PICTURES:
        return picture(form, path_drawing(answer))
    if form in ("json", "jsonl"):
        return data_lines(form, answer, answer.items())
    if form == "csv":
        return to_csv(answer.fields, _csv_rows(answer))
    made = table(answer)
    return laid_out(form, made)


def _csv_rows(answer: PathAnswer) -> Iterator[tuple[object, ...]]:
    for number, way in enumerate(answer.ways, 1):
        for position, hop in enumerate(way.hops, 1):
            evidence = " ".join(item.place for item in hop.evidence)
            yield number, position, hop.source, hop.target, " ".join(kinds_of(hop)), ", ".join(labels_of(hop)), evidence


def table(answer: PathAnswer) -> Table:
    """Ways as chains: a row for the column that one begins with, and one a hop; ways are numbered."""
    result, version = answer.result, answer.version
    return Table(
        columns=(
            TableColumn("way", justify="right"),
            TableColumn("column", style="bold"),
            TableColumn("via"),
            TableColumn("evidence", style="dim"),
        ),
        rows=[row for number, way in enumerate(result.ways, 1) for row in _chain(number, way)],
        heading=heading(version, f"{result.source} → {result.target}"),
        summary=closing(version, _summary(result, version)),
        names=1,
    )


def _chain(number: int, way: Way) -> Iterator[tuple[str, str, str, str]]:
    yield str(number), str(way.hops[0].source), "", ""
    for hop in way.hops:
        yield "", f"→ {hop.target}", ", ".join(labels_of(hop)), places(hop.evidence)


def _summary(result: PathResult, version: GraphVersion) -> str:
    if result.ways:
        more = ", and there are more (--limit)" if result.more else ""
        shortest = count(result.ways[0].length, "hop")
        found = len(result.ways)
        if found == 1:
            return f"1 shortest path ({shortest}){more}"
        return f"{found} paths, the shortest of {shortest}{more}"
    unclear = version.coverage.partial + max(0, version.coverage.opaque - version.unrelated)
    if result.more:
        return "no path found before the search was given up"
    return f"no path, as far as is known: {count(unclear, 'statement')} not understood" if unclear else "no path"
