"""Compressed event logs: every codec, broken off anywhere, damaged, or bombs."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pytest
from spark_logs import lines_of, lz4_blocks, snappy_stream, zstd

from govtool.capture.compressed import UnreadableStreamError, content
from govtool.capture.spark.eventlog.lines import Broken, Line, wanted_lines

FIXTURES = Path(__file__).parents[3] / "fixtures" / "spark"


def lzf_stored(data: bytes) -> bytes:
    """Chunks of LZF that are not compressed."""
    parts = (data[start : start + 60_000] for start in range(0, len(data), 60_000))
    return b"".join(b"ZV\0" + len(part).to_bytes(2, "big") + part for part in parts)


PACK = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
    "lz4": lz4_blocks,
    "snappy": snappy_stream,
    "lzf": lzf_stored,
}


def unpacked(data: bytes, **bounds: int) -> tuple[bytes, str]:
    """All that can be had, and why it is not all."""
    out = []
    try:
        for piece in content(io.BytesIO(data), **bounds):
            out.append(piece)
    except UnreadableStreamError as error:
        return b"".join(out), str(error)
    return b"".join(out), ""


@pytest.fixture(scope="module")
def text() -> bytes:
    return b"".join(lines_of()) * 3


@pytest.mark.parametrize("codec", PACK)
def test_every_codec_is_told_by_content(codec: str, text: bytes) -> None:
    assert unpacked(PACK[codec](text)) == (text, "")


@pytest.mark.parametrize("codec", [c for c in PACK if c != "plain"])
def test_streams_one_after_the_other_are_one(codec: str) -> None:
    one, two = b"a" * 100_000, b"b" * 10
    assert unpacked(PACK[codec](one) + PACK[codec](two)) == (one + two, "")


@pytest.mark.parametrize("codec", [c for c in PACK if c != "plain"])
def test_of_what_breaks_off_the_beginning_is_kept(codec: str, text: bytes) -> None:
    packed = PACK[codec](text)
    rng = random.Random(7)
    for cut in [len(packed) - 40, *(rng.randrange(64, len(packed)) for _ in range(12))]:
        found, why = unpacked(packed[:cut])
        assert text.startswith(found)
        assert why or found == text
        if codec in ("gzip", "zstd"):  # streams without large blocks of their own lose little
            assert len(found) >= 0.5 * len(text) * cut / len(packed) - (1 << 18)


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy", "lzf", "gzip"])
def test_damage_is_said_and_never_raised_as_anything_else(codec: str, text: bytes) -> None:
    packed = bytearray(PACK[codec](text))
    rng = random.Random(11)
    for _ in range(40):
        broken = bytearray(packed)
        for _ in range(5):
            broken[rng.randrange(8, len(broken))] ^= 1 << rng.randrange(8)
        unpacked(bytes(broken))


def test_lzf_of_spark_s_own_library() -> None:
    """Made by ``LZFOutputStream`` of compress-lzf 1.2.0, which Spark ships; cut off, and damaged anywhere."""
    packed = (FIXTURES / "lzf" / "log.lzf").read_bytes()
    text = (FIXTURES / "lzf" / "log.json").read_bytes()
    assert unpacked(packed) == (text, "")
    for length in range(2, len(packed), 7):
        found, why = unpacked(packed[:length])
        assert text.startswith(found)
        assert why or found == text
    rng = random.Random(3)
    for _ in range(300):
        broken = bytearray(packed)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        unpacked(bytes(broken))
    assert unpacked(b"ZV\x01\x00\x03\x00\x20\x20\x00\x05")[1]  # refers to what is before the beginning


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4", "snappy"])
def test_a_bomb_is_not_read_to_its_end(codec: str) -> None:
    found, why = unpacked(PACK[codec](b"\0" * (64 << 20)), free=1 << 20, expansion=10)
    assert "expands" in why
    assert len(found) < 48 << 20


def test_blocks_of_impossible_size_are_refused() -> None:
    assert unpacked(b"LZ4Block\x25" + b"\xff" * 12)[1]
    assert unpacked(b"\x82SNAPPY\x00" + b"\0\0\0\x01" * 2 + b"\x7f\xff\xff\xff")[1]


# ---- lines ------------------------------------------------------------------------------------------------


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 160, 4096, 1 << 20])
def test_lines_do_not_depend_on_how_the_bytes_come(size: int) -> None:
    text = b"".join(lines_of()[:60])
    whole = list(wanted_lines(iter([text])))
    assert list(wanted_lines(iter(pieces(text, size)))) == whole
    assert all(isinstance(line, Line) for line in whole)


def test_what_is_not_wanted_is_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    from govtool.capture.spark.eventlog import lines

    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    task = b'{"Event":"SparkListenerTaskEnd","x":"' + b"y" * 100_000 + b'"}\n'
    end = b'{"Event":"SparkListenerApplicationEnd","Timestamp":1}\n'
    assert [line.event for line in wanted_lines(iter(pieces(task + end, 300))) if isinstance(line, Line)] == [
        "SparkListenerApplicationEnd"
    ]


def test_a_line_without_end_is_dropped_and_the_next_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from govtool.capture.spark.eventlog import lines

    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    long = b'{"Event":"SparkListenerEnvironmentUpdate","x":"' + b"y" * 100_000 + b'"}\n'
    end = b'{"Event":"SparkListenerApplicationEnd","Timestamp":1}\n'
    found = list(wanted_lines(iter(pieces(long + end, 300))))
    assert isinstance(found[0], Broken)
    assert "MiB" in found[0].message
    assert [line.number for line in found] == [1, 2]


def test_half_a_line_and_text_that_is_no_event() -> None:
    text = b'not json\n\n{"a": 1}\n{"Event" : "SparkListenerLogStart","Spark Version":"4.0.0"}\n{"Event":"SparkListenerAppli'
    found = list(wanted_lines(iter([text])))
    assert [(type(line), line.number) for line in found] == [(Broken, 1), (Broken, 3), (Line, 4), (Broken, 5)]
    text = b'{"Event":"SparkListenerApplicationEnd","Timest'
    assert [line.message for line in wanted_lines(iter([text])) if isinstance(line, Broken)] == ["half a line"]
