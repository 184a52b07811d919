"""sqlglot's tokens of plain SQL, in less time than its tokenizer takes; what is not plain is left to that.

sqlglot's tokenizer looks at every character. Here one regular expression cuts a text into pieces (``cuts``), and what a
word or an operator means is looked up once and remembered. The rules are those of
``sqlglot.tokenizer_core.TokenizerCore``: every token equals sqlglot's in all its fields. Where pieces do not settle
what a text means (escapes in strings, numbers like ``1_000``, hints, what is not closed), ``Scanner.scan``
returns None, and the caller asks sqlglot.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from govtool.capture.sql.cuts import BLOCK_COMMENT, DOLLARS, LINE_COMMENTS, cuts

_REMEMBERED: Final = 20_000
"""Pieces that a scanner remembers at most."""
_SHORT: Final = 40
"""Characters of the longest piece that is remembered."""
_RESTARTS: Final = 8
"""Number of times that a text is cut anew at most, each time behind a string that was cut as something else."""

_UPPER: Final = {chr(code): chr(code).upper() for code in range(ord("a"), ord("z") + 1)}
_DIGITS: Final = "0123456789"
_TAG: Final = re.compile(r"\$[^\W\d]\w*\$")

# Sorts of pieces; plain numbers, as every piece is asked for its own.
_TOKEN: Final = 0
_SPACE: Final = 1
_COMMENT: Final = 2
_UNSETTLED: Final = 3
_SEMICOLON: Final = 4
_PARAMETER: Final = 5
_WORDS: Final = 6
_TAGGED: Final = 7

_VAR: Final = TokenType.VAR
_NUMBER: Final = TokenType.NUMBER
_IDENTIFIER: Final = TokenType.IDENTIFIER
_STRING: Final = TokenType.STRING
_HEX: Final = TokenType.HEX_STRING
_UNKNOWN: Final = TokenType.UNKNOWN
_RAW: Final = TokenType.RAW_STRING
_PREFIXED: Final = (_RAW, TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING)
"""Strings with a prefix that hold their text as it is written, but for doubled quotes and backslashes."""


class _Piece:
    """The meaning of a piece of text, wherever it stands."""

    def __init__(self, sort: int, kind: TokenType, text: str, size: int, newlines: int, tail: int) -> None:
        self.sort = sort
        self.kind = kind
        self.text = text
        self.size = size
        """Characters of the token, without a space behind it."""
        self.newlines = newlines
        self.tail = tail
        """Characters behind the last newline."""
        self.below: dict[Any, Any] | None = None
        """Of a word that begins entries of the table of keywords: what goes on with them."""


class Scanner:
    """The tokens of one dialect's plain SQL. It remembers words: one instance serves one thread."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        expressions = cuts(tokenizer)
        self._find: Any = expressions.pieces.findall
        self._unsettled: Any = expressions.unsettled.fullmatch
        self._singles: dict[str, TokenType] = tokenizer.SINGLE_TOKENS
        self._keywords: dict[str, TokenType] = tokenizer.KEYWORDS
        self._trie: dict[Any, Any] = tokenizer._KEYWORD_TRIE
        self._identifiers: dict[str, str] = tokenizer._IDENTIFIERS
        self._quotes: dict[str, str] = tokenizer._QUOTES
        self._formats: dict[str, tuple[str, TokenType]] = tokenizer._FORMAT_STRINGS
        self._comments: dict[str, str | None] = tokenizer._COMMENTS
        self._nested: bool = tokenizer.NESTED_COMMENTS
        self._escapes: set[str] = tokenizer._STRING_ESCAPES
        self._known: dict[str, _Piece] = {}

    def scan(self, text: str) -> list[Token] | None:
        """The tokens of a text, equal to sqlglot's, or None where only sqlglot's tokenizer can tell."""
        if "\r" in text and text.count("\r") != text.count("\r\n"):
            return None
        pieces: list[str] = self._find(text)
        known = self._known
        tokens: list[Token] = []
        pending: list[str] = []  # comments in front of the next token
        index = position = line_start = restarts = 0
        line = 1
        last_line = -1  # where the last token or comment ends
        while index < len(pieces):
            cut = pieces[index]
            index += 1
            piece = known.get(cut)
            if piece is None:
                piece = self._piece(cut)
            sort = piece.sort
            start = position
            position += len(cut)
            end = start + piece.size
            if sort == _SPACE:
                if piece.newlines:
                    line += piece.newlines
                    line_start = position - piece.tail
                continue
            if sort == _COMMENT:
                pending.append(piece.text)
                beside = line == last_line
                if piece.newlines:
                    line += piece.newlines
                    line_start = position - piece.tail
                if beside:
                    tokens[-1].comments.extend(pending)
                    pending = []
                    last_line = line
                continue
            if sort != _TOKEN:
                if sort == _WORDS or sort == _TAGGED:  # noqa: SIM109 - numbers compared one by one are not boxed
                    if sort == _TAGGED:
                        piece = self._tagged(text, start)
                    elif _goes_on(text, end, piece.below):
                        piece = self._words(text, start, piece)
                    end = start + piece.size
                    while position < end and index < len(pieces):
                        position += len(pieces[index])
                        index += 1
                    if position != end and not (position == end + 1 and text[end] == " "):
                        restarts += 1
                        if restarts > _RESTARTS:
                            return None
                        pieces = self._find(text, end)
                        index, position = 0, end
                elif sort == _PARAMETER and index < len(pieces):
                    named = self._named(pieces[index], text, position)
                    if named is None:
                        return None
                    if named:
                        tokens.append(Token(piece.kind, piece.text, line, end - line_start, start, end - 1, pending))
                        pending = []
                        piece = _Piece(_TOKEN, _VAR, named, len(named), 0, 0)
                        start = position
                        end = start + len(named)
                        position += len(pieces[index])
                        index += 1
                elif sort == _SEMICOLON and pending and tokens:
                    tokens[-1].comments.extend(pending)
                    pending = []
                if piece.sort == _UNSETTLED:
                    return None
            if piece.newlines:
                line += piece.newlines
                line_start = end - piece.tail
            if pending:
                tokens.append(Token(piece.kind, piece.text, line, end - line_start, start, end - 1, pending))
                pending = []
            else:
                tokens.append(Token(piece.kind, piece.text, line, end - line_start, start, end - 1))
            last_line = line
        if tokens and pending:
            tokens[-1].comments.extend(pending)
        return tokens

    def _piece(self, cut: str) -> _Piece:
        """Return the meaning of a piece; cached if it is short."""
        piece = self._classified(cut)
        if len(cut) <= _SHORT:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[cut] = piece
        return piece

    def _classified(self, cut: str) -> _Piece:
        first = cut[0]
        if first.isspace():
            return _spanning(_SPACE, _UNKNOWN, "", cut)
        if self._unsettled(cut):
            return _unsettled()
        if first in _DIGITS:
            if cut[1:2] in ("x", "X"):
                return _Piece(_TOKEN, _HEX, cut[2:], len(cut), 0, 0)
            text = cut.rstrip(" ")
            return _Piece(_TOKEN, _NUMBER, text, len(text), 0, 0)
        if first in self._identifiers:
            return self._quoted(cut, self._identifiers[first], _IDENTIFIER, True)
        if first in self._quotes:
            return self._quoted(cut, self._quotes[first], _STRING, first in self._escapes)
        if first not in self._singles:
            return self._word(cut.rstrip(" "))
        if len(cut) > 3 and cut.startswith(DOLLARS):
            kind = self._formats[DOLLARS if DOLLARS in self._formats else "$"][1]
            return _spanning(_TOKEN, kind, cut[2:-2], cut)
        if cut[:2] in self._comments or first in self._comments:
            return self._comment(cut)
        if first == "$" and "$" in self._formats:
            return _Piece(_TAGGED, _UNKNOWN, "", 1, 0, 0)
        return self._operator(cut.rstrip(" "))

    def _quoted(self, cut: str, end: str, kind: TokenType, doubled: bool) -> _Piece:
        text = cut[1:-1]
        if doubled and end in text:
            text = text.replace(end + end, end)
        return _spanning(_TOKEN, kind, text, cut)

    def _comment(self, cut: str) -> _Piece:
        if cut.startswith(BLOCK_COMMENT):
            if len(cut) < 4 or not cut.endswith("*/") or (self._nested and BLOCK_COMMENT in cut[2:]):
                return _unsettled()
            return _spanning(_COMMENT, _UNKNOWN, cut[2:-2], cut)
        start = next(start for start in LINE_COMMENTS if start in self._comments and cut.startswith(start))
        return _spanning(_COMMENT, _UNKNOWN, cut[len(start) :], cut)

    def _operator(self, text: str) -> _Piece:
        kind = self._keywords[text] if text in self._keywords else self._singles[text]
        sort = _TOKEN
        if kind == TokenType.PARAMETER:
            sort = _PARAMETER
        elif kind == TokenType.SEMICOLON:
            sort = _SEMICOLON
        return _Piece(sort, kind, text, len(text), 0, 0)

    def _word(self, text: str) -> _Piece:
        """A word, which may begin an entry of several words or the prefix of a string."""
        kind = self._keywords.get(text.upper(), _VAR)
        node: Any = self._trie
        for char in text:
            node = node.get(_UPPER.get(char, char))
            if node is None:
                return _Piece(_TOKEN, kind, text, len(text), 0, 0)
            if 0 in node:
                return _unsettled()
        found = _Piece(_WORDS, kind, text, len(text), 0, 0)
        found.below = node
        return found

    def _named(self, cut: str, text: str, start: int) -> str | None:
        """The name behind the sign of a parameter; empty if something else is there, None if sqlglot must tell."""
        first = cut[0]
        if first.isspace() or cut[:2] in self._comments or first in self._comments:
            return None
        if first in _DIGITS:
            return None if "." in cut else ""
        if first in self._singles or first in self._identifiers:
            return ""
        piece = self._word(cut.rstrip(" "))
        if piece.sort == _WORDS:
            found = self._words(text, start, piece)
            return piece.text if found is piece else None
        return None if piece.sort == _UNSETTLED else piece.text

    def _words(self, text: str, start: int, word: _Piece) -> _Piece:
        """The entry of several words or the string that begins here, or else the word alone.

        This is ``_scan_keywords`` of sqlglot's tokenizer.
        """
        node: Any = self._trie
        char = chars = text[start]
        entry = ""
        read = entry_read = 0
        space = skip = single = False
        while True:
            if not skip:
                node = node.get(_UPPER.get(char, char))
                if node is None:
                    break
                if 0 in node:
                    entry, entry_read = chars, read + 1
            read += 1
            if start + read >= len(text):
                char = ""
                break
            char = text[start + read]
            single = single or char in self._singles
            skip = space and char.isspace()
            if not skip:
                space = char.isspace()
                if space:
                    char = " "
                chars += char
        if not entry:
            return word
        if entry in self._formats:
            return self._prefixed(text, start, entry)
        entry = entry.upper()
        if not (space or single or not char) or entry not in self._keywords:
            return word
        if read != entry_read:
            return _unsettled()
        return _Piece(_TOKEN, self._keywords[entry], entry, read, 0, 0)

    def _prefixed(self, text: str, start: int, prefix: str) -> _Piece:
        """The string that begins with a prefix."""
        quote, kind = self._formats[prefix]
        begin = start + len(prefix)
        end = text.find(quote, begin)
        if kind not in _PREFIXED or len(quote) != 1 or end < 0:
            return _unsettled()
        inside = text[begin:end]
        if text[end + 1 : end + 2] == quote:
            return _unsettled()
        if "\\" in inside and (kind != _RAW or "\\\\" in inside or inside.endswith("\\")):
            return _unsettled()
        return _spanning(_TOKEN, kind, inside, text[start : end + 1])

    def _tagged(self, text: str, start: int) -> _Piece:
        """The string between two equal tags, such as ``$body$``."""
        tag = _TAG.match(text, start)
        if tag is None:
            return _unsettled()
        end = text.find(tag.group(), tag.end())
        if end < 0:
            return _unsettled()
        return _spanning(_TOKEN, self._formats["$"][1], text[tag.end() : end], text[start : end + len(tag.group())])


def _goes_on(text: str, end: int, below: dict[Any, Any] | None) -> bool:
    """Return whether the character behind a word is one that the table of keywords has there."""
    if below is None or end >= len(text):
        return False
    char = text[end]
    return " " in below if char.isspace() else _UPPER.get(char, char) in below


def _spanning(sort: int, kind: TokenType, text: str, cut: str) -> _Piece:
    """A piece that may go over several lines."""
    newlines = cut.count("\n")
    return _Piece(sort, kind, text, len(cut), newlines, len(cut) - cut.rfind("\n") - 1 if newlines else 0)


def _unsettled() -> _Piece:
    return _Piece(_UNSETTLED, _UNKNOWN, "", 0, 0, 0)
