"""Tests with published jars run where ``scripts/test-maven`` runs them: each with the Spark that it is marked with."""

from __future__ import annotations

import pytest
from published import SPARKS, Unreachable, paths


def pytest_collection_modifyitems(config, items):
    """Tests marked ``maven("delta")`` belong to the Spark that Delta has a jar for; with another they are left out."""
    version = _pyspark()
    kept, left = [], []
    for item in items:
        marker = item.get_closest_marker("maven")
        wanted = {SPARKS[name] for name in marker.args if name in SPARKS} if marker is not None else set()
        (left if wanted and version not in wanted else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _pyspark() -> str:
    try:
        from pyspark.version import __version__
    except ImportError:
        return ""
    return __version__


@pytest.fixture(scope="session")
def jars():
    """``jars("delta", "openlineage")``: the paths of published jars; the test is skipped where they cannot be had."""

    def found(*names):
        try:
            return [path for name in names for path in paths(name)]
        except Unreachable as error:
            pytest.skip(str(error))

    return found
