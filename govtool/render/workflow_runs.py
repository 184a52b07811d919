"""Runs of workflows: a list, and one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.render.layout.rows import DATA_FORMATS, ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count, printable, when
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.workflow_graph import UnlistedGraphs
    from govtool.answers.workflow_runs import UnlistedRuns, WorkflowRunAnswer, WorkflowRunsAnswer

FORMATS = ROW_FORMATS
_FEW = 5
"""Runs that a line names."""
_STYLES = {"complete": "green", "failed": "red", "aborted": "red"}


def render_workflow_runs(form: str, answer: WorkflowRunsAnswer) -> Table | Iterable[str]:
    """A list of runs in one of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer, answer.summaries())
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
            (run.status, when(run.started), run.workflow, run.id, _spans(run.executions) or "none", run.mode)
            for run in answer.runs
        ],
        summary=count(len(answer.runs), "run")
        + (f" · {answer.truncated:,} not shown (--all)" if answer.truncated else "")
        + _forgotten(answer)
        + _damaged(answer),
        row_styles=[_STYLES.get(run.status, "") for run in answer.runs],
    )
    return laid_out(form, table)


def _forgotten(answer: WorkflowRunsAnswer) -> str:
    """A line that names the shown runs whose private values were removed."""
    names = [printable(run.id) for run in answer.runs if run.id in answer.forgotten]
    return (
        f"\nprivate values removed by store forget, so that rows cannot be traced: {few(names, _FEW)}" if names else ""
    )


def _damaged(answer: WorkflowRunsAnswer) -> str:
    """A line for everything that is not listed because it cannot be read, with what to do about it."""
    named = ((f"{each.workflow} {each.id}" if each.id else "recorded programs", each) for each in answer.damaged)
    return "".join(f"\n{line}" for whose, each in named for line in unlisted_lines(whose, each))


def unlisted_lines(name: str, each: UnlistedRuns | UnlistedGraphs) -> Iterator[str]:
    """What is called so is not listed: why, and below it what to do about it."""
    yield f"not listed: {printable(name)} · {printable(each.reason)} · {printable(each.object)}"
    if each.hint:
        yield f"  {printable(each.hint)}"


def render_workflow_run(form: str, answer: WorkflowRunAnswer) -> Table | Iterable[str]:
    """One run in one of ``FORMATS``."""
    if form in DATA_FORMATS:
        return data_lines(form, answer)
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
    table = Table(tuple(map(TableColumn, titles)), rows, heading, summary, names=2)
    return laid_out(form, table)


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
