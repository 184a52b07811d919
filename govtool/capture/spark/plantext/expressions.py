"""Catalyst's notation of expressions: ``CASE WHEN (a#1 > 5) THEN upper(b#2) ELSE other END``.

Attributes have ids, so that what an expression depends on can be read whatever its text; literals have no quotes, so
that its structure sometimes cannot. Where it cannot, the attributes stand as arguments of something unknown, which
says that the value comes from them and not how.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext.cursor import ANY_ID, LAMBDA, UnreadablePlanError, attributes_of
from govtool.capture.spark.plantext.lists import conjuncts
from govtool.capture.spark.plantext.parser import QUERY, parsed

MAX_EXPRESSION = 1 << 20
"""Characters of one expression whose structure is read."""

_PLAIN = re.compile(r"[^\s,()\[\]{}#]+\Z")

QueryOf = Callable[[int], "p.Node | None"]


class TextExpressionReader:
    """Expressions of one plan.

    Args:
        names: Names of attributes by id, so that odd ones are recognised.
        query: The relation of a subquery by its number.
    """

    def __init__(self, names: Iterable[tuple[int, str]], query: QueryOf | None = None) -> None:
        self.known: dict[int, set[str]] = {}
        self._odd: dict[str, None] = {}
        self._query = query
        self.arrays: frozenset[int] = frozenset()
        """Attributes that are arrays."""
        self.uncertain = 0
        """Expressions of which only the attributes could be read."""
        self.add_attributes(names)

    def add_attributes(self, names: Iterable[tuple[int, str]]) -> None:
        """Take up more attributes."""
        for number, name in names:
            same = self.known.setdefault(number, set())
            same.add(name)
            if name and not _PLAIN.match(name):
                self._odd[f"{name}#{number}"] = None
                same.add("_")

    def name(self, number: int, text: str) -> str:
        """The name of an attribute of which `plain` has left an underscore."""
        return next((n for n in self.known.get(number, ()) if n != "_"), text) if text == "_" else text

    def expression(self, text: str) -> p.Expression:
        """The meaning of an expression."""
        text = self.plain(text.strip())
        if len(text) <= MAX_EXPRESSION:
            try:
                found, uncertain = parsed(text, self.known, self.query, self.arrays)
            except (UnreadablePlanError, RecursionError):
                pass
            else:
                self.uncertain += uncertain > 0
                return found
        self.uncertain += 1
        return p.Apply("", self.attributes(text))

    def condition(self, text: str) -> p.Expression:
        """A condition: all that matters is what it depends on."""
        return p.Apply("", self.attributes(self.plain(text)))

    def attributes(self, text: str) -> tuple[p.Expression, ...]:
        """The attributes and subqueries that a text names."""
        queries: list[p.Expression] = []

        def taken(match: re.Match[str]) -> str:
            query = self.query(int(match[2]), exists=match[1] == "exists")
            if query is None and match[1] == "exists":
                return match[0]  # the mark of an existence join
            if query is not None and match[1] != "dynamicpruning":
                queries.append(query)
            return ""

        text = LAMBDA.sub("", QUERY.sub(taken, text))
        return (*attributes_of(text, self.known), *queries)

    def query(self, number: int, *, exists: bool = False) -> p.Expression | None:
        """A subquery as an expression."""
        node = self._query(number) if self._query is not None else None
        return None if node is None else p.Query(node, not exists)

    def plain(self, text: str) -> str:
        """The text with names that have spaces and brackets in them made plain."""
        if self._odd:
            for odd in self._odd:
                if odd in text:
                    text = re.sub(re.escape(odd) + r"(?!\d)", lambda m: "_" + m[0][m[0].rindex("#") :], text)
        return text


def written_conditions(text: str, given: Container[int], *, generates: bool = False) -> list[str]:
    """The conditions of a filter without those that the optimizer has added: that something is not null which another
    condition, or a join, compares anyway.

    Args:
        text: As the plan has it.
        given: Ids of attributes that joins and generators above compare.
        generates: Whether a generator stands above: it is given only what has elements.
    """
    parts = conjuncts(text)
    compared: set[int] = set()
    checks: list[tuple[str, int]] = []
    kept: list[str] = []
    for part in parts:
        found = re.fullmatch(r"\(?isnotnull\((?:.*)#(\d+)L?\)\)?", part, re.DOTALL)
        if found is not None and part.count("#") == 1:
            checks.append((part, int(found[1])))
        elif generates and re.fullmatch(r"\(size\(.*\) > 0\)", part, re.DOTALL):
            continue
        elif "dynamicpruning" not in part and "might_contain(" not in part and "bloom_filter" not in part:
            compared.update(int(m[1]) for m in ANY_ID.finditer(part))
            kept.append(part)
    return [*kept, *(part for part, number in checks if number not in compared and number not in given)]
