"""``govtool why``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import FormatOption, OutputOption
from govtool.cli.rowquery import DataOption, KeyOption, QueryDialectOption, SqlOption, carets, read_query
from govtool.cli.ui import Ui


def why(
    ui: Ui,
    sql: SqlOption,
    data: DataOption,
    semirings: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="A,B…",
            help="polynomial, how, why, why-minimal, which, where, count, bool, cost, trust, prob, shapley, banzhaf, "
            "responsibility.",
        ),
    ] = "polynomial,which,count",
    key: KeyOption = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--values", metavar="cost=F.json", help="Values of tokens for cost, trust and prob."),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Refuse what can only be sampled.")] = False,
    dialect: QueryDialectOption = "spark",
    format: FormatOption = None,
    output: OutputOption = None,
) -> int:
    """Which records are behind each row of a query, and how; no store.

      govtool why --sql query.sql --data tables/
      govtool why --sql query.sql --data tables/ --as polynomial,why,cost --values cost=prices.json -f json

    The *.csv and *.parquet of the folder are the relations. A record is named by its column _tok, by --key, or as
    relation:row. Rows that would appear only after a deletion are candidates. Formats: table, plain, json, jsonl, csv,
    markdown; a terminal shows long annotations in part, -o FILE whole.
    """
    from govtool.api.why import why as evaluate
    from govtool.app.why import read_values
    from govtool.cli.formats import chosen
    from govtool.render.why import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    text = read_query(sql)
    names = [each.strip() for each in semirings.split(",") if each.strip()]
    tokens = read_values(values or [])
    with carets(ui, text, sql) as failed:
        answer = evaluate(
            text, data, semirings=names, keys=key, values=tokens, dialect=dialect, exact=exact,
            capped=all(file is None and form in ("table", "plain", "markdown") for form, file in outputs),
        )  # fmt: skip
    if failed:
        return failed[0]
    ui.mark("annotated")
    for form, file in outputs:
        ui.show(render(form, answer, is_whole=file is not None), file)
    return 0
