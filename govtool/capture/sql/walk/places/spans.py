"""Spans: where in its file an expression of a statement stands.

The parser keeps the places of names, literals and functions, not of keywords and brackets. So an item of a SELECT list
reaches from the comma or SELECT before its first name to the comma behind its last, and a condition from its first name
to its last, with the brackets that it opens. A place is only given where the text there is the name that the tree has:
a text that was rewritten or put together gives none.

Places are small integers until they are written: the characters of the first and the last token, packed into one. So
they are compared, looked up and sorted for next to nothing.

Of a template, the text of an expression is looked for in the line that it comes from. If it is not there, or twice, a
macro or a variable made it: then the line is all that is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes

MAX_STEPS: Final = 4000
"""Nodes of an expression whose places are looked at."""
Span = tuple[int, int, int, int]
"""As in ``govtool.model.places``."""
NOWHERE: Final = -1
"""A part of the text, or its place, that is not known."""
PART_SHIFT: Final = 32
PART_MASK: Final = (1 << PART_SHIFT) - 1
"""A part of the text is one integer: where it begins, ``<< 32``, and where it ends. They sort as the text goes."""
KEY_BITS: Final = 4
KEY_MASK: Final = (1 << KEY_BITS) - 1
AROUND: Final[tuple[type, ...]] = (
    *(exp.And, exp.Where, exp.Having, exp.Qualify, exp.Join, exp.Group, exp.Order),
    *(exp.Query, exp.DML, exp.Reference),
)
"""What a condition, or an item of a clause, is part of."""
_COMPARISONS: Final = frozenset([exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE])
_PLAIN: Final = frozenset([*_COMPARISONS, exp.Ordered])
"""Conditions and items that are mostly of columns and literals alone."""
_BRACKETED: Final = (exp.Subquery, exp.Exists, exp.Paren)
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
        self._size = len(text)
        self._has_case = "case" in text.lower()
        self._breaks = _line_breaks(text)
        self._line = 0
        """The line that was looked for last, counted from 0."""
        self._spans: list[Span] = []
        """Of a template: the spans that places are numbers of."""
        self._numbers: dict[Span, int] = {}

    def item(self, node: exp.Expr) -> int:
        """Return the part of the text that is an item of a list: a projection, an assignment."""
        bounds = self._bounds(node)
        if bounds < 0:
            return NOWHERE
        begin = self._begin(bounds >> PART_SHIFT, node)
        return begin << PART_SHIFT | self._end(begin, bounds & PART_MASK)

    def condition(self, node: exp.Expr) -> int:
        """Return the part of the text that is a condition: from its first to its last name, with its brackets."""
        cls = type(node)
        args = node.args
        left = self._leaf(args["this"] if cls in _PLAIN else node)
        if left >= 0:
            right = self._leaf(args["expression"]) if cls in _COMPARISONS else left
            if right >= 0:
                first = min(left, right) >> PART_SHIFT
                return first << PART_SHIFT | self._end(first, max(left & PART_MASK, right & PART_MASK))
        return self._any_condition(node)

    def _leaf(self, node: exp.Expr) -> int:
        """The part that is a column or literal; ``NOWHERE`` where it takes a closer look."""
        cls = type(node)
        if cls is nodes.Column:
            args = node.args
            name, table = args["this"], args.get("table")
            if type(name) is not nodes.Identifier or args.get("db"):
                return NOWHERE
            meta = name._meta
            if meta is None:
                return NOWHERE
            last: int = meta.get("end", -1)
            written = name.args["this"]
            if table is not None:
                if type(table) is not nodes.Identifier:
                    return NOWHERE
                meta = table._meta
                if meta is None:
                    return NOWHERE
                written = f"{table.args['this']}.{written}"
            first: int = meta.get("start", -1)
            start, end = first - self.offset, last - self.offset + 1
            return start << PART_SHIFT | end if start >= 0 and self.text[start:end] == written else NOWHERE
        if cls is nodes.Literal:
            meta = node._meta
            if meta is not None:
                first = meta.get("start", -1)
                last = meta.get("end", -1)
                start, end = first - self.offset, last - self.offset + 1
                return start << PART_SHIFT | end if start >= 0 and end <= self._size else NOWHERE
        return NOWHERE

    def _any_condition(self, node: exp.Expr) -> int:
        first, last = self._size, -1
        stack: list[exp.Expr] = [node]
        steps = 0
        while stack and steps < MAX_STEPS:
            steps += 1
            item = stack.pop()
            meta = item._meta
            if meta is not None and "start" in meta:
                token = self._token(item)
                if token < 0:  # the text was rewritten or put together: places within it are none of the file's
                    return NOWHERE
                start, end = token >> PART_SHIFT, token & PART_MASK
                if start < first:  # min() and max() take longer
                    first = start
                if end > last:
                    last = end
            cls = type(item)
            if cls is not nodes.Identifier and cls is not nodes.Literal:
                stack += _parts(item)
        return NOWHERE if last < 0 else first << PART_SHIFT | self._end(first, last)

    def _bounds(self, node: exp.Expr) -> int:
        """Return the part of the text from the first to the last token of an item that has a place."""
        alias = node.args.get("alias") if type(node) is nodes.Alias else None
        if not isinstance(alias, nodes.Identifier) or alias._meta is None:
            return self.condition(node)
        first = _leftmost(node.args["this"]) or alias
        start, end = self._token(first), self._token(alias)
        if start < 0 or end < 0:
            return NOWHERE
        return start >> PART_SHIFT << PART_SHIFT | end & PART_MASK

    def _token(self, node: exp.Expr) -> int:
        """The part that is a node's own token; ``NOWHERE`` where the text there is not what the tree has."""
        meta = node._meta
        if meta is None or "start" not in meta:
            return NOWHERE
        start: int = meta["start"]
        end: int = meta["end"]
        start -= self.offset
        end -= self.offset - 1
        if start < 0 or end > self._size:
            return NOWHERE
        if type(node) is nodes.Star and self.text[start] != "*":  # the parser has put it there
            return NOWHERE
        if type(node) is nodes.Identifier:
            name, written = node.args["this"], self.text[start:end]
            if name != written and not _is_written(name, written):
                return NOWHERE
        return start << PART_SHIFT | end

    def place(self, part: int, line: int) -> int:
        """Return the place of a part of the text as an integer, the same for parts that have the same span.

        Args:
            part: The part, or ``NOWHERE``.
            line: A line of the file, to which places are relative.
        """
        if part < 0 or self.template is None or self.line_of is None:
            return part
        span = self._span(part >> PART_SHIFT, part & PART_MASK, line)
        number = self._numbers.get(span)
        if number is None:
            number = self._numbers[span] = len(self._spans)
            self._spans.append(span)
        return number

    def span(self, place: int) -> Span:
        """Return the span of a place that is known."""
        if self.template is None or self.line_of is None:
            return self._span(place >> PART_SHIFT, place & PART_MASK, 0)
        return self._spans[place]

    def in_order(self, keys: Iterable[int]) -> list[int]:
        """Return keys of ``place << KEY_BITS`` and a number in the order of the text."""
        if self.template is None or self.line_of is None:
            return sorted(keys)
        return [key for _, _, key in sorted([(self._spans[key >> KEY_BITS], key & KEY_MASK, key) for key in keys])]

    def _span(self, start: int, end: int, line: int) -> Span:
        """The span of a part of the text, relative to a line of the file."""
        breaks, lines = self._breaks, self._line
        # Mostly the line of the place before, or the next.
        if lines < len(breaks) and breaks[lines] < start:
            lines += 1
        if (lines and breaks[lines - 1] >= start) or (lines < len(breaks) and breaks[lines] < start):
            lines = bisect_left(breaks, start)
        self._line = last = lines
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

    def _begin(self, start: int, item: exp.Expr) -> int:
        """The beginning of an item whose first name stands at ``start``: behind the comma or SELECT before it."""
        text = self.text
        at = start - 1
        while at >= 0 and text[at].isspace():
            at -= 1
        if at >= 0 and text[at] == ",":
            return start
        low = max(0, start - 40)
        before = text[low:start].rstrip()
        if before[-4:].lower() == "when":
            before = before[:-4].rstrip()
        if before[-4:].lower() == "case" and not before[-5:-4].isalnum():
            start = low + len(before) - 4
        line = text.rfind("\n", 0, start) + 1
        comma = text.rfind(",", line, start)
        head = text[line:start]
        if "--" in head or "/*" in head:
            return start
        begin = comma + 1 if comma >= 0 else line
        lower = _lower(head[begin - line :].replace("\t", " "))
        for word in ("select distinct ", "select ", "set ", "values ("):
            at = lower.rfind(word)
            if at >= 0:
                value = item.args.get("this") if isinstance(item, nodes.Alias) else item
                bracket = lower.rfind("(", 0, at) if isinstance(value, _BRACKETED) else -1  # SELECT may be its own
                begin += bracket if bracket >= 0 else at + len(word)
                break
        while begin < start and text[begin].isspace():
            begin += 1
        return begin

    def _end(self, start: int, end: int) -> int:
        """The end of an expression: behind the brackets and the CASE that it opens."""
        text = self.text
        if text.find("(", start, end) >= 0:
            depth = text.count("(", start, end) - text.count(")", start, end)
            at = end
            while depth > 0 and at < self._size:
                character = text[at]
                if character == ")":
                    depth -= 1
                    end = at + 1
                elif character in "(;'\"":
                    break
                at += 1
        if self._has_case:
            words = text[start:end].lower()
            if "case" in words:
                return self._behind_case(end, words)
        return end

    def _behind_case(self, end: int, part: str) -> int:
        """The end of an expression, behind the END of a CASE that it opens."""
        words = part.replace("(", " ").replace(")", " ").split()
        if words.count("case") > words.count("end"):
            behind = self.text[end : end + 80]
            if behind.lower().lstrip().startswith("end"):
                end += len(behind) - len(behind.lstrip()) + len("end")
        return end


def _line_breaks(text: str) -> list[int]:
    breaks: list[int] = []
    at = text.find("\n")
    while at >= 0:
        breaks.append(at)
        at = text.find("\n", at + 1)
    return breaks


def _is_written(name: object, text: str) -> bool:
    """True if a text is a name as the tree has it: as it is, or in quotes, or in another case."""
    return bool(text == name or text.strip(_QUOTES).lower() == str(name).strip(_QUOTES).lower())


def _lower(text: str) -> str:
    """Lower case of the same length, or the text itself: some letters become two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


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
    item: exp.Expr | None = node
    while item is not None:
        found = _own_place(item)
        if found is not None:
            return found
        item = _first_part(item)
    return _leftmost_of_all(node)  # the first parts have none


def _own_place(item: exp.Expr) -> exp.Expr | None:
    """The node whose place is the beginning of another one; None where that is of its parts."""
    if type(item) is nodes.Column:  # its name comes before its table in the tree
        args = item.args
        if len(args) > 1:
            for key in ("catalog", "db", "table"):
                part = args.get(key)
                if isinstance(part, nodes.Expr):
                    return part
    meta = item._meta
    return item if meta is not None and "start" in meta else None


def _first_part(item: exp.Expr) -> exp.Expr | None:
    for value in item.args.values():
        if isinstance(value, nodes.Expr):
            return value
        if isinstance(value, list):
            for part in value:
                if isinstance(part, nodes.Expr):
                    return part
    return None


def _leftmost_of_all(node: exp.Expr) -> exp.Expr | None:
    stack: list[exp.Expr] = [node]
    while stack:
        item = stack.pop()
        found = _own_place(item)
        if found is not None:
            return found
        stack.extend(reversed(_parts(item)))
    return None


def _parts(item: exp.Expr) -> list[exp.Expr]:
    """The nodes right below a node."""
    found: list[exp.Expr] = []
    for value in item.args.values():
        if isinstance(value, nodes.Expr):
            found.append(value)
        elif isinstance(value, list):
            found.extend([part for part in value if isinstance(part, nodes.Expr)])
    return found
