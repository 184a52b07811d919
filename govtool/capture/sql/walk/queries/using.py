"""Joins that merge columns: USING and NATURAL."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import JOIN, TRANSFORMATION, Deps, bounded, compose
from govtool.capture.sql.walk.relation import Source, starred
from govtool.capture.sql.walk.scope import MergingJoin, Scope


def join_using(walk: Walk, names: list[str], join: exp.Join, scope: Scope, start: int, before: int) -> None:
    """Merge the columns of USING: left for inner and left joins, right for right joins, both for full joins."""
    merged: dict[str, Deps] = {}
    end = len(scope.sources)
    found_by_name = join.method == "NATURAL" and len(names) > 1  # it joins what is left when one of them is gone
    for name in names:
        left = _side(walk, name, scope, start, before, join)
        right = _side(walk, name, scope, before, end, join)
        for deps in (left, right):
            if found_by_name:
                walk.refer_unnamed(starred(deps), JOIN)
            else:
                walk.refer(walk.noted(deps), JOIN, join)
        if join.side == "RIGHT":
            merged[name] = right
        elif join.side == "FULL":
            both = [
                compose(dep, TRANSFORMATION, walk.interner.prepend("coalesce", 0), walk.interner)
                for dep in (*left, *right)
            ]
            merged[name] = bounded(both)
        else:
            merged[name] = left
    scope.merged.update(merged)
    scope.joins.append(MergingJoin(start, before, end, merged))
    scope.seen.clear()


def _side(walk: Walk, name: str, scope: Scope, start: int, end: int, node: exp.Expr) -> Deps:
    """Return the dependencies of the column that one side, ``sources[start:end]``, puts into USING."""
    for join in reversed(scope.joins):
        if start <= join.left and join.end <= end and name in join.merged:
            return join.merged[name]
    sources = scope.sources[start:end]
    known = [
        found for source in sources if not source.hidden and (found := source.get(name, walk.interner)) is not None
    ]
    if known:
        several = [dep for deps in known for dep in deps]
        return known[0] if len(known) == 1 else walk.ambiguous_deps(name, several, node)
    return _possible_side(walk, name, sources, node)


def _possible_side(walk: Walk, name: str, sources: list[Source], node: exp.Expr) -> Deps:
    """Return the dependencies of a column of USING that no source of a side is known to have."""
    possible = [(source, deps) for source in sources if (deps := source.assume(name, walk.interner)) is not None]
    shown = [pair for pair in possible if pair[0].is_used(name)] or possible
    if len(shown) == 1:
        source, deps = shown[0]
        owners = source.owners()
        if len(owners) == 1:
            owners[0].used.add(name)
        return deps
    if shown:
        return walk.ambiguous_deps(name, [dep for _, deps in shown for dep in deps], node)
    walk.diagnose("unresolved", f"USING ({name}): one side has no such column", node)
    return ()


def join_naturally(walk: Walk, join: exp.Join, scope: Scope, start: int, before: int) -> None:
    """Merge the columns of NATURAL JOIN: those that both sides have."""
    left, right = scope.sources[start:before], scope.sources[before:]
    if any(source.is_open for source in (*left, *right)):
        names = "the joined columns depend on schemas that are not known"
        walk.diagnose("ambiguous", f"NATURAL JOIN: {names}", join)
    left_names = [name for source in left if not source.hidden for name in source.names()]
    right_names = {name for source in right if not source.hidden for name in source.names()}
    shared = [name for name in dict.fromkeys(left_names) if name in right_names]
    join_using(walk, shared, join, scope, start, before)
