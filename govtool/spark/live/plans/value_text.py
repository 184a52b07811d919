"""Text of a value of the job that is the same in two identical runs: no places in memory, no order of sets.

Pickled bytes would not do: they hold ids, file names and line numbers, and the order in which a set was filled. A value
of a kind whose text may differ by itself has none, and is named as not comparable.
"""

from __future__ import annotations

import enum
import hashlib
import re
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

MAX_VALUES = 100_000
"""Values within a value that are looked at."""
MAX_DEPTH = 60
MAX_STRING = 4096
"""Characters of a string that are written; a longer one is a hash."""

_PLAIN = (bool, int, float, complex, str, type(None), type(Ellipsis), type(NotImplemented), range, slice)
_PRINTED = {
    ("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")
} | {("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"), ("zoneinfo", "ZoneInfo")}  # fmt: skip
"""Kinds of values that never change and print all that they are."""
_PATHS = ("PurePosixPath", "PosixPath", "PureWindowsPath", "WindowsPath")

broadcasts: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""Texts of the values that the driver broadcast, as they were then."""


class NoTextError(Exception):
    """A value has no text. The message is its kind."""


class ValueText:
    """Writes values; one object bounds how many values are looked at in all."""

    def __init__(self) -> None:
        self._left = MAX_VALUES
        self._open: list[int] = []

    def of(self, value: Any) -> str:
        """The text of a value.

        Raises:
            NoTextError: The value, or one within it, is of a kind that has none, or there are too many.
        """
        self._left -= 1
        if self._left < 0 or len(self._open) > MAX_DEPTH:
            raise NoTextError("too many values")
        if id(value) in self._open:
            return f"the value {len(self._open) - self._open.index(id(value))} above"
        self._open.append(id(value))
        try:
            return self._of(value)
        finally:
            self._open.pop()

    def _of(self, value: Any) -> str:
        kind = type(value)
        if kind is str and len(value) > MAX_STRING:
            return f"str {hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
        if kind in _PLAIN:
            return f"{kind.__name__} {value!r}"
        if kind in (bytes, bytearray):
            return f"bytes {hashlib.sha256(value).hexdigest()}"
        found = self._container(value, kind) or self._code(value) or _printed(value, kind) or _of_package(value, kind)
        return found or self._instance(value, kind)

    # ---- containers -------------------------------------------------------------------------------------------

    def _container(self, value: Any, kind: type) -> str:
        if kind in (list, tuple) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return f"{kind.__name__}[{self._joined(value)}]"
        if kind in (set, frozenset):
            return f"{kind.__name__}[{', '.join(sorted(map(self.of, value)))}]"
        if kind is dict or kind is types.MappingProxyType:
            return f"dict[{', '.join(sorted(self._pair(*item) for item in value.items()))}]"
        if kind.__module__ == "collections":
            if kind.__name__ == "defaultdict":
                return f"defaultdict {self.of(value.default_factory)} {self.of(dict(value))}"
            if kind.__name__ in ("OrderedDict", "Counter", "deque"):
                items = value.items() if hasattr(value, "items") else value
                return f"{kind.__name__}[{self._joined(items)}]"
        return ""

    def _joined(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.of, values))

    def _pair(self, key: Any, value: Any) -> str:
        return f"{self.of(key)}: {self.of(value)}"

    # ---- code -------------------------------------------------------------------------------------------------

    def _code(self, value: Any) -> str:
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, types.CodeType):
            return self.code(value)
        if isinstance(value, (types.FunctionType, type)) and reference(value):
            return f"reference {reference(value)}"
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return f"method {self.of(value.__func__)} {self.of(value.__self__)}"
        if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
            return self._builtin(value)
        if isinstance(value, (staticmethod, classmethod)):
            return f"{type(value).__name__} {self.of(value.__func__)}"
        if isinstance(value, property):
            return f"property {self._joined((value.fget, value.fset, value.fdel))}"
        if isinstance(value, type):
            return self._class(value)
        wrapped = getattr(value, "__wrapped__", None) if type(value).__name__ == "_lru_cache_wrapper" else None
        if wrapped is not None:
            return f"cache {self.of(wrapped)}"
        if type(value).__name__ == "partial" and type(value).__module__ == "functools":
            return f"partial {self._joined((value.func, value.args, value.keywords))}"
        return ""

    def _builtin(self, value: Any) -> str:
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, (types.ModuleType, type)):
            holder = getattr(value, "__module__", None) or getattr(getattr(value, "__objclass__", None), "__name__", "")
            return f"builtin {holder} {value.__qualname__}"
        return f"method {value.__name__} {self.of(owner)}"

    def code(self, code: types.CodeType) -> str:
        """The text of compiled code: what it does, without names of files and lines."""
        constants = [self.of(constant) for constant in code.co_consts]
        shape = (code.co_argcount, getattr(code, "co_posonlyargcount", 0), code.co_kwonlyargcount, code.co_flags)
        handlers = getattr(code, "co_exceptiontable", b"")
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        steps = hashlib.sha256(code.co_code + b"|" + handlers).hexdigest()
        return f"code {shape} {names} {steps} [{', '.join(constants)}]"

    def _function(self, function: Any) -> str:
        captured = ", ".join(f"{name}={self.of(value)}" for name, value in captured_by(function))
        return f"function {self.code(function.__code__)} with [{captured}]"

    def _class(self, made: type) -> str:
        members = ", ".join(f"{name}={self.of(value)}" for name, value in members_of(made))
        return f"class {made.__qualname__} ({self._joined(made.__bases__)}) [{members}]"

    # ---- other objects ----------------------------------------------------------------------------------------

    def _instance(self, value: Any, kind: type) -> str:
        """An object that is its class and its attributes, as pickling it sees it."""
        if isinstance(value, enum.Enum):
            return f"member {kind.__module__}.{kind.__qualname__}.{value.name} {self.of(value.value)}"
        if not hasattr(value, "__dict__") or not _is_plain(kind):
            raise NoTextError(kind.__qualname__)
        return f"object {self.of(kind)} {self.of(vars(value))}"


_OF_EVERY_CLASS = frozenset(
    {"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__",
     "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__match_args__", "_abc_impl",
     "__abstractmethods__", "__orig_bases__", "__parameters__", "__slots__"}
)  # fmt: skip
_HEAP_TYPE = 1 << 9


def _is_plain(kind: type) -> bool:
    """Return whether objects of a class are pickled by their attributes alone, and hold nothing else."""
    if any(not getattr(base, "__flags__", 0) & _HEAP_TYPE for base in kind.__mro__[:-1]):
        return False
    if any("__slots__" in vars(base) for base in kind.__mro__[:-1]):
        return False
    names = ("__reduce__", "__reduce_ex__", "__getstate__")
    return all(getattr(kind, name, None) is getattr(object, name, None) for name in names)


def _printed(value: Any, kind: type) -> str:
    if (kind.__module__, kind.__name__) in _PRINTED:
        return f"{kind.__name__} {value!r}"
    if kind.__name__ in _PATHS and kind.__module__.startswith("pathlib"):
        return f"path {value!s}"
    if isinstance(value, re.Pattern):
        return f"pattern {value.flags} {value.pattern!r}"
    return ""


def _of_package(value: Any, kind: type) -> str:
    """Values of numpy, pandas and pyspark, where these packages are loaded."""
    top = (kind.__module__ or "").partition(".")[0]
    if top == "numpy" and hasattr(value, "tobytes") and hasattr(value, "dtype") and not value.dtype.hasobject:
        return f"array {value.dtype.str} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if top == "pandas" and hasattr(value, "to_csv") and hasattr(value, "dtypes") and hasattr(value, "columns"):
        from govtool.spark.live.driver.collected import pandas_content

        content = pandas_content(value)
        if content is None:
            raise NoTextError("too large a DataFrame")
        return f"frame {content}"
    if top == "pyspark":
        if kind.__name__ == "Broadcast" and value in broadcasts:
            return f"broadcast {broadcasts[value]}"
        if kind.__module__ == "pyspark.sql.types" and hasattr(value, "json"):
            return f"type {value.json()}"
    return ""


def reference(value: Any) -> str:
    """The name by which pickling refers to a function or class; empty where it is pickled as it stands.

    Its code is that of its module, which belongs to the job's code or to a package.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not module or module == "__main__" or module not in sys.modules or "<locals>" in name:
        return ""
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else ""


def members_of(made: type) -> list[tuple[str, Any]]:
    """What the body of a class defines, but for what every class has."""
    return [
        (name, value)
        for name, value in sorted(vars(made).items())
        if name not in _OF_EVERY_CLASS and not name.startswith("__dataclass_")
    ]


def captured_by(function: Any) -> list[tuple[str, Any]]:
    """The values that a function takes along: of its closure, its defaults, and the globals that its code names."""
    code = function.__code__
    found: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not set yet
            found[name] = NotImplemented
    arguments = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    found.update({f"{name}=": value for name, value in zip(arguments[len(arguments) - len(defaults) :], defaults)})
    found.update({f"{name}=": value for name, value in (function.__kwdefaults__ or {}).items()})
    for name in sorted(global_names(code)):
        if name in function.__globals__:
            found.setdefault(name, function.__globals__[name])
    return list(found.items())


def global_names(code: types.CodeType) -> set[str]:
    """The names of globals that code reads, that of functions within it included."""
    import dis

    found = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= global_names(constant)
    return found
