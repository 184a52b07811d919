"""``govtool why``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from govtool.cli.graph_files import AllRunsOption
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FollowLinksOption,
    FormatOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.row_query import KeyOption, QueryDialectOption, WhyDataOption, WhySqlOption, carets, read_query
from govtool.cli.shared.ui import Ui
from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.answers.why import WhyAnswer


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
            help="polynomial, how, why, why-minimal, which, where, count, bool, cost, trust, prob, shapley, banzhaf, "
            "responsibility. Default: polynomial,which,count; of a run polynomial,count.",
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
    from govtool.app.why.rows import read_values
    from govtool.cli.shared.formats import chosen
    from govtool.render.why import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    options: dict[str, Any] = {
        "semirings": [each.strip() for each in (semirings or _default(run)).split(",") if each.strip()],
        "values": read_values(values or []),
        "exact": exact,
        "capped": all(file is None and form in ("table", "plain", "markdown") for form, file in outputs),
    }
    if run is not None or rows is not None:
        query = {
            "--sql": sql is not None, "--data": data is not None, "--key": bool(key), "--follow-links": follow_links,
        }  # fmt: skip
        answer = _of_run(_Version(at, branch, store), run, rows, query, {**options, "all_runs": all_runs})
    else:
        _refuse(
            {
                "--all-runs": all_runs,
                "--at": at is not None,
                "--branch": branch is not None,
                "--store": store is not None,
            },
            "a query",
        )
        if sql is None or data is None:
            raise UsageError(
                "name a query and its data, or rows and a run",
                code="usage.arguments",
                hint="--sql QUERY.sql --data DIR, or 'REL[key]' --run RUN",
            )
        text = read_query(sql)
        with carets(ui, text, sql) as failed:
            from govtool.api.why import why as evaluate

            answer = evaluate(text, data, key=key, dialect=dialect, follow_links=follow_links, **options)
        if failed:
            return failed[0]
    ui.mark("annotated")
    for form, file in outputs:
        ui.show(render(form, answer, is_whole=file is not None), file, private=True)
    return 0


def _default(run: str | None) -> str:
    # Workflows take differences all the time (the padding of outer joins), where which does not fit.
    return "polynomial,which,count" if run is None else "polynomial,count"


class _Version(NamedTuple):
    at: str | None
    branch: str | None
    store: str | None


def _of_run(
    version: _Version, run: str | None, rows: str | None, query: dict[str, bool], options: dict[str, Any]
) -> WhyAnswer:
    from govtool.api.opening import open as open_version

    _refuse(query, "a run")
    if run is None or rows is None:
        raise UsageError("name rows and a run", code="usage.arguments", hint="govtool why 'REL[key]' --run RUN")
    return open_version(version.store, ref=version.at, branch=version.branch).workflow_why(run, rows, **options)


def _refuse(given: dict[str, bool], what: str) -> None:
    for name in (name for name, is_given in given.items() if is_given):
        raise UsageError(f"{name} is not for {what}", code="usage.arguments", hint="govtool why --help")
