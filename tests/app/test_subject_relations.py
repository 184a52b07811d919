"""Which datasets of recorded runs a subject's relation means."""

from __future__ import annotations

import pytest

from govtool.app.erasure.keys import datasets_without_subject
from govtool.app.erasure.relations import WorkflowRelation
from govtool.errors import AmbiguousNameError

INPUTS = {"file:///w/in/1/Moves.csv": None, "file:///w/in/2/Moves.csv": None}
PASSED_ON = "file:///w/state/1/fix/Moves"
RELATIONS = (WorkflowRelation("w", "Moves", INPUTS),)


class Chain:
    """Datasets of runs, and the run that wrote some."""

    def __init__(self, made, *others):
        self._made, self._others = made, others

    def datasets(self):
        return dict.fromkeys([*INPUTS, *self._made, *self._others])

    def made(self):
        return self._made


def test_an_input_is_meant_and_not_what_is_passed_on_under_its_name():
    found = datasets_without_subject(Chain({PASSED_ON: "run"}), ["Moves"], [], RELATIONS)
    assert list(found) == list(INPUTS)


def test_another_input_of_that_name_is_not_passed_over():
    chain = Chain({PASSED_ON: "run"}, "file:///lake/Moves")
    with pytest.raises(AmbiguousNameError, match="3 datasets"):
        datasets_without_subject(chain, ["Moves"], [], RELATIONS)
