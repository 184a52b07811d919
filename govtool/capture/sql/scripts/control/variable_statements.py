"""Statements that give script variables their values: SET, SELECT … INTO, FETCH, FOR, RETURNING … INTO.

Each function reads one kind of statement and returns False, or nothing, for another.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import bindings, variables
from govtool.capture.sql.scripts.control.variables import AssignmentTarget
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import find_word, like, split, word, word_set

_SETTERS: Final = frozenset({"bigquery", "snowflake", "trino", "presto", "athena", *variables.TSQL, *variables.MYSQL})
"""Dialects whose SET assigns variables; elsewhere it sets parameters of the session."""

_QUERY: Final = frozenset({"SELECT", "WITH"})
_INTO: Final = frozenset({"INTO", "BULK COLLECT INTO"})
_AFTER_INTO: Final = word_set("FROM WHERE GROUP ORDER LIMIT USING HAVING UNION FOR")


def into(reader: StatementReader, tokens: list[Token]) -> tuple[list[Token], list[AssignmentTarget]]:
    """A query without its ``INTO variable, …`` clause, and the variables (in T-SQL, INTO makes a table and stays)."""
    dialect = reader.lex.name
    if dialect in variables.TSQL or word(tokens[0]) not in ("SELECT", "WITH", "FETCH"):
        return tokens, []
    index = find_word(tokens, _INTO, 1)
    if index < 0 or index + 1 >= len(tokens) or word(tokens[index - 1]) in ("INSERT", "MERGE"):
        return tokens, []
    first = tokens[index + 1]
    if not reader.flow.inside and not (dialect in variables.MYSQL and first.token_type == marks.PARAMETER):
        return tokens, []
    if dialect in variables.MYSQL and word(first) in ("OUTFILE", "DUMPFILE"):
        return tokens, []
    start = index + 1 + (word(first) == "STRICT")
    end = _end_of_targets(tokens, start)
    if word(tokens[index - 1]) == "COLLECT" and index > 1 and word(tokens[index - 2]) == "BULK":
        index -= 2
    return tokens[:index] + tokens[end:], variables.targets_of(tokens[start:end], dialect)


def _end_of_targets(tokens: list[Token], start: int) -> int:
    """Return the place behind the variables of an INTO."""
    end = start
    while end < len(tokens) and word(tokens[end]) not in _AFTER_INTO:
        kind = tokens[end].token_type
        if kind != marks.COMMA and end + 1 < len(tokens) and _begins(tokens[end + 1]) and not _joins(tokens[end]):
            return end + 1
        end += 1
    return end


def _begins(token: Token) -> bool:
    return token.token_type not in (
        marks.COMMA,
        marks.DOT,
        marks.COLON,
        marks.PARAMETER,
        marks.L_BRACKET,
    )


def _joins(token: Token) -> bool:
    return token.token_type in (marks.DOT, marks.COLON, marks.PARAMETER)


def selected(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read a query that gives variables their values; False if it is none."""
    dialect = reader.lex.name
    marked = dialect in variables.TSQL or dialect in variables.MYSQL
    if marked and not reader.flow.inside and not variables.has_parameter(tokens):
        return False
    query, targets = into(reader, tokens)
    if targets:
        tree = reader.attempt(query, simplify=True)
        if isinstance(tree, exp.Query):
            variables.assign(reader, tokens, targets, tree, shown=True)
        else:
            reader.statement(query)
            variables.unknown(reader, tokens, targets, "a query that is not understood", head="assignment")
        return True
    return marked and variables.has_parameter(tokens) and _assigning(reader, tokens)


def _with_earlier(value: exp.Expr, targets: list[AssignmentTarget], values: list[exp.Expr]) -> exp.Expr:
    """A value in which variables that the same SELECT has set before it stand for what they were set to."""
    earlier = {target.name: given for target, given in zip(targets, values, strict=True) if target.name}
    if not earlier:
        return value

    def replaced(node: exp.Expr) -> exp.Expr:
        given = earlier.get(f"@{node.name.lower()}") if isinstance(node, exp.Parameter) else None
        return node if given is None else exp.Paren(this=given.copy())

    return value.copy().transform(replaced)


def _assigning(reader: StatementReader, tokens: list[Token]) -> bool:
    """``SELECT @a = x, @b = y FROM t`` of T-SQL, ``SELECT @a := x`` of MySQL."""
    tree = reader.attempt(variables.compound(tokens), simplify=True)
    body = tree
    while isinstance(body, exp.SetOperation):
        body = body.this
    if not isinstance(tree, exp.Query) or not isinstance(body, exp.Select) or tree.args.get("into") is not None:
        return False
    targets: list[AssignmentTarget] = []
    values: list[exp.Expr] = []
    kind = exp.EQ if reader.lex.name in variables.TSQL else exp.PropertyEQ
    for item in body.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, kind) and isinstance(inner.this, exp.Parameter):
            value = _with_earlier(inner.expression, targets, values)
            targets.append(AssignmentTarget(f"@{inner.this.name.lower()}"))
            values.append(value)
        else:
            targets.append(AssignmentTarget(""))
            values.append(item)
    if not any([target.name for target in targets]):  # noqa: C419
        return False
    body.set("expressions", values)
    if len(targets) == 1 and isinstance(values[0], exp.Star):
        return False
    shown = reader.lex.name in variables.MYSQL or not all([target.name for target in targets])  # noqa: C419
    variables.assign(reader, tokens, targets, tree, shown=shown)
    return True


def set_(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read a SET of variables; False if it sets something else."""
    dialect = reader.lex.name
    start = 1
    if len(tokens) > 2 and word(tokens[1]) in ("VAR", "VARIABLE"):
        start = 2
    elif dialect not in _SETTERS:
        return False
    tokens = variables.compound(tokens)
    items = _set_items(tokens[start:], dialect)
    targets = [target for names, _ in items for target in names]
    if not items or not all(names for names, _ in items) or not all(target.name for target in targets):
        return False
    everywhere = reader.flow.inside or dialect in ("bigquery", "snowflake") or start > 1
    if not everywhere and not all(target.name[:1] == "@" for target in targets):
        return False  # outside of routines other names are parameters of the session
    for names, value in items:
        if dialect == "snowflake":
            names = [AssignmentTarget("$" + t.name, t.field) for t in names]
        _set_one(reader, tokens, names, value)
    return True


def _set_one(reader: StatementReader, tokens: list[Token], targets: list[AssignmentTarget], value: list[Token]) -> None:
    """Read one assignment of a SET: of a cursor, of several values, of one."""
    if len(value) > 1 and word(value[0]) == "CURSOR":
        query = find_word(value, _QUERY, 1)
        variables.assign_query(reader, targets, value[query:] if query > 0 else value)
    elif len(targets) > 1 and value and variables.whole(value) and not variables.is_query(value):
        variables.assign_tokens(reader, tokens, targets, value[1:-1])
    else:
        variables.assign_tokens(reader, tokens, targets, value)


def _set_items(tokens: list[Token], dialect: str) -> list[tuple[list[AssignmentTarget], list[Token]]]:
    items: list[tuple[list[AssignmentTarget], list[Token]]] = []
    for item in split(tokens):
        at = next((i for i, t in enumerate(item[:8]) if t.token_type in (marks.EQ, marks.COLON_EQ)), -1)
        if at < 1:
            if not items or not tokens:
                return []
            items[-1][1].append(like(item[0], marks.COMMA, ","))
            items[-1][1].extend(item)
            continue
        left = item[:at]
        names = left[1:-1] if variables.whole(left) else left
        if names is left:
            marked = left[0].token_type == marks.PARAMETER
            rest = left[1 + marked :]
            if (dialect in variables.TSQL and not marked) or (rest and rest[0].token_type != marks.DOT):
                return []  # SET ROWCOUNT 1, SET SESSION name = value
        items.append((variables.targets_of(names, dialect), item[at + 1 :]))
    return items


def fetched(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read ``FETCH [NEXT FROM] cursor INTO a, b``; False if it keeps nothing."""
    at = find_word(tokens, _INTO, 1)
    if at < 2:
        return False
    last = at
    if word(tokens[at - 1]) == "COLLECT" and word(tokens[at - 2]) == "BULK":
        last = at - 2
    dialect = reader.lex.name
    begin = last - 2 if last > 1 and tokens[last - 2].token_type in (marks.PARAMETER, marks.COLON) else last - 1
    cursor = variables.target_of(tokens[begin:last], dialect).name
    limit = find_word(tokens, {"LIMIT"}, at)
    targets = variables.targets_of(tokens[at + 1 : limit if limit > 0 else len(tokens)], dialect)
    variables.fetch(reader, tokens, targets, cursor)
    return bool(targets and cursor)


def returned(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read ``INSERT | UPDATE | DELETE … RETURNING a, b INTO v, w``; False if nothing is kept."""
    at = find_word(tokens, {"RETURNING", "RETURN"}, 2)
    index = find_word(tokens, _INTO, at) if at > 0 else -1
    if index < 0:
        return False
    stop = index
    if word(tokens[index - 1]) == "COLLECT" and word(tokens[index - 2]) == "BULK":
        stop = index - 2
    start = index + 1 + (index + 1 < len(tokens) and word(tokens[index + 1]) == "STRICT")
    targets = variables.targets_of(tokens[start:], reader.lex.name)
    tree = reader.attempt(tokens[:stop], simplify=True)
    if tree is None:
        reader.statement(tokens[:at])
        variables.unknown(reader, tokens, targets, "a RETURNING that is not understood", head="assignment")
        return True
    reader.add(tokens, tree, "parsed")
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    returning = tree.args.get("returning")
    value: exp.Expr | None = None
    if isinstance(table, exp.Table) and isinstance(returning, exp.Returning):
        items = [item.copy() for item in returning.expressions]
        value = exp.Select(expressions=items, from_=exp.From(this=table.copy()))
    variables.assign(reader, tokens, targets, value, head="assignment")
    return True


def looped(reader: StatementReader, tokens: list[Token], index: int) -> bool:
    """Read the head of ``FOR r IN query LOOP``, which ends at ``index``; False if it is none."""
    dialect = reader.lex.name
    start = find_word(tokens[:index], {"IN", "AS"}, 1)
    if start < 1:
        return False
    targets = variables.targets_of(tokens[1:start], dialect)
    value = tokens[start + 1 : index]
    head = tokens[:index]
    if value and word(value[0]) in ("ARRAY", "REVERSE"):
        value = value[1:]
    if not value or not targets:
        return False
    if word(value[0]) == "EXECUTE":
        bindings.assign_dynamic(reader, head, targets, value)
    elif variables.is_query(value):
        variables.assign_query(reader, targets, value)
    elif cursor := variables.cursor_name(value, dialect, arguments=True):
        variables.fetch(reader, head, targets, cursor, head="for")
    else:
        reader.add(head, variables.tree_of(targets, expression=bounds(reader, value)), "parsed", head="for")
    variables.declared(reader, targets)
    return True


def bounds(reader: StatementReader, tokens: list[Token]) -> exp.Expr | None:
    """Return the sources of the bounds of a loop: ``1 .. n``, ``1 TO n BY 2``."""
    names = [t for t in tokens if t.token_type in (marks.VAR, marks.IDENTIFIER) and word(t) not in ("TO", "BY")]
    if not names:
        return None
    listed: list[Token] = []
    for token in names:
        listed += [like(token, marks.COMMA, ","), token]
    here = tokens[0]
    row = [like(here, marks.L_PAREN, "("), *listed[1:], like(here, marks.R_PAREN, ")")]
    return reader.attempt([like(here, marks.SELECT, "SELECT"), *row])


def updated(reader: StatementReader, tokens: list[Token], tree: exp.Update) -> None:
    """Add what T-SQL's ``UPDATE t SET @v = c`` gives variables."""
    targets: list[AssignmentTarget] = []
    values: list[exp.Expr] = []
    for item in tree.expressions:
        if isinstance(item, exp.EQ) and isinstance(item.this, exp.Parameter):
            right = item.expression
            targets.append(AssignmentTarget(f"@{item.this.name.lower()}"))
            values.append((right.expression if isinstance(right, exp.EQ) else right).copy())
    if not targets:
        return
    from_ = tree.args.get("from_")
    where = tree.args.get("where")
    value = exp.Select(
        expressions=values,
        from_=from_.copy() if from_ is not None else exp.From(this=tree.this.copy()),
        joins=[join.copy() for join in tree.args.get("joins") or ()],
        where=where.copy() if where is not None else None,
    )
    variables.assign(reader, tokens, targets, value, quiet=True, head="assignment")
