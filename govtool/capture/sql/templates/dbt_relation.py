"""Relations as templates see them, and what ends a macro."""

from __future__ import annotations

import re

from govtool.capture.sql.templates.unknown import Unknown

_PLAIN = re.compile(r"[A-Za-z_][\w$]*\Z")

UNSET = object()
"""Stands for a default that nobody gave; None is one."""


class Return(Exception):
    """dbt's ``return(value)``: ends a macro, which then is the value."""

    def __init__(self, value: object) -> None:
        """Keep the value."""
        super().__init__("return outside of a macro")
        self.value = value


class DbtRelation:
    """A relation; renders to its dotted name."""

    __slots__ = ("_quote", "database", "identifier", "schema")

    def __init__(self, identifier: str, schema: str = "", database: str = "", quote: str = '"') -> None:
        """Keep the parts, and how the dialect quotes names that are not plain."""
        self._quote = quote
        self.identifier = identifier
        self.schema = schema
        self.database = database

    @property
    def name(self) -> str:
        """The last part."""
        return self.identifier

    table = alias = name

    @property
    def parts(self) -> tuple[str, ...]:
        """Database, schema and name, as far as they are given."""
        return tuple(part for part in (self.database, self.schema, self.identifier) if part)

    @property
    def type(self) -> Unknown:
        """Table or view: not known."""
        return Unknown("relation_type")

    is_table = is_view = is_cte = is_materialized_view = type

    def __str__(self) -> str:
        return ".".join(self._quoted(part) for part in (self.database, self.schema, self.identifier) if part)

    def _quoted(self, part: str) -> str:
        if _PLAIN.match(part) or "." in part or "\ue002" in part or self._quote in part:
            return part
        return f"{self._quote}{part}{self._quote}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def include(self, **_: object) -> DbtRelation:
        """The relation: which parts are shown does not matter here."""
        return self

    quote = without_identifier = incorporate = include

    def replace_path(
        self, database: object = None, schema: object = None, identifier: object = None, **_: object
    ) -> DbtRelation:
        """The relation with other parts."""
        return DbtRelation(
            identifier if isinstance(identifier, str) else self.identifier,
            schema if isinstance(schema, str) else self.schema,
            database if isinstance(database, str) else self.database,
            quote=self._quote,
        )

    def render(self) -> str:
        """The name."""
        return str(self)
