"""Derivations to Parquet and back."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.errors import IntegrityError
from govtool.model import ColumnRef, Counted, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.columnar import decode, encode, join_functions, read_table, split_functions, to_table, write_table
from govtool.names import current_id, renewed_text

# Names of earlier versions, such as file//data, are read under the names of today: test_cli_old_stores.py has them.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12).filter(
    lambda text: text == current_id(text) == renewed_text(text)
)
maybe = st.none() | texts
counts = st.integers(0, 2**40)
statements = st.builds(
    Statement,
    fingerprint=texts, kind=texts, dialect=texts, file=texts, line=counts, source=texts, how=texts, session=maybe,
    text=texts, run=maybe, principal=maybe, first_seen=maybe, last_seen=maybe, count=counts,
    min_group=st.none() | counts,
    min_group_of=st.lists(
        st.builds(Counted, counts, texts, st.lists(st.builds(ColumnRef, texts, texts), max_size=2).map(tuple)), max_size=2
    ).map(tuple),
)  # fmt: skip
edges = st.builds(
    Edge,
    source=st.builds(ColumnRef, texts, texts),
    target_path=texts,
    kind=st.sampled_from(EdgeKind),
    functions=st.lists(st.text("a\\u\x1f", max_size=4), max_size=3).map(tuple),
    star=st.booleans(),
    arm=st.integers(0, 2**31 - 1),
    masking=st.booleans(),
    reason=maybe,
)
diagnostics = st.builds(
    Diagnostic,
    code=texts, severity=texts, message=texts, file=maybe, line=st.none() | counts, column=st.none() | counts,
    target=maybe, candidates=st.lists(texts, max_size=2).map(tuple),
)  # fmt: skip
derivations = st.builds(
    Derivation,
    target=texts, target_kind=texts, mode=texts, statement=statements,
    columns=st.lists(st.builds(OutputColumn, texts, maybe), max_size=3).map(tuple),
    columns_complete=st.booleans(),
    edges=st.lists(edges, max_size=3).map(tuple),
    status=texts,
    diagnostics=st.lists(diagnostics, max_size=2).map(tuple),
    namespace=texts,
)  # fmt: skip


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(derivations, max_size=4))
def test_round_trip_is_the_identity(rows: list[Derivation]) -> None:
    data = encode(rows)
    assert decode(data) == rows
    assert encode(iter(rows)) == data
    assert read_table(data).num_rows == len(rows)


def test_fragments_of_before_are_read():
    """The layout 1 did not say what a HAVING counts."""
    row = Derivation("v", "view", "replace", Statement("f", "create_view", "postgres", "v.sql", min_group=5))
    table = to_table([row])
    old = table.drop_columns("min_group_of").replace_schema_metadata({b"govtool.derivations": b"1"})
    assert decode(write_table(old)) == [row]
    newer = table.replace_schema_metadata({b"govtool.derivations": b"99"})
    with pytest.raises(IntegrityError, match="layout 99"):
        read_table(write_table(newer))


@given(st.lists(st.text("ab\\u\x1f", max_size=6), max_size=4).map(tuple))
def test_functions_survive_any_separator(functions: tuple[str, ...]) -> None:
    assert split_functions(join_functions(functions)) == functions


def test_lone_surrogates_are_replaced_not_fatal() -> None:
    statement = Statement("f", "select", "", "bad\udcff.sql")
    row = Derivation(
        "t", "table", "replace", statement, diagnostics=(Diagnostic("x", "info", "m", candidates=("\ud800",)),)
    )
    (back,) = decode(encode([row]))
    assert back.statement.file == "bad\ufffd.sql"
    assert back.diagnostics[0].candidates == ("\ufffd",)


@pytest.mark.parametrize("data", [b"", b"not parquet", b"PAR1" + b"\0" * 40 + b"PAR1"])
def test_foreign_bytes_are_an_integrity_error(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode(data)


def test_another_parquet_table_is_an_integrity_error() -> None:
    import pyarrow as pa

    from govtool.model.columnar import write_table

    with pytest.raises(IntegrityError):
        decode(write_table(pa.table({"a": [1]})))
