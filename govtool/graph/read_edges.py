"""Edges between row sets: whoever uses a column of a dataset reads its rows, whether the evidence says so or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from govtool.model.kinds import EdgeKind

EDGE_FIELDS = ("source_path", "target_path", "functions", "reason", "kind", "arm", "star", "masking")
"""The fields of an edge besides its derivation and the dataset that it starts in."""


def with_reads(
    derivation: Any, source: Any, target: Any, fields: Mapping[str, Any], rows: int, datasets: int
) -> tuple[Any, Any, dict[str, Any]]:
    """Edges with the ``read`` edges that are missing, at their end: derivations, datasets of the sources, fields.

    Args:
        derivation: The derivation of each edge.
        source: The dataset that each starts in.
        target: The dataset that each derivation makes.
        fields: ``EDGE_FIELDS`` of each edge.
        rows: The path of a row set, as a number.
        datasets: The number of datasets.
    """
    import numpy as np

    n = max(1, datasets)
    pair = derivation * n + source
    plain_reads = (fields["kind"] == EdgeKind.READ) & (fields["target_path"] == rows) & (fields["source_path"] == rows)
    foreign = pair[(source != target[derivation])]
    missing = np.setdiff1d(foreign, pair[plain_reads])
    fill = {"source_path": rows, "target_path": rows, "kind": int(EdgeKind.READ)}
    edge = {
        name: np.concatenate([values, np.full(len(missing), fill.get(name, 0), values.dtype)])
        for name, values in fields.items()
    }
    return np.concatenate([derivation, missing // n]), np.concatenate([source, missing % n]), edge
