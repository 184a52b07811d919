"""Rows that went to the driver: what a program did with them is not in its plans.

A total that a program collects and compares with is a constant of later plans. No deletion reaches it there. Where a
plan has just a value that was collected, and that changes, what it made is not known. Nor is it known what a program
wrote if its code shows that collected rows, which change, may have decided whether it did, or what it wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from govtool.app.workflow_runs.programs.actions import SQL_SOURCE, WORKFLOW_SOURCE
from govtool.app.workflow_runs.programs.driver_code import UNKNOWN, HangingWrites, hanging_writes
from govtool.app.workflow_runs.programs.layout import ProgramLayout
from govtool.model.run import Run
from govtool.records.plan.expressions import AggregateCall, Literal
from govtool.records.plan.nodes import LocalRows, Plan
from govtool.records.plan.tree import Term, walk, walk_nodes
from govtool.wording import few

ChangedCells = Callable[[str, bool], Iterable[object]]
"""The cells of the rows of a collected query that a deletion changes; of all its rows, where none is certain. A None
comes first where anything changes or rows may come."""
WritesThatHang = Callable[[str], HangingWrites]
"""The writes of an application that hang on what it collected."""
_SCRIPT = "script:"
_CODE = (_SCRIPT, "module:", "py-file:")
_CONSTANT = "a constant that it was made with is a value that the program collected ({}), and that changes"
_DECIDED = "the program may have decided with what it collected ({}), and that changes, whether to write it, or what"
_NO_CODE = (
    "the program collected rows that change ({}) before it wrote this, and its code, as it ran, is not found below the"
    " working folder, or does not show what it did with them"
)


def queries_before(layout: ProgramLayout, judged: Collection[str]) -> list[str]:
    """The paths of the queries whose rows a program had before it made what a question is about."""
    last = max((at for at, path in layout.outputs.items() if path in judged), default=-1)
    return [path for at, path in layout.outputs.items() if at < last and not layout.program.actions[at].output]


@dataclass(frozen=True, slots=True)
class ByCollected:
    """What collected rows that change may decide.

    Attributes:
        reasons: Why it is not known what is made, by path: of relations, and of those made of them.
        notes: Of writes that were not done, and may be.
    """

    reasons: Mapping[str, str]
    notes: tuple[str, ...]


def made_with_collected(layout: ProgramLayout, changed: ChangedCells, hanging: WritesThatHang) -> ByCollected:
    """What collected rows that change may decide.

    Args:
        layout: The program.
        changed: The cells of a query, by its path, that a deletion changes; None in front if anything does.
        hanging: Gives the writes of an application that hang on what it collected.
    """
    found: dict[str, str] = {}
    collected: dict[str, dict[object, str]] = {}
    deciding: dict[str, str] = {}
    for each, action, plan in zip(layout.run.invocations, layout.program.actions, layout.plans, strict=True):
        values = collected.setdefault(action.application, {})
        reasons = [found[path] for _, path, _ in each.inputs if path in found]
        if values and plan is not None:
            reasons += [_CONSTANT.format(values[value]) for value in _constants(plan) if value in values]
        query = deciding.get(action.application, "")
        if query and action.output and not reasons:
            reasons += _decided(hanging(action.application), action.output, query)
        for _, path in each.outputs:
            if reasons:
                found[path] = reasons[0]
            if not action.output:
                cells = list(changed(path, bool(reasons)))
                if cells:
                    deciding.setdefault(action.application, each.module)
                values.update(dict.fromkeys(filter(_is_number_or_text, cells), each.module))
    return ByCollected(found, tuple(_may_come(layout, deciding, hanging)))


def _may_come(layout: ProgramLayout, deciding: Mapping[str, str], hanging: WritesThatHang) -> Iterator[str]:
    for application, query in deciding.items():
        done = [each.output for each in layout.program.actions if each.application == application and each.output]
        left = hanging(application).not_among(done)
        if left:
            yield f"the program may also write {few(left)}, as it decides about that with what it collected ({query})"


def _decided(writes: HangingWrites, output: str, query: str) -> list[str]:
    """Why it is not known whether a program would write what it wrote."""
    if writes is UNKNOWN:
        return [_NO_CODE.format(query)]
    return [_DECIDED.format(query)] if writes.has(output) else []


def written_by_code(runs_of: Callable[[str], Sequence[Run]], folder: Path) -> WritesThatHang:
    """The writes that hang on collected rows, of each application, by its code.

    Args:
        runs_of: Gives the runs of an application.
        folder: Where, and below which, files of the code as it ran are looked for.
    """
    files: dict[str, str] = {}

    @cache
    def writes(application: str) -> HangingWrites:
        if not files:
            files.update(_sources(folder))
        return _writes_of(runs_of(application), files)

    return writes


def _writes_of(runs: Sequence[Run], files: Mapping[str, str]) -> HangingWrites:
    if any(run.source.startswith((SQL_SOURCE, WORKFLOW_SOURCE)) for run in runs):
        return HangingWrites()  # no code of a driver decides anything there
    wanted = {each for run in runs for each in run.software if each.name.startswith(_CODE)}
    if not any(each.name.startswith(_SCRIPT) for each in wanted) or any(each.version not in files for each in wanted):
        return UNKNOWN
    return hanging_writes([files[digest] for digest in sorted({each.version for each in wanted})])


def _sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Python files in a folder and below: digest and text."""
    from govtool.app.records.engines import own_files

    for file in own_files(folder):
        with suppress(OSError, UnicodeDecodeError):
            content = file.read_bytes()
            yield hashlib.sha256(content).hexdigest(), content.decode("utf-8-sig")


def _constants(plan: Plan) -> Iterator[object]:
    """The numbers and texts of a plan, those in rows that the driver held among them."""
    for node in walk_nodes(plan.root):
        literals = [each.value for term in node.terms() for each in walk(term) if isinstance(each, Literal)]
        cells = [cell for row in node.rows for cell in row] if isinstance(node, LocalRows) else []
        yield from filter(_is_number_or_text, (*literals, *cells))


def _is_number_or_text(value: object) -> bool:
    """Whether a value is a number or a text: two of these that are equal may well be one."""
    return isinstance(value, (int, float, Decimal, str)) and not isinstance(value, bool) and value != ""


def has_constants(plan: Plan | None) -> bool:
    """Whether something in a plan may come from the driver; of a plan that cannot be read, it is not known."""
    if plan is None:
        return True
    return any(isinstance(node, LocalRows) or _has_literal(node.terms()) for node in walk_nodes(plan.root))


def _has_literal(terms: Sequence[Term]) -> bool:
    """Whether terms have a literal, apart from the 1 of ``count(*)``."""
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if isinstance(term, Literal):
            return True
        if not (isinstance(term, AggregateCall) and term.name == "count"):
            waiting.extend(term.terms())
    return False
