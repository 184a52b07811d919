"""Digests of what an index says of each dataset, by which two versions are compared without reading either.

A digest covers a dataset's name and kind, whether answers pass through it, its columns with their types, the edges
into it: from where, of what kind, by which functions, masked or not, and why not understood; and of the statements of
scripts that make it their fingerprints and literals. It covers neither where statements stand nor how anything is
numbered. So equal digests, in whatever versions, mean that all this is equal; different ones mean that it may differ
(generations of a script's table that share a name may come in another order).

Numbers that stand for texts are replaced by BLAKE2b of the texts, mixed within a node or an edge by arithmetic, and a
dataset's digest is BLAKE2b over its nodes and edges, which lie in the order of their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from govtool.graph.codes import DECLARE

WORDS = 2
"""Integers of 64 bits in a digest."""

SCRIPT = "sql"
"""``Statement.how`` of scripts, and of query logs, whose statements have times."""
_SIZE = 8 * WORDS
_FACTOR = 0xFF51AFD7ED558CCD
_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_SHIFT = 32
_PART = 1 << 16
"""Edges that are worked on at a time: what they take fits into a processor's cache."""


def dataset_digests(a: dict[str, Any], texts: list[str], star_bit: int) -> Any:
    """Digests of all datasets, ``WORDS`` integers each.

    Args:
        a: The arrays of the index that ``govtool.graph.index`` describes.
        texts: The strings.
        star_bit: The bit of ``edge_tag`` that says how an edge was named, not what.
    """
    import numpy as np

    used = ("dataset_name", "dataset_kind", "node_path", "node_type", "label_functions", "label_reason")
    makers, made_from = _script_makers(a, texts)
    named = [a[name][makers] for name in ("derivation_fingerprint", "derivation_literals")]
    codes = _text_codes(texts, [*(a[name] for name in used), *named])
    statements = mixed([codes[part] for part in named])
    count = len(a["dataset_name"])
    base = a["dataset_base"].astype(np.int64)
    numbers = np.stack([a["dataset_flags"], np.diff(base)], axis=1).astype(np.uint64)
    heads = np.concatenate([codes[a["dataset_name"]], codes[a["dataset_kind"]], numbers], axis=1).tobytes()
    nodes = mixed([codes[a["node_path"]], codes[a["node_type"]]])
    labels = mixed([codes[a["label_functions"]], codes[a["label_reason"]]])
    backward = a["backward"].astype(np.int64)
    bounds = backward[base]  # Where each dataset's edges begin, in the order of their targets.
    head = len(heads) // count if count else 0
    found = bytearray()
    for low, high in _parts(bounds, count):
        edge = a["backward_edge"][bounds[low] : bounds[high]].astype(np.int64)
        edges, starts = _edges(a, edge, bounds[low : high + 1] - bounds[low], labels, codes, star_bit)
        whole, item = memoryview(edges.tobytes()), memoryview(nodes[base[low] : base[high]].tobytes())
        first, cut = (base[low : high + 1] - base[low]).tolist(), starts.tolist()
        made = made_from[low : high + 1].tolist()
        for i in range(high - low):
            digest = hashlib.blake2b(heads[(low + i) * head : (low + i + 1) * head], digest_size=_SIZE)
            digest.update(item[first[i] * _SIZE : first[i + 1] * _SIZE])
            digest.update(whole[cut[i] * _SIZE : cut[i + 1] * _SIZE])
            if made[i] < made[i + 1]:
                digest.update(b"".join(sorted({row.tobytes() for row in statements[made[i] : made[i + 1]]})))
            found += digest.digest()
    return np.frombuffer(bytes(found), "<u8")


def _script_makers(a: dict[str, Any], texts: list[str]) -> tuple[Any, Any]:
    """Return the derivations from scripts, by what they make, and the start of each dataset's.

    These are the ones that versions are compared by; see ``govtool.query.versions.statements``.
    """
    import numpy as np

    makers = a["maker_derivation"].astype(np.int64)
    sql = texts.index(SCRIPT) if SCRIPT in texts else -1
    scripts = (a["derivation_how"][makers] == sql) & (a["derivation_first_seen"][makers] == 0)
    scripts &= a["derivation_mode"][makers] != DECLARE
    before = np.concatenate([[0], np.cumsum(scripts)])
    return makers[scripts], before[a["maker"].astype(np.int64)]


def unequal(left: Any, right: Any) -> tuple[Any, Any]:
    """The places in two arrays of digests of what the other one does not have.

    Args:
        left: Digests, ``WORDS`` integers each; datasets in the order of their names.
        right: Likewise.
    """
    import numpy as np

    one, two = (np.asarray(side, np.uint64).reshape(-1, WORDS) for side in (left, right))
    shorter = min(len(one), len(two))
    differ = np.flatnonzero((one[:shorter] != two[:shorter]).any(axis=1))
    start = int(differ[0]) if len(differ) else shorter
    differ = np.flatnonzero((one[start:][::-1][: shorter - start] != two[start:][::-1][: shorter - start]).any(axis=1))
    end = int(differ[0]) if len(differ) else shorter - start
    # What both begin and end with is the same; what lies between may have moved.
    middle = one[start : len(one) - end], two[start : len(two) - end]
    return tuple(start + np.flatnonzero(~_among(*pair)) for pair in (middle, middle[::-1]))  # type: ignore[return-value]


def _among(some: Any, others: Any) -> Any:
    """The digests that are among others. Should two of these have the same first half, the second may go unnoticed."""
    import numpy as np

    if not len(others):
        return np.zeros(len(some), bool)
    ordered = others[np.argsort(others[:, 0], kind="stable")]
    at = np.minimum(np.searchsorted(ordered[:, 0], some[:, 0]), len(ordered) - 1)
    return (ordered[at] == some).all(axis=1)


def _parts(bounds: Any, count: int) -> Iterable[tuple[int, int]]:
    """Ranges of datasets with about ``_PART`` edges each."""
    import numpy as np

    low = 0
    while low < count:
        high = max(low + 1, int(np.searchsorted(bounds, bounds[low] + _PART, "right")) - 1)
        yield low, min(high, count)
        low = min(high, count)


def _edges(a: dict[str, Any], edge: Any, bounds: Any, labels: Any, codes: Any, star_bit: int) -> tuple[Any, Any]:
    """Return the edges into some datasets, each once, and the start of each dataset's."""
    import numpy as np

    source, target = a["edge_source"][edge].astype(np.int64), a["edge_target"][edge].astype(np.int64)
    tag = (a["edge_tag"][edge].astype(np.int64) & ~star_bit).astype(np.uint64)[:, None]
    path = a["node_path"]
    ends = [codes[path[target]], codes[a["dataset_name"][a["node_dataset"][source]]], codes[path[source]]]
    digests = mixed([tag, labels[a["edge_label"][edge]], *ends])
    # Edges between the same nodes lie together, in the order of the statements; here in an order of their own.
    same = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
    if same.any():
        run = np.concatenate([[0], np.cumsum(~same)])
        several = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
        digests[several] = digests[several][np.lexsort((digests[several, 1], digests[several, 0], run[several]))]
        again = same & (digests[1:] == digests[:-1]).all(axis=1)
        keep = np.concatenate([[True], ~again])
        bounds = np.concatenate([[0], np.cumsum(keep)])[bounds]
        digests = digests[keep]
    return digests, bounds


def _text_codes(texts: list[str], used: Iterable[Any]) -> Any:
    """Digests of the texts that some arrays speak of, by the number of the text; the absent one's is 0."""
    import numpy as np

    found = np.zeros((max(1, len(texts)), WORDS), np.uint64)
    named = np.zeros(max(1, len(texts)), bool)
    for array in used:
        named[array] = True
    named[0] = False
    numbers = np.flatnonzero(named)
    data = b"".join(text_code(texts[i]) for i in numbers.tolist())
    found[numbers] = np.frombuffer(data, "<u8").reshape(-1, WORDS)
    return found


def text_code(text: str) -> bytes:
    """The code of a text: what stands for it in a digest."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_SIZE).digest()


def mixed(parts: Iterable[Any]) -> Any:
    """Fold rows of integers into ``WORDS`` each, as murmur3 finishes its hash. A part has one column, or ``WORDS``."""
    import numpy as np

    found: Any = np.array(_SEEDS, np.uint64)[None, :]
    for part in parts:
        found = (found ^ part) * np.uint64(_FACTOR)
        found ^= found >> np.uint64(_SHIFT)
        found *= np.uint64(_SEEDS[0])
        found ^= found >> np.uint64(_SHIFT)
    return found
