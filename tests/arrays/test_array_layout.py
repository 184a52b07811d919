"""The flat file of arrays: views without copies, another version refused, damage found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.arrays import layout
from govtool.arrays.pages import pack as pack_page
from govtool.arrays.pages import unpack
from govtool.errors import FormatError, IntegrityError

WIDTHS = {"B": "<u1", "H": "<u2", "I": "<u4", "Q": "<u8"}
VERSION = 3


def packed(arrays: dict[str, tuple[str, list[int]]], meta: dict[str, object]) -> bytes:
    buffers = {name: (code, np.array(values, WIDTHS[code])) for name, (code, values) in arrays.items()}
    return b"".join(bytes(memoryview(piece)) for piece in layout.pack(buffers, meta, VERSION))


arrays = st.dictionaries(
    st.text(max_size=5),
    st.sampled_from(list(WIDTHS)).flatmap(
        lambda code: st.tuples(
            st.just(code), st.lists(st.integers(0, (1 << (8 * int(WIDTHS[code][-1]))) - 1), max_size=20)
        )
    ),
    max_size=5,
)


@given(arrays)
def test_arrays_come_back(wanted):
    found, meta = layout.view(packed(wanted, {"note": "ünï"}), VERSION)
    assert {name: values.tolist() for name, values in found.items()} == {n: v for n, (_, v) in wanted.items()}
    assert meta == {"note": "ünï"}


@given(arrays, st.data())
def test_every_changed_byte_of_an_array_is_found(wanted, data):
    whole = packed(wanted, {})
    views, _ = layout.view(whole, VERSION)
    filled = [name for name, values in views.items() if values.nbytes]
    layout.verify(whole, VERSION)
    if not filled:
        return
    name = data.draw(st.sampled_from(filled))
    bad = bytearray(whole)
    target = layout.view(bad, VERSION)[0][name].cast("B")
    at = data.draw(st.integers(0, target.nbytes - 1))
    target[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(IntegrityError, match="checksum"):
        layout.verify(bad, VERSION)


@given(arrays, st.data())
def test_a_damaged_or_shortened_file_is_refused_when_it_is_opened(wanted, data):
    whole = packed(wanted, {"size": 1})
    header = int.from_bytes(whole[8:16], "little") + 24
    bad = bytearray(whole)
    at = data.draw(st.integers(0, header - 1))
    bad[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises((IntegrityError, FormatError)):
        layout.view(bad, VERSION)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises((IntegrityError, FormatError)):
        layout.view(whole[:cut], VERSION)


def test_a_file_of_another_version_is_refused_as_such():
    whole = packed({"a": ("B", [1])}, {})
    with pytest.raises(FormatError):
        layout.view(whole, VERSION + 1)
    with pytest.raises(FormatError):
        layout.verify(whole, VERSION + 1)


@given(st.lists(st.integers(0, 1 << 40), max_size=30), st.integers(0, 99), st.binary(max_size=30), st.data())
def test_a_page_comes_back_and_a_damaged_one_does_not(values, low, text, data):
    page = pack_page({"a": (low, np.array(values, np.int64)), "b": (0, np.arange(3))}, text)
    found, back = unpack(page)
    assert [found["a"][0] + v for v in found["a"][1]] == [low + v for v in values]
    assert back == text
    with pytest.raises(IntegrityError):
        unpack(page[: data.draw(st.integers(0, len(page) - 1))])
