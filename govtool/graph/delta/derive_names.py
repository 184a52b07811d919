"""What is found by the end of a name in a derived index; see ``govtool.graph.delta.derive``."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import Any

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

    index, old, new, texts = s.index, s.old, s.new, s.change.texts
    nodes, mine = s.axes["node"], s.chosen["node"]
    order, offsets, bearers = (index.arrays[name] for name in ("path_suffix", "path", "path_node"))
    own = {ROWS, UNKNOWN}
    left: dict[int, list[int]] = {}
    for node in nodes.removed.tolist():
        if not old["dataset_flags"][old["node_dataset"][node]] & HIDDEN:
            left.setdefault(int(old["node_path"][node]), []).append(node)
    come: dict[int, list[tuple[int, int]]] = {}
    for place, node in enumerate(mine.tolist()):
        if not new["dataset_flags"][new["node_dataset"][node]] & HIDDEN:
            path = int(s.text[new["node_path"][node]])
            come.setdefault(path, []).append((int(nodes.before[place]), int(s.node[node])))
    at_path = partial(_path_key, index, order)
    gone, gone_bearers, coming = [], [], []
    for path in sorted({*left, *come}):
        text = texts[path]
        if text in own:
            continue
        key = (suffix_key(text), text)
        at = bisect_left(range(len(order)), key, key=at_path)
        there = at < len(order) and order[at] == path
        low, high = (offsets[at], offsets[at + 1]) if there else (offsets[at], offsets[at])
        places = [bisect_left(bearers, node, low, high) for node in left.get(path, ())]
        gone_bearers += places
        stays = there and len(places) < high - low
        if there and not (stays or path in come):
            gone.append(at)
        coming.append((key, at, path, there, low, high, come.get(path, [])))
    coming.sort(key=lambda each: each[0])
    s.axis("path", sorted(gone), [at for _, at, _, there, *_, some in coming if some and not there])
    axis = s.axes["path"]
    s.out["path_suffix"] = np.array([path for _, _, path, there, *_, some in coming if some and not there], np.int64)
    number = iter(axis.inserted)
    owners, before, found = [], [], []
    for _, at, _, there, low, high, some in coming:
        if not some:
            continue
        mine_now = axis.number(at) if there else next(number)
        for ahead, node in some:
            owners.append(mine_now)
            before.append(bisect_left(bearers, ahead, low, high))
            found.append(node)
    s.axis("path_node", sorted(gone_bearers), before)
    s.out |= {"path_node": np.array(found, np.int64), "path.owners": np.array(owners, np.int64)}


def _path_key(index: Index, order: Any, place: int) -> tuple[str, str]:
    text = index.text(order[place])
    return suffix_key(text), text
