"""Columns that a ``*`` passes on by position, and the effect of a lost or renamed one on the statement.

    INSERT INTO t SELECT * FROM s       the names of s do not matter. A column less: too few values, or those behind it
                                        land in other columns
    … UNION ALL SELECT * FROM s         the names are those of the first arm. A column less: the arms no longer match

    … FROM s AS t(a, b)                 likewise: what the statement names are the names of the list

The graph says that a column is reached through a ``*`` alone, in which arm, and by which kind of statement; the text
of the statement says whether it goes by name after all (``INSERT INTO t BY NAME``, ``UNION ALL BY NAME``). Where the
text is not there or cut off, what happens to the other columns is not known. PostgreSQL and its kin take an INSERT with
too few values, and fill the last columns with their defaults: there, too, as the order of columns is not in the graph.

DuckDB numbers columns of one name that a ``*`` brings together: ``id``, ``id_1``, ``id_2``. Without one of them, those
behind it move up: the last number is gone, and those between have another column's values.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.graph.walks.rules import MOVED, OTHERS, STATEMENT
from govtool.model.kinds import EdgeKind
from govtool.query.changes.change import ReachState

ARMS = 4096
"""Arms of a group; see ``govtool.capture.sql.walk.dependencies.arm_of``."""
WHOLE_TEXT = 4000
"""Characters from which on a statement's text is cut off; see ``govtool.model.Statement``."""

_BY_NAME = re.compile(r"\b(?:by\s+name|corresponding)\b", re.IGNORECASE)
_SET_OPERATION = re.compile(r"\bunion\b", re.IGNORECASE)
_NAMING_STAR = re.compile(r"\*\s*(?:rename|replace)\b", re.IGNORECASE)
_LISTED = re.compile(
    r"\binto\s+(?:table\s+)?(?:\"[^\"]*\"|\[[^]]*\]|`[^`]*`|[\w$.])+\s*\((?!\s*(?:select|with|\()\b)", re.IGNORECASE
)
_UNLISTED_MERGE = re.compile(
    r"\binsert\s*(?:row\b|\*|by\s+position\b|;|\Z|when\b)|\bupdate\s*(?:set\s*\*|;|\Z|when\b)",
    re.IGNORECASE,
)
"""Branches of a MERGE that list no columns."""
_POSITIONAL = frozenset({"duckdb", "bigquery"})
"""Dialects in which these go by position; Spark's ``INSERT *`` goes by name."""
_PLACED = frozenset({EdgeKind.SORT, EdgeKind.DISTINCT})
"""What a position in ORDER BY or DISTINCT ON decides; that of a GROUP BY is named."""
_NUMBERED = re.compile(r"(.+?)_(\d+)(\"?)")
_NUMBERS = frozenset({"duckdb"})
"""Dialects that number columns of one name; see ``QueryOutput.unique``."""
_FILLS_UP = frozenset({"postgres", "redshift", "materialize", "risingwave"})
"""Dialects whose INSERT takes fewer values than there are columns."""


class _StatementColumns(NamedTuple):
    """The columns of a statement, by position."""

    insert: bool
    by_position: bool | None
    """True if it goes by position where a ``*`` makes a position; None if its text does not tell."""
    names: bool
    """True if its ``*`` names columns: RENAME, REPLACE."""
    fills_up: bool
    """True if it may do with fewer columns, the last ones being filled with their defaults."""


class Positions:
    """Answers for one graph."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._by_derivation: dict[int, _StatementColumns] = {}
        self._numbered: dict[int, dict[str, list[int]]] = {}
        self._by_place: dict[int, bool] = {}

    def dropped(self, edge: int) -> int:
        """The action (see ``govtool.graph.walks.walk``) of an edge through a ``*`` whose source is gone."""
        alone = 1 + ReachState.BREAKS | (MOVED if self._behind(edge) or self._sorted_by_place(edge) else 0)
        positional = self._positional(edge)
        if positional is None:
            return alone | OTHERS
        if not positional:
            return alone
        columns = self._of(edge)
        if columns.insert:
            return alone | (OTHERS if columns.fills_up else STATEMENT)
        return alone | STATEMENT if _other_arms(self.index, edge) else alone

    def renamed(self, edge: int) -> int:
        """The action of an edge through a ``*`` whose source has another name."""
        index = self.index
        if index.lists_columns(index.edge_derivation[edge], index.node_dataset[index.edge_source[edge]]):
            return 1 + ReachState.PASSES
        if index.kind(edge) is EdgeKind.JOIN:  # NATURAL: without the name the two are joined by less
            return 1 + ReachState.ROWS
        positional = self._positional(edge)
        if positional is None:
            return 1 + ReachState.UNKNOWN
        columns = self._of(edge)
        first = not columns.insert and (self.index.arm(edge) - 1) % ARMS == 0
        if not positional or first or columns.names:
            return 1 + ReachState.RENAMED | (MOVED if self._behind(edge) else 0)
        return 1 + ReachState.PASSES

    def moved_by_drop(self, edge: int) -> list[tuple[int, int]]:
        """Return the numbered columns that move when the source of an edge is gone, and the rows, with states."""
        moved = self._moved(edge, ReachState.BREAKS)
        if self._sorted_by_place(edge):
            moved.append((self._rows(edge), int(ReachState.ROWS)))
        return moved

    def moved_by_rename(self, edge: int) -> list[tuple[int, int]]:
        """Return the same when it has another name: the last number goes by another name."""
        return self._moved(edge, ReachState.RENAMED)

    def _moved(self, edge: int, gone: ReachState) -> list[tuple[int, int]]:
        """As many as the source has columns among those of the name are gone from the end; those before them change."""
        index, behind = self.index, self._behind(edge)
        derivation, source = index.edge_derivation[edge], index.edge_source[edge]
        lost = 1 + sum(
            any(index.edge_source[e] == source and index.edge_derivation[e] == derivation for e in index.in_edges(node))
            for node in behind
        )
        kept = max(0, len(behind) - lost)
        return [(node, int(ReachState.CHANGES if i < kept else gone)) for i, node in enumerate(behind)]

    def _behind(self, edge: int) -> list[int]:
        """The columns of the same name and a higher number than the one that an edge makes, in their order."""
        index = self.index
        derivation, target = index.edge_derivation[edge], index.edge_target[edge]
        families = self._numbered.get(derivation)
        if families is None:
            families = self._numbered[derivation] = _families(index, derivation)
        if not families:
            return []
        name = index.path(target)
        found = families.get(name) or families.get(_base(name)[0]) or []
        return found[found.index(target) + 1 :] if target in found else []

    def _rows(self, edge: int) -> int:
        return self.index.rows(self.index.node_dataset[self.index.edge_target[edge]])

    def _sorted_by_place(self, edge: int) -> bool:
        """Return whether the statement of an edge sorts, or tells rows apart, by a position that a ``*`` fills."""
        index, derivation = self.index, self.index.edge_derivation[edge]
        found = self._by_place.get(derivation)
        if found is None:
            found = self._by_place[derivation] = any(
                index.edge_derivation[e] == derivation and index.kind(e) in _PLACED and index.is_star(e)
                for e in index.in_edges(self._rows(edge))
            )
        return found

    def _positional(self, edge: int) -> bool | None:
        """True if an edge through a ``*`` is a position of an INSERT or of an arm; None where that cannot be told."""
        index, target = self.index, self.index.edge_target[edge]
        if index.kind(edge) is not EdgeKind.IDENTITY or index.functions(edge) or index.is_rows(target):
            return False
        columns = self._of(edge)
        if not columns.insert and not index.arm(edge):
            return False
        if index.container(target) is not None or _is_part(index, edge):
            return False
        return columns.by_position

    def _of(self, edge: int) -> _StatementColumns:
        derivation = self.index.edge_derivation[edge]
        found = self._by_derivation.get(derivation)
        if found is None:
            found = self._by_derivation[derivation] = _statement_columns(self.index, derivation)
        return found


def _statement_columns(index: Index, derivation: int) -> _StatementColumns:
    kind, text = index.field(derivation, "kind"), index.field(derivation, "text") or ""
    insert, whole = kind == "insert", bool(text) and len(text) < WHOLE_TEXT
    by_position: bool | None
    if kind == "merge":
        positional = index.field(derivation, "dialect") in _POSITIONAL and _UNLISTED_MERGE.search(text)
        by_position = None if positional or not text else False
    elif _BY_NAME.search(text):
        by_position = False
    elif insert:
        by_position = True if text else None  # BY NAME stands before the query
    else:
        by_position = bool(_SET_OPERATION.search(text)) if whole else None
    fills_up = index.field(derivation, "dialect") in _FILLS_UP and not _LISTED.search(text)
    return _StatementColumns(insert, by_position, bool(_NAMING_STAR.search(text)), fills_up)


def _base(name: str) -> tuple[str, int]:
    """A name without its number, and the number; 0 where it has none."""
    found = _NUMBERED.fullmatch(name)
    return (found[1] + found[3], int(found[2])) if found else (name, 0)


def _families(index: Index, derivation: int) -> dict[str, list[int]]:
    """By name: the columns of a statement that DuckDB numbered, behind the one that has the name itself.

    A column is numbered if nothing hands its name on and the text does not write it, as it would write an alias
    ``id_1``; without the text, if a ``*`` made it.
    """
    if index.field(derivation, "dialect") not in _NUMBERS:
        return {}
    nodes = {index.path(node): node for node in index.outputs(derivation)}
    numbered: dict[str, list[tuple[int, int]]] = {}
    for name, node in nodes.items():
        base, number = _base(name)
        if number and base in nodes and _is_numbered(index, derivation, node, name):
            numbered.setdefault(base, []).append((number, node))
    return {base: [nodes[base], *(node for _, node in sorted(found))] for base, found in numbered.items()}


def _is_numbered(index: Index, derivation: int, node: int, name: str) -> bool:
    edges = [e for e in index.in_edges(node) if index.edge_derivation[e] == derivation]
    if any(index.path(index.edge_source[e]) == name for e in edges):
        return False
    text = index.field(derivation, "text") or ""
    if text and len(text) < WHOLE_TEXT:
        written = re.escape(name.strip('"'))
        return re.search(rf"\b{written}\b", text, re.IGNORECASE) is None
    return any(index.is_star(e) for e in edges)


def _is_part(index: Index, edge: int) -> bool:
    """Return whether several columns of the ``*`` make the target: a struct, a row."""
    source = index.edge_source[edge]
    return any(
        other != source and index.node_dataset[other] == index.node_dataset[source]
        for other in (index.edge_source[e] for e in _beside(index, edge))
    )


def _beside(index: Index, edge: int) -> list[int]:
    """The edges of the same statement into the same column that a ``*`` alone reaches, in the same arm."""
    derivation, arm = index.edge_derivation[edge], index.arm(edge)
    return [
        e
        for e in index.in_edges(index.edge_target[edge])
        if index.edge_derivation[e] == derivation and index.is_star(e) and index.arm(e) == arm
    ]


def _other_arms(index: Index, edge: int) -> bool:
    """Return whether an arm of the group keeps its columns when the source of an edge is gone."""
    derivation, source = index.edge_derivation[edge], index.edge_source[edge]
    group = (index.arm(edge) - 1) // ARMS
    losing = {
        index.arm(e)
        for e in index.in_edges(index.edge_target[edge])
        if index.edge_derivation[e] == derivation and index.edge_source[e] == source and index.is_star(e)
    }
    rows = index.rows(index.node_dataset[index.edge_target[edge]])
    arms = {index.arm(e) for e in index.in_edges(rows) if index.edge_derivation[e] == derivation and index.arm(e)}
    return any((arm - 1) // ARMS == group and arm not in losing for arm in arms)
