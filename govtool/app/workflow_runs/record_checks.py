"""Checks that the record of a workflow run hangs together: what a run always has, and a damaged record has not.

A record names executions, invocations, relations and files. One that lacks some of them would give fewer rows without a
word. So each question about rows asks first whether the parts fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from govtool.errors import GovtoolError, IntegrityError

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.model.workflow_run import ModuleInvocation, WorkflowRun

_MOST = 2**31
"""The most invocations of a module."""
_FORMATS = ("parquet", "csv", "json")
_SHOWN = 200
"""The most characters of a name in a message."""


def require_sound(run: WorkflowRun) -> None:
    """Refuse a record that does not hang together.

    Raises:
        IntegrityError: ``store.corrupt-fragment``, with the first thing that does not fit.
    """
    for check in _CHECKS:
        _refuse_first(run, check(run, _whole(run)))


def require_written(run: WorkflowRun, writes: Iterable[RecordRun]) -> None:
    """Refuse a record that lacks a relation, or files of one, that recorded writes of the run made or read.

    Args:
        run: The run.
        writes: The writes of the workflow; those of other runs may be among them.

    Raises:
        IntegrityError: ``store.corrupt-fragment``.
    """
    _refuse_first(run, _lost(run, writes))


def _lost(run: WorkflowRun, writes: Iterable[RecordRun]) -> Iterator[str]:
    from govtool.app.datasets.places import path_id

    made = {path for each in run.invocations for path in _made(each)}
    before = _state_before(run) - made
    files = {path_id(path): {file.uri for file in each.files} for path, each in run.relations.items()}
    own = {path_id(path): path for path in run.relations if path not in before}
    for write in writes:
        if write.output in own and write.application not in run.applications:
            yield f"{write.application[:_SHOWN]}, which wrote {write.output[:_SHOWN]}, is no application of it"
        if write.output in own and own[write.output] not in made:
            yield f"no invocation made {own[write.output][:_SHOWN]}, which the run wrote"
        if write.output in files:
            for dataset, uri in _files_of(write):
                if dataset in files and uri not in files[dataset]:
                    yield f"a relation lacks the file {uri[:_SHOWN]}"


def _state_before(run: WorkflowRun) -> set[str]:
    """The state that the run began with, which an earlier run made, if there was one."""
    first = min((each.execution for each in run.invocations), default=0)
    return {path for each in run.invocations if each.execution == first for *_, path in each.state}


def _files_of(write: RecordRun) -> Iterator[tuple[str, str]]:
    """The files that a write read and made, with their datasets; none where their list cannot be read."""
    from govtool.app.records.tables import listed_inputs
    from govtool.records.split_plans import relation_of

    try:
        made = relation_of(write.written, write.output)
        leaves = [*listed_inputs(write), *([made] if made is not None else [])]
    except GovtoolError:  # said by whoever needs the plan
        return
    yield from ((leaf.dataset, file.uri) for leaf in leaves for file in leaf.files)


def _refuse_first(run: WorkflowRun, problems: Iterable[str]) -> None:
    for problem in problems:
        raise IntegrityError(
            f"the record of the run {run.id} is damaged: {problem}",
            code="store.corrupt-fragment",
            hint=f"govtool store forget --source 'workflow:{run.workflow}', and run the workflow again",
        )


def _whole(run: WorkflowRun) -> list[ModuleInvocation]:
    return [each for each in run.invocations if each.execution <= run.whole]


def _made(each: ModuleInvocation) -> list[str]:
    return [*(path for _, path in each.outputs), *(path for *_, path in each.new_state)]


def _read(each: ModuleInvocation) -> list[str]:
    return [*(path for _, path, _ in each.inputs), *(path for *_, path in each.state)]


def _names(run: WorkflowRun, whole: Sequence[ModuleInvocation]) -> Iterator[str]:
    """Relations that are named and not there, there and not named, or of a file twice; inputs that nothing made."""
    made: dict[tuple[int, str, str], str] = {}
    for each in whole:
        for name, path, source in each.inputs:
            if source and made.get((each.execution, source, name)) != path:
                yield f"{each.node} has no relation {name[:_SHOWN]!r} of {source[:_SHOWN]!r}"
        for path in (*_read(each), *_made(each)):
            if path not in run.relations:
                yield f"{each.node} has no relation {path[:_SHOWN]!r}"
        made.update(((each.execution, each.node, name), path) for name, path in each.outputs)
    for relation in run.relations.values():
        if relation.format not in _FORMATS:
            yield f"{relation.path[:_SHOWN]} has the format {relation.format[:_SHOWN]!r}"
        if len({file.uri for file in relation.files}) < len(relation.files):
            yield f"{relation.path[:_SHOWN]} has a file twice"
    named = {path for each in run.invocations for path in (*_read(each), *_made(each))}
    yield from (f"no invocation has the relation {path[:_SHOWN]!r}" for path in run.relations if path not in named)


def _executions(run: WorkflowRun, whole: Sequence[ModuleInvocation]) -> Iterator[str]:
    """Executions are consecutive, and one at most is not whole; none of a run that is complete."""
    if not run.applications:
        yield "it names no application"
    numbers = list(dict.fromkeys(each.execution for each in run.invocations))
    if any(later != earlier + 1 for earlier, later in pairwise(numbers)):
        yield f"it has the executions {', '.join(map(str, numbers))[:_SHOWN]}"
    unfinished = sum(number > run.whole for number in numbers)
    if unfinished > (run.status != "complete"):
        yield f"it has {unfinished} executions after the last one, {str(run.whole)[:20]}"
    if run.status == "complete" and numbers and numbers[-1] != run.whole:
        yield f"its last execution is {str(run.whole)[:20]}, and there are invocations up to {numbers[-1]}"


def _invocations(run: WorkflowRun, whole: Sequence[ModuleInvocation]) -> Iterator[str]:
    """Every execution invokes the same nodes in the same order, with the same names, and modules count on."""
    by_execution: dict[int, list[object]] = {}
    counted: dict[str, int] = {}
    for each in whole:
        inputs = tuple((name, source) for name, _, source in each.inputs)
        outputs = tuple(name for name, _ in each.outputs)
        by_execution.setdefault(each.execution, []).append((each.node, each.module, inputs, outputs, each.kept))
        before = counted.get(each.module)
        is_sound = isinstance(each.number, int) and 0 < each.number <= _MOST
        if not is_sound or (before is not None and each.number != before + 1):
            yield f"{each.node} has the number {str(each.number)[:20]}"
        counted[each.module] = each.number
    executions = list(by_execution.items())
    for (earlier, first), (later, second) in pairwise(executions):
        if first != second:
            yield f"executions {earlier} and {later} have other invocations or relations"


def _edges(run: WorkflowRun, whole: Sequence[ModuleInvocation]) -> Iterator[str]:
    """What nodes receive of each other is what the edges say; a node whose outputs nobody reads keeps them all."""
    received = {(source, each.node, name) for each in whole for name, _, source in each.inputs if source}
    if whole and received != set(run.edges):
        source, target, name = sorted(received ^ set(run.edges))[0]
        yield f"its edges and its invocations differ in {source}.{name} to {target}"[:_SHOWN]
    read = {(source, name) for source, _, name in run.edges}
    for each in whole:
        names = {name for name, _ in each.outputs}
        unread = {name for name in names if (each.node, name) not in read}
        if not unread <= set(each.kept) <= names:
            yield f"{each.node} made {', '.join(sorted(names))} and kept {', '.join(each.kept)}"[:_SHOWN]


def _state(run: WorkflowRun, whole: Sequence[ModuleInvocation]) -> Iterator[str]:
    """State has one slot for each name, is read wherever it is declared, and what is read is what was written last."""
    slots: dict[str, dict[str, str]] = {}
    for each in whole:
        for name, slot, _ in (*each.state, *each.new_state):
            known_slot = slots.setdefault(each.node, {}).setdefault(name, slot)
            if slot != known_slot or "." in name or slot not in (name, f"{each.module}.{name}"):
                yield f"the state {name[:_SHOWN]} of {each.node} is {slot[:_SHOWN]}"
    known: dict[str, str] = {}
    for each in whole:
        read = {slot: path for _, slot, path in each.state}
        for slot in {*read, *slots.get(each.node, {}).values()} & {*read, *known}:
            if read.get(slot) != known.setdefault(slot, read.get(slot, "")):
                yield f"{each.node} read a state of {slot[:_SHOWN]} that was not the last one"
        known.update((slot, path) for _, slot, path in each.new_state)


def _repeated(run: WorkflowRun, whole: Sequence[ModuleInvocation]) -> Iterator[str]:
    """Nothing is listed twice."""
    if len(set(run.applications)) < len(run.applications) or len(set(run.edges)) < len(run.edges):
        yield "an application or an edge is there twice"
    for each in whole:
        for names in (each.inputs, each.state, each.new_state, each.outputs):
            if len({name for name, *_ in names}) < len(names):
                yield f"{each.node} has a relation twice"


_CHECKS: tuple[Callable[[WorkflowRun, Sequence[ModuleInvocation]], Iterator[str]], ...] = (
    _names,
    _executions,
    _invocations,
    _edges,
    _state,
    _repeated,
)
