"""Cuts an index into ``pages``, in whole columns: tens of millions of edges will do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from govtool.arrays.pages import PAGE, pack, pack_texts, page_digest
from govtool.arrays.suffix import suffix_key
from govtool.graph.index import Index
from govtool.graph.paging import pages
from govtool.graph.paging.pages import AXES, BACK, DERIVATION_NUMBERS, DERIVATION_TEXTS, Root

_NODE, _EDGE, _BACK, _MAKER = 24, 18, 28, 90
"""Bytes that a node, an edge out, an edge in and a derivation take in a page, about."""

Progress = Callable[[int, int], None]


def cut(index: Index, meta: dict[str, Any], put: Callable[[bytes], None], progress: Progress | None = None) -> Root:
    """Cut an index into pages.

    Args:
        index: All of it (not itself paged).
        meta: More to keep in the root; JSON values.
        put: Takes the bytes of the pages, in order.
        progress: Called with pages done and pages in all, about.
    """
    cutter = _Cutter(index)
    offset = [0]
    digests: list[bytes] = []
    bounds = cutter.bounds()
    details = cutter.detail_bounds()
    names = {kind: list(cutter.names(kind)) for kind in ("datasets", "paths")}
    count = len(bounds["node"]) - 1 + len(details) - 1 + sum(map(len, names.values()))

    def add(data: bytes) -> None:
        put(data)
        digests.append(page_digest(data))
        offset.append(offset[-1] + len(data))
        if progress:
            progress(len(digests), count)

    for number in range(len(bounds["node"]) - 1):
        add(cutter.graph_page({axis: (int(b[number]), int(b[number + 1])) for axis, b in bounds.items()}))
    for low, high in pairwise(details):
        add(cutter.detail_page(low, high))
    for kind in ("datasets", "paths"):
        for _, data in names[kind]:
            add(data)
    starts = [min(int(d), index.dataset_count - 1) for d in bounds["dataset"][:-1]]
    return Root(
        meta={**index.meta, **meta},
        counts={axis: int(b[-1]) for axis, b in bounds.items()},
        first={**{axis: [int(i) for i in b] for axis, b in bounds.items()}, "detail": details},
        offset=offset,
        digests=b"".join(digests),
        names=[index.dataset_name(d) for d in starts] if index.dataset_count else [""] * len(starts),
        keys={kind: [key for key, _ in found] for kind, found in names.items()},
    )


class _Cutter:
    """The index as numpy arrays, and the pages made of them."""

    def __init__(self, index: Index) -> None:
        import numpy as np

        self.index = index
        self.a = {name: np.asarray(values) for name, values in index.arrays.items()}
        nodes = index.node_count
        flags = np.zeros(nodes, np.uint8)
        flags[self.a["nested"].astype(np.int64)] |= pages.NESTED
        flags[self.a["container"].astype(np.int64)] |= pages.HAS_FIELDS
        flags[self.a["dataset_base"][:-1].astype(np.int64)] |= pages.IS_ROWS
        self.flags = flags
        # Slots of derivations, to find what a statement's other derivations make.
        self.offsets = {name: self.a[name].astype(np.int64) for name in ("output", "statement", "diagnostic")}

    def bounds(self) -> dict[str, Any]:
        """Axis to the first number of each page, and the end."""
        import numpy as np

        a, n = self.a, self.index.node_count
        base, maker = a["dataset_base"].astype(np.int64), a["maker"].astype(np.int64)
        forward, backward = a["forward"].astype(np.int64), a["backward"].astype(np.int64)
        out, back = np.diff(forward) * _EDGE, np.diff(backward) * _BACK
        made = np.zeros(n, np.int64)
        outputs = np.diff(self.offsets["output"])[a["maker_derivation"].astype(np.int64)] * 3
        weight = np.concatenate([[0], np.cumsum(_MAKER + outputs)])
        made[base[:-1]] = weight[maker[1:]] - weight[maker[:-1]]
        start = np.concatenate([[0], np.cumsum(_NODE + made + out + back)])
        cuts = np.arange(0, start[-1], PAGE)
        node = np.clip(np.searchsorted(start, cuts, "right") - 1, 0, max(0, n - 1))
        inside = cuts - start[node]
        whole = (start[node + 1] - start[node] if n else inside) <= PAGE
        # A page begins with a node, unless that node alone fills more than a page: then within its derivations, its
        # edges out, or its edges in.
        inside = np.where(whole, 0, inside)
        begun = inside > 0
        left = np.maximum(0, inside - _NODE)
        first_dataset = np.searchsorted(base[:-1], node, "left")
        own = np.searchsorted(base[:-1], node, "right") - 1
        dataset = np.where(begun, np.searchsorted(base[:-1], node, "right"), first_dataset)
        within = np.searchsorted(weight, weight[maker[own]] + np.minimum(left, made[node]))
        slot = np.where(begun & (made[node] > 0), within, maker[dataset])
        left = np.maximum(0, left - made[node])
        edge = forward[node] + np.minimum(left, out[node]) // _EDGE
        left = np.maximum(0, left - out[node])
        into = backward[node] + np.minimum(left, back[node]) // _BACK
        after = node + begun
        table = np.unique(np.stack([dataset, after, edge, into, slot], axis=1), axis=0) if n else np.zeros((1, 5), int)
        ends = [self.index.dataset_count, n, self.index.edge_count, self.index.edge_count, len(a["maker_derivation"])]
        table = np.concatenate([table, [ends]])
        found = dict(zip(("dataset", "node", "edge", "back", "maker"), table.T, strict=True))
        for axis, name in (
            ("nested", "nested"),
            ("container", "container"),
            ("unknown", "unknown"),
            ("reference", "reference"),
        ):
            found[axis] = np.searchsorted(a[name], found["node"])
        return {axis: found[axis] for axis in AXES}

    def graph_page(self, at: dict[str, tuple[int, int]]) -> bytes:
        """One graph page. ``at``: axis to first and one past the last."""
        import numpy as np

        a = self.a
        part: dict[str, Any] = {}
        for axis, names in pages.ARRAYS.items():
            low, high = at[axis]
            part |= {name: a[name][low:high] for name in names}
        for axis, names in pages.OFFSETS.items():
            low, high = at[axis]
            part |= {name: a[name][low : high + 1] for name in names}
        edges = part["backward_edge"].astype(np.int64)
        part |= {f"back_{name}": a[name][edges] for name in BACK}
        part["back_end"] = self.flags[part["back_edge_source"].astype(np.int64)]
        texts = [part["dataset_name"], part["dataset_kind"], part["node_path"], part["node_type"]]
        texts += self._derivations(part)
        labels = np.unique(np.concatenate([part["edge_label"], part["back_edge_label"]])).astype(np.int64)
        part["label"] = labels
        for name in ("label_functions", "label_reason"):
            part[name] = a[name][labels]
            texts.append(part[name])
        strings = np.unique(np.concatenate([np.asarray(t, np.int64) for t in texts]))
        part["string"] = strings
        offsets, text = pack_texts([self.index.text(i) for i in strings.tolist()])
        part["text"] = np.array(offsets, np.int64)
        return pack({name: _lowered(values) for name, values in part.items()}, text)

    def _derivations(self, part: dict[str, Any]) -> list[Any]:
        """Adds what a page says of its derivations; returns the arrays of string ids among it."""
        import numpy as np

        a = self.a
        made = part["maker_derivation"].astype(np.int64)
        for name in DERIVATION_NUMBERS:
            part[f"derivation_{name}"] = a[f"derivation_{name}"][made].astype(np.int64)
        texts = []
        for name in DERIVATION_TEXTS:
            part[f"derivation_{name}"] = a[f"derivation_{name}"][made]
            texts.append(part[f"derivation_{name}"])
        part["output"], part["output_node"] = _gather(self.offsets["output"], a["output_node"], made)
        statements = a["derivation_statement"][made].astype(np.int64)
        part["same"], part["same_derivation"] = _gather(
            self.offsets["statement"], a["statement_derivation"], statements
        )
        part["same_target"] = a["derivation_target"][part["same_derivation"].astype(np.int64)]
        return texts

    def detail_bounds(self) -> list[int]:
        """Places in ``maker_derivation`` where detail pages begin, and the end."""
        import numpy as np

        a = self.a
        made = a["maker_derivation"].astype(np.int64)
        string = a["string"].astype(np.int64)
        size = np.diff(string)
        notes = np.concatenate([[0], np.cumsum(size[a["diagnostic_json"].astype(np.int64)])])
        diagnostic = self.offsets["diagnostic"]
        weight = size[a["derivation_text"][made].astype(np.int64)]
        weight = weight + notes[diagnostic[made + 1]] - notes[diagnostic[made]] + 8
        start = np.concatenate([[0], np.cumsum(weight)])
        cuts = np.unique(np.searchsorted(start, np.arange(0, start[-1], PAGE), "right") - 1)
        return [*(int(i) for i in cuts), len(made)]

    def detail_page(self, low: int, high: int) -> bytes:
        """The text and the diagnostics of derivations."""
        import numpy as np

        index, counts, texts = self.index, [0], []
        for derivation in self.a["maker_derivation"][low:high].tolist():
            texts.append(index.text(self.a["derivation_text"][derivation]))
            notes = self.a["diagnostic_json"][
                self.offsets["diagnostic"][derivation] : self.offsets["diagnostic"][derivation + 1]
            ]
            texts += [index.text(int(i)) for i in notes]
            counts.append(len(texts))
        offsets, text = pack_texts(texts)
        arrays = {"part": np.array(counts, np.int64), "text": np.array(offsets, np.int64)}
        return pack({name: _lowered(values) for name, values in arrays.items()}, text)

    def names(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Name pages with their first keys: the datasets by name, or the paths with the first of their nodes."""
        index, a = self.index, self.a
        if kind == "datasets":
            entries: Iterator[tuple[str, list[int], int]] = (
                (index.dataset_name(d), [d], 1) for d in a["dataset_suffix"].tolist()
            )
        else:
            offsets = a["path"].tolist()
            entries = (
                (index.text(i), a["path_node"][low : min(high, low + pages.NODES_OF_PATH)].tolist(), high - low)
                for i, low, high in zip(a["path_suffix"].tolist(), offsets, offsets[1:], strict=False)
            )
        held: list[tuple[str, list[int], int]] = []
        size = 0
        for entry in entries:
            held.append(entry)
            size += len(entry[0]) + 4 * len(entry[1]) + 4
            if size >= PAGE:
                yield _name_page(held)
                held, size = [], 0
        if held:
            yield _name_page(held)


def _name_page(entries: list[tuple[str, list[int], int]]) -> tuple[str, bytes]:
    import numpy as np

    counts = [0]
    for _, numbers, _ in entries:
        counts.append(counts[-1] + len(numbers))
    offsets, text = pack_texts([name for name, _, _ in entries])
    arrays = {
        "text": np.array(offsets, np.int64),
        "part": np.array(counts, np.int64),
        "number": np.array([n for _, numbers, _ in entries for n in numbers], np.int64),
        "total": np.array([total for _, _, total in entries], np.int64),
    }
    return suffix_key(entries[0][0]), pack({name: _lowered(values) for name, values in arrays.items()}, text)


def _gather(offsets: Any, values: Any, wanted: Any) -> tuple[Any, Any]:
    """The lists of some numbers, one after the other, and where each begins."""
    import numpy as np

    low, high = offsets[wanted], offsets[wanted + 1]
    counts = high - low
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.repeat(low - starts[:-1], counts) + np.arange(starts[-1])
    return starts, values[places.astype(np.int64)]


def _lowered(values: Any) -> tuple[int, Any]:
    import numpy as np

    whole = np.asarray(values).astype(np.int64)
    low = int(whole.min()) if len(whole) else 0
    return low, whole - low
