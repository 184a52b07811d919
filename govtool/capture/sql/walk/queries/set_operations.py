"""UNION, INTERSECT and EXCEPT, by position or by name."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    ARM_MASK,
    ARM_SHIFT,
    ARMS_PER_GROUP,
    DISTINCT,
    OPAQUE,
    REF_SHIFT,
    SET_OPERATION,
    UNION_ALL,
    Deps,
    arm_of,
    bounded,
)
from govtool.capture.sql.walk.queries.arms import arms_of, keep_arm_counts, merged_outputs
from govtool.capture.sql.walk.queries.clauses import refer_modifiers
from govtool.capture.sql.walk.queries.common_tables import environment
from govtool.capture.sql.walk.queries.outer_joins import as_optional
from govtool.capture.sql.walk.query import QueryWalker, output_of
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope


def _set_operation(walk: Walk, node: exp.SetOperation, scope: Scope | None, env: Environment | None) -> QueryOutput:
    """UNION, INTERSECT, EXCEPT: by position, or BY NAME."""
    env = environment(walk, node, scope, env)
    kind = nodes.Union if isinstance(node, nodes.Union) else None
    arms = arms_of(node, nodes.Union) if kind else [node.this, node.expression]
    by_name = bool(node.args.get("by_name"))
    group = walk.number()
    outputs: list[QueryOutput] = []
    number = 0
    counts: list[int] = []
    for arm in arms:
        before, walk.reads = walk.reads, {}
        output, rows = walk.separately(lambda arm=arm: output_of(walk, arm, scope, env))  # type: ignore[misc]
        reads, walk.reads = walk.reads, before
        if arm is node.expression and isinstance(node, nodes.Except):
            reads = as_optional(reads)
        marks = _marks(output, rows, reads, group, number) if kind else {}
        counts.append(max(1, len(set(marks.values()))))
        number += counts[-1]
        for name, inner in reads.items():
            walk.read({name: tuple(dict.fromkeys([_marked(one, marks) for one in inner]))})
        for row, item in rows.items():
            walk.rows[_marked(row, marks)] = item
        outputs.append(_in_arm(output, marks))
    if kind and number > len(arms):
        keep_arm_counts(node, counts)
    row_kind = SET_OPERATION if not kind else UNION_ALL if _all_keep_duplicates(node) else DISTINCT
    for output in outputs:
        for deps in output.deps:
            walk.refer(deps, row_kind)
    result = outputs[0] if not kind else _union(walk, outputs, by_name, node)
    if not by_name and not any(output.open for output in outputs):
        result = _uneven(walk, result, outputs, node)
    refer_modifiers(walk, node, result, scope, env)
    return result


def _union(walk: Walk, outputs: list[QueryOutput], by_name: bool, node: exp.Expr) -> QueryOutput:
    """The columns of the arms of a UNION together, by position or BY NAME."""
    if by_name:
        result = QueryOutput()
        names = dict.fromkeys(name for output in outputs for name in output.names)
        for name in names:
            deps = [dep for output in outputs if name in output.index() for dep in output.deps[output.index()[name]]]
            result.add(name, bounded(deps))
        result.open = [star for output in outputs for star in output.open]
        return result
    if any(output.open for output in outputs):
        return _open_union(walk, outputs, node)
    return merged_outputs(*outputs)


def _uneven(walk: Walk, result: QueryOutput, outputs: list[QueryOutput], node: exp.Expr) -> QueryOutput:
    """What arms that are taken to have different numbers of columns give.

    No engine runs such a query. So some arm has other columns than is known, and any column may decide about any.
    """
    if len({len(output.names) for output in outputs}) == 1:
        return result
    counts = ", ".join(str(len(output.names)) for output in outputs)
    walk.diagnose("arity", f"the arms of a set operation have different numbers of columns: {counts}", node)
    every = _candidates(tuple(dep for output in outputs for deps in output.deps for dep in deps))
    uneven = QueryOutput()
    for name, deps in zip(result.names, result.deps, strict=True):
        uneven.add(name, bounded([*deps, *every]))
    return uneven


def _open_union(walk: Walk, outputs: list[QueryOutput], node: exp.Expr) -> QueryOutput:
    """A UNION with an arm whose columns are not all known: positions are certain only where no ``*`` comes before.

    The first arm names the columns. What the other arms put into a column is matched by name where a ``*`` hides
    the positions, and recorded as a candidate, not as an edge.
    """
    first = outputs[0]
    result = QueryOutput()
    uncertain = False
    for position, name in enumerate(_names_of_union(outputs)):
        deps: list[int] = []
        for output in outputs:
            if not output.open and not first.open:
                if position < len(output.deps):
                    deps.extend(output.deps[position])
                continue
            found = _by_name(walk, output, name)
            if found is not None:
                deps.extend(found if output is first else _candidates(found))
                uncertain = uncertain or output is not first
        result.add(name, bounded(deps))
    if first.open:
        result.open = [OpenStar(s.table, s.except_, s.rename, s.arm) for s in first.open]
        for output in outputs[1:]:
            result.open.extend(OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open)
    if uncertain:
        walk.diagnose("star-unresolved", "columns of a UNION are matched by name: a * hides their positions", node)
    return result


def _names_of_union(outputs: list[QueryOutput]) -> list[str]:
    """Return the columns of a UNION by the names of its first arm, as far as these are known."""
    first = outputs[0]
    known = next((output for output in outputs if not output.open), None)
    if first.open and known is not None:
        return list(dict.fromkeys([*first.names, *known.names]))
    return list(first.names) if first is known or known is None or first.names else list(known.names)


def _by_name(walk: Walk, output: QueryOutput, name: str) -> Deps | None:
    """Return what an output has under a name, what its ``*`` may have included; None where it can have nothing."""
    index = output.index().get(name)
    if index is not None:
        return output.deps[index]
    if not output.open:
        return None
    return tuple([dep for star in output.open for dep in star.lookup(name, walk.interner) or ()])


def _all_keep_duplicates(node: exp.SetOperation) -> bool:
    return node.args.get("distinct") is False or not node.args.get("distinct")


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
    inside.update([arm & ARM_MASK for arms in reads.values() for arm in arms])
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


QUERIES: Final[dict[type, QueryWalker]] = {nodes.SetOperation: _set_operation}
