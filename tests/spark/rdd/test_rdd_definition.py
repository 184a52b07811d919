"""Traces of random programs are those of the definition. ``RDD_PROGRAMS=200 RDD_SEED=0`` runs more of them."""

from __future__ import annotations

import os

import pytest
import rdd_differential

FIRST = int(os.environ.get("RDD_SEED", "2"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("RDD_PROGRAMS", "3")))


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_of_a_random_program_are_those_of_the_definition(lineage, tmp_path, seed):
    rdd_differential.ship()
    rdd_differential.check(seed, lineage, tmp_path)
