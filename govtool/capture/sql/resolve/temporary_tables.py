"""Temporary tables of a session: which statements make them, and where their names mean other tables."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final

from sqlglot import exp

from govtool.capture.sql.resolve.relations import name_part
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.relation import into_of

_WORDS: Final = re.compile(r"\w+")
_LONG: Final = 200_000
"""Characters of a statement that is mostly rows."""


def note_later(script: ScriptState, known: AbstractSet[str]) -> None:
    """Note of each statement which names mean other tables, as those of the session are made by it or further down.

    Not of those that run at other times: in routines, branches and loops, and in other branches of a template.

    Args:
        script: Its statements, with trees or stubs.
        known: Temporary tables that the session has before.
    """
    begins = _begins(script, known)
    for one in script.statements if begins else ():
        if _is_nested(one) or isinstance(one.tree, nodes.Drop) or len(one.parsed.text) > _LONG:
            continue
        named = begins.keys() & set(_WORDS.findall(one.parsed.text.lower()))
        later = [name for name in named if begins[name].index >= one.index and begins[name].variant == one.variant]
        if later:
            one.later, one.names = frozenset(later), None
            mark_target(one.tree)


def _begins(script: ScriptState, known: AbstractSet[str]) -> dict[str, StatementState]:
    """The statement that makes each temporary table first."""
    seen = set(known)
    begins: dict[str, StatementState] = {}
    for statement in script.statements:
        table = temporary_target(statement.tree)
        if table is not None:
            name = name_part(table.this, script.dialect)
            if name not in seen and not _is_nested(statement):
                begins[name] = statement
            seen.add(name)
    return begins


def _is_nested(statement: StatementState) -> bool:
    return statement.parsed.routine is not None or bool(statement.parsed.branch)


def mark_target(tree: exp.Expr | None) -> None:
    """Mark the name of the temporary table that a statement makes: a table of that name which it reads is another."""
    table = temporary_target(tree)
    if table is not None and table.args.get("db") is None:
        table.this.set("temporary", True)


def temporary_target(tree: exp.Expr | None) -> exp.Table | None:
    """Return the name of the temporary table that a statement makes; None if it makes none, or names none."""
    table = None if tree is None else _temporary_table(tree)
    if isinstance(table, nodes.Schema):
        table = table.this
    return table if isinstance(table, nodes.Table) and isinstance(table.this, nodes.Identifier) else None


def _temporary_table(tree: exp.Expr) -> exp.Expr | None:
    """Return the temporary table that a statement makes; None if it makes none."""
    if isinstance(tree, nodes.Create):
        properties = tree.args.get("properties")
        if properties:
            for item in properties.expressions:
                if isinstance(item, (nodes.TemporaryProperty, nodes.VolatileProperty)):
                    made: exp.Expr = tree.this
                    return made
        if str(tree.args.get("kind")).upper() == "TABLE":
            named = tree.this.this if isinstance(tree.this, nodes.Schema) else tree.this
            # Redshift, and T-SQL read as another dialect
            return named if isinstance(named, nodes.Table) and named.name.startswith("#") else None
    elif isinstance(tree, (nodes.Select, nodes.SetOperation)):
        into = into_of(tree)
        return into.this if into is not None and into.args.get("temporary") else None
    elif isinstance(tree, nodes.Cache):
        return tree.this if tree.args.get("expression") is not None else None
    return None
