"""``govtool erase``: what to do with a data subject's data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.shared.complete import complete_name, complete_selector
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import opened_graph
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FormatOption,
    MinCoverageOption,
    OutputOption,
    PolicyOption,
    StoreOption,
    StrictAnswerOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK


def erase_plan(
    ui: Ui,
    subject: Annotated[
        list[str],
        typer.Option(
            "--subject",
            metavar="COLUMN[=VALUE]",
            autocompletion=complete_name,
            help="Key of the data subject, TABLE.COLUMN=VALUE. The value is never stored or shown. Repeatable.",
        ),
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="SELECTOR",
            autocompletion=complete_selector,
            help="Further columns that hold the same identifier. Repeatable.",
        ),
    ] = None,
    no_subject: Annotated[
        list[str] | None,
        typer.Option(
            "--no-subject",
            metavar="DATASET",
            help="With --run: an input that holds nothing about a subject, and is not searched. Repeatable.",
        ),
    ] = None,
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="Let data expire if its retention ends within this time.")
    ] = "30d",
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values of --subject instead of an ellipsis.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="List rows: of a recorded run, an application, JOB~1, or a workflow's run."
        ),
    ] = None,
    all_runs: Annotated[
        bool, typer.Option("--all-runs", help="List rows of all recorded runs; with --run, of those joined with it.")
    ] = False,
    strict: StrictAnswerOption = False,
    policy: PolicyOption = None,
    today: TodayOption = None,
    min_coverage: MinCoverageOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """List every dataset with a data subject's data, in the order of work.

      govtool erase plan --subject crm.users.id
      govtool erase plan --subject crm.users.id=42 --key shop.guests.uid -f markdown -o plan.md
      govtool erase plan --subject crm.users.id=42 --run nightly/load --all-runs -f json -o plan.json

    The plan follows copies of the key, joins on it, and everything derived from these datasets. With policies it
    knows classes, declassifiers and retention. With --run or --all-runs it lists rows: which to delete, which change,
    which appear; govtool erase apply takes this plan. Only its owner can read a file of rows. The exit code is 3 if
    rows are unknown.
    """
    from govtool.answers.row_erasure import RowErasureAnswer
    from govtool.render.erase import FORMATS, render
    from govtool.render.row_erasure import render_rows

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        answer = graph.erase_plan(
            subject,
            key=key,
            within=within,
            show_values=show_values,
            policy=policy,
            today=today,
            run=run,
            all_runs=all_runs,
            no_subject=no_subject,
        )
    ui.mark("plan")
    of_rows = isinstance(answer, RowErasureAnswer)
    for form, file in outputs:
        made = render_rows(form, answer, show_values) if isinstance(answer, RowErasureAnswer) else render(form, answer)
        ui.show(made, file, private=of_rows)
    answer.check_coverage(min_coverage=min_coverage)
    if strict:
        answer.check_strict()
    return EXIT_EVIDENCE if isinstance(answer, RowErasureAnswer) and not answer.is_certain else EXIT_OK


def erase_apply(
    ui: Ui,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN.json", help="A plan written by erase plan --run RUN -f json -o PLAN.json.")
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="A new or empty folder; never the folder of an original.")
    ],
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Write corrected copies of every dataset that a plan changes, with a certificate.

      govtool erase apply plan.json --to corrected

    Originals are never written. Files must be the same as for the plan (else exit code 4). Every copy is verified:
    the recorded plan is evaluated over the corrected inputs. The folder is written as a whole, or not at all. The
    exit code is 3 if rows are unknown, or a dataset could not be written.
    """
    from govtool.api.erasure import apply_erasure
    from govtool.render.row_erasure import FORMATS, render_certificate

    outputs = chosen(format, output, FORMATS)
    answer = apply_erasure(plan, to, store=store)
    ui.mark("applied")
    for form, file in outputs:
        ui.show(render_certificate(form, answer), file, private=True)
    return EXIT_EVIDENCE if answer.document["unknown"] or answer.document["not_written"] else EXIT_OK


def erase_verify(
    ui: Ui,
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="The folder of corrected copies, or the certificate.json in it."),
    ],
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="The folder of the copies. Default: the certificate's.")
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> int:
    """Check that corrected copies still are what their certificate says.

      govtool erase verify corrected/certificate.json

    Files and rows must have their digests, there may be no other file, and no row may hold the subject's key. The
    exit code is 1 if anything differs.
    """
    from govtool.api.erasure import verify_erasure
    from govtool.render.row_erasure import FORMATS, render_certificate

    outputs = chosen(format, output, FORMATS)
    answer = verify_erasure(certificate, folder)
    ui.mark("verified")
    for form, file in outputs:
        ui.show(render_certificate(form, answer, checked=True), file, private=True)
    return EXIT_FINDINGS if answer.problems else EXIT_OK
