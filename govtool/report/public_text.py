"""Texts of traces and provenance graphs without values of the data: all but listed words become ``?``.

The files may be made by hand, so nothing is taken for harmless by its place in them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

DIALECT = "spark"
"""Conditions of ``govtool trace`` are written in it."""
HIDDEN = "?"
"""Stands for what is left out."""

_WORDS = frozenset(
    [
        "and", "as", "between", "case", "cast", "distinct", "else", "end", "escape", "exists", "from", "ilike", "in",
        "is", "like", "not", "null", "or", "rlike", "then", "when",
    ]
)  # fmt: skip
_SIGNS = frozenset(
    [
        "(", ")", ",", ".", "[", "]", "=", "==", "<=>", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "||",
        "&&", "&", "|", "^", "~", "!",
    ]
)  # fmt: skip
_RUN = re.compile(r"\?(?:[ .]*\?)+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_PLAIN_WORD = re.compile(r"\(?[A-Za-z][A-Za-z_-]*(?:['\u2019]s)?\)?[.,;:]?\Z")
_OF_EXPRESSION = re.compile(
    r"[=<>@#$%&*+/\\|~^`\"{}\[\]\u2018\u201c-\u201f\u00ab\u00bb]|(?<![A-Za-z])['\u2019]|['\u2019](?!s\b)"
)


def public_condition(text: str, columns: Collection[str]) -> str:
    """A condition with its columns, operators, keywords and functions of SQL; ``?`` where it cannot be tokenised.

    Args:
        text: The condition.
        columns: Names of columns that may be shown, in lower case.

    >>> public_condition("upper(country) = 'IT' and amount > Ann", {"country", "amount"})
    'upper(country) = ? and amount > ?'
    >>> public_condition("country = q'[Ann's]' and amount", {"country", "amount"})
    '?'
    """
    from sqlglot.errors import SqlglotError

    from govtool.capture.sql.syntax.lexer import lexer

    try:
        tokens = lexer(DIALECT).tokenize(text)
    except SqlglotError:
        return HIDDEN
    parts: list[str] = []
    for at, token in enumerate(tokens):
        is_call = at + 1 < len(tokens) and tokens[at + 1].text == "("
        written = text[token.start : token.end + 1]
        gap = " " if at and token.start > tokens[at - 1].end + 1 else ""
        parts.append(gap + (written if _is_public(token.text, written, columns, is_call=is_call) else HIDDEN))
    return _RUN.sub(HIDDEN, "".join(parts))


def _is_public(text: str, written: str, columns: Collection[str], *, is_call: bool) -> bool:
    if written.strip("`") != text:  # in quotes, or part of something else
        return False
    low = text.lower()
    return low in columns or (written == text and (low in _WORDS or text in _SIGNS or (is_call and is_function(text))))


def is_function(name: str) -> bool:
    """Return whether SQL has a function of this name."""
    from sqlglot import exp

    return name.upper() in exp.FUNCTION_BY_NAME


def is_identifier(text: str) -> bool:
    """Return whether a text has the form of a name in a program."""
    return _IDENTIFIER.match(text) is not None


def public_reason(text: str) -> str:
    """A reason in its plain words; ``?`` for the others, and for all of it where it has quotes or an expression.

    >>> public_reason("rows tie across a limit of 5"), public_reason("name = Ann")
    ('rows tie across a limit of ?', '?')
    """
    if _OF_EXPRESSION.search(text):
        return HIDDEN
    return _RUN.sub(HIDDEN, " ".join(word if _PLAIN_WORD.match(word) else HIDDEN for word in text.split()))
