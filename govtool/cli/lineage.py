"""``govtool lineage``: column lineage of SQL, without a store."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.shared.diagnostics import show_diagnostics
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    CatalogOption,
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    ExplainOption,
    FollowLinksOption,
    FormatOption,
    MinCoverageOption,
    OutputOption,
    RelationFromOption,
    SchemaOption,
    StrictOption,
    VariableOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import UsageError


def lineage(
    ui: Ui,
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH…", help="Files, folders, or - for stdin.")] = None,
    dialect: DialectOption = None,
    schema: SchemaOption = None,
    catalog: CatalogOption = None,
    explain: ExplainOption = False,
    default_catalog: DefaultCatalogOption = None,
    default_schema: DefaultSchemaOption = None,
    relation_from: RelationFromOption = None,
    var: VariableOption = None,
    semantics: Annotated[
        str, typer.Option("--semantics", metavar="precise|lineagex", help="Count the arms of UNION ALL as references.")
    ] = "precise",
    batch: Annotated[
        bool, typer.Option("--batch", help="Serve JSON lines: one request per line in, one answer per line out.")
    ] = False,
    follow_links: FollowLinksOption = False,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Show the column lineage of SQL files, without a store.

      govtool lineage query.sql --dialect snowflake --format json
      cat etl/*.sql | govtool lineage - --dialect postgres --schema ddl.sql

    Statements may come in any order; they are resolved against each other. For a dbt model, the models that it names
    with ref are read, too.
    """
    if batch:
        if paths:
            raise UsageError("--batch reads stdin and takes no PATH", code="usage.arguments")
        if any(
            (
                schema,
                catalog,
                explain,
                default_catalog,
                default_schema,
                relation_from,
                var,
                format,
                output,
                strict,
                min_coverage,
            )
        ):
            raise UsageError(
                "--batch goes with --dialect and --semantics only",
                code="usage.arguments",
                hint="each input line brings its own schema, default_db and default_schema",
            )
        _serve(ui, semantics, dialect or "")
        return
    if not paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="give files or folders, or - for stdin")
    from govtool.api.lineage import lineage as lineage_of
    from govtool.render.lineage import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    ui.mark("start")
    with ui.progressing("reading SQL") as progress:
        answer = lineage_of(
            paths=paths,
            dialect=dialect,
            schema=schema,
            catalog=catalog,
            explain=explain,
            default_catalog=default_catalog,
            default_schema=default_schema,
            relation_from=relation_from,
            var=var,
            semantics=semantics,
            follow_links=follow_links,
            stdin=sys.stdin.buffer,
            progress=progress,
        )
    ui.mark("read and extract")
    for form, file in outputs:
        ui.show(render(form, answer), file)
    ui.out.flush()
    show_diagnostics(ui, answer.diagnostics, answer.text)
    answer.check_coverage(strict=strict, min_coverage=min_coverage)


def _serve(ui: Ui, semantics: str, dialect: str) -> None:
    from govtool.app.lineage.batch import serve
    from govtool.app.project.requests import check_semantics

    check_semantics(semantics)
    for line in serve(sys.stdin.buffer, semantics, dialect):
        ui.out.write(line + "\n")
        ui.out.flush()
