"""Values that are handed to routines and dynamic SQL, and variables that they set.

Dynamic SQL with a constant text is read, with what USING gives its parameters in their place. What any other statement
puts into a variable is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import variables
from govtool.capture.sql.scripts.control.variables import AssignmentTarget
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, name_end, split, word


def using(reader: StatementReader, tokens: list[Token]) -> dict[str, exp.Expr]:
    """Return the values that USING gives the parameters of dynamic SQL, by their position from 1 on, or by name."""
    at = find_word(tokens, {"USING"}, 1)
    end = find_word(tokens, {"INTO"}, at) if at > 0 else -1
    given: dict[str, exp.Expr] = {}
    if at < 0:
        return given
    dialect = reader.lex.name
    for number, item in enumerate(split(tokens[at + 1 : end if end > 0 else len(tokens)]), 1):
        name = ""
        if len(item) > 2 and word(item[-2]) == "AS":
            name, item = item[-1].text.lower(), item[:-2]
        if word(item[0]) in ("IN", "OUT"):
            item = item[1:]
        variable = variables.cursor_name(item, dialect)
        if variable and dialect == "snowflake":
            given[name or str(number)] = exp.Placeholder(this=variable)
            continue
        tree = variables.value_of(reader, item) if item else None
        if isinstance(tree, exp.Select) and len(tree.expressions) == 1:
            given[name or str(number)] = tree.expressions[0]
    return given


def bind(tree: exp.Expr, given: dict[str, exp.Expr]) -> None:
    """Put what USING gives in the place of parameters: ``?``, ``:x`` and ``$1`` by position, ``@x`` by name."""
    number = 0
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter, bfs=False)):
        if isinstance(node, exp.Placeholder):
            number += 1
            value = given.get(str(number))
        else:
            value = given.get(node.name.lower())
        if value is not None:
            node.replace(exp.Paren(this=value.copy()))


def constant_query(reader: StatementReader, text: str) -> exp.Query | None:
    """The tree of dynamic SQL whose text is known, if it is a query."""
    tree = reader.attempt_text(text)
    return tree if isinstance(tree, exp.Query) else None


def assign_dynamic(
    reader: StatementReader, tokens: list[Token], targets: Sequence[AssignmentTarget], value: list[Token]
) -> None:
    """Add what gives variables the answer of ``EXECUTE [IMMEDIATE] 'text'``, which is read elsewhere."""
    at = 1 + (len(value) > 1 and word(value[1]) == "IMMEDIATE")
    constant = len(value) > at and value[at].token_type in STRING_TYPES
    constant = constant and (len(value) == at + 1 or word(value[at + 1]) == "USING")
    tree = constant_query(reader, value[at].text) if constant else None
    if tree is not None:
        bind(tree, using(reader, value))
        variables.assign(reader, tokens, targets, tree, quiet=True, head="assignment")
    else:
        variables.unknown(reader, tokens, targets, "dynamic SQL", head="assignment")


def arguments(reader: StatementReader, tokens: list[Token], start: int) -> exp.Command | None:
    """Return the values that a call hands to a routine, whose name stands at ``start``, as far as they may be columns.

    ``routine`` is the last part of the routine's name, in lower case.
    """
    if reader.lex.name in variables.TSQL and len(tokens) > start + 2 and tokens[start + 2].token_type == marks.EQ:
        start += 3  # EXEC @result = name
    end = name_end(tokens, start) if len(tokens) > start else start
    rest = tokens[end:]
    if rest and rest[0].token_type == marks.L_PAREN:
        rest = rest[1 : closing(rest, 0)]
    found: list[exp.Expr] = []
    for item in split(rest):
        found += variables.expressions_of(reader, _value(item))
    return exp.Command(this="CALL", routine=tokens[end - 1].text.lower(), expressions=found) if found else None


def _value(item: list[Token]) -> list[Token]:
    """Return an argument without its name (``@k = @v``, ``k => v``, ``k := v``) and T-SQL's OUTPUT."""
    if len(item) > 1 and word(item[-1]) in ("OUTPUT", "OUT"):
        item = item[:-1]
    at = 2 if item and item[0].token_type == marks.PARAMETER else 1
    named = len(item) > at + 1 and item[at].text in ("=", "=>", ":=")
    return item[at + 1 :] if named else item


_PRINTING: Final = (
    *("dbms_output.", "dbms_lock.", "dbms_stats.", "dbms_application_info.", "htp."),
    "raise_application_error",
)
"""How the names begin of Oracle's own routines that set no variable."""
_BARE_VARIABLES: Final = frozenset({"bigquery", "databricks", "spark"})
"""Dialects whose scripts have variables outside of blocks, and no sign before their names."""
_OUT: Final = re.compile(r"\bOUT\b", re.IGNORECASE)


def _sets_nothing(reader: StatementReader, name: str) -> bool:
    """Return whether a routine is one of Oracle's own that sets no variable, or has no OUT parameter in this text."""
    if name.startswith(_PRINTING):
        return True
    head = re.compile(rf"\bPROCEDURE\s+(?:[\w$#]+\.)?{re.escape(name.rpartition('.')[2])}\b", re.IGNORECASE)
    heads = [one.text for one in reader.statements if "procedure" in one.head and head.search(one.text)]
    return bool(heads) and not any(_OUT.search(text) for text in heads)


def called(reader: StatementReader, tokens: list[Token], start: int = 1) -> None:
    """A call of a routine, whose name stands at ``start``, may set the variables that are handed to it."""
    dialect = reader.lex.name
    is_tsql = dialect in variables.TSQL
    result: list[AssignmentTarget] = []
    if is_tsql and len(tokens) > start + 3 and tokens[start + 2].token_type == marks.EQ:  # EXEC @result = name
        result.append(variables.target_of(tokens[start : start + 2], dialect))
        start += 3
    name = "".join([token.text for token in tokens[start : name_end(tokens, start)]]).lower()
    if dialect == "oracle" and _sets_nothing(reader, name):
        return
    targets = [*outputs(tokens, dialect), *result] if is_tsql else _handed(reader, tokens)
    targets = [target for target in targets if target.name and target.name.upper() not in ("NULL", "TRUE", "FALSE")]
    variables.unknown(
        reader,
        tokens,
        targets,
        f"{'EXEC' if is_tsql else 'CALL'} {name}, which may set it",
        origin=f"exec({name})",
        keeps=not is_tsql,
        head="assignment",
    )


def _handed(reader: StatementReader, tokens: list[Token]) -> list[AssignmentTarget]:
    """The variables that a CALL hands over, and those behind its INTO."""
    dialect = reader.lex.name
    targets: list[AssignmentTarget] = []
    at = next((i for i, t in enumerate(tokens) if t.token_type == marks.L_PAREN), -1)
    if at > 0:
        for item in map(_value, split(tokens[at + 1 : closing(tokens, at)])):
            if not item or not (word(item[-1]) or item[-1].token_type == marks.IDENTIFIER):
                continue  # a text or a number
            bare = item[0].token_type in (marks.PARAMETER, marks.COLON)
            if len(item) == 1 + bare and (bare or reader.flow.inside or dialect in _BARE_VARIABLES):
                targets.append(variables.target_of(item, dialect))
    index = find_word(tokens, {"INTO"}, 2)
    if index > 0:
        targets += variables.targets_of(tokens[index + 1 :], dialect)
    return targets


def outputs(tokens: Sequence[Token], dialect: str) -> list[AssignmentTarget]:
    """The variables that T-SQL's EXEC hands over with OUTPUT."""
    return [target for target, _ in renamed_outputs(tokens, dialect)]


def renamed_outputs(tokens: Sequence[Token], dialect: str) -> list[tuple[AssignmentTarget, str]]:
    """The same with the parameter that each is inside: ``@inner = @outer OUTPUT``."""
    found: list[tuple[AssignmentTarget, str]] = []
    for index, token in enumerate(tokens):
        if word(token) in ("OUTPUT", "OUT") and index > 2 and tokens[index - 2].token_type == marks.PARAMETER:
            target = variables.target_of(tokens[index - 2 : index], dialect)
            named = index > 5 and tokens[index - 3].token_type == marks.EQ
            inner = variables.target_of(tokens[index - 5 : index - 3], dialect) if named else target
            found.append((target, inner.name))
    return found


def hand_over(reader: StatementReader, tokens: list[Token]) -> None:
    """Add what ``sp_executesql`` hands to its statement: ``, N'@p int, @q int', @v, @q = @w`` behind the text."""
    dialect = reader.lex.name
    items = split(tokens)
    if len(items) < 2 or len(items[0]) != 1 or items[0][0].token_type not in STRING_TYPES:
        return
    text = items[0][0].text
    declared_ = [item.split()[0].lower() for item in text.split(",") if item.split() and item.split()[0][:1] == "@"]
    for number, item in enumerate(items[1:]):
        inner = declared_[number] if number < len(declared_) else ""
        value = item
        if len(item) > 3 and item[2].token_type == marks.EQ:
            inner, value = variables.target_of(item[:2], dialect).name, item[3:]
        if value and word(value[-1]) in ("OUTPUT", "OUT"):
            value = value[:-1]
        if inner and value and inner != variables.cursor_name(value, dialect):
            variables.assign_tokens(reader, item, [AssignmentTarget(inner)], value, head="assignment")
