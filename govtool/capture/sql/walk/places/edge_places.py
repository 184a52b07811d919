"""Places of the expressions that make the edges of a write, as ``govtool.model.places`` keeps them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, REF_SHIFT, Interner
from govtool.capture.sql.walk.places.origins import Origin, OriginFinder
from govtool.capture.sql.walk.places.spans import AROUND, KEY_BITS, KEY_MASK, NOWHERE, StatementText
from govtool.capture.sql.walk.writes import Write
from govtool.model.kinds import EdgeKind

FILTER: Final = int(EdgeKind.FILTER)
"""The kind of a clause at the beginning of the text; see ``govtool.model.places``."""
MAX_PLACES: Final = 2000
"""Columns of a write whose places are kept; of one with more, none."""
_PLAIN: Final = "\"'[]() $.:*"
"""What a path may have besides letters and digits; anything else is quoted as in URLs."""
_WHOLE: Final = (nodes.Query, nodes.Create)
"""Statements whose walk puts no nodes of its own into the tree."""
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

    def __init__(self, text: StatementText, line: int, columns: ColumnTexts, walk: Walk, tree: exp.Expr) -> None:
        self.text = text
        self.line = line
        self.columns = columns
        self.walk = walk
        self.finder = OriginFinder(walk)
        self.tree = tree
        self._at = 0
        """The line of the place that was written last."""
        self._of_item: dict[int, int] = {}
        self._of_clause: dict[int, int] = {}
        self._inside: dict[int, bool] = {}
        self._is_one_tree = isinstance(tree, _WHOLE) and not walk.inlined and not walk.conditions
        """Whether all nodes that the walk saw are of the statement's tree."""

    def places(self, write: Write) -> str | None:
        """Return the places of a write's edges; None if none is known."""
        self._at = 0
        columns = self._columns(write)
        unlike: set[int] = set()
        groups = self._clauses(write, unlike)
        if unlike:
            groups = self._clauses(write, unlike)
        if not groups:
            return columns or None
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

    def _clauses(self, write: Write, unlike: set[int]) -> dict[int, list[str]]:
        """The paths of the source columns of each clause, by ``place << KEY_BITS | kind``. The first clause counts.

        Args:
            write: What the clauses are of.
            unlike: Columns of one path and kind that are in several clauses: their paths have the dataset, too. Those
                that are not in it yet are added.
        """
        columns = self.columns
        numbers, texts = columns.numbers(), columns.texts
        places: dict[int, int] = {}
        groups: dict[int, list[str]] = {}
        by_dataset = len(unlike) > 0
        place = NOWHERE
        before: exp.Expr | None = None
        for rows, fixed in ((write.rows, 0), (write.steering, CONDITIONAL)):
            for dep, node in rows.items():
                kind = dep & KIND_MASK
                if node is None or kind == OPAQUE:
                    continue
                if node is not before:
                    before = node
                    place = self._place_of_clause(node)
                if place < 0:
                    continue
                kind = fixed or kind
                ref = dep >> REF_SHIFT
                number = numbers[ref]
                key = column = number << KEY_BITS | kind
                if by_dataset and column in unlike:
                    key = -1 - (ref << KEY_BITS | kind)
                known = places.get(key)
                if known is None:
                    places[key] = place
                    text = texts[number]
                    if key < 0:
                        text = f"{quote(columns.refs[ref].dataset, safe=_PLAIN)}~{text}"
                    group = place << KEY_BITS | kind
                    paths = groups.get(group)
                    if paths is None:
                        groups[group] = [text]
                    else:
                        paths.append(text)
                elif known != place:
                    unlike.add(column)
        return groups

    def _columns(self, write: Write) -> str:
        names, deps = write.output.names, write.output.deps
        if not any(deps) or len(names) > MAX_PLACES:
            return ""
        part = write.tree
        origins = (
            self.finder.origins(self.tree, names) if part is None else OriginFinder(self.walk).origins(part, names)
        )
        if not origins:
            return ""
        written = [self._origin(origins.get(name)) for name in sorted(set(names))]
        return ",".join(written) if any(written) else ""

    def _origin(self, origin: Origin | None) -> str:
        if origin is None:
            return ""
        if isinstance(origin, list):
            return "/".join([self._origin(node) for node in origin])
        number = id(origin)
        place = self._of_item.get(number)
        if place is None:
            place = self._of_item[number] = self.text.place(self.text.item(origin), self.line)
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
        number = id(node)
        place = self._of_clause.get(number)
        if place is None:
            inside = self._is_one_tree or self._is_inside(node if parent is None else parent)
            part = self.text.condition(node) if inside else NOWHERE
            place = self._of_clause[number] = self.text.place(part, self.line)
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
