"""Definitions of a log for all other statements, small enough to be sent to other processes.

Queries define nothing. What they need of the definitions is the columns of tables, the bodies of SQL functions, which
names exist, and which columns usage has shown: that, without any tree, is ``Knowledge``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sqlglot import exp, serde

from govtool.capture.sql.walk.state import Inline

Usage = Mapping[str, frozenset[str]]
"""By table the columns that statements have named."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """The known shape of one table that the supplied schema does not describe."""

    columns: Mapping[str, str | None]
    """In order, with types where known."""
    complete: bool


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Definitions of a batch for the statements of other batches."""

    tables: Mapping[str, KnownTable] = field(default_factory=dict)
    defined: frozenset[str] = frozenset()
    """Names that some statement defines: what a search path finds."""
    functions: Mapping[str, Inline] = field(default_factory=dict)
    used: Usage = field(default_factory=dict)
    described: Usage = field(default_factory=dict)
    """By table the columns that documentation lists: weaker than all else that is known."""
    routines: frozenset[str] = frozenset()
    """Names of routines that are defined."""

    def with_usage(self, used: Usage) -> Knowledge:
        """The same with what other statements have shown."""
        return replace(self, used=merge_usage([self.used, used]))

    def to_json(self) -> str:
        """As text; equal knowledge gives equal text."""
        return json.dumps(
            {
                "tables": {name: [list(t.columns.items()), t.complete] for name, t in sorted(self.tables.items())},
                "defined": sorted(self.defined),
                "functions": {name: _function_to_value(f) for name, f in sorted(self.functions.items())},
                "used": usage_to_value(self.used),
                "described": usage_to_value(self.described),
                "routines": sorted(self.routines),
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Knowledge:
        """Load the result of ``to_json``."""
        value = json.loads(text)
        return cls(
            {name: KnownTable(dict(columns), complete) for name, (columns, complete) in value["tables"].items()},
            frozenset(value["defined"]),
            {name: _function_of_value(function) for name, function in value["functions"].items()},
            usage_of_value(value["used"]),
            usage_of_value(value["described"]),
            frozenset(value["routines"]),
        )


def _function_to_value(function: Inline) -> list[Any]:
    f = function
    others = [_function_to_value(other) for other in f.others]
    return [f.name, f.parameters, serde.dump(f.body), f.is_table, f.columns, f.row, f.types, others]


def _function_of_value(value: list[Any]) -> Inline:
    name, parameters, body, is_table, columns, row, types, others = value
    read = cast(exp.Expr, serde.load(body))
    kept = tuple([_function_of_value(other) for other in others])
    return Inline(name, tuple(parameters), read, is_table, tuple(columns), row, tuple(types), kept)


def merge_usage(parts: Iterable[Usage]) -> dict[str, frozenset[str]]:
    """All that several batches have shown; their order does not matter."""
    merged: dict[str, set[str]] = {}
    for part in parts:
        for name, columns in part.items():
            merged.setdefault(name, set()).update(columns)
    return {name: frozenset(columns) for name, columns in sorted(merged.items())}


def usage_to_value(used: Usage) -> dict[str, list[str]]:
    """As a JSON value; equal usage gives an equal value."""
    return {name: sorted(columns) for name, columns in sorted(used.items())}


def usage_of_value(value: Mapping[str, list[str]]) -> dict[str, frozenset[str]]:
    """Load the result of ``usage_to_value``."""
    return {name: frozenset(columns) for name, columns in value.items()}
