"""``govtool erase verify``: a certificate, checked again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.options import FormatOption, OutputOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK


def erase_verify(
    ui: Ui,
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file certificate.json of corrected copies.")
    ],
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="The folder of the copies. Default: the certificate's.")
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> int:
    """Check that corrected copies still are what their certificate says.

      govtool erase verify corrected/certificate.json

    Each file must have its digest, rows theirs, nothing may be there besides, and no row may hold the subject's key.
    The exit code is 1 if anything differs. Formats: table, plain, json, csv, markdown.
    """
    from govtool.api.erasure import verify_erasure
    from govtool.cli.formats import chosen
    from govtool.render.row_erasure import FORMATS, render_certificate

    outputs = chosen(format, output, FORMATS)
    answer = verify_erasure(certificate, folder)
    ui.mark("verified")
    for form, file in outputs:
        ui.show(render_certificate(form, answer, checked=True), file, private=True)
    return EXIT_FINDINGS if answer.problems else EXIT_OK
