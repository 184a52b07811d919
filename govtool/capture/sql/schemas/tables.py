"""Columns of datasets, and the rules for their canonical names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from govtool.model.diagnostic import Diagnostic
from govtool.names import fold, fold_name, join_name, split_name

Columns: TypeAlias = Mapping[str, str | None]
"""Column name to type (as written; None if unknown), in order."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns of datasets."""

    tables: Mapping[str, Columns] = field(default_factory=dict)
    """Canonical dataset name to its columns (canonical, in order) and their types."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the source."""

    def columns(self, dataset: str) -> Columns | None:
        """The columns of a dataset by its full canonical name; None if it is not known."""
        return self.tables.get(dataset)

    def merged(self, other: Schema) -> Schema:
        """Both schemas; the other one prevails where both have a dataset."""
        return Schema({**self.tables, **other.tables}, self.diagnostics + other.diagnostics)

    def __len__(self) -> int:
        return len(self.tables)


@dataclass(frozen=True, slots=True)
class Naming:
    """Rules for canonical names."""

    dialect: str
    catalog: str | None
    schema: str | None
    exact: bool = False
    """Names are as the warehouse stores them (an export), not as someone writes them."""

    def dataset(self, parts: Iterable[str]) -> str:
        """The canonical name of a table of a mapping: parts as written in metadata, filled up by the defaults."""
        return self.qualified([self.part(p) for p in parts])

    def qualified(self, names: list[str]) -> str:
        """Canonical parts, filled up by the defaults."""
        if len(names) == 1 and self.schema:
            names = [*split_name(self.schema), *names]
        if len(names) == 2 and self.catalog:
            names = [self.catalog, *names]
        return join_name(names)

    def part(self, text: str) -> str:
        """One part of a table's name: quoted parts keep their case where the dialect does."""
        quoted = len(text) > 1 and text[0] in '"`[' and text[-1] in '"`]'
        return fold(text[1:-1] if quoted else text, quoted=quoted or self.exact, dialect=self.dialect, table=True)

    def column(self, text: str) -> str:
        """A column's name."""
        quoted = len(text) > 1 and text[0] in '"`[' and text[-1] in '"`]'
        return fold(text[1:-1] if quoted else text, quoted=quoted or self.exact, dialect=self.dialect)


def naming_of(dialect: str, default_catalog: str | None, default_schema: str | None) -> Naming:
    """Return the rules for canonical names, with defaults as a user wrote them."""
    return Naming(
        dialect,
        fold_name(default_catalog, dialect) if default_catalog else None,
        fold_name(default_schema, dialect) if default_schema else None,
    )


def frozen(tables: Mapping[str, Mapping[str, str | None]]) -> Schema:
    """Return a schema of these tables."""
    return Schema({name: dict(columns) for name, columns in tables.items()})
