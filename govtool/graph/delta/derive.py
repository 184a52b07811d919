"""The file of a ``spliced`` index: what a change removes from the arrays of another index, and inserts.

The derivations of a change (``changed``) are built as any others are. What that small build says of them,
and of the datasets that it looks at as a whole, takes the place of what the index before said. Everything is put where
a build over all derivations would put it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from govtool.graph.builder.build import IndexBuilder
from govtool.graph.builder.columns import TEXTS
from govtool.graph.builder.gathered import Gathered
from govtool.graph.builder.meter import BuildMeter
from govtool.graph.codes import DROP, ELIDED, KIND_MASK
from govtool.graph.delta.changed import ChangedDerivations, change_of
from govtool.graph.delta.derive_edges import splice_edges, splice_references, splice_statements
from govtool.graph.delta.derive_names import splice_paths, splice_suffixes
from govtool.graph.delta.splicing import Splicing
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind


@dataclass(frozen=True, slots=True)
class Derived:
    """What ``SplicedIndex`` is made of besides the index before."""

    arrays: dict[str, Any]
    meta: dict[str, Any]


def derive(index: Index, kept: Gathered, fresh: Gathered, fragments: Sequence[str], most: int) -> Derived | None:
    """Derive an index from another one; None if too much changed, or names changed that several scripts share.

    Args:
        index: The index before, a whole one.
        kept: The columns that it was built from.
        fresh: The columns of the fragments that came.
        fragments: The names of all fragments, in the order of the new index.
        most: How many edges may be built anew.
    """
    change = change_of(index, kept, fresh, fragments, most)
    if change is None:
        return None
    builder = IndexBuilder(_gathered(change))
    builder.run(BuildMeter(None, ()))
    splicing = Splicing(index, kept, change, builder)
    if not _datasets(splicing):
        return None
    for step in (
        _nodes, _derivations, _labels, splice_edges, _stated, splice_references, splice_statements, splice_suffixes,
        splice_paths,
    ):  # fmt: skip
        step(splicing)
    return Derived(_changed_arrays(splicing), _meta(splicing))


def _gathered(change: ChangedDerivations) -> Gathered:
    """The derivations that are looked at, with texts of their own."""
    import numpy as np

    columns = dict(change.looked_at.columns)
    used = np.zeros(len(change.texts), bool)
    for name in TEXTS:
        used[columns[name]] = True
    numbers = [number for number in np.flatnonzero(used).tolist() if number]
    numbers.sort(key=change.texts.__getitem__)
    rank = np.zeros(len(change.texts), np.int32)
    rank[numbers] = np.arange(1, len(numbers) + 1)
    for name in TEXTS:
        columns[name] = rank[columns[name]]
    return Gathered(["", *map(change.texts.__getitem__, numbers)], columns, ("",), (0, change.looked_at.count))


def _datasets(s: Splicing) -> bool:
    """Datasets that are looked at as a whole. False if their names are not those that derivations have."""
    import numpy as np

    change, old, new = s.change, s.old, s.new
    texts, names = change.texts, s.text[new["dataset_name"]]
    before_change = np.concatenate([change.removed, change.context])
    targets = s.kept.columns["d.target"][before_change]
    if (old["dataset_name"][old["derivation_target"][before_change]] != targets).any():
        return False
    if (names[new["derivation_target"]] != change.looked_at.columns["d.target"]).any():
        return False
    looked_at = np.zeros(len(texts), bool)
    looked_at[: len(change.datasets)] = change.datasets
    mine = np.flatnonzero(looked_at[names])
    gone = np.flatnonzero(looked_at[old["dataset_name"]])
    first = {int(old["dataset_name"][place]): place for place in gone[::-1].tolist()}
    before = [first.get(name, -1) for name in names[mine].tolist()]
    places = range(s.index.dataset_count)
    before = [
        bisect_left(places, texts[name], key=s.index.dataset_name) if at < 0 else at
        for at, name in zip(before, names[mine].tolist(), strict=True)
    ]
    axis = s.axis("dataset", gone, before)
    s.chosen = {"dataset": mine}
    s.gone, s.ahead = gone, dict(zip(mine.tolist(), before, strict=True))
    # Datasets that are only seen in part are the old ones.
    place = np.full(len(texts), -1, np.int64)
    place[old["dataset_name"]] = np.arange(len(old["dataset_name"]))
    s.dataset_old = np.where(looked_at[names], -1, place[names])
    if (s.dataset_old[~looked_at[names]] < 0).any():
        return False
    s.dataset = axis.numbers(np.maximum(s.dataset_old, 0))
    s.dataset[mine] = axis.inserted_array
    return True


def _nodes(s: Splicing) -> None:
    """Nodes of these datasets; and what all nodes of the small build are in the new index."""
    import numpy as np

    old, new, width = s.old, s.new, len(s.change.texts) + len(s.text)
    mine = s.chosen["dataset"]
    s.whole_items("node", "dataset_base", "dataset", {})
    nodes, _ = s.ranges("dataset_base", mine, new)
    s.chosen["node"] = nodes
    axis = s.axes["node"]
    s.node = np.full(len(new["node_path"]), -1, np.int64)
    s.node[nodes] = axis.inserted_array
    others = np.flatnonzero(s.node < 0)
    partly = np.flatnonzero(s.dataset_old >= 0)
    places, whose = s.ranges("dataset_base", s.dataset_old[partly], old)
    keys = partly[whose] * width + old["node_path"][places]
    order = np.argsort(keys)
    wanted = new["node_dataset"][others].astype(np.int64) * width + s.text[new["node_path"][others]]
    at = np.minimum(np.searchsorted(keys[order], wanted), max(0, len(keys) - 1))
    if len(others):
        assert (keys[order][at] == wanted).all()
    s.node_old = np.full(len(s.node), -1, np.int64)
    s.node_old[others] = places[order[at]] if len(others) else others
    s.node[others] = axis.numbers(s.node_old[others])
    s.out |= {
        "node_path": s.text[new["node_path"][nodes]],
        "node_dataset": s.dataset[new["node_dataset"][nodes]],
        "node_type": s.text[new["node_type"][nodes]],
        "node_declared": new["node_declared"][nodes],
    }
    for name, values in (
        ("nested", ("nested", "nested_parent")), ("container", ("container", "container_child")),
        ("unknown", ("unknown",)),
    ):  # fmt: skip
        gone = np.flatnonzero(~axis.kept[old[name]]) if len(old[name]) else old[name]
        chosen = np.flatnonzero(s.node_old[new[name]] < 0)
        ahead = axis.before[np.searchsorted(nodes, new[name][chosen])] if len(chosen) else chosen
        s.axis(name, gone, np.searchsorted(old[name], ahead))
        s.out |= {one: s.node[new[one][chosen]] for one in values}


def _derivations(s: Splicing) -> None:
    """Derivations that are looked at, with their outputs and diagnostics; those that make these datasets."""
    import numpy as np

    change, old, new = s.change, s.old, s.new
    axis = s.axis("derivation", np.union1d(change.removed, change.context), change.before)
    s.derivation = axis.inserted_array
    s.chosen["derivation"] = np.arange(len(s.derivation))
    s.whole_items("output", "output", "derivation", {"output_node": s.node[new["output_node"]]})
    s.whole_items("diagnostic", "diagnostic", "derivation", {"diagnostic_json": s.text[new["diagnostic_json"]]})
    made = s.derivation[new["maker_derivation"]]
    s.whole_items("maker", "maker", "dataset", {"maker_derivation": made})
    numbers = ("target", "mode", "whole", "complete", "line", "count", "min_group", "statement")
    for name, values in new.items():
        what = name.removeprefix("derivation_")
        if name.startswith("derivation_") and what not in ("target", "statement"):
            s.out[name] = values if what in numbers else s.text[values]
    s.out["derivation_target"] = s.dataset[new["derivation_target"]]
    # What it makes is only seen in part: as much of it is made as before.
    partly = np.flatnonzero((s.dataset_old[new["derivation_target"]] >= 0) & ~change.is_new)
    s.out["derivation_whole"] = new["derivation_whole"].copy()
    s.out["derivation_whole"][partly] = old["derivation_whole"][change.before[partly]]


def _labels(s: Splicing) -> None:
    import numpy as np

    old, new = s.old, s.new
    known = {
        pair: number
        for number, pair in enumerate(zip(old["label_functions"].tolist(), old["label_reason"].tolist(), strict=True))
    }
    pairs = list(zip(s.text[new["label_functions"]].tolist(), s.text[new["label_reason"]].tolist(), strict=True))
    numbers = [known.setdefault(pair, len(known)) for pair in pairs]
    count = len(old["label_reason"])
    fresh = [pair for pair, number in zip(pairs, numbers, strict=True) if number >= count]
    s.axis("label", [], [count] * len(fresh))
    s.label = np.array(numbers, np.int64)
    s.out["label_functions"] = np.array([one for one, _ in fresh], np.int64)
    s.out["label_reason"] = np.array([two for _, two in fresh], np.int64)


def _stated(s: Splicing) -> None:
    """What is said of the datasets, and how many edges leave a row set that are not ``read``."""
    import numpy as np

    old, new = s.old, s.new
    mine, axis = s.chosen["dataset"], s.axes["dataset"]
    counts = old["dataset_opaque"].astype(np.int64)
    for source, tag, sign in (
        (old["edge_source"][s.removed_edges], old["edge_tag"][s.removed_edges], -1),
        (s.node_old[new["edge_source"]], new["edge_tag"], 1),
    ):
        some = np.flatnonzero((source >= 0) & ((tag & KIND_MASK) != EdgeKind.READ))
        dataset = old["node_dataset"][source[some]].astype(np.int64)
        np.add.at(counts, dataset[old["dataset_base"][dataset] == source[some]], sign)
    differ = np.flatnonzero((counts != old["dataset_opaque"]) & axis.kept)
    removed, before = np.union1d(axis.removed, differ), np.concatenate([axis.before, differ])
    # One that is put back in its place comes after all that is inserted there.
    order = np.lexsort((np.arange(len(before)) >= len(axis.before), before))
    digests = (each["dataset_digest"].reshape(-1, 2) for each in (new, old))
    values = {
        "dataset_name": (s.text[new["dataset_name"]], old["dataset_name"]),
        "dataset_kind": (s.text[new["dataset_kind"]], old["dataset_kind"]),
        "dataset_flags": (new["dataset_flags"], old["dataset_flags"]),
        "dataset_columns": (new["dataset_columns"], old["dataset_columns"]),
        "dataset_opaque": (new["dataset_opaque"], counts),
        "dataset_digest": tuple(digests),
    }
    for name, (here, there) in values.items():
        s.out[name] = np.concatenate([here[mine], there[differ]])[order].ravel()
    s.any_opaque = bool(counts[axis.kept].any() or new["dataset_opaque"][mine].any())
    s.axis("dataset", removed, before[order])


def _changed_arrays(s: Splicing) -> dict[str, Any]:
    import numpy as np

    encoded = [text.encode("utf-8", "replace") for text in s.change.texts.new]
    found: dict[str, Any] = {}
    for name, axis in s.axes.items():
        found |= {f"{name}.removed": axis.removed, f"{name}.before": axis.before}
    return {
        **s.out,
        **found,
        "string": np.concatenate([[0], np.cumsum([len(text) for text in encoded])]),
        "text": np.frombuffer(b"".join(encoded), np.uint8),
    }


def _meta(s: Splicing) -> dict[str, Any]:
    old, new, meta = s.old, s.new, s.index.meta
    figures = {}
    for sign, arrays, some in ((-1, old, s.gone), (1, new, s.chosen["dataset"])):
        shown = some[(arrays["dataset_flags"][some] & ELIDED) == 0]
        figures[sign] = len(shown), int(arrays["dataset_columns"][shown].sum())
    drops = (old["derivation_mode"][s.axes["derivation"].removed] != DROP, new["derivation_mode"] != DROP)
    return {
        "datasets": meta["datasets"] + figures[1][0] - figures[-1][0],
        "columns": meta["columns"] + figures[1][1] - figures[-1][1],
        "nodes": len(s.axes["node"]),
        "edges": len(s.axes["edge"]),
        "derivations": meta["derivations"] + int(drops[1].sum()) - int(drops[0].sum()),
        "opaque_rows": s.any_opaque,
        "counts": {name: axis.old_count for name, axis in s.axes.items()},
    }
