"""``govtool export``: write the graph for other tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.common import ExcludeOption, SelectorArgument, selects
from govtool.cli.shared.formats import OutputFile, chosen
from govtool.cli.shared.graph_arguments import opened_graph
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FormatOption,
    OutputOption,
    PolicyOption,
    StoreOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, EXIT_STORE, UsageError
from govtool.render.layout.table import Span
from govtool.render.layout.text import count, printable

if TYPE_CHECKING:
    from govtool.answers.delivery import EventDelivery
    from govtool.answers.report import ReportAnswer
    from govtool.capture.openlineage.export import Exported
    from govtool.report.model import LineageView

EVENT_FORMATS = ("jsonl", "json")
_MOST_SHOWN = 5
"""Rejected events that are listed."""


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where ``--to`` sends events, and how."""

    url: str
    token_file: str | None
    timeout: float
    deadline: float


def export_openlineage(
    ui: Ui,
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="Send them to Marquez, DataHub or another service.")
    ] = None,
    run_events: Annotated[
        bool,
        typer.Option("--run-events", help="Write statements as runs. DataHub, OpenMetadata and Google need this."),
    ] = False,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with the bearer token. Default: OPENLINEAGE_API_KEY.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=600, help="Time limit for one request.")
    ] = 10.0,
    deadline: Annotated[
        float, typer.Option("--deadline", metavar="SECONDS", min=0.1, max=86_400, help="Time limit for all requests.")
    ] = 300.0,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Export only this source. Default: all sources.")
    ] = None,
    queries: Annotated[bool, typer.Option("--queries", help="Include bare queries, which write nothing.")] = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Write the graph as OpenLineage events, or send them to a service.

      govtool export openlineage -o lineage.jsonl
      govtool export openlineage --to http://localhost:5000
      govtool export openlineage --to https://datahub.example/openapi/openlineage --run-events

    Writes a DatasetEvent for each dataset, a JobEvent for each statement and RunEvents for runs, with column lineage.
    Failures of the network and of the server are tried again until --deadline; an event that arrives twice changes
    nothing. Exit code 4: not every event was accepted.
    """
    from govtool.app.ingest.openlineage import export_openlineage as export
    from govtool.app.project.project import commit_at, read_store

    if to is None and token_file is not None:
        raise UsageError("--token-file needs --to URL", code="usage.arguments", location="--token-file")
    if to is not None and format and not output:
        raise UsageError("--to sends events and does not show them", code="usage.output", hint="-o FILE for a copy")
    opened = read_store(store)
    exported = export(opened, commit_at(opened, at, branch), source=source, queries=queries, as_runs=run_events)
    if to is None or output:
        outputs = chosen(format, output, EVENT_FORMATS)
        _write(ui, exported, outputs)
        if to is not None:
            ui.note(f"wrote a copy to {', '.join(str(file) for _, file in outputs if file is not None) or 'stdout'}")
    ui.note(f"{count(len(exported.events), 'event')}{_left_out(exported)}")
    return EXIT_OK if to is None else _send(ui, exported, _Destination(to, token_file, timeout, deadline))


def _write(ui: Ui, exported: Exported, outputs: list[OutputFile]) -> None:
    for form, file in outputs:
        if form == "jsonl":
            ui.show((json.dumps(event, ensure_ascii=False) for event in exported.events), file)
        else:
            ui.show(json.dumps(exported.events, ensure_ascii=False, indent=2).splitlines(), file)


def _left_out(exported: Exported) -> str:
    queries = count(exported.queries, "bare query", "bare queries")
    datasets = count(exported.datasets, "dataset without a run", "datasets without a run")
    return (f", {queries} left out (--queries)" if exported.queries else "") + (
        f", {datasets} left out" if exported.datasets else ""
    )


def _send(ui: Ui, exported: Exported, to: _Destination) -> int:
    from govtool.app.event_delivery.client import TOKEN_VARIABLE, event_endpoint
    from govtool.app.event_delivery.delivery import DeliveryPolicy, deliver
    from govtool.app.serve.admission import bearer_token

    endpoint = event_endpoint(to.url, bearer_token(to.token_file, TOKEN_VARIABLE))
    if endpoint.token and endpoint.is_unencrypted:
        ui.remark([Span("the token is sent without TLS: others on the network can read it")])
    return _report(ui, deliver(exported.events, endpoint, DeliveryPolicy(timeout=to.timeout, deadline=to.deadline)))


def _report(ui: Ui, delivery: EventDelivery) -> int:
    for event in delivery.rejected[:_MOST_SHOWN]:
        about = f"{event.number}, {printable(event.name)}: {event.status}"
        ui.remark([Span("rejected: ", "red"), Span(f"event {about}{f': {event.reason}' if event.reason else ''}")])
    if len(delivery.rejected) > _MOST_SHOWN:
        ui.remark([Span(f"{len(delivery.rejected) - _MOST_SHOWN} more are rejected")])
    again = f", {count(delivery.retries, 'request')} made again" if delivery.retries else ""
    ui.show([f"{count(delivery.sent, 'event')} delivered to {printable(delivery.to)}{again}"], None)
    return EXIT_STORE if delivery.rejected else EXIT_OK


@selects
def export_graph(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Write the lineage graph for other tools.

      govtool export graph -o lineage.csv
      govtool export graph 'mart.**' -o mart.graphml
      govtool export graph 'crm.users+' -f mermaid

    Selectors choose datasets, and the edges between them are written; the rows of a dataset are its column *. A
    row of csv, jsonl and parquet is an edge; json has everything, as report/1.
    """
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.questions.governance import day_of
    from govtool.app.report.graph import graph_view
    from govtool.render.graph_files import FORMATS, PARQUET, parquet, render

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        if any(form == "json" for form, _ in outputs):
            report = graph.report(*selector or (), exclude=exclude, policy=policy, today=today)
            answer: ReportAnswer | LineageView = report
            view = report.graph
        else:  # findings and coverage are in no other format
            rules = PolicyChoice(policy, day_of(today))
            snapshot = graph.snapshot()
            with snapshot.guard:
                answer = view = graph_view(snapshot, rules, selector or (), exclude or ())
    ui.mark("report")
    for form, file in outputs:
        if form == PARQUET:
            ui.write_bytes(parquet(view), file)
        else:
            ui.show(render(form, answer), file)
    return EXIT_OK
