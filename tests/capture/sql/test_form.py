"""Which form of the extractor these tests run on: GOVTOOL_FORM says which one they are meant to."""

from __future__ import annotations

import os
import pickle

import govtool.capture.sql.walk.state as state
from govtool.build_form import COMPILED, PURE, form
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script


def test_the_form_that_is_tested_is_the_one_that_is_meant():
    assert form() == os.environ.get("GOVTOOL_FORM", PURE)
    assert (form() == COMPILED) == (not state.__file__.endswith(".py"))


def test_options_go_to_other_processes():
    options = Options(dialect="snowflake", default_schema="s", variables={"day": "2024-01-01"}, keep_literals=True)
    assert pickle.loads(pickle.dumps(options)) == options
    assert pickle.loads(pickle.dumps(options)) != Options(dialect="snowflake")


def test_what_two_arms_say_alike_is_said_once():
    [derivation] = extract([Script("a.sql", "SELECT * FROM x UNION ALL SELECT * FROM x")], Options()).derivations
    assert [note.code for note in derivation.diagnostics] == ["star-unresolved"]
