"""Derivations: what one statement (or run, or declaration) says about one dataset.

A commit stores derivations; the graph is their fold. This keeps evidence and edges together: an edge never loses the
statement that made it, and a source is retracted by dropping its derivations.
"""

from __future__ import annotations

from typing import NamedTuple

from govtool.model.diagnostic import Diagnostic
from govtool.model.kinds import EdgeKind

ROWS = "*"
"""The path of a dataset's row-set node. (A column that is really named ``*`` is written ``"*"``.)"""


HIDDEN = "?"
"""The path of the columns of a dataset that are not known: what an unresolved ``*`` stands for. Not a column name:
those
are plain or quoted."""


class ColumnRef(NamedTuple):
    """A column, a field below a column, or (with path ``ROWS``) the row set of a dataset.

    ``dataset`` is the canonical dataset id (see ``govtool.names``), ``path`` the canonical column path:
    ``zip``, ``address.zip``, ``payload['user'].id``, ``items[]``.
    """

    dataset: str
    path: str

    @property
    def text(self) -> str:
        """The canonical text, ``dataset.path``."""
        return f"{self.dataset}.{self.path}"


class Edge(NamedTuple):
    """One edge into a column (or the row set) of the derivation's target."""

    source: ColumnRef
    target_path: str
    """A column path of the target, or ``ROWS``."""
    kind: EdgeKind
    functions: tuple[str, ...] = ()
    """Functions applied on the way, innermost first, lower case: ``("trim", "lower")``. ``case`` and ``cast`` count."""
    star: bool = False
    """Reached through ``*`` only, or by its position behind a list of names: no statement names the column.

    Of a READ edge: there are rows without any of the source, as of the right side of a LEFT JOIN, or of NOT EXISTS.
    """
    arm: int = 0
    """UNION arm, MERGE branch: alternatives of one derivation (0-based)."""
    masking: bool = False
    reason: str | None = None
    """For ``OPAQUE``: why; a diagnostic code, optionally ``code: detail``."""


class OutputColumn(NamedTuple):
    """A column of the target as this derivation defines it."""

    path: str
    type: str | None = None


class Counted(NamedTuple):
    """One conjunct ``COUNT(…) >= at_least`` of a HAVING."""

    at_least: int
    what: str
    """``rows``; ``values`` of a column, each as often as it occurs; ``distinct`` values."""
    columns: tuple[ColumnRef, ...] = ()
    """The base columns that hold exactly these values; none for rows, and where it is not known which."""
    joined: bool = False
    """The rows that are counted are those of a join or a UNION: one member may be several, or among others'."""


class Statement(NamedTuple):
    """The evidence behind a derivation: where it was said, and when."""

    fingerprint: str
    """Hex digest of the statement with its literals removed."""
    kind: str
    """``select``, ``create_view``, ``create_table_as``, ``create_table``, ``insert``, ``merge``, ``update``,
    ``delete``, ``copy``, ``alter``, ``drop``, ``truncate``, ``rename``, ``function``, ``execute``, ``other`` …"""
    dialect: str
    file: str
    """URI path relative to the ingest root, with forward slashes; ``<stdin>`` for standard input."""
    line: int = 1
    """1-based line of the statement's first token."""
    source: str = ""
    """The ingest's ``--source`` name: the unit of retraction."""
    how: str = "sql"
    """``sql``, ``plan``, ``plan-text``, ``openlineage``, ``declared``."""
    session: str | None = None
    text: str = ""
    """The statement, literals redacted, at most 4,000 characters."""
    run: str | None = None
    principal: str | None = None
    first_seen: str | None = None
    """ISO 8601, UTC; of the log, not of the ingest. Absent for files."""
    last_seen: str | None = None
    count: int = 1  # type: ignore[assignment]  # tuples have a method of this name, which nobody calls
    min_group: int | None = None
    """The k of a ``HAVING COUNT(…) >= k`` in the statement's outermost aggregate scope, the largest of several."""
    min_group_of: tuple[Counted, ...] = ()
    """The counted columns, for each such k; empty where ``min_group`` is known and they are not."""
    places: str | None = None
    """The places of the expressions that make the edges; see ``govtool.model.places``."""
    literals: str | None = None
    """A short digest of the literals that the fingerprint leaves out, by which versions compare. Of scripts only."""


class Derivation(NamedTuple):
    """The lineage that one statement gives one target dataset."""

    target: str
    """Canonical dataset id; ``query:<fingerprint>`` for a bare SELECT."""
    target_kind: str
    """``table``, ``view``, ``materialized_view``, ``temporary``, ``query``, ``file``, ``function``."""
    mode: str
    """``replace``, ``append``, ``update``, ``delete``, ``declare`` (columns only), ``drop``, ``rename``."""
    statement: Statement
    columns: tuple[OutputColumn, ...] = ()
    columns_complete: bool = True
    """False where a ``*`` could not be resolved: the target may have more columns."""
    edges: tuple[Edge, ...] = ()
    status: str = "understood"
    """``understood``, ``partial`` (something is opaque or ambiguous), ``opaque`` (nothing understood)."""
    diagnostics: tuple[Diagnostic, ...] = ()
    namespace: str = "default"
    """OpenLineage namespace of the target."""
    references: tuple[ColumnRef, ...] = ()
    """Columns that the statement names and that no edge without ``star`` begins at: nothing of them is handed on, yet
    the statement fails when they are dropped or renamed. Neither value flow nor policies follow these. Columns of the
    target itself are there if the statement names them to fill them; its ``*``, if it fills them by position. The ``*``
    of another dataset: the columns are taken by position, behind a list of names (``FROM t AS x(a, b)``)."""
