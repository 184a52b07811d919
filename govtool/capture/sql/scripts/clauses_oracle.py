"""Oracle's clauses that the parser does not know: states of constraints, storage, models of data mining, bind numbers.

Source: Oracle Database SQL Language Reference. What is taken away here names no column or table whose values flow;
what takes its arguments in a form of its own (``PREDICTION(m USING a, b)``) is read as a call of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import closing, find_word, like, name_end, word, word_set
from govtool.capture.sql.scripts.calls_oracle import plain_calls

_STATES: Final = word_set("ENABLE DISABLE VALIDATE NOVALIDATE RELY NORELY")
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


def simplified(tokens: list[Token]) -> list[Token]:
    """Return a statement's tokens without what the parser of Oracle does not know; the same list if there is nothing of
    the kind.
    """
    for rule in _RULES:
        tokens = rule(tokens)
    return tokens


def unread(tokens: list[Token]) -> list[Token]:
    """Return the tokens of a clause that ``simplified`` leaves out though rows flow by it: ``LOG ERRORS``."""
    at = _log_errors(tokens)
    return tokens[at:] if at > 0 else []


# -- hyphens and binds ------------------------------------------------------------------------------------------------


def _without_continuations(tokens: list[Token]) -> list[Token]:
    """SQL*Plus joins a line that ends in a hyphen to the next. A hyphen between two operands stays a subtraction."""
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


def _with_named_binds(tokens: list[Token]) -> list[Token]:
    """``:1`` as ``:name``: the parser takes a number behind a colon for something else."""
    out = tokens
    for index in range(1, len(tokens)):
        token = tokens[index]
        if token.token_type == marks.NUMBER and tokens[index - 1].token_type == marks.COLON:
            if out is tokens:
                out = list(tokens)
            out[index] = like(token, marks.VAR, f"p{token.text}")
    return out


# -- definitions ------------------------------------------------------------------------------------------------------


def _without_states(tokens: list[Token]) -> list[Token]:
    """``ENABLE NOVALIDATE``, ``USING INDEX …`` and the like of constraints; modifiers of views; storage of tables."""
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
    text = word(tokens[index])
    before = tokens[index - 1].token_type
    if before in (marks.COMMA, marks.L_PAREN, marks.DOT):  # the name of a column
        return index
    if text in _STATES:
        following = word(tokens[index + 1]) if index + 1 < len(tokens) else ""
        return index + (3 if following == "QUERY" else 1)  # ENABLE QUERY REWRITE
    if text == "USING" and index + 1 < len(tokens) and word(tokens[index + 1]) == "INDEX":
        return _after_index(tokens, index + 2)
    if text == "EXCEPTIONS" and index + 2 < len(tokens) and word(tokens[index + 1]) == "INTO":
        return name_end(tokens, index + 2)
    return index


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


def _without_types(tokens: list[Token]) -> list[Token]:
    """``NUMBER(7, -2)`` without the sign, ``b REF t SCOPE IS s`` as a column of type ``t``."""
    out: list[Token] = []
    skip = 0
    for index, token in enumerate(tokens):
        if skip:
            skip -= 1
        elif _is_sign_of_scale(tokens, index) or _is_reference(tokens, index):
            continue
        elif word(token) == "SCOPE" and index + 2 < len(tokens) and word(tokens[index + 1]) == "IS":
            skip = name_end(tokens, index + 2) - index - 1
        else:
            out.append(token)
    return tokens if len(out) == len(tokens) else out


def _is_sign_of_scale(tokens: list[Token], index: int) -> bool:
    return (
        tokens[index].token_type == marks.DASH
        and 3 < index < len(tokens) - 2
        and tokens[index - 1].token_type == marks.COMMA
        and tokens[index - 2].token_type == marks.NUMBER
        and tokens[index - 3].token_type == marks.L_PAREN
        and tokens[index + 2].token_type == marks.R_PAREN
        and word(tokens[index - 4]) in ("NUMBER", "NUMERIC", "DECIMAL", "DEC")
    )


def _is_reference(tokens: list[Token], index: int) -> bool:
    return (
        word(tokens[index]) == "REF"
        and word(tokens[0]) in ("CREATE", "ALTER")
        and 2 < index < len(tokens) - 1
        and tokens[index - 2].token_type in (marks.COMMA, marks.L_PAREN)
        and tokens[index + 1].token_type in (marks.VAR, marks.IDENTIFIER)
    )


# -- changes of rows --------------------------------------------------------------------------------------------------


def _log_errors(tokens: list[Token]) -> int:
    if word(tokens[0]) not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
        return -1
    for index in range(len(tokens) - 2, 2, -1):
        if word(tokens[index]) == "LOG" and word(tokens[index + 1]) == "ERRORS":
            return index
    return -1


def _without_error_log(tokens: list[Token]) -> list[Token]:
    at = _log_errors(tokens)
    return tokens[:at] if at > 0 else tokens


def _with_whole_operators(tokens: list[Token]) -> list[Token]:
    """``a < = b`` with the operator in one piece."""
    out: list[Token] = []
    for token in tokens:
        if token.token_type == marks.EQ and out and out[-1].token_type in _WHOLE:
            out[-1] = like(out[-1], _WHOLE[out[-1].token_type], f"{out[-1].text}=")
        else:
            out.append(token)
    return tokens if len(out) == len(tokens) else out


_WHOLE: Final = {TokenType.LT: TokenType.LTE, TokenType.GT: TokenType.GTE}


def _without_hints(tokens: list[Token]) -> list[Token]:
    """A MERGE without the hints of its branches."""
    if word(tokens[0]) != "MERGE":
        return tokens
    out = [t for t in tokens if t.token_type != TokenType.HINT]
    return tokens if len(out) == len(tokens) else out


def _without_locks(tokens: list[Token]) -> list[Token]:
    """``FOR UPDATE … SKIP LOCKED``, ``DROP INDEX … DEFERRED INVALIDATION`` without the last two words."""
    if len(tokens) > 4 and (word(tokens[-2]), word(tokens[-1])) in _LAST_WORDS:
        return tokens[:-2]
    return tokens


_LAST_WORDS: Final = frozenset({("SKIP", "LOCKED"), ("DEFERRED", "INVALIDATION"), ("IMMEDIATE", "INVALIDATION")})


_RULES: Final[tuple[Callable[[list[Token]], list[Token]], ...]] = (
    _without_continuations,
    _with_named_binds,
    _without_states,
    _without_types,
    _without_error_log,
    _with_whole_operators,
    _without_hints,
    _without_locks,
    plain_calls,
)
