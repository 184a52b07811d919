"""Turns a function into a command: adds the options that every command has, and hands it a ``Ui``."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Annotated, Any, cast, get_type_hints

import typer

from govtool.cli.ui import ColorMode, Ui
from govtool.errors import IntegrityError

_PANEL = "Output"

_COMMON: dict[str, tuple[Any, object]] = {
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Only the answer and errors.", rich_help_panel=_PANEL)],
        False,
    ),
    "verbose": (
        Annotated[
            int,
            typer.Option("--verbose", "-v", count=True, help="More detail; repeat for more.", rich_help_panel=_PANEL),
        ],
        0,
    ),
    "progress": (
        Annotated[bool, typer.Option("--progress/--no-progress", help="Progress bars.", rich_help_panel=_PANEL)],
        True,
    ),
    "color": (
        Annotated[ColorMode, typer.Option("--color", help="Colours; NO_COLOR is respected.", rich_help_panel=_PANEL)],
        "auto",
    ),
    "timings": (
        Annotated[bool, typer.Option("--timings", help="Show the time of each stage.", rich_help_panel=_PANEL)],
        False,
    ),
    "debug": (
        Annotated[bool, typer.Option("--debug", help="Show tracebacks.", rich_help_panel=_PANEL)],
        False,
    ),
}


def as_command(name: str, function: Callable[..., int | None]) -> Any:
    """Make the command ``name`` of a function whose first parameter is the ``Ui``; its result is the exit code.

    An attribute ``spellings`` of the function has other ways to write a flag: of one that may have a value.
    """
    bundles, own = _parameters(function)
    common = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in _COMMON.items()
    ]

    @functools.wraps(function)
    def run(**arguments: Any) -> int:
        ui = Ui(**{key: arguments.pop(key) for key in _COMMON})
        for name, (bundle, fields) in bundles.items():
            arguments[name] = bundle(**{field: arguments.pop(field) for field in fields})
        current.append(ui)
        if "govtool.app.index" in sys.modules:  # a process may run several commands
            sys.modules["govtool.app.index"].forget_opened()
        try:
            try:
                code = function(ui, **arguments) or 0
            except (BrokenPipeError, typer.Exit, typer.Abort):
                raise
            except Exception:
                if not _starts_again(ui):
                    raise
                code = function(ui, **arguments) or 0
            _note_damage(ui)
            ui.out.flush()
        except BrokenPipeError as error:
            raise ReaderLeftError from error
        ui.show_timings()
        return code

    run.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *common]}
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, help=_help(function), context_settings={"help_option_names": ["-h", "--help"]})(run)
    command = typer.main.get_command(app)
    _hide_obvious_types(command)
    spellings: dict[str, str] | None = getattr(function, "spellings", None)
    if spellings:
        command.parse_args = _spelled(command.parse_args, spellings)  # type: ignore[method-assign]
    return command


def parameters_of(function: Callable[..., object]) -> list[inspect.Parameter]:
    """The arguments and options of a command's function, without its ``Ui``; those of bundles one by one.

    A bundle is a parameter whose type is a dataclass: options that several commands have, declared once.
    """
    return _parameters(function)[1]


_Bundles = dict[str, tuple[type[Any], list[str]]]
"""Classes of bundles and the names of their fields, by parameter."""


def _parameters(function: Callable[..., object]) -> tuple[_Bundles, list[inspect.Parameter]]:
    bundles: _Bundles = {}
    own: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            own.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        fields = [
            each.replace(annotation=get_type_hints(hint, include_extras=True)[each.name], kind=each.KEYWORD_ONLY)
            for each in inspect.signature(hint).parameters.values()
        ]
        bundles[parameter.name] = (cast("type[Any]", hint), [each.name for each in fields])
        own += fields
    return bundles, own


def _hide_obvious_types(command: Any) -> None:
    """Leave ``<bool>`` of flags and ``<list[str]>`` of arguments out of the help: they take a third of its width."""
    help_option = command.get_help_option

    def plain_help(context: Any) -> Any:
        option = help_option(context)
        if option is not None:
            option.display_type_rich = _no_type
        return option

    command.get_help_option = plain_help
    for param in command.params:
        is_argument = param.param_type_name == "argument" and param.metavar is not None
        if is_argument or getattr(param, "is_flag", False) or getattr(param, "count", False):
            param.display_type_rich = _no_type


def _no_type(ctx: object = None) -> None:
    """In the place of a parameter's type in the help."""


def _spelled(parse: Callable[..., list[str]], spellings: dict[str, str]) -> Callable[..., list[str]]:
    """A parser of arguments that takes other spellings of flags, before ``--``."""

    def parsed(context: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return parse(context, [*(spellings.get(word, word) for word in args[:end]), *args[end:]])

    return parsed


def _starts_again(ui: Ui) -> bool:
    """Return whether what failed may do so no more, since a damaged index of the cache was the cause and is now gone.

    Raises:
        IntegrityError: it was the cause, and a part of an answer is out already.
    """
    indexes = sys.modules.get("govtool.app.index")
    if indexes is None or not indexes.damaged_since():
        return False
    if ui.wrote:
        raise IntegrityError(
            "the index in the cache was damaged: what was printed may be wrong",
            code="store.corrupt-index",
            hint="run it again: the index will be built anew",
        )
    return True


def _note_damage(ui: Ui) -> None:
    indexes = sys.modules.get("govtool.app.index")
    for directory in indexes.damaged_indexes() if indexes is not None else ():
        ui.note(f"warning[store.corrupt-index] a damaged index was built again: {directory.name}")


def _help(function: Callable[..., object]) -> str:
    """The docstring for rich: paragraphs to be wrapped anew, indented ones as command lines."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(
        "\n".join(f"[cyan]$ {escape(line.strip())}[/]" for line in paragraph.splitlines())
        if paragraph.startswith("  ") or all(line.startswith("govtool ") for line in paragraph.splitlines())
        else escape(" ".join(paragraph.split()))
        for paragraph in paragraphs
    )


def escape(text: str) -> str:
    """Text that rich's markup leaves alone."""
    return text.replace("[", "\\[")


class ReaderLeftError(Exception):
    """Whoever read stdout has closed it. Not an OSError: typer would turn that into exit code 1."""


current: list[Ui] = []
"""The ``Ui`` of the command that runs, for the error handler; empty before a command's options are parsed."""
