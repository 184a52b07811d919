"""Building an index and reading it back: layout, names, nodes, evidence."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.app.versions.index import index_of
from govtool.arrays.suffix import parts_of, suffix_key
from govtool.errors import FormatError, IntegrityError
from govtool.graph import layout
from govtool.graph.builder.build import build
from govtool.graph.index import Index
from govtool.graph.paths import ancestors, parent_path
from govtool.model import ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.columnar import to_table

STATEMENT = Statement(
    "abc", "create_view", "spark", "etl/v.sql", 4, "shop", "sql", "s1", "CREATE VIEW …", "run-1", "me",
    "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", 7, 5,
)  # fmt: skip
NOTE = Diagnostic("ambiguous", "warning", "which?", "etl/v.sql", 4, 2, "v.a", ("s.a", "t.a"))
VIEW = Derivation(
    "crm.v", "view", "replace", STATEMENT, (OutputColumn("a", "int"), OutputColumn("items[].price")),
    edges=(
        Edge(ColumnRef("postgres://dw:5432/crm.s", "a"), "a", EdgeKind.TRANSFORMATION, ("trim", "md5"), True, 3, True),
        Edge(ColumnRef('"Odd Schema"."T.x"', '"a b"'), "*", EdgeKind.OPAQUE, reason="python-udf: f"),
    ),
    diagnostics=(NOTE,), status="partial",
)  # fmt: skip


def names(index: Index) -> list[str]:
    return [index.name(n) for n in range(index.node_count)]


def test_everything_said_can_be_read_back() -> None:
    index = index_of([VIEW])
    edges = {index.name(index.edge_source[e]): e for e in range(index.edge_count) if index.kind(e) is not EdgeKind.READ}
    edge = edges["postgres://dw:5432/crm.s.a"]
    assert index.name(index.edge_target[edge]) == "crm.v.a"
    assert (index.functions(edge), index.is_star(edge), index.arm(edge), index.is_masking(edge)) == (
        ("trim", "md5"),
        True,
        3,
        True,
    )
    assert index.reason(edges['"Odd Schema"."T.x"."a b"']) == "python-udf: f"
    (derivation,) = index.makers(index.find_dataset("crm.v"))
    assert index.statement(derivation) == STATEMENT
    assert index.diagnostics(derivation) == (NOTE,)
    assert index.field(derivation, "status") == "partial"
    assert index.type(index.find(ColumnRef("crm.v", "a"))) == "int"


def test_nodes_are_in_the_order_of_names_with_containers_added() -> None:
    index = index_of([VIEW])
    assert names(index) == [
        '"Odd Schema"."T.x".*', '"Odd Schema"."T.x"."a b"',
        "crm.v.*", "crm.v.a", "crm.v.items", "crm.v.items[]", "crm.v.items[].price",
        "postgres://dw:5432/crm.s.*", "postgres://dw:5432/crm.s.a",
    ]  # fmt: skip
    price, items = index.find(ColumnRef("crm.v", "items[].price")), index.find(ColumnRef("crm.v", "items"))
    assert [index.path(n) for n in index.containers(price)] == ["items[]", "items"]
    assert [index.path(n) for n in index.fields(items)] == ["items[]", "items[].price"]
    assert index.column_count(index.find_dataset("crm.v")) == 2


def test_containers_that_go_in_a_circle_are_damage_and_come_to_an_end() -> None:
    index = index_of([VIEW])
    (nested,) = [n for n in range(index.node_count) if index.path(n) == "items[].price"]
    (column,) = [n for n in range(index.node_count) if index.path(n) == "items"]
    for circle in (nested, nested + 1):
        index._parent = [circle for _ in index.nested]
        with pytest.raises(IntegrityError):
            index.containers(nested)
    index._child = [column for _ in index._child]
    with pytest.raises(IntegrityError):
        index.fields(column)


def test_missing_reads_are_added_and_said_ones_are_not_doubled() -> None:
    stated = Edge(ColumnRef("s", "*"), "*", EdgeKind.READ)
    index = index_of(
        [
            Derivation(
                "t", "view", "replace", STATEMENT, edges=(stated, Edge(ColumnRef("s", "a"), "a", EdgeKind.IDENTITY))
            )
        ]
    )
    assert [index.kind(e) for e in range(index.edge_count)] == [EdgeKind.READ, EdgeKind.IDENTITY]
    index = index_of([VIEW])
    assert sum(index.kind(e) is EdgeKind.READ for e in range(index.edge_count)) == 2


def test_a_dataset_does_not_read_itself_for_an_update() -> None:
    index = index_of(
        [Derivation("t", "table", "update", STATEMENT, edges=(Edge(ColumnRef("t", "a"), "b", EdgeKind.IDENTITY),))]
    )
    assert [index.kind(e) for e in range(index.edge_count)] == [EdgeKind.IDENTITY]


def test_the_empty_graph() -> None:
    index = index_of([])
    assert (index.node_count, index.edge_count, index.dataset_count) == (0, 0, 0)
    assert index.find_dataset("x") is None


def test_modes_of_later_versions_add() -> None:
    index = index_of([Derivation("t", "table", "upsert", STATEMENT, (OutputColumn("a"),))])
    assert index.mode(index.makers(0)[0]) == "append"


def test_equal_derivations_make_equal_bytes_in_any_grouping() -> None:
    other = Derivation(
        "w", "view", "replace", STATEMENT, edges=(Edge(ColumnRef("crm.v", "a"), "b", EdgeKind.IDENTITY),)
    )
    whole = index_of([VIEW, other])
    split = Index(b"".join(build([to_table([VIEW]), to_table([other])])))
    assert names(whole) == names(split)
    assert whole.edge_target.tolist() == split.edge_target.tolist()


@given(st.dictionaries(st.text(max_size=5), st.sampled_from("BHIQ"), max_size=4), st.data())
def test_layout_round_trip(codes: dict[str, str], data: st.DataObject) -> None:
    values = {
        name: data.draw(st.lists(st.integers(0, 256 ** struct.calcsize(code) - 1), max_size=5))
        for name, code in codes.items()
    }  # fmt: skip
    widths = {"B": "<u1", "H": "<u2", "I": "<u4", "Q": "<u8"}
    packed = b"".join(layout.pack({n: (c, np.array(values[n], widths[c])) for n, c in codes.items()}, {"note": "ünï"}))
    arrays, meta = layout.view(packed)
    assert {n: a.tolist() for n, a in arrays.items()} == values
    assert meta == {"note": "ünï"}


def test_damaged_buffers_are_refused() -> None:
    packed = b"".join(build([to_table([VIEW])]))
    for bad in (b"", b"x" * 100, packed[:40], packed[:-1], packed[:16] + b"?" + packed[17:]):
        with pytest.raises(IntegrityError):
            Index(bad)
    with pytest.raises(FormatError):
        Index(packed[:7] + b"\x01" + packed[8:])


@given(st.data())
def test_a_flipped_bit_is_found(data: st.DataObject) -> None:
    packed = bytearray(b"".join(build([to_table([VIEW])])))
    arrays, _ = layout.view(packed)
    stated = {name: values.tobytes() for name, values in arrays.items()}
    arrays.clear()
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        layout.verify(packed)
    except (IntegrityError, FormatError):
        return
    assert {name: values.tobytes() for name, values in layout.view(packed)[0].items()} == stated, "not padding"


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("a", []), ("a.b.c", ["a.b", "a"]), ("items[].price", ["items[]", "items"]),
        ("payload['a.b'].c", ["payload['a.b']", "payload"]),
        ('"x.y"', []), ('"x.y".z', ['"x.y"']), ("m[m2['k']]", ["m"]), (".", []), ("a.", ["a"]), ("[0]", []),
    ],
)  # fmt: skip
def test_containers_of_a_path(path: str, above: list[str]) -> None:
    assert ancestors(path) == above


@given(st.text("ab.\"[]'", max_size=12))
def test_containers_are_shorter_and_end(path: str) -> None:
    parent = parent_path(path)
    assert parent is None or (len(parent) < len(path) and path.startswith(parent))


def test_deep_nesting_is_bounded() -> None:
    assert len(ancestors("a" + ".b" * 5000)) == 64


def test_names_by_their_end() -> None:
    assert parts_of("s3://bucket/raw/users.csv") == ["s3:", "", "bucket", "raw", "users", "csv"]
    assert parts_of('"a/b".c') == ['"a/b"', "c"]
    assert suffix_key("b.a") < suffix_key("a.b")
