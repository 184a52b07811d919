"""Positions in their stored form, lines of text files without Spark, and the flag with a value."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from govtool.answers.runs import RunAnswer
from govtool.app.rdd.conditions import line_condition
from govtool.app.rdd.lines import lines_at, lines_of, meeting
from govtool.cli.main import main
from govtool.errors import EvidenceError, IntegrityError, UsageError
from govtool.model.positions import decode_cost, decode_positions, encode_positions, from_packed
from govtool.model.records import PlanCost
from govtool.model.run import Run
from govtool.records.execute.places import place_of
from govtool.records.plan.nodes import File, Relation, Session
from govtool.records.plan.types import Struct
from govtool.render.runs import render_run

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/run-1.json").read_text())
FACTS = {"tables": [[-1, 2, "exact", ""], [2, 0, "superset", "ties"], [2, 1, "exact", ""]], "coarse": [], "texts": []}


def _packed(*pairs):
    return np.array(pairs, np.int64).tobytes()


def test_positions_come_back_sorted_and_each_once():
    packed = [_packed((5, 7), (1, 2), (5, 7)), b"", _packed((2, (1 << 63) - 1))]
    data = encode_positions(from_packed(FACTS, packed))
    again = decode_positions(data)
    assert [pairs.tolist() for pairs in again.pairs] == [[[1, 2], [5, 7]], [], [[2, (1 << 63) - 1]]]
    assert again.facts == FACTS
    assert encode_positions(from_packed(FACTS, packed)) == data
    empty = decode_positions(encode_positions(from_packed({**FACTS, "tables": []}, [])))
    assert empty.pairs == ()


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"seconds": 2.5, "write_seconds": 0}, "query with ids 2.5 s, write 0.0 s"),
        ({"seconds": 1}, "job 1.0 s longer"),
        ({}, ""),  # as older versions of govtool wrote them
    ],
)
def test_a_run_states_what_its_positions_cost(times, words):
    data = encode_positions(from_packed({**FACTS, **times}, [_packed((5, 7), (5, 7)), b"", _packed((2, 3))]))
    cost = decode_cost(data)
    assert (cost.pairs, cost.bytes) == (2, len(data))
    run = Run("app/0", "job", "complete", "plan")
    answer = RunAnswer(None, run, (), {}, cost)
    found = answer.body()["run"]["positions"]
    assert found == {"pairs": 2, "bytes": len(data), "seconds": None, "write_seconds": None, **times}
    jsonschema.validate(found, SCHEMA["properties"]["run"]["properties"]["positions"])
    line = f'kept,positions,"2 pairs, {len(data):,} bytes{", " * bool(words)}{words}"'
    assert line in "\n".join(render_run("csv", answer)).splitlines()


@pytest.mark.parametrize("private", [12, None])
def test_a_run_states_what_its_plan_takes(private):
    cost = PlanCost(1200, 340, private, ("aggregate",), ("f() is gone",))
    answer = RunAnswer(None, Run("app/0", "job", "complete", "plan"), (), {}, None, cost)
    found = answer.body()["run"]["traced"]
    assert found == {
        "plan": 1200, "listing": 340, "private": private, "boundaries": ["aggregate"], "breaks": ["f() is gone"],
    }  # fmt: skip
    jsonschema.validate(found, SCHEMA["properties"]["run"]["properties"]["traced"])
    lines = "\n".join(render_run("csv", answer)).splitlines()
    literals = "literals removed" if private is None else "literals 12"
    assert f'kept,plan of rows,"1,200 bytes, files and settings 340, {literals}; before compression"' in lines
    assert "kept,break,f() is gone" in lines


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 100])
def test_what_is_no_positions_is_refused(data):
    with pytest.raises(IntegrityError):
        decode_positions(data)
    with pytest.raises(IntegrityError):
        decode_cost(data)


def _file(path, data):
    path.write_bytes(data)
    status = path.stat()
    return File(0, path.as_uri(), status.st_size, status.st_mtime_ns // 1_000_000)


TEXT = "\ufeffone\r\ntwo\r\rthree \u2028 \x85 end\n\nlast".encode() + b"\xff"
LINES = ["one", "two", "", "three \u2028 \x85 end", "", "last\ufffd"]


@pytest.mark.parametrize(("name", "pack"), [("a b.txt", bytes), ("a.gz", gzip.compress), ("a.bz2", bz2.compress)])
def test_lines_are_those_of_hadoop(tmp_path, name, pack):
    file = _file(tmp_path / name, pack(TEXT))
    assert list(lines_of(file)) == LINES
    output = Relation(0, "out", "text", (file,), (), Struct(()))
    assert lines_at(output, {place_of(file): {1, 5}}) == ["two", "last\ufffd"]
    assert lines_at(output, {(file.uri, file.size + 1, file.modified): {1, 5}}) == []


def test_lines_that_cannot_be_read_are_stated(tmp_path):
    with pytest.raises(EvidenceError, match="without Spark"):
        list(lines_of(_file(tmp_path / "a.snappy", b"")))
    with pytest.raises(EvidenceError, match="cannot be read"):
        list(lines_of(_file(tmp_path / "b.gz", b"no gzip")))
    with pytest.raises(EvidenceError, match="gone"):
        lines_at(None, {})


def test_conditions_on_lines():
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    found = meeting(
        ["a", "b%", "it's", ""], line_condition("value like '%''s' or length(value) = 0"), Session("", True, "UTC")
    )
    assert found == ({"it's", ""}, "DuckDB")
    assert meeting([], line_condition("true"), Session("", True, "UTC"))[0] == set()
    with pytest.raises(UsageError):
        line_condition("lines = 'a'")


def test_the_flag_has_a_value_and_the_job_keeps_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("import os, sys; print(sys.argv[1:], os.environ['GOVTOOL_SPARK_EAGER'])")
    assert main(["run", "--records=eager", "--spool", str(tmp_path / "s"), "--", "job.py", "--records=eager"]) == 0
    assert main(["run", "--records=lazy", "--", "job.py"]) == 2


@pytest.mark.parametrize("text", ["", "a", "a\nb", "a\n", "a\rb", "a\r", "a\r\n", "\r\n\r", "\n\n"])
def test_lines_of_a_record_are_those_that_a_reader_finds(tmp_path, text):
    from govtool.spark.rdd.operators import text_lines

    assert text_lines(text) == list(lines_of(_file(tmp_path / "part-00000", f"{text}\n".encode())))
