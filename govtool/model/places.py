"""Places of expressions in a file: which part of a statement makes an edge.

A derivation keeps the places of its edges as one short text (``Statement.places``): those of its columns, in the order
of their names, then ``|`` and those of clauses.

    2:4+20,1:4+7,,1:10+12/3:10+12|4:12+11 id@5;1:6+17 kind,status@6

A place is ``lines:column+length``: the lines behind the place before it, among those of columns or among those of
clauses, or behind the statement's first line; ``lines:column>lines:column`` is one of several lines, to its last
character; ``lines`` alone says that only the line is known, as a template made the text. Nothing stands where nothing
is known. Of the arms of a UNION or the branches of a MERGE, the places are joined by ``/``. Clauses are in the order of
the text: the place of the predicate, join or item, and the paths of the source columns, with ``dataset~`` where that is
not enough. ``@`` and the number of the kind of edge follow where it is not that of the clause before, or FILTER.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from govtool.model.derivation import ROWS, ColumnRef
from govtool.model.kinds import EdgeKind

ARMS = 4096
"""Arms of a group; see ``govtool.capture.sql.walk.dependencies.arm_of``."""


class Place(NamedTuple):
    """A part of a file: 1-based lines and columns, the last character included."""

    line: int
    column: int | None
    """None where only the line is known, as a template made the text."""
    end_line: int
    end_column: int | None


class EdgeEnds(NamedTuple):
    """An edge of a derivation, for whose place is looked."""

    source: ColumnRef
    target_path: str
    kind: EdgeKind
    arm: int = 0


class StatementPlaces(NamedTuple):
    """The places of one derivation, relative to the line before the statement's first."""

    columns: Sequence[Sequence[Place | None]]
    """By column of the target, in the order of their names, and arm."""
    clauses: Mapping[tuple[str, int], Place]
    """By path of the source and kind."""


def ranks(names: Iterable[str]) -> dict[str, int]:
    """Return the columns of a derivation with their numbers in the text of places."""
    return {name: number for number, name in enumerate(sorted(set(names)))}


def place_of(places: str | None, line: int, columns: Mapping[str, int], edge: EdgeEnds) -> Place | None:
    """Return the place of the expression that makes an edge; None where it is not known.

    Args:
        places: ``Statement.places``.
        line: The line of the statement, to which places are relative.
        columns: The ``ranks`` of the derivation's columns.
        edge: The edge.
    """
    if not places:
        return None
    known = decoded(places)
    found = None if known is None else _found(known, columns, edge)
    if found is None:
        return None
    return Place(line + found.line, found.column, line + found.end_line, found.end_column)


def _found(known: StatementPlaces, columns: Mapping[str, int], edge: EdgeEnds) -> Place | None:
    kind = int(edge.kind)
    clause = known.clauses.get((f"{edge.source.dataset}~{edge.source.path}", kind))
    clause = clause or known.clauses.get((edge.source.path, kind)) or _of_namespace(known, edge)
    if clause is not None or edge.target_path == ROWS:
        return clause
    rank = columns.get(edge.target_path)
    if rank is None or len(columns) != len(known.columns):
        return None
    arms = known.columns[rank]
    if len(arms) < 2:
        return arms[0] if arms else None
    number = (edge.arm - 1) % ARMS if edge.arm else len(arms)  # which arm it is of is not known
    return arms[number] if number < len(arms) else None


def _of_namespace(known: StatementPlaces, edge: EdgeEnds) -> Place | None:
    """Return the place of a clause whose dataset is told apart by its name, which is kept without its namespace."""
    dataset, tail = edge.source.dataset, f"~{edge.source.path}"
    found: tuple[str, Place] = ("", Place(0, None, 0, None))
    for (text, kind), place in known.clauses.items():
        name = text.removesuffix(tail)
        if kind != int(edge.kind) or name == text or not dataset.endswith(name):
            continue
        if dataset.removesuffix(name).endswith(("/", ":")) and len(name) > len(found[0]):
            found = name, place  # of "b" and "a/b", the dataset ns/a/b is the latter
    return found[1] if found[0] else None


@lru_cache(maxsize=4096)
def decoded(places: str) -> StatementPlaces | None:
    """Read the text of places; None if it is none, as that of a later version may be."""
    try:
        return _Reader().read(places)
    except ValueError:
        return None


class _Reader:
    """Reads places, each relative to the one before."""

    def __init__(self) -> None:
        self.line = 0

    def read(self, places: str) -> StatementPlaces:
        columns, _, clauses = places.partition("|")
        listed = columns.split(",") if columns else []
        of_columns = [[self.place(part) for part in one.split("/")] for one in listed]
        of_clauses: dict[tuple[str, int], Place] = {}
        self.line, kind = 0, int(EdgeKind.FILTER)
        for clause in clauses.split(";") if clauses else ():
            text, _, head = clause.partition(" ")
            paths, _, mark = head.partition("@")
            kind = int(mark) if mark else kind
            place = self.place(text)
            for path in paths.split(","):
                if place is not None:
                    of_clauses.setdefault((unquote(path), kind), place)
        return StatementPlaces(of_columns, of_clauses)

    def place(self, text: str) -> Place | None:
        if not text:
            return None
        first, _, last = text.partition(">")
        lines, _, rest = first.partition(":")
        self.line += int(lines)
        if not rest:
            return Place(self.line, None, self.line, None)
        if last:
            more, _, end = last.partition(":")
            return Place(self.line, int(rest), self.line + int(more), int(end))
        column, _, length = rest.partition("+")
        return Place(self.line, int(column), self.line, int(column) + int(length) - 1)
