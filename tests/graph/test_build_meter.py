"""Progress of building an index: it only grows, ends whole, and gives each part the share that it takes."""

from __future__ import annotations

from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.graph.builder.meter import BuildMeter


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 50_000_000), max_size=6), st.integers(0, 1_000_000))
def test_it_never_runs_back_and_ends_whole(sizes, derivations):
    told = []
    meter = BuildMeter(lambda done, total: told.append((done, total)), sizes, derivations)
    for number in range(len(sizes)):
        for share in (0.5, 1.0):
            meter.read(number, share)
    for share in (0.25, 1.0):
        meter.stepped(share)
    done = [each for each, _ in told]
    assert done == sorted(done)
    assert {total for _, total in told} == {max(1000, derivations)} == {told[-1][0]}


def test_many_small_fragments_are_reading_and_a_large_one_is_steps():
    def read(sizes):
        told = []
        meter = BuildMeter(lambda done, total: told.append(done / total), sizes)
        meter.read(len(sizes) - 1, 1.0)
        return told[-1]

    assert read([11_000] * 400) > 0.95
    assert 0.2 < read([10_000_000] * 3) < 0.3
    assert read([10_000_000, 11_000]) > 0.1  # not half of it at the first
