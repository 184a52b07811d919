"""The sandbox that templates run in: no private attributes, no values that grow without bound, unknown values passed
on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from jinja2 import TemplateError
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment

from govtool.capture.sql.templates import dbt
from govtool.capture.sql.templates.dbt_relation import Return
from govtool.capture.sql.templates.rendering import PackageMacros, current
from govtool.capture.sql.templates.unknown import MAX_VALUE, Limit, Unknown, bounded_text, plain

_WIDE = re.compile(r"\d{4,}")
_NESTED = re.compile(r"\{[^{}]*\{|%[-+ #0]*(?:\d*\.)?\*")
"""A format whose width is one of the values: ``{:{}}``, ``%*d``."""
_GROWS = ("ljust", "rjust", "center", "zfill", "expandtabs", "to_bytes")


class SandboxedTemplates(SandboxedEnvironment):
    """The sandbox: no attribute that begins with an underscore, bounded operators, unknown names allowed."""

    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator whose result can grow."""
        if isinstance(left, Unknown):
            return left
        if isinstance(right, Unknown):
            return right
        budget = current().budget
        budget.spend(left, right)
        length = size(left) + size(right)
        if operator == "**":
            _check_power(left, right)
        elif operator == "*":
            _check_product(left, right)
        if operator == "%" and isinstance(left, str):
            _check_format(left, right if isinstance(right, tuple) else (right,))
        if length > MAX_VALUE:
            raise Limit("a value that is too long")
        result = super().call_binop(context, operator, left, right)
        budget.spend(result if isinstance(result, str) else [None] * size(result))
        return result

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may see an attribute."""
        return isinstance(obj, Unknown) or super().is_safe_attribute(obj, attr, value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An attribute: of an unknown value it is unknown, or a macro of the project; of a package it is a macro, whose
        name may begin with an underscore.
        """
        if isinstance(obj, PackageMacros):
            return obj.macro(attribute)
        if isinstance(obj, Unknown):
            run = current()
            macro = run.macro(attribute) if not run.project.own.name else None
            if macro is None and not obj._call and obj._name in run.unnamed:
                run.attribute(obj._name, attribute)
            return Unknown(f"{obj._name}_{plain(attribute)}", obj._call) if macro is None else macro
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item: of an unknown value it is unknown."""
        if isinstance(obj, Unknown):
            return obj[argument]
        if isinstance(argument, Unknown):
            return argument
        return super().getitem(obj, argument)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
        """Return the value of an attribute that is not allowed."""
        return Unknown(plain(attribute))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """A call, counted; of an unknown value it is unknown."""
        run = current()
        owner = _owner(__obj)
        run.count_call(owner if isinstance(owner, (str, list, dict, tuple, set)) else None, args, kwargs)
        caller = kwargs.get("caller")
        if isinstance(__obj, dbt.CallStatement):
            return __obj(caller=caller)
        if isinstance(__obj, Unknown) and caller is not None:
            # ``{% call name() %}``: what it makes of its body is not known.
            return f"{Unknown(__obj._name, True)}{caller()}"
        if isinstance(__obj, Unknown):
            return Unknown(__obj._name, True)
        name = getattr(__obj, "__name__", "")
        if isinstance(owner, str):
            _check_text_method(owner, name, args, kwargs)
        elif isinstance(owner, (bytes, bytearray, int)):
            _check_number_method(owner, name, args, kwargs)
        elif name == "strftime" and args and _WIDE.search(str(args[0])):
            raise Limit("a format that is too wide")
        elif isinstance(owner, (list, dict, set)) and size(owner) + sum(size(a) for a in args) > MAX_VALUE:
            raise Limit("a value that is too long")
        try:
            return super().call(__context, __obj, *args, **kwargs)
        except Return as returned:
            if isinstance(__obj, Macro):
                return returned.value
            raise
        except (SecurityError, TypeError, ValueError, KeyError, IndexError, AttributeError):
            return Unknown(plain(name or "call"), True)


def _owner(called: Any) -> Any:
    """The object whose method is called; the sandbox has a function of its own around ``format``."""
    if isinstance(called, Unknown):
        return None
    return getattr(getattr(called, "__wrapped__", called), "__self__", None)


def size(value: object) -> int:
    """Characters or items of a value; 1 for anything else."""
    return len(value) if isinstance(value, (str, bytes, bytearray, list, tuple, dict, set, range)) else 1


def _check_power(left: Any, right: Any) -> None:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        raise Limit("a power that is too large")
    # Whole numbers grow by their digits; dbt_utils looks for powers of two up to 2 ** 100.
    if abs(right) > 1024 or left.bit_length() * abs(right) > 4096 if isinstance(left, int) else abs(right) > 64:
        raise Limit("a power that is too large")


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > 4096:
            raise Limit("a number that is too large")
    elif isinstance(left, int) or isinstance(right, int):
        count, repeated = (left, right) if isinstance(left, int) else (right, left)
        if size(repeated) * max(count, 0) > MAX_VALUE:
            raise Limit("a value that is too long")


def _check_text_method(text: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if name in _GROWS:
        _check_numbers((*args, *kwargs.values()))
    elif name == "replace" and len(args) > 1 and isinstance(args[0], str) and isinstance(args[1], str):
        if text.count(args[0]) * len(args[1]) + len(text) > MAX_VALUE:
            raise Limit("a value that is too long")
    elif name == "join" and args:
        _check_join(text, args[0])
    elif name in ("format", "format_map"):
        _check_format(text, (*args, *kwargs.values()))
        if sum(size(a) for a in (*args, *kwargs.values())) * max(text.count("{"), 1) > MAX_VALUE:
            raise Limit("a value that is too long")
    elif name == "translate":
        raise Limit("translate is not allowed")


def _check_number_method(owner: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse what makes long values of bytes and of numbers."""
    if name in _GROWS:
        _check_numbers((*args, *kwargs.values()))
    elif name in ("join", "replace", "translate") and isinstance(owner, (bytes, bytearray)):
        raise Limit(f"{name} of bytes is not allowed")


def _check_numbers(values: Iterable[Any]) -> None:
    if any(isinstance(value, int) and value > 10_000 for value in values):
        raise Limit("a value that is too long")


def _check_format(text: str, values: Iterable[Any]) -> None:
    """Refuse a format that is too wide: by itself, or by the values that it takes its width from."""
    given = list(values)
    for value in tuple(given):
        given += value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if _WIDE.search(text) or (_NESTED.search(text) and any(_WIDE.search(str(value)[:100]) for value in given)):
        raise Limit("a format that is too wide")


def _check_join(separator: str, values: Any) -> None:
    """Refuse a text that is too long; items that are no texts are taken for short ones."""
    if isinstance(values, str):
        total = (len(separator) + 1) * len(values)
    elif isinstance(values, Collection):
        total = len(separator) * len(values)
        if total <= MAX_VALUE:
            total += sum(len(v) if isinstance(v, str) else 8 for v in values)
    else:
        return
    if total > MAX_VALUE:
        raise Limit("a value that is too long")


# -- filters
# ------------------------------------------------------------------------------------------------------------


def _of_unknown(name: str, value: Unknown, arguments: tuple[Any, ...]) -> Any:
    """The result of a filter of an unknown value."""
    if name in ("default", "d"):
        return arguments[0] if arguments and arguments[0] not in (None, "") else value
    return Unknown("length") if name in ("length", "count") else value


def _check_filter(name: str, value: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Refuse a filter whose result would be too large."""
    numbers = [a for a in (*arguments, *options.values()) if isinstance(a, int) and not isinstance(a, bool)]
    if any(abs(number) > 10_000 for number in numbers):
        raise Limit(f"filter {name} with a number that is too large")
    if name == "replace" and len(arguments) > 1:
        _check_text_method(str(value), "replace", tuple(str(a) for a in arguments[:2]), {})
    elif name == "join":
        given = arguments[0] if arguments else options.get("d", "")
        _check_join(str(given), value)
    elif name == "format":
        _check_format(str(value), (*arguments, *options.values()))
    elif name in ("indent", "wordwrap", "center") and size(value) > MAX_VALUE // 10:
        raise Limit("a value that is too long")


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that passes unknown values on and keeps values small."""
    pass_arg = getattr(function, "jinja_pass_arg", None)
    first = 1 if pass_arg is not None else 0

    def guarded(*args: Any, **kwargs: Any) -> Any:
        value = args[first] if len(args) > first else None
        budget = current().budget
        budget.spend(args[first:], kwargs)
        if isinstance(value, Unknown):
            return _of_unknown(name, value, args[first + 1 :])
        if name == "join" and isinstance(value, Iterator):
            value = list(islice(value, MAX_VALUE))
            args = (*args[:first], value, *args[first + 1 :])
        _check_filter(name, value, args[first + 1 :], kwargs)
        try:
            result = function(*args, **kwargs)
            if isinstance(result, Iterator):  # such as of map and select: its work is done here, and counted
                result = list(islice(result, MAX_VALUE))
        except Limit:
            raise
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, TemplateError):
            return Unknown(plain(value))
        budget.spend(result if isinstance(result, str) else [None] * size(result))
        if isinstance(result, str):
            return bounded_text(result)
        return result

    if pass_arg is not None:
        guarded.jinja_pass_arg = pass_arg  # type: ignore[attr-defined]
    return guarded


def tested(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A test that does not decide unknown values."""
    pass_arg = getattr(function, "jinja_pass_arg", None)
    first = 1 if pass_arg is not None else 0

    def tested(*args: Any, **kwargs: Any) -> Any:
        value = args[first] if len(args) > first else None
        current().budget.spend(args[first:])
        if isinstance(value, Unknown):
            if name in ("undefined", "none"):
                return value.condition(" is defined", negated=True)
            return value.condition(f" is {name}" + "".join(f" {plain(a)}" for a in args[first + 1 :]))
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError):
            return Unknown("test")

    if pass_arg is not None:
        tested.jinja_pass_arg = pass_arg  # type: ignore[attr-defined]
    return tested
