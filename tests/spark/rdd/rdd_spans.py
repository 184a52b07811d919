"""Provenance of RDD programs by the definition, in plain Python: partitions of records with the sets of their sources.

It shares nothing with the package. Every operator is evaluated in full, on small collections. Where Spark decides alone
in which partition or order a record is, the records that Spark has there are looked at (``seen``), and a record stands
for any that equals it: it comes at least from ``least`` and at most from ``most``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdd_functions import canonical, fresh


class UnknownOrderError(Exception):
    """Only Spark knows the order of records, and it was not asked."""


@dataclass(frozen=True)
class Span:
    least: frozenset = frozenset()
    most: frozenset = frozenset()

    def __or__(self, other):
        return Span(self.least | other.least, self.most | other.most)


NOTHING = Span()


def at(token):
    return Span(frozenset({token}), frozenset({token}))


def any_of(spans):
    """One of some records, nobody knows which."""
    spans = list(spans)
    return Span(frozenset.intersection(*(each.least for each in spans)), all_of(spans).most)


def all_of(spans):
    spans = list(spans)
    return Span(frozenset().union(*(each.least for each in spans)), frozenset().union(*(each.most for each in spans)))


@dataclass(frozen=True)
class Record:
    """A value, its source records, and the records of the boundaries before it."""

    value: object
    sources: Span = NOTHING
    before: Span = NOTHING


def made(value, records):
    records = list(records)
    return Record(value, all_of(each.sources for each in records), all_of(each.before for each in records))


@dataclass(frozen=True)
class Side:
    """Partitions of records. Not ``known``: in other partitions, or in another order, than Spark has them."""

    parts: list
    known: bool = True

    @property
    def records(self):
        return [each for part in self.parts for each in part]

    def read(self):
        """The same records, with NaNs of their own."""
        return replace(self, parts=[[replace(each, value=fresh(each.value)) for each in part] for part in self.parts])


def somewhere(records):
    return Side([list(records)], known=False)


def flat(side, function):
    return replace(
        side,
        parts=[[replace(each, value=value) for each in part for value in function(each.value)] for part in side.parts],
    )


def by(records, key):
    found = {}
    for each in records:
        found.setdefault(key(each.value), []).append(each)
    return found


def first(value):
    return value[0]


def itself(value):
    return value


def folded(side, value_of):
    return somewhere(
        made((key, value_of([each.value[1] for each in group])), group)
        for key, group in by(side.records, first).items()
    )


def distinct(side):
    return somewhere(made(value, group) for value, group in by(side.records, itself).items())


def joined(left, right, keep_left, keep_right):
    lefts, rights = by(left.records, first), by(right.records, first)
    missing = [Record((None, None))]
    return somewhere(
        made((key, (one.value[1], other.value[1])), [one, other])
        for key in {**lefts, **rights}
        for one in lefts.get(key, missing if keep_right else [])
        for other in rights.get(key, missing if keep_left else [])
    )


def cogrouped(sides):
    groups = [by(side.records, first) for side in sides]
    return somewhere(
        made(
            (key, tuple([each.value[1] for each in group.get(key, [])] for group in groups)),
            [each for group in groups for each in group.get(key, [])],
        )
        for key in {key: None for group in groups for key in group}
    )


def intersection(left, right):
    ones, others = by(left.records, itself), by(right.records, itself)
    return somewhere(made(value, [*ones[value], *others[value]]) for value in ones if value in others)


def subtracted(left, right, key):
    gone = set(by(right.records, key))
    return somewhere(each for each in left.records if key(each.value) not in gone)


def product(left, right):
    return somewhere(made((one.value, other.value), [one, other]) for one in left.records for other in right.records)


# ---- where the order counts -----------------------------------------------------------------------------------------


def placed(side, seen, key=itself):
    """The records of a side where Spark has them; of equal ones nobody knows which is where."""
    if seen is None:
        raise UnknownOrderError
    alike = by(side.records, lambda value: canonical(key(value)))
    parts = []
    for part in seen:
        found = []
        for value in part:
            same = alike[canonical(key(value))]
            found.append(Record(value, any_of(each.sources for each in same), any_of(each.before for each in same)))
        parts.append(found)
    return Side(parts)


def chosen(side, seen, result_key):
    """Records chosen or numbered by their place, as Spark chose or numbered them."""
    if seen is None:
        raise UnknownOrderError
    parts = placed(side, [[result_key(value) for value in part] for part in seen]).parts
    return Side(
        [
            [replace(each, value=value) for each, value in zip(*both, strict=True)]
            for both in zip(parts, seen, strict=True)
        ],
        known=True,
    )


def of_partitions(side, function, seen):
    """What a function makes of each partition comes from all of its records, and certainly from none of another."""
    if side.known:
        return Side(
            [
                [made(value, part) for value in function(number, [each.value for each in part])]
                for number, part in enumerate(side.parts)
            ]
        )
    parts = placed(side, seen("input")).parts
    alike = by(side.records, canonical)
    found = []
    for number, part in enumerate(parts):
        here = by(part, canonical)
        behind = [
            same for key, group in here.items() for same in (alike[key] if len(alike[key]) == len(group) else group)
        ]
        found.append([made(value, behind) for value in function(number, [each.value for each in part])])
    return Side(found)
