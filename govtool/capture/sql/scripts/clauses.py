"""Clauses that a parser does not know and that carry no lineage: a statement is read without them.

They are asked for only when a statement does not parse as it stands. A clause that is listed here is known to say
nothing of what is read or written (where rows are stored, how they are locked, how a constraint is enforced); whatever
is not known is no business of this module, but is left out with a diagnostic (``rescue``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts import (
    clauses_bigquery,
    clauses_databricks,
    clauses_mysql,
    clauses_oracle,
    clauses_redshift,
    clauses_tsql,
)

Simplify: TypeAlias = Callable[[list[Token]], list[Token]]
"""Returns a statement's tokens without clauses that the parser of a dialect does not know; the same list if none is
there. Tokens are never made from text: those that stay keep their places."""

_SIMPLIFY: Final[Mapping[str, Simplify]] = {
    "tsql": clauses_tsql.simplified,
    "fabric": clauses_tsql.simplified,
    "oracle": clauses_oracle.simplified,
    "bigquery": clauses_bigquery.simplified,
    "databricks": clauses_databricks.simplified,
    "mysql": clauses_mysql.simplified,
    "redshift": clauses_redshift.simplified,
}
_UNREAD: Final[Mapping[str, Simplify]] = {"oracle": clauses_oracle.unread, "mysql": clauses_mysql.unread}


def simplified(tokens: list[Token], dialect: str) -> list[Token]:
    """Return a statement's tokens without clauses that the parser of ``dialect`` does not know; the same list if there
    are none.
    """
    simplify = _SIMPLIFY.get(dialect)
    return tokens if simplify is None else simplify(tokens)


def unread(tokens: list[Token], dialect: str) -> list[Token]:
    """Return the tokens of a clause that ``simplified`` leaves out though rows flow by it; none if there is none."""
    find = _UNREAD.get(dialect)
    return [] if find is None else find(tokens)
