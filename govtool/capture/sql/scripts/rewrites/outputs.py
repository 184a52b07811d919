"""T-SQL's changes of rows, in forms that the parser does not know: ``SET c += 1``, ``DELETE FROM d FROM t d``, and
``OUTPUT inserted.a INTO log``, by which one statement writes to a second table.

The second table is kept as the ``into`` of the statement's RETURNING.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import variable_statements, variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, like, name_end, word

_QUERY: Final = frozenset({"SELECT", "WITH"})
_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


def changed(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read an INSERT, UPDATE, DELETE or MERGE, with common tables before it or without, that does more than the parser
    knows; False for any other.
    """
    head = word(tokens[find_word(tokens, _CHANGES, 1)] if word(tokens[0]) == "WITH" else tokens[0])
    if head not in _CHANGES:
        return False
    plain = _once_from(variables.compound(tokens))
    at = find_word(plain, {"OUTPUT"}, 1)
    into = find_word(plain, {"INTO"}, at) if at > 0 else -1
    if into < 0:
        if len(plain) == len(tokens) and not (head == "UPDATE" and variables.has_parameter(tokens)):
            return False
        at = into = len(plain)
    end = _target_end(plain, into + 1)
    tree = reader.attempt([*plain[:at], *plain[end:]], simplify=True)
    if not isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        return False
    if plain != tokens:
        _of_target(tree)
    if into < len(plain):
        items = reader.attempt([like(plain[at], marks.SELECT, "SELECT"), *_output_tokens(plain[at + 1 : into])])
        table = _target(reader, plain[into + 1 : end])
        if not isinstance(items, exp.Select) or table is None:
            return False
        tree.set("returning", exp.Returning(expressions=items.expressions, into=table))
    reader.add(tokens, tree, "parsed")
    if isinstance(tree, exp.Update):
        variable_statements.updated(reader, tokens, tree)
    return True


def _of_target(tree: exp.Expr) -> None:
    """In ``SET c = c + d`` of joined tables the second ``c`` is the column that is set."""
    table = tree.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return
    name = table.args["alias"].this if table.args.get("alias") else table.this
    whens = tree.args.get("whens")
    updates = [when.args.get("then") for when in whens.expressions] if whens is not None else [tree]
    for update in updates:
        for item in update.expressions if isinstance(update, exp.Update) else ():
            left = item.this
            if not isinstance(item, exp.EQ) or not isinstance(left, exp.Column):
                continue
            for column in list(item.expression.find_all(exp.Column)):
                if column == left and not column.args.get("table"):
                    column.set("table", name.copy())


def _once_from(tokens: list[Token]) -> list[Token]:
    """``DELETE FROM d FROM t AS d`` as ``DELETE d FROM t AS d``."""
    if word(tokens[0]) != "DELETE" or len(tokens) < 5 or word(tokens[1]) != "FROM":
        return tokens
    return [tokens[0], *tokens[2:]] if find_word(tokens, {"FROM"}, 3) > 0 else tokens


def _target_end(tokens: list[Token], start: int) -> int:
    """Return the end of a table's name and of the columns behind it."""
    marked = start < len(tokens) and tokens[start].token_type == marks.PARAMETER
    end = name_end(tokens, start + marked)
    if end + 1 < len(tokens) and tokens[end].token_type == marks.L_PAREN and word(tokens[end + 1]) not in _QUERY:
        end = closing(tokens, end) + 1
    return min(end, len(tokens))


def _target(reader: StatementReader, tokens: list[Token]) -> exp.Expr | None:
    """The table, with its columns, that an OUTPUT goes into."""
    if not tokens:
        return None
    here = tokens[0]
    head = [like(here, marks.INSERT, "INSERT"), like(here, marks.INTO, "INTO")]
    row = [like(here, marks.SELECT, "SELECT"), like(here, marks.NUMBER, "1")]
    tree = reader.attempt([*head, *tokens, *row])
    table = tree.this if isinstance(tree, exp.Insert) else None
    return table if isinstance(table, (exp.Table, exp.Schema)) else None


def _output_tokens(tokens: list[Token]) -> list[Token]:
    """Return the tokens of an OUTPUT, with ``$action`` as the constant that it is."""
    found: list[Token] = []
    for token in tokens:
        if token.text.lower() == "$action":
            token = like(token, marks.NUMBER, "1")
        elif token.text.lower() == "action" and found and found[-1].text == "$":
            token = like(found.pop(), marks.NUMBER, "1")
        found.append(token)
    return found
