"""Names of the inputs of a plan."""

from __future__ import annotations

from govtool.names import written_id
from govtool.records.plan.nodes import Range, Relation
from govtool.records.trace.segment import Leaf


def leaf_name(leaf: Leaf) -> str:
    """The dataset of a leaf; rows of the driver's and ranges are named by their kind and number."""
    if isinstance(leaf, Relation):
        return leaf.dataset
    return f"{'range' if isinstance(leaf, Range) else 'rows'}-{leaf.leaf}"


def is_called(leaf: Leaf, dataset: str) -> bool:
    """Return whether a leaf is meant by its dataset's name or the end of it."""
    name, dataset = leaf_name(leaf), written_id(dataset)
    return name == dataset or name.endswith((f"/{dataset}", f".{dataset}"))
