"""Functions of a program named by their source, and found again in the user's own files.

A function is stored as file, position-free digest of its syntax, and digest of what it refers to; never as code or
pickle. Only the function and the module-level names that it uses are compiled; the script never runs again.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from govtool.records.execute.functions import MAX_FILE, statements_for
from govtool.spark.live.records.function_source import imported_source, own_source, used_globals

Reference = dict[str, str]

_METHODS = {"str": str, "list": list, "dict": dict, "tuple": tuple, "set": set, "bytes": bytes}
_BUILTINS = frozenset(
    {"abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "float"}
    | {"format", "frozenset", "hash", "hex", "int", "iter", "len", "list", "max", "min", "oct", "ord", "pow", "range"}
    | {"repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip"}
)
"""Functions that a log may name. What reaches attributes, calls what it is given or runs code is not one of them: a log
may come from another's store, and out of `getattr` and a call anything can be made."""
_REACHING = frozenset(
    {"operator.attrgetter", "operator.call", "operator.itemgetter", "operator.methodcaller"}
    | {"str.format", "str.format_map"}
)
"""Others that a log may not name, for the same reason: a template reads attributes, too."""
_DEFINITIONS = (ast.Lambda, ast.FunctionDef)


def reference(function: Callable[..., Any]) -> Reference:
    """Return what names a function in a log.

    Raises:
        ValueError: Its source is not at hand, or it refers to what cannot be told apart by its source.
    """
    known = _library_name(function)
    if known:
        return {"library": known}
    if not isinstance(function, types.FunctionType):
        raise ValueError(f"a {type(function).__name__} is no plain function")
    file = Path(function.__code__.co_filename)
    tree = _parsed(file)
    if tree is None:
        raise ValueError("its source is in no file")
    node = _definition(tree, function.__code__)
    if node is None:
        raise ValueError("its source was not found in its file")
    if function.__code__.co_freevars:
        raise ValueError(f"it closes over {', '.join(function.__code__.co_freevars)}")
    return {"file": file.name, "syntax": _syntax(node), "names": _names(function, file), "line": str(node.lineno)}


def find(wanted: Reference, files: Iterable[Path]) -> Callable[..., Any] | None:
    """Find a function by its digests in the user's files; None if no file has it unchanged."""
    if "library" in wanted:
        return _library_function(wanted["library"])
    for file in files:
        tree = _parsed(file) if file.name == wanted.get("file") else None
        for node in _of_digest(tree, wanted["syntax"]) if tree is not None else ():
            function = _compiled(tree, node, file)  # type: ignore[arg-type]
            if function is not None and _names(function, file) == wanted["names"]:
                return function
    return None


# ---- functions of Python itself -------------------------------------------------------------------------------------


def _library_name(function: Any) -> str:
    """``operator.add``, ``builtins.len``, ``str.split``; empty for others, and for those that a log may not name."""
    name = getattr(function, "__name__", "")
    found = ""
    for module in (builtins, operator):
        if getattr(module, name, None) is function:
            found = f"{module.__name__}.{name}"
    for kind, type_ in _METHODS.items():
        if not found and type_.__dict__.get(name) is function:
            found = f"{kind}.{name}"
    return found if _library_function(found) is not None else ""


def _library_function(name: str) -> Callable[..., Any] | None:
    home, _, attribute = name.partition(".")
    if attribute.startswith("_") or name in _REACHING:
        return None
    if home == "builtins" and attribute not in _BUILTINS:
        return None
    place = {"operator": operator, "builtins": builtins, **_METHODS}.get(home)
    found = getattr(place, attribute, None)
    return found if callable(found) else None


# ---- source ---------------------------------------------------------------------------------------------------------


def _parsed(file: Path) -> ast.Module | None:
    try:
        if file.stat().st_size > MAX_FILE:
            return None
        return ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError):
        return None


def _definitions(tree: ast.AST) -> Iterator[ast.Lambda | ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, _DEFINITIONS))


def _definition(tree: ast.Module, code: types.CodeType) -> ast.Lambda | ast.FunctionDef | None:
    """The definition of a code object: the one around its instructions, on its first line."""
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column is not None]
    inside = max(places, default=(code.co_firstlineno, 0))
    around = [
        node
        for node in _definitions(tree)
        if (isinstance(node, ast.Lambda) == (code.co_name == "<lambda>"))
        and _first_line(node) == code.co_firstlineno
        and (node.lineno, node.col_offset) <= inside <= (node.end_lineno or 0, node.end_col_offset or 0)
    ]
    return max(around, key=_start, default=None)


def _start(node: ast.Lambda | ast.FunctionDef) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _first_line(node: ast.Lambda | ast.FunctionDef) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _syntax(node: ast.Lambda | ast.FunctionDef) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()


def _of_digest(tree: ast.Module, digest: str) -> Iterator[ast.Lambda | ast.FunctionDef]:
    return (node for node in _definitions(tree) if _syntax(node) == digest)


def _names(function: types.FunctionType, file: Path) -> str:
    """A digest of what the function refers to: constants by value, functions by source, modules by name.

    Raises:
        ValueError: It refers to something else.
    """
    found, tree = hashlib.sha256(), _parsed(file)
    waiting, seen = [function], {function.__code__}
    while waiting:
        current = waiting.pop()
        defaults = (current.__defaults__, current.__kwdefaults__)
        found.update(repr(("defaults", defaults)).encode() if is_plain(defaults) else _unknown("its defaults"))
        node = _definition(tree, current.__code__) if tree is not None else None
        found.update(imported_source(node, current).encode() if node is not None else b"")
        for name, value in sorted(used_globals(current).items()):
            if isinstance(value, types.FunctionType) and value.__code__.co_filename == str(file):
                if value.__code__ not in seen:
                    seen.add(value.__code__)
                    waiting.append(value)
                    found.update(f"{name}={_syntax_of(value, file)}".encode())
            else:
                found.update(f"{name}={_named(name, value)}".encode())
    return found.hexdigest()


def _syntax_of(function: types.FunctionType, file: Path) -> str:
    tree = _parsed(file)
    node = _definition(tree, function.__code__) if tree is not None else None
    return _syntax(node) if node is not None else function.__qualname__


def _named(name: str, value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}{own_source(value)}"
    if callable(value) and getattr(value, "__module__", None) not in (None, "__main__"):
        of_user = own_source(sys.modules.get(value.__module__))
        return f"{value.__module__}.{getattr(value, '__qualname__', name)}{of_user}"
    if is_plain(value):
        return repr(value)
    return _unknown(name).decode()


def is_plain(value: Any) -> bool:
    """Return whether a value is a literal of Python, and comes back from its text."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _unknown(name: str) -> bytes:
    raise ValueError(f"it refers to {name}, which is no plain data")


def _compiled(tree: ast.Module, node: ast.Lambda | ast.FunctionDef, file: Path) -> types.FunctionType | None:
    """The function, made of its definition and of what it uses of its module."""
    kept = statements_for(node, tree)
    if any(getattr(each, "decorator_list", []) for each in (node, *kept)):
        return None  # a decorator may be any code
    own: list[ast.stmt] = [node] if isinstance(node, ast.FunctionDef) else []
    value = ast.Name(node.name, ast.Load()) if isinstance(node, ast.FunctionDef) else node
    name = ast.copy_location(ast.Name("__found__", ast.Store()), node)
    own.append(ast.copy_location(ast.Assign([name], ast.copy_location(value, node)), node))
    made = types.ModuleType("__main__")
    made.__dict__["__file__"] = str(file)
    try:
        for part in (kept, own):
            exec(compile(ast.Module(part, []), str(file), "exec", dont_inherit=True), made.__dict__)
    except Exception:
        return None
    found = made.__dict__.get("__found__")
    return found if isinstance(found, types.FunctionType) and not found.__code__.co_freevars else None
