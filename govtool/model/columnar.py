"""Derivations as Parquet: one row a derivation, its edges, columns and diagnostics nested in it.

The bytes are what a commit stores (table ``DERIVATIONS``). They are a function of the derivations alone, so that an
unchanged file keeps its fragment; ``decode(encode(d)) == list(d)``. ``read_table`` is the bulk reader of the index
build: the strings that repeat come dictionary-encoded, and nothing becomes a Python object.

Layout notes. The functions of an edge are one string (joined by U+001F, escaped), null when there are none: they repeat
and a dictionary of strings is what the index build wants. Strings are UTF-8; a lone surrogate, which only a broken file
name or JSON escape can bring, is written as U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from govtool.errors import IntegrityError
from govtool.model.derivation import ColumnRef, Counted, Derivation, Edge, OutputColumn, Statement
from govtool.model.diagnostic import Diagnostic
from govtool.model.former_names import with_current_names
from govtool.model.kinds import EdgeKind
from govtool.model.parquet import read_parquet, refusing_damage

_T = TypeVar("_T")

DERIVATIONS = "derivations"
"""The store table whose fragments hold derivations."""

FORMAT = 5
"""Version of the layout, in the Parquet metadata under ``govtool.derivations``. 1 had no ``min_group_of``, 1 and 2 no
``references``, 1 to 3 no ``places``, 1 to 4 no ``literals``."""

_FORMAT_KEY = b"govtool.derivations"
_SEPARATOR = "\x1f"
_STATEMENT_TEXT = (
    "fingerprint", "kind", "dialect", "file", "source", "how", "session", "text", "run", "principal", "first_seen",
    "last_seen",
)  # fmt: skip
_STATEMENT_INT = ("line", "count", "min_group")
_COUNTED = "min_group_of"
_REFERENCES = "references"
_PLACES = "places"
_LITERALS = "literals"
_READABLE = (b"1", b"2", b"3", b"4", str(FORMAT).encode())
_KINDS = {int(kind): kind for kind in EdgeKind}
# Repeated strings; those that are nearly unique to a row (fingerprint, text) gain nothing from a dictionary.
_DICTIONARY = (
    "target", "target_kind", "mode", "status", "namespace", "kind", "dialect", "file", "source", "how", "session",
    "run", "principal", "columns.list.element.path", "columns.list.element.type", "edges.list.element.source_dataset",
    "edges.list.element.source_path", "edges.list.element.target_path", "edges.list.element.functions",
    "edges.list.element.reason", "references.list.element.dataset", "references.list.element.path",
)  # fmt: skip
_NUMBERED = ("edges.list.element.kind", "edges.list.element.arm")
"""Numbers that repeat; in a dictionary they are smaller, others are not."""
_UNIQUE = dict.fromkeys(("fingerprint", "text", _PLACES), "DELTA_LENGTH_BYTE_ARRAY")
"""Strings that are nearly unique to a row: all their lengths, then all their bytes, which compress better so."""


@lru_cache(maxsize=1)
def schema() -> Any:
    """The Arrow schema of a derivations table: scalars of the derivation and its statement, then three lists."""
    import pyarrow as pa

    def text(*names: str) -> list[Any]:
        return [pa.field(name, pa.string()) for name in names]

    column = pa.struct(text("path", "type"))
    edge = pa.struct(
        [
            *text("source_dataset", "source_path", "target_path"),
            pa.field("kind", pa.uint8()),
            *text("functions"),
            pa.field("star", pa.bool_()),
            pa.field("arm", pa.int32()),
            pa.field("masking", pa.bool_()),
            *text("reason"),
        ]
    )
    diagnostic = pa.struct(
        [
            *text("code", "severity", "message", "file"),
            pa.field("line", pa.int64()),
            pa.field("column", pa.int64()),
            *text("target"),
            pa.field("candidates", pa.list_(pa.string())),
        ]
    )
    return pa.schema(
        [
            *text("target", "target_kind", "mode"),
            pa.field("columns_complete", pa.bool_()),
            *text("status", "namespace", *_STATEMENT_TEXT),
            *[pa.field(name, pa.int64()) for name in _STATEMENT_INT],
            *text(_COUNTED, _PLACES, _LITERALS),
            pa.field("columns", pa.list_(column)),
            pa.field("edges", pa.list_(edge)),
            pa.field("diagnostics", pa.list_(diagnostic)),
            pa.field(_REFERENCES, pa.list_(pa.struct(text("dataset", "path")))),
        ],
        metadata={_FORMAT_KEY: str(FORMAT).encode()},
    )


def encode(derivations: Iterable[Derivation]) -> bytes:
    """Write derivations as Parquet (zstd), in their order; equal derivations give equal bytes."""
    return write_table(to_table(derivations))


@refusing_damage("a derivations fragment cannot be read")
def decode(data: bytes) -> list[Derivation]:
    """Read derivations back.

    Raises:
        IntegrityError: The bytes are not a derivations table, or of a newer layout.
    """
    return derivations_of(read_table(data, dictionary=False))


def derivations_of(table: Any) -> list[Derivation]:
    """The derivations that are the rows of a table of ``schema()``, without dictionaries."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    head = zip(
        *(columns[n] for n in ("target", "target_kind", "mode", "columns_complete", "status", "namespace")), strict=True
    )
    names = (*_STATEMENT_TEXT, *_STATEMENT_INT, _COUNTED, _PLACES, _LITERALS)
    columns[_COUNTED] = [split_counted(text) for text in columns[_COUNTED]]
    statements = zip(*(columns[n] for n in names), strict=True)
    lists = zip(columns["columns"], columns["edges"], columns["diagnostics"], columns[_REFERENCES], strict=True)
    return [
        Derivation(
            target=target,
            target_kind=target_kind,
            mode=mode,
            statement=Statement(**dict(zip(names, statement, strict=True))),
            columns=tuple(OutputColumn(c["path"], c["type"]) for c in outputs),
            columns_complete=complete,
            edges=tuple(_edge(e) for e in edges),
            status=status,
            diagnostics=tuple(Diagnostic(**{**d, "candidates": tuple(d["candidates"])}) for d in diagnostics),
            namespace=namespace,
            references=tuple(ColumnRef(r["dataset"], r["path"]) for r in references or ()),
        )
        for (target, target_kind, mode, complete, status, namespace), statement, parts in zip(
            head, statements, lists, strict=True
        )
        for outputs, edges, diagnostics, references in (parts,)
    ]


def to_table(derivations: Iterable[Derivation]) -> Any:
    """Derivations as a ``pyarrow.Table`` of ``schema()``."""
    import pyarrow as pa

    from govtool.model.arrow_arrays import flags, lists, numbers, texts

    rows = derivations if isinstance(derivations, Sequence) else list(derivations)
    types = schema()
    statements = [d.statement for d in rows]
    arrays: dict[str, Any] = {
        name: texts([getattr(d, name) for d in rows])
        for name in ("target", "target_kind", "mode", "status", "namespace")
    }
    arrays["columns_complete"] = flags([d.columns_complete for d in rows])
    arrays |= {name: texts([getattr(s, name) for s in statements]) for name in _STATEMENT_TEXT}
    arrays |= {name: numbers([getattr(s, name) for s in statements], pa.int64()) for name in _STATEMENT_INT}
    arrays[_COUNTED] = texts([join_counted(s.min_group_of) for s in statements])
    arrays[_PLACES] = texts([s.places for s in statements])
    arrays[_LITERALS] = texts([s.literals for s in statements])
    nested: dict[str, tuple[list[int], list[Any]]] = {
        "columns": _nested([d.columns for d in rows], _output_arrays),
        "edges": _nested([d.edges for d in rows], _edge_arrays),
        "diagnostics": _nested([d.diagnostics for d in rows], _diagnostic_arrays),
        _REFERENCES: _nested([d.references for d in rows], _reference_arrays),
    }
    for name, (counts, children) in nested.items():
        kind = types.field(name).type
        items = pa.StructArray.from_arrays(children, fields=list(kind.value_type))
        arrays[name] = lists(counts, items, kind)
    return pa.Table.from_arrays([arrays[name] for name in types.names], schema=types)


def _nested(lists: Sequence[Sequence[_T]], arrays: Callable[[list[_T]], list[Any]]) -> tuple[list[int], list[Any]]:
    """The lengths of lists, and the arrays of all their items."""
    return [len(items) for items in lists], arrays(list(chain.from_iterable(lists)))


def _output_arrays(outputs: list[OutputColumn]) -> list[Any]:
    from govtool.model.arrow_arrays import texts

    return [texts([c.path for c in outputs]), texts([c.type for c in outputs])]


def _edge_arrays(edges: list[Edge]) -> list[Any]:
    import pyarrow as pa

    from govtool.model.arrow_arrays import flags, numbers, texts

    return [
        texts([e.source.dataset for e in edges]),
        texts([e.source.path for e in edges]),
        texts([e.target_path for e in edges]),
        numbers([e.kind for e in edges], pa.uint8()),
        texts([join_functions(e.functions) for e in edges]),
        flags([e.star for e in edges]),
        numbers([e.arm for e in edges], pa.int32()),
        flags([e.masking for e in edges]),
        texts([e.reason for e in edges]),
    ]


def _diagnostic_arrays(diagnostics: list[Diagnostic]) -> list[Any]:
    import pyarrow as pa

    from govtool.model.arrow_arrays import lists, numbers, texts

    candidates = texts([name for d in diagnostics for name in d.candidates])
    return [
        *(texts([getattr(d, name) for d in diagnostics]) for name in ("code", "severity", "message", "file")),
        numbers([d.line for d in diagnostics], pa.int64()),
        numbers([d.column for d in diagnostics], pa.int64()),
        texts([d.target for d in diagnostics]),
        lists([len(d.candidates) for d in diagnostics], candidates, pa.list_(pa.string())),
    ]


def _reference_arrays(references: list[ColumnRef]) -> list[Any]:
    from govtool.model.arrow_arrays import texts

    return [texts([r.dataset for r in references]), texts([r.path for r in references])]


def write_table(table: Any) -> bytes:
    """Write a table of ``schema()`` as Parquet bytes, the same for the same rows.

    Arrow's own copy of the schema is left out: it is 4 KB of every fragment, and Parquet's says the same.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    how = {"compression": "zstd", "compression_level": 3, "write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(
        sink, table.schema, use_dictionary=[*_DICTIONARY, *_NUMBERED], column_encoding=_UNIQUE, **how
    ) as writer:
        writer.write_table(table)
        metadata = table.schema.metadata or {}
        writer.add_key_value_metadata({key.decode(): value.decode() for key, value in metadata.items()})
    data: bytes = sink.getvalue().to_pybytes()
    return data


@refusing_damage("a derivations fragment cannot be read")
def read_table(data: bytes, *, dictionary: bool = True, columns: Sequence[str] | None = None) -> Any:
    """Read a derivations table as ``pyarrow.Table``, under the names of today.

    Args:
        data: Parquet bytes of ``write_table``.
        dictionary: Leave repeated strings as dictionary arrays (nested ones included).
        columns: Those to read, by their paths in Parquet (``edges.list.element.kind``); by default all.

    Raises:
        IntegrityError: The bytes are not a derivations table, or of a newer layout.
    """
    import pyarrow as pa

    try:
        table = _read(data, _DICTIONARY if dictionary else (), columns)
    except (pa.ArrowException, OSError) as error:
        raise IntegrityError(
            f"A derivations fragment cannot be read: {error}", code="store.corrupt-fragment"
        ) from error
    version = (table.schema.metadata or {}).get(_FORMAT_KEY)
    if columns is None:
        table = _with_later_columns(table, version)
    if version is None or (columns is None and table.schema.names != schema().names):
        raise IntegrityError("A fragment is not a derivations table", code="store.corrupt-fragment")
    if version not in _READABLE:
        raise IntegrityError(
            f"A derivations fragment has layout {version.decode('ascii', 'replace')}; this version reads {FORMAT}",
            code="store.format-fragment",
            hint="Upgrade govtool",
        )
    return with_current_names(table)


def _read(data: bytes, dictionary: Sequence[str], columns: Sequence[str] | None) -> Any:
    """Read Parquet; of an earlier layout once more: Arrow takes no dictionary columns that a file lacks."""
    try:
        return read_parquet(data, dictionary=dictionary, columns=columns)
    except KeyError:
        known = [name for name in dictionary if not name.startswith(f"{_REFERENCES}.")]
        return read_parquet(data, dictionary=known, columns=columns)


_LATER = {
    b"1": (_COUNTED, _PLACES, _LITERALS, _REFERENCES),
    b"2": (_PLACES, _LITERALS, _REFERENCES),
    b"3": (_PLACES, _LITERALS),
    b"4": (_LITERALS,),
}
"""The columns that earlier layouts lack, in the order of ``schema()``."""


def _with_later_columns(table: Any, version: bytes | None) -> Any:
    """A table of an earlier layout with the columns that it did not have, empty."""
    import pyarrow as pa

    missing = _LATER.get(version or b"", ())
    for name in missing:
        if name not in table.schema.names:
            field = schema().field(name)
            empty = pa.nulls(table.num_rows, field.type)
            table = table.add_column(schema().get_field_index(name), field, empty)
    return table


def join_functions(functions: tuple[str, ...]) -> str | None:
    """Functions of an edge as one string; ``None`` for none."""
    if not functions:
        return None
    joined = _SEPARATOR.join(functions)
    if "\\" in joined or joined.count(_SEPARATOR) != len(functions) - 1:
        return _SEPARATOR.join(f.replace("\\", "\\\\").replace(_SEPARATOR, "\\u") for f in functions)
    return joined


def split_functions(text: str | None) -> tuple[str, ...]:
    """The inverse of ``join_functions``."""
    if text is None:
        return ()
    parts = text.split(_SEPARATOR)
    if "\\" in text:
        parts = ["\\".join(piece.replace("\\u", _SEPARATOR) for piece in part.split("\\\\")) for part in parts]
    return tuple(parts)


def join_counted(bounds: Sequence[Counted]) -> str | None:
    """Return the counts of a HAVING as JSON; ``None`` for nothing."""
    if not bounds:
        return None
    rows = [[b.at_least, b.what, [list(ref) for ref in b.columns], *([True] if b.joined else [])] for b in bounds]
    return json.dumps(rows, ensure_ascii=False)


def split_counted(text: str | None) -> tuple[Counted, ...]:
    """The inverse of ``join_counted``."""
    if text is None:
        return ()
    return tuple(
        Counted(least, what, tuple(ColumnRef(*ref) for ref in columns), bool(joined))
        for least, what, columns, *joined in json.loads(text)
    )


def _edge(row: dict[str, Any]) -> Edge:
    return Edge(
        ColumnRef(row["source_dataset"], row["source_path"]),
        row["target_path"],
        _KINDS[row["kind"]],
        split_functions(row["functions"]),
        row["star"],
        row["arm"],
        row["masking"],
        row["reason"],
    )
