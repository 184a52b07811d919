"""Names of the inputs of a plan."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from govtool.errors import UnknownNameError
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


def is_near(text: str, dataset: str) -> bool:
    """Return whether a text may have been meant for a dataset: it is like the end of its name."""
    return bool(difflib.get_close_matches(text, [_end(dataset, text)]))


def unknown_input(dataset: str, names: Iterable[str]) -> UnknownNameError:
    """The error of a name that no input has, with the names that are like it, or all."""
    ends: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        ends.setdefault(_end(name, dataset), []).append(name)
    near = difflib.get_close_matches(dataset, list(ends)) or sorted(ends)
    return UnknownNameError(
        f"the run read nothing that is called {dataset!r}",
        code="usage.unknown-dataset",
        nearest=tuple(name for end in near for name in ends[end])[:3],
    )


def _end(name: str, text: str) -> str:
    """The end of a name, of as many parts as a text."""
    return "/".join(name.split("/")[-text.count("/") - 1 :])
