"""Property files of a dbt project: where the tables of sources are, and which columns there are.

Such a description is documentation: dbt compares it with nothing, unless a model's contract is enforced. In public
projects one to five of a hundred described columns are not there, and of two models one has columns that are not
described. So what is described is evidence that a column exists, and what is not described is evidence of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column of a relation, as it is described."""

    name: str
    """As written, without quotes."""
    quoted: bool = False
    """Its case counts (``quote: true``, or written in quotes)."""
    type: str | None = None
    """``data_type``, as written."""


Description: TypeAlias = tuple[DescribedColumn, ...]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of a source. Texts are as written, and may be templates; empty ones mean nothing."""

    identifier: str = ""
    schema: str = ""
    database: str = ""
    columns: Description = ()


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a property file states about a node or a column."""

    kind: str
    """``model``, ``seed``, ``snapshot`` or ``source``; ``group`` of the owner of a group."""
    name: tuple[str, ...]
    """The node's name; of a table of a source, the source and the table."""
    column: DescribedColumn | None
    """None: about the node."""
    fact: str
    """``description``, ``tag``, ``test``, ``owner``, ``group``, ``meta.<key>``; empty: that the node is there."""
    value: str
    """Of a node that is there, its package; empty where that is not known."""
    file: str
    """The property file, or the node's own, from the root of what is read."""


@dataclass(frozen=True, slots=True)
class Properties:
    """The contents of property files."""

    sources: dict[tuple[str, str], SourceTable] = field(default_factory=dict)
    """By the names of source and table, as ``source`` is called."""
    described: dict[str, Description] = field(default_factory=dict)
    """Columns of models, seeds and snapshots by name."""
    contracts: frozenset[str] = frozenset()
    """Models whose contract is enforced: dbt builds them only if the columns are those described, and no more."""
    versions: dict[tuple[str, str], str] = field(default_factory=dict)
    """Files of models that have versions, by name and version; the empty version is the latest."""
    facts: tuple[StatedFact, ...] = ()
    """Descriptions, tags, tests, owners and ``meta`` of nodes and columns."""

    def filled(self, other: Properties) -> Properties:
        """The same, with the descriptions of others for what is not described here."""
        return Properties(
            {**other.sources, **self.sources},
            {**other.described, **self.described},
            self.contracts | (other.contracts - self.described.keys()),
            {**other.versions, **self.versions},
            (*self.facts, *other.facts),
        )
