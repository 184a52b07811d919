"""A graph as one file of arrays (``govtool.arrays.layout``), with what deletions need; opened without reading it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays import layout
from govtool.arrays.graph import ArrayGraph
from govtool.arrays.sets import Array
from govtool.arrays.support_large import Support
from govtool.arrays.texts import Texts
from govtool.errors import IntegrityError
from govtool.workflow.graph import NodeIds, ProvenanceGraph
from govtool.workflow.rules import support_of
from govtool.workflow.values import NodeValues

FORMAT = 1002
"""Version of the layout and of the arrays' meaning; far from those of other files of arrays."""
FILE = "provenance.graph"
"""The file's name in a cache directory."""
_COLUMNS = {
    "kind": np.uint8,
    "type": np.uint8,
    "label": np.int32,
    "module": np.int32,
    "invocation": np.int32,
    "black_box": np.bool_,
    "side": np.uint8,
}
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def pack(graph: ProvenanceGraph) -> Iterator[Any]:
    """Yield the file of a graph piece by piece; what deletions need is worked out."""
    support = support_of(graph)
    arrays: dict[str, Array] = {name: np.asarray(getattr(graph, name), dtype) for name, dtype in _COLUMNS.items()}
    arrays |= {name: np.asarray(values) for name, values in graph.edges.arrays("edges_").items()}
    arrays |= support.arrays()
    arrays |= _texts("labels", graph.labels) | _texts("value_texts", graph.values.texts)
    values = graph.values
    arrays |= {"value_nodes": values.nodes, "value_type": values.type, "value_number": values.number}
    if graph.ids is not None:
        arrays |= _texts("ids", graph.ids.texts)
        if graph.ids.is_number is not None:
            arrays["ids_is_number"] = graph.ids.is_number
    meta = {"modules": list(graph.modules), "words": dict(graph.word_numbers), **support.meta()}
    return layout.pack({name: _coded(values) for name, values in arrays.items()}, meta, FORMAT)


def _texts(name: str, texts: Texts) -> dict[str, Array]:
    return {f"{name}_offsets": texts.offsets, f"{name}_data": texts.data}


def _coded(values: Array) -> tuple[str, Array]:
    plain = np.ascontiguousarray(values)
    return _CODES[plain.dtype.itemsize], plain.view(f"u{plain.dtype.itemsize}")


def opened(buffer: Any) -> ProvenanceGraph:
    """Return the graph of a file that is mapped or read; its arrays are views of it.

    Raises:
        IntegrityError: It is none, or cut short.
        FormatError: It has another format; it can be built again.
    """
    arrays, meta = layout.view(buffer, FORMAT)
    try:
        return _opened({name: np.asarray(view) for name, view in arrays.items()}, meta)
    except (KeyError, ValueError, TypeError) as error:
        raise IntegrityError(f"the file of the graph lacks {error}", code="store.corrupt-index") from error


def _opened(arrays: dict[str, Array], meta: dict[str, Any]) -> ProvenanceGraph:
    edges = ArrayGraph.of_arrays(arrays, "edges_")
    columns: dict[str, Any] = {name: arrays[name].view(dtype) for name, dtype in _COLUMNS.items()}
    if {len(values) for name, values in columns.items() if name != "side"} != {edges.nodes}:
        raise ValueError("columns of the same length")
    values = NodeValues(
        arrays["value_nodes"].view(np.int64),
        arrays["value_type"],
        arrays["value_number"].view(np.int64),
        _read_texts("value_texts", arrays),
    )
    ids = None
    if "ids_offsets" in arrays:
        is_number = arrays["ids_is_number"].view(np.bool_) if "ids_is_number" in arrays else None
        ids = NodeIds(_read_texts("ids", arrays), is_number)
    return ProvenanceGraph(
        **columns,
        edges=edges,
        labels=_read_texts("labels", arrays),
        modules=tuple(meta["modules"]),
        values=values,
        ids=ids,
        words={word: tuple(numbers) for word, numbers in meta["words"].items()},
        support=Support.of_arrays(edges, arrays, meta),
    )


def _read_texts(name: str, arrays: dict[str, Array]) -> Texts:
    return Texts(arrays[f"{name}_offsets"].view(np.int64), arrays[f"{name}_data"])
