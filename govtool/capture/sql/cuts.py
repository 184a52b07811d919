"""The regular expression that cuts one dialect's SQL into pieces, made from the tables of sqlglot's tokenizer.

Every character falls into a piece. A piece is a word, an operator or a single character, each with one space behind it
if there is one; a run of spaces; a number; or a whole string, quoted name, comment or ``$$`` string. Pieces that
``unsettled`` matches begin what the expression does not cut: hints, what is not closed, long quotes, numbers like
``1_000``, entries of the table of keywords that only sqlglot's tokenizer tells apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot.tokens import Tokenizer

LINE_COMMENTS = ("--", "//", "#")
BLOCK_COMMENT = "/*"
DOLLARS = "$$"

_SPACES = "".join(f"\\u{code:04x}" for code in range(0x10000) if chr(code).isspace())
"""What ``\\s`` stands for, in half the time."""
_JOINING = r"(?:[^\W0-9]|[\u1885\u1886\u2118\u212E\u309B\u309C])"
"""A character that may go on with a number: those with which names can begin (``str.isidentifier``), and some more."""
_ODD_NUMBER = rf"[0-9][0-9.]*{_JOINING}"


_REST = ".*"
"""What is not closed goes to the end, or each of a million opening brackets would be looked for its closing one."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The rules for cutting a dialect's SQL."""

    pieces: re.Pattern[str]
    """Finds one piece after another; it has no groups and leaves out no character."""
    unsettled: re.Pattern[str]
    """Matches a whole piece of which only sqlglot knows what it begins, but for comments that are not closed."""


def cuts(tokenizer: Tokenizer) -> Cuts:
    """The expressions for a tokenizer's dialect."""
    singles = set(tokenizer.SINGLE_TOKENS)
    formats = set(tokenizer._FORMAT_STRINGS)
    quotes = {*tokenizer._IDENTIFIERS, *(quote[0] for quote in tokenizer._QUOTES)}
    operators, odd = _operators(tokenizer)
    first = _literally(_odd_comments(tokenizer, [*operators, *odd]))
    others = _literally(start for start in tokenizer._COMMENTS if start not in (*LINE_COMMENTS, BLOCK_COMMENT))
    backslash = "\\" in tokenizer._IDENTIFIER_ESCAPES
    brackets = [(start, end) for start, end in tokenizer._IDENTIFIERS.items() if start != end]
    dollars = [r"\$\$.*?\$\$", r"\$\$"] if formats & {"$", DOLLARS} else []
    decimals = r"(?:\.[0-9]*)?" if tokenizer.NUMBERS_CAN_HAVE_DECIMALS else ""
    hexadecimal = [rf"0[xX][0-9a-fA-F]++(?![^{_SPACES}{_set(singles)}])"] if tokenizer.HEX_STRINGS else []
    alone = singles - quotes - {path[0] for path, _, _ in _paths(tokenizer._KEYWORD_TRIE)}
    pieces = [
        rf"[^{_SPACES}0-9{_set(singles)}][^{_SPACES}{_set(singles - tokenizer.VAR_SINGLE_TOKENS)}]*+ ?",
        rf"[{_set(alone)}] ?",
        rf"[{_SPACES}]+",
        *first,
        *_comments(tokenizer),
        *others,
        *hexadecimal,
        rf"(?>[0-9]+{decimals}(?:[eE][+-]?[0-9]++(?!\.))?)(?!{_JOINING}) ?",
        _ODD_NUMBER,
        *[_name(start, end, backslash) for start, end in tokenizer._IDENTIFIERS.items()],
        *[re.escape(start) + _REST for start, _ in brackets],
        *_strings(tokenizer),
        *dollars,
        *_literally(odd),
        *[f"{operator} ?" for operator in _literally(operators)],
        rf"[{_set(singles - alone - quotes - (formats & {'$'}))}] ?",
        ".",
    ]
    unsettled = [
        *first,
        *others,
        *_literally(odd),
        *dollars[1:],
        _ODD_NUMBER,
        f"[{_set(quotes)}]",
        *[f"(?!(?:{_name(start, end, backslash)})\\Z){re.escape(start)}{_REST}" for start, end in brackets],
    ]
    return Cuts(re.compile("|".join(pieces), re.DOTALL), re.compile("|".join(unsettled), re.DOTALL))


def _comments(tokenizer: Tokenizer) -> Iterator[str]:
    starts = tokenizer._COMMENTS
    rest = r"[^\n]*+" if tokenizer.COMMENTS_TERMINATE_AT_NEWLINE_ONLY else r"[^\r\n]*+"
    if "--" in starts:
        boundary = r"(?=[\s\x00-\x1f\x7f]|\Z)" if tokenizer.DASH_COMMENT_REQUIRES_BOUNDARY else ""
        yield f"--{boundary}{rest}"
    for start in LINE_COMMENTS[1:]:
        if start in starts:
            yield re.escape(start) + rest
    if BLOCK_COMMENT in starts:
        inside = r"(?:[^*/]++|\*(?!/)|/(?!\*))*+" if tokenizer.NESTED_COMMENTS else ".*?"
        yield rf"/\*{inside}\*/"
        yield rf"/\*{_REST}"


def _odd_comments(tokenizer: Tokenizer, operators: Collection[str]) -> Iterator[str]:
    """Return the text that begins like a comment and is none, or one of another sort."""
    plain = [start for start in (*LINE_COMMENTS, BLOCK_COMMENT) if start in tokenizer._COMMENTS]
    for entry in (*tokenizer._COMMENTS, *operators):
        if any(entry.startswith(start) and entry != start for start in plain):
            yield entry


def _strings(tokenizer: Tokenizer) -> Iterator[str]:
    quotes, escapes = tokenizer._QUOTES, tokenizer._STRING_ESCAPES
    for start, end in quotes.items():
        if len(start) == 1:
            long = f"(?!{re.escape(start * 2)})" if start * 3 in quotes else ""
            yield _quoted(start, end, end in escapes, "\\" in escapes, long)


def _name(start: str, end: str, backslash: bool) -> str:
    """A quoted name; where backslashes escape, sqlglot has rules of its own for doubled quotes."""
    if not backslash:
        return _quoted(start, end, True, False)
    return f"{_quoted(start, end, False, True)}(?!{re.escape(end)})"


def _quoted(start: str, end: str, doubled: bool, backslash: bool, ahead: str = "") -> str:
    """A whole string or quoted name; with a backslash that may mean something it is none."""
    close = re.escape(end)
    inside = f"[^{close}{re.escape(chr(92)) if backslash else ''}]*+"
    again = f"(?:{close}{close}{inside})*+" if doubled else ""
    return f"{re.escape(start)}{ahead}{inside}{again}{close}"


def _operators(tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """The dialect's operators of several characters, and what begins like one and needs sqlglot's own way."""
    singles = tokenizer.SINGLE_TOKENS
    others = {*tokenizer._COMMENTS, *tokenizer._QUOTES, *tokenizer._FORMAT_STRINGS}
    operators: list[str] = []
    odd: list[str] = []
    for path, complete, after in _paths(tokenizer._KEYWORD_TRIE):
        if path[0] not in singles or path[0] in tokenizer._QUOTES or path in others:
            continue
        plain = all(char in singles for char in path)
        if complete and plain and path in tokenizer.KEYWORDS:
            operators.append(path)
        elif complete or after:
            odd.append(path)
    return operators, odd


def _paths(node: Mapping[Any, Any], path: str = "", after: bool = False) -> Iterator[tuple[str, bool, bool]]:
    """Each way into a table of keywords, whether it ends an entry, and whether an entry ends on the way."""
    for char, below in node.items():
        if isinstance(char, str):
            complete = 0 in below
            yield path + char, complete, after
            yield from _paths(below, path + char, after or complete)


def _literally(texts: Iterator[str] | Collection[str]) -> list[str]:
    """Expressions for texts as they stand, the longest first; a space is any, letters are of either case."""
    found = sorted(set(texts), key=lambda text: (-len(text), text))
    return [f"(?i:{re.escape(text)})".replace(r"\ ", r"\s") for text in found]


def _set(characters: Collection[str]) -> str:
    """Characters for between the brackets of a set."""
    return "".join(re.escape(char) for char in sorted(characters))
