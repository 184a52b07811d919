"""SQL text to the plan form.

What a query means is taken from its text and the relations' schemas, in Spark SQL's semantics. Constructs that the
specification of record-level provenance does not cover are refused by name, with line and column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from govtool.errors import UsageError
from govtool.records.plan.expressions import Attribute, Expression
from govtool.records.plan.nodes import Relation, With
from govtool.records.plan.sql_context import Context, nested_too_deeply
from govtool.records.plan.sql_query import bound_query
from govtool.records.plan.sql_scope import Scope
from govtool.records.plan.sql_terms import Terms
from govtool.records.plan.tree import Node
from govtool.records.plan.types import Struct

_BEFORE = "SELECT *\nFROM t WHERE\n"
_LITERALS = re.compile(
    r"--[^\n]*|/\*.*?\*/|`[^`]*`|\b[rR](?:'[^']*'|\"[^\"]*\")|(?<!\\)'(?:[^'\\]|\\.|'')*+'|(?<!\\)\"(?:[^\"\\]|\\.|\"\")*+\"",
    re.DOTALL,
)
"""Comments, quoted names, raw and other literals."""


def table(name: str, schema: Struct) -> Relation:
    """A relation without files, known by its name and schema."""
    columns = tuple(Attribute(number, each.name, each.type, each.nullable) for number, each in enumerate(schema.fields))
    return Relation(0, name, "table", (), columns, schema)


def from_sql(text: str, relations: Mapping[str, Relation], dialect: str = "spark") -> Node:
    """Read a query.

    Args:
        text: One SELECT statement, set operations and common table expressions included.
        relations: What FROM may name, by name in lower case; each reading becomes a leaf of its own.
        dialect: sqlglot's name of the dialect that ``text`` is written in.

    Raises:
        UsageError: The text does not parse, is no query, names what is not there, or uses a construct that record-level
            provenance does not cover; ``location`` is ``line:column``.
    """
    context = Context(text, relations, dialect, bound_query)
    with nested_too_deeply():
        node, _ = bound_query(context, context.parsed(), None)
    return With(tuple(context.definitions), node) if context.definitions else node


def condition_from_sql(
    text: str, columns: Sequence[Attribute], dialect: str = "spark", *, ansi: bool = True
) -> Expression:
    """Read a boolean expression over columns.

    Args:
        text: The expression.
        columns: What it may name.
        dialect: sqlglot's name of the dialect that ``text`` is written in.
        ansi: Whether the session is in ANSI mode; in another one, operands of different types are compared otherwise.

    Raises:
        UsageError: See ``from_sql``; positions are those in ``text``.
    """
    context = Context(text, {}, dialect, bound_query, ansi=ansi)
    if not text.strip():
        raise UsageError("the expression is empty", code="usage.sql-syntax", location="1:1")
    query = Context(f"{_BEFORE}{_escaped(text)}", {}, dialect, bound_query)
    try:
        with nested_too_deeply():
            parsed = query.parsed()
    except UsageError as error:
        line, _, column = (error.location or "1:1").partition(":")
        raise UsageError(
            f"the expression does not parse: {text}",
            code="usage.sql-syntax",
            location=f"{max(int(line) - 2, 1)}:{column}",
        ) from error
    where = parsed.args.get("where")
    extra = [name for name, value in parsed.args.items() if value and name not in ("expressions", "from_", "where")]
    if where is None or extra:
        raise context.wrong(f"a condition is expected: {text}", exp.Null())
    for each in where.walk():
        if "start" in each.meta:
            each.meta["start"] -= len(_BEFORE)
    with nested_too_deeply():
        return Terms(context, Scope(None, [("", tuple(columns))])).whole_condition(where.this)


def _escaped(text: str) -> str:
    r"""An expression with a doubled quote in a literal, ``'it''s'``, as ``'it\'s'``: places stay as they are.

    Spark 4 reads the two alike. sqlglot's Spark takes the first for two literals side by side, and loses the quote.
    """
    doubled = "''" in text or '""' in text
    return _LITERALS.sub(_with_backslashes, text) if doubled else text


def _with_backslashes(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] not in "'\"":
        return text
    return text[0] + re.sub(rf"(\\.)|{text[0]}{text[0]}", lambda each: each[1] or f"\\{text[0]}", text[1:-1]) + text[-1]
