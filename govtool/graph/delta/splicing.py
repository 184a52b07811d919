"""What the steps of ``derive`` share: both builds, the axes so far, and how things are put in place."""

from __future__ import annotations

from typing import Any

from govtool.arrays.splice import Axis
from govtool.graph.builder.build import IndexBuilder
from govtool.graph.builder.gathered import Gathered
from govtool.graph.delta.changed import ChangedDerivations
from govtool.graph.delta.spliced import OFFSETS
from govtool.graph.index import Index


class Splicing:
    """The state of putting a small build into an index.

    Args:
        index: The index before.
        kept: The columns that it was built from.
        change: What is looked at.
        builder: The small build.
    """

    def __init__(self, index: Index, kept: Gathered, change: ChangedDerivations, builder: IndexBuilder) -> None:
        import numpy as np

        self.index, self.kept, self.change, self.builder = index, kept, change, builder
        self.old = {name: np.asarray(values) for name, values in index.arrays.items()}
        self.new = {name: np.asarray(values) for name, values in builder.out.items()}
        self.text = change.texts.numbers(builder.strings.texts)
        """Per text of the small build its number."""
        self.axes: dict[str, Axis] = {}
        self.out: dict[str, Any] = {}
        self.chosen: dict[str, Any] = {}
        """Things of the small build that are inserted, along an axis."""
        self.gone: Any = None
        """The datasets that are removed."""
        self.ahead: dict[int, int] = {}
        """Per dataset of the small build that is inserted the old one that it comes before."""
        self.dataset: Any = None
        """Per dataset of the small build its number in the new index; likewise ``node``, ``derivation``, ``edge``."""
        self.dataset_old: Any = None
        """Its old number where only a part of it is looked at and it stays as it is, else -1; likewise ``node_old``."""
        self.node: Any = None
        self.node_old: Any = None
        self.derivation: Any = None
        self.label: Any = None
        self.edge: Any = None
        self.removed_edges: Any = None
        self.any_opaque = False

    def axis(self, name: str, removed: Any, before: Any) -> Axis:
        """Note what changes along an axis."""
        import numpy as np

        items = {"suffix": "dataset_suffix", "back": "backward_edge", "stated": "statement_derivation"}
        counted = {
            "dataset": "dataset_name", "node": "node_path", "edge": "edge_tag", "derivation": "derivation_mode",
            "maker": "maker_derivation", "output": "output_node", "diagnostic": "diagnostic_json",
            "label": "label_reason", "path": "path_suffix", **items,
        }  # fmt: skip
        count = len(self.old["statement"]) - 1 if name == "statement" else len(self.old[counted.get(name, name)])
        axis = Axis(count, np.asarray(removed).astype(np.int64), np.asarray(before).astype(np.int64))
        assert (np.diff(axis.removed) > 0).all()
        assert (np.diff(axis.before) >= 0).all()
        self.axes[name] = axis
        return axis

    def ranges(self, name: str, places: Any, arrays: dict[str, Any]) -> tuple[Any, Any]:
        """All items of some things, and for each the place of its thing among these."""
        import numpy as np

        from govtool.arrays.csr import spread

        offsets = arrays[name].astype(np.int64)
        return spread(offsets[places], offsets[np.asarray(places) + 1])

    def whole_items(self, axis: str, offsets: str, owner: str, values: dict[str, Any]) -> None:
        """Items of things all of whose items are new: those of the things that were inserted, and none of the old."""
        owners = self.axes[owner]
        removed, _ = self.ranges(offsets, owners.removed, self.old)
        chosen = self.chosen[owner]
        items, whose = self.ranges(offsets, chosen, self.new)
        self.axis(axis, removed, self.old[offsets][owners.before][whose])
        if offsets in OFFSETS:
            self.out[f"{offsets}.owners"] = owners.inserted_array[whose]
        self.out |= {name: array[items] for name, array in values.items()}

    def around(self, offsets: str, ends: Any) -> tuple[Any, Any, Any]:
        """The old items of the old nodes among some of the small build; for each of these where the items of its node
        end, or of what comes before it.
        """
        import numpy as np

        from govtool.arrays.sets import distinct

        nodes, mine = self.axes["node"], self.chosen["node"]
        old_node = self.node_old[ends]
        touched = distinct(old_node[old_node >= 0])
        places, _ = self.ranges(offsets, touched, self.old)
        starts = self.old[offsets].astype(np.int64)
        ahead = np.zeros(len(self.node), np.int64)
        ahead[mine] = nodes.before
        stop = np.where(old_node >= 0, starts[np.maximum(old_node, 0) + 1], starts[ahead[ends]])
        return places, stop, touched


def placed(new: tuple[Any, ...], kept: tuple[Any, ...], places: Any, ends: Any) -> tuple[Any, Any]:
    """Put new things among some that stay.

    Args:
        new: Keys of the new ones, the most significant first; equal ones keep their order.
        kept: The same keys of those that stay.
        places: The old places of these, ascending in the order of their keys.
        ends: Per new one the old place that it comes before if none of those that stay does.

    Returns:
        The order of the new ones, and per new one, in that order, the old place that it comes before.
    """
    import numpy as np

    count = len(new[0])
    keys = [np.concatenate([one, two]) for one, two in zip(new, kept, strict=True)]
    order = np.lexsort(keys[::-1])
    bound = np.concatenate([ends, places]).astype(np.int64)[order]
    before = np.minimum.accumulate(bound[::-1])[::-1]
    fresh = order < count
    return order[fresh], before[fresh]
