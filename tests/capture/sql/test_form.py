"""Which form of the extractor these tests run on: GOVTOOL_FORM says which one they are meant to."""

from __future__ import annotations

import os

import govtool.capture.sql.walk.state as state
from govtool.form import COMPILED, PURE, form


def test_the_form_that_is_tested_is_the_one_that_is_meant():
    assert form() == os.environ.get("GOVTOOL_FORM", PURE)
    assert (form() == COMPILED) == (not state.__file__.endswith(".py"))
