"""Many references at once: what ``Index`` says of one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np  # noqa: TID253 - as in walk_large

from govtool.arrays.sets import Array


def own_references(arrays: Mapping[str, Array], dataset: Array, reference: Array) -> Array:
    """By reference, ``Index.names_own``."""
    own: Array = dataset[arrays["reference"][reference]] == dataset[arrays["reference_rows"][reference]]
    return own


def by_position(arrays: Mapping[str, Array], dataset: Array, base: Array, reference: Array) -> Array:
    """By reference, ``Index.takes_position`` of columns of other datasets.

    Args:
        arrays: Those of the index.
        dataset: By node, its dataset.
        base: By dataset, the node of its rows.
        reference: The references.
    """
    every = np.arange(len(arrays["reference"]))
    rows = base[dataset[arrays["reference"]]] == arrays["reference"]
    listed = every[rows & ~own_references(arrays, dataset, every)]
    taken, wanted = (
        dataset[arrays["reference"][one]].astype(np.int64) << 32 | arrays["reference_derivation"][one]
        for one in (listed, reference)
    )
    found: Array = np.isin(wanted, taken)
    return found
