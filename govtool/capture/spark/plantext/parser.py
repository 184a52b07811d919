"""One expression of plan text by recursive descent: what flows from its attributes, and how."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.identity import column_path
from govtool.capture.spark.plantext.cursor import (
    ANY_ID,
    ATTRIBUTE,
    LAMBDA,
    TextCursor,
    UnreadablePlanError,
    attributes_of,
    is_named,
)
from govtool.model import EdgeKind

MAX_DEPTH = 120
"""Levels of nesting that are read as they are; below, only which attributes there are."""
QUERY = re.compile(
    r"(?:ReusedSubquery )?(?:Subquery )?(?:scalar-|scalar_)?"
    r"(subquery|exists|list|dynamicpruning|lateral-subquery)#(\d+)"
    r"(?: \[[^\]]*\])?(?:, \[id=#\d+\])?"
)
_CALL = re.compile(r"(<lambda>|[A-Za-z_$][\w$.:-]*)\(")
_INFIX = re.compile(
    r" (AND|OR|<=>|>=|<=|!=|<>|>>>|>>|<<|=|<|>|\+|-|\*|/|%|&|\||\^|div|LIKE ALL|LIKE|ILIKE|RLIKE|IN|INSET"
    r"|likeall|likeany|notlikeall|notlikeany|BETWEEN|\|\|) "
)
_TAIL_ID = re.compile(r"(?:\(\))?#(\d+)L?(?!\w)")
_FIELD = re.compile(r"\.([^\s,()\[\]{}#.]+)")
_ORDER = re.compile(r" (?:ASC|DESC)(?: NULLS (?:FIRST|LAST))?(?: NULLS \w+)?")
_ALIAS = re.compile(r" AS (?:`[^`]*`|[^,()\[\]]*?)(?:#\d+L?)?(?=[,)\]]|\Z)")
_ESCAPE = re.compile(r" ESCAPE '.?'")
_TRANSPARENT = frozenset(
    {
        "knownfloatingpointnormalized",
        "normalizenanandzero",
        "knownnotnull",
        "knownnullable",
        "assertnotnull",
        "promote_precision",
        "empty2null",
        "toprettystring",
        "outer",
        "ansi_cast",
        "gpucast",
        "gettimestampliteral",
        "lambdafunction",
    }
)
"""Wrappers of the optimizer, which nobody wrote: the first argument stands for them."""
_CONSTANT_ARGUMENTS = re.compile(r"(?:None|Some\(.*\)|true|false|null|-?\d[\w.:+-]*|\w+Type(?:\(.*\))?)\Z", re.DOTALL)
_PHASES = ("partial_", "merge_", "final_", "finalmerge_", "gpu")
_RENAMED = {
    "gpubasicsum": "sum",
    "gpubasicaverage": "avg",
    "gpubasicmax": "max",
    "gpubasicmin": "min",
    "average": "avg",
}
_TYPES = frozenset({"cast", "try_cast", "ansi_cast", "upcast", "gpucast"})


def parsed(
    text: str,
    known: Mapping[int, set[str]],
    query: Callable[..., p.Expression | None],
    arrays: Container[int] = (),
) -> tuple[p.Expression, int]:
    """The meaning of an expression, and the number of literals that name attributes: how these count is not clear.

    Args:
        text: Without names that have spaces or brackets in them.
        known: Names of attributes by id.
        query: A subquery by its number, with ``exists`` where only that is asked.
        arrays: Attributes that are arrays.

    Raises:
        UnreadablePlanError: Its structure cannot be told.
    """
    parser = _Parser(text, known, query, arrays)
    return parser.whole(), parser.uncertain


class _Parser(TextCursor):
    """A recursive descent over one expression."""

    def __init__(
        self,
        text: str,
        known: Mapping[int, set[str]],
        query: Callable[..., p.Expression | None],
        arrays: Container[int] = (),
    ) -> None:
        super().__init__(text, known)
        self.arrays = arrays
        self.query = query
        self.depth = 0

    def whole(self) -> p.Expression:
        value = self.value()
        if self.at < len(self.text):
            rest = self.junk(len(self.text))
            if rest:
                raise UnreadablePlanError
        return value

    def value(self) -> p.Expression:
        """An expression with its operators: all of them only compute, so that their precedence does not matter."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadablePlanError
        found = [self.postfixed()]
        while (infix := _INFIX.match(self.text, self.at)) is not None:
            self.at = infix.end()
            found.append(self.postfixed())
            escape = _ESCAPE.match(self.text, self.at)
            if escape is not None:
                self.at = escape.end()
        self.depth -= 1
        if len(found) == 1:
            return found[0]
        return p.Apply("", tuple(found))

    def postfixed(self) -> p.Expression:
        base, call = self.operand()
        while self.at < len(self.text):
            text, at = self.text, self.at
            char = text[at]
            if char in "#(" and (tail := _TAIL_ID.match(text, at)) is not None:
                self.at = tail.end()
                if int(tail[1]) in self.known:
                    base, call = p.Attribute(int(tail[1])), None
            elif char == "[" and text[at - 1] != " ":
                base, call = self.indexed(base), None
            elif char == "." and (field := _FIELD.match(text, at)) is not None:
                self.at = field.end()
                base, call = self.field(base, field[1]), None
            elif text.startswith(" windowspecdefinition(", at):
                self.at += len(" windowspecdefinition(")
                window = self.window()
                name, arguments = call or ("", [base])
                base, call = (
                    build.over(name, arguments, window) if name else p.Conditional(base, window, EdgeKind.WINDOW),
                    None,
                )
            elif text.startswith(" FILTER (WHERE ", at):
                self.at += len(" FILTER (WHERE ")
                condition = self.until(")")
                base = p.Conditional(base, (condition,))
            elif (order := _ORDER.match(text, at)) is not None:
                self.at = order.end()
            elif text.startswith(" AS ", at) and (alias := _ALIAS.match(text, at)) is not None:
                self.at = alias.end()
            else:
                break
        return base

    def field(self, base: p.Expression, name: str) -> p.Expression:
        """A field of a struct; of a call that yields text, ``x.toString()``, the call."""
        if self.text.startswith("(", self.at):
            self.at += 1
            return p.Apply("", (base, *(argument for _, argument in self.call_arguments())))
        if isinstance(base, p.Attribute) and base.id in self.arrays:
            base = p.Field(base, "[]")
        return p.Field(base, column_path(name))

    def indexed(self, base: p.Expression) -> p.Expression:
        self.at += 1
        start = self.at
        index = self.until("]")
        text = self.text[start : self.at - 1].strip()
        if not isinstance(index, p.Constant):
            return p.Conditional(p.Field(base, "[]"), (index,))
        return p.Field(base, "[]" if re.fullmatch(r"-?\d+|ordinal", text) else build.key_step(text))

    def operand(self) -> tuple[p.Expression, tuple[str, list[p.Expression]] | None]:
        text = self.text
        while self.at < len(text) and text[self.at] == " ":
            self.at += 1
        at = self.at
        if at >= len(text):
            return p.CONSTANT, None
        for opening, read in _OPENINGS.items():
            if text.startswith(opening, at):
                self.at += len(opening)
                return read(self), None
        if text.startswith("distinct ", at):
            self.at += 9
            return self.operand()
        if text[at] in "-~" and at + 1 < len(text) and (text[at + 1] == "(" or ATTRIBUTE.match(text, at + 1)):
            self.at += 1
            return self.computed(), None
        if (found := LAMBDA.match(text, at)) is not None:
            self.at = found.end()
            return p.CONSTANT, None
        if (found := QUERY.match(text, at)) is not None:
            self.at = found.end()
            return self.subquery(int(found[2]), found[1]), None
        if (found := _CALL.match(text, at)) is not None:
            self.at = found.end()
            return self.call(found[1])
        if (found := ATTRIBUTE.match(text, at)) is not None:
            return self.attribute(found), None
        return self.literal(), None

    def bracketed(self) -> p.Expression:
        items = [argument for _, argument in self.call_arguments()]
        return items[0] if len(items) == 1 else p.Apply("", tuple(items), EdgeKind.IDENTITY)

    def listed(self) -> p.Expression:
        return self.until("]")

    def computed(self) -> p.Expression:
        """What stands behind a sign or NOT."""
        return p.Apply("", (self.postfixed(),))

    def input_column(self) -> p.Expression:
        """``input[0, string, true]``: a column by its position in rows that the text does not show."""
        self.call_arguments("]")
        return p.CONSTANT

    def subquery(self, number: int, kind: str) -> p.Expression:
        found = self.query(number, exists=kind == "exists")
        if found is not None:
            return found
        if kind == "dynamicpruning":
            return p.CONSTANT
        if kind == "exists" and number in self.known:
            return p.Attribute(number, kind)  # the mark of an existence join
        raise UnreadablePlanError

    def attribute(self, found: re.Match[str]) -> p.Expression:
        """An attribute; unless the id is another's: then it is text, ``Brand#12``."""
        number = int(found[2])
        names = self.known.get(number)
        if names is not None and not is_named(found[1], names):
            return self.literal()
        self.at = found.end()
        return p.Attribute(number, found[1])

    def case(self) -> p.Expression:
        conditions: list[p.Expression] = []
        values: list[p.Expression] = []
        while True:
            self.skip(" ")
            if self.skip("WHEN "):
                conditions.append(self.value())
                if not (self.skip(" THEN ") or self.resync(" THEN ")):
                    raise UnreadablePlanError
                values.append(self.value())
            elif self.skip("ELSE "):
                values.append(self.value())
            elif self.skip("END"):
                break
            elif not conditions:
                conditions.append(self.value())  # CASE a WHEN b: compares
            else:
                at = min(
                    (i for w in (" WHEN ", " ELSE ", " END") if (i := self.text.find(w, self.at)) >= 0), default=-1
                )
                if at < 0 or ANY_ID.search(self.text, self.at, at):
                    raise UnreadablePlanError
                self.at = at
        return build.choice("case", conditions, values)

    def choice(self) -> p.Expression:
        """``if (condition) value else other``, from the bracket on."""
        self.at -= 1
        start = self.at
        condition = self.operand()[0]
        compared = self.text[start : self.at]
        start = self.at
        value = self.value()
        nothing = self.text[start : self.at].strip() == "null"
        if not (self.skip(" else ") or self.resync(" else ")):
            raise UnreadablePlanError
        start = self.at
        other = self.value()
        if nothing and compared.strip().startswith("(isnull(") and isinstance(other, p.StructValue):
            return other  # a struct with a field set or dropped: null stays null
        if nothing and compared.strip().startswith(f"(({self.text[start : self.at]} = "):
            return p.Apply("nullif", (condition,))
        return build.choice("if", [condition], [value, other])

    def window(self) -> tuple[p.Expression, ...]:
        found = []
        for text, argument in self.call_arguments():
            if not text.startswith("specifiedwindowframe") and not isinstance(argument, p.Constant):
                found.append(argument)
        return tuple(found)

    def call(self, name: str) -> tuple[p.Expression, tuple[str, list[p.Expression]] | None]:
        lower = _function_name(name)
        if lower in _TYPES:
            value = self.value()
            self.close()
            return p.Apply(lower.replace("ansi_", "").replace("gpu", ""), (value,)), None
        found = self.call_arguments()
        items = [argument for _, argument in found]
        if lower == "specifiedwindowframe" or not items:
            return build.call(lower, ()) if lower != "specifiedwindowframe" else p.CONSTANT, (lower, items)
        special = self.special(lower, found)
        if special is not None:
            return special, None
        while len(found) > 1 and isinstance(items[-1], p.Constant) and _CONSTANT_ARGUMENTS.match(found[-1][0].strip()):
            found.pop()
            items.pop()
        kind = EdgeKind.AGGREGATION if name.lower().startswith(("partial_", "merge_")) else None
        return build.call(lower, items, kind=kind), (lower, items)

    def special(self, name: str, found: list[tuple[str, p.Expression]]) -> p.Expression | None:
        """The meaning of a function that is no function of SQL; None if it is one.

        Args:
            name: In lower case, without a phase.
            found: Its arguments with their text, at least one.
        """
        items = [argument for _, argument in found]
        if name == "precisetimestampconversion":
            # What a time window computes its bounds with: the CASE in it is Spark's own.
            return p.Apply("", tuple(attributes_of(found[0][0], self.known)))
        if name in _TRANSPARENT or name.startswith("checkoverflow"):
            return items[0]
        if name in ("struct", "named_struct", "createnamedstruct") and len(found) % 2 == 0:
            names = [text for text, _ in found[::2]]
            if len(set(names)) == len(names) and all(isinstance(argument, p.Constant) for argument in items[::2]):
                fields = zip((column_path(text) for text in names), items[1::2], strict=True)
                return p.StructValue("struct" if name == "struct" else "named_struct", tuple(fields))
        if name == "pivotfirst" and len(items) > 1:
            return p.Conditional(p.Apply("", (items[1],), EdgeKind.AGGREGATION), (items[0],))
        return p.Apply("", tuple(items)) if name in ("invoke", "staticinvoke") else None

    def call_arguments(self, end: str = ")") -> list[tuple[str, p.Expression]]:
        """Arguments with their text, up to and with the closing bracket."""
        found: list[tuple[str, p.Expression]] = []
        if self.skip(end):
            return found
        while True:
            start = self.at
            argument = self.value()
            if self.text.startswith((", ", end), self.at):
                pass
            else:
                stop = self.stop(end)
                rest = self.junk(stop)
                if rest:
                    argument = p.Apply("", (argument, *rest))
            found.append((self.text[start : self.at], argument))
            if self.skip(end):
                return found
            if not self.skip(", "):
                raise UnreadablePlanError

    def until(self, end: str) -> p.Expression:
        return _together([argument for _, argument in self.call_arguments(end)])


_OPENINGS: dict[str, Callable[[_Parser], p.Expression]] = {
    "(": _Parser.bracketed,
    "[": _Parser.listed,
    "CASE ": _Parser.case,
    "NOT ": _Parser.computed,
    "if (": _Parser.choice,
    "input[": _Parser.input_column,
}
"""How an operand is read that begins so, from behind the opening on."""


def _function_name(name: str) -> str:
    """A function by its name in SQL, in lower case; without the phase of an aggregate."""
    lower = name.lower()
    lower = _RENAMED.get(lower, lower)
    for phase in _PHASES:
        if lower.startswith(phase) and lower not in (phase, "merge_rows"):
            lower = lower.removeprefix(phase)
    return lower


def _together(items: list[p.Expression]) -> p.Expression:
    rest = [item for item in items if not isinstance(item, p.Constant)]
    if not rest:
        return p.CONSTANT
    return rest[0] if len(rest) == 1 else p.Apply("", tuple(rest))
