"""``govtool``: finds the command, imports only that, runs it, renders errors, returns the exit code."""

from __future__ import annotations

import contextlib
import difflib
import functools
import io
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from govtool.cli.commands import ALONE, COMMANDS, FORMS, GROUPS, PANELS, RENAMED, Panel
from govtool.cli.shared.command import ReaderLeftError, as_command, current
from govtool.cli.shared.exit_codes import (
    as_os_error,
    as_usage_error,
    interruptible,
    is_interrupted,
    note_interrupt,
    open_streams,
    reader_left,
    report,
)
from govtool.cli.shared.ui import Ui
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

_SUMMARY = "Column lineage and impact analysis on one versioned graph."


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
        """Take a group without a command for that of ``ALONE``, with its options."""
        alone = ALONE.get(ctx.info_name or "")
        if alone is not None and (not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))):
            args = [alone, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or a light stand-in with its summary while the commands are being listed."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return self._renamed(cmd_name)
        about = GROUPS[cmd_name] if isinstance(entry, dict) else entry
        if self._listing:
            return TyperCommand(name=cmd_name, help=about.summary, short_help=about.summary)
        if isinstance(entry, dict):
            form = f"\n  $ {FORMS[cmd_name]}" if cmd_name in FORMS else ""
            return _group(cmd_name, about.summary + form, entry, top=False)
        return as_command(cmd_name, entry.load())

    def _renamed(self, former: str) -> Any:
        """The command that once had this name, with a notice; None if there is none in this group."""
        name = RENAMED.get(former, "")
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
            or RENAMED.get(args[0]) in self.entries
            or ctx.resilient_parsing
            or args[0].startswith("-")
        ):
            return super().resolve_command(ctx, args)
        raise UnknownNameError(
            f"no command {args[0]}",
            code="usage.unknown-command",
            nearest=tuple(difflib.get_close_matches(args[0], self.entries)),
            hint=f"{ctx.command_path} --help" if self.top else f"one of {', '.join(self.entries)}",
        )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without importing any command."""
        from govtool.cli.shared.help import group_help

        abouts = {name: GROUPS[name] if isinstance(entry, dict) else entry for name, entry in self.entries.items()}
        summaries = {name: about.summary for name, about in abouts.items()}
        panels = PANELS if self.top else (Panel("", tuple(summaries)),)
        formatter.write(group_help(ctx, self.help or "", panels, summaries))

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
    from govtool.cli.shared.complete import whole_words

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
    except Exception as error:
        if not is_interrupted():
            return _failed(error)
        note_interrupt()
        return EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        note_interrupt()
    return int(code or EXIT_OK)


def _failed(error: Exception) -> int:
    """Write an error that is being handled; return its exit code."""
    if isinstance(error, GovtoolError):
        return report(error_lines(error), error.exit_code)
    if isinstance(error, TyperException):
        if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export the class
            sys.stdout.write(f"{error.message}\n")
            return EXIT_USAGE
        return report(error_lines(as_usage_error(error)), EXIT_USAGE) if error.message or str(error) else EXIT_USAGE
    if isinstance(error, MemoryError):
        memory = GovtoolError("out of memory", code="internal.memory", hint="take fewer files at a time")
        return report(error_lines(memory), EXIT_INTERNAL)
    if isinstance(error, OSError):
        return report(error_lines(as_os_error(error)), EXIT_STORE)
    return report(unexpected_lines(error), EXIT_INTERNAL)
