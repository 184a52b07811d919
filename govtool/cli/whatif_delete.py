"""``govtool whatif delete``: of columns, of a provenance graph, of a query's rows, and of what a workflow run wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from govtool.cli.graph_files import (
    AllRunsOption,
    FromOption,
    GraphOptions,
    GraphRunOption,
    InGraphOption,
    delete_in_graph,
)
from govtool.cli.shared.common import refuse, selects
from govtool.cli.shared.complete import complete_selector
from govtool.cli.shared.options import FollowLinksOption
from govtool.cli.shared.row_query import (
    KeyOption,
    ModeOption,
    QueryDialectOption,
    RowQuery,
    WhatIfDataOption,
    WhatIfSqlOption,
    delete_in_query,
)
from govtool.cli.shared.ui import Ui
from govtool.cli.whatif import WhatIfOptions, answer
from govtool.errors import EXIT_OK, EvidenceError, UsageError

OutputsOption = Annotated[
    list[str] | None,
    typer.Option("--outputs", metavar="REL", help="--run: judge REL or NODE/REL@EXECUTION; repeat."),
]
ProgramOption = Annotated[
    str | None,
    typer.Option(
        "--program",
        metavar="WF.py[:NAME]",
        help="With --run: the workflow, if it is not found.",
    ),
]
_DEFAULT = WhatIfOptions()


@selects
def whatif_delete(
    ui: Ui,
    selector: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SELECTOR…|TOKEN…",
            autocompletion=complete_selector,
            help="Columns and datasets: crm.users.email, 'mart.**' … With --run, --graph or --sql, tokens of records.",
        ),
    ] = None,
    graph: InGraphOption = None,
    run: GraphRunOption = None,
    all_runs: AllRunsOption = False,
    from_: FromOption = None,
    sql: WhatIfSqlOption = None,
    data: WhatIfDataOption = None,
    mode: ModeOption = None,
    outputs: OutputsOption = None,
    program: ProgramOption = None,
    key: KeyOption = None,
    dialect: QueryDialectOption = "spark",
    follow_links: FollowLinksOption = False,
    options: WhatIfOptions = _DEFAULT,
) -> int:
    """Show what changes or loses its last source if data is deleted.

      govtool whatif delete crm.users.email stg.legacy -f json
      govtool whatif delete C2 --graph dealers
      govtool whatif delete o17 --sql query.sql --data tables/
      govtool whatif delete TOKEN --run dealers --outputs BestBid

    A UNION survives the loss of one arm, a join does not. In a graph, nodes are deleted, recomputed, or unknown where
    only a new run can decide (docs/provenance-graphs.md). Rows of a query over files, or of a workflow run, are
    deleted, kept, recomputed or unknown; others appear (docs/why.md, docs/workflows.md).
    """
    of_columns = {
        "--fail-on": options.fail_on != "none",
        "--policy": options.policy,
        "--exclude": options.exclude,
        "--today": options.today,
    }
    if run is not None and graph is None:
        _refuse({"--sql": sql, "--data": data, "--key": key, "--follow-links": follow_links, **of_columns}, "a run")
        how = {"mode": mode or "auto", "outputs": outputs or (), "program": program, "all_runs": all_runs}
        return _delete_in_run(ui, run, how, selector or [], from_, options)
    _refuse({"--outputs": outputs, "--program": program, "--all-runs": all_runs}, "a deletion without --run")
    if graph is not None:
        _refuse({"--sql": sql, "--data": data, "--key": key, "--follow-links": follow_links}, "a graph")
        _refuse_replay(mode)
        shared = (options.limit, options.all, options.format, options.output, options.at, options.branch, options.store)
        stored = GraphOptions(*shared, graph, run)
        return delete_in_graph(ui, stored, selector or [], from_, strict=options.strict, fail_on=options.fail_on)
    if sql is not None:
        for name in (name for name, value in of_columns.items() if value):
            raise UsageError(f"{name} is for columns, not for records", code="usage.arguments", hint="--strict")
        query = RowQuery(sql, data, mode, key, dialect, follow_links, options)
        return delete_in_query(ui, query, selector or [], from_, strict=options.strict)
    if not selector:
        raise UsageError("no column or dataset is named", code="usage.arguments", hint="govtool whatif delete --help")
    if from_ is not None:
        raise UsageError("--tokens is for the records of a --graph or of --sql", code="usage.arguments")
    return answer(ui, "delete", selector, options)


def _refuse(given: Mapping[str, object], what: str) -> None:
    refuse(given, what, "govtool whatif delete --help")


def _refuse_replay(mode: str | None) -> None:
    if mode not in (None, "auto", "propagate"):
        raise UsageError(
            f"a graph cannot be run again: no mode {mode}",
            code="usage.arguments",
            hint="--mode propagate; what only a new run can decide is unknown",
        )


def _delete_in_run(
    ui: Ui, run: str, how: Mapping[str, Any], tokens: list[str], lists: Path | None, options: WhatIfOptions
) -> int:
    """Show what deletions make of the rows of a run: one of the arguments, or one a line of a file.

    Raises:
        UsageError: There are no tokens, or both.
        EvidenceError: With ``--strict``, something is unknown (``evidence.unclear``).
    """
    from govtool.api.opening import open as open_version
    from govtool.app.records.token_lists import read_deletions
    from govtool.render.run_deletion import FORMATS, answer_lines, render_run_deletion

    outputs = options.outputs(FORMATS if lists is None else ("json",))
    if bool(tokens) == (lists is not None):
        raise UsageError("name records, or a file with --tokens", code="usage.arguments")
    deletions = [tokens] if lists is None else read_deletions(str(lists))
    graph = open_version(options.store, ref=options.at, branch=options.branch)
    answers = graph.workflow_deletions(run, deletions, **how)
    ui.mark("answer")
    for form, file in outputs:
        if lists is not None:
            ui.show(answer_lines(answers), file)
        else:
            ui.show(render_run_deletion(form, answers[0], options.bound(form)), file)
    if options.strict and any(answer.is_unclear() for answer in answers):
        raise EvidenceError("only a new run can decide what becomes of some rows", code="evidence.unclear")
    return EXIT_OK


whatif_delete.spellings = {"--from": "--tokens"}  # type: ignore[attr-defined]  # the former name
