"""The findings of a part of a log, as bytes: the work of one process that others put together.

The derivations are an Arrow table in the form that a commit stores (``govtool.model.columnar``), with two columns more:
``place``, a hash that spreads them evenly over fragments and by which they are sorted, and ``seq``, their order in the
part. Everything else is small and becomes JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from govtool.answers.coverage import Coverage
from govtool.app.coverage.sources import Cost, Costs, add_costs, costs_of
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Extraction, Shortfall
    from govtool.model import Derivation

MAX_DIAGNOSTICS = 10_000
"""Diagnostics of a log that are kept, the worst of them; all are counted."""
MAX_FAILURES = 1_000
"""Statements whose text is kept to explain why they were not understood: those that were run most."""

LONGEST = 20_000
"""Characters that are kept of such a statement."""

PLACE, SEQ = "place", "seq"
_ALIGNED = 64
"""Arrow reads its buffers where they are if they begin at a multiple of this."""
_SEVERITIES = ("error", "warning", "info")


@dataclass(slots=True)
class Findings:
    """The findings of a log, without its derivations. Those of its parts can be added up in any order."""

    coverage: Coverage = field(default_factory=Coverage)
    codes: Counter[str] = field(default_factory=Counter)
    """All diagnostics, by code."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """The worst of them: more than are kept, until ``worst`` picks those."""
    costs: Costs = field(default_factory=dict)
    failures: list[Shortfall] = field(default_factory=list)
    """Statements of which nothing was understood; more than are kept, until ``costliest`` picks those."""
    derivations: int = 0
    edges: int = 0
    datasets: set[str] = field(default_factory=set)
    """Targets that are neither queries nor temporary."""
    columns: set[tuple[str, str]] = field(default_factory=set)
    """Of all targets but queries."""

    def add(self, other: Findings) -> None:
        """Add what another part says."""
        self.coverage += other.coverage
        self.codes.update(other.codes)
        self.diagnostics.extend(other.diagnostics)
        if len(self.diagnostics) > 3 * MAX_DIAGNOSTICS:
            self.diagnostics = worst(self.diagnostics)
        add_costs(self.costs, other.costs)
        self.failures.extend(other.failures)
        if len(self.failures) > 3 * MAX_FAILURES:
            self.failures = costliest(self.failures)
        self.derivations += other.derivations
        self.edges += other.edges
        self.datasets |= other.datasets
        self.columns |= other.columns


def findings_of(extraction: Extraction) -> Findings:
    """Return the findings of an extraction, without its derivations."""
    derivations = extraction.derivations
    return Findings(
        Coverage.of(extraction),
        Counter(d.code for d in extraction.diagnostics),
        worst(extraction.diagnostics),
        costs_of(extraction.shortfalls),
        costliest(extraction.shortfalls),
        len(derivations),
        sum(len(d.edges) for d in derivations),
        {d.target for d in derivations if d.target_kind not in ("query", "temporary")},
        {(d.target, column.path) for d in derivations if d.target_kind != "query" for column in d.columns},
    )


def kept(findings: Findings) -> Findings:
    """Findings with only the diagnostics and failures that are kept."""
    return replace(findings, diagnostics=worst(findings.diagnostics), failures=costliest(findings.failures))


def worst(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The worst diagnostics, as many as are kept, in an order that depends on them alone."""
    if len(diagnostics) <= MAX_DIAGNOSTICS:
        return sorted(diagnostics, key=_weight)
    return nsmallest(MAX_DIAGNOSTICS, diagnostics, key=_weight)


def _weight(note: Diagnostic) -> tuple[object, ...]:
    severity = _SEVERITIES.index(note.severity) if note.severity in _SEVERITIES else len(_SEVERITIES)
    place = (note.file or "", note.line or 0, note.column or 0)
    return (severity, *place, note.code, note.message, note.target or "", note.candidates)


def costliest(shortfalls: Sequence[Shortfall]) -> list[Shortfall]:
    """The most frequently run statements of those that were not understood at all, as many as are kept."""
    opaque = [s._replace(text=s.text[:LONGEST]) for s in shortfalls if s.status == "opaque"]
    return nsmallest(MAX_FAILURES, opaque, key=lambda s: (-s.runs, *_weight(s.diagnostic), s.text, s.dialect))


@dataclass(slots=True)
class LogPart:
    """The findings of a part of a log."""

    findings: Findings
    table: Any
    """A ``pyarrow.Table`` of derivations, sorted by ``PLACE``."""
    more: dict[str, Any] = field(default_factory=dict)
    """JSON values that only the next step understands."""


def part_of(extraction: Extraction, more: Mapping[str, Any] | None = None) -> LogPart:
    """An extraction as a part."""
    return LogPart(findings_of(extraction), table_of(extraction.derivations), dict(more or {}))


def table_of(derivations: Sequence[Derivation]) -> Any:
    """Derivations as a table that is sorted by place."""
    import numpy as np
    import pyarrow as pa

    from govtool.model.columnar import to_table

    places = np.array([int(d.statement.fingerprint[:8], 16) for d in derivations], dtype=np.uint32)
    table = to_table(derivations)
    table = table.append_column(PLACE, pa.array(places))
    table = table.append_column(SEQ, pa.array(np.arange(len(places), dtype=np.int32)))
    return table.take(pa.array(np.argsort(places, kind="stable"))).combine_chunks()


def dump(part: LogPart) -> bytes:
    """As bytes."""
    import pyarrow as pa

    found = part.findings
    value = {
        "coverage": found.coverage.counts(),
        "codes": found.codes,
        "diagnostics": [_note(d) for d in found.diagnostics],
        "costs": [(*key, *asdict(cost).values()) for key, cost in found.costs.items()],
        "failures": [(s.status, _note(s.diagnostic), s.runs, s.text, s.dialect) for s in found.failures],
        "sizes": (found.derivations, found.edges),
        "datasets": sorted(found.datasets),
        "columns": sorted(found.columns),
        "more": part.more,
    }
    head = json.dumps(value, separators=(",", ":")).encode()
    head += b" " * (-(8 + len(head)) % _ALIGNED)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, part.table.schema) as writer:
        writer.write_table(part.table)
    return b"".join((len(head).to_bytes(8, "little"), head, sink.getvalue()))


def findings_in(data: bytes | memoryview) -> tuple[Findings, dict[str, Any]]:
    """The findings of a part, and what the next step understands."""
    from govtool.capture.sql.extract import Shortfall

    value = json.loads(bytes(data[8 : 8 + int.from_bytes(data[:8], "little")]))
    found = Findings(
        Coverage(**value["coverage"]),
        Counter(value["codes"]),
        [Diagnostic.of(each) for each in value["diagnostics"]],
        {(code, message): Cost(n, runs, (file, line)) for code, message, n, runs, (file, line) in value["costs"]},
        [Shortfall(status, Diagnostic.of(note), *rest) for status, note, *rest in value["failures"]],
        derivations=value["sizes"][0],
        edges=value["sizes"][1],
        datasets=set(value["datasets"]),
        columns={(dataset, path) for dataset, path in value["columns"]},
    )
    return found, value["more"]


def table_in(data: bytes | memoryview) -> Any:
    """The derivations of a part; what they are made of stays where it is."""
    import pyarrow as pa

    view = memoryview(data)[8 + int.from_bytes(data[:8], "little") :]
    return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(view))).read_all()


def _note(note: Diagnostic) -> list[Any]:
    return [note.code, note.severity, note.message, note.file, note.line, note.column, note.target, note.candidates]


def bucketed(tables: Iterable[Any], first: int, last: int, buckets: int) -> Iterator[tuple[bytes, int, int]]:
    """The fragments of a range of buckets: their bytes, their rows, and the columns of queries that are in them.

    Args:
        tables: Of parts: sorted by ``PLACE``.
        first: The first bucket.
        last: Behind the last bucket.
        buckets: Of all parts together: a power of two.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from govtool.model.columnar import write_table

    width = (1 << 32) // buckets
    found = []
    for table in tables:
        places = table.column(PLACE).to_numpy()
        start, end = np.searchsorted(places, [first * width, last * width])
        if end > start:
            found.append(table.slice(start, end - start))
    if not found:
        return
    joined = pa.concat_tables(found).combine_chunks()
    order = pc.sort_indices(joined, sort_keys=[(n, "ascending") for n in (PLACE, "fingerprint", "session", SEQ)])
    joined = joined.take(order)
    places = joined.column(PLACE).to_numpy()
    bounds = np.searchsorted(places, np.arange(first, last + 1, dtype=np.uint64) * width)
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if end > start:
            rows = joined.slice(start, end - start).drop_columns([PLACE, SEQ])
            rows = pa.concat_tables([rows]).combine_chunks()
            yield write_table(rows.take(pa.array(range(end - start), pa.int64()))), end - start, _query_columns(rows)


def _query_columns(rows: Any) -> int:
    """Different columns of queries. A query is named by its statement, so no other bucket has more of them."""
    import pyarrow.compute as pc

    queries = rows.filter(pc.equal(rows.column("target_kind"), "query"))
    seen: set[tuple[str, str]] = set()
    for target, columns in zip(
        queries.column("target").to_pylist(), queries.column("columns").to_pylist(), strict=True
    ):
        seen.update((target, column["path"]) for column in columns)
    return len(seen)
