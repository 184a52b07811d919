"""Inputs on which a reader failed once, found by ``scripts/fuzz``: none fails again."""

from __future__ import annotations

import pytest

from bench.fuzz.run import KEPT, target_run
from bench.fuzz.targets import TARGETS

FOUND = [(target, path) for target in TARGETS for path in sorted((KEPT / target.name).glob("*"))]


@pytest.mark.parametrize(("target", "path"), FOUND, ids=[f"{target.name}-{path.name}" for target, path in FOUND])
def test_what_failed_once_is_read_or_refused(target, path):
    target_run(target, path.read_bytes())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_reads_its_sound_inputs(target):
    if target.name in ("fragment", "recorded", "traces"):
        pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    corpus = target.corpus()
    assert corpus
    target_run(target, corpus[0])
