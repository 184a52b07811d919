"""Help of commands and groups, each within a screen.

A command's help has its own arguments and options. Options that many commands share are named at its end;
``govtool help options`` explains them, and has those of every command. The formats of a command are those of its
renderer, listed where ``--format`` is.
"""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from govtool.cli.commands import Panel

SHARED_OPTIONS = (
    *("policy", "today", "limit", "all", "format", "output", "at", "branch", "store", "message", "author", "publish"),
    *("allow_empty", "quiet", "verbose", "progress", "color", "timings", "debug"),
)
"""Parameters of options that many commands share, in the order in which they are named."""
_NARROWEST, _WIDEST = 60, 100
_NAME_CELLS = 24
_OF_EVERY_COMMAND = frozenset(("quiet", "verbose", "progress", "color", "timings", "debug"))
_BOUND = "\xa0"
"""A space that no line is broken at."""


def command_help(command: Any, context: Any, function: Any) -> str:
    """The help of a command."""
    width = _width()
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    texts = _shared_texts()
    common = {one.name: one for one in options if one.name in SHARED_OPTIONS and one.help in texts}
    own = [one for one in options if one.name not in common]
    formats = _formats(function)
    parts = [
        [f"Usage: {context.command_path} {' '.join([*_usage(arguments), '[OPTIONS]'])}"],
        *_about(function, width),
        _entries([(_argument(one), one.help or "") for one in arguments], width),
        _entries([(_spelled(one), _explained(one)) for one in own], width),
        _filled("Also: ", _named(common, formats), width),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def shared_options_help(options: Iterable[Any]) -> str:
    """The help of the options that many commands share."""
    known = {one.name: one for one in options}
    rows = [(_spelled(known[name]), _explained(known[name])) for name in SHARED_OPTIONS if name in known]
    title = "Options that many commands share; each command's help names those that it takes."
    return "\n".join([*textwrap.wrap(title, _width()), "", *_entries(rows, _width())]) + "\n"


def group_help(context: Any, summary: str, panels: Sequence[Panel], summaries: Mapping[str, str]) -> str:
    """The help of a group of commands.

    Args:
        context: The group's context.
        summary: The summary of the group; command lines begin with ``$``.
        panels: Headings, and the commands below each; one without a title for a group that has none.
        summaries: The line of each command.
    """
    width, is_top = _width(), len(panels) > 1
    lines = [f"Usage: {context.command_path} COMMAND …", *([] if is_top else [""]), *summary.splitlines()]
    for panel in panels:
        named = f" (also {', '.join(panel.named)})" if panel.named else ""
        lines += ["", *([f"{panel.title}{named}"] if panel.title else [])]
        room = max((len(name) for name in panel.shown), default=0) + 4
        for name in panel.shown:
            first, *more = textwrap.wrap(summaries[name], width - room) or [""]
            lines += [f"  {name:<{room - 2}}{first}".rstrip(), *(" " * room + part for part in more)]
    others = "; govtool help options; --version; --install-completion" if is_top else ""
    return "\n".join([*lines, "", f"{context.command_path} COMMAND --help{others}"]) + "\n"


def _named(common: Mapping[str, Any], formats: Sequence[str]) -> list[str]:
    """The shared options that a command takes, and where the others are explained."""
    taken = (name for name in SHARED_OPTIONS if name in common and name not in _OF_EVERY_COMMAND)
    found = [_short(common[name], formats) for name in taken]
    return [*found, f"{'and ' if found else ''}those of every command: govtool help options"]


def _shared_texts() -> frozenset[str]:
    """The texts of shared options: an option of such a name with another text is the command's own."""
    from govtool.cli.shared import common, options

    declared = [each for module in (options, common) for each in vars(module).values()]
    declared += [annotation for annotation, _ in common.COMMON.values()]
    found = (one for each in declared for one in getattr(each, "__metadata__", ()))
    return frozenset(text for one in found if (text := getattr(one, "help", None)))


def _about(function: Any, width: int) -> list[list[str]]:
    """The paragraphs of a docstring, command lines as they are."""
    parts = []
    for paragraph in inspect.cleandoc(function.__doc__ or "").split("\n\n"):
        given = paragraph.splitlines()
        if paragraph.startswith("  ") or all(line.startswith("govtool ") for line in given):
            parts.append([f"  $ {line.strip()}" for line in given])
            continue
        parts.append(_wrapped(" ".join(paragraph.split()), width))
    return parts


def _entries(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Names and their texts in two columns; a long name stands on a line of its own."""
    room = min(_NAME_CELLS, max((len(name) for name, _ in rows), default=0)) + 4
    lines: list[str] = []
    for name, text in rows:
        wrapped = _wrapped(text, width - room) or [""]
        if len(name) > room - 4:
            lines.append(f"  {name}")
            lines += [" " * room + part for part in wrapped if part]
        else:
            lines += [f"  {name:<{room - 2}}{wrapped[0]}".rstrip(), *(" " * room + part for part in wrapped[1:])]
    return lines


def _filled(head: str, items: Sequence[str], width: int) -> list[str]:
    """Items after a heading, none of them broken; nothing where there are none."""
    if not items:
        return []
    joined = ", ".join(item.replace(" ", _BOUND) for item in items)
    return [line.replace(_BOUND, " ") for line in _wrapped(head + joined, width, " " * len(head))]


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _usage(arguments: Iterable[Any]) -> list[str]:
    return [
        _argument(one) if one.required or _argument(one).startswith("[") else f"[{_argument(one)}]" for one in arguments
    ]


def _argument(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _spelled(option: Any) -> str:
    """``-f, --format FORMAT``; of a flag that can be turned off, both words."""
    names = sorted(
        (*option.opts, *option.secondary_opts), key=lambda name: (name.startswith("--"), name.startswith("--no-"))
    )
    return f"{', '.join(names)}{_value(option)}"


def _value(option: Any) -> str:
    if option.is_flag or option.count:
        return ""
    return f" {option.metavar or 'VALUE'}"


def _explained(option: Any) -> str:
    """The text of an option, with its default where that is not plain."""
    text = str(option.help or "").rstrip()
    if option.required:
        return f"{text} Required."
    default = option.default
    shown = isinstance(default, (str, int, float)) and not isinstance(default, bool) and default not in ("", 0, "none")
    return f"{text} Default: {default}." if shown and "Default" not in text and str(default) not in text else text


def _short(option: Any, formats: Sequence[str]) -> str:
    """An option in the list of common ones, with its formats where it has some."""
    value = f" {'|'.join(formats)}" if option.name == "format" and formats else _value(option)
    return _spelled(option).removesuffix(_value(option)).replace(", ", "/") + value


def _formats(function: Any) -> tuple[str, ...]:
    from govtool.cli.shared.complete import formats_of

    return formats_of(function)


def _width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns)) - 1
