"""Whether the groups of an aggregate are shown to be large enough, and of whom.

``HAVING COUNT(*) >= k`` counts rows; where a declassifier names the ``entity`` columns, k must count distinct values of
one of them (BigQuery and Snowflake do the same in their aggregation thresholds). What the statement counts is read from
its text, and which column that is from the graph: the entity itself or a plain copy of it.
"""

from __future__ import annotations

from functools import lru_cache

from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.names import split_name
from govtool.policy.model import Declassify
from govtool.query.patterns import ColumnPaths, Patterns


class Thresholds:
    """Answers for one declassifier on one graph."""

    def __init__(self, index: Index, declassify: Declassify, paths: ColumnPaths) -> None:
        self.index = index
        self.declassify = declassify
        self.entity = copies(index, Patterns(declassify.entity).columns(index, paths)) if declassify.entity else None
        self._known: dict[int, bool] = {}

    def shown(self, derivation: int) -> bool:
        """Whether a statement shows that its groups have at least ``min_group_size`` members."""
        found = self._known.get(derivation)
        if found is None:
            found = self._known[derivation] = self._shown(derivation)
        return found

    def _shown(self, derivation: int) -> bool:
        k = self.declassify.min_group_size or 0
        if "having" not in self.declassify.evidence:
            return False
        if self.entity is None:
            return bool(self.index.arrays["derivation_min_group"][derivation] >= k)
        if self.index.arrays["derivation_min_group"][derivation] < k:
            return False
        text, dialect = self.index.field(derivation, "text") or "", self.index.field(derivation, "dialect") or ""
        # Of several counts the graph keeps the largest bound and not which it was: all must be of the entity.
        counted = [self._columns(derivation, name) for name in _distinct(text, dialect)]
        return bool(counted) and all(columns and columns <= self.entity for columns in counted)

    def _columns(self, derivation: int, name: str) -> set[int]:
        """Source columns of a derivation's HAVING and values that bear a name."""
        index = self.index
        target = index.target(derivation)
        found = set()
        for node in range(index.rows(target), index.dataset_base[target + 1]):
            for edge in index.in_edges(node):
                source = index.edge_source[edge]
                if index.edge_derivation[edge] == derivation and not index.is_rows(source):
                    kind = index.kind(edge)
                    last = split_name(index.path(source))[-1]
                    if last == name and kind in (EdgeKind.FILTER, EdgeKind.AGGREGATION):
                        found.add(source)
        return found


def copies(index: Index, nodes: set[int]) -> frozenset[int]:
    """Columns that hold exactly the values of some columns: these, and plain copies of copies."""
    found = set(nodes)
    stack = list(nodes)
    while stack:
        for edge in index.out_edges(stack.pop()):
            target = index.edge_target[edge]
            if target in found or index.kind(edge) is not EdgeKind.IDENTITY or index.functions(edge):
                continue
            # Every value must come so: another source of the column may be of another kind.
            others = (e for e in index.in_edges(target) if index.kind(e) < EdgeKind.CONDITIONAL)
            if all(index.kind(e) is EdgeKind.IDENTITY and index.edge_source[e] in found for e in others):
                found.add(target)
                stack.append(target)
    return frozenset(found)


@lru_cache(maxsize=4096)
def _distinct(text: str, dialect: str) -> tuple[str, ...]:
    """Names of the columns whose distinct values a HAVING counts; nothing if it counts anything else beside them.

    The bounds are no longer in the text, which is kept without literals (``Statement.text``).
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    from govtool.names import fold

    try:
        tree = parse_one(text, dialect=dialect or None)
    except (SqlglotError, RecursionError, ValueError):
        return ()
    body = tree.find(exp.Select)
    having = body.args.get("having") if body is not None else None
    found: list[str] = []
    stack = [having.this] if having is not None else []
    while stack:
        item = stack.pop()
        if isinstance(item, (exp.And, exp.Paren)):
            stack += [v for v in (item.args.get("this"), item.args.get("expression")) if isinstance(v, exp.Expr)]
            continue
        if not isinstance(item, (exp.GTE, exp.GT, exp.LTE, exp.LT)):
            continue
        for side in (item.this, item.expression):
            if not isinstance(side, exp.Count):
                continue
            counted = side.this.expressions if isinstance(side.this, exp.Distinct) else []
            column = counted[0] if len(counted) == 1 else None
            if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
                return ()
            found.append(fold(column.name, quoted=bool(column.this.quoted), dialect=dialect))
    return tuple(found)
