"""Arrays by which names are found by their end: datasets, and column paths with the nodes that bear them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from govtool.arrays.suffix import suffix_key
from govtool.graph.codes import HIDDEN


def name_arrays(
    texts: Sequence[str],
    dataset_names: Sequence[int],
    flags: Any,
    node_dataset: Any,
    node_path: Any,
    nameless: Container[int],
) -> dict[str, Any]:
    """The arrays ``dataset_suffix``, ``path_suffix``, ``path``, ``path_node``, ``string`` and ``text`` of an index.

    Args:
        texts: All texts; names are numbers among them.
        dataset_names: Per dataset its name.
        flags: Per dataset its flags; hidden ones are not found.
        node_dataset: Per node its dataset.
        node_path: Per node its path.
        nameless: Paths that are never looked up: of row sets and of unknown columns.
    """
    import numpy as np

    from govtool.arrays.csr import offsets_of
    from govtool.arrays.sets import distinct, stable_order

    visible = [i for i in range(len(dataset_names)) if not flags[i] & HIDDEN]
    visible.sort(key=lambda i: suffix_key(texts[dataset_names[i]]))
    shown = np.flatnonzero((flags[node_dataset] & HIDDEN) == 0)
    path = node_path[shown]
    named = sorted((i for i in distinct(path).tolist() if i not in nameless), key=lambda i: suffix_key(texts[i]))
    rank = np.full(len(texts), -1, np.int32)
    rank[named] = np.arange(len(named))
    place = rank[path]
    shown, place = shown[place >= 0], place[place >= 0]
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return {
        "dataset_suffix": np.array(visible, np.int64),
        "path_suffix": np.array(named, np.int64),
        "path": offsets_of(place, len(named)),
        "path_node": shown[stable_order(place)],
        "string": np.concatenate([[0], np.cumsum([len(text) for text in encoded])]),
        "text": np.frombuffer(b"".join(encoded), np.uint8),
    }
