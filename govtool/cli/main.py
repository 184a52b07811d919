"""``govtool``: finds the command, imports only that, runs it, renders errors, returns the exit code."""

from __future__ import annotations

import contextlib
import difflib
import functools
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from govtool.cli.command import ReaderLeftError, as_command, current
from govtool.cli.failing import as_os_error, as_usage_error, note_interrupt, open_streams, reader_left, report
from govtool.cli.interrupts import interruptible
from govtool.cli.ui import Ui
from govtool.errors import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_STORE,
    EXIT_USAGE,
    GovtoolError,
    UnknownNameError,
)
from govtool.release import __version__
from govtool.render.errors import error_lines, unexpected_lines

_SUMMARY = """Column lineage and impact analysis on one versioned graph.
  $ govtool ingest sql warehouse/ --dialect postgres
  $ govtool impact shop.web.page"""


class _Entry(NamedTuple):
    """A command: its function, its line in the list of commands, and its module."""

    function: str
    summary: str
    panel: str = "Commands"
    module: str = ""
    """Empty: called as the function."""

    def load(self) -> Callable[..., int | None]:
        """Import the command."""
        module = import_module(f"govtool.cli.{self.module or self.function}")
        found: Callable[..., int | None] = getattr(module, self.function)
        return found


_QUESTIONS = "Ask the graph"
_FEED = "Feed the graph"
_KEEP = "Keep it"
_ALSO = frozenset(
    {
        *("workflow", "serve", "export", "graph", "snapshot"),
        *("why", "compare", "classify", "zoom", "subgraph", "depends", "replay", "verify"),
        *("index", "branch", "tag", "trust", "config", "help"),
    }
)
"""Commands that the list of all only names."""

COMMANDS: Mapping[str, _Entry | dict[str, _Entry]] = {
    "init": _Entry("init", "Create a store.", _FEED),
    "ingest": {
        "all": _Entry("ingest_all", "Bring every source of govtool.toml up to date.", _FEED),
        "sql": _Entry("ingest_sql", "Read SQL files into the graph and commit.", _FEED),
        "dbt": _Entry("ingest_dbt", "Read a dbt project's artifacts into the graph and commit.", _FEED),
        "log": _Entry("ingest_log", "Read query logs into the graph and commit.", _FEED),
        "catalog": _Entry("ingest_catalog", "Read the catalog of a database into the graph and commit.", _FEED),
        "openlineage": _Entry("ingest_openlineage", "Read OpenLineage events into the graph and commit.", _FEED),
        "prov": _Entry("ingest_prov", "Read W3C PROV documents into the graph and commit.", _FEED),
        "spark": _Entry("ingest_spark", "Read event logs of Spark applications into the graph and commit.", _FEED),
    },
    "run": _Entry("run", "Run a PySpark job as it is, and commit what it did.", _FEED),
    "workflow": {
        "run": _Entry("workflow_run", "Run the executions of a workflow, and commit what they did."),
        "list": _Entry("workflow_list", "The runs of workflows."),
        "show": _Entry("workflow_show", "One run: its modules, and what they received, kept and made."),
    },
    "serve": {
        "openlineage": _Entry("serve_openlineage", "Receive OpenLineage events over HTTP and commit them.", _FEED)
    },
    "export": {
        "openlineage": _Entry("export_openlineage", "Write the graph as OpenLineage events, or send them.", _FEED),
        "graph": _Entry("export_graph", "Write the graph as CSV, Parquet, Graphviz, Mermaid, PROV …", _FEED),
    },
    "graph": {
        "import": _Entry("graph_import", "Read a provenance graph into the store and commit."),
        "export": _Entry("graph_export", "Write a provenance graph: JSON, DOT, GraphML, PROV-JSON."),
        "list": _Entry("graph_list", "The provenance graphs of the store."),
    },
    "lineage": _Entry("lineage", "Column lineage of SQL, without a store.", _FEED),
    "impact": _Entry("impact", "Show what depends on a column, and what a change would break.", _QUESTIONS),
    "path": _Entry("path", "Find the shortest lineage paths between columns.", _QUESTIONS),
    "why": _Entry("why", "Which records are behind each row of a query, and how.", _QUESTIONS),
    "explain": _Entry("explain", "Show the sources and readers of a column.", _QUESTIONS),
    "report": {"html": _Entry("report_html", "Draw the graph as one HTML file to click through.", _QUESTIONS)},
    "compare": {
        "oracle": _Entry("compare_oracle", "Compare the graph with a warehouse's own records."),
        "static": _Entry("compare_static", "Lineage from text against lineage from runs."),
    },
    "sources": {
        "list": _Entry("sources_list", "List the sources: their kind, place, last commit and coverage."),
        "drop": _Entry("sources_drop", "Retract everything that a source put into the graph."),
    },
    "coverage": _Entry("coverage", "Show how much was understood, and what was not.", _QUESTIONS),
    "whatif": {
        "drop": _Entry("whatif_drop", "Show what breaks if columns or datasets are dropped.", module="whatif_changes"),
        "rename": _Entry(
            "whatif_rename", "Show what breaks if a column or dataset is renamed.", module="whatif_changes"
        ),
        "retype": _Entry(
            "whatif_retype", "Show what breaks or changes with another column type.", module="whatif_changes"
        ),
        "mask": _Entry("whatif_mask", "Show what changes if columns hold masked values.", module="whatif_changes"),
        "delete": _Entry("whatif_delete", "Show what changes or loses its last source."),
        "several": _Entry("whatif_several", "Show what changes of several kinds do together."),
    },
    "erase": {
        "plan": _Entry("erase_plan", "List every dataset with a data subject's data, in order."),
        "apply": _Entry("erase_apply", "Write corrected copies of what a plan on rows changes."),
        "verify": _Entry("erase_verify", "Check corrected copies against their certificate."),
    },
    "ls": _Entry("ls", "List datasets and columns, by selectors.", _QUESTIONS),
    "classes": _Entry("classes", "Show the classes of columns, and where they come from.", _QUESTIONS),
    "classify": _Entry("classify", "Propose classes for columns, as a policy to review.", _QUESTIONS),
    "check": _Entry("check", "Check the lineage graph against your policies.", _QUESTIONS),
    "policy": {
        "lint": _Entry("policy_lint", "Find mistakes, and rules and patterns that match nothing."),
        "test": _Entry("policy_test", "Run the tests beside the rules."),
        "explain": _Entry("policy_explain", "Describe rules in words."),
        "schema": _Entry("policy_schema", "Print the JSON Schema of policy files."),
    },
    "trace": {
        "back": _Entry("trace_back", "Show the input rows behind rows of an output."),
        "forward": _Entry("trace_forward", "Show the output rows that rows of an input reached."),
    },
    "zoom": {
        "out": _Entry("zoom_out", "Show each invocation of modules as one node."),
        "in": _Entry("zoom_in", "Show the inside of modules again."),
    },
    "subgraph": _Entry("subgraph", "Show the ancestors and descendants of a node.", _QUESTIONS),
    "depends": _Entry("depends", "Show whether a node depends on some records.", _QUESTIONS),
    "replay": _Entry("replay", "A recorded run over changed inputs, compared with what it wrote.", _QUESTIONS),
    "runs": _Entry("runs", "List runs: how they ended, what they read and wrote.", _QUESTIONS),
    "diff": _Entry("diff", "Compare two versions, or two runs of a job.", _QUESTIONS),
    "snapshot": _Entry("snapshot", "Record a version of a dataset with its provenance.", _FEED),
    "verify": _Entry("verify", "Check that data still is what was recorded.", _QUESTIONS),
    "log": _Entry("log", "List the commits of the store, newest first.", _KEEP),
    "show": _Entry("show", "Show a commit, a run, or the sources of a dataset version.", _KEEP),
    "revert": _Entry("revert", "Undo a commit by a new one.", _KEEP),
    "index": _Entry("index", "Build the local index of a commit ahead of time.", _KEEP),
    "branch": {
        "create": _Entry("branch_create", "Start a branch."),
        "list": _Entry("branch_list", "List the branches and their heads."),
        "delete": _Entry("branch_delete", "Delete a branch."),
        "merge": _Entry("branch_merge", "Merge a branch."),
    },
    "tag": {
        "create": _Entry("tag_create", "Name a commit."),
        "list": _Entry("tag_list", "List the tags and their commits."),
        "delete": _Entry("tag_delete", "Delete a tag."),
    },
    "store": {
        "compact": _Entry("store_compact", "Drop dead entries from the manifest."),
        "gc": _Entry("store_gc", "Remove what nothing refers to."),
        "fsck": _Entry("store_fsck", "Check hashes, the chain, holes."),
        "anchor": _Entry("store_anchor", "Print what a later fsck compares with."),
        "copy": _Entry("store_copy", "Copy the store to another place."),
        "repair-clock": _Entry("store_repair_clock", "Let commits follow one that a clock in the future made."),
        "forget": _Entry("store_forget", "Remove text, private records or a source from every version."),
    },
    "doctor": _Entry("doctor", "Diagnose the setup; find names that may be one dataset.", _KEEP),
    "trust": _Entry("trust", "Allow the store outside of its folder that a project's settings name.", _KEEP),
    "help": _Entry("help_command", "Show the help of a command, or the options that many share.", _KEEP),
    "config": {"show": _Entry("config_show", "Show the settings in effect, and where each comes from.", _KEEP)},
}
"""Every command; groups are dictionaries. Modules are below ``govtool.cli`` and hold a function of their own name."""

_GROUPS = {
    "ingest": _Entry("", "Read evidence into the graph and commit.", _FEED),
    "sources": _Entry("", "Sources of the graph: list them, or retract one.", _KEEP),
    "workflow": _Entry("", "Run workflows of modules, with state from run to run.", _FEED),
    "serve": _Entry("", "Receive evidence and commit it.", _FEED),
    "export": _Entry("", "Write the graph for other tools.", _FEED),
    "report": _Entry("", "The graph as a picture to click through.", _QUESTIONS),
    "compare": _Entry("", "One kind of evidence against another.", _QUESTIONS),
    "whatif": _Entry("", "What a change would do, to many columns at once.", _QUESTIONS),
    "erase": _Entry("", "What to do with a data subject's data.", _QUESTIONS),
    "trace": _Entry("", "Rows behind a result, and results that rows reached.", _QUESTIONS),
    "graph": _Entry("", "Provenance graphs of workflows.", _FEED),
    "zoom": _Entry("", "Modules of a provenance graph whole, or what happens within them.", _QUESTIONS),
    "policy": _Entry("", "Validate, test and explain policy files.", _QUESTIONS),
    "branch": _Entry("", "Branches: lines of versions beside main.", _KEEP),
    "tag": _Entry("", "Names for commits.", _KEEP),
    "store": _Entry("", "Upkeep of the store.", _KEEP),
    "config": _Entry("", "Settings.", _KEEP),
}


_FORMS = {"whatif": "govtool whatif --drop A --rename B=C"}
"""Groups whose help shows the form without a word of their own."""
_ALONE = {"sources": "list", "ingest": "all", "whatif": "several"}
"""Groups that are a command, too: what they do without a word of their own."""
_RENAMED = {"record": "snapshot"}
"""Commands by their former names: they run as before, with a notice, and are in no list."""


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and imports one only when it is run."""

    entries: Mapping[str, Any]
    top = False
    """True of the group of all commands."""
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the table."""
        return list(self.entries)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take a group without a command for that of ``_ALONE``, with its options."""
        alone = _ALONE.get(ctx.info_name or "")
        if alone is not None and (not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))):
            args = [alone, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or a light stand-in with its summary while the commands are being listed."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return self._renamed(cmd_name)
        about = _GROUPS[cmd_name] if isinstance(entry, dict) else entry
        if self._listing:
            return TyperCommand(
                name=cmd_name, help=about.summary, short_help=about.summary, rich_help_panel=about.panel
            )
        if isinstance(entry, dict):
            form = f"\n  $ {_FORMS[cmd_name]}" if cmd_name in _FORMS else ""
            return _group(cmd_name, about.summary + form, entry, top=False)
        return as_command(cmd_name, entry.load())

    def _renamed(self, former: str) -> Any:
        """The command that once had this name, with a notice; None if there is none in this group."""
        name = _RENAMED.get(former, "")
        entry = self.entries.get(name)
        if entry is None:
            return None
        function = entry.load()

        @functools.wraps(function)
        def run(ui: Ui, **arguments: Any) -> int | None:
            ui.note(f"govtool {former} is now govtool {name}")
            code: int | None = function(ui, **arguments)
            return code

        return as_command(former, run)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one is an error with the nearest names."""
        if (
            args[0] in self.entries
            or _RENAMED.get(args[0]) in self.entries
            or ctx.resilient_parsing
            or args[0].startswith("-")
        ):
            return super().resolve_command(ctx, args)
        raise UnknownNameError(
            f"no command {args[0]}",
            code="usage.unknown-command",
            nearest=tuple(difflib.get_close_matches(args[0], self.entries)),
            hint=f"{ctx.command_path} --help",
        )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without importing any command."""
        from govtool.cli.help import group_help

        panels: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            about = _GROUPS[name] if isinstance(entry, dict) else entry
            panels.setdefault(about.panel, []).append((name, about.summary))
        ordered = {title: panels[title] for title in (_FEED, _QUESTIONS, _KEEP) if title in panels} if self.top else {}
        flat = [each for commands in panels.values() for each in commands]
        formatter.write(
            group_help(ctx, self.help or "", ordered or {"Commands": flat}, _ALSO if self.top else frozenset())
        )

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete names without importing any command."""
        with self._list_only():
            return super().shell_complete(ctx, incomplete)

    @contextlib.contextmanager
    def _list_only(self) -> Iterator[None]:
        self._listing = True
        try:
            yield
        finally:
            self._listing = False


def _group(name: str, summary: str, entries: Mapping[str, Any], *, top: bool) -> LazyGroup:
    app = typer.Typer(
        cls=LazyGroup,
        name=name,
        help=summary,
        add_completion=top,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top if top else _below)
    group = typer.main.get_command(app)
    if not isinstance(group, LazyGroup):
        raise TypeError("typer made no group")  # a change in typer's behaviour, not a user's error
    group.entries, group.top = entries, top
    return group


def _print_version(value: bool) -> None:
    if value:
        from govtool.build_form import form

        sys.stdout.write(f"govtool {__version__} ({form()})\n")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _below() -> None:
    pass


def _completing() -> contextlib.AbstractContextManager[None]:
    """Return the settings of a shell's completion beside typer's; none where none is requested."""
    if "_GOVTOOL_COMPLETE" not in os.environ:
        return contextlib.nullcontext()
    from govtool.cli.complete import whole_words

    return whole_words(os.environ)


def main(arguments: list[str] | None = None) -> int:
    """Run govtool and return its exit code; the console script's entry point."""
    open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    argv = sys.argv[1:] if arguments is None else arguments
    current.clear()
    try:
        with interruptible(), _completing():
            code = _group("govtool", _SUMMARY, COMMANDS, top=True).main(
                argv, prog_name="govtool", standalone_mode=False, windows_expand_args=False
            )
        sys.stdout.flush()
    except (BrokenPipeError, ReaderLeftError):
        return reader_left()
    except SystemExit as done:  # typer's way of saying that the reader left while it printed help
        if not isinstance(done.__context__, BrokenPipeError):
            raise
        return reader_left()
    except (KeyboardInterrupt, Abort):
        note_interrupt()
        return EXIT_INTERRUPTED
    except GovtoolError as error:
        return report(error_lines(error), error.exit_code)
    except TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export the class
            sys.stdout.write(f"{error.message}\n")
            return EXIT_USAGE
        return report(error_lines(as_usage_error(error)), EXIT_USAGE) if error.message or str(error) else EXIT_USAGE
    except MemoryError:
        memory = GovtoolError("out of memory", code="internal.memory", hint="take fewer files at a time")
        return report(error_lines(memory), EXIT_INTERNAL)
    except OSError as error:
        return report(error_lines(as_os_error(error)), EXIT_STORE)
    except Exception as error:
        return report(unexpected_lines(error), EXIT_INTERNAL)
    if code == EXIT_INTERRUPTED:
        note_interrupt()
    return int(code or EXIT_OK)
