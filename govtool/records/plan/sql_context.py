"""The state of the reading of one SQL text, passed to all of its readers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from govtool.errors import UnknownNameError, UsageError
from govtool.records.plan.expressions import Attribute, Expression, Mode, Named, passed
from govtool.records.plan.nodes import Definition, Relation
from govtool.records.plan.sql_scope import Scope
from govtool.records.plan.tree import Node
from govtool.records.plan.types import Type
from govtool.wording import few

# These only say whether the tokens are to be looked at: behind a comment there may be anything.
_STRAY_COMMA = re.compile(r"(?:,|\(|\bselect\b)\s*+(?:,|--|/\*)|,\s*+(?:[);]|\bfrom\b|\Z)", re.IGNORECASE)
"""A comma that may have nothing on one side: in a literal it means nothing."""
_BEFORE_ITEMS = frozenset({TokenType.SELECT, TokenType.L_PAREN, TokenType.COMMA})
_AFTER_ITEMS = frozenset({TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.FROM})
_OPEN_CLAUSE = re.compile(
    r"\b(?:on|using|by|as|over)\b[\s(]*+(?:[),;]|\Z|--|/\*|\b(?:where|group|having|qualify|window|order|sort"
    r"|distribute|cluster|limit|offset|fetch|union|except|minus|intersect|join|inner|left|right|full|cross|natural"
    r"|semi|anti|on|using|rows|range|from)\b)",
    re.IGNORECASE,
)
"""A clause that may have nothing behind its keyword: in a literal it means nothing."""
_CLAUSES = frozenset({TokenType.ON, TokenType.USING, TokenType.PARTITION_BY, TokenType.GROUP_BY})
"""Keywords behind which sqlglot takes nothing for a condition or a list."""
_FRAME = re.compile(r"\b(?:rows|range)(?:\s*+(?:--|/\*)|\s++between\b)", re.IGNORECASE)
_FRAMES = frozenset({TokenType.ROWS, TokenType.RANGE})
_BEFORE_NAMES = frozenset({TokenType.ALIAS, TokenType.OVER})
"""Keywords behind which sqlglot takes nothing for a name; any other word is one."""
_SIDES = frozenset({
    TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS,
    TokenType.NATURAL, TokenType.SEMI, TokenType.ANTI, TokenType.ROWS, TokenType.RANGE, TokenType.WINDOW,
})  # fmt: skip
"""What ends a clause, unless it is the name of a function or of a relation."""
_ENDS = frozenset({
    TokenType.R_PAREN, TokenType.COMMA, TokenType.SEMICOLON, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
    TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.DISTRIBUTE_BY, TokenType.CLUSTER_BY,
    TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
    TokenType.ON, TokenType.USING,
})  # fmt: skip


def syntax_error(error: ParseError) -> UsageError:
    """The error of a text that does not parse: where the parser stopped, in the words of the text."""
    where = error.errors[0] if error.errors else {}
    token = str(where.get("highlight") or "")
    near = " ".join(token.split())
    start = int(where.get("col") or 1) - (len(token) - 1 if token.isprintable() and token else 0)  # it ends at "col"
    known = str(where.get("description") or "")
    reasons = [reason for part, reason in _REASONS.items() if part in known]
    return UsageError(
        f"the query does not parse{f' near {_shortened(near)!r}' if near else ''}{': ' if reasons else ''}"
        f"{reasons[0] if reasons else ''}",
        code="usage.sql-syntax",
        location=f"{where.get('line') or 1}:{max(start, 1)}",
    )


def _is_open_frame(tokens: Sequence[Token]) -> bool:
    """Return whether a frame ends before both of its bounds are there: what follows BETWEEN."""
    depth, last = 0, TokenType.BETWEEN
    for token in tokens:
        if token.token_type == TokenType.AND and depth == 0 and last != TokenType.BETWEEN:
            last = TokenType.AND
            continue
        if depth == 0 and last == TokenType.AND:
            return token.token_type == TokenType.R_PAREN
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0:
            return True
        last = token.token_type
    return True


def _is_empty(keyword: Token, token: Token | None = None, after: Token | None = None) -> bool:
    """Return whether a keyword is that of a clause with nothing behind, by the two tokens that follow it."""
    clause = keyword.token_type
    if clause in _BEFORE_NAMES:
        return token is None or token.token_type in _AFTER_ITEMS or token.token_type == TokenType.COMMA
    if clause not in _CLAUSES:
        return False
    if token is None or token.token_type in _ENDS:
        return True
    follows = None if after is None else after.token_type
    if token.token_type in _SIDES:
        return follows not in (TokenType.L_PAREN, TokenType.DOT)
    return clause == TokenType.USING and token.token_type == TokenType.L_PAREN and follows == TokenType.R_PAREN


def _shortened(text: str) -> str:
    return text if len(text) <= _NEAR else f"{text[:_NEAR]}…"


_MOST_DIGITS = 38
"""Digits of a number that Spark has a decimal for."""
_NEAR = 40
"""Characters of the word at which a text stops to parse."""
_LISTED = 12
"""Names that an error lists where none is near."""
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(\s*(?:distinct\s+)?$", re.I)
"""The name of a function, before its first argument."""
_REASONS = {
    "Expecting )": "a closing parenthesis is expected",
    "Expecting (": "an opening parenthesis is expected",
    "Expected table name": "the name of a relation is expected",
    "TYPE": "a type is expected",
    "Required keyword": "something is missing",
    "Maximum number of AST nodes": "joins without ON, or it is nested too deeply",
}
"""What the parser expected, by what its message holds."""


@contextmanager
def nested_too_deeply() -> Iterator[None]:
    """Refuse a text that is read by more calls within each other than Python has.

    Raises:
        UsageError: It is.
    """
    try:
        yield
    except RecursionError as error:
        raise UsageError("the query does not parse: it is nested too deeply", code="usage.sql-syntax") from error


class Context:
    """The state of the reading of one text: ids, leaves, definitions, and the text itself for errors.

    Args:
        text: The text.
        relations: What FROM may name.
        dialect: sqlglot's name of the dialect.
        read_query: Reads a query and the queries within it: expressions and relations hold some.
        ansi: Whether the session is in ANSI mode.
    """

    def __init__(
        self,
        text: str,
        relations: Mapping[str, Relation],
        dialect: str,
        read_query: QueryReader,
        *,
        ansi: bool = True,
    ) -> None:
        self.text = text
        self.mode: Mode = "ansi" if ansi else "legacy"
        self._read_query = read_query
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
        language = Dialect.get_or_raise(self.dialect)
        try:
            found = [each for each in language.parse(self.text) if each is not None]
            named = "TRY_CAST" in self.text.upper()  # a long list of values is not read twice for nothing
            tokens = language.tokenize(self.text) if named else []
            casts = [each for each in tokens if each.text.upper() == "TRY_CAST"]
        except ParseError as error:
            raise syntax_error(error) from error
        except TokenError as error:
            raise UsageError(
                "the query does not parse: a quote or a comment is not closed", code="usage.sql-syntax"
            ) from error
        except (IndexError, KeyError, TypeError, AttributeError) as error:  # map(1): the parser wants pairs
            raise UsageError(
                "the query does not parse: a function lacks an argument", code="usage.sql-syntax", location="1:1"
            ) from error
        self._require_list_items(language)
        self._require_clauses(language)
        if casts and self.dialect == "spark":  # sqlglot reads Spark's CAST as TRY_CAST, so the two look alike
            raise self.refused("TRY_CAST", at=casts[0])
        if len(found) != 1 or not isinstance(found[0], exp.Query):
            raise UsageError("one query is expected: SELECT …", code="usage.sql-syntax", location="1:1")
        for each in found[0].find_all(exp.Literal):
            if not each.is_string and "e" not in each.this.lower() and len(each.this.replace(".", "")) > _MOST_DIGITS:
                raise self.wrong("a number of more than 38 digits", each)
        return found[0]

    def _require_list_items(self, language: Dialect) -> None:
        """Refuse a comma with nothing on one side, which the parser skips.

        Raises:
            UsageError: There is one.
        """
        if not _STRAY_COMMA.search(self.text):
            return
        tokens = language.tokenize(self.text)
        for token, after in zip(tokens, [*tokens[1:], None], strict=True):
            follows = after is not None and after.token_type == TokenType.COMMA and token.token_type in _BEFORE_ITEMS
            ends = token.token_type == TokenType.COMMA and (after is None or after.token_type in _AFTER_ITEMS)
            if follows or ends:
                raise UsageError(
                    "the query does not parse: something is missing beside a comma",
                    code="usage.sql-syntax",
                    location=self.position(after if follows else token),
                )

    def _require_clauses(self, language: Dialect) -> None:
        """Refuse clauses with nothing behind their keyword, which the parser skips: ``JOIN s ON``, ``ROWS BETWEEN 1``.

        Raises:
            UsageError: There is one.
        """
        if not (_OPEN_CLAUSE.search(self.text) or _FRAME.search(self.text)):
            return
        tokens = language.tokenize(self.text)
        before: TokenType | None = None
        for n, token in enumerate(tokens):
            named = before in (TokenType.DOT, TokenType.ALIAS)
            is_frame = before in _FRAMES and token.token_type == TokenType.BETWEEN
            if _is_open_frame(tokens[n + 1 :]) if is_frame else not named and _is_empty(*tokens[n : n + 3]):
                raise UsageError(
                    f"the query does not parse near {token.text.lower()!r}: something is missing",
                    code="usage.sql-syntax",
                    location=self.position(token),
                )
            before = token.token_type

    def query(self, at: exp.Expr, parent: Scope | None) -> tuple[Node, Scope]:
        """Read a query within another one; the scope holds the columns that it reads of the queries around it.

        Raises:
            UsageError: See ``from_sql``.
        """
        return self._read_query(self, at, parent)

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
        """The error of an unknown name, with the nearest names or, where none is near, the first of all names."""
        known = list(dict.fromkeys(names))
        by_lower = {each.lower(): each for each in known}
        near = tuple(by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, n=3))
        return UnknownNameError(
            f"unknown {kind} '{name}'",
            code=f"usage.unknown-{kind}",
            nearest=near,
            location=self.position(at),
            hint=f"one of {few(known, _LISTED)}" if known and not near else None,
        )

    def position(self, at: Any) -> str:
        """``line:column`` of a token or of the first name in an expression, be it a function's; both count from 1."""
        if not isinstance(at, exp.Expr):
            start = at.start
        else:
            starts = [each.meta["start"] for each in at.walk() if "start" in each.meta]
            start = min(starts, default=0)
            start -= _name_before(self.text[max(0, start - _NEAR) : start], at) if isinstance(at, exp.Func) else 0
        line = self.text.count("\n", 0, start) + 1
        return f"{line}:{start - (self.text.rfind(chr(10), 0, start) + 1) + 1}"


QueryReader = Callable[[Context, exp.Expr, Scope | None], tuple[Node, Scope]]
"""Reads a query below a scope: ``sql_query.bound_query``."""


def _name_before(text: str, called: exp.Func) -> int:
    """How far before the end of a text the name of the function is whose first argument follows; 0: it is not there."""
    found = _CALLED.search(text)
    names = {*called.sql_names(), called.name.upper()}
    return len(text) - found.start() if found is not None and found[1].upper() in names else 0
