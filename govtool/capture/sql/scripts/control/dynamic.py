"""Dynamic SQL: read where its text is a constant, opaque where it is not."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import bindings, folding, strings, variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites.statements import renamed
from govtool.capture.sql.scripts.trees import tree_of
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, word

_JOINS = frozenset({marks.DPIPE, marks.PLUS})
_TEXTS = STRING_TYPES | {marks.L_PAREN}
CALLS_ROUTINE = "calls a routine: what it writes is read where it is defined"
"""The note of a call; ``govtool.capture.sql.resolve.routine_calls`` finds out whether the routine is defined."""


def read(reader: StatementReader, tokens: list[Token], head: str) -> bool:
    """Read a dynamic, prepared or called statement.

    Returns:
        False if the tokens are none of these.
    """
    if reader.lex.name in variables.MARKED:
        strings.follow(reader, tokens, head)
    second = word(tokens[1]) if len(tokens) > 1 else ""
    if head == "EXECUTE" and second == "IMMEDIATE":
        _constant(reader, tokens, 2, "execute immediate")
    elif head in ("EXECUTE", "EXEC"):
        _execute(reader, tokens, second)
    elif head == "PREPARE":
        return _prepare(reader, tokens)
    elif head == "CALL":
        _called(reader, tokens, "call")
    elif head == "UNLOAD" and second == "" and len(tokens) > 2:
        return False
    else:
        return False
    return True


def _execute(reader: StatementReader, tokens: list[Token], second: str) -> None:
    if second == "AS":  # EXECUTE AS USER = …: whose rights count
        reader.add(tokens, None, "ignored")
        return
    if any(word(t) == "SP_RENAME" for t in tokens[1:6]) and renamed(reader, tokens):
        return
    called = next((i for i, t in enumerate(tokens[1:6], 1) if word(t) == "SP_EXECUTESQL"), -1)
    if called > 0 and (second == "SP_EXECUTESQL" or len(tokens) > 3):
        _constant(reader, tokens, _behind_name(tokens, called + 1), "sp_executesql")
        return
    if len(tokens) > 1 and tokens[1].token_type in _TEXTS:
        _constant(reader, tokens, 1, "execute")
        return
    name = word(tokens[1]).lower() if len(tokens) > 1 else ""
    if _procedural(reader) or name in folding.FUNCTIONS or strings.known(reader)(name):
        _constant(reader, tokens, 1, "execute")
    else:
        _called(reader, tokens, "execute")


def _behind_name(tokens: list[Token], start: int) -> int:
    """Return the place behind the name of an argument, ``@stmt =``; ``start`` if it has none."""
    named = len(tokens) > start + 2 and tokens[start].token_type == marks.PARAMETER and tokens[start + 2].text == "="
    return start + 3 if named else start


def _procedural(reader: StatementReader) -> bool:
    """Return whether EXECUTE runs a text here, as in PL/pgSQL, and no prepared statement."""
    return reader.flow.inside and reader.lex.name in variables.PLPGSQL


def _prepare(reader: StatementReader, tokens: list[Token]) -> bool:
    """``PREPARE name [(types)] AS | FROM statement``."""
    for index, token in enumerate(tokens[1:], 1):
        text = word(token)
        if text == "AS" and index + 1 < len(tokens):
            reader.add(tokens[:index], None, "ignored", head="prepare")
            reader.statement(tokens[index + 1 :])
            return True
        if text == "FROM" and index + 1 < len(tokens):
            if tokens[index + 1].token_type in STRING_TYPES or tokens[index + 1].token_type == marks.PARAMETER:
                _constant(reader, tokens, index + 1, "prepare")
            else:
                reader.add(tokens[:index], None, "ignored", head="prepare")
                reader.statement(tokens[index + 1 :])
            return True
    reader.add(tokens, None, "ignored")
    return True


def _constant(reader: StatementReader, tokens: list[Token], start: int, head: str) -> None:
    """Read the statement in a string, or in strings joined by ``||`` or ``+``."""
    written = tokens
    tokens = strings.replaced(reader, tokens, start)
    end = len(tokens)
    while start < end and tokens[start].token_type == marks.L_PAREN:
        end = min(closing(tokens, start), end)
        start += 1
    parts, index = _joined_strings(tokens, start, end)
    tail = word(tokens[index]) if index < len(tokens) else ""
    joined = bool(parts) and (
        index >= end or tail in ("INTO", "USING", "AT", "AS", "") or tokens[index].token_type == marks.COMMA
    )
    targets = _targets(reader, tokens, index)
    if not joined or (index < end and tokens[index].token_type in _JOINS):
        _opaque(reader, tokens, head)
        variables.unknown(reader, tokens, targets, "dynamic SQL", head="assignment")
        return
    first = parts[0]
    text = "".join(part.text for part in parts)
    # Places within the statement are places in the file; of a text of several parts, those of the first.
    offset = reader.text.find(text[:40], first.start, first.end + 1)
    reader.add(written, None, "ignored", head=head)
    if reader.lex.name in variables.TSQL:
        bindings.hand_over(reader, tokens[index:])
    given = bindings.using(reader, tokens)
    start = len(reader.statements)
    reader.body(text, first, offset if offset >= 0 else first.start, None)
    if given:
        for number in range(start, len(reader.statements)):
            _bind(reader, number, given)
    if targets:
        _kept(reader, written, targets, text, given)


def _joined_strings(tokens: list[Token], start: int, end: int) -> tuple[list[Token], int]:
    """Return the strings from ``start`` on, and the place behind them; none if something else is joined to them."""
    parts: list[Token] = []
    index = start
    while index < end and tokens[index].token_type in STRING_TYPES:
        parts.append(tokens[index])
        following = tokens[index + 1].token_type if index + 1 < end else None
        if following in _JOINS:
            index += 2
        elif following in STRING_TYPES:
            index += 1
        else:
            return parts, index + 1
    return ([] if index < end else parts), index


def _bind(reader: StatementReader, number: int, given: dict[str, exp.Expr]) -> None:
    """Put what USING gives into a statement, whose tree has to be kept from here on."""
    statement = reader.statements[number]
    tree = tree_of(statement)
    if statement.packed is not None:
        reader.statements[number] = statement._replace(tree=tree, packed=None)
    if tree is not None:
        bindings.bind(tree, given)


def _targets(reader: StatementReader, tokens: list[Token], start: int) -> list[variables.AssignmentTarget]:
    """The variables that dynamic SQL gives values: ``INTO a, b``, and parameters with OUTPUT."""
    dialect = reader.lex.name
    if dialect in variables.TSQL:
        return bindings.outputs(tokens, dialect)
    at = find_word(tokens, {"INTO"}, start)
    if at < 0:
        return []
    end = find_word(tokens, {"USING"}, at)
    first = at + 1 + (at + 1 < len(tokens) and word(tokens[at + 1]) == "STRICT")
    return variables.targets_of(tokens[first : end if end > 0 else len(tokens)], dialect)


def _kept(
    reader: StatementReader,
    tokens: list[Token],
    targets: list[variables.AssignmentTarget],
    text: str,
    given: dict[str, exp.Expr],
) -> None:
    """The variables that a constant statement's result goes into; T-SQL's are set inside, perhaps by another name."""
    if reader.lex.name in variables.TSQL:
        for target, inner in bindings.renamed_outputs(tokens, reader.lex.name):
            if inner != target.name:
                variables.fetch(reader, tokens, [target], inner, head="assignment")
        return
    tree = bindings.constant_query(reader, text)
    if tree is not None:
        bindings.bind(tree, given)
        variables.assign(reader, tokens, targets, tree, quiet=True, head="assignment")
    else:
        variables.unknown(reader, tokens, targets, "dynamic SQL", head="assignment")


def _opaque(reader: StatementReader, tokens: list[Token], head: str) -> None:
    message = "dynamic SQL: the statement is put together when it runs"
    reader.add(tokens, None, "opaque", reader.diagnostic("opaque", "warning", message, tokens[0]), head=head)


def _called(reader: StatementReader, tokens: list[Token], head: str) -> None:
    strings.called(reader, "")
    note = reader.diagnostic("opaque", "info", CALLS_ROUTINE, tokens[0])
    reader.add(tokens, bindings.arguments(reader, tokens, 1), "ignored", note, head=head)
    bindings.called(reader, tokens)
