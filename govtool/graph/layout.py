"""The file of a column graph's index: the flat layout of ``govtool.arrays.layout`` under this graph's version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from govtool.arrays import layout

FORMAT = 11
"""Version of the layout and of the arrays' meaning, also of those of a change (``govtool.graph.delta.spliced``)."""

FILE = "graph.index"
"""The file's name in a cache directory."""


def pack(arrays: Mapping[str, tuple[str, Any]], meta: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the buffer of an index piece by piece; see ``govtool.arrays.layout.pack``."""
    return layout.pack(arrays, meta, FORMAT)


def view(buffer: Any) -> tuple[dict[str, memoryview], dict[str, Any]]:
    """Return the arrays and the meta of an index as views.

    Raises:
        IntegrityError: The buffer is not an index, or cut short, or its header is damaged.
        FormatError: An index of another format; it can be built again.
    """
    return layout.view(buffer, FORMAT)


def verify(buffer: Any) -> None:
    """Compare all of an index with its checksums.

    Raises:
        IntegrityError: They differ.
        FormatError: An index of another format.
    """
    layout.verify(buffer, FORMAT)
