"""Traces of generated programs are those of the definition. ``RDD_PROGRAMS=200 RDD_SEED=0`` runs more of them."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
import rdd_reference as ref
from rdd_programs import generated

FIRST = int(os.environ.get("RDD_SEED", "1"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("RDD_PROGRAMS", "3")))


def tokens(position, sources):
    """The tokens of a position at the sources, as the reference writes them."""
    names = {rdd._node.label + str(rdd._node.number): name for name, rdd in sources}
    found = set()
    for place in position.places():
        name = names[place.node.label + str(place.node.number)]
        offsets = [0]
        for part in place.node.rdd.glom().map(len).collect():
            offsets.append(offsets[-1] + part)
        ids = [row[0] for row in place.rows.collect()]
        assert len(ids) == len(set(ids))
        found |= {(name, offsets[partition] + ordinal) for partition, ordinal in ids}
    return found


def some(values, random_):
    values = sorted(values, key=repr)
    return random_.sample(values, min(2, len(values)))


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_of_a_generated_program_are_those_of_the_definition(lineage, seed):
    sources, tracked, expected, steps = generated(seed, lineage)
    assert Counter(tracked.collect()) == Counter(each.value for each in expected), steps
    random_ = random.Random(seed)
    for value in some({each.value for each in expected}, random_):
        selected = tracked.get_lineage().where(lambda each, value=value: each == value)
        back = selected.go_back_all()
        assert (back.exactness, back.reasons) == ("exact", []), steps
        assert tokens(back, sources) == ref.back(expected, value), (steps, value)
        # One boundary at a time is the same way.
        stepped = selected
        for _ in range(len(steps) * 2 + 2):
            stepped = stepped.go_back()
        assert tokens(stepped, sources) == ref.back(expected, value), (steps, value)
        # On from all source records behind it: every result that one of them reached.
        reached = Counter()
        for each in expected:
            if each.tokens & ref.back(expected, value):
                reached[each.value] += 1
        assert Counter(back.go_next_all().collect()) == reached, (steps, value)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_source_record_reaches_the_results_of_the_definition(lineage, seed):
    sources, tracked, expected, steps = generated(seed, lineage)
    tracked.count()
    token = next(iter(sorted(ref.together(expected))), None)
    if token is None:
        return
    rdd = dict(sources)[token[0]]
    ordered = [row for part in rdd.rdd.glom().collect() for row in part]
    twins = {(token[0], number) for number, value in enumerate(ordered) if value == ordered[token[1]]}
    start = rdd.get_lineage().where(lambda each, value=ordered[token[1]]: each == value)
    reached = Counter(each.value for each in expected if each.tokens & twins)
    assert Counter(start.go_next_all().at(tracked).collect()) == reached, (steps, token)
