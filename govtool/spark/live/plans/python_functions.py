"""Python functions that plans call: their code and the values that they take along, as digests.

A plan has the name of a function and no more. Its code and its captured values are read when it is handed to Spark, as
it is pickled then: what the driver changes later does not reach it.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Iterator
from functools import partial, wraps
from typing import Any

from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.jvm.scala import called, safely, sequence
from govtool.spark.live.plans.signature import PYTHON_CALLS
from govtool.spark.live.plans.value_text import NoTextError, ValueText, broadcasts, captured_by, members_of, reference

MAX_FUNCTIONS = 10_000
"""Functions of a process that are remembered."""
MAX_CALLS = 2000
"""Expressions of one plan that are looked at where several functions have one name."""

_SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery", "FunctionTableSubqueryArgumentExpression")


_known: dict[str, dict[Any, dict[str, Any]]] = {}
"""The functions of this process, by name and then by what tells them apart in the JVM."""
_lock = threading.Lock()
_count = 0


def patch(recorder: Any) -> None:
    """Hear of functions when they are handed to Spark, and of values when they are broadcast."""
    from pyspark.sql.udf import UserDefinedFunction

    _patch_maker(UserDefinedFunction, "_create_judf", recorder)
    table_functions = safely(_table_functions)
    if table_functions is not None:
        _patch_maker(table_functions, "_create_judtf", recorder)
    _patch_broadcast()


def _table_functions() -> Any:
    from pyspark.sql.udtf import UserDefinedTableFunction

    return UserDefinedTableFunction


def _patch_maker(owner: Any, name: str, recorder: Any) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def make(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, func, *args, **kwargs)
        try:
            _remember(str(self._name), _key(made.func()), described(func, recorder.digests))
        except Exception:
            recorder.lost += 1
        return made

    setattr(owner, name, make)


def _patch_broadcast() -> None:
    from pyspark import SparkContext

    original = SparkContext.broadcast

    @wraps(original)
    def broadcast(self: Any, value: Any) -> Any:
        made = original(self, value)
        try:
            broadcasts[made] = ValueText().of(value)
        except Exception:  # of a kind that has no text: so it is of the function that uses it
            broadcasts.pop(made, None)
        return made

    SparkContext.broadcast = broadcast  # type: ignore[method-assign]


def _remember(name: str, key: Any, facts: dict[str, Any]) -> None:
    global _count
    with _lock:
        if _count < MAX_FUNCTIONS:
            _count += 1
            _known.setdefault(name, {})[key] = {"name": name, **facts}


def _key(function: Any) -> Any:
    """What tells a function of the JVM from others: a hash of its pickle."""
    command = function.command()
    return hash(bytes(command)) if isinstance(command, (bytes, bytearray)) else int(command.hashCode())


# ---- what a function is ---------------------------------------------------------------------------------------


def described(function: Any, digests: Digests) -> dict[str, Any]:
    """A digest of the code of a function, one of each value that it captured, and the kinds of those without any."""
    code: list[str] = []
    captured: dict[str, str] = {}
    unknown: dict[str, str] = {}
    try:
        parts = list(_parts(function, "", code, []))
    except Exception as error:
        return {"code": "", "captured": {}, "unknown": {"code": _kind(error)}}
    for path, value in parts:
        try:
            captured[path] = digests.of(ValueText().of(value))
        except Exception as error:  # a class of the job's may answer in its own way
            unknown[path] = _kind(error)
    return {"code": digests.of("\n".join(code)), "captured": captured, "unknown": unknown}


def _kind(error: Exception) -> str:
    return str(error) if isinstance(error, NoTextError) else type(error).__name__


_FUNCTIONS = (types.FunctionType, types.MethodType, partial)


def _parts(function: Any, path: str, code: list[str], seen: list[Any]) -> Iterator[tuple[str, Any]]:
    """The values that a function takes along, with names; the code of the functions among them goes to ``code``."""
    if any(function is each for each in seen):
        return
    seen.append(function)
    if isinstance(function, types.FunctionType) and not reference(function):
        code.append(f"{path} {ValueText().code(function.__code__)}")
        values = captured_by(function)
    elif isinstance(function, type) and not reference(function):  # a table function
        code.append(f"{path} class {function.__qualname__}")
        values = [*members_of(function), *((base.__name__, base) for base in function.__bases__ if base is not object)]
    elif isinstance(function, types.MethodType):
        values = [("", function.__func__), ("self", function.__self__)]
    elif isinstance(function, partial):
        named = [*enumerate(function.args), *function.keywords.items()]
        values = [("", function.func), *((f"{name}=", value) for name, value in named)]
    else:
        code.append(f"{path} {ValueText().of(function)}")
        values = []
    for name, value in values:
        inner = f"{path}.{name}".strip(".")
        if isinstance(value, _FUNCTIONS):
            yield from _parts(value, inner, code, seen)
        else:
            yield inner, value


# ---- the functions of a plan ----------------------------------------------------------------------------------


def functions_of(plan: Any, names: list[str]) -> list[dict[str, Any]]:
    """What is known of the functions that a plan calls.

    Args:
        plan: The plan behind py4j.
        names: The names of its Python functions, as its JSON has them.
    """
    with _lock:
        candidates = {name: dict(_known.get(name, {})) for name in dict.fromkeys(names)}
    keys = set(_keys_in(plan)) if any(len(found) > 1 for found in candidates.values()) else set()
    facts = []
    for name, found in candidates.items():
        own = [each for key, each in found.items() if len(found) == 1 or key in keys]
        unknown = "one of several functions of this name" if found else "not seen when it was made"
        facts += own or [{"name": name, "code": "", "captured": {}, "unknown": {"code": unknown}}]
    return facts


def _keys_in(plan: Any) -> Iterator[Any]:
    """The keys of the Python functions of a plan, those within its commands and subqueries included."""
    waiting = [plan]
    for _ in range(MAX_CALLS):
        if not waiting:
            return
        node = waiting.pop()
        kind = str(node.getClass().getSimpleName())
        if kind in PYTHON_CALLS:
            yield _key(node.func())
        for field in ("children", "expressions", "innerChildren"):
            waiting += safely(partial(_nodes, node, field)) or ()
        if kind in _SUBQUERIES:
            waiting.append(node.plan())


def _nodes(node: Any, field: str) -> list[Any]:
    return sequence(called(node, field))
