"""Shell completion of names and of the values of options. Never fails, never writes: at worst it offers nothing."""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from importlib import import_module

import typer

_BREAKS = ":=@"
_CHANGES = ("delete", "drop", "logic", "mask", "rename:", "retype:")


def complete_dialect(incomplete: str) -> list[str]:
    """Dialects that start with what was typed."""
    with contextlib.suppress(Exception):
        from govtool.app.ingest.sql_options import dialect_names

        return _starting(incomplete.lower(), dialect_names())
    return []


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Datasets and columns of the newest commit, if its index is in the cache: a key press is no time to build one."""
    with contextlib.suppress(Exception):
        from govtool.app.questions.completion import complete_names

        return complete_names(ctx.params.get("store"), incomplete)
    return []


def complete_selector(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names, and selectors by method: classes and zones of the policies, the rest of the newest commit."""
    with contextlib.suppress(Exception):
        from govtool.app.questions.completion_selectors import complete_selectors

        return complete_selectors(ctx.params.get("store"), ctx.params.get("policy"), incomplete)
    return []


@contextlib.contextmanager
def whole_words(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Adapt candidates to bash: put together the words that it takes apart, and offer no more than it will replace."""
    kept = join_words(environment)
    if not kept:
        yield
        return
    offered = io.StringIO()
    try:
        with contextlib.redirect_stdout(offered):
            yield
    finally:
        sys.stdout.writelines(f"{one.removeprefix(kept)}\n" for one in offered.getvalue().splitlines())


def join_words(environment: MutableMapping[str, str]) -> str:
    """Put together the words of bash, which breaks them at ``:``, ``=`` and ``@``.

    Returns:
        What bash keeps of the word that is completed: it replaces what is behind the last break.
    """
    text = environment.get("COMP_WORDS", "")
    if environment.get("_GOVTOOL_COMPLETE") != "complete_bash" or not environment.get("COMP_CWORD", "").isdigit():
        return ""
    separator = "\n" if "\n" in text else " "
    words, number = text.split(separator), int(environment["COMP_CWORD"])
    joined: list[str] = []
    kept, after_break = "", False
    for word in words[: number + 1]:
        is_break = bool(word) and not word.strip(_BREAKS)
        # An @ begins a word, unless what is before it cannot end one.
        goes_on = is_break and len(joined) > 1 and (word[0] != "@" or joined[-1].endswith(","))
        if word and joined and (after_break or goes_on):
            joined[-1] += word
            value = joined[-1].partition("=")[2] if joined[-1].startswith("--") else joined[-1]
            kept = value[: max(map(value.rfind, _BREAKS)) + 1]
        else:
            joined.append(word)
            kept = word if is_break else ""
        after_break = is_break
    environment["COMP_WORDS"] = separator.join(joined)
    environment["COMP_CWORD"] = str(len(joined) - 1)
    return kept


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of edges."""
    with contextlib.suppress(Exception):
        from govtool.model import KIND_BY_LABEL

        return _starting(incomplete.lower(), KIND_BY_LABEL)
    return []


def complete_change(incomplete: str) -> list[str]:
    """Offer kinds of changes."""
    return _starting(incomplete.lower(), _CHANGES)


def complete_commit(ctx: typer.Context, incomplete: str) -> list[str]:
    """HEAD and the tags of the store."""
    with contextlib.suppress(Exception):
        from govtool.app.questions.completion import complete_refs

        return complete_refs(ctx.params.get("store"), incomplete)
    return []


def complete_format(ctx: typer.Context, incomplete: str) -> list[str]:
    """The formats of the command."""
    with contextlib.suppress(Exception):
        return _starting(incomplete.lower(), formats_of(ctx.command.callback))  # type: ignore[arg-type]
    return []


def complete_log_format(incomplete: str) -> list[str]:
    """Formats of query logs."""
    with contextlib.suppress(Exception):
        from govtool.app.ingest.logs.request import log_formats

        return _starting(incomplete.lower(), log_formats())
    return []


def complete_engine(incomplete: str) -> list[str]:
    """Offer engines for query logs."""
    with contextlib.suppress(Exception):
        from govtool.app.project.spark_session import ENGINES

        return _starting(incomplete.lower(), ENGINES)
    return []


def formats_of(command: Callable[..., object]) -> tuple[str, ...]:
    """The formats that a command takes, or a function of ``govtool.cli`` that it calls; none where it has none.

    Commands import their renderers when they run; so what they would import is read from their code: the ``FORMATS`` of
    a renderer, or those of the command's own file, whose name ends so.
    """
    pending, seen = [inspect.unwrap(command)], set()
    while pending:
        function = pending.pop(0)
        if function in seen or not inspect.isfunction(function):
            continue
        seen.add(function)
        code, own = function.__code__, function.__globals__
        name = next((each for each in code.co_names if each.endswith("FORMATS")), None)
        if name is not None:
            if name not in code.co_varnames:  # not imported by the function
                return tuple(own[name])
            before = code.co_names[: code.co_names.index(name)]
            module = [each for each in before if each.startswith("govtool.")][-1]
            return tuple(getattr(import_module(module), name))
        called = [*inspect.getclosurevars(function).nonlocals.values(), *(own.get(each) for each in code.co_names)]
        pending += [each for each in called if str(getattr(each, "__module__", "")).startswith("govtool.cli.")]
    return tuple(getattr(inspect.getmodule(inspect.unwrap(command)), "FORMATS", ()))


def _starting(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]
