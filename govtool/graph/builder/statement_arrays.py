"""Arrays of statements: the derivations of each, those that make a dataset, and the evidence of each derivation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from govtool.graph.builder.columns import numbered

EVIDENCE = (
    "fingerprint", "kind", "dialect", "file", "source", "how", "session", "text", "run", "principal", "first_seen",
    "last_seen", "status", "min_group_of", "places", "literals", "complete", "line", "count", "min_group",
)  # fmt: skip
"""What is kept of a statement as it was read."""


def statement_arrays(columns: Mapping[str, Any], alive: Any, target: Any, datasets: int) -> dict[str, Any]:
    """The arrays ``statement``, ``maker``, ``diagnostic`` and most of ``derivation_*`` of an index.

    Args:
        columns: Of the derivations; see ``govtool.graph.builder.columns.DTYPES``.
        alive: bool[derivations], those that still count.
        target: Per derivation the dataset that it makes.
        datasets: The number of datasets.
    """
    import numpy as np

    c = columns
    number = numbered(c["d.source"], c["d.file"], c["d.session"], c["d.first_seen"], c["d.line"], c["d.fingerprint"])
    live = np.flatnonzero(alive)
    order = live[np.argsort(number[live], kind="stable")]
    count = int(number.max()) + 1 if len(number) else 0
    by_target = live[np.argsort(target[live], kind="stable")]
    return {
        "derivation_statement": number,
        "statement": np.searchsorted(number[order], np.arange(count + 1)),
        "statement_derivation": order,
        "maker": np.searchsorted(target[by_target], np.arange(datasets + 1)),
        "maker_derivation": by_target,
        "diagnostic": np.searchsorted(c["g.derivation"], np.arange(len(alive) + 1)),
        "diagnostic_json": c["g.json"],
        **{f"derivation_{name}": c[f"d.{name}"] for name in EVIDENCE},
    }
