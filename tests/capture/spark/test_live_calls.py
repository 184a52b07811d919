"""Procedures that a live session calls: they have a name and an argument, and no plan."""

from __future__ import annotations

import pytest

from govtool.capture.spark.live.executions import LiveInterpreter
from govtool.capture.spark.live.spool import Process


def called(**facts):
    """The one action of a process that called a procedure, as the recorder writes it down."""
    line = {
        "e": "execution",
        "n": 1,
        "name": "call",
        "ok": True,
        "session": "s",
        "application": "app",
        "started": 1.0,
        "ended": 2.0,
    }
    (executed,) = LiveInterpreter(Process("1", executions=[{**line, **facts}]), "live").actions()
    return executed


def test_a_rollback_is_a_break_of_the_table():
    executed = called(command={"does": "call", "procedure": "rollback_to_snapshot", "table": ["lake", "db", "users"]})
    assert [(output.dataset, output.mode) for output in executed.run.outputs] == [("lake.db.users", "restore")]
    assert [note.code for note in executed.run.breaks] == ["break.restored"]
    assert executed.run.status == "complete"


@pytest.mark.parametrize("facts", [{}, {"command": {}}, {"command": {"does": ""}}])
def test_what_has_neither_plan_nor_command_is_a_break(facts):
    assert [note.code for note in called(**facts).run.breaks] == ["break.plan"]
