"""An overwrite of partitions in a session that replaces only those that come."""

from __future__ import annotations

import pytest

from govtool.capture.spark.analyzed.read import read_plan
from govtool.capture.spark.live.commands import OVERWRITES, written_by


@pytest.mark.parametrize(
    ("partitioned", "settings", "begun", "mode"),
    [
        (["day"], {OVERWRITES: "dynamic"}, "STATIC", "append"),
        (["day"], {OVERWRITES: "static"}, "DYNAMIC", "replace"),
        (["day"], None, "DYNAMIC", "append"),
        (["day"], None, "STATIC", "replace"),
        ([], {OVERWRITES: "dynamic"}, "STATIC", "replace"),
    ],
)
def test_the_setting_of_the_session_counts(partitioned, settings, begun, mode):
    plan = [{"c": "InsertIntoHadoopFsRelationCommand", "n": 1, "query": 0}, {"c": "OneRowRelation", "n": 0}]
    facts = {"path": "file:/out", "mode": "Overwrite", "columns": ["a"], "partitioned": partitioned}
    line = {"plan": plan, "command": facts, "settings": settings}
    written = written_by(line, read_plan(line), begun)
    assert written is not None
    assert written.mode == mode
