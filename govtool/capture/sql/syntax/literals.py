"""Positions of literals in a SQL text, and their surroundings: one scan by one regular expression a dialect.

The expression is made from sqlglot's own table of quotes, escapes and comments, so that a literal here is a literal
there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from sqlglot.dialects.dialect import Dialect

from govtool.capture.sql.syntax.lexer import word_set

PREDICATES: Final = frozenset({"WHERE", "ON", "QUALIFY", "WHEN"})
"""Clauses in which a literal behind a comparison only decides which rows there are.

HAVING is none of them: the k of ``HAVING COUNT(*) >= k`` is a fact of the lineage (``Statement.min_group``).
"""

CLAUSES: Final = word_set(
    """SELECT FROM JOIN WITH OPTIONS PROPERTIES TBLPROPERTIES SERDEPROPERTIES DBPROPERTIES USING LOCATION SET GROUP
    ORDER SORT CLUSTER DISTRIBUTE PARTITION PIVOT UNPIVOT FOR THEN ELSE VALUES COPY HAVING WINDOW LIMIT OFFSET
    FETCH INTO RETURNING OPTION SETTINGS FORMAT MATCH_RECOGNIZE MEASURES DEFINE LATERAL UNNEST INTERVAL UNION
    INTERSECT EXCEPT CREATE INSERT UPDATE DELETE MERGE TABLE CONNECT START MODEL SAMPLE TABLESAMPLE INDEX
    HASHBYTES"""
)
"""Words that end a predicate (some only may; ending one too early costs merging, never correctness)."""

NUMBER: Final = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\Z|\.\d+(?:[eE][+-]?\d+)?\Z")


_TAIL: Final = 80
"""Characters before a literal in which the clause that it is in is looked for first."""


def clause(text: str) -> str:
    """The last word of a text without literals that begins or ends a clause, in upper case; empty if none does."""
    if len(text) <= 2 * _TAIL:
        return _short_clause(text)
    # The last such word is mostly near the end.
    return _short_clause(text[text.find(" ", len(text) - _TAIL) :]) or _last_clause(text)


def _last_clause(text: str) -> str:
    for word in reversed(text.upper().replace("(", " ").replace(")", " ").replace(",", " ").split()):
        if word in CLAUSES or word in PREDICATES:
            return word
    return ""


_short_clause: Final = lru_cache(maxsize=2048)(_last_clause)
"""Of the same text it is asked twice, for the fingerprint and for redaction; and commas are many."""


_MONEY: Final = frozenset({"tsql", "fabric"})


def _comments(tokenizer: Any, first: set[str]) -> list[str]:
    """Patterns of comments behind their first character, which is added to ``first``."""
    comments: list[str] = []
    for start, end in sorted(tokenizer._COMMENTS.items(), key=lambda item: -len(item[0])):
        if len(start) == 1 and start.isalnum():
            continue
        first.add(start[0])
        lead = f"(?<={re.escape(start[0])}){re.escape(start[1:])}"
        if start == "//":
            # The slashes of ``file:///path`` begin no comment.
            lead = "(?<![:/]/)" + lead
        if end is None:
            comments.append(lead + r"[^\n\r]*")
        elif tokenizer.NESTED_COMMENTS and start == "/*":
            # Three levels of nesting; deeper ones end early and leave words that only split fingerprints.
            inner = r"(?:[^*/]|\*(?!/)|/(?!\*))*"
            level = rf"/\*{inner}\*/"
            level = rf"/\*{inner}(?:{level}{inner})*\*/"
            comments.append(rf"{lead}(?:{inner}(?:{level}{inner})*\*/|[\s\S]*\Z)")
        else:
            comments.append(lead + rf"[\s\S]*?(?:{re.escape(end)}|\Z)")
    return comments


@lru_cache(maxsize=64)
def scanner(dialect: str) -> re.Pattern[str]:
    """The expression that finds comments, strings, quoted identifiers and numbers, each in a named group.

    Groups: ``comment``, ``string``, ``name`` (a quoted identifier), ``number``. It begins with one set of characters
    and has
    no flags, which lets the engine skip everything else ten times faster than an alternation does.
    """
    tokenizer: Any = Dialect.get_or_raise(dialect or None).tokenizer_class
    first: set[str] = set()
    comments = _comments(tokenizer, first)
    quotes: dict[str, str] = dict(tokenizer._QUOTES)
    raw_allowed = any(start[:1] in "rR" for start in tokenizer._FORMAT_STRINGS)
    strings: list[str] = []
    for start, end in sorted(quotes.items(), key=lambda item: -len(item[0])):
        first.add(start[0])
        quote = re.escape(start[0])
        rest = re.escape(start[1:])
        if start[0] == "$" or not start.strip("$"):
            continue
        if raw_allowed and not tokenizer.STRING_ESCAPES_ALLOWED_IN_RAW_STRINGS:
            strings.append(f"(?<=[rR]{quote}){rest}{_inside(end, set(), True)}{_closed(end)}")
        strings.append(f"(?<={quote}){rest}{_inside(end, tokenizer._STRING_ESCAPES, False)}{_closed(end)}")
    if "$" in tokenizer._FORMAT_STRINGS or "$" in quotes or "$$" in quotes:
        first.add("$")
        strings.append(r"(?<=\$)(?<![\w$]\$)(?P<tag>(?:[A-Za-z_]\w*)?)\$[\s\S]*?(?:\$(?P=tag)\$|\Z)")
    names = []
    for start, end in tokenizer._IDENTIFIERS.items():
        first.add(start)
        names.append(
            f"(?<={re.escape(start)}){_inside(end, tokenizer._IDENTIFIER_ESCAPES | {end}, False)}{re.escape(end)}"
        )
    chars = "".join(re.escape(c) for c in sorted(first))
    # ``$1`` is a parameter, in T-SQL an amount of money.
    alone = r"(?<![\w.\"`\]]\d)(?<![\w$]\$\d)" if dialect in _MONEY else r"(?<![\w$.\"`\]]\d)"
    number = rf"(?<=\d){alone}(?:[\w.$]*(?:(?<=[eE])[+-]\d+)?)"
    return re.compile(
        rf"[0-9{chars}](?:(?P<number>{number})|(?P<comment>{'|'.join(comments)})|(?P<string>{'|'.join(strings)})"
        rf"|(?P<name>{'|'.join(names) or '(?!)'}))"
    )


def _closed(end: str) -> str:
    """The closing quote, or the end of the text: a literal that is cut off is one all the same."""
    return rf"(?:{re.escape(end)}|\\?\Z)"


def _inside(end: str, escapes: set[str], raw: bool) -> str:
    """Return the pattern between an opening quote and ``end``."""
    if len(end) > 1:
        return r"(?:\\[\s\S]|[\s\S])*?" if "\\" in escapes and not raw else r"[\s\S]*?"
    quote = re.escape(end)
    doubled = f"{quote}{quote}|" if end in escapes and not raw else ""
    if "\\" in escapes and not raw:
        return rf"(?:{doubled}\\[\s\S]|[^{quote}\\])*"
    return rf"(?:{doubled}[^{quote}])*"
