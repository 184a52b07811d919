"""The tables of one version: their schemas, their partitions, and the rows of a partition as Arrow.

`nodes` and `edges` are the graph as every command sees it, with all that was replaced, dropped or renamed taken into
account; they are cut from the index of the version. Every other table is the fragments of that name: `evidence` is the
derivations without what is nested in them, and whatever else sources keep (`versions`, `runs`, `facts`, …) is as it was
written. A partition is a fragment; of nodes and edges there are as many, of about equal numbers of edges.
"""

from __future__ import annotations

import io
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from govtool.app.spark_source.filters import Pushed, allowed
from govtool.errors import IntegrityError, UnknownNameError, UsageError
from govtool.model.columnar import DERIVATIONS, split_functions
from govtool.model.fact import FACTS
from govtool.model.former_names import with_current_names
from govtool.model.run import RUNS
from govtool.model.version import VERSION_TABLES, VERSIONS
from govtool.store.commit import FragmentRef

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.store import Commit, Reader

NODES = "nodes"
EDGES = "edges"
EVIDENCE = "evidence"
GRAPH = (NODES, EDGES)
"""The tables that come from the index."""
_OF_DATASET = {NODES: ("dataset",), EDGES: ("source_dataset", "target_dataset")}
_ROWS = 65536
_TEXTS = (
    "status", "namespace", "fingerprint", "kind", "dialect", "file", "source", "how", "session", "text", "run",
    "principal", "first_seen", "last_seen", "min_group_of",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoreVersion:
    """A version of a store, as a worker finds it again."""

    uri: str
    branch: str
    seq: int
    id: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The input of one partition: a fragment, or datasets of the index (by number; those of edges' ends)."""

    version: StoreVersion
    ref: FragmentRef | None = None
    first: int = 0
    """Of a fragment of derivations: the number of its first row among all of the version."""
    datasets: tuple[int, ...] = ()
    """``(low, high)``: a range. With ``picked``: the datasets themselves."""
    picked: bool = False
    incoming: bool = False
    """Edges into the datasets, not out of them."""


@lru_cache(maxsize=4)
def opened(version: StoreVersion) -> tuple[Reader, Commit]:
    """The store of a version and its commit; a worker keeps it from one partition to the next.

    Raises:
        IntegrityError: there is another commit in its place.
    """
    from govtool.store.quick import open_reader

    store = open_reader(version.uri)
    commit = store.resolve(str(version.seq), version.branch)
    if commit.id != version.id:
        raise IntegrityError(
            f"commit {version.seq} was replaced while Spark was reading: "
            f"it was {version.id[:7]} and is now {commit.short}",
            code="store.corrupt-chain",
            location=store.uri,
            hint="run govtool store fsck",
        )
    return store, commit


@lru_cache(maxsize=2)
def _index(version: StoreVersion) -> Index:
    from govtool.app.versions.index import open_index

    return open_index(*opened(version))


def resolve(uri: str, rev: str | None, branch: str | None) -> StoreVersion | None:
    """The version that ``rev`` names, or the newest of the branch; ``None`` if there is no commit yet.

    Raises:
        UnknownNameError: there is no such commit or branch.
    """
    from govtool.app.project.project import existing_branch
    from govtool.store.quick import open_reader

    store = open_reader(uri)
    name = existing_branch(store, branch)
    commit = store.head(name) if rev is None else store.resolve(rev, name)
    return None if commit is None else StoreVersion(uri, commit.branch, commit.seq, commit.id)


def schema(table: str, version: StoreVersion | None) -> Any:
    """The Arrow schema of a table.

    Raises:
        UnknownNameError: ``usage.unknown-table``: no source of this version keeps such a table, and nothing else
            knows it.
    """
    import pyarrow as pa

    text, number, flag = pa.string(), pa.int64(), pa.bool_()
    if table == NODES:
        return pa.schema(
            [
                *(("node", number), ("dataset", text), ("column", text), ("dataset_kind", text), ("type", text)),
                *(("declared", flag), ("temporary", flag)),
            ]
        )
    if table == EDGES:
        return pa.schema(
            [(f"{end}_{part}", text) for end in ("source", "target") for part in ("dataset", "column")]
            + [("kind", text), ("functions", pa.list_(text)), ("star", flag), ("arm", number), ("masking", flag)]
            + [("reason", text), ("derivation", number), ("file", text), ("line", number), ("fingerprint", text)]
        )
    if table == EVIDENCE:
        return pa.schema(
            [("derivation", number), ("dataset", text), ("dataset_kind", text), ("mode", text)]
            + [(name, text) for name in _TEXTS]
            + [(name, number) for name in ("line", "count", "min_group")]
            + [("complete", flag)]
        )
    return _stored_schema(table, version)


def _stored_schema(table: str, version: StoreVersion | None) -> Any:
    """The schema of a table of fragments: of all of them together, as a later version may have added columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = _known(table)
    refs: list[FragmentRef] = []
    tables: set[str] = set()
    if version is not None:
        store, commit = opened(version)
        live = store.fragments(commit)
        tables = {ref.table for ref in live}
        refs = [ref for ref in live if ref.table in _stored_names(table)]
    if not refs:
        if known is None and table == VERSIONS:
            from govtool.model.version import schema as versions_schema

            return versions_schema().remove_metadata()
        if known is not None:
            return known
        names = sorted({NODES, EDGES, EVIDENCE, DERIVATIONS, FACTS, VERSIONS, RUNS, *tables})
        alike = get_close_matches(table, [*names, *VERSION_TABLES], 3, 0.6)
        near = list(dict.fromkeys(VERSIONS if name in VERSION_TABLES else name for name in alike))
        suggestion = f" (did you mean {near[0]}?)" if near else ""
        raise UnknownNameError(
            f"there is no table {table!r} in this version{suggestion}, which has {', '.join(names)}",
            code="usage.unknown-table",
            nearest=tuple(near or names),
            hint='spark.read.format("govtool").option("table", "edges")',
        )
    if known is not None:
        return known
    # Fragments of one table are written by the same code, save where its version changed: the first of each source
    # tells, and costs a request each only once, as what was read is cached.
    first = {ref.source: ref for ref in reversed(refs)}
    found = [pq.read_schema(io.BytesIO(data)).remove_metadata() for data in store.read_many(list(first.values()))]
    return pa.unify_schemas(found, promote_options="permissive")


def _known(table: str) -> Any:
    import pyarrow as pa

    from govtool.model import columnar
    from govtool.model.fact import Fact
    from govtool.model.run import schema as runs_schema

    if table == DERIVATIONS:
        return columnar.schema().remove_metadata()
    if table == RUNS:
        return runs_schema().remove_metadata()
    if table == FACTS:
        return pa.schema([(name, pa.string()) for name in Fact._fields])
    return None


def _stored_names(table: str) -> frozenset[str]:
    """The names that fragments of a table have in stores of any age."""
    return VERSION_TABLES if table == VERSIONS else frozenset({table})


def cuts(table: str, version: StoreVersion | None, pushed: Sequence[Pushed]) -> list[Cut]:
    """The partitions of a table, without those that the filters leave nothing of."""
    if version is None:
        return []
    store, commit = opened(version)
    live = store.fragments(commit)
    derivations = [ref for ref in live if ref.table == DERIVATIONS]
    if table in GRAPH:
        return _graph_cuts(table, version, pushed, len(derivations))
    sources = allowed(pushed, "source")
    refs = derivations if table == EVIDENCE else [ref for ref in live if ref.table in _stored_names(table)]
    found, first = [], 0
    for ref in refs:
        if sources is None or ref.source in sources:
            found.append(Cut(version, ref, first))
        first += ref.rows
    return found


def _graph_cuts(table: str, version: StoreVersion, pushed: Sequence[Pushed], count: int) -> list[Cut]:
    index = _index(version)
    for column in _OF_DATASET[table]:
        names = allowed(pushed, column)
        if names is not None:
            found = sorted(d for name in names for d in _named(index, name))
            return [Cut(version, datasets=tuple(found), picked=True, incoming=column == "target_dataset")] * bool(found)
    # Cut where the edges are: every dataset counts for its columns as well, as there may be few edges.
    base, forward, n = index.dataset_base, index.forward, index.dataset_count

    def weight(dataset: int) -> int:
        return forward[base[dataset]] + base[dataset]

    whole = weight(n)
    bounds = [*(bisect_left(range(n), whole * part // count, key=weight) for part in range(count)), n]
    return [Cut(version, datasets=(low, high)) for low, high in pairwise(bounds) if low < high]


def _named(index: Index, name: Any) -> list[int]:
    """All datasets of a name: beside the one that stands there may be ended generations of it."""
    n = index.dataset_count
    low = bisect_left(range(n), str(name), key=index.dataset_name)
    found = []
    while low < n and index.dataset_name(low) == name:
        found.append(low)
        low += 1
    return found


def rows(table: str, cut: Cut) -> Iterator[Any]:
    """The rows of a partition as Arrow tables with the columns of `schema`, or some of them, in any order.

    Raises:
        StoreError: it cannot be read.
    """
    if table == NODES:
        yield from _nodes(_index(cut.version), cut)
    elif table == EDGES:
        yield from _edges(_index(cut.version), cut)
    else:
        assert cut.ref is not None
        store, _ = opened(cut.version)
        yield from _stored(table, store.read(cut.ref), cut)


def _stored(table: str, data: bytes, cut: Cut) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data))
        done = cut.first
        nested = ("columns", "edges", "diagnostics")
        columns = None if table != EVIDENCE else [n for n in file.schema_arrow.names if n not in nested]
        for batch in file.iter_batches(_ROWS, columns=columns):
            part = with_current_names(pa.Table.from_batches([batch]).replace_schema_metadata(None))
            if table == EVIDENCE:
                names = {"target": "dataset", "target_kind": "dataset_kind", "columns_complete": "complete"}
                part = part.rename_columns([names.get(name, name) for name in part.column_names])
                part = part.append_column("derivation", pa.array(range(done, done + len(part)), pa.int64()))
            done += len(part)
            yield part
    except (pa.ArrowException, OSError) as error:
        raise IntegrityError(
            f"a fragment of table {table!r} cannot be read: {error}",
            code="store.corrupt-fragment",
            location=cut.ref.key if cut.ref else None,
            hint="run govtool store fsck",
        ) from error


def _spans(cut: Cut) -> Iterable[range]:
    return (range(d, d + 1) for d in cut.datasets) if cut.picked else (range(*cut.datasets),)


def _nodes(index: Index, cut: Cut) -> Iterator[Any]:
    import pyarrow as pa

    types = schema(NODES, None)
    for span in _spans(cut):
        whole = range(index.dataset_base[span.start], index.dataset_base[span.stop])
        for low in range(whole.start, whole.stop, _ROWS):
            nodes = range(low, min(low + _ROWS, whole.stop))
            datasets = [index.node_dataset[node] for node in nodes]
            columns = (
                list(nodes),
                [index.dataset_name(d) for d in datasets],
                [index.path(node) for node in nodes],
                [index.dataset_kind(d) for d in datasets],
                [index.type(node) for node in nodes],
                [index.is_declared(node) for node in nodes],
                [index.is_elided(d) for d in datasets],
            )
            arrays = [pa.array(values, field.type) for values, field in zip(columns, types, strict=True)]
            yield pa.Table.from_arrays(arrays, schema=types)


def _edges(index: Index, cut: Cut) -> Iterator[Any]:
    base = index.dataset_base
    for span in _spans(cut):
        if cut.incoming:
            low, high = index.backward[base[span.start]], index.backward[base[span.stop]]
            for start in range(low, high, _ROWS):
                yield _edge_table(index, index.backward_edge[start : min(start + _ROWS, high)].tolist())
        else:
            low, high = index.forward[base[span.start]], index.forward[base[span.stop]]
            for start in range(low, high, _ROWS):
                yield _edge_table(index, range(start, min(start + _ROWS, high)))


def _edge_table(index: Index, edges: Sequence[int]) -> Any:
    """Edges as Arrow: each distinct end, label and derivation becomes text once, the rest is taken by number."""
    import numpy as np
    import pyarrow as pa

    from govtool.graph.codes import KIND_MASK, MASKING_BIT, STAR_BIT
    from govtool.model.kinds import EdgeKind

    types = schema(EDGES, None)
    a = index.arrays
    at = np.asarray(edges, np.int64)
    tag = np.asarray(a["edge_tag"])[at]

    def dictionary(name: str, text_of: Any, kind: Any) -> Any:
        known, place = np.unique(np.asarray(a[name])[at], return_inverse=True)
        return pa.array([text_of(i) for i in known.tolist()], kind).take(pa.array(place))

    def of_node(name: str) -> tuple[Any, Any]:
        known, place = np.unique(np.asarray(a[name])[at], return_inverse=True)
        nodes, where = known.tolist(), pa.array(place)
        datasets = pa.array([index.dataset_name(index.node_dataset[n]) for n in nodes], pa.string())
        return datasets.take(where), pa.array([index.path(n) for n in nodes], pa.string()).take(where)

    def functions(label: int) -> list[str]:
        return list(split_functions(index.string(a["label_functions"][label])))

    kinds = pa.array([kind.label for kind in EdgeKind], pa.string())
    columns = [
        *of_node("edge_source"),
        *of_node("edge_target"),
        kinds.take(pa.array((tag & KIND_MASK).astype(np.int64))),
        dictionary("edge_label", functions, types.field("functions").type),
        pa.array(((tag & STAR_BIT) > 0) & ((tag & KIND_MASK) != int(EdgeKind.READ))),
        pa.array(np.asarray(a["edge_arm"])[at].astype(np.int64)),
        pa.array((tag & MASKING_BIT) > 0),
        dictionary("edge_label", lambda label: index.string(a["label_reason"][label]), pa.string()),
        pa.array(np.asarray(a["edge_derivation"])[at].astype(np.int64)),
        dictionary("edge_derivation", lambda d: index.field(d, "file"), pa.string()),
        dictionary("edge_derivation", lambda d: int(a["derivation_line"][d]), pa.int64()),
        dictionary("edge_derivation", lambda d: index.field(d, "fingerprint"), pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=types)


def check_table(name: str) -> str:
    """Return the name of a table that may be read or written; a former name gives that of today, with a warning.

    Raises:
        UsageError: ``usage.table``.
    """
    from govtool.store import names

    if not name:
        raise UsageError("no table is named", code="usage.table", hint='.option("table", "edges")')
    if name in VERSION_TABLES - {VERSIONS}:
        warnings.warn(f"table {name!r} is now {VERSIONS!r}", FutureWarning, stacklevel=3)
        return VERSIONS
    return names.check_table(name)
