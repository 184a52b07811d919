"""Triggers and rules: the table whose rows their bodies see, as NEW and OLD, inserted and deleted, or by other names.

The head of a trigger is a COMMAND with arguments of our own, which ``definitions`` reads: ``trigger`` is the routine
that runs, ``table`` whose rows it sees, ``rows`` what it calls sets of them, ``when`` on which of its rows it runs, by
the names of ``records``: each statement of the body depends on it. ``updates``: it runs for rows that UPDATE touches;
``instead``: the kinds of statements whose place it takes; ``per_row``: it runs once for each row.
The body begins with a SET (``variables``) that gives NEW and OLD the columns of these tables: they are records.
PostgreSQL names the table apart from the body, so the tables of a routine are looked for when it is read.
"""

from __future__ import annotations

import itertools
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.unread import table_at
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, like, word
from govtool.model.diagnostic import Diagnostic
from govtool.names import fold

_RECORDS: Final = ("new", "old")
_EVENTS: Final = ("INSERT", "UPDATE", "DELETE")
_ONLY_ROWS: Final = frozenset({"mysql", "sqlite"})
"""Dialects all of whose triggers run for each row."""
_ROW_SETS: Final = ("inserted", "deleted")
"""What T-SQL calls the rows that were touched: tables."""


def begin(reader: StatementReader, tokens: list[Token], start: int, body: int, routine: str) -> bool:
    """Read the head of a trigger, up to its body or the routine that it runs.

    Args:
        reader: The reader; the routine is the current one, if the trigger has a body.
        tokens: The statement.
        start: Behind the trigger's name.
        body: Where the body begins; -1 where the trigger runs a function.
        routine: The trigger's name.

    Returns:
        Whether a table was found.
    """
    head = tokens[:body] if body >= 0 else tokens
    at = find_word(head, {"ON"}, start)
    table = table_at(head, at + 1, reader.lex.name) if at > 0 else None
    if table is None:
        return False
    records, rows = _referencing(head, reader.lex.name)
    run = find_word(head, {"FUNCTION", "PROCEDURE"}, at) if body < 0 else -1
    if body < 0:
        function = table_at(tokens, run + 1, reader.lex.name, call=True) if run > 0 else None
        if function is None:
            return False
        routine = ".".join([fold(part.name, dialect=reader.lex.name, table=True) for part in function.parts])
    if reader.lex.name in variables.TSQL:
        rows = list(_ROW_SETS)
    end = len(head) if body >= 0 else find_word(head, {"EXECUTE"}, at)
    when, notes = _condition(reader, head[:end], at + 1, "WHEN")
    tree = _head(routine, table, rows, (*_RECORDS, *records), when)
    tree.set("per_row", _runs_per_row(tokens[start:], reader.lex.name))
    tree.set("updates", any(word(token) == "UPDATE" for token in head[start:at]))
    if find_word(head, {"INSTEAD"}, start) > 0:
        tree.set("instead", tuple([text.lower() for text in _EVENTS if find_word(head, {text}, start) > 0]))
    reader.add(head, tree, "ignored", *notes, head="create trigger")
    if body >= 0 and reader.lex.name not in variables.TSQL:
        row(reader, head, routine, (*_RECORDS, *records))
    return True


def _head(
    routine: str, table: exp.Table, rows: list[str], records: tuple[str, ...], when: exp.Expr | None
) -> exp.Command:
    return exp.Command(this="TRIGGER", trigger=routine, table=table, rows=tuple(rows), records=records, when=when)


def _runs_per_row(tokens: list[Token], dialect: str) -> bool:
    """Return whether a trigger runs for each row: where that is not the only kind, ``FOR EACH ROW`` says so."""
    if dialect in _ONLY_ROWS:
        return True
    return any([word(b) == "ROW" and word(a) in ("EACH", "FOR") for a, b in itertools.pairwise(tokens)])  # noqa: C419


def _condition(
    reader: StatementReader, tokens: list[Token], start: int, opening: str
) -> tuple[exp.Expr | None, list[Diagnostic]]:
    """The condition behind a word, up to the end of the tokens; with diagnostics where it cannot be read."""
    at = find_word(tokens, {opening}, start)
    if at < 0 or at + 1 >= len(tokens):
        return None, []
    tree = reader.attempt([like(tokens[at], marks.SELECT, "SELECT"), *tokens[at + 1 :]])
    if isinstance(tree, exp.Select) and len(tree.expressions) == 1:
        return tree.expressions[0], []
    message = f"the condition behind {opening} is not understood"
    return None, [reader.diagnostic("opaque", "warning", message, tokens[at])]


def row(reader: StatementReader, tokens: list[Token], routine: str, names: tuple[str, ...] = _RECORDS) -> None:
    """Give the records of a trigger's body the columns of its tables; for the routine that is read now."""
    tree = variables.tree_of([variables.AssignmentTarget(name) for name in names])
    tree.set("row_of", routine)
    outer, reader.routine = reader.routine, routine
    reader.add(tokens[:1], tree, "ignored", head="declare")
    reader.routine = outer


def note_fields(reader: StatementReader, tokens: list[Token]) -> None:
    """Note the fields of NEW and OLD that a condition names, and those of T-SQL's ``UPDATE(c)``."""
    dialect = reader.lex.name
    fields: dict[str, None] = {}
    for at, token in enumerate(tokens[:-2]) if reader.routine is not None else ():
        updates = dialect in variables.TSQL and word(token) == "UPDATE" and tokens[at + 1].token_type == marks.L_PAREN
        if updates or (token.text.lower() in _RECORDS and tokens[at + 1].token_type == marks.DOT):
            field = tokens[at + 2]
            fields[fold(field.text, quoted=field.token_type == marks.IDENTIFIER, dialect=dialect)] = None
    if fields:
        reader.flow.fields.update(fields)
        reader.add(tokens[:1], exp.Command(this="ROW", row_fields=tuple(fields)), "ignored", head="if")


def skip_row(reader: StatementReader, tokens: list[Token]) -> None:
    """Note that ``RETURN NULL`` in a branch leaves out the row that a trigger sees, by the conditions before it."""
    if reader.flow.fields and reader.flow.branches.path:
        tree = exp.Command(this="ROW", row_fields=tuple(reader.flow.fields), skips=True)
        reader.add(tokens[:1], tree, "ignored", head="return")


def _referencing(tokens: list[Token], dialect: str) -> tuple[list[str], list[str]]:
    """What REFERENCING calls rows, and sets of rows: ``NEW AS n``, ``OLD TABLE AS gone``."""
    records: list[str] = []
    rows: list[str] = []
    start = find_word(tokens, {"REFERENCING"}, 1)
    for index in range(start, len(tokens) - 1) if start > 0 else ():
        if word(tokens[index]) not in ("NEW", "OLD"):
            continue
        at = index + 1
        is_set = word(tokens[at]) in ("TABLE", "NEW_TABLE", "OLD_TABLE")
        at += is_set or word(tokens[at]) == "ROW"
        at += at < len(tokens) and word(tokens[at]) == "AS"
        if at < len(tokens):
            name = fold(tokens[at].text, quoted=tokens[at].token_type == marks.IDENTIFIER, dialect=dialect)
            (rows if is_set else records).append(name)
    return records, rows


def rule(reader: StatementReader, tokens: list[Token], routine: str) -> None:
    """PostgreSQL's ``CREATE RULE r AS ON event TO table [WHERE …] DO [ALSO | INSTEAD] command | (command; …)``."""
    to = find_word(tokens, {"TO"}, 1)
    do = find_word(tokens, {"DO"}, max(to, 1))
    table = table_at(tokens, to + 1, reader.lex.name) if to > 0 else None
    start = do + 1 + (word(tokens[do + 1]) in ("ALSO", "INSTEAD") if 0 < do < len(tokens) - 1 else 0)
    if table is None or do < 0 or start >= len(tokens):
        reader.add(tokens, None, "ignored", head="create rule")
        return
    if word(tokens[to - 1]) == "SELECT":
        _view(reader, tokens, to, start)
        return
    when, notes = _condition(reader, tokens[:do], to, "WHERE")
    instead = word(tokens[do + 1]) == "INSTEAD"
    if instead and when is not None:  # rows for which it holds are not written
        part = exp.Command(this="NEED", table=table, needs=[when.copy()], records=_RECORDS)
        reader.add(tokens[:start], exp.Command(this="NEEDS", parts=[part], role="rule"), "ignored", head="create rule")
    if word(tokens[start]) == "NOTHING":
        reader.add(tokens, None, "ignored", *notes, head="create rule")
        return
    outer, reader.routine = reader.routine, f"{routine} on {table.sql()}"
    tree = _head(reader.routine, table, [], _RECORDS, when)
    tree.set("per_row", True)  # its commands are joined with the statement that it is about
    if instead:
        tree.set("instead", (word(tokens[to - 1]).lower(),))
    reader.add(tokens[:start], tree, "ignored", *notes, head="create rule")
    row(reader, tokens, reader.routine)
    for command in _commands(tokens[start:]):
        reader.statement(command)
    reader.routine = outer


def _view(reader: StatementReader, tokens: list[Token], to: int, start: int) -> None:
    """``ON SELECT TO t DO INSTEAD query`` makes the table a view (PostgreSQL, "Views and the Rule System")."""
    do = find_word(tokens, {"DO"}, to)
    query = _commands(tokens[start:])[0]
    head = [like(tokens[0], marks.CREATE, "CREATE"), like(tokens[0], marks.VIEW, "VIEW"), *tokens[to + 1 : do]]
    tree = reader.attempt([*head, like(tokens[do], marks.ALIAS, "AS"), *query])
    if isinstance(tree, exp.Create):
        reader.add(tokens, tree, "parsed", head="create view")
        return
    note = reader.diagnostic("opaque", "warning", "a rule that answers a SELECT is not understood", tokens[0])
    reader.add(tokens, None, "opaque", note, head="create rule")


def end_of_rule(tokens: list[Token], start: int, end: int) -> int:
    """The place behind the commands in parentheses of a rule that begins at ``start``, if its first one ends at
    ``end``; else that.
    """
    if start + 1 >= end or word(tokens[start + 1]) not in ("RULE", "OR"):  # CREATE [OR REPLACE] RULE
        return end
    do = find_word(tokens[start:end], {"DO"}, 1) if find_word(tokens[start : start + 4], {"RULE"}, 1) > 0 else -1
    for at in range(start + do + 1, min(start + do + 3, end)) if do > 0 else ():
        if tokens[at].token_type == marks.L_PAREN:
            return max(end, closing(tokens, at) + 1)
    return end


def _commands(tokens: list[Token]) -> list[list[Token]]:
    """Split the commands of a rule, which may be in parentheses, at their semicolons."""
    if tokens[0].token_type == marks.L_PAREN and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == marks.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [command for command in found if command]
