"""An index made of an earlier index and a change to it. It answers like one that is built from scratch, and has the
same numbers.

The arrays of the index before are mapped as they are; what a change removed and inserted lies in a small file of
``derive``. Only texts, labels and statements, whose order nobody asks for, have other numbers than they
would have in a new index: new ones come last, and those that nothing speaks of any more stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from govtool.arrays.splice import Axis, Joined, SplicedArray, SplicedOffsets
from govtool.graph.index import Index

OFFSETS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "dataset_base": ("dataset", "node"),
        "maker": ("dataset", "maker"),
        "forward": ("node", "edge"),
        "backward": ("node", "back"),
        "output": ("derivation", "output"),
        "diagnostic": ("derivation", "diagnostic"),
        "statement": ("statement", "stated"),
        "path": ("path", "path_node"),
    }
)
"""Arrays of offsets: the axis of the things, and that of their items."""

ITEMS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "dataset_digest": ("dataset", ""),
        "dataset_suffix": ("suffix", "dataset"),
        "node_dataset": ("node", "dataset"),
        "edge_source": ("edge", "node"),
        "edge_target": ("edge", "node"),
        "edge_derivation": ("edge", "derivation"),
        "backward_edge": ("back", "edge"),
        "maker_derivation": ("maker", "derivation"),
        "output_node": ("output", "node"),
        "diagnostic_json": ("diagnostic", ""),
        "statement_derivation": ("stated", "derivation"),
        "derivation_target": ("derivation", "dataset"),
        "nested": ("nested", "node"),
        "nested_parent": ("nested", "node"),
        "container": ("container", "node"),
        "container_child": ("container", "node"),
        "unknown": ("unknown", "node"),
        "reference": ("reference", "node"),
        "reference_rows": ("reference", "node"),
        "reference_derivation": ("reference", "derivation"),
        "path_suffix": ("path", ""),
        "path_node": ("path_node", "node"),
    }
)
"""Other arrays: the axis that they are indexed with, and the one that their items number; see ``place_of``."""

TEXTS = ("string", "text")
"""Arrays of texts; new ones come behind the others."""


def place_of(name: str) -> tuple[str, str]:
    """The axis of an array that is neither of offsets nor of texts, and the axis of its items, if any."""
    return ITEMS.get(name) or (name.partition("_")[0], "")


class SplicedIndex(Index):
    """See the module.

    Args:
        base: The index before.
        change: The arrays of ``govtool.graph.delta.derive``.
        meta: Of the new index.
        whole: Builds the new index as one file.
    """

    def __init__(
        self, base: Index, change: Mapping[str, Any], meta: Mapping[str, Any], whole: Callable[[], Index]
    ) -> None:
        self.base = base
        self.change = change
        self._whole = whole
        self.axes = {
            name: Axis(meta["counts"][name], change[f"{name}.removed"], change[f"{name}.before"])
            for name in meta["counts"]
        }
        super().__init__(base.buffer)
        self.meta = {name: value for name, value in meta.items() if name != "counts"}

    def folded(self) -> Index:
        """See ``Index``."""
        return self._whole()

    def _view(self, buffer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays: dict[str, Any] = {}
        for name, old in self.base.arrays.items():
            if name in OFFSETS:
                axis, items = (self.axes[each] for each in OFFSETS[name])
                arrays[name] = SplicedOffsets(old, axis, items, self.change[f"{name}.owners"])
            elif name not in TEXTS:
                along, numbering = place_of(name)
                width = 2 if name == "dataset_digest" else 1
                arrays[name] = SplicedArray(old, self.change[name], self.axes[along], self.axes.get(numbering), width)
        string, text = (self.base.arrays[name] for name in TEXTS)
        arrays["string"] = Joined(string, self.change["string"][1:], len(text))
        arrays["text"] = Joined(text, self.change["text"])
        return arrays, {}
