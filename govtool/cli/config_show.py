"""``govtool config show``: the settings in effect."""

from __future__ import annotations

from pathlib import Path

from govtool.cli.formats import chosen
from govtool.cli.options import FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.config import load_config, settings
from govtool.render.settings import FORMATS, render


def config_show(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """The settings in effect and where each comes from.

      govtool config show
      govtool config show --format json

    Options win over the environment, the environment over govtool.toml, that over the defaults.
    """
    outputs = chosen(format, output, FORMATS)
    found = settings(store, load_config(Path.cwd()))
    for form, file in outputs:
        ui.show(render(form, found), file)
