"""Provenance of RDD programs by the definition, in plain Python: lists of records, each with the set of its sources.

It shares nothing with the package: no operator table, no ids, no stages. Collections are small, every operator is
evaluated in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Annotated:
    """A record and the tokens of the source records that it comes from."""

    value: object
    tokens: frozenset[tuple[str, int]]


def source(name, values):
    return [Annotated(value, frozenset({(name, number)})) for number, value in enumerate(values)]


def flat_map(records, function):
    return [Annotated(made, each.tokens) for each in records for made in function(each.value)]


def mapped(records, function):
    return flat_map(records, lambda value: [function(value)])


def filtered(records, function):
    return flat_map(records, lambda value: [value] if function(value) else [])


def together(records):
    return frozenset().union(*(each.tokens for each in records))


def by_key(records):
    groups: dict[object, list[Annotated]] = {}
    for each in records:
        groups.setdefault(each.value[0], []).append(each)
    return groups


def folded(records, zero, function):
    """One record a key; the function takes what there is so far and a value, in any order."""
    found = []
    for key, group in by_key(records).items():
        total = zero()
        for each in group:
            total = function(total, each.value[1])
        found.append(Annotated((key, total), together(group)))
    return found


def distinct(records):
    found: dict[object, list[Annotated]] = {}
    for each in records:
        found.setdefault(each.value, []).append(each)
    return [Annotated(value, together(group)) for value, group in found.items()]


def joined(left, right, *, keep_left=False, keep_right=False):
    lefts, rights = by_key(left), by_key(right)
    nothing = [Annotated((None, None), frozenset())]
    found = []
    for key in {**lefts, **rights}:
        ones = lefts.get(key, nothing if keep_right else [])
        others = rights.get(key, nothing if keep_left else [])
        found += [
            Annotated((key, (one.value[1], other.value[1])), one.tokens | other.tokens)
            for one in ones
            for other in others
        ]
    return found


def cogrouped(left, right):
    lefts, rights = by_key(left), by_key(right)
    return [
        Annotated(
            (key, ([x.value[1] for x in lefts.get(key, [])], [x.value[1] for x in rights.get(key, [])])),
            together([*lefts.get(key, []), *rights.get(key, [])]),
        )
        for key in {**lefts, **rights}
    ]


def intersection(left, right):
    ones, others = ({each.value: each.tokens for each in distinct(side)} for side in (left, right))
    return [Annotated(value, ones[value] | others[value]) for value in ones if value in others]


def subtracted(left, right):
    gone = {each.value for each in right}
    return [each for each in left if each.value not in gone]


def subtracted_by_key(left, right):
    gone = set(by_key(right))
    return [each for each in left if each.value[0] not in gone]


def product(left, right):
    return [Annotated((one.value, other.value), one.tokens | other.tokens) for one in left for other in right]


def back(records, value):
    """The tokens of all records that equal a value."""
    return together([each for each in records if each.value == value])


def forward(records, token):
    """The records, each as often as it is there, that a source record reached."""
    return Counter(each.value for each in records if token in each.tokens)
