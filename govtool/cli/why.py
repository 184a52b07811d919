"""``govtool why``: the records behind each row of a query or of a workflow run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from govtool.app.why.rows import SEMIRINGS, read_values
from govtool.cli.graph_files import AllRunsOption
from govtool.cli.shared.common import refuse
from govtool.cli.shared.diagnostics import show_mistake
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FollowLinksOption,
    FormatOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.row_query import KeyOption, QueryDialectOption, WhyDataOption, WhySqlOption, read_query
from govtool.cli.shared.ui import Ui
from govtool.errors import UsageError

_HELP = "govtool why --help"


def why(
    ui: Ui,
    rows: Annotated[
        str | None,
        typer.Argument(metavar="'REL[key]'", help="With --run: rows that it wrote, NODE/REL@EXECUTION[COLUMN=VALUE]."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="A run of a workflow with records; NAME~1 is its last but 1."),
    ] = None,
    all_runs: AllRunsOption = False,
    sql: WhySqlOption = None,
    data: WhyDataOption = None,
    semirings: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="A,B…",
            help=f"{', '.join(SEMIRINGS)}. Default: polynomial,which,count; of a run polynomial,count.",
        ),
    ] = None,
    key: KeyOption = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--values", metavar="cost=F.json", help="Values of tokens for cost, trust and prob."),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Refuse what can only be sampled.")] = False,
    dialect: QueryDialectOption = "spark",
    follow_links: FollowLinksOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Show which records are behind each row of a query or of a workflow run, and how.

      govtool why --sql query.sql --data tables/
      govtool why --sql query.sql --data tables/ --as polynomial,why,cost --values cost=prices.json -f json
      govtool why 'BestBid@2[B1]' --run dealers --as which,shapley

    With --sql no store is needed: the *.csv and *.parquet of the folder are the relations, and a record is named by its
    column _tok, by --key, or as relation:row. With --run, the relation is one that an invocation of the run wrote.
    Rows that would appear only after a deletion are candidates. A terminal shows long annotations in
    part, -o FILE whole.
    """
    from govtool.api.opening import open as open_version
    from govtool.api.why import why as evaluate
    from govtool.render.why import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    options: dict[str, Any] = {
        "semirings": [each.strip() for each in (semirings or _default(run)).split(",") if each.strip()],
        "values": read_values(values or []),
        "exact": exact,
        "capped": all(file is None and form in ("table", "plain", "markdown") for form, file in outputs),
    }
    if run is not None or rows is not None:
        refuse({"--sql": sql, "--data": data, "--key": key, "--follow-links": follow_links}, "a run", _HELP)
        if run is None or rows is None:
            raise UsageError("name rows and a run", code="usage.arguments", hint="govtool why 'REL[key]' --run RUN")
        graph = open_version(store, ref=at, branch=branch)
        answer = graph.workflow_why(run, rows, all_runs=all_runs, **options)
    else:
        refuse({"--all-runs": all_runs, "--at": at, "--branch": branch, "--store": store}, "a query", _HELP)
        if sql is None or data is None:
            raise UsageError(
                "name a query and its data, or rows and a run",
                code="usage.arguments",
                hint="--sql QUERY.sql --data DIR, or 'REL[key]' --run RUN",
            )
        text = read_query(sql)
        try:
            answer = evaluate(text, data, key=key, dialect=dialect, follow_links=follow_links, **options)
        except UsageError as error:
            return show_mistake(ui, error, text, sql)
    ui.mark("annotated")
    for form, file in outputs:
        ui.show(render(form, answer, is_whole=file is not None), file, private=True)
    return 0


def _default(run: str | None) -> str:
    # Workflows take differences all the time (the padding of outer joins), where which does not fit.
    return "polynomial,which,count" if run is None else "polynomial,count"
