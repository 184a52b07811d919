"""Table functions: the rows that they return, by their definitions.

A body that is one query is inlined at its calls. Of a body that is a block, each statement that returns rows is a SET
whose argument ``returns`` names the function (see ``variables``); the statement that creates it has a SET with
``signature``, with the names of the columns (``columns``) or the type of the rows (``row``).
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import bindings, variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, like, name_end, split, word
from govtool.capture.sql.walk.relation import named_table
from govtool.names import fold


def signature(reader: StatementReader, tokens: list[Token], returns: int, after: int, name: str) -> exp.Expr | None:
    """Return the rows that the head of a function declares; None if it returns none.

    Args:
        reader: The reader.
        tokens: CREATE FUNCTION.
        returns: Where RETURNS stands; -1 if it does not.
        after: Where the parameters begin.
        name: The canonical name of the function.
    """
    columns: tuple[str, ...] = ()
    row = ""
    if returns > 0 and returns + 1 < len(tokens):
        at = returns + 1
        if tokens[at].token_type == marks.PARAMETER:
            at += 2
        second = word(tokens[at]) if at < len(tokens) else ""
        if second == "TABLE" and at + 1 < len(tokens) and tokens[at + 1].token_type == marks.L_PAREN:
            columns = _columns(tokens[at + 2 : closing(tokens, at + 1)], reader.lex.name)
        elif second == "SETOF" and at + 1 < len(tokens):
            row = _written(tokens, at + 1)
    if not columns:
        columns = _handed_out(tokens, after, reader.lex.name)
    if not columns and not row:
        return None
    return exp.Set(returns=name, signature=True, columns=columns, row="" if row.lower() == "record" else row)


def _handed_out(tokens: list[Token], after: int, dialect: str) -> tuple[str, ...]:
    """The names of OUT parameters; none without parameters."""
    if after >= len(tokens) or tokens[after].token_type != marks.L_PAREN:
        return ()
    items = split(tokens[after + 1 : closing(tokens, after)])
    return tuple([_name(item[1], dialect) for item in items if word(item[0]) in ("OUT", "INOUT") and len(item) > 1])


def _columns(tokens: list[Token], dialect: str) -> tuple[str, ...]:
    names = [item for item in split(tokens) if word(item[0]) not in ("PRIMARY", "UNIQUE", "CHECK", "INDEX")]
    return tuple([_name(item[0], dialect) for item in names if word(item[0]) != "CONSTRAINT"])


def _name(token: Token, dialect: str) -> str:
    return fold(token.text, quoted=token.token_type == marks.IDENTIFIER, dialect=dialect)


def _written(tokens: list[Token], start: int) -> str:
    """The dotted name at a place, as written."""
    name = tokens[start : name_end(tokens, start)]
    return "".join([f'"{t.text}"' if t.token_type == marks.IDENTIFIER else t.text for t in name])


# -- bodies of one query ------------------------------------------------------------------------------------------


def set_returning(reader: StatementReader, tokens: list[Token], start: int) -> exp.Expr | None:
    """PostgreSQL's ``RETURNS SETOF t``, which the parser does not know, as a function that returns a table."""
    at = find_word(tokens, {"RETURNS"}, start)
    if at < 0 or at + 2 >= len(tokens) or word(tokens[at + 1]) != "SETOF":
        return None
    end = name_end(tokens, at + 2)
    tree = reader.attempt([*tokens[:at], *tokens[end:]])
    if not isinstance(tree, exp.Create):
        return None
    row = _written(tokens, at + 2)
    named = named_table(row, reader.lex.name) if row.lower() != "record" else None
    kind: exp.Expr = exp.Var(this="TABLE") if named is None else named
    properties = tree.args.get("properties")
    found = properties.expressions if properties is not None else []
    tree.set("properties", exp.Properties(expressions=[*found, exp.ReturnsProperty(this=kind, is_table=True)]))
    return tree


def only_query(tokens: list[Token]) -> list[Token]:
    """The query of a block that does nothing but return it: ``BEGIN RETURN QUERY SELECT …; END``."""
    kept = [token for token in tokens if token.token_type != marks.SEMICOLON]
    if (
        len(kept) > 5
        and [word(token) for token in kept[:3]] == ["BEGIN", "RETURN", "QUERY"]
        and word(kept[3]) in ("SELECT", "WITH")
        and word(kept[-1]) == "END"
        and len(tokens) - len(kept) == 1 + (tokens[-1].token_type == marks.SEMICOLON)
    ):
        return kept[3:-1]
    return tokens


def inline(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read the body of T-SQL's inline table function, ``RETURN (SELECT …)``; False if it is not understood."""
    header, reader.flow.header = reader.flow.header, []
    reader.routine = None
    tree = reader.attempt([*header, *tokens], simplify=True)
    if not isinstance(tree, exp.Create):
        return False
    reader.add(tokens, tree, "parsed", head="create function")
    return True


# -- bodies of statements ------------------------------------------------------------------------------------------


def begin(reader: StatementReader, tokens: list[Token], returns: int, name: str) -> None:
    """T-SQL's ``RETURNS TABLE AS RETURN query``, or ``RETURNS @r TABLE (…) AS BEGIN INSERT @r …``."""
    if word(tokens[returns + 1]) == "TABLE":
        reader.flow.header = tokens
        return
    if tokens[returns + 1].token_type != marks.PARAMETER or word(tokens[returns + 3]) != "TABLE":
        return
    variable = tokens[returns + 2]
    own = f"{variable.text.lower()}({name})"
    reader.flow.returns = (variable.text.lower(), own)
    end = closing(tokens, returns + 4) + 1
    here = tokens[returns]
    table = [tokens[returns + 1], like(variable, marks.VAR, own)]
    declared = reader.attempt([like(here, marks.DECLARE, "DECLARE"), *table, *tokens[returns + 3 : end]], simplify=True)
    rows = [like(here, marks.SELECT, "SELECT"), like(here, marks.STAR, "*"), like(here, marks.FROM, "FROM"), *table]
    query = reader.attempt(rows)
    if declared is not None and query is not None:
        reader.add(tokens, declared, "ignored", head="declare")
        reader.add(tokens, exp.Set(returns=name, expression=query, quiet=True), "ignored", head="return")


def renamed(tokens: list[Token], variable: str, own: str) -> list[Token]:
    """Tokens in which the table variable that a function returns has a name of its own."""
    found: list[Token] = []
    for token in tokens:
        if found and found[-1].token_type == marks.PARAMETER and token.text.lower() == variable:
            token = like(token, marks.VAR, own)
        found.append(token)
    return found


def _declared_columns(reader: StatementReader, name: str | None) -> tuple[str, ...]:
    """The columns that the head of the function names, which are variables of its body."""
    for statement in reversed(reader.statements):
        tree = statement.tree
        if isinstance(tree, exp.Set) and tree.args.get("signature") and tree.args.get("returns") == name:
            columns: tuple[str, ...] = tree.args["columns"]
            return columns
    return ()


def ended(reader: StatementReader, tokens: list[Token]) -> None:
    """Read the end of a function's outermost block: PL/pgSQL returns what the OUT parameters are there."""
    if reader.routine is None or reader.lex.name not in variables.PLPGSQL:
        return
    head = next((one for one in reversed(reader.statements) if one.head == "create function"), None)
    tree = head.tree if head is not None else None
    if isinstance(tree, exp.Set) and tree.args.get("returns") == reader.routine and tree.args["columns"]:
        values = exp.Set(returns=reader.routine, fetches="", next=tree.args["columns"])
        reader.add(tokens, values, "ignored", head="return")


def returned(reader: StatementReader, tokens: list[Token], second: str) -> bool:
    """Read ``RETURN QUERY query``, ``RETURN NEXT row``, ``RETURN TABLE(rows)``; False for another RETURN."""
    name = reader.routine
    value = tokens[2:]
    query: exp.Expr | None
    if second == "QUERY" and value:
        if word(value[0]) == "EXECUTE":
            constant = len(value) == 2 and value[1].token_type in STRING_TYPES
            query = bindings.constant_query(reader, value[1].text) if constant else None
            reason = "" if query is not None else "dynamic SQL"
            tree = exp.Set(returns=name, expression=query, quiet=True, reason=reason, origin="exec")
            reader.add(tokens, tree, "ignored", head="return")
            return False
        query = variables.value_of(reader, value)
        if query is None:
            return False
        reader.add(variables.bare(value), exp.Set(returns=name, expression=query, shown=True), "parsed")
        return True
    if second == "NEXT":
        row = variables.cursor_name(value, reader.lex.name) if value else ""
        query = variables.value_of(reader, value) if value and not row else None
        tree = exp.Set(
            returns=name, expression=query, fetches=row, next=() if value else _declared_columns(reader, name)
        )
        reader.add(tokens, tree, "ignored", head="return")
        return True
    if second == "TABLE" and value and value[0].token_type == marks.L_PAREN:
        inner = value[1 : closing(value, 0)]
        row = variables.cursor_name(inner, reader.lex.name)
        if row:
            reader.add(tokens, exp.Set(returns=name, fetches=row), "ignored", head="return")
            return True
        if variables.is_query(inner):
            query = variables.value_of(reader, inner)
            if query is not None:
                reader.add(variables.bare(inner), exp.Set(returns=name, expression=query, shown=True), "parsed")
                return True
    return False


def returned_value(reader: StatementReader, tokens: list[Token], value: list[Token]) -> None:
    """Read ``RETURN expression`` of a function that returns one value; a constant counts under a condition alone."""
    if len(value) < 3:
        last = value[-1]
        is_constant = last.token_type in STRING_TYPES or last.token_type == marks.NUMBER or word(last) == "NULL"
        if word(last) in ("NEW", "OLD") or (is_constant and not reader.flow.branches.tests):
            return
    query = variables.value_of(reader, value)
    if query is not None:
        tree = exp.Set(returns=reader.routine, expression=query, quiet=True, scalar=True)
        reader.add(tokens, tree, "ignored", head="return")
