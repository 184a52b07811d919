"""Notebooks: the report of a store in a cell, and a magic for cells of SQL.

%load_ext govtool

%%govtool --dialect snowflake
select lower(email) as e from crm.users
"""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from govtool.api.arguments import Ref, checked
from govtool.api.report import ReportOptions
from govtool.errors import UsageError

if TYPE_CHECKING:
    from typing import Unpack

    from govtool.answers.lineage import LineageAnswer
    from govtool.app.project.requests import PathArgument


@checked
def show(
    *selector: str,
    store: PathArgument | None = None,
    ref: Ref | None = None,
    branch: str | None = None,
    **options: Unpack[ReportOptions],
) -> None:
    """Show the interactive report of a store in a notebook.

    Args:
        selector: The datasets to show: ``mart.**``, ``crm.users+``; by default all.
        store: A path or URI; by default that of the settings.
        ref: A version; by default the newest.
        branch: The branch; by default ``main``.
        **options: Those of ``Graph.report``: ``exclude``, ``diff``, ``erase``, ``title``, ``policy``, ``today``.

    Raises:
        UsageError: No notebook runs (``usage.no-notebook``); see also ``Graph.report``.
        StoreError: There is no store, or it cannot be read.
        UnknownNameError: A selector, a column or a version does not exist.
    """
    from govtool.api.opening import open as open_version

    display = _display()
    graph = open_version(store, ref=ref, branch=branch)
    display(graph.report(*selector, **options))


def _display() -> Any:
    """The function of a notebook that shows an object in the cell that runs."""
    loaded = sys.modules.get("IPython")
    if loaded is None or loaded.get_ipython() is None:
        raise UsageError(
            "this is not a notebook",
            code="usage.no-notebook",
            hint="graph.report().to_html() of graph = govtool.open(); or govtool report html -o lineage.html",
        )
    from IPython.display import display

    return display


def load_ipython_extension(shell: Any) -> None:
    """Add the magic ``%%govtool``; ``%load_ext govtool`` calls it.

    Args:
        shell: The running ``InteractiveShell``.
    """
    shell.register_magic_function(cell_lineage, "cell", "govtool")


def cell_lineage(line: str, cell: str) -> LineageAnswer:
    """The column lineage of a cell of SQL: ``%%govtool [--dialect NAME] [--schema FILE]…``.

    Args:
        line: The options.
        cell: The SQL.

    Raises:
        UsageError: An option is unknown or mistaken (``usage.arguments``).
    """
    from govtool.api.lineage import lineage

    options = _options().parse_args(shlex.split(line))
    answer: LineageAnswer = lineage(cell, dialect=options.dialect, schema=options.schema)
    return answer


class _Parser(argparse.ArgumentParser):
    """A parser of options that raises, where argparse ends the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, code="usage.arguments", hint="%%govtool --dialect NAME --schema FILE")


def _options() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%govtool", add_help=False)
    parser.add_argument("--dialect", "-d")
    parser.add_argument("--schema", action="append")
    return parser
