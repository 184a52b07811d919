"""Catalyst's expressions as terms: the allow-list reader of what ``PlanWalker`` writes.

For each class every field is either encoded, or known not to matter (:mod:`~govtool.records.plan.functions`), or the
cell is opaque with the class and field as its reason. Nodes come in the order in which they refer to each other, so
that reading never recurses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from govtool.records.plan import functions
from govtool.records.plan import types as t
from govtool.records.plan.clock import CLOCKS, Clock
from govtool.records.plan.expressions import (
    Call,
    Expression,
    Literal,
    Mode,
    Named,
    Opaque,
    SortKey,
    UdfReference,
    Value,
)
from govtool.records.plan.term_fields import EXPRESSIONS, TermFields, read_mode
from govtool.records.plan.term_forms import FORMS
from govtool.records.plan.term_pieces import Edge, Ordered, Unread
from govtool.records.plan.tree import Term, walk

Json = Any
_ZONED = frozenset({"MakeTimestamp", "ParseToTimestamp"})
"""Functions of which one class makes timestamps with and without a zone."""
_EDGES = {"UnboundedPreceding$": "unbounded preceding", "UnboundedFollowing$": "unbounded following"}
_EDGES["CurrentRow$"] = "current row"


class TermReader(TermFields):
    """Reads expressions of one plan; arguments are those of `TermFields`."""

    def __init__(self, types: list[Json], made: list[Any], zone: str, udfs: dict[str, UdfReference]) -> None:
        super().__init__(types, made, zone, udfs)
        self.clock = Clock()
        self._drawn: set[int] = set()
        """Numbers of what is not deterministic, arguments included."""

    def read(self, raw: Json) -> Term:
        """Read an expression; what the allow-list does not have is opaque."""
        kind = raw["c"].rsplit(".", 1)[-1]
        if "$random" in raw["f"]:
            self._drawn.add(len(self.made))
        own: t.Type = self.types[raw["t"]] if raw.get("t") is not None else t.VOID
        try:
            if kind in _EDGES:
                return Edge(_EDGES[kind])
            if kind in CLOCKS and (known := self.clock.value(kind, self.zone)) is not None:
                return Literal(known, own)
            form = FORMS.get(kind)
            if form is not None:
                return form(self, raw["f"], own)
            return self._function(kind, raw["f"], own)
        except Unread as why:
            unknown = Opaque(f"{kind}: {why}", self._arguments(raw["f"]), own, ".aggregate." in raw["c"])
            if kind == "Alias":  # the column stays one: operators above refer to it
                return Named(unknown, raw["f"]["id"], raw["f"]["name"])
            return unknown

    def _arguments(self, fields: dict[str, Json]) -> tuple[Expression, ...]:
        found = []
        for value in _references(fields.values()):
            term = self.made[value]
            if isinstance(term, Named):
                term = term.value
            if isinstance(term, EXPRESSIONS):
                found.append(term)
        return tuple(dict.fromkeys(found)) if len(found) < 200 else tuple(found)

    def _function(self, kind: str, fields: dict[str, Json], own: t.Type) -> Term:
        replacement = fields.get("replacement")
        if replacement is not None and kind not in functions.AGGREGATES:
            found = self.value(replacement)
            if not any(isinstance(each, Opaque) for each in walk(found)):
                return found
        name = (
            functions.SCALARS.get(kind)
            or functions.AGGREGATES.get(kind)
            or functions.WINDOWS.get(kind)
            or functions.GENERATORS.get(kind)
        )
        if name is None:
            raise Unread("not on the list of functions")
        if kind in _ZONED:
            name = f"{name}_{'ntz' if own == t.TIMESTAMP_NTZ else 'ltz'}"
        return self._call(kind, name, fields, own)

    def _call(self, kind: str, name: str, fields: dict[str, Json], own: t.Type) -> Term:
        arguments: list[Expression] = []
        order: list[SortKey] = []
        options: list[tuple[str, Value]] = []
        mode: Mode = ""
        zone, skipped = "", False
        for field, value in fields.items():
            if field in functions.IRRELEVANT:
                continue
            if field == "timeZoneId":
                zone = str(value or "")
            elif field in functions.MODES:
                mode = read_mode(field, value)
            elif _is_option(kind, field):
                options.extend(self._options(kind, field, value, own))
            elif field == "orderExpressions":
                order.extend(self._order(value))
            elif value is None:
                skipped = True
            else:
                found = self._operands(value)
                if skipped and found:
                    raise Unread(f"an argument before {field} is left out")
                arguments.extend(found)
        drawn = "$random" in fields and not any(each in self._drawn for each in _references(fields.values()))
        call = Call(name, tuple(arguments), own, mode, tuple(sorted(options)), not drawn, zone)
        return Ordered(call, tuple(order)) if order else call

    def _order(self, value: Json) -> tuple[SortKey, ...]:
        found = tuple(self.term(each) for each in value)
        if not all(isinstance(each, SortKey) for each in found):
            raise Unread("an order that is none")
        return cast(tuple[SortKey, ...], found)

    def _operands(self, value: Json) -> tuple[Expression, ...]:
        if isinstance(value, list):
            return tuple(each for item in value for each in self._operands(item))
        if isinstance(value, dict) and "$f" in value:
            return (Literal(float(value["$f"]), t.DOUBLE),)
        if isinstance(value, dict) and "$" in value:
            return (self.value(value),)
        raise Unread(f"a field holds {str(value)[:40]}")

    def _options(self, kind: str, field: str, value: Json, own: t.Type) -> list[tuple[str, Value]]:
        expected = functions.EXPECTED.get((kind, field), Unread)
        if expected is not Unread:
            if value != expected:
                raise Unread(f"{field} is {value}")
            return []
        if field == "escapeChar":
            return [("escape", str(value))]
        if field == "ignoreNulls":
            return [("ignore nulls", True)] if value else []
        if field in ("options", "$options"):
            pairs = value["$map"] if isinstance(value, dict) else value
            return [("options", tuple((str(key), str(item)) for key, item in pairs))] if pairs else []
        if field in ("schema", "dataType") and isinstance(value, dict) and self.type(value) == own:
            return []  # what the call's type says already
        if kind == "ArraysZip" and field == "names":
            return []  # the names of the fields of its type
        if field == "reverseOpt" and value is None:
            return []
        if field == "unit":
            return [("unit", str(value))]
        raise Unread(f"{field} is {str(value)[:40]}")


def _is_option(kind: str, field: str) -> bool:
    return (
        (kind, field) in functions.EXPECTED
        or field in ("escapeChar", "ignoreNulls", "schema", "reverseOpt", "unit")
        or (field == "dataType" and kind in _ZONED)
        or (kind, field) == ("ArraysZip", "names")
        or (field == "options" and kind in functions.WITH_OPTIONS)
    )


def _references(values: Iterable[Json]) -> list[int]:
    found: list[int] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, list):
            waiting[:0] = value
        elif isinstance(value, dict) and "$" in value:
            found.append(value["$"])
    return found
