"""Runs as text: what was recorded of an output, and how outputs were compared."""

from __future__ import annotations

from govtool.answers.run_diff import RunDiffAnswer
from govtool.answers.runs import RunAnswer, RunsAnswer
from govtool.model.run import Run, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.runs.diff import diff_runs
from govtool.query.runs.history import History
from govtool.render.runs import render_run, render_run_diff, render_runs


def a_run(number, output):
    return Run(f"app/{number}", "job", "complete", "plan", outputs=(output,))


def test_a_run_has_the_digest_of_its_rows():
    answer = RunAnswer(None, a_run(1, RunOutput("out", "append", row_digest="rows-1:2:ab")), (), {})
    lines = [line.split(",") for line in render_run("csv", answer)]
    assert ["digest", "out", "rows-1:2:ab"] in lines
    (without,) = a_run(1, RunOutput("out", "append")).outputs
    lines = [line.split(",") for line in render_run("csv", RunAnswer(None, a_run(1, without), (), {}))]
    assert "digest" not in [line[0] for line in lines]


def test_outputs_that_cannot_be_compared_have_the_reason():
    for contents, expected in (
        ((None, None), "the content was not recorded"),
        (("a", "b"), "the files differ, and the rows were not digested"),
        (("a", "a"), "by the content of the files"),
    ):
        outputs = [RunOutput("out", content=text and ContentIdentity("content", None, text, 1, 1)) for text in contents]
        runs = [a_run(number, output) for number, output in enumerate(outputs)]
        answer = RunDiffAnswer(None, diff_runs(History(runs), *runs))
        rows = render_run_diff("table", answer, explain=True).rows
        assert expected in [row[-1] for row in rows]


def test_numbers_of_a_list_of_runs_are_plain_in_csv():
    (_, line) = render_runs("csv", RunsAnswer(None, (a_run(1, RunOutput("out", "append", rows=1234)),), 1))
    assert line.rstrip().endswith("out,1234")
