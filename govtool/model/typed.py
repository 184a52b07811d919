"""Data that was read from JSON, compared with the types that its class states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

Check = Callable[[Any], bool]
_known: dict[tuple[type, tuple[type, ...]], tuple[tuple[str, Check], ...]] = {}


def require_types(value: Any, trusted: tuple[type, ...] = ()) -> None:
    """Refuse data of which a field, or a field of what it holds, is of another type than its class states.

    Args:
        value: A dataclass or a named tuple.
        trusted: Classes whose fields their readers have compared.

    Raises:
        TypeError: A field is of another type.
    """
    for name, check in _checks(type(value), trusted):
        if not check(getattr(value, name)):
            raise TypeError(f"{name} of a {type(value).__name__} is {str(getattr(value, name))[:40]!r}")


def _checks(cls: type, trusted: tuple[type, ...]) -> tuple[tuple[str, Check], ...]:
    found = _known.get((cls, trusted))
    if found is None:
        names = tuple(getattr(cls, "__dataclass_fields__", ()) or getattr(cls, "_fields", ()))
        hints = get_type_hints(cls)
        found = _known[cls, trusted] = tuple((name, _check(hints[name], trusted)) for name in names)
    return found


def _check(kind: Any, trusted: tuple[type, ...]) -> Check:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: True
    if origin in (Union, UnionType):
        options = [_check(each, trusted) for each in arguments]
        return lambda value: any(option(value) for option in options)
    if origin is tuple:
        return _check_tuple(arguments, trusted)
    if origin is not None and issubclass(origin, Mapping):
        key, content = (_check(part, trusted) for part in arguments)
        return lambda value: isinstance(value, Mapping) and all(key(k) and content(v) for k, v in value.items())
    if kind is int:
        return lambda value: isinstance(value, (int, float))
    if kind not in trusted and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return lambda value: isinstance(value, kind) and _has_types(value, trusted)
    return lambda value: isinstance(value, kind)


def _check_tuple(kinds: tuple[Any, ...], trusted: tuple[type, ...]) -> Check:
    if kinds[-1:] == (...,):
        each = _check(kinds[0], trusted)
        return lambda value: isinstance(value, tuple) and all(each(one) for one in value)
    parts = [_check(kind, trusted) for kind in kinds]
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(parts)
        and all(part(one) for part, one in zip(parts, value, strict=True))
    )


def _has_types(value: Any, trusted: tuple[type, ...]) -> bool:
    return all(check(getattr(value, name)) for name, check in _checks(type(value), trusted))
