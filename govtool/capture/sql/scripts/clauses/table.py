"""Clauses that a parser does not read: a statement is read without them, or with them in a form that the parser reads.

They are looked for only when a statement does not parse as it stands. Most are not about what is read or written: where
rows are stored, how they are locked, how a constraint is enforced. These are left out silently. Through a clause with
``flows=True`` rows do flow (``LOG ERRORS INTO``): it is left out with a diagnostic (``unread``). Clauses that name
sources, such as files of ``BULK``, are rewritten so that the sources stay.

To add a clause, add a line to ``CLAUSES``; ``patterns`` describes the patterns. Clauses are tried in the order
of the table. What a pattern cannot express is a function, in a module of its dialect.

Sources: Transact-SQL reference; Oracle Database SQL Language Reference; MySQL Reference Manual, "SQL Statements";
Databricks SQL reference, CREATE TABLE; BigQuery documentation, "Legacy SQL query reference".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.clauses.bigquery import with_standard_tables
from govtool.capture.sql.scripts.clauses.mysql import without_options
from govtool.capture.sql.scripts.clauses.oracle import without_continuations, without_references, without_states
from govtool.capture.sql.scripts.clauses.oracle_calls import plain_calls
from govtool.capture.sql.scripts.clauses.patterns import ClausePattern, clause
from govtool.capture.sql.scripts.clauses.tsql_graph import without_match
from govtool.capture.sql.scripts.clauses.tsql_rowsets import bulk_files, predictions, without_language
from govtool.capture.sql.scripts.clauses.tsql_table import without_storage
from govtool.capture.sql.scripts.clients.ssms_templates import rendered

Simplify: TypeAlias = Callable[[list[Token]], list[Token]]
"""Returns a statement's tokens without a clause; the same list if it has none of the kind. Tokens that stay keep their
places."""


class _Rule:
    """A clause that needs code."""

    def __init__(self, dialects: str, applied: Simplify) -> None:
        self.dialects = frozenset(dialects.split())
        self.applied = applied


_TSQL: Final = "tsql fabric"
_HINT: Final = (
    "FORCESCAN|FORCESEEK|HOLDLOCK|INDEX|KEEPDEFAULTS|KEEPIDENTITY|IGNORE_CONSTRAINTS|IGNORE_TRIGGERS|NOEXPAND|NOLOCK|"
    "NOWAIT|PAGLOCK|READCOMMITTED|READCOMMITTEDLOCK|READPAST|READUNCOMMITTED|REPEATABLEREAD|ROWLOCK|SERIALIZABLE|"
    "SNAPSHOT|SPATIAL_WINDOW_MAX_CELLS|TABLOCK|TABLOCKX|UPDLOCK|XLOCK"
)
_CHANGES: Final = "INSERT|UPDATE|DELETE|MERGE"

CLAUSES: Final[tuple[ClausePattern | _Rule, ...]] = (
    # T-SQL: templates, items of WITH that are no tables, hints ("Table hints", "OPTION clause"), rowsets, graphs
    _Rule(_TSQL, rendered),
    clause(_TSQL, "WITH XMLNAMESPACES|CHANGE_TRACKING_CONTEXT () ,", "1"),
    clause(_TSQL, "WITH XMLNAMESPACES|CHANGE_TRACKING_CONTEXT ()"),
    clause(_TSQL, "OPTION ()"),
    clause(_TSQL, "WITH ()", inside=f"{_HINT} {_HINT}|,|)|(|="),
    clause(_TSQL, "::", behind="FROM|JOIN|APPLY|,|("),
    _Rule(_TSQL, bulk_files),
    _Rule(_TSQL, predictions),
    _Rule(_TSQL, without_language),
    _Rule(_TSQL, without_match),
    _Rule(_TSQL, without_storage),
    # Oracle: binds by number, definitions, changes of rows, operators in two pieces, calls in a form of their own
    _Rule("oracle", without_continuations),
    clause("oracle", "<NUMBER>", "VAR:p{1}", behind="<COLON>"),
    _Rule("oracle", without_states),
    clause("oracle", "- _ )", "2 3", behind="NUMBER|NUMERIC|DECIMAL|DEC ( <NUMBER> ,"),
    _Rule("oracle", without_references),
    clause("oracle", "SCOPE IS name"),
    clause("oracle", "LOG ERRORS …", of=_CHANGES, flows=True),
    clause("oracle", "< <EQ>", "LTE:<="),
    clause("oracle", "> <EQ>", "GTE:>="),
    clause("oracle", "<HINT>", of="MERGE"),
    clause("oracle", "SKIP LOCKED $"),
    clause("oracle", "DEFERRED|IMMEDIATE INVALIDATION $"),
    _Rule("oracle", plain_calls),
    # MySQL: priorities, files that a query writes, storage
    clause("mysql", "LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE+", behind="^ INSERT|UPDATE|ALTER"),
    clause(
        "mysql",
        "INTO OUTFILE|DUMPFILE _ …FROM|UNION|FOR|LOCK",
        of="SELECT|WITH|TABLE|VALUES|(",
        outermost=True,
        flows=True,
    ),
    _Rule("mysql", without_options),
    # Databricks: who may see values and rows (``access_rules`` reads it); behind a comma ``mask`` is a column
    clause("databricks", "MASK name USING COLUMNS ()?", of="CREATE", behind="!,|("),
    clause("databricks", "MASK name", of="CREATE", behind="!,|("),
    clause("databricks", "WITH? ROW FILTER name ON ()?", of="CREATE"),
    clause("databricks", "WITH? ROW FILTER name", of="CREATE"),
    # BigQuery's legacy SQL: tables in brackets, ``regexp`` as a name
    clause("bigquery", "<RLIKE>", "VAR:{1}"),
    _Rule("bigquery", with_standard_tables),
    # Generated columns that are computed when they are read
    clause("duckdb oracle databricks snowflake postgres mysql", "AS () VIRTUAL", "1 2", of="CREATE|ALTER"),
    # PostgreSQL: how long a temporary table lives
    clause("postgres redshift", "ON COMMIT DROP", of="CREATE"),
    # Redshift: types of its catalog are text to lineage (``'{}'::aclitem[]``)
    clause("redshift", "<VAR> [ ]", "VARCHAR:VARCHAR", behind="<DCOLON>"),
    clause("redshift", "<VAR>", "VARCHAR:VARCHAR", behind="<DCOLON>"),
)


def simplified(tokens: list[Token], dialect: str) -> list[Token]:
    """Return a statement's tokens without clauses that the parser of ``dialect`` does not read; the same list if there
    are none.
    """
    for rule in CLAUSES:
        if dialect in rule.dialects and tokens:
            tokens = rule.applied(tokens)
    return tokens


def unread(tokens: list[Token], dialect: str) -> list[Token]:
    """Return the tokens of a clause that ``simplified`` leaves out though rows flow by it; none if there is none."""
    for rule in CLAUSES:
        if isinstance(rule, ClausePattern) and rule.flows and dialect in rule.dialects:
            found = rule.first(tokens)
            if found:
                return found
    return []
