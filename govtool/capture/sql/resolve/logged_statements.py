"""Statements of a query log to the states that a batch walks, and what of them must not be repeated."""

from __future__ import annotations

import re
from dataclasses import replace

from govtool.capture.sql.resolve.logged import LoggedScript
from govtool.capture.sql.resolve.parameters import routine_of
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.scripts.trees import TreeCache
from govtool.capture.sql.syntax.literals import scanner
from govtool.capture.sql.syntax.redact import redact
from govtool.model import Diagnostic

_NEAR = re.compile(r" near (['\"])(.{0,1000})\1\Z", re.DOTALL)
_TELLING = 4
"""Characters from which on a literal tells something about someone."""


def logged_state(
    script: LoggedScript, dialect: str, catalog: str | None, schema: str | None, tree_cache: TreeCache | None = None
) -> ScriptState:
    """Parse the statements of one script.

    Args:
        script: What is to be read.
        dialect: Of a script without one.
        catalog: Canonical; of statements whose log has none.
        schema: Likewise.
        tree_cache: The room for trees; without one all are kept.
    """
    dialect = script.dialect or dialect
    state = ScriptState(script.statements[0].file, script.session, dialect, logged=True)
    for logged in script.statements:
        here = (logged.catalog if logged.catalog is not None else catalog), (logged.schema or schema)
        path = logged.search_path
        first = logged.line - 1

        def line_of(line: int, base: int = first, spans: bool = logged.spans) -> int:
            return base + (line if spans else 1)

        for parsed in parse_script(logged.text, dialect, file=logged.file, line_of=line_of, tree_cache=tree_cache):
            if parsed.session is not None:
                change = parsed.session
                here = (
                    change.catalog if change.catalog is not None else here[0],
                    change.schema if change.schema is not None else here[1],
                )
                path = change.search_path or (() if change.schema is not None else path)
            if parsed.head.startswith("create ") and parsed.status == "ignored":
                routine = routine_of(parsed.text, dialect)
                if routine is not None:
                    state.variables.setdefault(routine[0], set()).update(routine[1])
            statement = StatementState(
                parsed, state, len(state.statements), *here, path, tree=parsed.tree, logged=logged
            )
            statement.relation = logged.relation if parsed.routine is None else None
            statement.line_map = line_of
            statement.diagnostics.extend(parsed.diagnostics)
            state.statements.append(statement)
    return state


def redact_notes(script: ScriptState) -> None:
    """Remove literals, which may be about people, from notes of a script's statements."""
    for statement in script.statements:
        if statement.diagnostics:
            text = statement.parsed.text
            statement.diagnostics = [_redacted_note(note, text, script.dialect) for note in statement.diagnostics]


def _redacted_note(note: Diagnostic, text: str, dialect: str) -> Diagnostic:
    shown = redact(text, dialect)
    message = note.message
    near = _NEAR.search(message)
    if near is not None and near[2] not in shown:
        message = message[: near.start()]
    for match in scanner(dialect).finditer(text):
        if match.lastgroup == "string":
            value = match.group().strip("'\"$")
            if len(value) >= _TELLING and value in message and value not in shown:
                message = message.replace(value, "?")
    return note if message == note.message else replace(note, message=message)
