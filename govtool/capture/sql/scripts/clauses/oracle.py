"""Oracle's definitions without states of constraints, storage and references; SQL*Plus's continued lines.

Source: Oracle Database SQL Language Reference. What is taken away here names no column or table whose values flow.
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.scripts.clauses.patterns import clause, end_of
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, name_end, word, word_set

_STATES: Final = word_set("ENABLE DISABLE VALIDATE NOVALIDATE RELY NORELY")
_CONSTRAINTS: Final = (
    clause("oracle", f"{'|'.join(sorted(_STATES))} QUERY _?"),
    clause("oracle", "|".join(sorted(_STATES))),
    clause("oracle", "EXCEPTIONS INTO name"),
)
"""States of constraints, and ``ENABLE QUERY REWRITE``."""
_VIEW_WORDS: Final = word_set("FORCE NOFORCE EDITIONABLE NONEDITIONABLE EDITIONING SHARING")
_PHYSICAL: Final = word_set(
    """SEGMENT PCTFREE PCTUSED INITRANS MAXTRANS STORAGE TABLESPACE COMPRESS NOCOMPRESS LOGGING NOLOGGING CACHE NOCACHE
    PARALLEL NOPARALLEL PARTITION LOB NESTED VARRAY XMLTYPE INMEMORY NO ROW ENABLE DISABLE ORGANIZATION CLUSTER COLUMN
    FILESYSTEM_LIKE_LOGGING MONITORING NOMONITORING ROWDEPENDENCIES NOROWDEPENDENCIES RESULT_CACHE OIDINDEX USING BUILD
    REFRESH NEVER OBJECT SUBSTITUTABLE SUPPLEMENTAL DEFAULT FOR"""
) | {"PARTITION BY"}
_AFTER_OPERAND: Final = word_set(
    """FROM WHERE AND OR GROUP ORDER HAVING UNION MINUS INTERSECT VALUES SET JOIN ON AS THEN ELSE END WHEN IN LIKE
    BETWEEN IS LEFT RIGHT FULL INNER CROSS INTO USING START CONNECT FETCH OFFSET SELECT NOT WITH BY DESC ASC
    RETURNING"""
)
_BEFORE_OPERAND: Final = word_set(
    """SELECT DISTINCT FROM WHERE AND OR JOIN ON AS THEN ELSE WHEN IN LIKE BETWEEN INTO USING BY VALUES SET UPDATE TABLE
    INSERT DELETE MERGE HAVING NOT UNION ALL MINUS INTERSECT WITH LEFT RIGHT FULL INNER OUTER CROSS"""
)


# -- hyphens ------------------------------------------------------------------------------------------------


def without_continuations(tokens: list[Token]) -> list[Token]:
    """Return a statement without the hyphens by which SQL*Plus joins lines; one between operands is a subtraction."""
    out = [token for index, token in enumerate(tokens) if not _continues(tokens, index)]
    return tokens if len(out) == len(tokens) else out


def _continues(tokens: list[Token], index: int) -> bool:
    token = tokens[index]
    if token.token_type != marks.DASH or token.comments:
        return False
    if index + 1 >= len(tokens):
        return True
    following = tokens[index + 1]
    if following.line <= token.line:
        return False
    return (
        not index
        or following.token_type in _NO_OPERAND
        or word(following) in _AFTER_OPERAND
        or tokens[index - 1].token_type in _NO_END
        or word(tokens[index - 1]) in _BEFORE_OPERAND
    )


_NO_OPERAND = frozenset({marks.COMMA, marks.R_PAREN, marks.EQ, TokenType.DPIPE, TokenType.LT, TokenType.GT})
_NO_END = frozenset({marks.COMMA, marks.L_PAREN, marks.EQ, TokenType.DPIPE})


# -- definitions ------------------------------------------------------------------------------------------------------


def without_states(tokens: list[Token]) -> list[Token]:
    """Return a definition without states of constraints (``ENABLE NOVALIDATE``, ``USING INDEX …``), modifiers of views
    and storage of tables.
    """
    head = word(tokens[0])
    if head not in ("CREATE", "ALTER"):
        return tokens
    kind = next((i for i, t in enumerate(tokens[1:9], 1) if word(t) in ("TABLE", "VIEW")), -1)
    if kind < 0:
        return tokens
    out = [t for t in tokens[:kind] if word(t) not in _VIEW_WORDS]
    end = _query_at(tokens, kind) if head == "CREATE" else len(tokens)
    index = kind
    while index < end:
        token = tokens[index]
        following = _after_constraint(tokens, index)
        if following > index:
            index = following
            continue
        out.append(token)
        index += 1
    if head == "CREATE":
        out = _without_storage(out, tokens[end:])
    out.extend(tokens[end:])
    return tokens if len(out) == len(tokens) else out


def _query_at(tokens: list[Token], start: int) -> int:
    """The start of ``AS SELECT …``; the end if nothing is selected (``STORE AS`` and ``AS IDENTITY`` are none)."""
    while (start := find_word(tokens, {"AS"}, start + 1)) > 0:
        following = start + 1
        while following < len(tokens) and tokens[following].token_type == marks.L_PAREN:
            following += 1
        if following < len(tokens) and word(tokens[following]) in ("SELECT", "WITH"):
            return start
    return len(tokens)


def _after_constraint(tokens: list[Token], index: int) -> int:
    """The index behind a state of a constraint that begins here; ``index`` if none does."""
    if tokens[index - 1].token_type in (marks.COMMA, marks.L_PAREN, marks.DOT):  # the name of a column
        return index
    if word(tokens[index]) == "USING" and index + 1 < len(tokens) and word(tokens[index + 1]) == "INDEX":
        return _after_index(tokens, index + 2)
    return end_of(_CONSTRAINTS, tokens, index)


def _after_index(tokens: list[Token], index: int) -> int:
    """Behind the index that a constraint uses: a statement in parentheses, a name, or how it is stored."""
    if index < len(tokens) and tokens[index].token_type == marks.L_PAREN:
        return closing(tokens, index) + 1
    while index < len(tokens):
        token = tokens[index]
        text = word(token)
        if token.token_type in (marks.COMMA, marks.R_PAREN) or text in _STATES or text == "AS":
            break
        index = closing(tokens, index) + 1 if token.token_type == marks.L_PAREN else index + 1
    return index


def _without_storage(tokens: list[Token], query: list[Token]) -> list[Token]:
    """A CREATE TABLE, up to its query, without how rows are stored."""
    kind = next((i for i, t in enumerate(tokens[:9]) if word(t) in ("TABLE", "VIEW")), -1)
    end = name_end(tokens, kind + 1)
    if end < len(tokens) and tokens[end].token_type == marks.L_PAREN:
        end = closing(tokens, end) + 1
    elif not query:
        return tokens
    rest = tokens[end:]
    if not rest or word(rest[0]) not in _PHYSICAL or any(word(t) in ("EXTERNAL", "PREBUILT", "OF") for t in rest):
        return tokens
    return tokens[:end]


def without_references(tokens: list[Token]) -> list[Token]:
    """Return ``b REF t`` of a definition as a column of type ``t``."""
    out = [token for index, token in enumerate(tokens) if not _is_reference(tokens, index)]
    return tokens if len(out) == len(tokens) else out


def _is_reference(tokens: list[Token], index: int) -> bool:
    return (
        word(tokens[index]) == "REF"
        and word(tokens[0]) in ("CREATE", "ALTER")
        and 2 < index < len(tokens) - 1
        and tokens[index - 2].token_type in (marks.COMMA, marks.L_PAREN)
        and tokens[index + 1].token_type in (marks.VAR, marks.IDENTIFIER)
    )
