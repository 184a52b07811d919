"""Names of datasets that temporary tables share, and arrays by which names are found by their end."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any

from govtool.arrays.suffix import suffix_key
from govtool.graph.builder.columns import Strings
from govtool.graph.codes import HIDDEN
from govtool.names import join_name, quote, split_name, unquote


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


def temporary_names(strings: Strings, names: Sequence[int], made: Collection[tuple[int, int]]) -> list[int]:
    """Names of datasets, with the source in those of temporary tables that scripts of several sources have in common.

    A file is named from the folder of its source, so that ``temp."load.sql".t`` may be of several sources.

    Args:
        strings: The texts of names.
        names: By dataset.
        made: Temporary tables and the sources that make them.
    """
    named = list(names)
    owners: dict[int, set[int]] = {}
    for dataset, source in made:
        owners.setdefault(names[dataset], set()).add(source)
    shared = [(dataset, source) for dataset, source in made if len(owners[names[dataset]]) > 1]
    for dataset, source in sorted(shared):
        parts = split_name(strings.texts[named[dataset]])
        at = min(1, len(parts) - 1)  # the session; of a name without one, the name
        parts[at] = quote(f"{strings.texts[source]}/{unquote(parts[at])}")
        named[dataset] = strings.add(join_name(parts))
    return named
