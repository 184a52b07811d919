"""Checks of dataclass fields against their annotations, for what is read from a file."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin

from govtool.records.plan.expressions import Value

Check = Callable[[Any], bool]


@cache
def of(kind: type) -> dict[str, Check]:
    """The check of each field of a dataclass, made from its annotations."""
    return {name: check(hint) for name, hint in typing.get_type_hints(kind).items()}


def check(hint: Any) -> Check:
    """Return a function that tests a value against a type annotation.

    Raises:
        TypeError: The annotation is of a form that plans do not use.
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _any([check(each) for each in get_args(hint)])
    if origin is Literal:
        allowed = frozenset(get_args(hint))
        return lambda value: isinstance(value, str) and value in allowed
    if origin is tuple:
        return _tuple(get_args(hint))
    if hint == "Value" or (isinstance(hint, ForwardRef) and hint.__forward_arg__ == "Value"):
        return lambda value: _value_check()(value)
    if hint is None or hint is type(None):
        return lambda value: value is None
    if hint is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(hint, type):
        kind: type = hint
        return lambda value: isinstance(value, kind)
    raise TypeError(f"no check for {hint!r}")


@cache
def _value_check() -> Check:
    return check(Value)


def _any(checks: list[Check]) -> Check:
    return lambda value: any(each(value) for each in checks)


def _tuple(hints: tuple[Any, ...]) -> Check:
    if len(hints) == 2 and hints[1] is Ellipsis:
        item = check(hints[0])
        return lambda value: isinstance(value, tuple) and all(item(each) for each in value)
    items = [check(each) for each in hints]
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(items)
        and all(test(each) for test, each in zip(items, value, strict=True))
    )
