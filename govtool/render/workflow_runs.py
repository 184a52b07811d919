"""Runs of workflows: a list, and one run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.answers.workflow_runs import run_summary
from govtool.render.envelope import compact, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count, when

if TYPE_CHECKING:
    from govtool.answers.answer import Answer
    from govtool.answers.workflow_runs import WorkflowRunAnswer, WorkflowRunsAnswer

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_STYLES = {"complete": "green", "failed": "red", "aborted": "red"}


def render_workflow_runs(form: str, answer: WorkflowRunsAnswer) -> Table | Iterable[str]:
    """A list of runs in one of ``FORMATS``."""
    if form == "jsonl":
        return (compact(run_summary(run)) for run in answer.runs)
    table = Table(
        columns=(
            TableColumn("status"),
            TableColumn("started"),
            TableColumn("workflow", style="bold"),
            TableColumn("run", style="yellow"),
            TableColumn("executions"),
            TableColumn("captured"),
        ),
        rows=[
            (run.status, when(run.started), run.workflow, run.id, _spans(run.executions), run.mode)
            for run in answer.runs
        ],
        summary=count(len(answer.runs), "run")
        + (f" · {answer.truncated:,} not shown (--all)" if answer.truncated else ""),
        row_styles=[_STYLES.get(run.status, "") for run in answer.runs],
    )
    return _rendered(form, answer, table)


def render_workflow_run(form: str, answer: WorkflowRunAnswer) -> Table | Iterable[str]:
    """One run in one of ``FORMATS``."""
    if form == "jsonl":
        return (compact(dict(zip(answer.fields, row, strict=True))) for row in answer.rows())
    run = answer.run
    rows = [
        (
            str(execution) + ("" if whole else " (lost)"),
            str(invocation),
            str(node),
            _names(inputs),
            _names(state),
            _names(new_state),
            _names(outputs),
        )
        for execution, invocation, node, inputs, state, new_state, outputs, whole in answer.rows()
    ]
    titles = ("execution", "invocation", "node", "received", "state read", "state changed", "made")
    done = f"{count(len(run.executions), 'execution')}: {_spans(run.executions)}" if run.executions else "no execution"
    error = f"\n{run.error}" if run.error else ""
    heading = f"{run.id} · {run.status} · {done} · captured: {run.mode}{error}"
    summary = count(len(run.invocations), "invocation") + (f" · state in {answer.state}" if answer.state else "")
    table = Table(tuple(map(TableColumn, titles)), rows, heading, summary)
    return _rendered(form, answer, table)


def _rendered(form: str, answer: Answer, table: Table) -> Table | Iterable[str]:
    if form == "json":
        return json_lines(answer.to_dict())
    if form == "csv":
        return to_csv(answer.fields, (tuple(map(_text, row)) for row in answer.rows()))
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _text(cell: object) -> str:
    return " ".join(cell) if isinstance(cell, tuple) else "" if cell is None else str(cell)


def _names(cell: object) -> str:
    return ", ".join(cell) if isinstance(cell, tuple) else str(cell)


def _spans(numbers: tuple[int, ...]) -> str:
    """``1-3, 5`` of 1, 2, 3, 5."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)
