"""Columns of derivations: the same however they came together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.errors import FormatError, IntegrityError
from govtool.graph.builder.build import build, build_gathered
from govtool.graph.builder.gathered import Gathered, gather, joined, pack, unpack
from govtool.model import ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.columnar import encode, read_table

NAMES = ("a", "b", "", "é", "z.y", "\U0001f600")
PAIRS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))


def derivation(target: str, edges: list[tuple[str, str]], notes: int, names: list[tuple[str, str]]) -> Derivation:
    """A derivation with these sources and paths."""
    return Derivation(
        target or "t", "view", "replace", Statement(target, "create_view", "", f"{target}.sql", 3),
        tuple(OutputColumn(path or "c") for _, path in edges),
        edges=tuple(Edge(ColumnRef(source or "s", path or "c"), path or "c", EdgeKind.IDENTITY) for source, path in edges),
        diagnostics=tuple(Diagnostic("opaque", "warning", f"note {number}") for number in range(notes)),
        references=tuple(ColumnRef(source or "s", path or "c") for source, path in names),
    )  # fmt: skip


DERIVATIONS = st.builds(
    derivation, st.sampled_from(NAMES), st.lists(PAIRS, max_size=3), st.integers(0, 2), st.lists(PAIRS, max_size=2)
)
FRAGMENTS = st.lists(st.lists(DERIVATIONS, max_size=3), max_size=6)


def read(fragments: list[list[Derivation]], *, dictionary: bool = False) -> Gathered:
    """The fragments, named by their numbers, read as small ones are, or as large ones."""
    tables = ((str(n), read_table(encode(rows), dictionary=dictionary)) for n, rows in enumerate(fragments))
    return gather(tables)


def same(one: Gathered, other: Gathered) -> bool:
    """Compare all of it, types included."""
    assert one.texts == other.texts
    assert (one.fragments, one.starts) == (other.fragments, other.starts)
    for name, values in one.columns.items():
        assert values.dtype == other.columns[name].dtype, name
        assert np.array_equal(values, other.columns[name]), name
    return True


@given(FRAGMENTS, st.data())
def test_parts_joined_are_what_reading_all_of_it_gives(fragments: list[list[Derivation]], data: st.DataObject) -> None:
    whole = read(fragments)
    assert same(whole, read(fragments, dictionary=True))
    first = data.draw(st.sets(st.sampled_from(whole.fragments)) if fragments else st.just(set()))
    wanted = data.draw(st.permutations(whole.fragments))[: data.draw(st.integers(0, len(fragments)))]
    tables = {
        name: read_table(encode(rows), dictionary=False) for name, rows in zip(whole.fragments, fragments, strict=True)
    }
    parts = [gather((n, t) for n, t in tables.items() if (n in first) is side) for side in (True, False)]
    expected = gather((name, tables[name]) for name in wanted)
    found = joined(parts, wanted)
    assert same(found, expected)
    assert same(unpack(b"".join(pack(found))), expected)
    assert b"".join(build_gathered(found)) == b"".join(build(tables[name] for name in wanted))


def test_equal_fragments_count_twice() -> None:
    rows = [derivation("v", [("s", "c")], 1, [])]
    one = read([rows])
    assert joined([one], ("0", "0")).derivations == 2


def test_an_index_does_not_depend_on_how_strings_were_met() -> None:
    here, there = derivation("v", [("s", "c")], 0, []), derivation("w", [("v", "c")], 1, [("s", "d")])
    assert b"".join(build([read_table(encode([here])), read_table(encode([there]))])) == b"".join(
        build([read_table(encode([here, there]))])
    )


def test_a_damaged_pack_is_refused() -> None:
    data = bytearray(b"".join(pack(read([[derivation("v", [("s", "c")], 1, [])]]))))
    data[-70] ^= 1
    with pytest.raises(IntegrityError):
        unpack(bytes(data))
    with pytest.raises((IntegrityError, FormatError)):
        unpack(b"")


def test_a_fragment_that_no_part_has_is_an_error() -> None:
    with pytest.raises(KeyError):
        joined([read([[]])], ("9",))


def test_progress_counts_the_tables_that_are_in() -> None:
    table = read_table(encode([derivation("v", [("s", "c")], 0, [])]))
    other = table.replace_schema_metadata({**(table.schema.metadata or {}), b"x": b"1"})
    seen: list[tuple[int, float]] = []
    gather([("a", table), ("b", other), ("c", table)], lambda number, share: seen.append((number, share)))
    assert seen == sorted(seen)
    assert seen[-1] == (2, 1.0)
