"""The facts of positions, compared with the types and the order that readers rely on: a store may hold anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from govtool.model.typed import require_types

GRADES = ("exact", "superset", "coarse", "incomplete")
"""How close rows may keep to a trace."""
RESULT = -1
"""The number of the result; no rows come from it."""


class _Table(NamedTuple):
    node: int
    stop: int
    exactness: str
    reason: str


class _Coarse(NamedTuple):
    node: int
    stops: tuple[int, ...]
    reason: str


class _Text(NamedTuple):
    id: int
    text: str


class _Texts(NamedTuple):
    node: int
    texts: tuple[_Text, ...]


class _Label(NamedTuple):
    node: int
    label: str


class _Source(NamedTuple):
    stop: int
    leaf: int


def require_facts(facts: Mapping[str, Any]) -> None:
    """Refuse facts that are not those of ``StoredPositions``.

    Raises:
        ValueError, KeyError, TypeError: They are something else, or a step leads back to where it came from.
    """
    _require_lists(facts)
    tables = [_Table(*each) for each in facts["tables"]]
    coarse = [_Coarse(node, tuple(stops), reason) for node, stops, reason in facts["coarse"]]
    texts = [_Texts(node, tuple(_Text(*each) for each in own)) for node, own in facts["texts"]]
    labels = [_Label(*each) for each in facts.get("labels", ())]
    sources = [_Source(*each) for each in facts.get("sources", ())]
    for each in (*tables, *coarse, *texts, *labels, *sources):
        require_types(each)
    _require_numbers(facts)
    if not all(each.exactness in GRADES for each in tables):
        raise ValueError("a table has an unknown exactness")
    _require_order(
        [*((each.node, each.stop) for each in tables), *((c.node, stop) for c in coarse for stop in c.stops)]
    )


def _require_lists(facts: Mapping[str, Any]) -> None:
    """Refuse texts and objects in the place of lists: one without anything in it would pass for an empty list."""
    lists = [facts[name] for name in ("tables", "coarse", "texts")]
    lists += [facts.get(name, []) for name in ("labels", "sources")]
    lists += [each[1] for name in ("coarse", "texts") for each in facts[name]]
    if not all(isinstance(each, list | tuple) for each in lists):
        raise ValueError("something else is in the place of a list")


def _require_numbers(facts: Mapping[str, Any]) -> None:
    """Refuse numbers that have a fraction, or are true or false: comparisons do not tell them apart."""
    numbers = [
        *(number for each in facts["tables"] for number in each[:2]),
        *(number for node, stops, _ in facts["coarse"] for number in (node, *stops)),
        *(number for node, own in facts["texts"] for number in (node, *(each[0] for each in own))),
        *(each[0] for each in facts.get("labels", ())),
        *(number for each in facts.get("sources", ()) for number in each),
    ]
    if not all(type(number) is int and -(1 << 63) <= number < 1 << 63 for number in numbers):
        raise ValueError("a number is no whole number of 64 bits")


def _require_order(steps: Iterable[tuple[int, int]]) -> None:
    """Refuse steps that do not end.

    Raises:
        ValueError: They do not, or begin below the result.
    """
    below: dict[int, set[int]] = {}
    for node, stop in steps:
        below.setdefault(node, set()).add(stop)
    if any(RESULT in stops for stops in below.values()):
        raise ValueError("rows come from the result")
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        raise ValueError("steps lead back to where they came from") from error
