"""Conditions with queries that decide about no statement which writes or reads: they are queries of their own.

``IF EXISTS (SELECT 1 FROM t WHERE c = 1) THEN RAISE NOTICE …`` fails where ``t`` has lost ``c``. Conditions of IFs
around a statement count for that statement; this is for the others.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.statement import ConditionQuery

_COUNTED: Final = (exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create)
_CATALOGS: Final = frozenset({"sys", "information_schema", "pg_catalog", "mysql", "performance_schema"})
_OF_SYSTEM: Final = ("sys", "pg_", "user_", "all_", "dba_", "v$", "dual")
"""Begin names of tables that describe the database: scripts ask them whether something is there."""


def noted(reader: StatementReader, tokens: list[Token], test: exp.Expr) -> None:
    """Note a condition, if there is a query of a table in it."""
    tables = [table for table in test.find_all(exp.Table) if table.find_ancestor(exp.Query) is not None]
    if not tables or all([_describes(table) for table in tables]):  # noqa: C419
        return
    counter, reader.counter = reader.counter, None
    reader.add(tokens, exp.Select(expressions=[test.copy()]), "parsed", head="if")
    reader.counter = counter
    reader.conditions.append(ConditionQuery(test, len(reader.statements) - 1, reader.statements.pop()))


def _describes(table: exp.Table) -> bool:
    return table.db.lower() in _CATALOGS or (not table.db and table.name.lower().startswith(_OF_SYSTEM))


def listed(reader: StatementReader) -> None:
    """Add those conditions that no statement counts, each where it stands."""
    counted = {
        id(test) for statement in reader.statements if isinstance(statement.tree, _COUNTED) for test in statement.tests
    }
    for condition in reversed(reader.conditions):
        if id(condition.test) not in counted:
            reader.statements.insert(condition.at, condition.statement)
    reader.conditions = []
