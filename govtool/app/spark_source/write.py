"""Rows of a Spark job as fragments: each task uploads its own, and one commit makes them all visible.

A fragment says which partition of which job it is, so that equal rows of two partitions stay two fragments while a task
that is run again writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from govtool.app.spark_source.tables import EDGES, EVIDENCE, NODES
from govtool.errors import UsageError
from govtool.model import ROWS, ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.columnar import DERIVATIONS, encode
from govtool.model.fact import FACTS, Fact
from govtool.model.parquet import write_parquet
from govtool.names import DEFAULT_NAMESPACE
from govtool.store.commit import Fragment

FRAGMENT_BYTES = 64 * 1024**2
"""Rows of a task are spread over fragments of about this size, before compression."""
_NEEDED = ("source_dataset", "source_column", "target_dataset", "target_column")
_EDGE_COLUMNS = {*_NEEDED, "kind", "functions", "star", "arm", "masking", "reason"}
_ABOUT = {"derivation", "file", "line", "fingerprint"}
"""Columns of a read of edges that say where they came from; on writing, they come from this job."""


def check_columns(table: str, columns: Iterable[str]) -> None:
    """Refuse rows that cannot be written to a table.

    Raises:
        UsageError: ``usage.table`` for a table that only an ingest writes, ``usage.columns`` for wrong columns.
    """
    names = set(columns)
    if table in _own_tables():
        raise UsageError(
            f"table {table!r} is written by commands of govtool only",
            code="usage.table",
            hint='write "edges", "facts", or a table with a name of your own',
        )
    wanted, most = None, set()
    if table == EDGES:
        wanted, most = set(_NEEDED), _EDGE_COLUMNS | _ABOUT
    elif table == FACTS:
        wanted = most = set(Fact._fields) - {"source"}
        most = most | {"source"}
    if wanted is not None and (wanted - names or names - most):
        wrong = [f"missing: {', '.join(sorted(wanted - names))}"] if wanted - names else []
        wrong += [f"unknown: {', '.join(sorted(names - most))}"] if names - most else []
        raise UsageError(
            f"these are not the columns of table {table!r}: {'; '.join(wrong)}",
            code="usage.columns",
            hint=f"columns: {', '.join(sorted(most))}",
        )


def _own_tables() -> set[str]:
    """Tables that only commands write: they have rules that rows of a data frame cannot be held to."""
    from govtool.app.coverage.sources import COVERAGE_TABLE, DIAGNOSTICS_TABLE, REASONS_TABLE
    from govtool.app.coverage.unread import REACH_TABLE
    from govtool.capture.openlineage.merge import TABLE as EVENTS
    from govtool.model.records import RECORD_TABLES
    from govtool.model.run import RUNS
    from govtool.model.version import VERSION_TABLES
    from govtool.model.workflow_run import WORKFLOW_RUNS
    from govtool.store.tombstones import TABLE as TOMBSTONES
    from govtool.workflow.storage import parquet

    return {
        *(NODES, EVIDENCE, DERIVATIONS, RUNS, EVENTS, TOMBSTONES, *RECORD_TABLES, *VERSION_TABLES),
        *(COVERAGE_TABLE, DIAGNOSTICS_TABLE, REASONS_TABLE, REACH_TABLE),
        *(parquet.NODES, parquet.EDGES, parquet.GRAPHS, WORKFLOW_RUNS),
    }


def fragments(table: str, source: str, job: str, partition: str, batches: Iterable[Any]) -> Iterator[Fragment]:
    """Encode the rows of one task.

    Args:
        table: Where the rows go.
        source: Who says so.
        job: What sets equal rows of two jobs apart; lineage said twice is said once.
        partition: Which partition of the job this is.
        batches: Arrow record batches.
    """
    for number, part in enumerate(_parts(batches)):
        label = f"{job}/{partition}/{number}"
        if table == EDGES:
            derivations = list(_declared(part.to_pylist(), source, f"spark/{partition}/{number}"))
            if derivations:
                yield Fragment(source, DERIVATIONS, encode(derivations), len(derivations))
            continue
        if table == FACTS:
            part = _facts(part, source)
        yield Fragment(source, table, _parquet(part, label), len(part))


def _parts(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    held: list[Any] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= FRAGMENT_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _parquet(table: Any, label: str) -> bytes:
    return write_parquet(table.replace_schema_metadata({"govtool.part": label}), statistics=True)


def _facts(table: Any, source: str) -> Any:
    import pyarrow as pa

    columns = [
        pa.array([source] * len(table), pa.string()) if name == "source" else table.column(name).cast(pa.string())
        for name in Fact._fields
    ]
    return pa.Table.from_arrays(columns, names=list(Fact._fields))


def _declared(rows: list[dict[str, Any]], source: str, label: str) -> Iterator[Derivation]:
    """Edges as declared derivations, one per target."""
    kinds = {kind.label: kind for kind in EdgeKind}
    by_target: dict[str, list[Edge]] = {}
    for row in rows:
        if any(not row[name] for name in _NEEDED):
            raise UsageError(f"an edge without all of its ends: {row}", code="usage.columns")
        kind = row.get("kind") or EdgeKind.TRANSFORMATION.label
        if kind not in kinds:
            raise UsageError(f"no kind {kind}", code="usage.unknown-kind", hint=f"one of {', '.join(kinds)}")
        if kinds[kind] is EdgeKind.OPAQUE and not row.get("reason"):
            raise UsageError("an opaque edge needs a reason", code="usage.columns", hint="fill the column reason")
        edge = Edge(
            ColumnRef(row["source_dataset"], row["source_column"]),
            row["target_column"],
            kinds[kind],
            tuple(row.get("functions") or ()),
            bool(row.get("star")),
            int(row.get("arm") or 0),
            bool(row.get("masking")),
            row.get("reason"),
        )
        by_target.setdefault(row["target_dataset"], []).append(edge)
    for target, edges in sorted(by_target.items()):
        outputs = sorted({edge.target_path for edge in edges} - {ROWS})
        opaque = any(edge.kind is EdgeKind.OPAQUE for edge in edges)
        yield Derivation(
            target,
            "table",
            "append",
            Statement(f"{label}/{target}", "declared", "", label, source=source, how="declared"),
            tuple(OutputColumn(path) for path in outputs),
            edges=tuple(sorted(edges, key=lambda e: (e.target_path, e.source, e.kind, e.arm))),
            status="partial" if opaque else "understood",
            namespace=DEFAULT_NAMESPACE,
        )
