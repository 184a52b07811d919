"""Rows of CSV, JSON, text and ORC files: traced by their position in one sequential read."""

from __future__ import annotations

import random

import pytest

from govtool.app.records.frame_lineage import frame_lineage
from govtool.records.execute.duckdb import RECORD, DuckExecutor
from govtool.records.execute.spark_executor import SparkExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import File, Relation, Session
from govtool.records.sql.dialect import NotExact
from govtool.spark.live.records.exact import PlanRecorder
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


def test_csv_files_that_duckdb_reads_have_the_rows_of_spark(spark, tmp_path):
    """Random cells, plain ones mostly: where one can be read in two ways, DuckDB is not given the file."""
    assert csv_differences(spark, tmp_path, range(25)) > 5


def csv_differences(spark, folder, seeds):
    """Compare random files; return how many DuckDB was given."""
    plain = {
        t.INTEGER: ["1", "-5", "0", "007", "-0", ""], t.LONG: ["9223372036854775807", "-3", ""],
        t.DOUBLE: ["0.1", "-0.0", "12345678901.25", "3", ""], t.FLOAT: ["0.1", "16777217", ""],
        t.Decimal(7, 3): ["1.5", "-0.001", "1234.567", "7", ""], t.STRING: ["a", " b ", "é", "NULL", "1,", ""],
        t.BOOLEAN: ["true", "false", ""], t.DATE: ["2024-02-29", "1999-12-31", ""],
        t.TIMESTAMP: ["2024-07-01 12:00:00", "2024-10-27 02:30:00", "1985-01-01T23:59:59.25", ""],
        t.TIMESTAMP_NTZ: ["2024-03-31 02:30:00", "1970-01-01T00:00:00.000001"],
    }  # fmt: skip
    odd = [
        "+1", " 1", "1e3", "NaN", '"q"', "x\\y", "2024-2-1", "TRUE", "99999999999", "1.2345", "-", "0001-01-01",
        "2024-03-31 02:30:00", '"a,b"', '"a ""b"" c"', '""', '"a" ', ' "a"', 'a"b', '"a', '"a""', '"x""y,z"',
    ]  # fmt: skip
    given = 0
    for seed in seeds:
        rng = random.Random(seed)
        kinds = rng.sample(list(plain), rng.randrange(1, 6))
        lines = [[rng.choice(plain[kind]).rstrip(",") for kind in kinds] for _ in range(rng.randrange(1, 9))]
        if rng.random() < 0.3:
            lines = [[f'"{cell}"' if cell and rng.random() < 0.5 else cell for cell in line] for line in lines]
        if rng.random() < 0.5:
            lines[rng.randrange(len(lines))][rng.randrange(len(kinds))] = rng.choice(odd)
        place = folder / f"{seed}.csv"
        end = rng.choice(["\n", "\n", "\r\n"])
        place.write_bytes((end.join(map(",".join, lines)) + rng.choice(["", end, end * 2])).encode())
        schema = t.Struct(tuple(t.Field(f"c{n}", kind) for n, kind in enumerate(kinds)))
        columns = tuple(Attribute(n + 1, f"c{n}", kind) for n, kind in enumerate(kinds))
        options = (("header", rng.choice(["true", "false"])), ("escape", rng.choice(["\\", "\\", '"'])))
        file = File(0, place.as_uri(), place.stat().st_size, place.stat().st_mtime_ns // 1_000_000)
        record = Attribute(99, "record", t.LONG)
        leaf = Relation(0, "x", "csv", (file,), (*columns, record), schema, options=options, metadata=((99, RECORD),))
        session = Session("", False, rng.choice(["UTC", "Europe/Berlin", "America/New_York"]))
        try:
            found = DuckExecutor(session).fetch(leaf)
        except NotExact:
            continue
        given += 1
        expected = SparkExecutor(session, spark).fetch(leaf)
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), (seed, place.read_text(encoding="utf-8"))
    return given
