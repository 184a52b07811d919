"""A graph as Parquet: its nodes and its edges in parts of a million rows, each with the number of its first row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.graph import check_nodes, graph_of
from govtool.arrays.sets import Array
from govtool.arrays.texts import Texts
from govtool.errors import IntegrityError
from govtool.model.parquet import of_format, read_parquet, write_parquet
from govtool.workflow import vocabulary as terms
from govtool.workflow.graph import NodeIds, ProvenanceGraph
from govtool.workflow.values import NodeValues

NODES, EDGES, GRAPHS = "graph_nodes", "graph_edges", "graphs"
"""The store tables of graphs; the last has a row a graph."""
FORMAT = 1
"""Version of the layout, in the Parquet metadata."""
PART = 1_000_000
"""Rows of a fragment at most."""
_FORMAT_KEY, _FIRST_KEY = b"govtool.graph", b"first"
_NO_VALUE = 255


def node_parts(graph: ProvenanceGraph, part: int = PART) -> Iterator[tuple[bytes, int]]:
    """The nodes as Parquet files, each with its number of rows; equal graphs give equal bytes."""
    for start in range(0, graph.node_count, part):
        nodes = np.arange(start, min(start + part, graph.node_count))
        yield _written(_node_columns(graph, nodes), start), len(nodes)


def edge_parts(graph: ProvenanceGraph, part: int = PART) -> Iterator[tuple[bytes, int]]:
    """The edges as Parquet files, each with its number of rows."""
    for start in range(0, graph.edge_count, part):
        stop = min(start + part, graph.edge_count)
        columns = {
            "source": np.asarray(graph.edges.source[start:stop], np.int64),
            "target": np.asarray(graph.edges.target[start:stop], np.int64),
            "side": np.asarray(graph.side[start:stop]),
        }
        yield _written(columns, start), stop - start


def _node_columns(graph: ProvenanceGraph, nodes: Array) -> dict[str, Any]:
    import pyarrow as pa

    has, places = graph.values.places(nodes)
    types = np.full(len(nodes), _NO_VALUE, np.uint8)
    numbers = np.zeros(len(nodes), np.int64)
    types[has], numbers[has] = graph.values.type[places], graph.values.number[places]
    texts: Array = np.full(len(nodes), None, object)
    is_text = (types >= 4) & (types != _NO_VALUE)
    texts[is_text] = graph.values.texts.take(numbers[is_text])
    numbers[is_text] = 0
    names = [None if number < 0 else graph.modules[number] for number in graph.module[nodes].tolist()]
    columns: dict[str, Any] = {
        "type": np.asarray(graph.type[nodes]),
        "label": pa.array(graph.labels.take(graph.label[nodes].astype(np.int64)), pa.large_string()),
        "module": pa.array(names, pa.string()).dictionary_encode(),
        "invocation": np.asarray(graph.invocation[nodes]),
        "black_box": np.asarray(graph.black_box[nodes]),
        "value_type": types,
        "value_number": numbers,
        "value_text": pa.array(texts.tolist(), pa.large_string()),
    }
    if graph.ids is not None:
        is_number = graph.ids.is_number
        columns["id"] = pa.array(graph.ids.texts.take(nodes), pa.large_string())
        columns["id_is_number"] = np.zeros(len(nodes), bool) if is_number is None else np.asarray(is_number[nodes])
    return columns


def _written(columns: dict[str, Any], first: int) -> bytes:
    import pyarrow as pa

    table = pa.table(columns).replace_schema_metadata({_FORMAT_KEY: str(FORMAT), _FIRST_KEY: str(first)})
    return write_parquet(table)


def graph_from(nodes: Iterable[bytes], edges: Iterable[bytes]) -> ProvenanceGraph:
    """Return the graph of Parquet files, in any order.

    Raises:
        IntegrityError: They are something else, or do not fit together.
    """
    import pyarrow as pa

    try:
        return _graph(_joined(nodes), _joined(edges))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError, UnicodeError) as error:
        raise IntegrityError("a fragment holds no graph", code="store.corrupt-fragment") from error


def _joined(files: Iterable[bytes]) -> Any:
    import pyarrow as pa

    parts = []
    for data in files:
        table = of_format(read_parquet(data), _FORMAT_KEY, FORMAT, "graphs have")
        parts.append((int(table.schema.metadata[_FIRST_KEY]), table))
    parts.sort(key=lambda part: part[0])
    expected = 0
    for first, table in parts:
        if first != expected:
            raise ValueError("a part is missing")
        expected += table.num_rows
    return pa.concat_tables([table for _, table in parts]) if parts else None


def _graph(nodes: Any, edges: Any) -> ProvenanceGraph:
    if nodes is None:
        from govtool.workflow.builder import GraphBuilder

        return GraphBuilder().build()
    count = nodes.num_rows
    types = nodes.column("type").to_numpy().astype(np.uint8)
    label, labels = _coded(nodes.column("label"))
    module, modules = _coded(nodes.column("module"))
    source, target, side = _ends(edges, count)
    both_ways, order = graph_of(source, target, count, 0)  # type: ignore[arg-type]
    is_cell = np.isin(label, labels.find([terms.CELL])) & np.isin(types, terms.BOUNDARY)
    return ProvenanceGraph(
        kind=np.where((types == terms.VALUE) | is_cell, terms.V, terms.P).astype(np.uint8),
        type=types,
        label=label,
        module=module,
        invocation=nodes.column("invocation").to_numpy().astype(np.int32),
        black_box=nodes.column("black_box").to_numpy(),
        edges=both_ways,
        side=side[np.asarray(order, np.int64)],
        labels=labels,
        modules=tuple(modules),
        values=_values(nodes),
        ids=_ids(nodes),
    )


def _ends(edges: Any, count: int) -> tuple[Array, Array, Array]:
    if edges is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
    source, target = (edges.column(name).to_numpy().astype(np.int64) for name in ("source", "target"))
    check_nodes(source, count)
    check_nodes(target, count)
    return source, target, edges.column("side").to_numpy().astype(np.uint8)


def _coded(column: Any) -> tuple[Array, Texts]:
    """Numbers of distinct texts, -1 for none, and the texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = column.cast(pa.large_string()).combine_chunks()
    coded = pc.dictionary_encode(plain)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    numbers = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return numbers, Texts.of(coded.dictionary)


def _values(nodes: Any) -> NodeValues:
    import pyarrow.compute as pc

    types = nodes.column("value_type").to_numpy().astype(np.uint8)
    has = np.flatnonzero(types != _NO_VALUE)
    numbers = nodes.column("value_number").to_numpy().astype(np.int64)[has]
    texts = Texts.of(pc.drop_null(nodes.column("value_text")))
    is_text = types[has] >= 4
    numbers[is_text] = np.arange(int(is_text.sum()))
    if len(texts) != int(is_text.sum()):
        raise ValueError("texts of values are missing")
    return NodeValues(has.astype(np.int64), types[has], numbers, texts)


def _ids(nodes: Any) -> NodeIds | None:
    if "id" not in nodes.column_names:
        return None
    is_number = nodes.column("id_is_number").to_numpy()
    return NodeIds(Texts.of(nodes.column("id")), is_number if is_number.any() else None)


def described(name: str, nodes: int, edges: int, modules: Sequence[str]) -> bytes:
    """The description of a graph as a Parquet file of one row."""
    import pyarrow as pa

    row = {
        "name": [name],
        "nodes": [nodes],
        "edges": [edges],
        "modules": pa.array([list(modules)], pa.list_(pa.string())),
    }
    return _written(row, 0)


def description(data: bytes) -> tuple[str, int, int, tuple[str, ...]]:
    """Read what `described` wrote: name, nodes, edges, modules.

    Raises:
        IntegrityError: It is something else.
    """
    import pyarrow as pa

    try:
        (row,) = of_format(read_parquet(data), _FORMAT_KEY, FORMAT, "graphs have").to_pylist()
        return str(row["name"]), int(row["nodes"]), int(row["edges"]), tuple(map(str, row["modules"]))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError("a fragment describes no graph", code="store.corrupt-fragment") from error
