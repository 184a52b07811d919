"""What an engine has against a recorded plan is an error of its own, with a code."""

from __future__ import annotations

import pytest

from govtool.app.workflow_runs.opened import engine_errors
from govtool.errors import EngineError
from govtool.records.sql.dialect import NotExact


def test_a_plan_that_no_engine_evaluates_exactly():
    """Such as one with a column of a type that DuckDB does not have."""
    with pytest.raises(EngineError, match="values of type") as refused, engine_errors():
        raise NotExact("values of type {'type': 'udt'}")
    assert refused.value.code == "engine.not-exact"
