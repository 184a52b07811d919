"""Facts of a run that a later run is compared by, and that its lineage does not need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from govtool.names import renewed_text

_PARTS = ("captured", "unknown")


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """A Python function that a plan calls, as it was handed to Spark."""

    name: str
    code: str = ""
    """A digest of its code and of that of the functions it calls, but for those of modules; empty: not known."""
    captured: tuple[tuple[str, str], ...] = ()
    """The names of the values that it took along (closure, globals, defaults), each with a digest of the value."""
    unknown: tuple[tuple[str, str], ...] = ()
    """The names of those that have no digest, each with the reason: the kind of the value."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Arguments, the exact plan and what in it may answer otherwise each time.

    Values are never here: a literal or an argument is a digest under a secret key, so that two can be compared by
    whoever holds neither.
    """

    key: str = ""
    """The id of the key; digests under different keys are not comparable. Empty: there are no digests."""
    arguments: tuple[str, ...] | None = None
    """A digest for each argument of the script; None: not recorded."""
    signature: str = ""
    """The analyzed plan, an operator a line, with operators by name and a digest for each literal."""
    functions: tuple[str, ...] = ()
    """Functions of the plan that may answer otherwise each time, the random ones first."""
    driver_data: tuple[str, ...] | None = None
    """A digest for each data frame that the plan reads and the driver made; None: not recorded."""
    python: tuple[FunctionCode, ...] | None = None
    """The Python functions that the plan calls; None: not recorded."""


def reproduction_from(value: Mapping[str, Any]) -> Reproduction:
    """Return what `reproduction_value` wrote."""
    arguments, data = value.get("arguments"), value.get("driver_data")
    python = value.get("python")
    return Reproduction(
        str(value.get("key", "")),
        None if arguments is None else tuple(arguments),
        renewed_text(str(value.get("signature", ""))),
        tuple(value.get("functions") or ()),
        None if data is None else tuple(data),
        None if python is None else tuple(function_from(each) for each in python),
    )


def function_from(value: Mapping[str, Any]) -> FunctionCode:
    """Return a function as a spool or a store has it."""
    parts = (tuple(sorted((str(k), str(v)) for k, v in (value.get(key) or {}).items())) for key in _PARTS)
    return FunctionCode(str(value.get("name", "")), str(value.get("code", "")), *parts)


def _function_value(function: FunctionCode) -> dict[str, Any]:
    value: dict[str, Any] = {"name": function.name, "code": function.code}
    value.update({key: dict(pairs) for key in _PARTS if (pairs := getattr(function, key))})
    return value


def reproduction_value(facts: Reproduction) -> dict[str, Any]:
    """The JSON value of the facts, without those that are not known."""
    value = {
        "key": facts.key,
        "arguments": None if facts.arguments is None else list(facts.arguments),
        "signature": facts.signature,
        "functions": list(facts.functions),
        "driver_data": None if facts.driver_data is None else list(facts.driver_data),
        "python": None if facts.python is None else [_function_value(each) for each in facts.python],
    }
    return (
        {name: each for name, each in value.items() if each not in (None, "", [])}
        | ({"arguments": []} if facts.arguments == () else {})
        | ({"driver_data": []} if facts.driver_data == () else {})
        | ({"python": []} if facts.python == () else {})
    )
