"""``govtool log``: the commits of the store."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.options import AllOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.ui import Ui

_SHOWN = 20


def log(
    ui: Ui,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """The commits of the store, newest first.

      govtool log
      govtool log --all --format json

    With -v each commit has its statements understood fully, partly and not at all, and the reasons that cost most.
    """
    from govtool.api.history import log as read_log
    from govtool.render.commits import FORMATS, render_log, render_log_coverage

    outputs = chosen(format, output, FORMATS)
    shown = None if all else _SHOWN if limit is None else limit
    answer = read_log(store, branch=branch, limit=shown, coverage=bool(ui.verbose))
    for form, file in outputs:
        ui.show(render_log(form, answer), file)
        if ui.verbose and form == "table" and file is None and answer.commits:
            ui.write([""])
            ui.show(render_log_coverage(answer))
