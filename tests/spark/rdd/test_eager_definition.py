"""Kept positions of generated programs are the traces of the definition. ``RDD_PROGRAMS=200 RDD_SEED=0``: more."""

from __future__ import annotations

import os

import numpy as np
import pytest
import rdd_reference as ref
from rdd_programs import generated

from govtool.app.rdd.opened_positions import RESULT, OpenedPositions
from govtool.app.rdd.positions import KeptPlace, KeptRecords
from govtool.model.positions import decode_positions, encode_positions, from_packed
from govtool.model.records import RecordRun
from govtool.spark.rdd import eager, worker
from govtool.spark.rdd.log import ancestors

FIRST = int(os.environ.get("RDD_SEED", "1"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("RDD_PROGRAMS", "2")))


def _opened(node):
    """The positions of a node, after a way through the form in which a store has them."""
    found = eager.positions(node, True)
    facts = {
        "tables": [[table.node, table.stop, table.exactness, table.reason] for table in found.tables],
        "coarse": found.coarse,
        "texts": [],
    }
    stored = decode_positions(encode_positions(from_packed(facts, [table.pairs for table in found.tables])))
    labels = {each.number: each.label for each in ancestors((node,))}
    run = RecordRun("app/1", "", "", (), "")
    return OpenedPositions(run, stored, labels, {}, None, (), found.texts, None)


@pytest.mark.parametrize("seed", SEEDS)
def test_positions_of_a_generated_program_are_the_traces_of_the_definition(lineage, seed):
    sources, tracked, expected, steps = generated(seed, lineage)
    names = {rdd._node.number: name for name, rdd in sources}
    opened = _opened(tracked._node)
    assert set(opened.texts[RESULT].values()) == {worker.shown(each.value) for each in expected}, steps
    for text in {worker.shown(each.value) for each in expected}:
        alike = [each for each in expected if worker.shown(each.value) == text]
        start = KeptRecords(opened, (KeptPlace(RESULT, np.array([eager.text_id(text)])),))
        back = start.go_back_all()
        found = {(names[place.node], int(number)) for place in back.places for number in place.ids}
        assert found == ref.together(alike), (steps, text)
        assert {place.exactness for place in back.places} <= {"exact"}, steps
        reached = {text for place in back.go_next_all().places for text in map(opened.texts[RESULT].get, place.ids)}
        wanted = {worker.shown(each.value) for each in expected if each.tokens & ref.together(alike)}
        assert reached == wanted, (steps, text)
