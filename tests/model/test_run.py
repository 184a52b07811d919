"""Runs to Parquet and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.errors import IntegrityError
from govtool.model import Diagnostic
from govtool.model.run import Run, RunInput, RunOutput, Software, decode_runs, encode_runs
from govtool.model.version import ContentIdentity

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
maybe = st.none() | texts
sizes = st.none() | st.integers(0, 2**40)
identities = st.none() | st.builds(ContentIdentity, texts, sizes, texts, st.integers(0, 9), st.integers(0, 9))
fields = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
notes = st.builds(Diagnostic, texts, texts, texts, maybe, sizes, sizes, maybe, st.lists(texts, max_size=2).map(tuple))
runs = st.builds(
    Run,
    id=texts, job=texts, status=texts, how=texts, source=texts, application=texts, user=texts, started=maybe,
    ended=maybe, error=texts, host=texts, plan=texts,
    software=st.lists(st.builds(Software, texts, texts), max_size=2).map(tuple),
    config=st.dictionaries(texts, texts, max_size=2),
    inputs=st.lists(st.builds(RunInput, texts, sizes, sizes, sizes, identities, fields), max_size=2).map(tuple),
    outputs=st.lists(st.builds(RunOutput, texts, texts, sizes, sizes, sizes, identities, fields), max_size=2).map(tuple),
    breaks=st.lists(notes, max_size=2).map(tuple),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(runs, max_size=3, unique_by=lambda run: (run.started or "", run.id, run.job)))
def test_round_trip(stated):
    data = encode_runs(stated)
    assert sorted(decode_runs(data), key=repr) == sorted(stated, key=repr)
    assert encode_runs(reversed(stated)) == data


def test_garbage():
    with pytest.raises(IntegrityError, match="holds no runs"):
        decode_runs(b"no parquet")
