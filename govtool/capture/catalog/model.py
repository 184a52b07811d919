"""The contents of a catalog, whichever database it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from govtool.model import Diagnostic
from govtool.names import fold, join_name


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column as the database has it."""

    name: str
    """Canonical."""
    type: str | None = None
    """As the database writes it."""


@dataclass(frozen=True, slots=True)
class CatalogRemark:
    """Something that the catalog says about a relation or a column: a comment, an owner, a grant."""

    column: str | None
    name: str
    """``description``, ``owner``, ``grant``, ``row_policy``, ``server``, ``partition_of``, ``kind``."""
    value: str


@dataclass(frozen=True, slots=True)
class CatalogDefinition:
    """The statement that makes a view, or a function that is written in SQL."""

    statement: str
    catalog: str | None = None
    """Canonical: what its names without a catalog mean."""
    schema: str | None = None
    search_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogRelation:
    """A table or a view."""

    name: str
    """Canonical."""
    kind: str
    """``table``, ``view``, ``materialized_view``."""
    columns: tuple[CatalogColumn, ...] = ()
    definition: CatalogDefinition | None = None
    """Of views; None where the catalog does not give it."""
    remarks: tuple[CatalogRemark, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function whose body is SQL."""

    name: str
    definition: CatalogDefinition


@dataclass(frozen=True, slots=True)
class Catalog:
    """The contents of one database."""

    dialect: str
    namespace: str
    """OpenLineage's: ``postgres://host:5432``. Never with a user or a password."""
    database: str
    """A name for people: of the database, or of its file."""
    default_catalog: str | None = None
    """Canonical: what a session's names without a catalog mean."""
    default_schema: str | None = None
    search_path: tuple[str, ...] = ()
    relations: tuple[CatalogRelation, ...] = ()
    functions: tuple[Function, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def tables(self) -> dict[str, dict[str, str | None]]:
        """Columns and their types by relation, in order: a schema for the extractor."""
        return {item.name: {column.name: column.type for column in item.columns} for item in self.relations}


def stored(part: str, dialect: str, *, table: bool = False) -> str:
    """Return the canonical form of a name as a catalog stores it, which is as if it were written in quotes."""
    return fold(part, quoted=True, dialect=dialect, table=table)


def stored_name(parts: Iterable[str | None], dialect: str) -> str:
    """Return the canonical name of a relation; parts that are empty are left out."""
    return join_name([stored(part, dialect, table=True) for part in parts if part])


def view_statement(
    parts: Sequence[str], columns: Sequence[str], query: str, dialect: str, *, materialized: bool = False
) -> str:
    """Return the statement that makes a view of a query.

    Args:
        parts: Its name as the catalog stores it.
        columns: Its columns likewise: a view may call them otherwise than its query does.
        query: The query.
        dialect: How to quote.
        materialized: Whether its rows are kept.
    """
    from sqlglot import exp

    def quoted(text: str) -> str:
        return exp.to_identifier(text, quoted=True).sql(dialect or None)

    listed = f" ({', '.join(quoted(column) for column in columns)})" if columns else ""
    kind = "MATERIALIZED VIEW" if materialized else "VIEW"
    return f"CREATE {kind} {'.'.join(quoted(part) for part in parts)}{listed} AS\n{query.strip().rstrip(';')}"
