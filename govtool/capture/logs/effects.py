"""Effects of statements on their session: name resolution, transactions, tables that come and go.

Most statements do nothing of it, which one regular expression tells; only the others are tokenised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.scripts.session import SessionChange, change
from govtool.capture.sql.syntax.lexer import lexer, word


class Effect(NamedTuple):
    """One effect, in order of the text."""

    kind: str
    """``use``, ``begin``, ``commit``, ``rollback``, ``savepoint``, ``back`` (to a savepoint), ``create``, ``temp``
    (a temporary table is created), ``drop``, ``rename``.
    """
    name: str = ""
    """The last part of a table's name in lower case, or a savepoint."""
    other: str = ""
    """Of ``rename`` the new name."""
    change: SessionChange | None = None
    local: bool = False
    """``SET LOCAL``: until the transaction ends."""


_LEAD = r"(?:\s|--[^\n]*(?:\n|\Z)|#[^\n]*\n|(?>/\*.*?\*/)|\()*+"
_HEAD = re.compile(rf"(?:\A|;){_LEAD}([a-z]+)?", re.IGNORECASE | re.DOTALL)
_STATEFUL = frozenset(
    {
        "use", "set", "alter", "begin", "start", "commit", "rollback", "abort", "end", "savepoint", "create", "drop",
        "replace", "declare", "cache", "exchange", "rename", "bt", "et",
    }
)  # fmt: skip
_INTO = re.compile(r"\binto\s+(?:temp(?:orary)?\s|unlogged\s|table\s|\[?#|[\w\"\[])", re.IGNORECASE)
_READS = re.compile(rf"{_LEAD}(?:select|with|values|table|from)\b", re.IGNORECASE | re.DOTALL)
_WRITES = re.compile(r"\b(?:insert|update|delete|merge|into)\b", re.IGNORECASE)
_WORDS = re.compile(r"[#\w$]+")
_TEMPORARY = frozenset({"TEMP", "TEMPORARY", "VOLATILE", "LOCAL", "GLOBAL"})
_CREATED = frozenset({"TABLE", "VIEW"})
_CREATE_WORDS = _TEMPORARY | {
    "OR", "REPLACE", "TRANSIENT", "UNLOGGED", "EXTERNAL", "MATERIALIZED", "SECURE", "RECURSIVE", "ALTER", "MULTISET",
    "SET", "COLUMN", "HYBRID", "DYNAMIC", "FORCE", "EDITIONABLE", "NOFORCE",
}  # fmt: skip


LIFE = frozenset({"temp", "create", "drop", "rename"})
"""Kinds of effects by which tables come and go."""


def reads_only(text: str) -> bool:
    """Return whether a statement is a query that writes nothing."""
    return bool(_READS.match(text)) and not _WRITES.search(text)


def outer_words(text: str) -> tuple[str, str]:
    """The words, in lower case, that the first and the last statement of a text begin with; empty where none does."""
    heads = _heads(text)
    return (heads[0].lower(), heads[-1].lower()) if heads else ("", "")


def _heads(text: str) -> list[str]:
    """The first words of statements; what stands before one is passed over once, a ``;`` in a comment with it."""
    return [head for head in _HEAD.findall(text) if head]


def words(text: str) -> frozenset[str]:
    """All words of a text, in lower case: a statement that names a table has its name among them."""
    return frozenset(_WORDS.findall(text.lower()))


def effects(text: str, dialect: str) -> tuple[Effect, ...]:
    """Return the effects of a statement, or a text of several, on its session; nothing for what cannot be read."""
    heads = {head.lower() for head in _heads(text)}
    if not heads & _STATEFUL and not (heads & {"select", "with"} and _INTO.search(text)):
        return ()
    try:
        tokens = lexer(dialect).tokenize(text)
    except (TokenError, RecursionError, MemoryError):
        return ()
    found: list[Effect] = []
    start = 0
    for index in range(len(tokens) + 1):
        if index == len(tokens) or tokens[index].token_type == TokenType.SEMICOLON:
            piece = tokens[start:index]
            start = index + 1
            if piece:
                found.extend(_effects(piece, dialect))
    return tuple(found)


def _effects(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    head = word(tokens[0]).partition(" ")[0]
    handler = _HANDLERS.get(head)
    if handler is not None:
        return handler(tokens, dialect)
    changed = change(tokens, dialect) if head in ("USE", "SET", "ALTER") else None
    if changed is not None:
        local = head == "SET" and len(tokens) > 1 and word(tokens[1]) == "LOCAL"
        return [Effect("use", change=changed, local=local)]
    if head == "ALTER":
        return _alter(tokens)
    return []


def _begin(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    first, _, second = word(tokens[0]).partition(" ")
    second = second or (word(tokens[1]) if len(tokens) > 1 else "")
    if first == "START" and second != "TRANSACTION":
        return []
    opens = second in ("", "TRANSACTION", "TRAN", "WORK", "ISOLATION", "READ", "DEFERRED", "IMMEDIATE", "EXCLUSIVE")
    return [Effect("begin")] if opens else []


def _commit(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    if word(tokens[0]) == "END" and len(tokens) > 1 and word(tokens[1]) not in ("TRANSACTION", "WORK"):
        return []
    return [Effect("commit")]


def _rollback(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    texts = [word(t) for t in tokens]
    if "TO" in texts[:3]:
        return [Effect("back", tokens[-1].text.lower())]
    if dialect in ("tsql", "fabric") and len(tokens) > 2:
        return [Effect("back", tokens[-1].text.lower()), Effect("rollback", tokens[-1].text.lower())]
    return [Effect("rollback")]


def _savepoint(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    return [Effect("savepoint", tokens[-1].text.lower())]


def _create(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    at = 1
    temporary = False
    while at < len(tokens) and word(tokens[at]) in _CREATE_WORDS:
        temporary = temporary or word(tokens[at]) in _TEMPORARY
        at += 1
    if at >= len(tokens) or word(tokens[at]) not in _CREATED:
        return []
    name, _ = _name(tokens, at + 1)
    if not name:
        return []
    temporary = temporary or name.startswith("#")
    return [Effect("temp" if temporary else "create", name.lstrip("#"))]


def _cache(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    at = next((i for i, t in enumerate(tokens[:4]) if word(t) == "TABLE"), -1)
    name, _ = _name(tokens, at + 1) if at > 0 else ("", 0)
    return [Effect("temp", name)] if name and any(word(t) in ("SELECT", "WITH", "AS") for t in tokens) else []


def _drop(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    at = 1
    while at < len(tokens) and word(tokens[at]) in _CREATE_WORDS:
        at += 1
    if at >= len(tokens) or word(tokens[at]) not in _CREATED:
        return []
    found: list[Effect] = []
    at += 1
    while True:
        name, at = _name(tokens, at)
        if not name:
            return found
        found.append(Effect("drop", name.lstrip("#")))
        if at >= len(tokens) or tokens[at].token_type != TokenType.COMMA:
            return found
        at += 1


def _alter(tokens: Sequence[Token]) -> list[Effect]:
    if len(tokens) < 5 or word(tokens[1]) not in _CREATED:
        return []
    old, at = _name(tokens, 2)
    texts = [word(t) for t in tokens[at : at + 3]]
    if texts[:2] == ["RENAME", "TO"] or texts[:2] == ["SWAP", "WITH"]:
        new, _ = _name(tokens, at + 2)
        return [Effect("rename", old, new)] if old and new else []
    return []


def _rename(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    if len(tokens) < 5 or word(tokens[1]) != "TABLE":
        return []
    found: list[Effect] = []
    at = 2
    while True:
        old, at = _name(tokens, at)
        if not old or at >= len(tokens) or word(tokens[at]) != "TO":
            return found
        new, at = _name(tokens, at + 1)
        found.append(Effect("rename", old, new))
        if at >= len(tokens) or tokens[at].token_type != TokenType.COMMA:
            return found
        at += 1


def _select(tokens: Sequence[Token], dialect: str) -> list[Effect]:
    depth = 0
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
        elif not depth and word(token) == "INSERT":
            return []
        elif not depth and word(token) == "INTO":
            at = index + 1
            temporary = False
            while at < len(tokens) and word(tokens[at]) in (*_TEMPORARY, "UNLOGGED", "TABLE"):
                temporary = temporary or word(tokens[at]) in _TEMPORARY
                at += 1
            name, _ = _name(tokens, at)
            temporary = temporary or name.startswith("#")
            return [Effect("temp" if temporary else "create", name.lstrip("#"))] if name else []
    return []


def _name(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The last part of the dotted name at an index, past ``IF [NOT] EXISTS``, and the index behind it."""
    while at < len(tokens) and word(tokens[at]) in ("IF", "NOT", "EXISTS", "ONLY"):
        at += 1
    name = ""
    mark = ""
    while at < len(tokens):
        token = tokens[at]
        if token.token_type == TokenType.HASH or token.text == "#":
            mark = "#"
            at += 1
            continue
        if token.token_type in (TokenType.COMMA, TokenType.L_PAREN, TokenType.DOT):
            break
        name = token.text.lower()
        at += 1
        if at < len(tokens) and tokens[at].token_type == TokenType.DOT:
            at += 1
            continue
        break
    last = name.rsplit(".", 1)[-1]
    return (mark + last if last and not last.startswith("#") else last), at


_HANDLERS = {
    "BEGIN": _begin,
    "START": _begin,
    "BT": _begin,
    "COMMIT": _commit,
    "END": _commit,
    "ET": _commit,
    "ROLLBACK": _rollback,
    "ABORT": _rollback,
    "SAVEPOINT": _savepoint,
    "CREATE": _create,
    "REPLACE": _create,
    "CACHE": _cache,
    "DROP": _drop,
    "RENAME": _rename,
    "SELECT": _select,
    "WITH": _select,
}
