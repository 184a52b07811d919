"""Turns a function into a command: adds the options that every command has, and hands it a ``Ui``."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, cast, get_type_hints

import typer

from govtool.cli.shared.common import COMMON, AllowEmptyOption
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, IntegrityError, UsageError

_ALLOW = "allow_empty"


def as_command(name: str, function: Callable[..., int | None]) -> Any:
    """Make the command ``name`` of a function whose first parameter is the ``Ui``; its result is the exit code.

    An attribute ``spellings`` of the function has other ways to write a flag: of one that may have a value,
    or of one with its value.
    """
    bundles, own = _parameters(function)
    if getattr(function, "selects", False):
        allow = inspect.Parameter(_ALLOW, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AllowEmptyOption)
        own.append(allow)
    common = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in COMMON.items()
    ]

    @functools.wraps(function)
    def run(**arguments: Any) -> int:
        ui = Ui(**{key: arguments.pop(key) for key in COMMON})
        allow_empty = arguments.pop(_ALLOW, False)
        for name, (bundle, fields) in bundles.items():
            arguments[name] = bundle(**{field: arguments.pop(field) for field in fields})
        current.append(ui)
        if "govtool.app.versions.index" in sys.modules:  # a process may run several commands
            sys.modules["govtool.app.versions.index"].forget_opened()
        try:
            try:
                code = function(ui, **arguments) or 0
            except (BrokenPipeError, typer.Exit, typer.Abort):
                raise
            except UsageError as error:
                if not allow_empty or error.code != "usage.nothing-selected":
                    raise
                from govtool.cli.shared.allow_empty import show_nothing

                ui.note(error.message)
                show_nothing(ui, function, arguments)
                code = EXIT_OK
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
    app = typer.Typer(add_completion=False)
    app.command(name, help=inspect.getdoc(function), context_settings={"help_option_names": ["-h", "--help"]})(run)
    command = typer.main.get_command(app)
    command.format_help = functools.partial(_write_help, command, function)  # type: ignore[method-assign]
    spellings: dict[str, str] | None = getattr(function, "spellings", None)
    if spellings:
        command.parse_args = _spelled(command.parse_args, spellings)  # type: ignore[method-assign]
    return command


_Bundles = dict[str, tuple[type[Any], list[str]]]
"""Classes of bundles and the names of their fields, by parameter."""


def _parameters(function: Callable[..., object]) -> tuple[_Bundles, list[inspect.Parameter]]:
    """The bundles of a command's function, and its arguments and options without ``Ui``, those of bundles one by one.

    A bundle is a parameter whose type is a dataclass: options that several commands have, declared once.
    """
    bundles: _Bundles = {}
    own: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            own.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        bundle = cast("type[Any]", hint)
        inner = get_type_hints(bundle, include_extras=True)
        fields = [
            each.replace(annotation=inner[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for each in inspect.signature(bundle).parameters.values()
        ]
        bundles[parameter.name] = (bundle, [each.name for each in fields])
        own += fields
    return bundles, own


def _write_help(command: Any, function: Callable[..., object], context: Any, formatter: Any) -> None:
    from govtool.cli.shared.help import command_help

    formatter.write(command_help(command, context, function))


def _spelled(parse: Callable[..., list[str]], spellings: dict[str, str]) -> Callable[..., list[str]]:
    """A parser of arguments that takes other spellings of flags, before ``--``."""

    def parsed(context: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return parse(context, [*(_spell(word, spellings) for word in _paired(args[:end], spellings)), *args[end:]])

    return parsed


def _paired(words: list[str], spellings: dict[str, str]) -> list[str]:
    """Words, with a flag and its value in one, ``--fail-on=depends``, where the two are another spelling of a flag."""
    found: list[str] = []
    for word in words:
        if found and f"{found[-1]}={word}" in spellings:
            found[-1] = f"{found[-1]}={word}"
        else:
            found.append(word)
    return found


def _spell(word: str, spellings: dict[str, str]) -> str:
    option, equals, value = word.partition("=")
    return spellings.get(word) or spellings.get(option, option) + equals + value


def _starts_again(ui: Ui) -> bool:
    """Return whether the failed command may now succeed, as a damaged index of the cache was the cause and is gone.

    Raises:
        IntegrityError: it was the cause, and a part of an answer is out already.
    """
    indexes = sys.modules.get("govtool.app.versions.index")
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
    indexes = sys.modules.get("govtool.app.versions.index")
    for directory in indexes.damaged_indexes() if indexes is not None else ():
        ui.note(f"warning[store.corrupt-index] a damaged index was built again: {directory.name}")


class ReaderLeftError(Exception):
    """Whoever read stdout has closed it. Not an OSError: typer would turn that into exit code 1."""


current: list[Ui] = []
"""The ``Ui`` of the command that runs, for the error handler; empty before a command's options are parsed."""
