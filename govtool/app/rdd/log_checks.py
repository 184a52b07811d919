"""The log of a stored program, compared with what its readers rely on: a store may hold anything."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from govtool.model.typed import require_types


class _Operator(NamedTuple):
    """One operator; fields that it lacks have values that fit."""

    name: str
    label: str
    parents: tuple[int, ...]
    missing: str = ""
    path: str = ""
    unicode: bool = True
    partitions: int = 1
    records: str = ""
    arguments: Mapping[str, Mapping[str, Any]] = {}


def require_log(log: Any, leaves: Container[int]) -> None:
    """Refuse a log that is not of the form that a program is built from again.

    Args:
        log: Its private values are in it.
        leaves: The numbers of inputs whose files are known.

    Raises:
        ValueError, KeyError, TypeError: It is something else, or reads a path whose files are not known.
    """
    if not isinstance(log["nodes"], list):
        raise TypeError("the operators are no list")
    for number, entry in enumerate(log["nodes"]):
        _require_operator(number, entry, leaves)
    _require_number(log["output"], len(log["nodes"]))
    if log["taken"] is not None:
        _require_number(log["taken"], 1 << 31)
    if log["result"] is not None:
        kind, count, *_ = log["result"]
        if not isinstance(kind, str) or type(count) is not int:
            raise TypeError("a result is no kind and number")


def place_in(values: Sequence[Any], number: Any) -> Any:
    """Return the value at a place; a place before the first is none, other than for Python.

    Raises:
        IndexError, TypeError: There is no such place.
    """
    _require_number(number, len(values))
    return values[number]


def _require_number(number: Any, bound: int) -> None:
    if type(number) is not int or not 0 <= number < bound:
        raise IndexError(f"{number!r} is no number below {bound}")


def _require_operator(number: int, entry: Any, leaves: Container[int]) -> None:
    fields = {name: entry[name] for name in _Operator._fields if name in entry}
    operator = _Operator(**{**fields, "parents": tuple(entry["parents"])})
    require_types(operator)
    if entry["number"] != number:
        raise ValueError("operators are not in order")
    for parent in operator.parents:
        _require_number(parent, number)
    _require_number(operator.partitions, 1 << 31)
    for argument in operator.arguments.values():
        _require_argument(argument)
    if "path" in entry and number not in leaves:
        raise ValueError("an operator reads files that are not listed")


def _require_argument(argument: Mapping[str, Any]) -> None:
    if "value" in argument:
        if not isinstance(argument["value"], str):
            raise TypeError("an argument is no text")
        return
    function = argument["function"]
    if not isinstance(function, dict) or not all(isinstance(part, str) for pair in function.items() for part in pair):
        raise TypeError("a function is not named by texts")
    if not isinstance(argument["per_record"], bool):
        raise TypeError("per_record is neither true nor false")
