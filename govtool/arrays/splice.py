"""Arrays that differ from mapped ones in a few places, read as if they had been written anew.

Things are numbered along an *axis*. A change removes some and inserts others; what stays keeps its order, but not its
number. An array of such things is never copied: its items are those of the mapped array and those that were inserted,
and numbers of other things among them are put into the new numbering as they are read. Whoever wants a whole array as
numpy gets it made at once.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

_LONG = 256
"""Items of a slice from which on the array is made whole."""


class Axis:
    """A numbering that changed.

    A thing that is removed and inserted again in the same place keeps its number; it is the last one inserted there.

    Args:
        count: How many things there were.
        removed: The old numbers of those that are gone, ascending.
        before: Per inserted thing the old number of what it comes before, ascending.
    """

    def __init__(self, count: int, removed: Any, before: Any) -> None:
        self.old_count = count
        self.removed, self.before = removed, before

    def __len__(self) -> int:
        return self.old_count - len(self.removed) + len(self.before)

    @property
    def is_same(self) -> bool:
        """Return whether every number means what it meant."""
        return len(self.removed) == 0 == len(self.before)

    def number(self, old: int) -> int:
        """The new number of a thing by its old one."""
        return old - bisect_right(self.removed, old) + bisect_right(self.before, old)

    def numbers(self, old: Any) -> Any:
        """The new numbers of things, as int64."""
        import numpy as np

        old = np.asarray(old).astype(np.int64)
        removed, before = np.asarray(self.removed), np.asarray(self.before)
        return old - np.searchsorted(removed, old, "right") + np.searchsorted(before, old, "right")

    @cached_property
    def table(self) -> Any:
        """The new number of every thing by its old one."""
        import numpy as np

        from govtool.arrays.layout import narrow

        step = np.ones(self.old_count + 1, np.int64)
        step[0] = 0
        step[np.asarray(self.removed, np.int64)] -= 1
        np.add.at(step, np.asarray(self.before, np.int64), 1)
        return narrow(np.cumsum(step)[:-1])

    @cached_property
    def inserted(self) -> list[int]:
        """The new numbers of the inserted things."""
        found: list[int] = self.inserted_array.tolist()
        return found

    @cached_property
    def inserted_array(self) -> Any:
        """The same as numpy."""
        import numpy as np

        before = np.asarray(self.before).astype(np.int64)
        return before - np.searchsorted(np.asarray(self.removed), before) + np.arange(len(before))

    @cached_property
    def _gaps(self) -> list[int]:
        """Per removed thing how many are left before it."""
        return [number - place for place, number in enumerate(list(self.removed))]

    def origin(self, number: int) -> tuple[int, int]:
        """What a new number means: the place among the inserted and -1, or -1 and the old number."""
        place = bisect_left(self.inserted, number)
        if place < len(self.inserted) and self.inserted[place] == number:
            return place, -1
        left = number - place
        return -1, left + bisect_right(self._gaps, left)

    def old_place(self, number: int) -> int:
        """The old number of a thing, or of what an inserted one comes before."""
        place, old = self.origin(number)
        return old if place < 0 else int(self.before[place])

    @cached_property
    def kept(self) -> Any:
        """Per old thing whether it stays."""
        import numpy as np

        found = np.ones(self.old_count, bool)
        found[np.asarray(self.removed, np.int64)] = False
        return found

    def woven(self, old: Any, new: Any) -> Any:
        """An array along the new axis of one along the old, whose removed items are left out, and inserted items."""
        import numpy as np

        fresh = np.zeros(len(self), bool)
        fresh[self.inserted_array] = True
        found = np.empty((len(self), *old.shape[1:]), np.promote_types(old.dtype, new.dtype))
        found[fresh] = new
        found[~fresh] = old[self.kept]
        return found


class _Slice(Sequence[int]):
    """Some items of an array, as a memoryview has them."""

    def __init__(self, owner: Any, places: range) -> None:
        self._owner, self._places = owner, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _Slice(self._owner, self._places[at])
        return self._owner[self._places[at]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The items."""
        import operator

        if len(self._places) > _LONG:
            found: list[int] = self.__array__().tolist()
            return found
        return [operator.index(self._owner[place]) for place in self._places]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.asarray(self._owner, dtype)[self._places.start : self._places.stop]


class _Array(Sequence[int]):
    """What the arrays have in common."""

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _Slice(self, range(*at.indices(len(self))))
        if at < 0:
            at += len(self)
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self.item(at)

    def __iter__(self) -> Iterator[int]:
        return iter(self.whole.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.asarray(self.whole, dtype)

    @abstractmethod
    def item(self, at: int) -> int:
        """An item."""

    @property
    @abstractmethod
    def whole(self) -> Any:
        """All of it as numpy."""


class SplicedArray(_Array):
    """An array along an axis.

    Args:
        old: The array before.
        new: The items of the things that were inserted.
        axis: What it is indexed with.
        values: What its items number; None: they are no such numbers.
        width: Items a thing; those of more than one can only be had as a whole.
    """

    def __init__(self, old: Any, new: Any, axis: Axis, values: Axis | None = None, width: int = 1) -> None:
        self.old, self.new, self.axis, self.width = old, new, axis, width
        self.values = None if values is None or values.is_same else values

    def __len__(self) -> int:
        return len(self.axis) * self.width

    def item(self, at: int) -> int:
        """An item."""
        if self.width > 1:
            return int(self.whole[at])
        place, old = self.axis.origin(at)
        if place >= 0:
            return int(self.new[place])
        return self.values.number(self.old[old]) if self.values else int(self.old[old])

    @cached_property
    def whole(self) -> Any:
        """All of it as numpy."""
        import numpy as np

        old, new = np.asarray(self.old), np.asarray(self.new)
        if self.values is not None:
            old = self.values.table.take(old)
        if self.axis.is_same:
            return old
        if self.width > 1:
            return self.axis.woven(old.reshape(-1, self.width), new.reshape(-1, self.width)).ravel()
        return self.axis.woven(old, new)


class SplicedOffsets(_Array):
    """Where the items of each thing begin, for things and items that both changed.

    Args:
        old: The offsets before.
        axis: The things.
        items: The axis of their items.
        owners: Per inserted item the new number of its thing, ascending.
    """

    def __init__(self, old: Any, axis: Axis, items: Axis, owners: Any) -> None:
        self.old, self.axis, self.items, self.owners = old, axis, items, owners

    def __len__(self) -> int:
        return len(self.axis) + 1

    def item(self, at: int) -> int:
        """An item."""
        if at == len(self.axis):
            return len(self.items)
        start = self.old[self.axis.old_place(at)]
        return int(bisect_left(self.owners, at) + start - bisect_left(self.items.removed, start))

    @cached_property
    def whole(self) -> Any:
        """All of it as numpy."""
        import numpy as np

        axis = self.axis
        place = axis.woven(np.arange(axis.old_count), np.asarray(axis.before).astype(np.int64))
        start = np.asarray(self.old).astype(np.int64)[np.append(place, axis.old_count)]
        gone = np.concatenate([[0], np.cumsum(~self.items.kept)])
        come = np.bincount(np.asarray(self.owners).astype(np.int64), minlength=len(axis) + 1)
        return start - gone[start] + np.cumsum(come) - come


class Joined(_Array):
    """An array, and another one behind it.

    Args:
        first: The array.
        second: What is behind it.
        shift: Is added to the items of the second.
    """

    def __init__(self, first: Any, second: Any, shift: int = 0) -> None:
        self.first, self.second, self.shift = first, second, shift

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def __getitem__(self, at: Any) -> Any:
        count = len(self.first)
        if isinstance(at, slice) and at.step is None:
            low, high, _ = at.indices(len(self))
            if high <= count:
                return self.first[low:high]
            if low >= count:
                return self.second[low - count : high - count]
        return super().__getitem__(at)

    def item(self, at: int) -> int:
        """An item."""
        count = len(self.first)
        return int(self.first[at]) if at < count else int(self.second[at - count]) + self.shift

    @cached_property
    def whole(self) -> Any:
        """All of it as numpy."""
        import numpy as np

        second = np.asarray(self.second)
        return np.concatenate([np.asarray(self.first), second.astype(np.uint64) + self.shift if self.shift else second])


class Numpy:
    """Arrays by name as numpy: each is made when it is asked for first.

    Args:
        arrays: Anything that numpy makes arrays of.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        found = self._made.get(name)
        if found is None:
            import numpy as np

            values = self._arrays[name]
            found = self._made[name] = np.asarray(values) if len(values) else np.empty(0, np.int64)
        return found
