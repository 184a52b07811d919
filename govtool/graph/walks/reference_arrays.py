"""Many references at once: what ``Index`` says of one."""

from __future__ import annotations

import numpy as np  # noqa: TID253 - as in walk_large

from govtool.arrays.sets import Array
from govtool.arrays.splice import Numpy


def own_references(arrays: Numpy, dataset: Array, reference: Array) -> Array:
    """By reference, ``Index.names_own``; ``dataset`` is that of each node."""
    own: Array = dataset[arrays["reference"][reference]] == dataset[arrays["reference_rows"][reference]]
    return own


def dataset_and_derivation(arrays: Numpy, dataset: Array, reference: Array) -> Array:
    """By reference, the dataset referred to and the derivation that refers to it, as one number."""
    of_dataset = dataset[arrays["reference"][reference]].astype(np.int64) << 32
    key: Array = of_dataset | arrays["reference_derivation"][reference]
    return key


def taken_by_position(arrays: Numpy, dataset: Array, base: Array) -> Array:
    """The ``dataset_and_derivation`` of statements that take a dataset's columns by position: ``Index.takes_position``.

    Args:
        arrays: Those of the index.
        dataset: By node, its dataset.
        base: By dataset, the node of its rows.
    """
    every = np.arange(len(arrays["reference"]))
    rows = base[dataset[arrays["reference"]]] == arrays["reference"]
    return dataset_and_derivation(arrays, dataset, every[rows & ~own_references(arrays, dataset, every)])
