"""Rows that went to the driver: what a program did with them is not in its plans.

A total that a program collects and compares with is a constant of later plans. No deletion reaches it there. Where a
plan has just a value that was collected, and that changes, what it made is not known; of other constants, which may be
computed from such values, an answer says which plans have some.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal

from govtool.app.workflow_runs.programs.layout import ProgramLayout
from govtool.app.workflow_runs.without_records import required_for
from govtool.records.plan.expressions import AggregateCall, Literal
from govtool.records.plan.nodes import LocalRows, Plan
from govtool.records.plan.tree import Term, walk, walk_nodes
from govtool.wording import few

ChangedCells = Callable[[str, bool], Iterable[object]]
"""The cells of the rows of a collected query that a deletion changes; of all its rows, where none is certain."""


def queries_before(layout: ProgramLayout, judged: Collection[str]) -> list[str]:
    """The paths of the queries whose rows a program had before it made what a question is about."""
    last = max((at for at, path in layout.outputs.items() if path in judged), default=-1)
    return [path for at, path in layout.outputs.items() if at < last and not layout.program.actions[at].output]


def made_with_collected(layout: ProgramLayout, changed: ChangedCells) -> dict[str, str]:
    """Relations whose plans have a constant that was collected and changes, and those made of them: the query, by path.

    Args:
        layout: The program.
        changed: The cells of a query, by its path, that a deletion changes.
    """
    found: dict[str, str] = {}
    collected: dict[str, dict[object, str]] = {}
    for each, action, plan in zip(layout.run.invocations, layout.program.actions, layout.plans, strict=True):
        values = collected.setdefault(action.application, {})
        queries = [found[path] for _, path, _ in each.inputs if path in found]
        if values and plan is not None:
            queries += [values[value] for value in _constants(plan) if value in values]
        for _, path in each.outputs:
            if queries:
                found[path] = queries[0]
            if not action.output:
                cells = filter(_is_number_or_text, changed(path, bool(queries)))
                values.update(dict.fromkeys(cells, each.module))
    return found


def _constants(plan: Plan) -> Iterator[object]:
    """The numbers and texts of a plan, those in rows that the driver held among them."""
    for node in walk_nodes(plan.root):
        literals = [each.value for term in node.terms() for each in walk(term) if isinstance(each, Literal)]
        cells = [cell for row in node.rows for cell in row] if isinstance(node, LocalRows) else []
        yield from filter(_is_number_or_text, (*literals, *cells))


def _is_number_or_text(value: object) -> bool:
    """Whether a value is a number or a text: two of these that are equal may well be one."""
    return isinstance(value, (int, float, Decimal, str)) and not isinstance(value, bool) and value != ""


def constants_note(layout: ProgramLayout, changed: Collection[str], judged: Collection[str]) -> str:
    """Which relations may have been made with rows of the driver that a change of inputs reaches; empty: none.

    Args:
        layout: The program.
        changed: Paths of the relations in which records change.
        judged: Paths of the relations that a question is about.
    """
    reached = _reached(layout, changed)
    required = {path for each in required_for(layout.run, judged) for path in each.paths}
    modules = {path: each.module for each in layout.run.invocations for _, path in each.outputs}
    collected: dict[str, list[str]] = {}
    made_with: dict[str, None] = {}
    for at, action in enumerate(layout.program.actions):
        path = layout.outputs[at]
        if not action.output and path in reached:
            collected.setdefault(action.application, []).append(modules[path])
        elif path in required and action.application in collected and has_constants(layout.plans[at]):
            made_with[modules[path]] = None
    if not made_with:
        return ""
    queries = few([module for modules in collected.values() for module in modules])
    return (
        f"the program collected rows that come from these records ({queries}); constants in the plans of "
        f"{few(list(made_with))} stay as they were, also if the program computed them from those rows"
    )


def _reached(layout: ProgramLayout, changed: Collection[str]) -> set[str]:
    """Paths that come from some relations, themselves included."""
    found = set(changed)
    for each in layout.run.invocations:
        if any(path in found for _, path, _ in each.inputs):
            found.update(path for _, path in each.outputs)
    return found


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
