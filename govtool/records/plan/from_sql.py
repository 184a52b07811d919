"""SQL text to the plan form.

What a query means is taken from its text and the relations' schemas, in Spark SQL's semantics. Constructs that the
specification of record-level provenance does not cover are refused by name, with line and column.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from govtool.errors import UnknownNameError, UsageError
from govtool.records.plan.expressions import Attribute, Expression, Named, passed
from govtool.records.plan.nodes import Definition, Relation, With
from govtool.records.plan.tree import Node
from govtool.records.plan.types import Struct, Type

_BEFORE = "SELECT *\nFROM t WHERE\n"
_LITERALS = re.compile(
    r"--[^\n]*|/\*.*?\*/|`[^`]*`|\b[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL
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
    from govtool.records.plan.sql_query import bound_query  # the two refer to each other's classes

    context = Context(text, relations, dialect)
    node, _ = bound_query(context, context.parsed(), None)
    return With(tuple(context.definitions), node) if context.definitions else node


def condition_from_sql(text: str, columns: Sequence[Attribute], dialect: str = "spark") -> Expression:
    """Read a boolean expression over columns.

    Raises:
        UsageError: See ``from_sql``; positions are those in ``text``.
    """
    from govtool.records.plan.sql_scope import Scope
    from govtool.records.plan.sql_terms import Terms

    context = Context(text, {}, dialect)
    query = Context(f"{_BEFORE}{_escaped(text)}", {}, dialect)
    try:
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
    return Terms(context, Scope(None, [("", tuple(columns))])).condition(where.this)


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


class Context:
    """The state of the reading of one text: ids, leaves, definitions, and the text itself for errors."""

    def __init__(self, text: str, relations: Mapping[str, Relation], dialect: str) -> None:
        self.text = text
        self.dialect = dialect
        self.definitions: list[Definition] = []
        self._relations = {name.lower(): relation for name, relation in relations.items()}
        self._ids = count(1)
        self._leaves = count(0)

    def parsed(self) -> exp.Expr:
        """The statement.

        Raises:
            UsageError: There is none, or more than one.
        """
        try:
            language = Dialect.get_or_raise(self.dialect)
            found = [each for each in language.parse(self.text) if each is not None]
            named = "TRY_CAST" in self.text.upper()  # a long list of values is not read twice for nothing
            tokens = language.tokenize(self.text) if named else []
            casts = [each for each in tokens if each.text.upper() == "TRY_CAST"]
        except ParseError as error:
            where = error.errors[0] if error.errors else {}
            raise UsageError(
                f"the query does not parse: {where.get('description', error)}",
                code="usage.sql-syntax",
                location=f"{where.get('line', 1)}:{where.get('col', 1)}",
            ) from error
        except (TokenError, RecursionError) as error:
            raise UsageError("the query does not parse", code="usage.sql-syntax") from error
        if casts and self.dialect == "spark":  # sqlglot reads Spark's CAST as TRY_CAST, so the two look alike
            raise self.refused("TRY_CAST", at=casts[0])
        if len(found) != 1 or not isinstance(found[0], exp.Query):
            raise UsageError("one query is expected: SELECT …", code="usage.sql-syntax", location="1:1")
        return found[0]

    def next_id(self) -> int:
        """A new attribute id."""
        return next(self._ids)

    def attribute(self, name: str, kind: Type) -> Attribute:
        """A new attribute."""
        return Attribute(self.next_id(), name, kind)

    def named(self, value: Expression, name: str) -> Named:
        """A column under a name: one that is passed on keeps its id, where it keeps its name."""
        if isinstance(value, Attribute) and value.name == name:
            return passed(value)
        return Named(value, self.next_id(), name)

    def leaf(self) -> int:
        """A new leaf's number."""
        return next(self._leaves)

    def relation(self, name: str, at: exp.Expr) -> Relation:
        """A new reading of a relation.

        Raises:
            UnknownNameError: There is no such relation.
        """
        found = self._relations.get(name.lower())
        if found is None:
            raise self.unknown("relation", name, self._relations, at)
        columns = tuple(replace(each, id=self.next_id()) for each in found.columns)
        return replace(found, leaf=self.leaf(), columns=columns)

    def refused(self, construct: str, *, at: Any) -> UsageError:
        """The error of a construct that is not covered."""
        return UsageError(
            f"record-level provenance does not cover {construct}",
            code="usage.sql-unsupported",
            location=self.position(at),
        )

    def wrong(self, message: str, at: exp.Expr) -> UsageError:
        """The error of a query that means nothing."""
        return UsageError(message, code="usage.sql-meaning", location=self.position(at))

    def unknown(self, kind: str, name: str, names: Iterable[str], at: exp.Expr) -> UnknownNameError:
        """The error of a name that nothing has, with the nearest ones."""
        near = tuple(difflib.get_close_matches(name.lower(), list(names), n=3))
        return UnknownNameError(
            f"unknown {kind} '{name}'", code=f"usage.unknown-{kind}", nearest=near, location=self.position(at)
        )

    def position(self, at: Any) -> str:
        """``line:column`` of a token or of the first name in an expression; both count from 1."""
        if not isinstance(at, exp.Expr):
            start = at.start
        else:
            starts = [each.meta["start"] for each in at.walk() if "start" in each.meta]
            start = min(starts, default=0)
        line = self.text.count("\n", 0, start) + 1
        return f"{line}:{start - (self.text.rfind(chr(10), 0, start) + 1) + 1}"
