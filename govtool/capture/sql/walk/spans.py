"""Spans: where in its file an expression of a statement stands.

The parser keeps the places of names, literals and functions, not of keywords and brackets. So an item of a SELECT list
reaches from the comma or SELECT before its first name to the comma behind its last, and a condition from its first name
to its last, with the brackets that it opens. A place is only given where the text there is the name that the tree has:
a text that was rewritten or put together gives none.

Of a template, the text of an expression is looked for in the line that it comes from. If it is not there, or twice, a
macro or a variable made it: then the line is all that is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes

MAX_STEPS: Final = 4000
"""Nodes of an expression whose places are looked at."""
Span = tuple[int, int, int, int]
"""As in ``govtool.model.places``."""
AROUND: Final[tuple[type, ...]] = (
    *(exp.And, exp.Where, exp.Having, exp.Qualify, exp.Join, exp.Group, exp.Order),
    *(exp.Query, exp.DML),
)
"""What a condition, or an item of a clause, is part of."""
_COMPARISONS: Final = frozenset([exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE])
_PLAIN: Final = frozenset([*_COMPARISONS, exp.Ordered])
"""Conditions and items that are mostly of columns and literals alone."""
_QUOTES: Final = "\"'`[]"


class StatementText:
    """The text of one statement, with the places of the nodes of its tree."""

    def __init__(
        self,
        text: str,
        offset: int,
        column: int,
        template: list[str] | None,
        line_of: Callable[[int], int] | None,
    ) -> None:
        """Take a text.

        Args:
            text: The statement, as rendered.
            offset: Where it begins, as the nodes count.
            column: 1-based column of its first character.
            template: The lines of the template.
            line_of: Gives the line of the template for a line of the text, counted from 0.
        """
        self.text = text
        self.offset = offset
        self.column = column
        self.template = template
        self.line_of = line_of
        self._breaks: list[int] | None = None

    def item(self, node: exp.Expr) -> tuple[int, int] | None:
        """Return the part of the text that is an item of a list: a projection, an assignment."""
        bounds = self._bounds(node)
        if bounds is None:
            return None
        start, end = bounds
        value = node.args.get("this") if isinstance(node, nodes.Alias) else node
        begin = self._begin(start, isinstance(value, (nodes.Subquery, nodes.Exists, nodes.Paren)))
        return begin, self._end(begin, end)

    def condition(self, node: exp.Expr) -> tuple[int, int] | None:
        """Return the part of the text that is a condition: from its first to its last name, with its brackets."""
        args = node.args
        left = self._leaf(args["this"] if node.__class__ in _PLAIN else node)
        if left is not None:
            right = self._leaf(args["expression"]) if node.__class__ in _COMPARISONS else left
            if right is not None:
                first, last = min(left[0], right[0]), max(left[1], right[1])
                return first, self._end(first, last + 1)
        return self._any_condition(node)

    def _leaf(self, node: exp.Expr) -> tuple[int, int] | None:
        """The first and last character of a column or literal; None where it takes a closer look."""
        args = node.args
        if node.__class__ is nodes.Column:
            name, table = args["this"], args.get("table")
            if name.__class__ is not nodes.Identifier or args.get("db"):
                return None
            head = table if table.__class__ is nodes.Identifier else name
            if name._meta is None or head._meta is None or (table and head is name):
                return None
            start, end = head._meta.get("start", -1) - self.offset, name._meta.get("end", -1) - self.offset
            written = name.args["this"] if head is name else f"{head.args['this']}.{name.args['this']}"
            return (start, end) if start >= 0 and self.text[start : end + 1] == written else None
        if node.__class__ is nodes.Literal and node._meta is not None:
            start, end = node._meta.get("start", -1) - self.offset, node._meta.get("end", -1) - self.offset
            return (start, end) if start >= 0 and end < len(self.text) else None
        return None

    def _any_condition(self, node: exp.Expr) -> tuple[int, int] | None:
        text, offset = self.text, self.offset
        size = len(text)
        first, last = size, -1
        stack: list[exp.Expr] = [node]
        steps = 0
        while stack and steps < MAX_STEPS:
            steps += 1
            item = stack.pop()
            cls, args, meta = item.__class__, item.args, item._meta
            if meta is not None and "start" in meta:
                start, end = meta["start"] - offset, meta["end"] - offset
                # The text was rewritten or put together: places within it are none of the file's.
                if start < 0 or end >= size:
                    return None
                if cls is nodes.Identifier:
                    written = text[start : end + 1]
                    if written != args["this"] and not _is_written(args["this"], written):
                        return None
                if start < first:
                    first = start
                if end > last:
                    last = end
            if cls is nodes.Identifier or cls is nodes.Literal:
                continue
            for value in args.values():
                if isinstance(value, nodes.Expr):
                    stack.append(value)
                elif isinstance(value, list):
                    stack.extend([part for part in value if isinstance(part, nodes.Expr)])
        return None if last < 0 else (first, self._end(first, last + 1))

    def _bounds(self, node: exp.Expr) -> tuple[int, int] | None:
        """Return the part of the text from the first to the last token of an item that has a place."""
        alias = node.args.get("alias") if type(node) is nodes.Alias else None
        if not isinstance(alias, nodes.Identifier) or alias._meta is None:
            return self.condition(node)
        first = _leftmost(node.args["this"]) or alias
        start, end = self._token(first), self._token(alias)
        if start is None or end is None:
            return None
        return start[0], end[1]

    def _token(self, node: exp.Expr) -> tuple[int, int] | None:
        meta = node._meta
        if meta is None or "start" not in meta:
            return None
        start, end = meta["start"] - self.offset, meta["end"] - self.offset
        return (start, end + 1) if self._is_there(node, start, end) else None

    def span(self, start: int, end: int, line: int) -> Span:
        """Return the span of a part of the text, relative to a line of the file."""
        breaks = self._line_breaks()
        lines = last = bisect_left(breaks, start)
        if last < len(breaks) and breaks[last] < end:
            last = bisect_left(breaks, end, lines)
        if self.line_of is None or self.template is None:
            first_column = start - breaks[lines - 1] if lines else start + self.column
            last_column = end - 1 - breaks[last - 1] if last else end - 1 + self.column
            return lines, first_column, last - lines, last_column
        return self._template_span(self.text[start:end], self.line_of(lines), self.line_of(last), line)

    def _template_span(self, part: str, first: int, last: int, line: int) -> Span:
        """The span of a part of the text that comes from two lines of the template, or from one."""
        template = self.template or []
        head, tail = part.split("\n", 1)[0].rstrip(), part.rsplit("\n", 1)[-1].lstrip()
        begin, column = _place_in(template, first, head)
        if "\n" not in part:
            return begin - line, column, 0, column + len(part) - 1 if column else 0
        behind, end_column = _place_in(template, last, tail)
        if not column or not end_column or behind < begin:
            return begin - line, 0, 0, 0
        return begin - line, column, behind - begin, end_column + len(tail) - 1

    def _line_breaks(self) -> list[int]:
        if self._breaks is None:
            self._breaks = []
            at = self.text.find("\n")
            while at >= 0:
                self._breaks.append(at)
                at = self.text.find("\n", at + 1)
        return self._breaks

    def _is_there(self, node: exp.Expr, start: int, end: int) -> bool:
        if start < 0 or end >= len(self.text):
            return False
        return type(node) is not nodes.Identifier or _is_written(node.args["this"], self.text[start : end + 1])

    def _begin(self, start: int, nested: bool) -> int:
        """The beginning of the item whose first name stands at ``start``: behind the comma or SELECT before it.

        Args:
            start: Where the name is.
            nested: The item is a query in brackets, and the SELECT its own.
        """
        text = self.text
        at = start - 1
        while at >= 0 and text[at].isspace():
            at -= 1
        if at >= 0 and text[at] == ",":
            return start
        before = text[max(0, start - 40) : start].rstrip().lower()
        before = before.removesuffix("when").rstrip()
        if before.endswith("case") and not before[-5:-4].isalnum():
            start = text.lower().rindex("case", 0, start)
        line = text.rfind("\n", 0, start) + 1
        comma = text.rfind(",", line, start)
        head = text[line:start]
        if "--" in head or "/*" in head:
            return start
        begin = comma + 1 if comma >= 0 else line
        lower = head[begin - line :].lower()
        for word in ("select distinct ", "select ", "set ", "values ("):
            at = lower.rfind(word)
            if at >= 0:
                bracket = lower.rfind("(", 0, at)
                begin += bracket if nested and bracket >= 0 else at + len(word)
                break
        while begin < start and text[begin].isspace():
            begin += 1
        return begin

    def _end(self, start: int, end: int) -> int:
        """The end of an expression: behind the brackets and the CASE that it opens."""
        text = self.text
        part = text[start:end]
        depth = part.count("(") - part.count(")")
        at = end
        while depth > 0 and at < len(text):
            character = text[at]
            if character == ")":
                depth -= 1
                end = at + 1
            elif character in "(;'\"":
                break
            at += 1
        words = text[start:end].lower()
        return self._behind_case(end, words) if "case" in words else end

    def _behind_case(self, end: int, part: str) -> int:
        """The end of an expression, behind the END of a CASE that it opens."""
        words = part.replace("(", " ").replace(")", " ").split()
        if words.count("case") > words.count("end"):
            behind = self.text[end : end + 80]
            if behind.lower().lstrip().startswith("end"):
                end += len(behind) - len(behind.lstrip()) + len("end")
        return end


def _is_written(name: object, text: str) -> bool:
    """True if a text is a name as the tree has it: as it is, or in quotes, or in another case."""
    return bool(text == name or text.strip(_QUOTES).lower() == str(name).strip(_QUOTES).lower())


def _place_in(template: list[str], line: int, text: str) -> tuple[int, int]:
    """The line and 1-based column of a text in a template, at or near a line; column 0 where it is not there, or twice.

    Whitespace that a tag strips moves text to the line of another tag.
    """
    for near in (line, line + 1, line - 1, line + 2, line - 2):
        written = template[near - 1] if 1 <= near <= len(template) else ""
        at = written.find(text) if text else -1
        if at >= 0:
            return (near, at + 1) if written.find(text, at + 1) < 0 else (line, 0)
    return line, 0


def _leftmost(node: exp.Expr) -> exp.Expr | None:
    """The first node with a place, in the order of the text."""
    stack: list[exp.Expr] = [node]
    while stack:
        item = stack.pop()
        if type(item) is nodes.Column:  # its name comes before its table in the tree
            for key in ("catalog", "db", "table"):
                part = item.args.get(key)
                if isinstance(part, nodes.Expr):
                    return part
        meta = item._meta
        if meta is not None and "start" in meta:
            return item
        children: list[exp.Expr] = []
        for value in item.args.values():
            if isinstance(value, nodes.Expr):
                children.append(value)
            elif isinstance(value, list):
                children.extend([part for part in value if isinstance(part, nodes.Expr)])
        stack.extend(reversed(children))
    return None
