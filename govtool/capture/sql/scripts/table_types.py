"""T-SQL's table types: ``CREATE TYPE t AS TABLE (…)``, and parameters of routines that are tables.

Source: Transact-SQL reference, "CREATE TYPE", "Use table-valued parameters".
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import find_word, like, word
from govtool.capture.sql.walk.relation import CALLER


def created(reader: StatementReader, tokens: list[Token]) -> bool:
    """Add ``CREATE TYPE t AS TABLE (columns)`` as a definition that holds no rows; False for another type."""
    at = find_word(tokens, {"TABLE"}, 3)
    if at < 0 or word(tokens[at - 1]) != "AS" or word(tokens[1]) != "TYPE":
        return False
    here = tokens[at]
    tree = reader.attempt(
        [tokens[0], like(here, marks.TABLE, "TABLE"), *tokens[2 : at - 1], *tokens[at + 1 :]], simplify=True
    )
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        return False
    tree.set("kind", "TYPE")
    reader.add(tokens, tree, "parsed", head="create type")
    return True


def parameters(reader: StatementReader, header: Sequence[Token], routine: str) -> None:
    """Add the tables that a routine is handed: declared, and filled by whoever calls it."""
    for index, token in enumerate(header):
        if word(token) != "READONLY":
            continue
        start = index
        while start and header[start - 1].token_type not in (marks.COMMA, marks.L_PAREN, marks.PARAMETER):
            start -= 1
        named = list(header[start - 1 : index])
        if len(named) < 3 or named[0].token_type != marks.PARAMETER:
            continue
        here = named[0]
        declared = reader.attempt([like(here, marks.DECLARE, "DECLARE"), *named])
        head = [like(here, marks.INSERT, "INSERT"), like(here, marks.INTO, "INTO"), *named[:2]]
        filled = reader.attempt([*head, like(here, marks.SELECT, "SELECT"), like(here, marks.NULL, "NULL")])
        if not isinstance(declared, exp.Declare) or not isinstance(filled, exp.Insert):
            continue
        caller = exp.Anonymous(this=CALLER, expressions=[exp.Var(this=routine)])
        filled.set("expression", exp.Table(this=caller))
        message = f"the rows of @{named[1].text} come from whoever calls {routine}"
        reader.add(named, declared, "parsed", head="declare")
        reader.add(named, filled, "parsed", reader.diagnostic("opaque", "info", message, here), head="insert")
