"""``govtool erase apply``: corrected copies of what a plan on rows changes, with a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.options import FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK


def erase_apply(
    ui: Ui,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN.json", help="What erase plan --run RUN -f json -o PLAN.json wrote.")
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="A folder that is not there, or is empty; never an original's.")
    ],
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Write corrected copies of every dataset that a plan changes, with a certificate.

      govtool erase apply plan.json --to corrected

    Originals are never written. Files must be those that the plan was made of (else exit code 4). Every copy is
    verified: the recorded plan is evaluated over the corrected inputs. The folder is there as a whole, or not at all.
    The exit code is 3 where rows are unknown, or a dataset could not be written. Formats: table, plain, json, csv,
    markdown.
    """
    from govtool.api.erasure import apply_erasure
    from govtool.cli.formats import chosen
    from govtool.render.row_erasure import FORMATS, render_certificate

    outputs = chosen(format, output, FORMATS)
    answer = apply_erasure(plan, to, store=store)
    ui.mark("applied")
    for form, file in outputs:
        ui.show(render_certificate(form, answer), file, private=True)
    return EXIT_EVIDENCE if answer.document["unknown"] or answer.document["not_written"] else EXIT_OK
