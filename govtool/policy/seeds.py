"""Columns and the classes that they have by themselves: a mapping that is kept in arrays, for there may be millions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from govtool.arrays.sets import distinct

Array = np.ndarray[Any, np.dtype[Any]]
Classes = tuple[str, ...]
_KEY = np.int64


class Seeds(Mapping[int, Classes]):
    """From columns to sorted classes, in the order of the columns. Columns are many, combinations of classes few.

    Args:
        nodes: The columns, sorted.
        combination: For each the number of its combination.
        combinations: Sorted classes.
    """

    __slots__ = ("combination", "combinations", "nodes")

    def __init__(self, nodes: Array, combination: Array, combinations: tuple[Classes, ...]) -> None:
        self.nodes, self.combination, self.combinations = nodes, combination, combinations

    @classmethod
    def of(cls, classes: Mapping[int, Iterable[str]]) -> Seeds:
        """Seeds of any mapping."""
        if isinstance(classes, Seeds):
            return classes
        number: dict[Classes, int] = {}
        nodes = np.array(sorted(classes), _KEY)
        every = [number.setdefault(tuple(sorted(set(classes[n]))), len(number)) for n in nodes.tolist()]
        return cls(nodes, np.array(every, np.int32), tuple(number))

    @classmethod
    def gathered(cls, parts: Iterable[tuple[str, Array]]) -> Seeds:
        """Seeds of classes and the columns of each; a class may occur several times."""
        names: dict[str, list[Array]] = {}
        for name, nodes in parts:
            names.setdefault(name, []).append(nodes)
        order = sorted(names)
        each = [distinct(np.concatenate(names[name])) for name in order]
        if not each:
            return cls(np.empty(0, _KEY), np.empty(0, np.int32), ())
        nodes, owner = np.unique(np.concatenate(each), return_inverse=True)
        # Class by class, what a column has so far and the class make a new combination.
        combination = np.zeros(len(nodes), np.int32)
        combinations: list[Classes] = [()]
        start = 0
        for name, own in zip(order, each, strict=True):
            at = owner[start : start + len(own)]
            start += len(own)
            before = distinct(combination[at])
            table = np.zeros(len(combinations) + 1, np.int32)
            for old in before.tolist():
                table[old] = len(combinations)
                combinations.append((*combinations[old], name))
            combination[at] = table[combination[at]]
        return cls(nodes, combination, tuple(combinations))

    def chosen(self, which: Array) -> Seeds:
        """Those for which ``which`` is true."""
        return Seeds(self.nodes[which], self.combination[which], self.combinations)

    def having(self, name: str) -> Array:
        """The columns that have a class by themselves."""
        some = np.array([name in classes for classes in self.combinations], bool)
        return self.nodes[some[self.combination]] if len(self.nodes) else self.nodes

    def names(self) -> list[str]:
        """The classes of any column, sorted."""
        used = np.flatnonzero(np.bincount(self.combination)).tolist()
        return sorted({name for number in used for name in self.combinations[number]})

    def __getitem__(self, node: int) -> Classes:
        """The classes of a column."""
        at = int(np.searchsorted(self.nodes, node))
        if at == len(self.nodes) or self.nodes[at] != node:
            raise KeyError(node)
        return self.combinations[self.combination[at]]

    def __iter__(self) -> Iterator[int]:
        """The columns, sorted."""
        return iter(self.nodes.tolist())

    def __len__(self) -> int:
        """The number of columns."""
        return len(self.nodes)
