"""Script variables: which statement gives which variable its value.

An assignment is a statement whose tree is a SET with arguments of our own; ``walk/variables`` reads them:

* ``assigns``: the names, by position of the value's columns; a single one takes the whole row, as records do
* ``fields``: the field of each name that is assigned, empty for the whole
* ``expression``: the value, always a query: an expression is a SELECT without FROM
* ``fetches``: in its place the name of a cursor or another variable
* ``reason``: in its place, why the value is not known, and ``origin``, where it comes from
* ``shown``: the value is also the answer to a query, which is listed as one
* ``keeps``: what the variable was before stays possible
* ``gone``: the names end here

Names are canonical as columns are, with ``@`` or ``$`` where the dialect marks variables so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import strings
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, like, split, word
from govtool.names import fold

TSQL: Final = frozenset({"tsql", "fabric"})
MYSQL: Final = frozenset({"mysql", "singlestore", "doris", "starrocks"})
PLPGSQL: Final = frozenset({"", "postgres", "redshift", "materialize", "risingwave"})
MARKED: Final = TSQL | MYSQL
"""Dialects that mark variables with ``@``, and set them in many statements."""
_QUERY: Final = frozenset({"SELECT", "WITH"})
_OPERATORS: Final = frozenset("+-*/%&|^")


class AssignmentTarget(NamedTuple):
    """The target of an assignment: a variable, or a field of it."""

    name: str
    field: str = ""


# -- assignments ------------------------------------------------------------------------------------------------------


def assign(
    reader: StatementReader,
    tokens: list[Token],
    targets: Sequence[AssignmentTarget],
    value: exp.Expr | None,
    *,
    shown: bool = False,
    quiet: bool = False,
    head: str | None = None,
) -> None:
    """Add the statement that gives variables the columns of a query."""
    if not targets:
        return
    _holds(reader, targets)
    if value is None:
        unknown(reader, tokens, targets, "an expression that is not understood", head=head)
        return
    tree = tree_of(targets, expression=value, shown=shown, quiet=quiet)
    reader.add(tokens, tree, "parsed", head=head)


def fetch(
    reader: StatementReader,
    tokens: list[Token],
    targets: Sequence[AssignmentTarget],
    cursor: str,
    *,
    head: str | None = None,
) -> None:
    """Add the statement that gives variables the columns of a cursor's row."""
    _holds(reader, targets)
    if targets and cursor:
        reader.add(tokens, tree_of(targets, fetches=cursor), "parsed", head=head)


def unknown(
    reader: StatementReader,
    tokens: list[Token],
    targets: Sequence[AssignmentTarget],
    reason: str,
    *,
    origin: str = "exec",
    keeps: bool = False,
    head: str | None = None,
) -> None:
    """Add the statement that gives variables values which cannot be followed."""
    _holds(reader, targets)
    if targets:
        reader.add(tokens, tree_of(targets, reason=reason, origin=origin, keeps=keeps), "parsed", head=head)


def declare(reader: StatementReader, tokens: list[Token], targets: Sequence[AssignmentTarget]) -> None:
    """Add the statement that declares variables without a value."""
    nested = reader.flow.depth > 0  # it hides one of the same name for a while: what that was stays possible
    tree = tree_of(targets, keeps=nested) if targets else None
    _holds(reader, targets)
    reader.add(tokens, tree, "ignored", head="declare")
    declared(reader, targets)


def declared(reader: StatementReader, targets: Sequence[AssignmentTarget]) -> None:
    """Note variables of a block, so that they end with it."""
    strings.declared(reader, [target.name.lower() for target in targets])
    if reader.routine is None:
        reader.flow.names += [target.name for target in targets]


def end(reader: StatementReader, tokens: list[Token]) -> None:
    """A block of no routine is over, and with it its variables."""
    names = reader.flow.names
    if names:
        reader.flow.names = []
        gone(reader, tokens, names)


def _holds(reader: StatementReader, targets: Sequence[AssignmentTarget], value: Sequence[Token] = ()) -> None:
    """Note the constant text that an assignment gives its targets, or that they hold none any more."""
    if reader.lex.name not in MARKED:
        strings.note(reader, [target.name.lower() for target in targets], value)


def own(reader: StatementReader, tokens: list[Token], name: str, values: list[exp.Expr]) -> exp.Expr:
    """Give a variable of our own, which no script can name, some values; return the condition that reads it.

    It is kept where the names in the values mean what they meant; what it was before stays possible.
    """
    value = exp.Select(expressions=values)
    tree = tree_of([AssignmentTarget(f"@@{name}")], expression=value, quiet=True, keeps=True)
    reader.add(tokens, tree, "ignored", head="exit")
    return exp.Parameter(this=exp.Parameter(this=exp.Var(this=name)))


def gone(reader: StatementReader, tokens: list[Token], names: Sequence[str]) -> None:
    """Add the statement at which variables end."""
    reader.add(tokens, exp.Set(assigns=tuple(names), gone=True), "ignored", head="end")


def tree_of(
    targets: Sequence[AssignmentTarget],
    *,
    expression: exp.Expr | None = None,
    fetches: str = "",
    reason: str = "",
    origin: str = "",
    shown: bool = False,
    quiet: bool = False,
    keeps: bool = False,
) -> exp.Expr:
    """The tree of an assignment."""
    fields = tuple([target.field for target in targets])
    return exp.Set(
        assigns=tuple([target.name for target in targets]),
        fields=fields,
        expression=expression,
        fetches=fetches,
        reason=reason,
        origin=origin,
        shown=shown,
        quiet=quiet,
        keeps=keeps or any([bool(field) for field in fields]),  # noqa: C419
        gone=False,
    )


# -- names and values ---------------------------------------------------------------------------------------------


def targets_of(tokens: Sequence[Token], dialect: str) -> list[AssignmentTarget]:
    """The variables in a list such as ``@a, :b, rec.c``; an empty name where an item is none."""
    found: list[AssignmentTarget] = []
    for item in split(tokens):
        found.append(target_of(item, dialect))
    return found


def target_of(tokens: Sequence[Token], dialect: str) -> AssignmentTarget:
    """The variable that tokens name; one with an empty name where they name none."""
    if tokens and tokens[0].token_type == marks.COLON:
        tokens = tokens[1:]
    if not tokens:
        return AssignmentTarget("")
    first = tokens[0]
    if first.token_type == marks.PARAMETER:
        if len(tokens) < 2 or tokens[1].token_type == marks.PARAMETER:
            return AssignmentTarget("")
        return AssignmentTarget(first.text + tokens[1].text.lower())
    if not (first.token_type == marks.IDENTIFIER or first.text[:1].isalpha() or first.text[:1] == "_"):
        return AssignmentTarget("")
    name = _name(first, dialect)
    if len(tokens) > 2 and tokens[1].token_type == marks.DOT:
        return AssignmentTarget(name, _name(tokens[2], dialect))
    if len(tokens) > 1 and tokens[1].token_type in (marks.L_BRACKET, marks.L_PAREN):
        return AssignmentTarget(name, "[]")  # an element of a collection
    return AssignmentTarget(name)


def _name(token: Token, dialect: str) -> str:
    return fold(token.text, quoted=token.token_type == marks.IDENTIFIER, dialect=dialect)


def is_query(tokens: Sequence[Token]) -> bool:
    """Return whether a value is a query, perhaps in parentheses."""
    index = 0
    while index < len(tokens) and tokens[index].token_type == marks.L_PAREN:
        index += 1
    return index < len(tokens) and word(tokens[index]) in _QUERY and (index == 0 or whole(tokens))


def whole(tokens: Sequence[Token]) -> bool:
    """Return whether parentheses are around all of the tokens."""
    return tokens[0].token_type == marks.L_PAREN and closing(tokens, 0) == len(tokens) - 1


def bare(tokens: list[Token]) -> list[Token]:
    """A query without the parentheses around it; anything else as it is."""
    while tokens and is_query(tokens) and whole(tokens):
        tokens = tokens[1:-1]
    return tokens


def value_of(reader: StatementReader, tokens: list[Token]) -> exp.Expr | None:
    """The value in these tokens as a query; None if it is not understood."""
    tokens = bare(tokens)
    if not tokens:
        return None
    if word(tokens[0]) not in _QUERY:
        tokens = [like(tokens[0], marks.SELECT, "SELECT"), *tokens]
    tree = reader.attempt(tokens, simplify=True)
    return tree if isinstance(tree, exp.Query) else None


def assign_tokens(
    reader: StatementReader,
    tokens: list[Token],
    targets: Sequence[AssignmentTarget],
    value: list[Token],
    *,
    shown: bool = False,
    head: str | None = None,
) -> None:
    """Add the statement that gives variables the value in these tokens."""
    cursor = cursor_name(value, reader.lex.name)
    if cursor:
        fetch(reader, tokens, targets, cursor, head=head)
    elif shown and is_query(value):
        assign_query(reader, targets, value)
    else:
        assign(reader, tokens, targets, value_of(reader, value), head=head)
        _holds(reader, targets, value)


def assign_query(reader: StatementReader, targets: Sequence[AssignmentTarget], value: list[Token]) -> None:
    """Add a query that gives variables its columns, and that is listed as a query, too."""
    value = bare(value)
    tree = value_of(reader, value)
    if tree is not None:
        assign(reader, value, targets, tree, shown=True)
        return
    reader.statement(value)
    unknown(reader, value, targets, "a query that is not understood", head="assignment")


def cursor_name(tokens: Sequence[Token], dialect: str, *, arguments: bool = False) -> str:
    """The variable that is all there is to a value: another record, a cursor, perhaps with ``arguments``."""
    if not tokens:
        return ""
    start = tokens[0].token_type in (marks.COLON, marks.PARAMETER)
    rest = tokens[1 + start :]
    if rest and not (arguments and rest[0].token_type == marks.L_PAREN and closing(rest, 0) == len(rest) - 1):
        return ""
    if word(tokens[0]) in ("", "NULL", "TRUE", "FALSE", "DEFAULT") and tokens[0].token_type != marks.IDENTIFIER:
        return ""
    return target_of(tokens[: 1 + start], dialect).name


def has_parameter(tokens: list[Token]) -> bool:
    """Return whether ``@name`` or the like is among the tokens."""
    parameter = marks.PARAMETER
    return any([token.token_type == parameter for token in tokens])  # noqa: C419


def compound(tokens: list[Token]) -> list[Token]:
    """The same tokens with ``x += y`` written as ``x = x + y``."""
    found: list[Token] = []
    for index, token in enumerate(tokens):
        if (
            token.token_type == marks.EQ
            and index > 1
            and tokens[index - 1].text in _OPERATORS
            and tokens[index - 1].end + 1 == token.start
        ):
            operator = found.pop()
            start = len(found)
            while start and _is_part(found[start - 1]):
                start -= 1
            found += [token, *[like(t, t.token_type, t.text) for t in found[start:]], operator]
        else:
            found.append(token)
    return found


def _is_part(token: Token) -> bool:
    """Return whether a token is a part of the name of a variable or column."""
    if token.token_type in (marks.DOT, marks.PARAMETER, marks.IDENTIFIER):
        return True
    return word(token) not in ("SET", "SELECT", "TOP", "DISTINCT") and token.text.replace("_", "").isalnum()


_NAMES: Final = (marks.VAR, marks.IDENTIFIER, marks.PARAMETER)
"""Tokens of names, which may be those of variables."""


def expressions_of(reader: StatementReader, tokens: list[Token]) -> list[exp.Expr]:
    """Return the expressions of a text; none if no query and no name is in it, or if it cannot be read."""
    if not any([word(token) == "SELECT" or token.token_type in _NAMES for token in tokens]):  # noqa: C419
        return []
    tree = reader.attempt([like(tokens[0], marks.SELECT, "SELECT"), *tokens])
    return tree.expressions if isinstance(tree, exp.Select) else []
