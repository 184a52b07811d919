"""Runs to Parquet and back."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.errors import IntegrityError
from govtool.model import Diagnostic
from govtool.model.parquet import read_parquet
from govtool.model.run import Batches, Offsets, Run, RunInput, RunOutput, Software, decode_runs, encode_runs
from govtool.model.version import ContentIdentity
from govtool.names import current_id, renewed_text

# Names of earlier versions, such as file//data, are read under the names of today: test_cli_old_stores.py has them.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8).filter(
    lambda text: text == current_id(text) == renewed_text(text)
)
maybe = st.none() | texts
sizes = st.none() | st.integers(0, 2**40)
identities = st.none() | st.builds(ContentIdentity, texts, sizes, texts, st.integers(0, 9), st.integers(0, 9))
fields = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
notes = st.builds(Diagnostic, texts, texts, texts, maybe, sizes, sizes, maybe, st.lists(texts, max_size=2).map(tuple))
offsets = st.lists(st.builds(Offsets, texts, texts, texts, sizes), max_size=2).map(tuple)
batches = st.none() | st.builds(Batches, texts, texts, st.integers(0, 9), st.integers(0, 9), offsets)
runs = st.builds(
    Run,
    id=texts, job=texts, status=texts, how=texts, source=texts, application=texts, user=texts, started=maybe,
    ended=maybe, error=texts, host=texts, plan=texts,
    software=st.lists(st.builds(Software, texts, texts), max_size=2).map(tuple),
    config=st.dictionaries(texts, texts, max_size=2),
    inputs=st.lists(st.builds(RunInput, texts, sizes, sizes, sizes, identities, fields), max_size=2).map(tuple),
    outputs=st.lists(st.builds(RunOutput, texts, texts, sizes, sizes, sizes, identities, fields), max_size=2).map(tuple),
    breaks=st.lists(notes, max_size=2).map(tuple), batches=batches,
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(runs, max_size=3, unique_by=lambda run: (run.started or "", run.id, run.job)))
def test_round_trip(stated):
    data = encode_runs(stated)
    assert sorted(decode_runs(data), key=repr) == sorted(stated, key=repr)
    assert encode_runs(reversed(stated)) == data


def test_runs_of_no_stream_are_stored_as_before_there_were_batches():
    table = read_parquet(encode_runs([Run("app/1", "etl.py", "complete", "plan")]))
    assert "batches" not in json.loads(table.column("body")[0].as_py())
    (run,) = decode_runs(encode_runs([Run("app/1", "etl.py", "complete", "plan")]))
    assert run.batches is None


def test_garbage():
    with pytest.raises(IntegrityError, match="holds no runs"):
        decode_runs(b"no parquet")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda row, body: row.update(id=b"x"),
        lambda row, body: row.update(job=None),
        lambda row, body: body["inputs"][0].update(dataset=[[]]),
        lambda row, body: body["inputs"][0].update(rows="9"),
        lambda row, body: body["inputs"][0]["identity"].update(digest={}),
        lambda row, body: body["breaks"][0].update(message=None),
        lambda row, body: body.update(config={"a": []}),
    ],
)
def test_values_of_other_types_are_damage(spoil):
    note = Diagnostic("break.rdd", "warning", "m")
    read = RunInput("d", identity=ContentIdentity("listing", None, "x", 1, 1))
    table = read_parquet(encode_runs([Run("r/1", "j", "complete", "plan", inputs=(read,), breaks=(note,))]))
    (row,) = table.to_pylist()
    body = json.loads(row["body"])
    spoil(row, body)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([{**row, "body": json.dumps(body)}]), sink)
    with pytest.raises(IntegrityError, match="holds no runs"):
        decode_runs(sink.getvalue().to_pybytes())
