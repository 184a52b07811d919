"""An index in pages answers as the whole index does, from few pages."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.graph import generate
from govtool.arrays.pages import page_digest, unpack
from govtool.errors import GovtoolError, IntegrityError
from govtool.graph.builder.build import build
from govtool.graph.index import Index
from govtool.graph.paging import cut as cut_module
from govtool.graph.paging import pages
from govtool.graph.paging.cut import cut
from govtool.graph.paging.paged import PagedIndex
from govtool.query.changes.change import Change
from govtool.query.changes.impact import impact
from govtool.query.explain import explain
from govtool.query.path import paths

sys.path.insert(0, str(Path(__file__).parents[1] / "query"))
from graph_samples import edge, graph, random_graph, view


class Shelf:
    """An index in pages, kept in memory, that counts what is taken from it."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.pages: list[bytes] = []
        self.root = pages.decode_root(pages.encode_root(cut(index, {}, self.pages.append)))
        self.read: list[int] = []
        self.brought = 0

    def open(self, most: int = 96) -> PagedIndex:
        return PagedIndex(self.root, self._read, self._whole, most)

    def _read(self, numbers):
        self.read += numbers
        for number in numbers:
            assert page_digest(self.pages[number]) == self.root.digest(number)
        return {number: self.pages[number] for number in numbers}

    def _whole(self):
        self.brought += 1
        return self.index.buffer


def outcome(question):
    """The answer, or the error in words."""
    try:
        return question()
    except GovtoolError as error:
        return type(error), error.message, error.code


def questions(index, name, other):
    """What is asked of an index, one kind of question after the other."""
    for change in ("logic", "drop", "rename:n", "retype:int"):
        yield lambda change=change: impact(index, name, change=Change.parse(change))
    yield lambda: impact(index, name, change=Change.parse("drop"), semantics="lineagex", limit=2)
    yield lambda: impact(index, name, direction="up")
    yield lambda: paths(index, name, other)
    yield lambda: explain(index, name)


@pytest.fixture
def tiny(monkeypatch):
    """Pages of a few items each, so that even small graphs have many, and nodes are cut through."""
    monkeypatch.setattr(cut_module, "PAGE", 64)


names = st.sampled_from(
    ["a", "b", "c", "d", "t1", "a.x", "b.y", "c.s", "d.s.f", "a.s.f.g", "b.*", "x", "s.h", "c.nothing"]
)


@pytest.mark.usefixtures("tiny")
@settings(deadline=None, max_examples=examples(60))
@given(random_graph(), names, names)
def test_answers_are_those_of_the_whole_index(derivations, name, other):
    index = graph(*derivations)
    shelf = Shelf(index)
    expected = [outcome(question) for question in questions(index, name, other)]
    # All questions of one index that grows with them, and each of one that has no page yet.
    paged = shelf.open()
    assert [outcome(question) for question in questions(paged, name, other)] == expected
    for number, wanted in enumerate(expected):
        assert outcome(list(questions(shelf.open(), name, other))[number]) == wanted


@pytest.fixture(scope="module")
def warehouse():
    made = generate(120_000)
    return Shelf(Index(b"".join(build(made.tables))))


def some(index, count):
    """Columns all over the graph, with what they reach."""
    found = []
    for node in range(0, index.node_count, max(1, index.node_count // 400)):
        if not index.is_rows(node) and not index.is_unknown(node):
            result = impact(index, index.name(node), limit=20)
            if 1 <= result.summary.entries <= 40:
                found.append((index.name(node), result))
        if len(found) == count:
            break
    return found


def test_a_question_reads_few_pages(warehouse):
    for name, expected in some(warehouse.index, 12):
        warehouse.read.clear()
        paged = warehouse.open()
        assert impact(paged, name, limit=20) == expected
        assert not paged.is_whole
        assert len(warehouse.read) <= 30, (name, expected.summary)
        assert len(set(warehouse.read)) == len(warehouse.read)
        size = sum(len(warehouse.pages[number]) for number in warehouse.read)
        assert size * 4 < len(warehouse.index.buffer)


def test_a_page_is_small_and_a_hub_is_cut_through(warehouse):
    sizes = [len(data) for data in warehouse.pages]
    assert max(sizes) <= 40_000
    hub = graph(*(view(f"v{i:04}", "x", "hub.x -> x identity") for i in range(4000)))
    shelf = Shelf(hub)
    assert max(map(len, shelf.pages)) <= 40_000
    assert shelf.root.graph > 8
    paged = shelf.open(most=4)
    assert impact(paged, "hub.x") == impact(hub, "hub.x")
    assert paged.is_whole
    assert len(shelf.read) <= 4


def test_where_much_is_asked_the_whole_is_brought_once(warehouse):
    warehouse.brought = 0
    paged = warehouse.open()
    assert sum(1 for _ in paged.datasets()) == sum(1 for _ in warehouse.index.datasets())
    assert list(paged.edge_target[0:50]) == warehouse.index.edge_target[0:50].tolist()
    assert paged.arrays["text"].nbytes == warehouse.index.arrays["text"].nbytes
    assert warehouse.brought == 1


def test_arrays_taken_before_the_whole_was_brought_serve_on(warehouse):
    import numpy as np

    paged = warehouse.open()
    tag, base = paged.edge_tag, paged.dataset_base
    first = tag[7], base[3]
    paged.resident()
    assert (tag[7], base[3]) == first
    assert np.array_equal(np.asarray(tag), np.asarray(warehouse.index.edge_tag))


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "swap"])
def test_a_damaged_page_is_no_answer(warehouse, damage, monkeypatch):
    def broken(numbers):
        raise IntegrityError("a page is not what was written", code="store.corrupt-index")

    name, expected = some(warehouse.index, 1)[0]
    paged = PagedIndex(warehouse.root, broken, warehouse._whole)
    assert impact(paged, name, limit=20) == expected
    data = warehouse.pages[0]
    bad = {
        "flip": data[:99] + bytes([data[99] ^ 1]) + data[100:],
        "cut": data[:-1],
        "empty": b"",
        "swap": warehouse.pages[1],
    }[damage]
    assert page_digest(bad) != warehouse.root.digest(0)
    if damage != "swap":
        with pytest.raises(IntegrityError):
            unpack(bad)


def test_a_damaged_root_is_refused(warehouse):
    data = pages.encode_root(warehouse.root)
    bomb, deep = zlib.compress(bytes(200 << 20)), zlib.compress(struct.pack("<I", 10**5) + b"[" * 10**5)
    broken = (data[:-1], data[:50], b"", data[:8] + b"?" + data[9:], data.replace(b"govtpgs", b"govtpgx"))
    for bad in (*broken, data[:8] + bomb, data[:8] + deep):
        assert bad != data
        with pytest.raises(IntegrityError):
            pages.decode_root(bad)


def test_statements_and_diagnostics_come_from_their_own_pages():
    from govtool.model import Diagnostic

    notes = (Diagnostic("ambiguous", "warning", "may be any of 2 columns", target="b.x", candidates=("a.x", "c.x")),)
    index = graph(view("b", "x:int", "a.x -> x identity", diagnostics=notes), view("c", "y", edge("b.x -> y identity")))
    shelf = Shelf(index)
    for name in ("b.x", "b", "c.y", "a.x"):
        assert explain(shelf.open(), name) == explain(index, name)
    assert explain(shelf.open(), "b").diagnostics == notes
