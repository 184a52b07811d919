"""Long annotations are made by columns and written piece by piece: the same texts as those made one by one."""

from __future__ import annotations

import datetime
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.app.why.rows import why
from govtool.render.formats.streams import TextFragment
from govtool.render.why import render
from govtool.workflow.semirings import long_sums, tokens
from govtool.workflow.semirings.text_order import text_order
from govtool.workflow.semirings.texts import value_text
from govtool.workflow.semirings.value_texts import value_texts

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.lists(TEXTS, max_size=20), TEXTS)
def test_texts_are_ordered_by_code_point(texts, prefix):
    texts = [prefix + each for each in texts]
    assert [texts[at] for at in text_order(pa.array(texts, pa.string()))] == sorted(texts)


@given(st.lists(st.none() | st.floats(), min_size=1, max_size=20))
def test_floats_are_written_as_python_writes_them(values):
    assert value_texts(pa.array(values, pa.float64())).to_pylist() == list(map(value_text, values))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, -5, None], pa.int32()),
        pa.array([True, False, None]),
        pa.array(["a", "", None]),
        pa.array([decimal.Decimal("1.50"), decimal.Decimal("0.00"), None], pa.decimal128(10, 2)),
        pa.array([decimal.Decimal("0.0000000001"), None], pa.decimal128(20, 10)),
        pa.array([decimal.Decimal("-0.000001"), decimal.Decimal(0), decimal.Decimal("1e31")], pa.decimal128(38, 6)),
        pa.array([decimal.Decimal("0E-7"), decimal.Decimal("1e-7")], pa.decimal128(38, 7)),
        pa.array([datetime.date(2020, 2, 29), None]),
        pa.array([datetime.datetime(2020, 2, 29, 1, 2, 3), None], pa.timestamp("us")),
        pa.array([datetime.datetime(2020, 2, 29, 1, 2, 3, tzinfo=datetime.UTC)], pa.timestamp("us", "UTC")),
        pa.array([[1, None], [], None], pa.list_(pa.int32())),
        pa.array([0.1, 1e20], pa.float32()),
        pa.array([b"\x01", None]),
    ],
    ids=str,
)
def test_values_of_every_type_are_written_as_one_by_one(column):
    assert value_texts(column).to_pylist() == list(map(value_text, column.to_pylist()))


ODD = ["a", "a⊗b", 'quo"te', "back\\slash", "nul\x01", "ü", "\U0001f600", "a*b", "\u202e", "b"]
QUERIES = [
    "select k, sum(x) as s, count(*) as n, max(t) as t, avg(x) as a from r group by k",
    "select r.k, count(*) as n, sum(r.x) as s from r join r q on r.k = q.k group by r.k",
    "select r.k from r join r q on r.k = q.k join r p on p.k = r.k",
    "select x, 1 as one from r union all select k, x from r",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = [f'"{token.replace(chr(34), chr(34) * 2)}",{at % 2},{at / 4},t{at % 3}' for at, token in enumerate(ODD)]
    (tmp_path / "r.csv").write_text("\n".join(["_tok,k,x,t", *rows]), encoding="utf-8")
    monkeypatch.setattr(tokens, "_PIECE", 3)
    return tmp_path


def whole(lines):
    return "".join(each if isinstance(each, TextFragment) else f"{each}\n" for each in lines)


@pytest.mark.parametrize("sql", QUERIES)
def test_what_is_written_in_pieces_is_what_is_written_at_once(sql, folder, monkeypatch):
    semirings = ["polynomial", "how", "which", "count"]
    at_once = why(sql, str(folder), semirings)
    monkeypatch.setattr("govtool.workflow.why.QueryProvenance.__init__.__defaults__", (2,), raising=False)
    monkeypatch.setattr(tokens, "MANY", 2)
    in_pieces = why(sql, str(folder), semirings)
    assert in_pieces.to_dict() == at_once.to_dict()
    made = [each.annotations.values_as_made for each in in_pieces.tuples]
    assert any(isinstance(each["polynomial"], long_sums.LongText) for each in made)
    assert json.loads(whole(render("json", in_pieces))) == at_once.to_dict()
    lines = whole(render("jsonl", in_pieces)).splitlines()
    assert [json.loads(line) for line in lines] == [each.to_dict() for each in at_once.tuples]
    assert whole(render("csv", in_pieces)) == whole(render("csv", at_once))
