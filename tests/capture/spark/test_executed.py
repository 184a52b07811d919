"""What one action did, whatever told it."""

from __future__ import annotations

import dataclasses

import pytest

from govtool.capture.spark.executed import Executed, attempted, moment, named, outcome_of
from govtool.model import ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, Statement
from govtool.model.run import Run

STATEMENT = Statement("f", "insert", "spark", "", how="plan")


def made(mode="replace", *kinds, target="lake.mail", notes=()):
    edges = tuple(Edge(ColumnRef("crm.users", "email"), "email", kind) for kind in kinds)
    return Derivation(target, "table", mode, STATEMENT, edges=edges, diagnostics=notes)


@pytest.mark.parametrize(
    ("stated", "ignored", "outcome"),
    [
        (made("replace", EdgeKind.IDENTITY), False, "understood"),
        (made("replace", EdgeKind.IDENTITY, EdgeKind.OPAQUE), False, "understood"),
        (made("replace", EdgeKind.OPAQUE), False, "opaque"),  # whatever its status says
        (None, False, "opaque"),
        (None, True, "ignored"),
        (made("replace", EdgeKind.IDENTITY), True, "ignored"),
    ],
)
def test_how_far_an_action_was_understood(stated, ignored, outcome):
    assert outcome_of(stated, ignored=ignored) == outcome


@pytest.mark.parametrize(
    ("seconds", "stated"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250Z"),
        (-1, None),
        (253_402_300_800, None),
        (float("nan"), None),
        ("1700000000", None),
        (None, None),
    ],
)
def test_times_of_logs_that_are_none(seconds, stated):
    assert moment(seconds) == stated


def test_a_run_that_failed_replaced_nothing():
    tried = attempted(made("replace", EdgeKind.IDENTITY), "failed")
    assert (tried.mode, tried.status, [note.code for note in tried.diagnostics]) == (
        "append",
        "partial",
        ["failed-run"],
    )
    assert tried.diagnostics[0].message == "a write failed"
    assert attempted(made("delete"), "running").mode == "delete"


def test_the_name_of_a_job_is_told_at_the_end_and_nothing_else_changes():
    note = Diagnostic("break.rdd", "warning", "an RDD", "", None)
    run = Run("app/1", "", "complete", "plan", breaks=(note,))
    view = made("replace", target="lake.seen")
    executed = Executed(run, "lake.mail", made("replace", EdgeKind.IDENTITY, notes=(note,)), "partial", views=(view,))
    done = named(executed, "mail.py", "prod")
    assert (done.run.job, done.run.source) == ("mail.py:lake.mail", "prod")
    assert done.run.breaks == (dataclasses.replace(note, file="mail.py", target="lake.mail"),)
    assert {d.statement.file for d in (done.derivation, *done.views)} == {"mail.py"}
    assert {d.statement.source for d in (done.derivation, *done.views)} == {"prod"}
    assert done.derivation.diagnostics == (dataclasses.replace(note, file="mail.py", line=1),)
    assert (executed.run.job, executed.derivation.statement.file) == ("", "")
    assert named(dataclasses.replace(executed, target="query:abc"), "mail.py", "prod").run.job == "mail.py"
