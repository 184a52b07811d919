"""Asks PostgreSQL how it understands statements whose names the text alone leaves open.

What the statements' scripts define and the database lacks is created first, in the order in which it depends on each
other, in the same transaction; that is rolled back whatever happens. Then each statement is planned, not run, by
``EXPLAIN (VERBOSE, FORMAT JSON)``: it says whether PostgreSQL takes it, which tables it reads and how many columns it
puts out. Plans name columns of tables only, views are gone from them; so the names are taken from PostgreSQL's own
writing of its parse tree, in which all are qualified and every ``*`` is spelled out: that of a temporary function
whose body is the statement (``pg_get_function_sqlbody``, PostgreSQL 14). Where even that text is not understood, the
tables of the plan are what is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from govtool.capture.catalog.model import stored_name
from govtool.capture.catalog.postgres import DIALECT
from govtool.names import fold, join_name, quote

if TYPE_CHECKING:
    from psycopg import Connection

_EXISTS = frozenset({"42P07", "42723", "42P06", "42710"})
"""SQLSTATEs of what exists already: a relation, a function, a schema, another object."""

_LOCK_SECONDS = 5
_STATEMENT_SECONDS = 60

_BODY = re.compile(r"\ABEGIN ATOMIC\s(.*);\s*END\Z", re.DOTALL)
_DEFINES = ("SCHEMA", "TYPE", "DOMAIN", "FUNCTION", "TABLE", "VIEW")


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A statement as it is written."""

    text: str
    search_path: tuple[str, ...] = ()
    """Canonical schemas that go before those of the database."""


@dataclass(frozen=True, slots=True)
class ExplainedStatement:
    """PostgreSQL's reading of a statement."""

    text: str = ""
    """The same statement with all of its names resolved."""
    tables: frozenset[str] = frozenset()
    """Canonical ``schema.table`` of what its plan reads; what a view stands on, not the view."""
    target: str = ""
    """Canonical ``schema.table`` that it writes; of CREATE, the name as it is written."""
    creates: str = ""
    """``VIEW`` or ``TABLE``; empty where it creates nothing."""
    refused: str = ""
    """The reason why there is no answer."""


@dataclass(frozen=True, slots=True)
class StatementParts:
    """A statement cut where its query begins and ends."""

    head: str
    """``CREATE VIEW v (a, b) AS``; empty where the statement is the query."""
    body: str
    first: str
    """The word that says what the body does: SELECT, INSERT, MERGE …"""
    kind: str = ""
    """``VIEW``, ``TABLE`` … of CREATE; empty otherwise."""


def explain(
    connection: Connection[Any], definitions: Sequence[ExplainRequest], requests: Sequence[ExplainRequest]
) -> list[ExplainedStatement]:
    """Explain statements.

    Args:
        connection: In a transaction of its own, that may write, and that the caller rolls back.
        definitions: Statements of the scripts, in order; those that create something are run where that is missing.
        requests: The statements.

    Raises:
        psycopg.Error: the connection broke.
    """
    connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
    connection.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
    connection.execute("SET LOCAL client_min_messages = warning")
    connection.execute("SET LOCAL check_function_bodies = off")
    row = connection.execute("SELECT current_schemas(false)::text[]").fetchone()
    path: list[str] = row[0] if row is not None else []
    missing = _create(connection, definitions, path)
    return [_explained(connection, item, path, missing) for item in requests]


def _create(connection: Connection[Any], definitions: Sequence[ExplainRequest], path: list[str]) -> dict[str, str]:
    """Create what is missing, in as many rounds as something succeeds; what failed, with its reason."""
    import psycopg

    waiting = [(item, statement) for item in definitions if (statement := creation(item.text))]
    reasons: dict[str, str] = {}
    while waiting:
        left = []
        for item, statement in waiting:
            try:
                with connection.transaction():
                    _look(connection, item.search_path, path)
                    connection.execute(statement, prepare=True)
                reasons.pop(item.text, None)
            except psycopg.Error as error:
                if connection.broken:
                    raise
                if error.sqlstate not in _EXISTS:
                    left.append((item, statement))
                    reasons[item.text] = _reason(error)
        if len(left) == len(waiting):
            break
        waiting = left
    return reasons


def _explained(
    connection: Connection[Any], item: ExplainRequest, path: list[str], missing: Mapping[str, str]
) -> ExplainedStatement:
    import psycopg

    parts = cut(item.text)
    if parts is None:
        return ExplainedStatement(refused="it is neither a query nor INSERT, UPDATE, DELETE or MERGE")
    try:
        with connection.transaction(force_rollback=True):
            _look(connection, item.search_path, path)
            plan, body = _query_plan(connection, parts.body)
    except psycopg.Error as error:
        if connection.broken:
            raise
        reasons = dict.fromkeys(text for text in (_reason(error), missing.get(item.text)) if text)
        first, *more = reasons
        return ExplainedStatement(refused=f"PostgreSQL does not take it: {first}{f' ({more[0]})' if more else ''}")
    found = _BODY.match(body.strip())
    if found is None:
        return ExplainedStatement(refused="PostgreSQL does not write it out")
    head = f"{parts.head}\n" if parts.head else ""
    target = _created(parts.head) if head else ""
    if plan.get("Node Type") == "ModifyTable":
        target = stored_name((plan.get("Schema"), plan["Relation Name"]), DIALECT)
    return ExplainedStatement(head + found[1].strip(), frozenset(_tables(plan)) - {target}, target, parts.kind)


def _query_plan(connection: Connection[Any], statement: str) -> tuple[dict[str, Any], str]:
    """The plan of a statement, and how PostgreSQL writes it."""
    # Prepared: a text that is two statements for PostgreSQL is refused, not run.
    planned = connection.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}", prepare=True).fetchone()
    connection.execute(
        f"CREATE FUNCTION pg_temp.govtool_explained() RETURNS void LANGUAGE sql BEGIN ATOMIC\n{statement}\n;\nEND"
    )
    connection.execute("SELECT set_config('search_path', '', true)")
    written = connection.execute(
        "SELECT pg_get_function_sqlbody('pg_temp.govtool_explained()'::regprocedure)"
    ).fetchone()
    return planned[0][0]["Plan"] if planned else {}, written[0] if written and written[0] else ""


def _tables(plan: Mapping[str, Any]) -> Iterator[str]:
    """The tables of a plan; it is a tree, whose nodes have ``Plans``."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if "Relation Name" in node:
            yield stored_name((node.get("Schema"), node["Relation Name"]), DIALECT)
        waiting.extend(node.get("Plans", ()))


def _look(connection: Connection[Any], first: tuple[str, ...], path: list[str]) -> None:
    """Set where names without a schema are looked up, until the end of the (sub)transaction."""
    schemas = [*first, *(quote(schema) for schema in path)]
    connection.execute("SELECT set_config('search_path', %s, true)", (", ".join(dict.fromkeys(schemas)),))


def _reason(error: Any) -> str:
    text = error.diag.message_primary if error.diag is not None else None
    return text or " ".join(str(error).split())


# ---- texts -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Words:
    """The words of a statement outside of parentheses."""

    words: list[tuple[str, int, int]] = field(default_factory=list)
    """Upper case, with the offsets of the first character and of the one after the last."""
    end: int = 0


def _words(text: str) -> _Words | None:
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    from govtool.capture.sql.syntax.lexer import lexer

    try:
        tokens = lexer(DIALECT).tokenize(text)
    except TokenError:
        return None
    found = _Words()
    depth = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            continue
        found.end = token.end + 1
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            # A token can be several words: WITH NO DATA, NULLS FIRST.
            found.words.extend(
                (word.upper(), token.start, token.end + 1) for word in text[token.start : token.end + 1].split()
            )
    return found


_ACTIONS = ("SELECT", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE")


def cut(text: str) -> StatementParts | None:
    """Cut a statement where its query begins and ends; None where it has none that can be planned."""
    found = _words(text)
    if found is None or not found.end:
        return None
    words = found.words
    names = [word for word, _, _ in words]
    if not names or names[0] != "CREATE":
        bracketed = text.lstrip().startswith("(")
        first = next((word for word in names if word in _ACTIONS), "SELECT" if bracketed else "")
        known = bracketed or (bool(names) and names[0] in (*_ACTIONS, "WITH"))
        return StatementParts("", text[: found.end], first) if first and known else None
    kind = next((word for word in names[1:8] if word in ("VIEW", "TABLE")), "")
    if not kind or "AS" not in names:
        return None
    at = names.index("AS")
    closing = _closing(names, at)
    end = found.end if closing is None else words[closing][1]
    first = next((word for word in names[at + 1 :] if word in _ACTIONS), "SELECT")
    return StatementParts(text[: words[at][2]], text[words[at][2] : end].strip(), first, kind)


def _closing(names: list[str], at: int) -> int | None:
    """Where a clause behind the query begins, by the words of a statement with AS at ``at``; None if there is none."""
    for clause in (["WITH", "NO", "DATA"], ["WITH", "DATA"], ["CHECK", "OPTION"]):
        if names[at:][-len(clause) :] == clause:
            start = len(names) - len(clause)
            while clause == ["CHECK", "OPTION"] and names[start] != "WITH":
                start -= 1
            return start
    return None


def creation(text: str) -> str | None:
    """The statement that creates what a statement creates, and no more: no rows, no constraints, nothing replaced.

    None where it creates no schema, type, function, table or view.
    """
    found = _words(text)
    if found is None:
        return None
    names = [word for word, _, _ in found.words]
    if not names or names[0] != "CREATE":
        return None
    kind = next((word for word in names[1:8] if word in _DEFINES), "")
    if not kind:
        return None
    statement = text[: found.end]
    if names[1:3] == ["OR", "REPLACE"]:  # what is there must stay as it is, even within the transaction
        statement = text[: found.words[1][1]] + text[found.words[2][2] : found.end]
    if kind not in ("TABLE", "VIEW"):
        return statement
    parts = cut(text)
    if kind == "TABLE":
        return f"{_unreplaced(parts.head)} {parts.body} WITH NO DATA" if parts is not None else _columns_only(statement)
    if "MATERIALIZED" in names[:6] and parts is not None:
        return f"{_unreplaced(parts.head)} {parts.body} WITH NO DATA"
    return statement


def _unreplaced(head: str) -> str:
    return re.sub(r"\A(\s*CREATE)\s+OR\s+REPLACE\b", r"\1", head, flags=re.IGNORECASE)


def _created(head: str) -> str:
    """The name that a CREATE … AS gives; empty if it is not to be found."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(f"{head} SELECT 1", read=DIALECT)
    except SqlglotError:
        return ""
    table = tree.find(exp.Table)
    parts = table.parts if table is not None else ()
    return join_name([fold(p.name, quoted=bool(p.args.get("quoted")), dialect=DIALECT, table=True) for p in parts])


def _columns_only(statement: str) -> str | None:
    """CREATE TABLE with names and types alone: a foreign key would lock the table that it refers to."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(statement, read=DIALECT)
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        return None
    columns = [
        f"{item.this.sql(DIALECT)} {item.args['kind'].sql(DIALECT)}"
        for item in tree.this.expressions
        if isinstance(item, exp.ColumnDef) and item.args.get("kind") is not None
    ]
    if not columns:
        return None
    temporary = "TEMPORARY " if tree.find(exp.TemporaryProperty) is not None else ""
    return f"CREATE {temporary}TABLE {tree.this.this.sql(DIALECT)} ({', '.join(columns)})"
