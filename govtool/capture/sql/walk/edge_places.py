"""Places of the expressions that make the edges of a write, as ``govtool.model.places`` keeps them."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote

from sqlglot import exp

from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, REF_SHIFT, Interner
from govtool.capture.sql.walk.origins import Origin, OriginFinder
from govtool.capture.sql.walk.spans import Span, StatementText
from govtool.capture.sql.walk.writes import Write
from govtool.model import ColumnRef

MAX_PLACES: Final = 2000
"""Columns and clauses of a write whose places are kept."""
_PLAIN: Final = "\"'[]() $.:*"
"""What a path may have besides letters and digits; anything else is quoted as in URLs."""
_NOWHERE: Final[Span] = (0, -1, 0, 0)


class PlacedClause(NamedTuple):
    """A source column in a clause."""

    ref: ColumnRef
    kind: int
    span: Span


class PlaceWriter:
    """Writes the places of one statement's edges."""

    def __init__(self, text: StatementText, line: int, interner: Interner, finder: OriginFinder) -> None:
        self.text = text
        self.line = line
        self.interner = interner
        self.finder = finder
        self.tree: exp.Expr | None = None
        self._at = 0
        """The line of the place that was written last."""
        self._of_item: dict[int, Span] = {}
        self._of_clause: dict[int, Span] = {}
        self._inside: dict[int, bool] = {}

    def places(self, tree: exp.Expr, write: Write) -> str | None:
        """Return the places of a write's edges; None if none is known."""
        self.tree, self._at = tree, 0
        columns = self._columns(tree, write)
        clauses = [self._clause(dep, dep & KIND_MASK, node) for dep, node in write.rows.items()]
        clauses += [self._clause(dep, CONDITIONAL, node) for dep, node in write.steering.items()]
        if not columns and not any(clauses):
            return None
        of_span = self._by_span([clause for clause in clauses if clause is not None])
        found = [f"{','.join(paths)}@{kind}={self._written(span)}" for (span, kind), paths in of_span.items()]
        return f"{columns}|{';'.join(found)}" if found else columns

    def _by_span(self, clauses: list[PlacedClause]) -> dict[tuple[Span, int], list[str]]:
        """The source columns of each span: by their paths, with the dataset where two of one path are elsewhere."""
        spans: dict[tuple[str, int], Span] = {}
        several: set[tuple[str, int]] = set()
        for clause in clauses:
            key = (clause.ref.path, clause.kind)
            if spans.setdefault(key, clause.span) != clause.span:
                several.add(key)
        found: dict[tuple[Span, int], list[str]] = {}
        for clause in clauses:
            path = clause.ref.path
            text = path if path.isidentifier() else quote(path, safe=_PLAIN)
            if (path, clause.kind) in several:
                text = f"{quote(clause.ref.dataset, safe=_PLAIN)}~{text}"
            paths = found.setdefault((clause.span, clause.kind), [])
            if text not in paths:
                paths.append(text)
        return found

    def _columns(self, tree: exp.Expr, write: Write) -> str:
        names, deps = write.output.names, write.output.deps
        if not any(deps) or len(names) > MAX_PLACES:
            return ""
        origins = self.finder.origins(tree, names)
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

    def _clause(self, dep: int, kind: int, node: exp.Expr | None) -> PlacedClause | None:
        if node is None or dep & KIND_MASK == OPAQUE or not self._is_inside(node):
            return None
        whole = self.text.whole(node)
        span = self._of_clause.get(id(whole))
        if span is None:
            part = self.text.condition(whole)
            span = self._of_clause[id(whole)] = _NOWHERE if part is None else self._span(part)
        return PlacedClause(self.interner.refs[dep >> REF_SHIFT], kind, span) if span[1] >= 0 else None

    def _is_inside(self, node: exp.Expr) -> bool:
        """False for a node of another statement: of a function that was inlined, of the head of a trigger."""
        passed: list[int] = []
        at: exp.Expr = node
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
