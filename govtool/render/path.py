"""``govtool path``: the ways from one column to another."""

from __future__ import annotations

from collections.abc import Iterable

from govtool.query.path import Hop, PathResult, Way
from govtool.render.answer import GraphVersion, evidence_object, places, step_object
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")


def render(form: str, result: PathResult, version: GraphVersion) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form == "json":
        body = {
            **version.header(),
            "from": result.source,
            "to": result.target,
            **({"from_subjects": list(result.sources)} if len(result.sources) > 1 else {}),
            **({"to_subjects": list(result.targets)} if len(result.targets) > 1 else {}),
            "ways": [way_object(way) for way in result.ways],
            "more": result.more,
            "coverage": version.coverage.counts(),
            "diagnostics": [],
        }
        return json_lines(envelope("path/1", body))
    if form == "jsonl":
        return (compact(way_object(way)) for way in result.ways)
    if form == "csv":
        return to_csv(
            ("way", "hop", "source", "target", "kinds", "via", "evidence"),
            (
                (w, h, hop.source, hop.target, _kinds(hop), _via(hop), " ".join(e.place for e in hop.evidence))
                for w, way in enumerate(result.ways, 1)
                for h, hop in enumerate(way.hops, 1)
            ),
        )
    made = table(result, version)
    return made if form == "table" else (plain if form == "plain" else markdown)(made)


def way_object(way: Way) -> dict[str, object]:
    """The JSON value of one way."""
    return {
        "path": list(way.nodes),
        "hops": way.length,
        "edges": [
            {
                "source": hop.source,
                "target": hop.target,
                "temporary": hop.elided,
                "steps": [step_object(step) for step in hop.steps],
                "evidence": [evidence_object(item) for item in hop.evidence],
            }
            for hop in way.hops
        ],
    }


def table(result: PathResult, version: GraphVersion) -> Table:
    """A row a hop; ways are numbered."""
    rows = [
        (str(number) if i == 0 else "", hop.source, hop.target, _via(hop), places(hop.evidence))
        for number, way in enumerate(result.ways, 1)
        for i, hop in enumerate(way.hops)
    ]
    return Table(
        columns=(
            TableColumn("way", justify="right"),
            TableColumn("from"),
            TableColumn("to", style="bold"),
            TableColumn("via"),
            TableColumn("evidence", style="dim"),
        ),
        rows=rows,
        heading=version.heading(f"{result.source} → {result.target}"),
        summary=version.closing(_summary(result, version)),
    )


def _summary(result: PathResult, version: GraphVersion) -> str:
    if result.ways:
        more = ", and there are more (--limit)" if result.more else ""
        shortest = count(result.ways[0].length, "hop")
        return f"{count(len(result.ways), 'way')}, the shortest of {shortest}{more}"
    unclear = version.coverage.partial + version.coverage.opaque
    if result.more:
        return "no path found before the search was given up"
    return f"no path, as far as is known: {count(unclear, 'statement')} not understood" if unclear else "no path"


def _kinds(hop: Hop) -> str:
    return " ".join(dict.fromkeys(step.kind.label for step in hop.steps))


def _via(hop: Hop) -> str:
    return ", ".join(dict.fromkeys(step.label for step in hop.steps))
