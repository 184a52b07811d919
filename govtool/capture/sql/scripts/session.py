"""Statements that change how unqualified names resolve: USE, SET search_path, ALTER SESSION."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, word
from govtool.names import fold

HEADS = frozenset({"use", "set", "alter"})
"""First words of the statements that can change a session, in lower case."""

_CATALOG_ALONE = frozenset({"snowflake", "tsql", "fabric", "duckdb"})
"""Dialects whose ``USE x`` names a database that contains schemas, not a schema."""

_NO_NAMES = frozenset({"WAREHOUSE", "ROLE", "SECONDARY", "COMPUTE"})

PATH_MARK: Final = "\n"
"""Between the schemas of a search path that the tables of a function's query carry."""


class SessionChange(NamedTuple):
    """New defaults for the statements that follow; canonical parts (see ``govtool.names``); None leaves a default as
    it is.
    """

    catalog: str | None = None
    schema: str | None = None
    search_path: tuple[str, ...] = ()
    """Schemas to search in order, where the dialect has a path; ``schema`` is then the first."""


def canonical(part: str, dialect: str, *, quoted: bool = False) -> str:
    """The canonical text of a catalog's or schema's name."""
    return fold(part, quoted=quoted, dialect=dialect, table=True)


def change(tokens: Sequence[Token], dialect: str) -> SessionChange | None:
    """Return how one statement's tokens change name resolution; None if they do not."""
    head = word(tokens[0])
    if head == "USE":
        return _use(tokens[1:], dialect)
    if head == "SET":
        return _set(tokens[1:], dialect)
    if head == "ALTER" and len(tokens) > 5 and [word(t) for t in tokens[1:4]] == ["SESSION", "SET", "CURRENT_SCHEMA"]:
        parts = _name(tokens[5:], dialect)
        return SessionChange(schema=parts[-1]) if parts else None
    return None


def _use(tokens: Sequence[Token], dialect: str) -> SessionChange | None:
    if not tokens:
        return None
    kind = word(tokens[0])
    if kind in _NO_NAMES:
        return None
    if kind in ("CATALOG", "DATABASE", "SCHEMA", "NAMESPACE") and len(tokens) > 1:
        parts = _name(tokens[1:], dialect)
        if not parts:
            return None
        if kind == "CATALOG" or (kind == "DATABASE" and dialect in _CATALOG_ALONE):
            return SessionChange(catalog=parts[-1])
    else:
        parts = _name(tokens, dialect)
        if len(parts) == 1 and dialect in _CATALOG_ALONE:
            return SessionChange(catalog=parts[0])
    if not parts:
        return None
    return SessionChange(catalog=parts[-2] if len(parts) > 1 else None, schema=parts[-1])


def _set(tokens: Sequence[Token], dialect: str) -> SessionChange | None:
    words = [word(t) for t in tokens[:4]]
    if words and words[0] in ("LOCAL", "SESSION"):
        tokens, words = tokens[1:], words[1:]
    if not words:
        return None
    if words[0] == "SEARCH_PATH" and len(tokens) > 2:
        path = tuple(
            canonical(t.text, dialect, quoted=t.token_type == marks.IDENTIFIER)
            for t in tokens[2:]
            if t.token_type != marks.COMMA and t.text not in ("$user", "", "$") and word(t) != "USER"
        )
        return SessionChange(schema=path[0] if path else None, search_path=path)
    if words[0] == "SCHEMA" and len(tokens) > 1:
        parts = _name(tokens[2:] if tokens[1].token_type == marks.EQ else tokens[1:], dialect)
        return SessionChange(schema=parts[-1]) if parts else None
    names = "".join(t.text for t in tokens[:-1]).lower()
    if names == "@@dataset_id=":
        return SessionChange(schema=canonical(tokens[-1].text, dialect))
    if names == "@@dataset_project_id=":
        return SessionChange(catalog=canonical(tokens[-1].text, dialect))
    return None


def _name(tokens: Sequence[Token], dialect: str) -> list[str]:
    """The parts of a dotted name at the head of the tokens."""
    parts: list[str] = []
    for index, token in enumerate(tokens):
        if index % 2:
            if token.token_type != marks.DOT:
                break
            continue
        quoted = token.token_type == marks.IDENTIFIER
        text = token.text
        if not quoted and token.token_type not in STRING_TYPES and not (text[:1].isalpha() or text[:1] == "_"):
            break
        if dialect == "bigquery" and quoted and "." in text:
            parts.extend(canonical(part, dialect, quoted=True) for part in text.split("."))
            continue
        parts.append(canonical(text, dialect, quoted=quoted))
    return parts
