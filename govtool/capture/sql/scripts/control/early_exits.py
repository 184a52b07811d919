"""What an early exit decides: RETURN, EXIT, BREAK and their like under a condition.

``IF NOT EXISTS (SELECT …) THEN RETURN; END IF;`` decides about all that comes behind it, and an EXIT about the whole
loop. The conditions are kept as a variable of our own, set where the exit stands, so that they mean what their names
meant there; it is a condition of the statements that the exit would skip.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import handled_errors, variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax.lexer import find_word, word
from govtool.capture.sql.syntax.marks import EXITED

_FROM_LOOPS: Final = frozenset({"EXIT", "CONTINUE", "BREAK", "LEAVE", "ITERATE"})
EXITS: Final = _FROM_LOOPS | handled_errors.ERRORS | {"RETURN"}
"""First words of statements that leave a routine or a loop."""
_NOTICES: Final = frozenset({"NOTICE", "INFO", "LOG", "DEBUG", "WARNING"})
_GOES_ON: Final = frozenset({"NEXT", "QUERY"})
"""Second words of a RETURN that adds rows to what is returned, and goes on."""


def exited(reader: StatementReader, tokens: list[Token]) -> None:
    """Note what an early exit decides about, unless nothing decides about the exit."""
    head = word(tokens[0])
    second = word(tokens[1]) if len(tokens) > 1 else ""
    if (head == "RAISE" and second in _NOTICES) or (head == "RETURN" and second in _GOES_ON):
        return
    branches = reader.flow.branches
    when = find_word(tokens, {"WHEN"}, 1) if head in ("EXIT", "CONTINUE") else -1
    found = variables.expressions_of(reader, tokens[when + 1 :]) if when > 0 else []
    if not found and (not any([item.tests for item in branches.open]) or handled_errors.passes_on(reader, tokens)):  # noqa: C419
        return
    handled_errors.raised(reader, tokens)
    label = tokens[1].text if len(tokens) > 1 and when != 1 else ""
    loop: int | None = _loop(reader, label) if head in _FROM_LOOPS else None
    inner = branches.innermost_loop()
    for branch in dict.fromkeys((loop, inner) if loop is None and inner is not None else (loop,)):
        _decides(reader, tokens, found, branch)


def _loop(reader: StatementReader, label: str) -> int | None:
    """Return the loop that an exit leaves: with a label any of those around it; None for a labelled block."""
    branches = reader.flow.branches
    if not label:
        return branches.innermost_loop()
    return branches.outermost_loop() if label.lower() in branches.loops else None


def _decides(reader: StatementReader, tokens: list[Token], found: list[exp.Expr], loop: int | None) -> None:
    """Let the conditions of an exit decide about the rest of a routine, or about all of a loop."""
    branches = reader.flow.branches
    values = [item.copy() for item in found] or [exp.Literal.number(1)]
    test = variables.own(reader, tokens, f"{EXITED}{'' if loop is None else loop}", values)
    if not branches.exited(test, loop):
        handled_errors.too_many(reader, tokens, "exit")
    if loop is not None:
        _repeat(reader, test, loop)


def _repeat(reader: StatementReader, test: exp.Expr, loop: int) -> None:
    """Let the condition decide about what stands before the exit in its loop, too, as that runs again."""
    statements = reader.statements
    for index in range(len(statements) - 1, -1, -1):
        statement = statements[index]
        if loop not in [arm.branch for arm in statement.branch]:
            return
        if statement.tree is not None and statement.head != "exit" and test not in statement.tests:
            statements[index] = statement._replace(tests=(*statement.tests, test))
