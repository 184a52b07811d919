"""Patterns of tokens, by which the table of clauses (``table``) is written, and the one matcher of them.

A pattern is text; its items stand one behind the other, separated by spaces:

    ROW             the word ROW                        A|B         one of these words
    !A|B            a token that is none of these       _           any token
    <HINT>          a token of this type (``TokenType``)
    ()              a group in parentheses, whole       name        a dotted name
    …A|B            up to one of these words outside of parentheses, or to the end
    …               up to the end                       $           the end of the statement
    x?              x, or nothing                       x+          x, once or several times

Words are compared in upper case; a quoted name or a string is no word. A rewrite is text as well: ``2`` stands for the
tokens of the second item, ``VAR:p{2}`` for a new token of type VAR with the text of the second item behind ``p``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, like, name_end, word

_WORDS: Final = "words"
_OTHER: Final = "other"
_ANY: Final = "any"
_TYPE: Final = "type"
_GROUP: Final = "group"
_NAME: Final = "name"
_UP_TO: Final = "up to"
_END: Final = "end"
_KINDS: Final = {"_": _ANY, "()": _GROUP, "name": _NAME, "$": _END, "…": _UP_TO}
_TEXT: Final = re.compile(r"\{(\d)\}")


class _Item(NamedTuple):
    kind: str
    words: frozenset[str]
    type: TokenType | None
    optional: bool
    repeated: bool


class ClausePattern(NamedTuple):
    """One clause of one or more dialects."""

    dialects: frozenset[str]
    items: tuple[_Item, ...]
    rewrite: tuple[str, ...]
    of: frozenset[str]
    behind: tuple[_Item, ...]
    at_start: bool
    inside: tuple[_Item, ...]
    outermost: bool
    flows: bool

    def applied(self, tokens: list[Token]) -> list[Token]:
        """Return a statement with this clause rewritten, or left out, wherever it stands; the same list if it stands
        nowhere.
        """
        if not self._may_stand(tokens):
            return tokens
        found: list[Token] = []
        changed = False
        at = depth = 0
        while at < len(tokens):
            ends = None if depth > 0 and self.outermost else self.match(tokens, at)
            if ends is None:
                token = tokens[at]
                depth += (token.token_type == marks.L_PAREN) - (token.token_type == marks.R_PAREN)
                found.append(token)
                at += 1
            else:
                changed = True
                found += self._made(tokens, at, ends)
                at = ends[-1]
        return found if changed else tokens

    def first(self, tokens: list[Token]) -> list[Token]:
        """Return the tokens of the first place at which this clause stands; none if it stands nowhere."""
        if not self._may_stand(tokens):
            return []
        depth = 0
        for at, token in enumerate(tokens):
            ends = None if depth > 0 and self.outermost else self.match(tokens, at)
            if ends is not None:
                return tokens[at : ends[-1]]
            depth += (token.token_type == marks.L_PAREN) - (token.token_type == marks.R_PAREN)
        return []

    def match(self, tokens: Sequence[Token], at: int) -> list[int] | None:
        """Return the ends of the items of this clause if it stands at ``at``; None if it does not."""
        ends: list[int] = []
        end = at
        for item in self.items:
            following = _end(item, tokens, end)
            while item.repeated and following > end:
                further = _end(item, tokens, following)
                if further <= following:
                    break
                following = further
            if following < 0:
                if not item.optional:
                    return None
                following = end
            end = following
            ends.append(end)
        if end == at or not self._stands_behind(tokens, at):
            return None
        if self.inside and not _matches(self.inside, tokens, at + 2):
            return None
        return ends

    def _may_stand(self, tokens: list[Token]) -> bool:
        return bool(tokens) and (not self.of or word(tokens[0]) in self.of)

    def _stands_behind(self, tokens: Sequence[Token], at: int) -> bool:
        start = at - len(self.behind)
        if start < 0 or (self.at_start and start > 0):
            return False
        return _matches(self.behind, tokens, start)

    def _made(self, tokens: list[Token], at: int, ends: list[int]) -> list[Token]:
        found: list[Token] = []
        starts = [at, *ends]
        for part in self.rewrite:
            if part.isdigit():
                found += tokens[starts[int(part) - 1] : ends[int(part) - 1]]
                continue
            kind, _, text = part.partition(":")
            named = _TEXT.search(text)
            here = tokens[starts[int(named[1]) - 1]] if named is not None else tokens[at]
            text = text if named is None else text.replace(named[0], here.text)
            found.append(like(here, TokenType[kind], text))
        return found


def clause(
    dialects: str,
    pattern: str,
    rewrite: str = "",
    *,
    of: str = "",
    behind: str = "",
    inside: str = "",
    outermost: bool = False,
    flows: bool = False,
) -> ClausePattern:
    """Return a clause: a line of the table.

    Args:
        dialects: Names of dialects, separated by spaces.
        pattern: What the clause is.
        rewrite: What is read instead of it; nothing leaves it out.
        of: First words of the statements that have it, separated by ``|``; empty for all.
        behind: Items, each of one token, that stand in front of it; ``^`` in front of them is the statement's start.
        inside: Items, each of one token, with which the group begins that is the second item.
        outermost: Only outside of parentheses.
        flows: True if rows flow by it: leaving it out is worth a diagnostic.
    """
    before = behind.split()
    at_start = before[:1] == ["^"]
    return ClausePattern(
        frozenset(dialects.split()),
        _items(pattern.split()),
        tuple(rewrite.split()),
        frozenset(of.split("|")) if of else frozenset(),
        _items(before[1:] if at_start else before),
        at_start,
        _items(inside.split()),
        outermost,
        flows,
    )


def end_of(clauses: Iterable[ClausePattern], tokens: Sequence[Token], at: int) -> int:
    """Return the end of the first of these clauses that stands at ``at``; ``at`` if none does."""
    for each in clauses:
        ends = each.match(tokens, at)
        if ends is not None:
            return ends[-1]
    return at


def _items(texts: list[str]) -> tuple[_Item, ...]:
    return tuple([_item(text) for text in texts])


def _item(text: str) -> _Item:
    optional, repeated = len(text) > 1 and text[-1] == "?", len(text) > 1 and text[-1] == "+"
    text = text[:-1] if optional or repeated else text
    words: frozenset[str] = frozenset()
    kind = _KINDS.get(text, "")
    type_ = None
    if kind:
        pass
    elif text[0] == "<" and text[-1] == ">" and text[1:-1].isidentifier():
        kind, type_ = _TYPE, TokenType[text[1:-1]]
    elif text[0] in "!…" and len(text) > 1:
        kind, words = (_OTHER if text[0] == "!" else _UP_TO), frozenset(text[1:].split("|"))
    else:
        kind, words = _WORDS, frozenset(text.split("|"))
    return _Item(kind, words, type_, optional, repeated)


def _matches(items: tuple[_Item, ...], tokens: Sequence[Token], at: int) -> bool:
    """Return whether items of one token each stand at ``at``."""
    return all(_end(item, tokens, at + number) >= 0 for number, item in enumerate(items))


def _end(item: _Item, tokens: Sequence[Token], at: int) -> int:
    """Return the place behind an item that begins at ``at``; -1 if it does not."""
    kind = item.kind
    if kind == _UP_TO:
        end = find_word(tokens, item.words, at) if item.words else -1
        return end if end >= 0 else len(tokens)
    if at >= len(tokens):
        return at if kind == _END else -1
    token = tokens[at]
    if kind == _WORDS:
        return at + 1 if word(token) in item.words else -1
    if kind == _OTHER:
        return at + 1 if word(token) not in item.words else -1
    if kind == _ANY:
        return at + 1
    if kind == _TYPE:
        return at + 1 if token.token_type == item.type else -1
    if kind == _GROUP:
        return closing(tokens, at) + 1 if token.token_type == marks.L_PAREN else -1
    return name_end(tokens, at) if kind == _NAME else -1
