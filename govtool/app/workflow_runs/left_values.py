"""Values that functions of modules leave for each other beside relations: global variables, closures, attributes.

What a job gave (a count, collected rows) may be in them, and decide what another module makes. After each call that ran
jobs, the values that the function of each module can reach are compared with those before. Where they are others, the
relations that the call read may decide what that module makes from then on. Values that cannot be compared count as
others. What functions hand to each other by files, by the environment or by processes is not seen.
"""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final

from govtool.spark.live.plans.value_text import captured_by, members_of
from govtool.spark.live.records.function_source import is_users

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
_MOST: Final = 20_000
"""Values of one function that are compared; more count as others each time."""
_LARGE: Final = 1 << 20
"""Bytes of an array up to which it is compared."""
_CACHE: Final = type(lru_cache(len))
_OWN: Final = ("govtool", "pyspark", "py4j")


class LeftValues:
    """What modules of one workflow left for each other within a process.

    Args:
        functions: The function of each module, by the module's name.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions
        self._before = self._values()
        self._reached: dict[str, dict[str, None]] = {}

    def reached(self, module: str) -> tuple[str, ...]:
        """The paths of relations that may have decided values which a module's function can reach."""
        return tuple(self._reached.get(module, ()))

    def called(self, read: Iterable[str]) -> None:
        """Note a call that ran jobs, or that such values had reached.

        Args:
            read: The paths of the relations that it read, or that had reached it.
        """
        now = self._values()
        for module, values in now.items():
            if not _are_same(values, self._before[module]):
                self._reached.setdefault(module, {}).update(dict.fromkeys(read))
        self._before = now

    def _values(self) -> dict[str, list[Any] | None]:
        return {name: _reachable(function) for name, function in self._functions.items()}


def _are_same(one: list[Any] | None, other: list[Any] | None) -> bool:
    if one is None or other is None or len(one) != len(other):
        return False
    return all(_is_same(a, b) for a, b in zip(one, other, strict=True))


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and isinstance(one, _PLAIN) and (one == other or (one != one and other != other))


def _reachable(function: Callable[..., Any]) -> list[Any] | None:
    """The values that a function can reach, in an order of their own; None where there are too many.

    Containers and objects are taken apart; what has no parts stands for itself.
    """
    found: list[Any] = []
    seen: dict[int, Any] = {}
    waiting: list[Any] = [function]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _PLAIN):
            found.append(value)
        elif id(value) not in seen:
            seen[id(value)] = value
            try:
                parts = _parts(value)
            except Exception:  # an object of the user's may do anything when it is looked at
                return None
            if parts is None:
                found.append(value)
            else:
                found.append(type(value))
                waiting.extend(parts)
        if len(found) + len(waiting) > _MOST:
            return None
    return found


def _parts(value: Any) -> list[Any] | None:
    """What a value is made of, or what a function can reach; None for one without parts that are looked at."""
    kind = type(value)
    if isinstance(value, FunctionType):
        return list(_of_function(value)) if _is_users(value.__module__, value.__code__.co_filename) else None
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, _CACHE):
        return [value.__wrapped__]
    if isinstance(value, (BuiltinFunctionType, ModuleType)) or kind.__module__.partition(".")[0] in _OWN:
        return None
    if isinstance(value, type):
        if not _is_users(value.__module__):
            return None
        return [*value.__bases__, *(member for _, member in members_of(value))]
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if kind.__module__.partition(".")[0] == "pandas":  # what it holds may change in its place
        return [object()]
    if kind.__module__ == "numpy" and hasattr(value, "tobytes"):
        return [str(value.dtype), value.shape, value.tobytes()] if value.nbytes <= _LARGE else [object()]
    return _of_object(value)


def _of_object(value: Any) -> list[Any] | None:
    kind = type(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if kind.__module__ in ("datetime", "decimal", "fractions"):
        return [repr(value)]
    own = getattr(value, "__dict__", None)
    slots = [name for each in kind.__mro__ for name, member in vars(each).items() if inspect.ismemberdescriptor(member)]
    known = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    if (own is None and not slots) or (known and not isinstance(value, SimpleNamespace)):  # as a logger, or a lock
        return None
    parts = [kind, *(part for pair in (own or {}).items() for part in pair)]
    return parts + [getattr(value, name) for name in slots if hasattr(value, name)]


def _of_function(function: FunctionType) -> Iterator[Any]:
    """What a function takes along, its attributes, and those of the user's modules that its code names."""
    yield from vars(function).values()
    names = _names(function.__code__)
    for _, value in captured_by(function):
        if not isinstance(value, ModuleType):
            yield value
        elif _is_users(value.__name__):
            yield from (attribute for name, attribute in sorted(vars(value).items()) if name in names)


def _names(code: CodeType) -> set[str]:
    """The names of variables and attributes in a function and those within it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _names(each)
    return found


@cache
def _is_users(module: str, file: str = "") -> bool:
    """Return whether what a module defines is the user's.

    Args:
        module: Its name, as what it defines has it: that of a decorated function is the function's own.
        file: Where its code is, for a module without a file.
    """
    place = getattr(sys.modules.get(module), "__file__", None) or file
    return is_users(module, place) if place else module.partition(".")[0] not in sys.stdlib_module_names
