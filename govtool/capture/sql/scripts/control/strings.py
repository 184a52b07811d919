"""Constant text in variables, so that ``SET @sql = N'…'; EXEC (@sql)`` is read as the statement that it is.

A variable holds constant text where its last assignment gives it some and every run that comes to its use has passed
that assignment: it does not stand in a branch that the use is outside of, and no loop or handler begins between them.

Names that begin with ``@`` are followed in any statement that holds them (``follow``); other variables where they are
assigned (``note``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import folding
from govtool.capture.sql.scripts.control.branches import Path
from govtool.capture.sql.scripts.control.control_flow import Text
from govtool.capture.sql.scripts.control.folding import Known, Parts
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, like, split, word

_ENDS: Final = frozenset({marks.COMMA, marks.R_PAREN})
_BEHIND_TEXT: Final = frozenset({"USING", "INTO"})
MAX_SEARCHED: Final = 20_000
"""Characters of a text that is searched once for each variable of it."""
_STRING: Final = re.compile(r"'[^']*'")
_TSQL: Final = frozenset({"tsql", "fabric"})
_GIVING: Final = frozenset({"SET", "DECLARE", "SELECT"})
"""First words of T-SQL's statements that give variables values; in MySQL's SELECT, ``=`` compares."""
_OUTPUTS: Final = ("dbms_output", "dbms_lock", "dbms_application_info", "dbms_stats", "raise_application_error")
"""Routines of Oracle that change no variable of a caller."""
_ASSIGNS: Final = frozenset({marks.EQ, marks.COLON_EQ})
_TEXTS: Final = STRING_TYPES | {marks.PARAMETER, marks.COLON}
_NAMING: Final = frozenset({"snowflake", "databricks", "spark"})
"""Dialects with ``IDENTIFIER(text)`` in the place of a name."""


def known(reader: StatementReader) -> Known:
    """The constant texts that variables hold at the reader's place."""
    flow = reader.flow

    def text_of(name: str) -> Parts:
        constant = flow.constants.get(name)
        if constant is not None:
            return constant
        text = flow.strings.get(name)
        if text is None or not _always(text.path, flow.branches.path) or _jumps(reader.text):
            return ()
        return text.parts

    return text_of


def note(reader: StatementReader, names: Sequence[str], value: Sequence[Token] = ()) -> None:
    """Keep the constant text that an assignment gives a variable, and forget what variables held before it."""
    items = [value] if len(names) == 1 else split(value)
    texts = known(reader)
    given = [folding.constant_parts(item, texts) for item in items] if len(items) == len(names) else []
    for name in names:
        reader.flow.strings.pop(name, None)
    for name, parts in zip(names, given, strict=False):
        if parts and name:
            reader.flow.strings[name] = Text(parts, reader.flow.branches.path)


def called(reader: StatementReader, routine: str) -> None:
    """Forget what variables hold where a routine runs that may change them."""
    if not routine.lower().startswith(_OUTPUTS):
        reader.flow.strings.clear()


def declared(reader: StatementReader, names: Sequence[str]) -> None:
    """Note that variables are declared here: with their block they end, and one of the same name may count again."""
    reader.flow.declared.update(dict.fromkeys(names, reader.flow.depth))


def left(reader: StatementReader) -> None:
    """Forget the variables of a block that has ended."""
    flow = reader.flow
    for name in [name for name, depth in flow.declared.items() if depth >= flow.depth]:
        flow.declared.pop(name)
        flow.strings.pop(name, None)


def follow(reader: StatementReader, tokens: list[Token], head: str) -> None:
    """Keep what a statement puts into ``@`` variables as constant text, and forget those that it may change."""
    held = reader.flow.strings
    tsql = reader.lex.name in _TSQL
    gives = head in _GIVING if tsql else head == "SET"
    if not held and not gives:
        return
    if head == "CALL":  # a routine of MySQL shares the variables of the session
        held.clear()
    given = [_given(reader, head, item) for item in split(tokens[1:])] if gives else []
    for index in range(len(tokens) - 1) if held else ():
        if tokens[index].token_type == marks.PARAMETER:
            other = "@" + tokens[index + 1].text.lower()
            if other in held and (head == "FETCH" or _changed(tokens, index, into=not tsql)):
                del held[other]
    for name, parts in given:
        if parts:
            held[name] = Text(parts, reader.flow.branches.path)


def replaced(reader: StatementReader, tokens: list[Token], start: int) -> list[Token]:
    """Return the tokens of dynamic SQL with its constant text, from ``start`` on, as strings; the same list where that
    is not known.
    """
    if reader.lex.name in _TSQL:
        return _replaced_in_exec(reader, tokens, start)
    behind = find_word(tokens, _BEHIND_TEXT, start)
    end = behind if behind > 0 else len(tokens)
    parts = folding.constant_parts(tokens[start:end], known(reader))
    return [*tokens[:start], *_joined(parts), *tokens[end:]] if parts else tokens


def _replaced_in_exec(reader: StatementReader, tokens: list[Token], start: int) -> list[Token]:
    """The same of T-SQL's EXEC, whose text may be in parentheses with the place where it runs behind them."""
    while start < len(tokens) and tokens[start].token_type == marks.L_PAREN:
        start += 1
    end = start
    begins = start < len(tokens) and (
        tokens[start].token_type == marks.PARAMETER or tokens[start].token_type in STRING_TYPES
    )
    if reader.flow.strings and begins:
        end = next((i for i, t in enumerate(tokens[start:], start) if t.token_type in _ENDS), len(tokens))
    elsewhere = any(word(token) == "AT" for token in tokens[end : end + 3])
    if end == start or elsewhere:
        return tokens
    parts = folding.constant_parts(tokens[start:end], known(reader))
    return [*tokens[:start], *_joined(parts), *tokens[end:]] if parts else tokens


def with_names(reader: StatementReader, tokens: list[Token]) -> list[Token]:
    """Return a statement with constant names in the place of ``IDENTIFIER($name)``, and ``TABLE($name)`` in Snowflake;
    the same list where there are none.
    """
    dialect = reader.lex.name
    if dialect not in _NAMING or not _has_names(reader.text, dialect):
        return tokens
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        end, name = _name_at(reader, tokens, at, dialect)
        found += name
        at = end
    return found if len(found) != len(tokens) or found != tokens else tokens


@lru_cache(maxsize=1)
def _has_names(text: str, dialect: str) -> bool:
    """Return whether a script may name tables by variables."""
    upper = text.upper()
    return "IDENTIFIER" in upper or (dialect == "snowflake" and "TABLE(" in upper)


def _name_at(reader: StatementReader, tokens: list[Token], at: int, dialect: str) -> tuple[int, Sequence[Token]]:
    """The tokens that stand for those from ``at`` on, and the place behind the latter."""
    token = tokens[at]
    head = word(token)
    kept = (at + 1, (token,))
    named = head == "IDENTIFIER" or (head == "TABLE" and dialect == "snowflake")
    if not named or at + 2 >= len(tokens) or tokens[at + 1].token_type != marks.L_PAREN:
        return kept
    close = closing(tokens, at + 1)
    inner = tokens[at + 2 : close]
    if head == "TABLE" and inner[0].token_type not in _TEXTS:
        return kept  # the rows of a function
    text = folding.constant_text(inner, known(reader))
    if text is None or (dialect == "snowflake" and len(inner) == 1 and inner[0].token_type in STRING_TYPES):
        return kept
    if dialect == "snowflake":
        return close + 1, (token, tokens[at + 1], like(inner[0], marks.STRING, text), tokens[close])
    try:
        parts = reader.lex.tokenize(text)
    except TokenError:
        return kept
    return close + 1, [like(inner[0], part.token_type, part.text) for part in parts]


@lru_cache(maxsize=1)
def _jumps(text: str) -> bool:
    """Return whether a script may jump, so that the order of its text means nothing."""
    return "GOTO" in text.upper()


def _given(reader: StatementReader, head: str, tokens: list[Token]) -> tuple[str, Parts]:
    """The variable that one assignment of a statement gives constant text, and that; none for any other."""
    if len(tokens) < 4 or tokens[0].token_type != marks.PARAMETER:
        return "", ()
    at = next((i for i, t in enumerate(tokens[2:10], 2) if t.token_type in _ASSIGNS), -1)
    if at < 0:
        return "", ()
    value = tokens[at + 1 :]
    if tokens[at - 1].text == "+":
        value = [*tokens[:2], tokens[at - 1], *value]
    elif at > 2 and head != "DECLARE":
        return "", ()
    return "@" + tokens[1].text.lower(), folding.constant_parts(value, known(reader))


@lru_cache(maxsize=4)
def _without_strings(text: str) -> str:
    return _STRING.sub("''", text)


def never_set_again(text: str, name: str) -> bool:
    """Return whether a variable that is declared with a value is given no other in its text."""
    if len(text) > MAX_SEARCHED:
        return False
    word, text = re.escape(name), _without_strings(text)
    if len(re.findall(rf"\b{word}\b[^;:=]{{0,80}}(?::=|=|\bdefault\b)", text, re.IGNORECASE)) > 1:
        return False
    again = rf"\b(?:into|for|call|out|using)\b[^;]{{0,200}}\b{word}\b"
    return re.search(again, text, re.IGNORECASE) is None


def _always(given: Path, here: Path) -> bool:
    """Return whether every run that comes ``here`` has passed ``given`` last."""
    if here[: len(given)] != given:
        return False
    return not any([arm.loops or arm.handler for arm in here[len(given) :]])  # noqa: C419


def _changed(tokens: list[Token], index: int, *, into: bool) -> bool:
    """Return whether a statement may give the variable whose name begins at ``index`` a value.

    Args:
        tokens: The statement.
        index: The place of the ``@``.
        into: Whether the dialect has ``SELECT … INTO @name``.
    """
    at = index + 2
    if into and _listed_into(tokens[:index]):
        return True
    if at >= len(tokens):
        return False
    if tokens[at].token_type in _ASSIGNS or word(tokens[at]) in ("OUTPUT", "OUT"):
        return True
    return at + 1 < len(tokens) and tokens[at + 1].token_type == marks.EQ and not word(tokens[at]).isalnum()


def _listed_into(tokens: Sequence[Token]) -> bool:
    """Return whether only variables are between the end of these tokens and an INTO."""
    for token in reversed(tokens):
        if word(token) == "INTO":
            return True
        if token.token_type not in (marks.PARAMETER, marks.COMMA, marks.VAR):
            return False
    return False


def _joined(parts: tuple[Token, ...]) -> list[Token]:
    found: list[Token] = []
    for part in parts:
        if found:
            found.append(like(part, marks.PLUS, "+"))
        found.append(part)
    return found
