"""Coverage of the evidence, per source and in sum, with the reasons for what was not understood.

Each ingest stores its counts (table ``coverage``, one row) and its diagnostics (table ``diagnostics``, one row each)
beside its derivations, so that the figures of any commit are those of its live sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from govtool.answers.coverage import Coverage, CoverageReport, Reason, SourceCoverage, is_unread
from govtool.model import Diagnostic
from govtool.model.parquet import read_parquet, refusing_damage, write_parquet
from govtool.names import current_id

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Shortfall
    from govtool.store import Commit, Fragment, Reader

COVERAGE_TABLE = "coverage"
REASONS_TABLE = "reasons"
DIAGNOSTICS_TABLE = "diagnostics"

_REASONS = 100
"""Reasons of a source that are kept."""
_NEAR = re.compile(r" near (?:a literal|(['\"]).*\1)\Z", re.DOTALL)


@dataclass(slots=True)
class Cost:
    """The cost of one reason: statements, their runs, and the place of the first of them."""

    statements: int
    runs: int
    place: tuple[str, int]


Costs = dict[tuple[str, str], Cost]
"""By code and message. Those of parts of a source can be added up in any order."""


def costs_of(shortfalls: Iterable[Shortfall]) -> Costs:
    """Group statements that were not fully understood by what they have in common."""
    costs: Costs = {}
    for shortfall in shortfalls:
        note = shortfall.diagnostic
        cost = Cost(1, shortfall.runs, (note.file or "", note.line or 0))
        _add(costs, (note.code, _NEAR.sub("", note.message)), cost)
    return costs


def add_costs(costs: Costs, more: Costs) -> None:
    """Add the costs in another part of a source."""
    for key, cost in more.items():
        _add(costs, key, cost)


def _add(costs: Costs, key: tuple[str, str], cost: Cost) -> None:
    known = costs.get(key)
    if known is None:
        costs[key] = Cost(cost.statements, cost.runs, cost.place)
    else:
        known.statements += cost.statements
        known.runs += cost.runs
        known.place = min(known.place, cost.place)


def ranked(source: str, costs: Costs) -> tuple[Reason, ...]:
    """The reasons of a source, costliest first; those that are kept."""
    reasons = [
        Reason(source, code, message, cost.statements, cost.runs, cost.place[0] or None, cost.place[1] or None)
        for (code, message), cost in costs.items()
    ]
    return tuple(sorted(reasons, key=_cost)[:_REASONS])


def reasons_of(source: str, shortfalls: Iterable[Shortfall]) -> tuple[Reason, ...]:
    """Return the reasons for incomplete coverage, costliest first."""
    return ranked(source, costs_of(shortfalls))


def unread_files(diagnostics: Iterable[Diagnostic]) -> Iterator[Shortfall]:
    """A shortfall for each file that was not read: it counts as a statement that was not understood."""
    from govtool.model.shortfall import Shortfall

    return (Shortfall("opaque", one, 1, "", "") for one in diagnostics if is_unread(one))


def _cost(reason: Reason) -> tuple[object, ...]:
    return (-reason.runs, -reason.statements, reason.source, reason.code, reason.message)


def coverage_fragments(
    source: str,
    coverage: Coverage,
    diagnostics: Iterable[Diagnostic],
    *,
    files: int,
    dialect: str,
    reasons: Sequence[Reason] = (),
    kind: str = "",
    place: str = "",
) -> Iterator[Fragment]:
    """The fragments that hold a source's counts, diagnostics and reasons.

    Args:
        source: The source.
        coverage: Its counts.
        diagnostics: What was not understood in it.
        files: Number of its files.
        dialect: Its SQL dialect.
        reasons: The reasons for incomplete coverage, costliest first.
        kind: The kind of ingest.
        place: What it was read from; see ``govtool.app.project.sources``.
    """
    from govtool.store import Fragment

    row = {"source": source, "dialect": dialect, "files": files, "kind": kind, "place": _encodable(place)}
    yield Fragment(source, COVERAGE_TABLE, _rows_as_parquet([{**row, **coverage.counts()}], _coverage_schema()), 1)
    if reasons:
        costs = [
            {
                "source": source,
                "code": r.code,
                "message": _encodable(r.message),
                "statements": r.statements,
                "runs": r.runs,
                "file": _encodable(r.file),
                "line": r.line,
            }
            for r in reasons
        ]
        yield Fragment(source, REASONS_TABLE, _rows_as_parquet(costs, _reasons_schema()), len(costs))
    noted = tuple(diagnostics)
    if noted:
        yield Fragment(source, DIAGNOSTICS_TABLE, encode_diagnostics(source, noted), len(noted))


def encode_diagnostics(source: str, diagnostics: Iterable[Diagnostic]) -> bytes:
    """The fragment of a source's diagnostics; equal diagnostics give equal bytes."""
    return _encoded_diagnostics(source, tuple(diagnostics))


@lru_cache(maxsize=1)
def _encoded_diagnostics(source: str, diagnostics: tuple[Diagnostic, ...]) -> bytes:
    """Once for the comparison with what was noted before, and for the commit."""
    columns: list[list[Any]] = [
        [source] * len(diagnostics),
        [d.code for d in diagnostics],
        [d.severity for d in diagnostics],
        [_encodable(d.message) for d in diagnostics],
        [_encodable(d.file) for d in diagnostics],
        [d.line for d in diagnostics],
        [d.column for d in diagnostics],
        [_encodable(d.target) for d in diagnostics],
        [list(map(_encodable, d.candidates)) if d.candidates else [] for d in diagnostics],
    ]
    return _parquet(columns, _diagnostics_schema())


def read_coverage(
    store: Reader, commit: Commit, *, with_diagnostics: bool = False, source: str | None = None
) -> CoverageReport:
    """Read the counts of the live sources of a commit, sorted by source.

    Args:
        store: The store.
        commit: The commit.
        with_diagnostics: Read every diagnostic, too.
        source: Only this source, which takes few requests however many there are.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    wanted = {COVERAGE_TABLE, REASONS_TABLE, *((DIAGNOSTICS_TABLE,) if with_diagnostics else ())}
    live = store.fragments(commit) if source is None else store.fragments_of(commit, source)
    refs = [ref for ref in live if ref.table in wanted]
    sources: list[SourceCoverage] = []
    diagnostics: list[tuple[str, Diagnostic]] = []
    reasons: list[Reason] = []
    for ref, data in zip(refs, store.read_many(refs), strict=True):
        if ref.table == COVERAGE_TABLE:
            sources.extend(source_rows(data))
        elif ref.table == REASONS_TABLE:
            reasons.extend(Reason(**row) for row in read_parquet(data).to_pylist())
        else:
            diagnostics.extend(decode_diagnostics(data))
    return CoverageReport(
        tuple(sorted(sources, key=lambda entry: entry.source)),
        tuple(sorted(diagnostics, key=lambda pair: (pair[0], pair[1].file or "", pair[1].line or 0, pair[1].code))),
        tuple(sorted(reasons, key=_cost)),
    )


def source_rows(data: bytes) -> Iterator[SourceCoverage]:
    """The counts of sources in a fragment; those that older versions wrote have fewer columns."""
    for row in read_parquet(data).to_pylist():
        counts = Coverage(**{name: int(row.get(name) or 0) for name in Coverage().counts()})
        origin = row.get("kind") or "", row.get("place") or ""
        yield SourceCoverage(row["source"], row["dialect"], int(row["files"]), counts, *origin)


@refusing_damage("a fragment holds no diagnostics")
def decode_diagnostics(data: bytes) -> list[tuple[str, Diagnostic]]:
    """The diagnostics of a fragment, each with its source."""
    found = []
    for row in read_parquet(data).to_pylist():
        source = row.pop("source")
        candidates = tuple(map(current_id, row.pop("candidates") or ()))
        target = row.pop("target")
        found.append((source, Diagnostic(target=target and current_id(target), candidates=candidates, **row)))
    return found


def _encodable(text: str | None) -> str | None:
    """Text that UTF-8 can hold: a file name or a message may have lone surrogates."""
    return text if not text or text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _rows_as_parquet(rows: list[dict[str, Any]], schema: Any) -> bytes:
    return _parquet([[row[field.name] for row in rows] for field in schema], schema)


def _parquet(columns: list[list[Any]], schema: Any) -> bytes:
    import pyarrow as pa

    from govtool.model.arrow_arrays import lists, numbers, texts

    def made(kind: Any, values: list[Any]) -> Any:
        if kind == pa.string():
            return texts(values)
        if kind == pa.int64():
            return numbers(values, kind)
        return lists(map(len, values), texts([item for listed in values for item in listed]), kind)

    arrays = [made(field.type, values) for field, values in zip(schema, columns, strict=True)]
    return write_parquet(pa.Table.from_arrays(arrays, schema=schema), statistics=True)


def _coverage_schema() -> Any:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("source", "dialect", "kind", "place")]
    return pa.schema([*texts, ("files", pa.int64()), *((name, pa.int64()) for name in Coverage().counts())])


def _reasons_schema() -> Any:
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    fields = [("source", text), ("code", text), ("message", text), ("statements", number), ("runs", number)]
    return pa.schema([*fields, ("file", text), ("line", number)])


def _diagnostics_schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("source", pa.string()),
            ("code", pa.string()),
            ("severity", pa.string()),
            ("message", pa.string()),
            ("file", pa.string()),
            ("line", pa.int64()),
            ("column", pa.int64()),
            ("target", pa.string()),
            ("candidates", pa.list_(pa.string())),
        ]
    )
