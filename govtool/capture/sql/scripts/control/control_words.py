"""Control words: what each of them does to the flow of a script, and the statement behind it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts import routines, table_functions, triggers
from govtool.capture.sql.scripts.control import (
    bindings,
    handled_errors,
    idle_conditions,
    strings,
    variable_statements,
    variables,
)
from govtool.capture.sql.scripts.control.control_flow import ControlFlow
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, like, word, word_set

SECTION_DIALECTS = frozenset({"", "postgres", "redshift", "snowflake", "oracle", "materialize", "risingwave"})
"""Dialects whose blocks declare variables in a section before BEGIN, without a keyword on each."""
_TRANSACTION = frozenset(
    {"TRANSACTION", "TRAN", "WORK", "ISOLATION", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "READ", "CONCURRENT", "NAME"}
)
_BLOCKS = frozenset({"IF", "LOOP", "WHILE", "CASE", "FOR", "REPEAT", "TRY", "CATCH"})
_QUERY = frozenset({"SELECT", "WITH"})
_STATEMENTS = word_set(
    """SELECT WITH INSERT UPDATE DELETE MERGE SET RETURN BEGIN IF CASE CALL EXECUTE EXEC CREATE DROP ALTER TRUNCATE
    LOOP WHILE FOR REPEAT LEAVE ITERATE NULL RAISE SIGNAL OPEN FETCH CLOSE DECLARE LET COPY COMMIT ROLLBACK
    PERFORM EXIT CONTINUE BREAK"""
)
MODIFYING = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


def _branch(reader: StatementReader, kind: str, *, always: bool = False, waits: bool = False) -> None:
    reader.branches += 1
    reader.flow.branches.begin(kind, reader.branches, reader.flow.depth, always=always, waits=waits)


def _begin(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    second = word(tokens[1]) if len(tokens) > 1 else ""
    flow = reader.flow
    if second in _TRANSACTION or (
        len(tokens) == 1 and not flow.inside and reader.lex.name not in ("oracle", "tsql", "fabric")
    ):
        # A lone BEGIN at the top opens a transaction; in a routine, a block.
        reader.add(tokens, None, "ignored", head="begin")
        return None
    flow.inside = True
    flow.declarations = False
    flow.depth += 1
    flow.branches.block(flow.depth)
    if second == "CATCH":
        flow.blocks[flow.depth] = min(flow.tried, len(reader.statements))
        _branch(reader, "handler")
        handled_errors.begun(reader, tokens, expected=False)
    else:
        flow.blocks[flow.depth] = len(reader.statements)
    skip = 1
    if second == "NOT":
        skip = 3
    elif second in ("TRY", "CATCH", "ATOMIC"):
        skip = 2
        if len(tokens) > 4 and word(tokens[2]) == "WITH" and tokens[3].token_type == marks.L_PAREN:
            skip = closing(tokens, 3) + 1  # the options of T-SQL's natively compiled routines
    return tokens[skip:]


def _end(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    flow = reader.flow
    index = 1
    block = ""
    if len(tokens) > 1 and word(tokens[1]) in _BLOCKS:
        block = word(tokens[1])
        index = 2
    elif len(tokens) > 1 and word(tokens[1]) in ("TRANSACTION", "WORK"):
        index = 2
    unseparated = reader.lex.name in ("tsql", "fabric")
    if block in _ENDED:
        flow.branches.end(_ENDED[block])
    elif not block and not unseparated and flow.branches.ends_case(flow.depth):
        return None
    if block in ("", "TRY", "CATCH") and flow.depth:
        handled_errors.ended(reader, tokens)
        if flow.depth == 1:
            table_functions.ended(reader, tokens)
        if unseparated:
            flow.branches.block_passed(flow.depth)
        else:
            flow.branches.end_block(flow.depth)
        began = flow.blocks.get(flow.depth, len(reader.statements))
        flow.depth -= 1
        strings.left(reader)
        _leave(reader, tokens)
        reader.flow.tried = began
    if unseparated:
        return tokens[index:] or None
    return None


def _leave(reader: StatementReader, tokens: list[Token]) -> None:
    """Leave a block: its variables are gone; a routine may end with it."""
    flow = reader.flow
    if (flow.depth == 0 and flow.package) or (flow.nested and flow.nested[-1][0] == flow.depth):
        flow.branches.forget_exits()
    if flow.depth == 0 and flow.names:
        variables.end(reader, tokens[:1])
    if flow.nested and flow.nested[-1][0] == flow.depth:
        _, names = flow.nested.pop()
        if names:
            variables.gone(reader, tokens[:1], names)
        flow.declarations = True
    elif flow.depth > 0:
        return
    elif flow.package:
        flow.declarations = True
    elif flow.owner:
        reader.routine = None
        reader.flow = ControlFlow()
    elif not reader.bodies and reader.routine is None:
        reader.flow = ControlFlow(branches=flow.branches)


_ENDED = {
    "IF": ("if",),
    "CASE": ("case",),
    "CATCH": ("handler",),
    "LOOP": ("loop",),
    "WHILE": ("loop",),
    "FOR": ("loop",),
    "REPEAT": ("loop",),
}
"""The branches that an END with a word behind it may end."""


def _loop(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """LOOP, REPEAT: a body that runs at least once."""
    reader.flow.inside = True
    _branch(reader, "loop", always=True)
    return tokens[1:] or None


def _else(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    if reader.lex.name not in ("tsql", "fabric"):
        reader.flow.branches.next(("if", "case"), rest=True)
    return tokens[1:] or None


def _to_then(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """IF, ELSEIF, CASE, WHEN, EXCEPTION: what follows THEN."""
    head = word(tokens[0])
    if len(tokens) > 1 and head == "IF" and reader.lex.name in variables.TSQL:
        _awaited(reader, tokens, "if")
        return None
    index = find_word(tokens, {"THEN"}, 1)
    if index > 0 and head == "CASE" and not _begins_statement(tokens, index + 1) and not _opens_case(tokens):
        return tokens
    if index < 0:
        if head == "EXCEPTION":
            return tokens[1:] or None
        return tokens if head in ("IF", "CASE", "WHEN") else None
    reader.flow.inside = True
    if head in _OPENED:
        _branch(reader, _OPENED[head])
    else:
        reader.flow.branches.next(("case", "handler") if head == "WHEN" else ("if",))
    _arm(reader, tokens[:index])
    return tokens[index + 1 :] or None


def _awaited(reader: StatementReader, tokens: list[Token], kind: str) -> None:
    """IF and WHILE of T-SQL: the condition is a piece of its own, unless a call opens it."""
    _branch(reader, kind, waits=True)
    _test(reader, tokens[1:])


def _arm(reader: StatementReader, tokens: list[Token]) -> None:
    """Note what decides whether the arm that has just begun is taken, by the tokens before its THEN."""
    head = word(tokens[0])
    if reader.flow.branches.handles():  # behind WHEN are names of errors
        if head == "EXCEPTION":
            handled_errors.begun(reader, tokens, expected=handled_errors.expects(tokens[1:]))
        return
    when = find_word(tokens, {"WHEN"}, 1) if head == "CASE" else -1
    for part in (tokens[1:when], tokens[when + 1 :]) if when > 0 else (tokens[1:],):
        _test(reader, part)


def _test(reader: StatementReader, tokens: list[Token]) -> None:
    """Note the condition of the branch that has just begun, if there is a query in it, a variable, or a field of NEW or
    OLD.
    """
    triggers.note_fields(reader, tokens)
    found = variables.expressions_of(reader, tokens)
    if found:
        _decided(reader, tokens, found[0])


def _decided(reader: StatementReader, tokens: list[Token], test: exp.Expr) -> None:
    """Note that a condition decides whether the branch that has just begun is taken."""
    idle_conditions.noted(reader, tokens, test)
    if not reader.flow.branches.evaluated(test):
        handled_errors.too_many(reader, tokens, "if")


_OPENED = {"IF": "if", "CASE": "case", "EXCEPTION": "handler"}


def _opens_case(tokens: list[Token]) -> bool:
    """Return whether a CASE that begins a piece is not closed in it: a statement, whose first arm calls a routine."""
    return find_word(tokens, {"END"}, 1) < 0


def _begins_statement(tokens: list[Token], index: int) -> bool:
    """Return whether a statement stands behind a THEN; an expression does in a CASE expression."""
    if index >= len(tokens):
        return True
    if index + 1 < len(tokens) and tokens[index + 1].token_type == marks.COLON_EQ:
        return True
    return word(tokens[index]) in _STATEMENTS


def _while(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    if reader.lex.name in variables.TSQL:
        _awaited(reader, tokens, "loop")
        return None
    index = find_word(tokens, {"DO", "LOOP"}, 1)
    if index < 0:
        return tokens
    reader.flow.inside = True
    _branch(reader, "loop")
    _test(reader, tokens[1:index])
    return tokens[index + 1 :] or None


def _for(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """``FOR r IN (query) DO``, ``FOR r IN query LOOP``: the query is read by the loop."""
    index = find_word(tokens, {"DO", "LOOP"}, 1)
    if index < 0:
        return tokens
    if not variable_statements.looped(reader, tokens, index):
        start = find_word(tokens[:index], {"IN", "FOR"}, 1)
        if start >= 0:
            read_query(reader, tokens[start + 1 : index])
    reader.flow.inside = True
    _branch(reader, "loop")
    _repeated(reader, tokens[:index])
    return tokens[index + 1 :] or None


def _repeated(reader: StatementReader, head: list[Token]) -> None:
    """Note what decides how often the body of ``FOR r IN query`` or ``FOR i IN 1 .. n`` runs."""
    start = find_word(head, {"IN", "AS"}, 1)
    value = head[start + 1 :] if start > 0 else []
    if value and word(value[0]) == "REVERSE":
        value = value[1:]
    while len(value) > 2 and value[0].token_type == marks.L_PAREN and closing(value, 0) == len(value) - 1:
        value = value[1:-1]
    if not value:
        return
    if word(value[0]) in _QUERY:
        query = reader.attempt(value)
        if isinstance(query, exp.Query):
            _decided(reader, head, exp.Exists(this=query))
    elif len(value) > 1:
        limits = variable_statements.bounds(reader, value)
        if isinstance(limits, exp.Select):
            _decided(reader, head, exp.Tuple(expressions=limits.expressions))


def _forall(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """Oracle's ``FORALL i IN low .. high [SAVE EXCEPTIONS] statement``."""
    index = find_word(tokens, MODIFYING | {"EXECUTE"}, 1)
    return tokens[index:] if index > 0 else tokens


def _until(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """``UNTIL condition END REPEAT``."""
    reader.flow.branches.end(("loop",))
    return None


def _declare(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    flow = reader.flow
    name = reader.lex.name
    handler = find_word(tokens, {"HANDLER"}, 1)
    if handler > 0:
        return _handler(reader, tokens, find_word(tokens, {"FOR"}, handler))
    if name in SECTION_DIALECTS and (flow.inside or name in ("snowflake", "oracle")):
        flow.inside = flow.declarations = True
        return tokens[1:] or None
    cursor = find_word(tokens, {"CURSOR"}, 1)
    if cursor > 0:
        cursor_of(reader, tokens, variables.targets_of(tokens[1:2], name), tokens[cursor + 1 :])
        return None
    if name not in variables.MARKED:
        _hold_declared(reader, tokens)
    return tokens


def _handler(reader: StatementReader, tokens: list[Token], start: int) -> list[Token] | None:
    """``DECLARE CONTINUE HANDLER FOR NOT FOUND`` and the statement, or block, that it runs."""
    index = handled_errors.after_conditions(tokens, start) if start > 0 else len(tokens)
    if index >= len(tokens):
        return None
    block = word(tokens[index]) == "BEGIN"
    depth = reader.flow.depth
    reader.flow.depth += block
    _branch(reader, "handler", waits=not block)
    handled_errors.declared(reader, tokens[:index], depth)
    return tokens[index + block :] or None


def _hold_declared(reader: StatementReader, tokens: list[Token]) -> None:
    """Note the constant text of ``DECLARE a, b STRING DEFAULT 'text'`` and ``DECLARE VARIABLE a STRING = 'text'``."""
    at = next((i for i, t in enumerate(tokens[1:5], 1) if word(t) not in ("OR", "REPLACE", "VARIABLE", "VAR")), 1)
    names = [tokens[at].text.lower()]
    while at + 2 < len(tokens) and tokens[at + 1].token_type == marks.COMMA:
        at += 2
        names.append(tokens[at].text.lower())
    given = next((i for i, t in enumerate(tokens[at:], at) if t.text == "=" or word(t) == "DEFAULT"), len(tokens))
    for declared in names:
        strings.note(reader, [declared], tokens[given + 1 :])
    strings.declared(reader, names)


def cursor_of(
    reader: StatementReader, tokens: list[Token], targets: list[variables.AssignmentTarget], rest: list[Token]
) -> None:
    """A cursor is a variable that holds the rows of its query, or those of another variable."""
    start = next((i for i, t in enumerate(rest) if word(t) in _QUERY), -1)
    if start >= 0:
        value = rest[start:]
        if start and rest[start - 1].token_type == marks.L_PAREN:
            value = rest[start : max(closing(rest, start - 1), start + 1)]
        variables.assign_query(reader, targets, value)
        return
    of = find_word(rest, {"FOR"})
    if 0 <= of < len(rest) - 1:
        variables.assign_tokens(reader, tokens, targets, rest[of + 1 :], head="declare")
    else:
        variables.declare(reader, tokens, targets)


def _return(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    second = word(tokens[1]) if len(tokens) > 1 else ""
    if second == "NULL":
        triggers.skip_row(reader, tokens)
    if reader.flow.header and table_functions.inline(reader, tokens):
        return None
    if reader.routine is not None and table_functions.returned(reader, tokens, second):
        return None
    if second == "QUERY":
        if len(tokens) > 2 and word(tokens[2]) == "EXECUTE":
            return tokens[2:]
        return tokens[2:] or None
    rest = tokens[1:]
    if reader.routine is not None and rest:
        table_functions.returned_value(reader, tokens, rest)
    if has_query(rest):
        read_query(reader, rest)
    else:
        reader.add(tokens, None, "ignored")
    return None


def _open(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    index = find_word(tokens, {"FOR"}, 1)
    if index < 1:
        reader.add(tokens, None, "ignored")
        return None
    targets = variables.targets_of(tokens[1:index], reader.lex.name)
    value = tokens[index + 1 :]
    if variables.is_query(value):
        variables.assign_query(reader, targets, value)
        return None
    if value and word(value[0]) == "EXECUTE":
        bindings.assign_dynamic(reader, tokens, targets, value)
        return value
    variables.assign_tokens(reader, tokens, targets, value)
    return None


def _perform(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """PERFORM: a query whose rows nobody sees, or a call."""
    selected = [like(tokens[0], marks.SELECT, "SELECT"), *tokens[1:]]
    query = reader.attempt(selected)
    if isinstance(query, exp.Select) and query.find(exp.From) is not None:
        reader.statement(selected)
    elif has_query(tokens):
        read_query(reader, tokens[1:])
    else:
        call = exp.Command(this="CALL", routine="", query=query) if isinstance(query, exp.Select) else None
        reader.add(tokens, call, "ignored")
    return None


STRIPPERS = {
    "BEGIN": _begin,
    "END": _end,
    "ELSE": _else,
    "LOOP": _loop,
    "REPEAT": _loop,
    "DO": routines.do_block,
    "IF": _to_then,
    "ELSEIF": _to_then,
    "ELSIF": _to_then,
    "CASE": _to_then,
    "WHEN": _to_then,
    "EXCEPTION": _to_then,
    "WHILE": _while,
    "FOR": _for,
    "FOREACH": _for,
    "FORALL": _forall,
    "UNTIL": _until,
    "DECLARE": _declare,
    "RETURN": _return,
    "OPEN": _open,
    "PERFORM": _perform,
    "CREATE": routines.create,
}


def has_query(tokens: Sequence[Token]) -> bool:
    """Return whether there is a SELECT in these tokens."""
    return any(word(t) == "SELECT" for t in tokens)


def read_query(reader: StatementReader, tokens: list[Token]) -> None:
    """Read the query in these tokens, if there is one: past ``SCROLL FOR`` and ``IS``, out of parentheses."""
    for index, token in enumerate(tokens):
        text = word(token)
        if text in _QUERY:
            end = len(tokens)
            if index and tokens[index - 1].token_type == marks.L_PAREN:
                end = max(closing(tokens, index - 1), index + 1)
            reader.statement(variable_statements.into(reader, tokens[index:end])[0])
            return


def read_queries(reader: StatementReader, tokens: list[Token]) -> None:
    """Read each query in parentheses among these tokens."""
    index = 0
    while index < len(tokens) - 1:
        end = index
        if tokens[index].token_type == marks.L_PAREN and word(tokens[index + 1]) in _QUERY:
            end = closing(tokens, index)
            reader.statement(tokens[index + 1 : end])
        index = end + 1
