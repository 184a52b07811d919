"""Places of the expressions that make the edges of a write, as ``govtool.model.places`` keeps them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from sqlglot import exp

from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, REF_SHIFT, Interner
from govtool.capture.sql.walk.origins import Origin, OriginFinder
from govtool.capture.sql.walk.spans import AROUND, Span, StatementText
from govtool.capture.sql.walk.writes import Write
from govtool.model.kinds import EdgeKind

KIND_BITS: Final = 4
FILTER: Final = int(EdgeKind.FILTER)
"""The kind of a clause at the beginning of the text; see ``govtool.model.places``."""
MAX_PLACES: Final = 2000
"""Columns of a write whose places are kept; of one with more, none."""
_PLAIN: Final = "\"'[]() $.:*"
"""What a path may have besides letters and digits; anything else is quoted as in URLs."""
_NOWHERE: Final[Span] = (0, -1, 0, 0)
_around: Final[dict[type, bool]] = {}


class PlaceWriter:
    """Writes the places of one statement's edges."""

    def __init__(
        self, text: StatementText, line: int, interner: Interner, finder: OriginFinder, tree: exp.Expr
    ) -> None:
        self.text = text
        self.line = line
        self.interner = interner
        self.finder = finder
        self.tree = tree
        self._at = 0
        """The line of the place that was written last."""
        self._of_item: dict[int, Span] = {}
        self._of_name: dict[int, Span] = {}
        """By node that names a column in a clause."""
        self._of_clause: dict[int, Span] = {}
        self._inside: dict[int, bool] = {}

    def places(self, write: Write) -> str | None:
        """Return the places of a write's edges; None if none is known."""
        self._at = 0
        columns = self._columns(write)
        found: dict[int, Span] = {}
        several: set[int] = set()
        self._add_clauses(write.rows, 0, found, several)
        if write.steering:
            self._add_clauses(write.steering, CONDITIONAL, found, several)
        if not found:
            return columns or None
        self._at, last = 0, FILTER
        written: list[str] = []
        for span, kind, paths in self._by_span(found, several):
            mark = "" if kind == last else f"@{kind}"
            last = kind
            written.append(f"{self._written(span)} {','.join(sorted(paths))}{mark}")
        return f"{columns}|{';'.join(written)}"

    def _add_clauses(
        self, rows: dict[int, exp.Expr | None], fixed: int, found: dict[int, Span], several: set[int]
    ) -> None:
        """Add the span of the clause of each source column, by its ref and kind.

        Args:
            rows: Dependencies, with the nodes that name them.
            fixed: The kind of edge, where the dependencies do not tell it; else 0.
            found: Spans by ``ref << 4 | kind``; the first one counts.
            several: Gains the keys of columns that are in more than one clause.
        """
        of_name = self._of_name
        for dep, node in rows.items():
            kind = dep & KIND_MASK
            if node is None or kind == OPAQUE:
                continue
            span = of_name.get(id(node))
            if span is None:
                span = of_name[id(node)] = self._span_of_clause(node)
            if span[1] < 0:
                continue
            key = dep >> REF_SHIFT << KIND_BITS | (fixed or kind)
            known = found.setdefault(key, span)
            if known is not span and known != span:
                several.add(key)

    def _by_span(self, found: dict[int, Span], several: set[int]) -> list[tuple[Span, int, list[str]]]:
        """The source columns of each span, in the order of the text: by their paths, with the dataset where two
        columns of one path are at different places.
        """
        refs = self.interner.refs
        spans: dict[tuple[str, int], Span] = {}
        unlike: set[tuple[str, int]] = set()
        for key, span in found.items():
            column = (refs[key >> KIND_BITS].path, key & KIND_MASK)
            known = spans.setdefault(column, span)
            if key in several or (known is not span and known != span):
                unlike.add(column)
        groups: dict[tuple[Span, int], list[str]] = {}
        for key, span in found.items():
            ref, kind = refs[key >> KIND_BITS], key & KIND_MASK
            path = ref.path
            text = path if path.isidentifier() else quote(path, safe=_PLAIN)
            if (path, kind) in unlike:
                text = f"{quote(ref.dataset, safe=_PLAIN)}~{text}"
            paths = groups.setdefault((span, kind), [])
            if text not in paths:
                paths.append(text)
        return [(span, kind, groups[span, kind]) for span, kind in sorted(groups)]

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
        span = self._of_item.get(id(origin))
        if span is None:
            part = self.text.item(origin)
            span = self._of_item[id(origin)] = _NOWHERE if part is None else self._span(part)
        return self._written(span)

    def _span_of_clause(self, node: exp.Expr) -> Span:
        """The span of the whole condition, or item of a clause, that a name is in."""
        parent = node.parent
        while parent is not None and not _is_around(parent):
            node = parent
            parent = node.parent
        span = self._of_clause.get(id(node))
        if span is None:
            part = self.text.condition(node) if self._is_inside(parent or node) else None
            span = self._of_clause[id(node)] = _NOWHERE if part is None else self._span(part)
        return span

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

    def _span(self, part: tuple[int, int]) -> Span:
        return self.text.span(part[0], part[1], self.line)

    def _written(self, span: Span) -> str:
        first, column, lines, last = span
        if column < 0:
            return ""
        behind, self._at = first - self._at, first
        if not column:
            return str(behind)
        return f"{behind}:{column}>{lines}:{last}" if lines else f"{behind}:{column}+{last - column + 1}"


def _is_around(node: exp.Expr) -> bool:
    """Tell whether conditions, or items of a clause, are parts of a node; remembered by class."""
    cls = node.__class__
    known = _around.get(cls)
    if known is None:
        known = _around[cls] = isinstance(node, AROUND)
    return known
