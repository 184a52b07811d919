"""Rows of CSV, JSON, text and ORC files: traced by their position in one sequential read."""

from __future__ import annotations

import pytest

from govtool.app.records.frame_lineage import frame_lineage
from govtool.spark.live.exact import PlanRecorder
from govtool.spark.live.spool import Spool

COUNT = 300
"""Rows of a file."""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """What reads plans; nothing is patched."""
    folder = tmp_path_factory.mktemp("plans")
    return PlanRecorder(Spool(str(folder)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of each format; lines of the second are longer. Row n of file f is ``k = 1000 f + n``."""
    place = tmp_path_factory.mktemp("formats")
    for number in range(2):
        keys = [1000 * number + row for row in range(COUNT)]
        lines = {
            "csv": ["k,s,v"] + [f'{k},"a,{k % 3}\n{"x" * 40 * number}",{k % 7}' for k in keys],
            "json": [f'{{"k": {k}, "s": "a{k % 3}", "v": {k % 7}}}' for k in keys],
            "text": [f"{k} a{k % 3} {k % 7}" for k in keys],
        }
        for name, text in lines.items():
            (place / name).mkdir(exist_ok=True)
            (place / name / f"part-{number}.{name}").write_text("\n".join(text) + "\n", encoding="utf-8")
    return place


def opened(spark, folder, kind):
    """A DataFrame of k and v over the files of a format."""
    place = str(folder / kind)
    if kind == "csv":
        frame = spark.read.schema("k int, s string, v int").csv(place, header=True, multiLine=True)
    elif kind == "text":
        frame = spark.read.text(place).selectExpr(
            "cast(split(value, ' ')[0] as int) k", "cast(split(value, ' ')[2] as int) v"
        )
    else:
        frame = spark.read.format(kind).load(place)
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json", "text", "orc"])
def test_rows_are_traced_to_their_places(spark, recorder, folder, kind):
    if kind == "orc" and not (folder / "orc").exists():
        for number in range(2):
            rows = spark.range(1000 * number, 1000 * number + COUNT, 1, 1).selectExpr("int(id) k", "int(id % 7) v")
            rows.write.mode("append").orc(str(folder / "orc"))
    frame = opened(spark, folder, kind).where("k <> 13").groupBy("v").sum("k")
    every = frame_lineage(frame, recorder)
    found = every.where("v = 6").go_back_all()
    wanted = {1000 * file + row for file in (0, 1) for row in range(COUNT) if (1000 * file + row) % 7 == 6} - {13}
    tokens = found.ids()
    (part,) = found.parts
    names = {file.ordinal: file.uri.rpartition("/")[2] for file in part.leaf.files}
    assert len(set(names.values())) == 2
    places = {(names[token.file], token.row) for token in tokens}
    second = max(names.values()) if kind != "orc" else None
    if second is not None:
        assert {1000 * (name == second) + row for name, row in places} == wanted
    assert len(places) == len(wanted)
    assert {answer.exactness for answer in found.answer().inputs} == {"exact"}
    # The rows at these places are these rows, whatever columns are read and whatever filters stand above.
    again = every.lineage.input(part.leaf.dataset).rows([(token.file, token.row) for token in tokens[:5]])
    kept = {token.file << 40 | token.row for token in tokens[:5]}
    assert {token.file << 40 | token.row for token in again.ids()} == kept
    text = "value" if kind == "text" else "k"
    values = [row[text] for row in again.df().select(text).collect()]
    keys = {int(value.split()[0]) if kind == "text" else value for value in values}
    assert keys <= wanted
    assert len(keys) == 5


def test_rows_of_a_reader_that_drops_some_are_not_guessed(spark, recorder, folder):
    from govtool.errors import EngineError

    frame = spark.read.schema("k int, s string, v int").csv(
        str(folder / "csv"), header=True, multiLine=True, mode="DROPMALFORMED"
    )
    with pytest.raises(EngineError, match="malformed"):
        frame_lineage(frame, recorder).where("k = 1").go_back_all().ids()
