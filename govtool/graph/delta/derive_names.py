"""What is found by the end of a name in a derived index; see ``govtool.graph.delta.derive``."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import Any, NamedTuple

from govtool.arrays.suffix import suffix_key
from govtool.graph.codes import HIDDEN
from govtool.graph.delta.splicing import Splicing
from govtool.graph.index import Index
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS


def splice_suffixes(s: Splicing) -> None:
    """Datasets by the end of their names."""
    import numpy as np

    index, old, new = s.index, s.old, s.new
    mine, order = s.chosen["dataset"], index.arrays["dataset_suffix"]

    def key(place: int) -> tuple[str, int]:
        return suffix_key(index.dataset_name(order[place])), order[place]

    shown = [d for d in s.gone.tolist() if not old["dataset_flags"][d] & HIDDEN]
    removed = sorted(bisect_left(range(len(order)), (suffix_key(index.dataset_name(d)), d), key=key) for d in shown)
    visible = [d for d in mine.tolist() if not new["dataset_flags"][d] & HIDDEN]
    texts = s.builder.strings.texts
    coming = sorted((suffix_key(texts[new["dataset_name"][d]]), int(s.dataset[d]), s.ahead[d]) for d in visible)
    before = [bisect_left(range(len(order)), (name, at), key=key) for name, _, at in coming]
    s.axis("suffix", removed, before)
    s.out["dataset_suffix"] = np.array([number for _, number, _ in coming], np.int64)


def splice_paths(s: Splicing) -> None:
    """Columns by the end of their paths."""
    import numpy as np

    index, texts = s.index, s.change.texts
    order, offsets, bearers = (index.arrays[name] for name in ("path_suffix", "path", "path_node"))
    left, come = _columns_that_leave(s), _columns_that_come(s)
    at_path = partial(_path_key, index, order)
    gone: list[int] = []
    gone_bearers: list[int] = []
    coming: list[_ChangedPath] = []
    for path in sorted({*left, *come}):
        text = texts[path]
        if text in (ROWS, UNKNOWN):
            continue
        key = (suffix_key(text), text)
        at = bisect_left(range(len(order)), key, key=at_path)
        there = at < len(order) and order[at] == path
        low, high = (offsets[at], offsets[at + 1]) if there else (offsets[at], offsets[at])
        places = [bisect_left(bearers, node, low, high) for node in left.get(path, ())]
        gone_bearers += places
        if path in come:
            coming.append(_ChangedPath(key, at, path, there, low, high, come[path]))
        elif there and len(places) == high - low:
            gone.append(at)
    coming.sort(key=lambda each: each.key)
    new_paths = [each for each in coming if not each.there]
    s.axis("path", sorted(gone), [each.at for each in new_paths])
    axis = s.axes["path"]
    s.out["path_suffix"] = np.array([each.path for each in new_paths], np.int64)
    number = iter(axis.inserted)
    owners, before, found = [], [], []
    for each in coming:
        owner = axis.number(each.at) if each.there else next(number)
        for ahead, node in each.columns:
            owners.append(owner)
            before.append(bisect_left(bearers, ahead, each.low, each.high))
            found.append(node)
    s.axis("path_node", sorted(gone_bearers), before)
    s.out |= {"path_node": np.array(found, np.int64), "path.owners": np.array(owners, np.int64)}


class _ChangedPath(NamedTuple):
    """A path that columns of the change bear."""

    key: tuple[str, str]
    at: int
    """Its place among the paths of the index, or that before which it comes."""
    path: int
    there: bool
    """The index has it."""
    low: int
    high: int
    """The columns of the index that bear it."""
    columns: list[tuple[int, int]]
    """Those that come: the column before which each does, and its number."""


def _columns_that_leave(s: Splicing) -> dict[int, list[int]]:
    """The visible columns that go, by their paths."""
    left: dict[int, list[int]] = {}
    for node in s.axes["node"].removed.tolist():
        if not s.old["dataset_flags"][s.old["node_dataset"][node]] & HIDDEN:
            left.setdefault(int(s.old["node_path"][node]), []).append(node)
    return left


def _columns_that_come(s: Splicing) -> dict[int, list[tuple[int, int]]]:
    """The visible columns that come, by their paths: the column before which each does, and its number."""
    come: dict[int, list[tuple[int, int]]] = {}
    before = s.axes["node"].before
    for place, node in enumerate(s.chosen["node"].tolist()):
        if not s.new["dataset_flags"][s.new["node_dataset"][node]] & HIDDEN:
            path = int(s.text[s.new["node_path"][node]])
            come.setdefault(path, []).append((int(before[place]), int(s.node[node])))
    return come


def _path_key(index: Index, order: Any, place: int) -> tuple[str, str]:
    text = index.text(order[place])
    return suffix_key(text), text
