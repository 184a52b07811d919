"""Rows that went to the driver: what a program did with them is not in its plans.

A total that a program collects and compares with is a constant of later plans. No deletion reaches it there, so that an
answer about those plans says which of them may hold one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from govtool.app.workflow_runs.programs.layout import ProgramLayout
from govtool.app.workflow_runs.without_records import required_for
from govtool.records.plan.expressions import AggregateCall, Literal
from govtool.records.plan.nodes import LocalRows, Plan
from govtool.records.plan.tree import Term, walk_nodes
from govtool.wording import few


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
