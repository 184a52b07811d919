"""Parts of an index's build that look at every edge: tags, labels, and the ``read`` edges that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from govtool.graph.builder.columns import numbered_pairs
from govtool.graph.codes import KIND_MASK, MASKING_BIT, STAR_BIT
from govtool.model.kinds import EdgeKind

_COMPARED = 4
"""The ``read`` edges of a derivation that edges are compared with one by one; those of most derivations are fewer."""

_FEW_PAIRS = 1 << 20
"""Pairs of functions and reason that a table of flags has room for, whatever the number of edges."""

Pairs = tuple[Any, Any]


def edge_tags(kind: Any, star: Any, masking: Any) -> Any:
    """Kinds, and whether a star or masking is on the way, as one number an edge: uint8.

    Args:
        kind: uint8[edges].
        star: bool[edges].
        masking: bool[edges].
    """
    import numpy as np

    return kind | star * np.uint8(STAR_BIT) | masking * np.uint8(MASKING_BIT)


def labels(functions: Any, reasons: Any) -> tuple[Any, Any, Any]:
    """Number the distinct pairs of functions and reason.

    Args:
        functions: Per edge a number of a text.
        reasons: Likewise.

    Returns:
        The number of each edge's pair, in the narrowest type; per pair the functions; per pair the reason.
    """
    import numpy as np

    from govtool.arrays.layout import narrow

    used, rank = zip(*map(_ranked, (functions, reasons)), strict=True)
    width = len(used[1])
    if len(used[0]) * width > 4 * len(functions) + _FEW_PAIRS:
        number, known, reason = numbered_pairs(functions, reasons)
        return narrow(number), known, reason
    key = rank[0][functions] * width
    key += rank[1][reasons]
    present = np.zeros(len(used[0]) * width, bool)
    present[key] = True
    known = np.flatnonzero(present)
    number = narrow(np.maximum(np.cumsum(present) - 1, 0))
    return number[key], used[0][known // max(1, width)], used[1][known % max(1, width)]


def _ranked(values: Any) -> tuple[Any, Any]:
    """The distinct values, sorted; and by value its place among them."""
    import numpy as np

    present = np.zeros(int(values.max()) + 1 if len(values) else 0, bool)
    present[values] = True
    used = np.flatnonzero(present)
    rank = np.zeros(len(present), np.int64)
    rank[used] = np.arange(len(used))
    return used, rank


def missing_reads(needed: Pairs, known: Pairs) -> Pairs:
    """The distinct pairs of derivation and dataset that are not among the known ones, in order.

    Args:
        needed: Derivations, and the dataset that each reads.
        known: Likewise.
    """
    import numpy as np

    from govtool.arrays.csr import Csr
    from govtool.arrays.sets import distinct

    derivation, dataset = needed
    count = max((int(some.max()) + 1 for some in (derivation, known[0]) if len(some)), default=0)
    reads = Csr.of_pairs(*known, count)
    left = np.arange(len(derivation), dtype=np.int32)
    for number in range(_COMPARED):
        place = reads.offsets[derivation[left]] + number
        there = place < reads.offsets[derivation[left] + 1]
        there[there] = reads.items[place[there]] == dataset[left[there]]
        left = left[~there]
    width = max((int(some.max()) + 1 for some in (dataset, known[1]) if len(some)), default=1)
    wanted, others = (
        distinct(first.astype(np.int64) * width + second)
        for first, second in ((derivation[left], dataset[left]), known if len(left) else (known[0][:0], known[1][:0]))
    )
    missing = wanted[~np.isin(wanted, others)]
    return (missing // width).astype(np.int32), (missing % width).astype(np.int32)


def with_reads(edge: Mapping[str, Any], alive: Any, target: Any, rows: int) -> dict[str, Any]:
    """The edges of the derivations that count, and the ``read`` edges that are missing.

    Args:
        edge: Per edge ``derivation``, ``source`` (a dataset), ``source_path``, ``target_path``, ``tag`` and more.
        alive: bool[derivations], those that count.
        target: Per derivation the dataset that it makes.
        rows: The path of a row set.
    """
    import numpy as np

    found = dict(edge)
    stays = alive[found["derivation"]]
    if not stays.all():
        found = {name: values[stays] for name, values in found.items()}
    derivation, source = found["derivation"], found["source"]
    foreign = np.flatnonzero(source != target[derivation])
    plain = (found["target_path"] == rows) & (found["source_path"] == rows)
    reads = np.flatnonzero(plain & (found["tag"] & KIND_MASK == EdgeKind.READ))
    made, read = missing_reads((derivation[foreign], source[foreign]), (derivation[reads], source[reads]))
    if not len(made):
        return found
    more = {
        "derivation": made,
        "source": read,
        "source_path": rows,
        "target_path": rows,
        "tag": int(EdgeKind.READ),
    }
    places = behind(derivation, made)
    return {
        name: np.insert(values, places, np.broadcast_to(more.get(name, 0), len(made)).astype(values.dtype))
        for name, values in found.items()
    }


def behind(derivation: Any, more: Any) -> Any:
    """Return the places behind the edges of some derivations: edges lie in the order of derivations.

    Args:
        derivation: Per edge, ascending.
        more: Derivations of further edges, ascending.
    """
    import numpy as np

    return np.searchsorted(derivation, more.astype(derivation.dtype), "right")
