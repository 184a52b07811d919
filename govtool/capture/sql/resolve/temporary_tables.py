"""Temporary tables of a session: which statements make them, and where their names mean other tables."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from sqlglot import exp

from govtool.capture.sql.resolve.relations import name_part
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.relation import into_of

_WORDS: Final = re.compile(r"\w+")
_LONG: Final = 200_000
"""Characters of a statement that is mostly rows."""


class _Life(NamedTuple):
    """Where one variant of a script makes and drops a temporary table, in order."""

    places: list[int]
    """Indexes of statements."""
    there: list[bool]
    """Whether the table is there behind each."""

    def has_before(self, index: int, *, at_first: bool) -> bool:
        """Return whether the table is there where a statement begins."""
        count = bisect_left(self.places, index)
        return self.there[count - 1] if count else at_first


def note_later(script: ScriptState, known: AbstractSet[str]) -> None:
    """Note of each statement which names mean other tables, as those of the session are made by it or further down,
    or were dropped above it.

    Not of those that run at other times: in routines, branches and loops, and in other branches of a template.

    Args:
        script: Its statements, with trees or stubs.
        known: Temporary tables that the session has before.
    """
    lives = _lives(script, known)
    for one in script.statements if lives else ():
        if _is_nested(one) or isinstance(one.tree, nodes.Drop) or len(one.parsed.text) > _LONG:
            continue
        named = lives.keys() & set(_WORDS.findall(one.parsed.text.lower()))
        later = [name for name in named if _is_gone(lives[name], one, at_first=name in known)]
        if later:
            one.later, one.names = frozenset(later), None
            mark_target(one.tree)


def _is_gone(lives: dict[int, _Life], one: StatementState, *, at_first: bool) -> bool:
    life = lives.get(one.variant)
    return life is not None and not life.has_before(one.index, at_first=at_first)


def _lives(script: ScriptState, known: AbstractSet[str]) -> dict[str, dict[int, _Life]]:
    """By temporary table and variant, where it is made and dropped.

    A table that a nested statement makes is not gone behind a DROP; one that such a statement makes first never is.
    """
    lives: dict[str, dict[int, _Life]] = {name: {} for name in known}
    elsewhere: set[str] = set()
    always: set[str] = set()
    for statement in script.statements:
        table = temporary_target(statement.tree)
        made = set() if table is None else {name_part(table.this, script.dialect)}
        if _is_nested(statement):
            elsewhere.update(made)
            always.update(made - lives.keys())
            continue
        for name in made:
            lives.setdefault(name, {}).setdefault(statement.variant, _Life([], []))
        for name in made or _dropped(statement.tree, script.dialect):
            life = lives.get(name, {}).get(statement.variant)
            if life is None and name in known:
                life = lives[name][statement.variant] = _Life([], [])
            if life is not None:
                life.places.append(statement.index)
                life.there.append(bool(made))
    for name in elsewhere & lives.keys():
        for life in lives[name].values():
            life.there[:] = [True] * len(life.there)
    return {name: of_variants for name, of_variants in lives.items() if of_variants and name not in always}


def _dropped(tree: exp.Expr | None, dialect: str) -> list[str]:
    """Return the names without a schema of the tables and views that a statement drops."""
    if not isinstance(tree, nodes.Drop) or str(tree.args.get("kind") or "").upper() not in ("TABLE", "VIEW"):
        return []
    tables = tree.args.get("tables") or [tree.this]
    plain = [table for table in tables if isinstance(table, nodes.Table) and table.args.get("db") is None]
    return [name_part(table.this, dialect) for table in plain]


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
