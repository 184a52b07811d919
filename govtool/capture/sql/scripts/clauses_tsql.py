"""Clauses of T-SQL that the parser does not know: of storage, locking and optimisation, which carry no lineage, and a
few forms of FROM and WHERE that it knows by another name.

Source: Transact-SQL reference (Microsoft), sections named at each function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from sqlglot.tokenizer_core import Token

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import closing, word, word_set
from govtool.capture.sql.scripts.clauses_tsql_graph import without_match
from govtool.capture.sql.scripts.clauses_tsql_rowsets import (
    bulk_files,
    predictions,
    system_functions,
    without_language,
)
from govtool.capture.sql.scripts.clauses_tsql_table import without_storage
from govtool.capture.sql.scripts.ssms_templates import rendered

_HINTS: Final = word_set(
    """FORCESCAN FORCESEEK HOLDLOCK INDEX KEEPDEFAULTS KEEPIDENTITY IGNORE_CONSTRAINTS IGNORE_TRIGGERS NOEXPAND NOLOCK
    NOWAIT PAGLOCK READCOMMITTED READCOMMITTEDLOCK READPAST READUNCOMMITTED REPEATABLEREAD ROWLOCK SERIALIZABLE SNAPSHOT
    SPATIAL_WINDOW_MAX_CELLS TABLOCK TABLOCKX UPDLOCK XLOCK"""
)
"""Table hints ("Table hints")."""

_Step: TypeAlias = Callable[[list[Token]], list[Token]]


def simplified(tokens: list[Token]) -> list[Token]:
    """Return a statement without clauses that carry no lineage, and with others in a form that the parser knows; the
    same list if it has none of them.
    """
    for step in _STEPS:
        tokens = step(tokens) if tokens else tokens
    return tokens


def _without_namespaces(tokens: list[Token]) -> list[Token]:
    """``WITH XMLNAMESPACES ('uri' AS p) [, q AS (…)]``, ``WITH CHANGE_TRACKING_CONTEXT (x)`` ("WITH XMLNAMESPACES")."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        if (
            word(tokens[at]) == "WITH"
            and at + 2 < len(tokens)
            and word(tokens[at + 1]) in ("XMLNAMESPACES", "CHANGE_TRACKING_CONTEXT")
            and tokens[at + 2].token_type == marks.L_PAREN
        ):
            end = closing(tokens, at + 2) + 1
            if end < len(tokens) and tokens[end].token_type == marks.COMMA:
                found.append(tokens[at])
                end += 1
            at = end
        else:
            found.append(tokens[at])
            at += 1
    return found if len(found) < len(tokens) else tokens


def _without_hints(tokens: list[Token]) -> list[Token]:
    """``WITH (TABLOCK, …)`` behind a table, and ``OPTION (…)`` behind a query ("OPTION clause", "Query hints")."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        text = word(tokens[at])
        grouped = at + 3 < len(tokens) and tokens[at + 1].token_type == marks.L_PAREN
        if grouped and (text == "OPTION" or (text == "WITH" and _is_hint(tokens, at + 2))):
            at = closing(tokens, at + 1) + 1
            continue
        found.append(tokens[at])
        at += 1
    return found if len(found) < len(tokens) else tokens


def _is_hint(tokens: list[Token], at: int) -> bool:
    """True if a table hint stands there, and not a column that is called so (``OPENJSON(…) WITH (snapshot int)``)."""
    following = word(tokens[at + 1])
    return word(tokens[at]) in _HINTS and (following in _HINTS or following in (",", ")", "(", "="))


_STEPS: Final[tuple[_Step, ...]] = (
    rendered,
    _without_namespaces,
    _without_hints,
    system_functions,
    bulk_files,
    predictions,
    without_language,
    without_match,
    without_storage,
)
