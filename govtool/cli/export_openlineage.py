"""``govtool export openlineage``: the graph as OpenLineage events."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import count

FORMATS = ("jsonl", "json")


def export_openlineage(
    ui: Ui,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Export only this source. Default: everything.")
    ] = None,
    queries: Annotated[bool, typer.Option("--queries", help="Bare queries as well, of which nothing is made.")] = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Write the graph as OpenLineage events.

      govtool export openlineage -o lineage.jsonl
      govtool export openlineage --source warehouse --at v1.0 -f json

    A DatasetEvent for each dataset, a JobEvent for each statement, RunEvents for what ran, with column lineage.
    Formats: jsonl (an event a line), json (an array).
    """
    from govtool.app.openlineage import export_openlineage as export
    from govtool.app.project import commit_at, read_store

    outputs = chosen(format, output, FORMATS)
    opened = read_store(store)
    exported = export(opened, commit_at(opened, at, branch), source=source, queries=queries)
    for form, file in outputs:
        if form == "jsonl":
            ui.show((json.dumps(event, ensure_ascii=False) for event in exported.events), file)
        else:
            ui.show(json.dumps(exported.events, ensure_ascii=False, indent=2).splitlines(), file)
    left = f", {count(exported.queries, 'bare query', 'bare queries')} left out (--queries)" if exported.queries else ""
    ui.note(f"{count(len(exported.events), 'event')}{left}")
