"""``govtool doctor``: whether all is in order."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK


def doctor(
    ui: Ui,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Check the installation, the settings, the cache and the store. Exit code 1 if something is wrong.

      govtool doctor
      govtool doctor --format json

    It also proposes names that may be one dataset, such as a table as SQL, a catalog and Spark call it, as lines for
    [aliases] in govtool.toml. Nothing is merged on likeness alone: you decide.
    """
    from govtool.app.upkeep.doctor import diagnose
    from govtool.render.doctor import FORMATS, alias_lines, render_diagnosis

    outputs = chosen(format, output, FORMATS)
    found = diagnose(store, at, branch)
    for form, file in outputs:
        ui.show(render_diagnosis(form, found), file)
        if form == "table" and file is None:
            ui.write(alias_lines(found))
    return EXIT_OK if found.healthy else EXIT_FINDINGS
