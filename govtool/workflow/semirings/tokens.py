"""Names of source records by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of the records of a circuit's sources.

    Attributes:
        starts: The first node of each relation, by name.
        labels: The tokens of each relation's records, in order, as pyarrow arrays of strings.
    """

    starts: Mapping[str, int]
    labels: Mapping[str, Any]

    def __len__(self) -> int:
        return sum(len(self.labels[name]) for name in self.starts)

    def names(self, nodes: Array) -> list[str]:
        """The tokens of some source nodes, in their order."""
        found = np.empty(len(nodes), object)
        for name, start in self.starts.items():
            inside = (nodes >= start) & (nodes < start + len(self.labels[name]))
            if inside.any():
                found[inside] = self.labels[name].take(nodes[inside] - start).to_pylist()
        return list(found)

    def nodes(self, wanted: Sequence[str]) -> dict[str, int]:
        """The nodes of tokens; those that no relation of the query has are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.array(wanted, pa.string())
        found: dict[str, int] = {}
        for name, start in self.starts.items():
            places = pc.index_in(texts, value_set=self.labels[name].cast(pa.string())).to_pylist()
            found.update({token: start + at for token, at in zip(wanted, places, strict=True) if at is not None})
        return found

    def relation(self, node: int) -> str:
        """The relation of a source node."""
        return next(n for n, start in self.starts.items() if start <= node < start + len(self.labels[n]))
