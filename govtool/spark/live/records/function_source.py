"""The identity of a function of the user's: a digest of its source, and of all that it refers to."""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import importlib.machinery
import inspect
import os
import site
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterable
from typing import Any

_MOST_MODULES = 200
_SPARK = ("pyspark", "py4j")
_CACHE = type(functools.lru_cache(len))


def identity(function: Any) -> dict[str, str]:
    """Module, qualified name, and digest of a function's source and of what it refers to, or the reason for none."""
    function = undecorated(function)
    found = {
        "module": str(getattr(function, "__module__", "") or ""),
        "qualname": str(getattr(function, "__qualname__", "") or type(function).__name__),
        "digest": "",
    }
    try:
        found["digest"] = source_digest(function)
    except Exception as error:
        found["reason"] = str(error) if isinstance(error, ValueError) else f"no source: {type(error).__name__}"
    return found


def undecorated(function: Any) -> Any:
    """A function without the wrappers that Spark put around it; those of the user's decorators are part of it."""
    while hasattr(function, "__wrapped__"):
        module = getattr(function, "__globals__", {}).get("__name__") or ""
        if module.partition(".")[0] not in _SPARK and not isinstance(function, _CACHE):
            break
        function = function.__wrapped__
    return function


def source_digest(function: Any, depth: int = 0) -> str:
    """SHA-256 of a function's source, whatever its layout, and of the plain data and functions that it refers to.

    Raises:
        ValueError: It refers to something else, which cannot be told apart by its source.
    """
    if not isinstance(function, types.FunctionType):
        raise ValueError(f"{type(function).__name__} is no plain function")
    if depth > 20:
        raise ValueError("functions that refer to each other without end")
    definition = _definition(function)
    digest = hashlib.sha256(ast.dump(definition).encode())
    if not _has_constant_defaults(definition):
        defaults = (function.__defaults__, function.__kwdefaults__)
        if not _is_plain(defaults):
            raise ValueError("its defaults are no plain data")
        digest.update(f"defaults={defaults!r}".encode())
    digest.update(imported_source(definition, function).encode())
    for name, value in sorted({**used_globals(function), **inspect.getclosurevars(function).nonlocals}.items()):
        digest.update(f"{name}={_reference(name, value, function, depth)}".encode())
    return digest.hexdigest()


def used_globals(function: types.FunctionType) -> dict[str, Any]:
    """Return the globals that a function uses, in comprehensions and inner functions too."""
    names: set[str] = set()
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        names.update(each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
        waiting.extend(each for each in code.co_consts if isinstance(each, types.CodeType))
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _definition(function: types.FunctionType) -> ast.AST:
    """The syntax tree of a function; of a lambda within its line, the one with the same code."""
    source = textwrap.dedent(inspect.getsource(function))
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError("a function in the middle of a statement") from error
    kind: Any = ast.Lambda if function.__name__ == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, kind)]
    if function.__name__ != "<lambda>":
        found = [node for node in found if node.name == function.__name__][:1]
        for node in found:
            node.decorator_list = []
    if len(found) != 1:
        raise ValueError("several functions in one statement")
    made: ast.AST = found[0]
    return made


def _has_constant_defaults(definition: ast.AST) -> bool:
    """Return whether the source of a function tells the values of its defaults."""
    arguments: ast.arguments = definition.args  # type: ignore[attr-defined]
    values = [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]
    return all(isinstance(value, ast.Constant) for value in values)


def _reference(name: str, value: Any, function: types.FunctionType, depth: int) -> str:
    if value is function:
        return "itself"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}{own_source(value, function.__module__)}"
    if isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
        return source_digest(value, depth + 1)
    if isinstance(value, (types.FunctionType, type)) and value.__module__ != function.__module__:
        of_user = own_source(sys.modules.get(value.__module__), function.__module__)
        return f"{value.__module__}.{value.__qualname__}{of_user}"
    if _is_plain(value):
        return repr(value)
    raise ValueError(f"it refers to {name}, which is no plain data")


def _is_plain(value: Any, depth: int = 0) -> bool:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return len(str(value)) < 100_000
    if depth > 5:
        return False
    if isinstance(value, (list, tuple)):
        return len(value) < 10_000 and all(_is_plain(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return len(value) < 10_000 and all(_is_plain(each, depth + 1) for pair in value.items() for each in pair)
    return False


def own_source(module: Any, but: str = "__main__") -> str:
    """Digests of a module of the user's and of those of the user's that it uses; empty for an installed one.

    Args:
        module: The module.
        but: The name of one that is left out.
    """
    return _sources([str(getattr(module, "__name__", ""))], but)


def imported_source(definition: ast.AST, function: types.FunctionType) -> str:
    """Digests of the user's modules that a function imports itself, when it is called."""
    package = str(function.__globals__.get("__package__") or "")
    return _sources(_imported(definition, package), function.__module__)


def _sources(names: Iterable[str], but: str) -> str:
    """Digests of those modules of the user's that have some names, and of all that these import or show."""
    found: dict[str, str] = {}
    waiting, seen = list(names), {but}
    while waiting and len(found) < _MOST_MODULES:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        place = _place(name)
        if place is None or not is_users(name, place[0]):
            continue
        data = _bytes_of(*place)
        tree = _tree(data)
        found[name] = hashlib.sha256(data if tree is None else ast.dump(tree).encode()).hexdigest()
        is_package = os.path.basename(place[0]).startswith("__init__.")
        waiting += _imported(tree, name if is_package else name.rpartition(".")[0]) if tree is not None else []
        for value in list(vars(sys.modules[name]).values()) if name in sys.modules else ():
            if isinstance(value, types.ModuleType):
                waiting.append(value.__name__)
            elif isinstance(value, (types.FunctionType, type)):
                waiting.append(str(value.__module__))
    return "".join(f" {name}={digest}" for name, digest in sorted(found.items()))


def _imported(tree: ast.AST, package: str) -> list[str]:
    """The names of all modules that a piece of Python may import."""
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module or "")))
            found.update((".".join(filter(None, (base, alias.name))), None) for alias in node.names)
            found[base] = None
    # a package is run before what is in it
    names = [".".join(parts[:end]) for parts in (name.split(".") for name in found) for end in range(1, len(parts) + 1)]
    return list(dict.fromkeys(filter(None, names)))


def _place(name: str) -> tuple[str, Any] | None:
    """The file of a module and what loads it; nothing is imported for that."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        return (file, getattr(module, "__loader__", None)) if file else None
    folders, spec = None, None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        if end > 1 and folders is None:
            return None  # a name within a module that is no package
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:end]), folders)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return (spec.origin, spec.loader) if spec is not None and spec.origin else None


def is_users(name: str, file: str) -> bool:
    """Return whether a module is the user's own file: not Python's, not installed, not Spark's or govtool's."""
    if name.partition(".")[0] in (*_SPARK, "govtool"):
        return False
    known = sysconfig.get_paths()
    folders = {known[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return not any(os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep) for folder in folders)


def _bytes_of(file: str, loader: Any) -> bytes:
    """What is in the file of a module, which may be within an archive.

    Raises:
        ValueError: It cannot be read, so that a change of it could not be seen.
    """
    try:
        with open(file, "rb") as source:
            return source.read()
    except OSError:
        pass
    try:
        return bytes(loader.get_data(file))
    except Exception as error:
        raise ValueError(f"the module in {os.path.basename(file)} cannot be read") from error


def _tree(data: bytes) -> ast.Module | None:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
