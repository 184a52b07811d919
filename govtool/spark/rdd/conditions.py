"""Conditions on records: a predicate, or a key among others; few keys are broadcast, many are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from govtool.spark.rdd import worker

MAX_BROADCAST = 100_000
"""Keys that are sent to every task; more are joined by a shuffle."""


@dataclass(frozen=True, slots=True)
class ChosenKeys:
    """A set of keys, in the driver and broadcast, or as an RDD.

    Attributes:
        few: The broadcast pair of plain keys and tokens of keys such as NaN; None where there are many.
        many: The distinct keys as an RDD; None where there are few.
        odd: Some keys do not equal themselves, and were matched by their text.
    """

    few: Any
    many: Any
    odd: bool = False


def keys_of(keys: Any) -> ChosenKeys:
    """Collect an RDD of keys as far as the driver may hold them."""
    found = set(keys.mapPartitions(worker.distinct_up_to(MAX_BROADCAST)).collect())
    if len(found) > MAX_BROADCAST:
        return ChosenKeys(None, keys.distinct())
    odd = frozenset(worker.token(key) for key in found if not worker.equals_itself(key))
    return ChosenKeys(keys.context.broadcast((frozenset(found), odd)), None, bool(odd))


class Condition:
    """All records."""

    narrows = False
    """Fewer records than all may fulfil it."""

    def matching(self, items: Any, outputs: worker.Outputs) -> Any:
        """Return the items of an RDD with an output that fulfils the condition; with many keys, some more than once."""
        return items


EVERYTHING = Condition()


@dataclass(frozen=True, slots=True)
class Predicate(Condition):
    """Records for which a function returns a true value."""

    predicate: Callable[[Any], Any]
    narrows = True

    def matching(self, items: Any, outputs: worker.Outputs) -> Any:
        """See `Condition.matching`."""
        return items.filter(worker.any_output(self.predicate, outputs))


@dataclass(frozen=True, slots=True)
class KeyIn(Condition):
    """Records whose key is one of a set."""

    keys: ChosenKeys
    key: Callable[[Any], Any]
    narrows = True

    def matching(self, items: Any, outputs: worker.Outputs) -> Any:
        """See `Condition.matching`."""
        if self.keys.many is None:
            return items.filter(worker.any_key(self.keys.few, self.key, outputs))
        pairs = items.flatMap(worker.keyed_items(self.key, outputs))
        return pairs.join(self.keys.many.map(worker.with_none)).map(worker.first_of_pair)
