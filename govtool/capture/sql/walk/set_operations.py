"""UNION, INTERSECT and EXCEPT, by position or by name, and the fixpoint of recursive CTEs."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import (
    ARM_MASK,
    ARM_SHIFT,
    ARMS_PER_GROUP,
    OPAQUE,
    REF_SHIFT,
    Deps,
    arm_of,
    bounded,
)
from govtool.capture.sql.walk.projections import ProjectionWalk
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput
from govtool.capture.sql.walk.scope import CommonTable, Environment, Scope
from govtool.names import fold

MAX_ROUNDS: Final = 50
"""Rounds of a recursive CTE before its dependencies are taken as they stand; each adds at least one or ends it."""

_COUNTS: Final = "govtool.arms"
"""Where a walked UNION keeps how many alternatives its arms are."""


class SetOperationWalk(ProjectionWalk):
    """Walks set operations."""

    def set_operation(self, node: exp.SetOperation, scope: Scope | None, env: Environment | None) -> QueryOutput:
        """UNION, INTERSECT, EXCEPT: by position, or BY NAME."""
        env = self.environment(node, scope, env)
        kind = nodes.Union if isinstance(node, nodes.Union) else None
        arms = arms_of(node, nodes.Union) if kind else [node.this, node.expression]
        by_name = bool(node.args.get("by_name"))
        group = self.number()
        outputs: list[QueryOutput] = []
        number = 0
        counts: list[int] = []
        for arm in arms:
            before, self.reads = self.reads, {}
            output, rows = self.separately(lambda arm=arm: self.query(arm, scope, env))  # type: ignore[misc]
            reads, self.reads = self.reads, before
            marks = _marks(output, rows, reads, group, number) if kind else {}
            counts.append(max(1, len(set(marks.values()))))
            number += counts[-1]
            for name, inner in reads.items():
                self.read({name: tuple(dict.fromkeys([marks.get(one, one) for one in inner]))})
            for row, item in rows.items():
                self.rows[_marked(row, marks)] = item
            outputs.append(_in_arm(output, marks))
        if kind and number > len(arms):
            node.meta[_COUNTS] = counts
        row_kind = "set" if not kind else "union_all" if _all_keep_duplicates(node) else "distinct"
        for output in outputs:
            for deps in output.deps:
                self.refer(deps, ROW_KINDS[row_kind])
        result = outputs[0] if not kind else self._union(outputs, by_name, node)
        self.modifiers(node, result, scope, env)
        return result

    def _union(self, outputs: list[QueryOutput], by_name: bool, node: exp.Expr) -> QueryOutput:
        if by_name:
            result = QueryOutput()
            names = dict.fromkeys(name for output in outputs for name in output.names)
            for name in names:
                deps = [
                    dep for output in outputs if name in output.index() for dep in output.deps[output.index()[name]]
                ]
                result.add(name, bounded(deps))
            result.open = [star for output in outputs for star in output.open]
            return result
        closed = [output for output in outputs if not output.open]
        if len(closed) == len(outputs) and len({len(output.names) for output in outputs}) > 1:
            counts = ", ".join(str(len(output.names)) for output in outputs)
            self.diagnose("arity", f"the arms of a set operation have different numbers of columns: {counts}", node)
        if len(closed) == len(outputs):
            result = outputs[0]
            for output in outputs[1:]:
                result = _merge(result, output)
            return result
        return self._open_union(outputs, node)

    def _open_union(self, outputs: list[QueryOutput], node: exp.Expr) -> QueryOutput:
        """A UNION with an arm whose columns are not all known: positions are certain only where no ``*`` comes before.

        The first arm names the columns. What the other arms put into a column is matched by name where a ``*`` hides
        the positions, and recorded as a candidate, not as an edge.
        """
        first = outputs[0]
        result = QueryOutput()
        known = next((output for output in outputs if not output.open), None)
        names = list(first.names) if first is known or known is None or first.names else list(known.names)
        if first.open and known is not None:
            names = list(dict.fromkeys([*first.names, *known.names]))
        uncertain = False
        for position, name in enumerate(names):
            deps: list[int] = []
            for output in outputs:
                if not output.open and not first.open:
                    if position < len(output.deps):
                        deps.extend(output.deps[position])
                    continue
                index = output.index().get(name)
                if index is not None:
                    deps.extend(output.deps[index] if output is first else _candidates(output.deps[index]))
                    uncertain = uncertain or output is not first
                else:
                    for star in output.open:
                        found = star.lookup(name, self.interner) or ()
                        deps.extend(found if output is first else _candidates(found))
                        uncertain = uncertain or output is not first
            result.add(name, bounded(deps))
        if first.open:
            result.open = [OpenStar(s.table, s.except_, s.rename, s.arm) for s in first.open]
            for output in outputs[1:]:
                result.open.extend(OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open)
        if uncertain:
            self.diagnose("star-unresolved", "columns of a UNION are matched by name: a * hides their positions", node)
        return result

    def _recursive(self, body: exp.Union, cte: CommonTable) -> QueryOutput:
        """Iterate a recursive CTE to its fixpoint: the anchor first, then the recursive arms over what is known so
        far.
        """
        env = self.environment(body, cte.scope, cte.env)
        arms = arms_of(body, nodes.Union)
        anchors = [arm for arm in arms if not reads_itself(arm, cte, self.dialect)]
        if not anchors:
            self.diagnose("cycle", "a recursive CTE has no anchor", body)
            return QueryOutput()
        result = self.query(anchors[0], cte.scope, env)
        for anchor in anchors[1:]:
            result = _merge(result, self.query(anchor, cte.scope, env))
        if cte.columns:
            result = result.renamed(cte.columns)
        for _ in range(MAX_ROUNDS):
            cte.working = result
            before = [set(deps) for deps in result.deps]
            for arm in arms:
                if arm not in anchors:
                    result = _merge(result, self.query(arm, cte.scope, env))
            if [set(deps) for deps in result.deps] == before:
                break
        cte.working = None
        kind = "union_all" if body.args.get("distinct") is False else "distinct"
        for deps in result.deps:
            self.refer(deps, ROW_KINDS[kind])
        return result

    def environment(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> Environment | None:
        """Return the environment that WITH opens. Implemented by ``QueryWalk``."""
        raise NotImplementedError


def arm_counts(node: exp.Expr) -> list[int] | None:
    """Return how many alternatives each arm of a UNION was found to be; None if each is one."""
    known = node._meta
    counts: list[int] | None = None if known is None else known.get(_COUNTS)
    return counts


def arms_of(node: exp.Expr, kind: type[exp.SetOperation]) -> list[exp.Expr]:
    """Return the arms of a chain of UNIONs of the same sort, left to right, without recursion."""
    distinct, by_name = node.args.get("distinct"), bool(node.args.get("by_name"))
    arms: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        item = stack.pop()
        plain = item
        while isinstance(plain, nodes.Subquery) and plain.is_wrapper and not plain.args.get("with_"):
            plain = plain.this
        same = (
            isinstance(plain, kind)
            and plain.args.get("distinct") == distinct
            and bool(plain.args.get("by_name")) == by_name
        )
        if same and (
            plain is node or not (plain.args.get("with_") or plain.args.get("order") or plain.args.get("limit"))
        ):
            stack.append(plain.args["expression"])
            stack.append(plain.args["this"])
        elif item is node:
            stack.append(node.args["expression"])
            stack.append(node.args["this"])
            node = nodes.Null()
        else:
            arms.append(item)
    return arms


def _all_keep_duplicates(node: exp.SetOperation) -> bool:
    return node.args.get("distinct") is False or not node.args.get("distinct")


def reads_itself(arm: exp.Expr, cte: CommonTable, dialect: str) -> bool:
    """Return whether a query reads the CTE ``cte`` by name."""
    names = {name for name, table in cte.env.tables.items() if table is cte} if cte.env is not None else set()
    return any(
        fold(table.name, quoted=bool(getattr(table.this, "args", {}).get("quoted")), dialect=dialect) in names
        for table in arm.find_all(nodes.Table)
        if not table.args.get("db")
    )


def _merge(left: QueryOutput, right: QueryOutput) -> QueryOutput:
    result = QueryOutput()
    for position, name in enumerate(left.names):
        more = right.deps[position] if position < len(right.deps) else ()
        result.add(name, bounded((*left.deps[position], *more)))
    result.open = [*left.open, *right.open]
    result.types = left.types
    return result


def _marks(
    output: QueryOutput,
    rows: dict[int, exp.Expr | None],
    reads: dict[str, tuple[int, ...]],
    group: int,
    number: int,
) -> dict[int, int]:
    """Return the arms of a UNION by the arms that were known inside one of its own.

    An arm that is nothing but another UNION (all in it is an alternative of one group) is as many arms of the outer
    one: each alternative does by itself. In any other, all is needed: the outermost alternative wins.

    Returns:
        Arm bits by arm bits; that of 0 besides.
    """
    inside = {dep & ARM_MASK for deps in output.deps for dep in deps}
    inside.update([row & ARM_MASK for row in rows])
    inside.update([arm for arms in reads.values() for arm in arms])
    inside.update([star.arm for star in output.open])
    groups = {arm // (ARMS_PER_GROUP << ARM_SHIFT) for arm in inside}
    first = arm_of(group, number)
    if 0 in inside or len(groups) != 1:
        return dict.fromkeys([0, *inside], first)
    marks = {arm: arm_of(group, number + place) for place, arm in enumerate(sorted(inside))}
    marks[0] = first
    return marks


def _marked(dep: int, marks: dict[int, int]) -> int:
    return (dep & ~ARM_MASK) | marks[dep & ARM_MASK] if marks else dep


def _in_arm(output: QueryOutput, marks: dict[int, int]) -> QueryOutput:
    if not marks:
        return output
    result = QueryOutput()
    for name, deps in zip(output.names, output.deps, strict=True):
        result.add(name, tuple(dict.fromkeys([_marked(dep, marks) for dep in deps])))
    result.open = [OpenStar(s.table, s.except_, s.rename, marks[s.arm], candidate=s.candidate) for s in output.open]
    result.fields = output.fields
    return result


def _candidates(deps: Deps) -> list[int]:
    return [(dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for dep in deps]
