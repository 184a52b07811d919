"""The ``columnLineage`` and ``lineage`` facets of a dataset as edges.

Transformations map one to one on kinds; ``DISTINCT``, ``SET_OPERATION``, ``UNION_ALL`` and ``OPAQUE`` are our own
subtypes beside the spec's. What decides rows (JOIN, FILTER, GROUP_BY, SORT …) leads to the row set, also where an event
repeats it for every column. The old form of ``columnLineage`` knows only identity and masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from govtool.capture.openlineage.identity import DatasetName, Fields, field_name, job_id, normalise
from govtool.capture.openlineage.redact import FUNCTIONS
from govtool.model import HIDDEN, KIND_BY_LABEL, ROW_SET, ROWS, STEERING, ColumnRef, Edge, EdgeKind

UNKNOWN = "openlineage"
"""The reason of opaque edges whose event says too little."""

EXTRA = "govtool"
"""The key of what we add to objects that the spec leaves open."""


@dataclass(slots=True)
class FacetLineage:
    """The lineage of one target from facets."""

    edges: list[Edge] = field(default_factory=list)
    reads: set[str] | None = None
    """Datasets that the target is explicitly said to be made of; None where nothing says so."""
    named: set[str] = field(default_factory=set)
    """Datasets of which a column is named."""
    columns: list[str] = field(default_factory=list)
    """Target columns that lineage is given for, in order."""
    known: bool = False
    """True if column lineage is given at all, be it that nothing flows."""
    partial: bool = False
    """True if something was said that cannot be placed."""


class Resolver:
    """Columns of datasets by the names that events use.

    Args:
        schemas: The ``fields`` of the schema facets of datasets, by id.
    """

    def __init__(self, schemas: Mapping[str, Fields]) -> None:
        self.names: dict[str, DatasetName] = {}
        """Datasets that were named, by id."""
        self._schemas = schemas
        self._none = Fields()

    def ref(self, item: Mapping[str, Any]) -> ColumnRef | None:
        """The column that an input field names; the row set if it names none."""
        namespace, name, column = item.get("namespace"), item.get("name"), item.get("field")
        if not isinstance(name, str) or not name.strip() or not isinstance(namespace, str):
            return None
        named = normalise(namespace, name)
        dataset = named.id
        self.names[dataset] = named
        extra = item.get(EXTRA)
        if isinstance(extra, Mapping) and extra.get("field") == HIDDEN:
            return ColumnRef(dataset, HIDDEN)
        if not isinstance(column, str) or not column:
            return ColumnRef(dataset, ROWS)
        return ColumnRef(dataset, self.path(dataset, column, item))

    def path(self, dataset: str, column: str, item: object = None) -> str:
        """The path of a column of a dataset; an item that we wrote may tell it."""
        extra = item.get(EXTRA) if isinstance(item, Mapping) else None
        path_ = extra.get("path") if isinstance(extra, Mapping) else None
        if isinstance(path_, str) and field_name(path_) == column:
            return path_
        return self._schemas.get(dataset, self._none).path(column)


def column_lineage(facet: Any, target: DatasetName, resolver: Resolver, into: FacetLineage) -> None:
    """Add the edges of a ``columnLineage`` facet."""
    if not isinstance(facet, Mapping):
        return
    fields = facet.get("fields")
    into.known = into.known or isinstance(fields, Mapping)
    rows: list[tuple[ColumnRef, Mapping[str, Any]]] = []
    for name, entry in fields.items() if isinstance(fields, Mapping) else ():
        path = resolver.path(target.id, str(name), entry)
        into.columns.append(path)
        if not isinstance(entry, Mapping):
            into.partial = True
            continue
        for item in _items(entry.get("inputFields"), into):
            source = resolver.ref(item)
            if source is None:
                into.partial = True
                continue
            into.named.add(source.dataset)
            for transformation in _transformations(item, entry):
                into.edges.append(_edge(source, path, transformation, into))
    for item in _items(facet.get("dataset"), into):
        source = resolver.ref(item)
        if source is None:
            into.partial = True
            continue
        into.named.add(source.dataset)
        rows.extend((source, transformation) for transformation in _transformations(item, {}))
    for source, transformation in rows:
        into.edges.extend(_row_edges(source, transformation, into))


def explicit_lineage(
    facet: Any, target: DatasetName, resolver: Resolver, into: FacetLineage, own_job: tuple[str, str]
) -> None:
    """Add the edges of a ``lineage`` facet of a dataset, or of an entry of a job's."""
    if not isinstance(facet, Mapping):
        return
    inputs = facet.get("inputs")
    if isinstance(inputs, list) and into.reads is None:
        into.reads = set()
    for item in _items(inputs, into):
        source = _source(item, resolver, own_job)
        if source is None or into.reads is None:
            into.partial = True
            continue
        into.reads.add(source.dataset)
        into.edges.extend(_dataset_edges(item, source, into))
    fields = facet.get("fields")
    for name, entry in fields.items() if isinstance(fields, Mapping) else ():
        path = resolver.path(target.id, str(name), entry)
        into.columns.append(path)
        into.known = True
        for item in _items(entry.get("inputs") if isinstance(entry, Mapping) else None, into):
            source = _source(item, resolver, own_job)
            if source is None:
                into.partial = True
                continue
            into.named.add(source.dataset)
            into.edges.extend(_column_edges(item, source, path, into))


def _dataset_edges(item: Mapping[str, Any], source: ColumnRef, into: FacetLineage) -> list[Edge]:
    """Edges of an input of the dataset as a whole."""
    extra = item.get(EXTRA)
    transformations = _items(item.get("transformations"), into)
    if isinstance(extra, Mapping) and extra.get("target") == HIDDEN:
        return [_edge(source, HIDDEN, t, into) for t in transformations]
    if source.path == ROWS and not item.get("field"):
        # Entity level: the rows come from there, which ``reads`` records; more only where the facet states more.
        return [e for t in transformations if (e := _edge(source, ROWS, t, into)).kind in _OF_ROWS]
    return [e for t in transformations or [{}] for e in _row_edges(source, t, into)]


def _column_edges(item: Mapping[str, Any], source: ColumnRef, path: str, into: FacetLineage) -> Iterator[Edge]:
    """Edges of an input of one column."""
    for transformation in _items(item.get("transformations"), into) or [{}]:
        if item.get("type") == "JOB":
            yield Edge(source, path, EdgeKind.OPAQUE, reason="job")
        elif source.path == ROWS and not transformation:
            yield Edge(source, path, EdgeKind.OPAQUE, reason=f"{UNKNOWN}: no column is named")
        else:
            yield _edge(source, path, transformation, into)


_OF_ROWS = ROW_SET | {EdgeKind.OPAQUE, EdgeKind.AGGREGATION}


def _source(item: Mapping[str, Any], resolver: Resolver, own_job: tuple[str, str]) -> ColumnRef | None:
    if item.get("type") != "JOB":
        return resolver.ref(item)
    namespace, name = item.get("namespace"), item.get("name")
    job = (namespace, name) if isinstance(namespace, str) and isinstance(name, str) else own_job
    return ColumnRef(job_id(*job), ROWS)


def _items(value: object, into: FacetLineage) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        into.partial = True
        return []
    found = [item for item in value if isinstance(item, Mapping)]
    into.partial = into.partial or len(found) < len(value)
    return found


def _transformations(item: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the transformations of an input; the old form has them once for all inputs of an output column."""
    listed = item.get("transformations")
    new = [t for t in listed if isinstance(t, Mapping)] if isinstance(listed, list) else []
    if new:
        yield from new
        return
    old = entry.get("transformationType")
    kind = old.upper() if isinstance(old, str) else ""
    subtype = kind if kind in ("IDENTITY", "AGGREGATION") else "TRANSFORMATION"
    yield {"type": "DIRECT", "subtype": subtype, "masking": kind == "MASKED"}


def _kind(transformation: Mapping[str, Any]) -> tuple[EdgeKind, str | None]:
    """The kind of a transformation, and why it is opaque."""
    group, subtype = transformation.get("type"), transformation.get("subtype")
    group = group.upper() if isinstance(group, str) else ""
    subtype = subtype.upper() if isinstance(subtype, str) else ""
    kind = KIND_BY_LABEL.get(subtype.lower())
    if kind is EdgeKind.OPAQUE:
        reason = transformation.get("description")
        extra = transformation.get(EXTRA)
        reason = extra.get("reason") if isinstance(extra, Mapping) else reason
        return kind, reason if isinstance(reason, str) and reason else UNKNOWN
    if kind is not None and kind is not EdgeKind.READ:
        return kind, None
    if group == "DIRECT":
        return EdgeKind.TRANSFORMATION, None
    what = " ".join(word for word in (group, subtype) if word)
    return EdgeKind.OPAQUE, f"{UNKNOWN}: {what[:60]}" if what else f"{UNKNOWN}: no transformation is given"


def _edge(source: ColumnRef, path: str, transformation: Mapping[str, Any], into: FacetLineage) -> Edge:
    """An edge into a column, or into the row set if the transformation decides rows."""
    kind, reason = _kind(transformation)
    extra = transformation.get(EXTRA)
    extra = extra if isinstance(extra, Mapping) else {}
    arm = extra.get("arm", 0)
    into.partial = into.partial or kind is EdgeKind.OPAQUE
    return Edge(
        source,
        ROWS if kind in ROW_SET else path,
        kind,
        _functions(transformation),
        star=extra.get("star") is True,
        arm=arm if isinstance(arm, int) and 0 <= arm < 1 << 31 else 0,
        masking=transformation.get("masking") is True,
        reason=reason,
    )


def _row_edges(source: ColumnRef, transformation: Mapping[str, Any], into: FacetLineage) -> list[Edge]:
    """A dependency of the whole dataset. One that steers values steers those of every column."""
    edge = _edge(source, ROWS, transformation, into)
    if edge.kind not in STEERING:
        return [edge if edge.kind in _OF_ROWS else edge._replace(kind=EdgeKind.OPAQUE, reason=f"{UNKNOWN}: value")]
    if into.columns:
        return [edge._replace(target_path=path) for path in dict.fromkeys(into.columns)]
    into.partial = True
    return [edge._replace(kind=EdgeKind.OPAQUE, reason=f"{UNKNOWN}: {edge.kind.label} of unnamed columns")]


def _functions(transformation: Mapping[str, Any]) -> tuple[str, ...]:
    text = transformation.get("description")
    if not isinstance(text, str) or not FUNCTIONS.match(text):
        subtype = transformation.get("subtype")
        custom = isinstance(subtype, str) and subtype and subtype.lower() not in KIND_BY_LABEL
        return (
            (subtype.lower()[:60],)
            if custom and isinstance(subtype, str) and transformation.get("type") == "DIRECT"
            else ()
        )
    return tuple(name.removesuffix("()") for name in text.split(" → "))
