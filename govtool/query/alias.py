"""Names of one dataset: the derivations that say of two names that they are one."""

from __future__ import annotations

from govtool.graph.index import Index


def is_alias(index: Index, derivation: int) -> bool:
    """Return whether a derivation says nothing but that its target is another name of what it reads."""
    return index.field(derivation, "kind") == "alias"


def other_names(index: Index, dataset: int) -> set[int]:
    """The datasets for which a dataset is another name."""
    aliases = {derivation for derivation in index.makers(dataset) if is_alias(index, derivation)}
    if not aliases:
        return set()
    return {
        index.node_dataset[index.edge_source[edge]]
        for node in (index.rows(dataset), *index.columns(dataset))
        for edge in index.in_edges(node)
        if index.edge_derivation[edge] in aliases
    }
