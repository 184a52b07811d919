"""Values that functions of modules leave for each other beside relations: global variables, closures, attributes.

What a job gave (a count, collected rows) may be in them, and decide what another module makes. After each call that ran
jobs, the values that the function of each module can reach are compared with those before. Where they are others, the
relations that the call read may decide what that module makes from then on. Values that cannot be compared count as
others. What functions hand to each other by files, by the environment or by processes is not seen.
"""

from __future__ import annotations

import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
_MOST: Final = 20_000
"""Values of one function that are compared; more count as others each time."""
_LARGE: Final = 1 << 20
"""Bytes of an array up to which it is compared."""
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
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
    if isinstance(value, (BuiltinFunctionType, ModuleType)) or kind.__module__.partition(".")[0] in _OWN:
        return None
    if isinstance(value, type):
        return list(vars(value).values()) if _is_users(value.__module__, "") else None
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if kind.__module__.startswith("pandas."):  # what it holds may change in its place
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
    slots = [name for each in kind.__mro__ for name in _slots(each)]
    known = kind.__module__.partition(".")[0] in sys.stdlib_module_names and kind.__module__ != "__main__"
    if (own is None and not slots) or (known and not isinstance(value, SimpleNamespace)):  # as a logger, or a lock
        return None
    parts = [kind, *(part for pair in (own or {}).items() for part in pair)]
    return parts + [getattr(value, name) for name in slots if hasattr(value, name)]


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (
        (slots,) if isinstance(slots, str) else tuple(each for each in slots if each not in ("__dict__", "__weakref__"))
    )


def _of_function(function: FunctionType) -> Iterator[Any]:
    """The values of a function's closure, its defaults, and the global variables and modules' attributes it names."""
    yield function.__defaults__
    yield function.__kwdefaults__
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet set
            yield None
    yield from vars(function).values()
    names = sorted(_names(function.__code__))
    variables = function.__globals__
    for name in names:
        value = variables.get(name)
        if isinstance(value, ModuleType):
            if _is_users(value.__name__, getattr(value, "__file__", None) or ""):
                yield from (vars(value)[each] for each in names if each in vars(value))
        else:
            yield value


def _names(code: CodeType) -> set[str]:
    """The names of variables and attributes in a function and those within it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _names(each)
    return found


def _is_users(module: str | None, file: str) -> bool:
    """Return whether a module is no library."""
    name = (module or "").partition(".")[0]
    if name in _OWN or name in sys.stdlib_module_names:
        return name == "__main__"
    place = file or getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not place.startswith(_LIBRARIES)
