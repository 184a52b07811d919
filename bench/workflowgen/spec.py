"""Runs what a file describes, and answers deletions of its rows by a replay of the same executions.

A deletion is run again, tracked by nothing: only invocations that the rows reach are evaluated. A row of the outputs
that is still there with its value is kept, with another value recomputed, and deleted otherwise; a row that was not
there before is a gain.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.workflowgen.arms import HandArm, WorkflowArm, run_all
from bench.workflowgen.family import Family, OutputRow, Spec
from govtool.app.workflow_runs.reuse import InvocationCache


class SpecError(Exception):
    """A spec or a deletion that cannot be run."""


def answer(
    family: Family,
    spec: Spec,
    deletions: Sequence[Sequence[str]],
    spark: Any,
    folder: Path,
    arms: Sequence[str],
    store: str | None = None,
) -> dict[str, Any]:
    """Run a spec in each arm, then each deletion.

    Args:
        family: The family of the spec.
        spec: The workflow with its data.
        deletions: Lists of tokens.
        spark: The session.
        folder: Where files go.
        arms: Which arms run; their outputs have to be equal.
        store: The store of the tracked arm.

    Raises:
        SpecError: A token is not there, or outputs of arms differ.
    """
    known = [token for tokens in family.records(spec).values() for token in tokens]
    _check_tokens(known, deletions)
    inputs = folder / "inputs"
    family.write(spec, inputs)
    executions = range(1, len(spec["execs"]) + 1)
    cache = InvocationCache()
    results: dict[str, tuple[int, list[OutputRow]]] = {}
    invocations: dict[str, int] = {}
    for name in arms:
        arm: Any
        if name == "hand":
            arm = HandArm(family, spec, spark, inputs, folder / name)
        else:
            own = store if name == "tracked" else None
            arm = WorkflowArm(family, spec, spark, inputs, folder / name, own, cache if name == "untracked" else None)
        results[name] = run_all(arm, family, executions)
        invocations = getattr(arm, "invocations", invocations) or invocations
    executed, rows = _agreed(results)
    answers = [
        _deletion(family, spec, tokens, spark, folder / f"delete{number}", executed, rows, cache)
        for number, tokens in enumerate(deletions)
    ]
    return {
        "executed": executed,
        "outputs": [_row_object(row) for row in sorted(rows, key=_order)],
        "invocations": dict(sorted(invocations.items())),
        "deletions": answers,
    }


def _check_tokens(known: Sequence[str], deletions: Sequence[Sequence[str]]) -> None:
    twice = sorted({token for token in known if known.count(token) > 1}) if len(set(known)) < len(known) else []
    if twice:
        raise SpecError(f"the token {twice[0]} names several rows")
    for number, tokens in enumerate(deletions, 1):
        for token in tokens:
            if token not in known:
                near = difflib.get_close_matches(str(token), known, 3)
                hint = f"; did you mean {', '.join(near)}?" if near else ""
                raise SpecError(f"deletion {number}: there is no row {token}{hint}")


def _agreed(results: Mapping[str, tuple[int, list[OutputRow]]]) -> tuple[int, list[OutputRow]]:
    """What all arms gave.

    Raises:
        SpecError: They differ.
    """
    (first, (executed, rows)), *others = results.items()
    for name, (count, own) in others:
        if count != executed or sorted(own, key=_order) != sorted(rows, key=_order):
            raise SpecError(f"the outputs of the arms {first} and {name} differ")
    return executed, rows


def _deletion(
    family: Family,
    spec: Spec,
    tokens: Collection[str],
    spark: Any,
    folder: Path,
    executed: int,
    before: Sequence[OutputRow],
    cache: InvocationCache,
) -> dict[str, Any]:
    inputs = folder / "inputs"
    family.write(spec, inputs, frozenset(tokens))
    arm = WorkflowArm(family, spec, spark, inputs, folder / "run", None, cache)
    _, after = run_all(arm, family, range(1, executed + 1), stop=False)
    then = {_key(row): row.value for row in after}
    old = {_key(row) for row in before}
    outputs = [_status(row, then) for row in sorted(before, key=_order)]
    gains = [_row_object(row) for row in sorted(after, key=_order) if _key(row) not in old]
    return {"delete": list(tokens), "outputs": outputs, "gains": gains}


def _status(row: OutputRow, then: Mapping[tuple[Any, ...], Any]) -> dict[str, Any]:
    about = {"exec": row.exec, "relation": row.relation, "key": list(row.key), "before": row.value}
    if _key(row) not in then:
        return {**about, "status": "deleted"}
    value = then[_key(row)]
    return {**about, "status": "kept" if value == row.value else "recomputed", "after": value}


def _key(row: OutputRow) -> tuple[Any, ...]:
    return (row.exec, row.relation, row.key)


def _order(row: OutputRow) -> tuple[Any, ...]:
    return (row.exec, row.relation, json.dumps(row.key), json.dumps(row.value))


def _row_object(row: OutputRow) -> dict[str, Any]:
    return {"exec": row.exec, "relation": row.relation, "key": list(row.key), "value": row.value}


def read_deletions(file: Path) -> Iterator[list[str]]:
    """Lists of tokens, one a line.

    Raises:
        SpecError: A line is something else.
    """
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            tokens = json.loads(line)
        except ValueError:
            tokens = None
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise SpecError(f"{file}:{number}: a list of tokens is needed")
        yield tokens
