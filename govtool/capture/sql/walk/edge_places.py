"""Places of the expressions that make the edges of a write, as ``govtool.model.places`` keeps them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from sqlglot import exp

from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, REF_SHIFT, Interner
from govtool.capture.sql.walk.origins import Origin, OriginFinder
from govtool.capture.sql.walk.spans import AROUND, KEY_BITS, KEY_MASK, NOWHERE, StatementText
from govtool.capture.sql.walk.writes import Write
from govtool.model.kinds import EdgeKind

FILTER: Final = int(EdgeKind.FILTER)
"""The kind of a clause at the beginning of the text; see ``govtool.model.places``."""
MAX_PLACES: Final = 2000
"""Columns of a write whose places are kept; of one with more, none."""
_PLAIN: Final = "\"'[]() $.:*"
"""What a path may have besides letters and digits; anything else is quoted as in URLs."""
_around: Final[dict[type, bool]] = {}


class ColumnTexts:
    """The paths of the columns of an extraction, as places name them; of each path one text."""

    def __init__(self, interner: Interner) -> None:
        self.refs = interner.refs
        self.texts: list[str] = []
        self._numbers: list[int] = []
        self._known: dict[str, int] = {}

    def numbers(self) -> list[int]:
        """Return the number of the text of each ref."""
        numbers, refs = self._numbers, self.refs
        while len(numbers) < len(refs):
            path = refs[len(numbers)].path
            number = self._known.get(path)
            if number is None:
                number = self._known[path] = len(self.texts)
                self.texts.append(path if path.isidentifier() else quote(path, safe=_PLAIN))
            numbers.append(number)
        return numbers


class PlaceWriter:
    """Writes the places of one statement's edges."""

    def __init__(
        self, text: StatementText, line: int, columns: ColumnTexts, finder: OriginFinder, tree: exp.Expr
    ) -> None:
        self.text = text
        self.line = line
        self.columns = columns
        self.finder = finder
        self.tree = tree
        self._at = 0
        """The line of the place that was written last."""
        self._of_item: dict[int, int] = {}
        self._of_name: dict[int, int] = {}
        """By node that names a column in a clause."""
        self._of_clause: dict[int, int] = {}
        self._inside: dict[int, bool] = {}

    def places(self, write: Write) -> str | None:
        """Return the places of a write's edges; None if none is known."""
        self._at = 0
        columns = self._columns(write)
        found: dict[int, int] = {}
        several: set[int] = set()
        self._add_clauses(write.rows, 0, found, several)
        if write.steering:
            self._add_clauses(write.steering, CONDITIONAL, found, several)
        if not found:
            return columns or None
        groups = self._by_place(found, several)
        self._at, last = 0, FILTER
        written: list[str] = []
        for key in self.text.in_order(groups):
            kind = key & KEY_MASK
            mark = "" if kind == last else f"@{kind}"
            last = kind
            paths = groups[key]
            text = paths[0] if len(paths) == 1 else ",".join(sorted(paths))
            written.append(f"{self._written(key >> KEY_BITS)} {text}{mark}")
        return f"{columns}|{';'.join(written)}"

    def _add_clauses(
        self, rows: dict[int, exp.Expr | None], fixed: int, found: dict[int, int], several: set[int]
    ) -> None:
        """Add the place of the clause of each source column, by its ref and kind.

        Args:
            rows: Dependencies, with the nodes that name them.
            fixed: The kind of edge, where the dependencies do not tell it; else 0.
            found: Places by ``ref << KEY_BITS | kind``; the first one counts.
            several: Gains the keys of columns that are in more than one clause.
        """
        of_name = self._of_name
        for dep, node in rows.items():
            kind = dep & KIND_MASK
            if node is None or kind == OPAQUE:
                continue
            number = id(node)
            place = of_name.get(number)
            if place is None:
                place = of_name[number] = self._place_of_clause(node)
            if place < 0:
                continue
            key = dep >> REF_SHIFT << KEY_BITS | (fixed or kind)
            known = found.get(key)
            if known is None:
                found[key] = place
            elif known != place:
                several.add(key)

    def _by_place(self, found: dict[int, int], several: set[int]) -> dict[int, list[str]]:
        """The source columns of each ``place << KEY_BITS | kind``: by their paths, with the dataset where two columns
        of one path are at different places.
        """
        columns = self.columns
        numbers = columns.numbers()
        places: dict[int, int] = {}
        unlike: set[int] = set()
        for key, place in found.items():
            column = numbers[key >> KEY_BITS] << KEY_BITS | key & KEY_MASK
            known = places.get(column)
            if known is None:
                places[column] = place
            if key in several or (known is not None and known != place):
                unlike.add(column)
        groups: dict[int, list[str]] = {}
        for key, place in found.items():
            ref, kind = key >> KEY_BITS, key & KEY_MASK
            number = numbers[ref]
            text = columns.texts[number]
            if unlike and (number << KEY_BITS | kind) in unlike:
                text = f"{quote(columns.refs[ref].dataset, safe=_PLAIN)}~{text}"
            group = place << KEY_BITS | kind
            paths = groups.get(group)
            if paths is None:
                groups[group] = [text]
            elif text not in paths:
                paths.append(text)
        return groups

    def _columns(self, write: Write) -> str:
        names, deps = write.output.names, write.output.deps
        if not any(deps) or len(names) > MAX_PLACES:
            return ""
        origins = self.finder.origins(self.tree, names)
        if not origins:
            return ""
        written = [self._origin(origins.get(name)) for name in sorted(set(names))]
        return ",".join(written) if any(written) else ""

    def _origin(self, origin: Origin | None) -> str:
        if origin is None:
            return ""
        if isinstance(origin, list):
            return "/".join([self._origin(node) for node in origin])
        place = self._of_item.get(id(origin))
        if place is None:
            place = self._of_item[id(origin)] = self.text.place(self.text.item(origin), self.line)
        return self._written(place)

    def _place_of_clause(self, node: exp.Expr) -> int:
        """The place of the whole condition, or item of a clause, that a name is in."""
        parent = node.parent
        while parent is not None:
            cls = type(parent)
            around = _around.get(cls)
            if around is None:
                around = _around[cls] = issubclass(cls, AROUND)
            if around:
                break
            node = parent
            parent = node.parent
        place = self._of_clause.get(id(node))
        if place is None:
            inside = self._inside.get(id(parent))
            if inside is None:
                inside = self._is_inside(node if parent is None else parent)
            part = self.text.condition(node) if inside else NOWHERE
            place = self._of_clause[id(node)] = self.text.place(part, self.line)
        return place

    def _is_inside(self, node: exp.Expr) -> bool:
        """False for a node of another statement: of a function that was inlined, of the head of a trigger."""
        passed: list[int] = []
        at = node
        while True:
            known = self._inside.get(id(at))
            if known is None and at.parent is not None:
                passed.append(id(at))
                at = at.parent
                continue
            found = known if known is not None else at is self.tree
            for key in passed:
                self._inside[key] = found
            return found

    def _written(self, place: int) -> str:
        if place < 0:
            return ""
        first, column, lines, last = self.text.span(place)
        behind, self._at = first - self._at, first
        if not column:
            return str(behind)
        return f"{behind}:{column}>{lines}:{last}" if lines else f"{behind}:{column}+{last - column + 1}"
