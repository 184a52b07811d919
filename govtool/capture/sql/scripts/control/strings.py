"""Constant text in T-SQL's variables, so that ``SET @sql = N'…'; EXEC (@sql)`` is read as the statement that it is.

A variable holds constant text where its last assignment gives it some and every run that comes to the EXEC has passed
that assignment: it does not stand in a branch that the EXEC is outside of, and no loop or handler begins between them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control.branches import Path
from govtool.capture.sql.scripts.control.control_flow import Text
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, like, split, word

_MOST: Final = 1_000
"""Strings that a variable's text is joined from at most; of more it is not known."""
_ENDS: Final = frozenset({marks.COMMA, marks.R_PAREN})
MAX_SEARCHED: Final = 20_000
"""Characters of a text that is searched once for each variable of it."""
_STRING: Final = re.compile(r"'[^']*'")
_GIVING: Final = frozenset({"SET", "DECLARE", "SELECT"})


def follow(reader: StatementReader, tokens: list[Token], head: str) -> None:
    """Keep what a statement puts into variables as constant text, and forget those that it may change."""
    held = reader.flow.strings
    if not held and head not in _GIVING:
        return
    given = [_given(reader, head, item) for item in split(tokens[1:])] if head in _GIVING else []
    for index in range(len(tokens) - 1) if held else ():
        if tokens[index].token_type == marks.PARAMETER:
            other = tokens[index + 1].text.lower()
            if other in held and (head == "FETCH" or _changed(tokens, index + 2)):
                del held[other]
    for name, parts in given:
        if parts:
            held[name] = Text(parts, reader.flow.branches.path)


def replaced(reader: StatementReader, tokens: list[Token], start: int) -> list[Token]:
    """Return the tokens of an EXEC with the text of the variables that are run, from ``start`` on; the same list where
    that is not known.
    """
    held = reader.flow.strings
    while start < len(tokens) and tokens[start].token_type == marks.L_PAREN:
        start += 1
    end = start
    begins = start < len(tokens) and (
        tokens[start].token_type == marks.PARAMETER or tokens[start].token_type in STRING_TYPES
    )
    if held and begins:
        end = next((i for i, t in enumerate(tokens[start:], start) if t.token_type in _ENDS), len(tokens))
    elsewhere = any(word(token) == "AT" for token in tokens[end : end + 3])
    if end == start or elsewhere or _jumps(reader.text):
        return tokens
    parts = _parts(reader, tokens[start:end])
    return [*tokens[:start], *_joined(parts), *tokens[end:]] if parts else tokens


@lru_cache(maxsize=1)
def _jumps(text: str) -> bool:
    """Return whether a script may jump, so that the order of its text means nothing."""
    return "GOTO" in text.upper()


def _given(reader: StatementReader, head: str, tokens: list[Token]) -> tuple[str, tuple[Token, ...]]:
    """The variable that one assignment of a statement gives constant text, and that; none for any other."""
    if len(tokens) < 4 or tokens[0].token_type != marks.PARAMETER:
        return "", ()
    at = next((i for i, t in enumerate(tokens[2:10], 2) if t.token_type == marks.EQ), -1)
    if at < 0:
        return "", ()
    value = tokens[at + 1 :]
    if tokens[at - 1].text == "+":
        value = [*tokens[:2], tokens[at - 1], *value]
    elif at > 2 and head != "DECLARE":
        return "", ()
    return tokens[1].text.lower(), _parts(reader, value)


def _parts(reader: StatementReader, tokens: list[Token]) -> tuple[Token, ...]:
    """The strings that an expression joins, those in variables included; none if there is anything else in it."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type in STRING_TYPES:
            found.append(token)
            at += 1
        elif token.token_type == marks.PARAMETER and at + 1 < len(tokens):
            text = reader.flow.strings.get(tokens[at + 1].text.lower())
            if text is None or not _always(text.path, reader.flow.branches.path):
                return ()
            found += text.parts
            at += 2
        else:
            return ()
        if len(found) > _MOST:
            return ()
        if at < len(tokens):
            if tokens[at].token_type != marks.PLUS or at + 1 == len(tokens):
                return ()
            at += 1
    return tuple(found)


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


def _changed(tokens: list[Token], at: int) -> bool:
    """Return whether the variable whose name ends before ``at`` may be given a value there."""
    if at >= len(tokens):
        return False
    if tokens[at].token_type == marks.EQ or word(tokens[at]) in ("OUTPUT", "OUT"):
        return True
    return at + 1 < len(tokens) and tokens[at + 1].token_type == marks.EQ and not word(tokens[at]).isalnum()


def _joined(parts: tuple[Token, ...]) -> list[Token]:
    found: list[Token] = []
    for part in parts:
        if found:
            found.append(like(part, marks.PLUS, "+"))
        found.append(part)
    return found
