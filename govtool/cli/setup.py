"""``govtool init``, ``doctor``, ``trust`` and ``config show``: a project's setup."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.config import load_config, settings
from govtool.errors import EXIT_FINDINGS, EXIT_OK, StoreError
from govtool.render.layout.text import count, printable

if TYPE_CHECKING:
    from govtool.app.project.discover import WrittenSources


def init(
    ui: Ui,
    sources: Annotated[
        bool | None,
        typer.Option(
            "--sources/--no-sources",
            help="Write a govtool.toml that lists the sources in this folder. Default: where --store is not given.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Create a store, and write a govtool.toml that lists the sources in this folder.

      govtool init
      govtool init --store /srv/lineage

    By default the store is .govtool in the working directory. SQL, dbt projects, query logs, event logs
    of Spark, OpenLineage events, PROV documents and databases in files are recognised; govtool ingest reads them. With
    --sources the store may exist, and the sources are added to a govtool.toml that lists none.
    """
    from govtool.api.opening import write_sources

    _create(ui, store, may_exist=sources is True)
    wanted = sources if sources is not None else store is None
    folder = load_config(Path.cwd()).root if sources else None
    written = write_sources(folder, store=store, append=sources is True) if wanted else None
    if written is not None:
        _show(ui, written)
    elif load_config(Path.cwd()).sources:
        ui.hint("govtool ingest")
    else:
        if sources:
            ui.note("nothing to ingest was recognised in this folder")
        named = f" --store {shlex.quote(store)}" if store and not store.startswith("memory:") else ""
        ui.hint(f"govtool ingest sql FOLDER --dialect DIALECT{named}")


def _create(ui: Ui, store: str | None, *, may_exist: bool) -> None:
    """Create the store.

    Raises:
        StoreError: There is one, and that is a mistake; or it cannot be written.
    """
    from govtool.api.opening import init as create

    try:
        place = create(store)
        ui.note(f"created a store in {place}")
        if place.startswith("memory:"):
            ui.note("warning: a store in memory is gone when this command ends; only programs in Python can use one")
    except StoreError as error:
        if error.code != "store.exists" or not may_exist:
            raise
        ui.note("the store exists")


def _show(ui: Ui, written: WrittenSources) -> None:
    ui.note(f"wrote {written.file.name} with {count(len(written.sources), 'source')}:")
    for source in written.sources:
        stated = written.dialects.get(source.paths[0])
        ui.note(f"  {source.label}" + (f" ({stated.dialect}, as {stated.file} states)" if stated else ""))
    if written.overlooked:
        ui.note(f"not looked at: {', '.join(written.overlooked)}; add sources there by hand")
    ui.hint("govtool ingest" + (" (set each dialect in the file first)" if written.needs_dialect else ""))


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

    It also proposes lines for [aliases] in govtool.toml: names that may be one dataset, such as the names of a table
    in SQL, in a catalog and in Spark. It never merges names by itself: you decide.
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


def trust(ui: Ui, revoke: Annotated[bool, typer.Option("--revoke", help="Withdraw the agreement.")] = False) -> None:
    """Allow the store and the sources that this project's govtool.toml names outside of its folder.

      govtool trust
      govtool trust --revoke

    Otherwise a command opens such a store only with --store or GOVTOOL_STORE, and reads such a source only if you
    name it: govtool ingest sql PATH. The agreement applies to this file and these addresses; another address needs a
    new one.
    """
    from govtool.app.project.trust import trust as agree

    verb = "no longer trusted" if revoke else "trusted"
    lines = [f"{verb}: {each.use} {each.address}, as {each.file} names it" for each in agree(revoke=revoke)]
    ui.show([printable(line) for line in lines], None)


def config_show(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """Show the settings in effect, and where each comes from.

      govtool config show
      govtool config show --format json

    Options override the environment, the environment overrides govtool.toml, and this overrides the defaults.
    """
    from govtool.render.settings import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    found = settings(store, load_config(Path.cwd()))
    for form, file in outputs:
        ui.show(render(form, found), file)
