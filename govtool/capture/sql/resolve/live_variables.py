"""Script variables of a batch: which statements of a script may have set a variable where another statement stands."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.resolve.relations import column_name
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.control.reaching import Live, VariableStep, every, reaching
from govtool.capture.sql.syntax import nodes


def live(statement: StatementState) -> Live:
    """Return the variables in sight of a statement, with the statements that may have set them."""
    script = statement.script
    if script.live is None:
        script.live = _live(script)
    return script.live.get(statement.index, {})


def assigning(name: str, statement: StatementState) -> list[StatementState] | None:
    """Return the statements that may have set a variable before this one; None if the name stands for none.

    Variables of a session live longer than routines: what a routine reads of them may be from anywhere in the script.
    """
    found = live(statement).get(name)  # those of the system, with @@, are of the routine alone
    script = statement.script
    if found is None and name[:1] in "@$" and name[:2] != "@@" and statement.parsed.routine is not None:
        others = [s for s in script.assignments if name in _names(s)[0]]
        return others or None
    return None if found is None else [script.statements[number] for number in found]


def _live(script: ScriptState) -> dict[int, Live]:
    by_routine: dict[str | None, list[VariableStep]] = {}
    ordered = True
    for statement in script.statements:
        if statement.tree is None:
            step = VariableStep(statement.index, statement.parsed.branch, ())
        else:
            names, keeps, ends = _names(statement)
            step = VariableStep(statement.index, statement.parsed.branch, names, keeps, ends)
            ordered = ordered and not (statement.variant and names)
        by_routine.setdefault(statement.parsed.routine, []).append(step)
    found: dict[int, Live] = {}
    for steps in by_routine.values():
        found.update(reaching(steps) if ordered else every(steps))
    return found


def _names(statement: StatementState) -> tuple[tuple[str, ...], bool, bool]:
    """Return the variables that a statement sets, whether they keep what they were, and whether they end here."""
    tree = statement.tree
    if isinstance(tree, nodes.Set):
        args = tree.args
        names = tuple([name for name in args.get("assigns") or () if name])
        return names, bool(args.get("keeps")), bool(args.get("gone"))
    if isinstance(tree, nodes.Declare):
        return tuple(_declared(tree, statement.script.dialect)), False, False
    return (), False, False


def _declared(tree: exp.Expr, dialect: str) -> list[str]:
    found: list[str] = []
    for item in tree.expressions:
        if isinstance(item.args.get("kind"), nodes.Schema):
            continue
        for name in item.this if isinstance(item.this, list) else [item.this]:
            if isinstance(name, nodes.Parameter):
                found.append(f"@{name.name.lower()}")
            elif isinstance(name, nodes.Expr):
                found.append(column_name(name, dialect))
    return found
