"""Plans with parts that cannot be evaluated again, made so that all else can be: a break stays where it is.

A cell whose value is not known is NULL, and its column is blank. A condition that is not known is left out: then there
are rows that the run may not have had. Where such rows, or unknown values, are put together (groups, DISTINCT,
windows), the rows below are marked by a ``Repartition``, which normal plans have none of: a trace through it is a
superset. What nothing is known of is a black box: one row of NULLs that every row of its inputs stands behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from govtool.records.plan.expressions import (
    Attribute,
    Call,
    Exists,
    Expression,
    Frame,
    InSubquery,
    Literal,
    Named,
    Opaque,
    Outer,
    ScalarSubquery,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Break,
    Deduplicate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    LocalRows,
    Project,
    Range,
    Relation,
    Repartition,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, Term, fold_nodes, rewrite, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.candidates import outer_parts
from govtool.records.trace.computed import computed
from govtool.records.trace.loose_terms import always, counted, read_by, unknown
from govtool.records.trace.looseness import LoosenedPlan, Looseness, has_breaks
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import both, conjuncts, everything, free_columns, reads
from govtool.records.trace.ties import ChosenCell, restored

_ALL = Frame("range", "unbounded preceding", "unbounded following")
_SHOWN = 2
"""Reasons that are named."""


def loosened(root: Node, ids: Ids) -> LoosenedPlan:
    """Loosen a plan; one that can be evaluated stays as it is."""
    if not has_breaks(root):
        return LoosenedPlan(root)
    work = _Loosening(ids)
    rows = work.rows(root)
    why = "; ".join(list(work.reasons)[:_SHOWN])
    loose = rows.extra or work.unsure or work.missing
    looseness = Looseness(why, work.unsure, work.missing) if loose else None
    return LoosenedPlan(rows.node, frozenset(work.blank), looseness, why)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A loosened operator.

    Attributes:
        node: It.
        extra: Whether there may be rows that the run did not have.
        unordered: Whether the order of its rows is not known.
    """

    node: Node
    extra: bool = False
    unordered: bool = False


class _Loosening:
    """The state of the loosening of one plan."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.blank: set[int] = set()
        self.reasons: dict[str, None] = {}
        self.unsure = False
        self.missing = ""
        self._boxes: set[Exists] = set()
        self._here: dict[int, Attribute] = {}
        self._rules: dict[type, Callable[[Any, Sequence[_Rows]], _Rows]] = {
            Project: self._project, Filter: self._filter, Join: self._join, LateralJoin: self._lateral,
            Union: self._union, Aggregate: self._aggregate, Distinct: self._distinct, Window: self._window,
            Deduplicate: self._deduplicate, SetOperation: self._set_operation, Sort: self._sort, Limit: self._limit,
            Generate: self._generate, Expand: self._expand, Break: self._broken,
        }  # fmt: skip

    def rows(self, root: Node) -> _Rows:
        """The rows of a plan."""
        return fold_nodes(root, self._loosened)

    def _loosened(self, node: Node, inputs: tuple[_Rows, ...]) -> _Rows:
        node = node.replaced(nodes=tuple(each.node for each in inputs))
        self._here = {column.id: column for child in node.nodes() for column in outputs(child)}
        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node, inputs)
        return self._box(node) if self._touched(node, inputs) else _Rows(node)

    def _touched(self, node: Node, inputs: Sequence[_Rows]) -> bool:
        """Return whether an operator reads anything that is not known."""
        return self._extra(inputs) or any(c.id in self.blank for child in node.nodes() for c in outputs(child))

    def _extra(self, inputs: Iterable[_Rows]) -> bool:
        return any(each.extra or each.unordered for each in inputs)

    # ---- expressions ----------------------------------------------------------------------------------------------

    def _term(self, term: Any) -> tuple[Any, bool]:
        """An expression whose subqueries can be evaluated, and whether its own value is not known."""
        term = rewrite(term, self._subquery)
        return term, any(self._is_unknown(each) for each in walk(term))

    def _is_unknown(self, term: Term) -> bool:
        if isinstance(term, Opaque):
            self.reasons[term.reason] = None
            return True
        if isinstance(term, (Attribute, Outer)):
            return (term if isinstance(term, Attribute) else term.attribute).id in self.blank
        if isinstance(term, Exists) and term in self._boxes:
            return True
        return isinstance(term, (ScalarSubquery, Exists, InSubquery)) and self._reads_blank(term.plan)

    def _reads_blank(self, plan: Node) -> bool:
        return any(column.id in self.blank for column in free_columns(plan))

    def _subquery(self, term: Term) -> Term:
        """A subquery that can be evaluated; one of unknown rows is a black box."""
        if not isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            return term
        if not has_breaks(term.plan) and not self._reads_blank(term.plan):
            return term
        here = self._here
        self.rows(term.plan)  # for the reasons
        made = Exists(self._box(term.plan).node)
        self._here = here
        self._boxes.add(made)
        read = [here[column.id] for column in free_columns(term.plan) if column.id in here]
        return Call("and", (made, always(read)), BOOLEAN) if read else made

    def _conjunct(self, part: Expression) -> tuple[Expression, bool]:
        """A part of a condition as far as it is known, and whether rows may meet it that did not meet the whole."""
        if isinstance(part, Exists) and has_breaks(part.plan) and not self._reads_blank(part.plan):
            here = self._here
            found = self.rows(part.plan)
            self._here = here
            return replace(part, plan=Repartition(found.node)), True
        term, is_unknown = self._term(part)
        if not is_unknown:
            return term, False
        if any(isinstance(each, (Exists, InSubquery)) for each in walk(part)):
            self.unsure = True
        return always(read_by([term])), True

    def _condition(self, condition: Expression | None) -> tuple[Expression | None, bool]:
        parts = [self._conjunct(part) for part in conjuncts(condition)]
        return both(part for part, _ in parts), any(loose for _, loose in parts)

    def _nothing(self, column: Attribute | Named, values: Iterable[Term]) -> Named:
        """A column that is blank from here on."""
        kind = column.type if isinstance(column, Attribute) else column.attribute.type
        self.blank.add(column.id)
        return Named(unknown(read_by(values), kind), column.id, column.name)

    # ---- row by row -----------------------------------------------------------------------------------------------

    def _project(self, node: Project, inputs: Sequence[_Rows]) -> _Rows:
        columns = []
        for named in node.columns:
            value, is_unknown = self._term(named.value)
            plain = isinstance(value, Attribute)
            columns.append(self._nothing(named, [value]) if is_unknown and not plain else replace(named, value=value))
            if is_unknown:
                self.blank.add(named.id)
        return _Rows(Project(node.child, tuple(columns)), inputs[0].extra)

    def _filter(self, node: Filter, inputs: Sequence[_Rows]) -> _Rows:
        condition, loose = self._condition(node.condition)
        made = node.child if condition is None else Filter(node.child, condition)
        return _Rows(made, loose or inputs[0].extra)

    def _join(self, node: Join, inputs: Sequence[_Rows]) -> _Rows:
        left, right = (each.extra for each in inputs)
        condition, loose = self._condition(node.condition)
        made = replace(node, condition=condition)
        if node.kind in ("inner", "cross"):
            return _Rows(made, loose or left or right)
        if node.kind in ("left", "right", "full"):
            own, other = (left, right) if node.kind == "left" else (right, left)
            if loose or other or (node.kind == "full" and own):
                return self._padded(made)
            return _Rows(made, own)
        if node.kind not in ("left_semi", "left_anti"):
            return self._box(node) if loose or left or right else _Rows(made)
        if not (loose or right):
            return _Rows(made, left)
        self.unsure = True
        # Which rows the right side removed is not known: all of the left may have been there.
        if node.kind == "left_anti":
            return _Rows(node.left, extra=True)
        return _Rows(replace(made, right=Repartition(node.right)), extra=True)

    def _padded(self, node: Join) -> _Rows:
        """The pairs of an outer join, and every row padded."""
        self.unsure = True
        pairs, *padded = outer_parts(node, self.ids)
        parts: list[Node] = [Project(pairs, tuple(passed(column) for column in outputs(pairs)))]
        parts += [Project(part.rows, part.columns) for part in padded]
        return _Rows(Union(tuple(parts), outputs(node)), extra=True)

    def _lateral(self, node: LateralJoin, inputs: Sequence[_Rows]) -> _Rows:
        condition, loose = self._condition(node.condition)
        unknown_right = inputs[1].extra or self._reads_blank(node.right)
        if loose or unknown_right or any(column.id in self.blank for column in outputs(node.right)):
            return self._box(node)
        return _Rows(replace(node, condition=condition), inputs[0].extra)

    def _union(self, node: Union, inputs: Sequence[_Rows]) -> _Rows:
        for child in node.children:
            pairs = zip(outputs(child), node.columns, strict=True)
            self.blank.update(new.id for old, new in pairs if old.id in self.blank)
        return _Rows(node, any(each.extra for each in inputs))

    def _generate(self, node: Generate, inputs: Sequence[_Rows]) -> _Rows:
        generator, is_unknown = self._term(node.generator)
        if not is_unknown:
            return _Rows(replace(node, generator=generator), inputs[0].extra)
        self.unsure = True
        blank = [self._nothing(column, [generator]) for column in node.columns]
        return _Rows(Project(node.child, (*everything(node.child), *blank)), extra=True)

    def _expand(self, node: Expand, inputs: Sequence[_Rows]) -> _Rows:
        lines = [[self._term(value) for value in line] for line in node.projections]
        known = tuple(
            tuple(
                unknown(read_by([value]), column.type) if loose and not isinstance(value, Attribute) else value
                for (value, loose), column in zip(line, node.columns, strict=True)
            )
            for line in lines
        )
        for line in lines:
            self.blank.update(c.id for (_, loose), c in zip(line, node.columns, strict=True) if loose)
        return _Rows(replace(node, projections=known), inputs[0].extra)

    # ---- order ----------------------------------------------------------------------------------------------------

    def _sort(self, node: Sort, inputs: Sequence[_Rows]) -> _Rows:
        if any(self._term(key.value)[1] for key in node.order):
            return _Rows(node.child, inputs[0].extra, unordered=True)
        return _Rows(node, inputs[0].extra)

    def _limit(self, node: Limit, inputs: Sequence[_Rows]) -> _Rows:
        """A limit of rows that are not known lets all of them through."""
        return _Rows(node.child, extra=True) if self._extra(inputs) else _Rows(node)

    # ---- rows put together ----------------------------------------------------------------------------------------

    def _aggregate(self, node: Aggregate, inputs: Sequence[_Rows]) -> _Rows:
        lost_keys = [key for key in node.keys if self._term(key.value)[1]]
        other_rows = inputs[0].extra or bool(lost_keys)  # groups then hold rows of others
        lost = [each for each in node.measures if other_rows or self._term(each.value)[1]]
        if not (lost or other_rows):
            return _Rows(node)
        self.unsure = self.unsure or bool(lost_keys)
        own_terms = _has_own_terms(node, lost)
        again = {} if other_rows or not own_terms else self._chosen(lost)
        child = Repartition(node.child) if other_rows or (own_terms and len(again) < len(lost)) else node.child
        return _Rows(self._loose_groups(node, child, lost_keys, lost, again), other_rows and bool(node.keys))

    def _chosen(self, lost: Sequence[Named]) -> dict[int, Expression]:
        """The columns of which only the choice among values is not known, with what has the same rows behind it."""
        if any(self._reads_unknown(named.value) for named in lost):
            return {}
        found = {named.id: restored(named.value) for named in lost}
        return {number: value for number, value in found.items() if value is not None}

    def _reads_unknown(self, value: Expression) -> bool:
        return any(not isinstance(term, ChosenCell) and self._is_unknown(term) for term in walk(value))

    def _loose_groups(
        self,
        node: Aggregate,
        child: Node,
        lost_keys: Sequence[Named],
        lost: Sequence[Named],
        again: Mapping[int, Expression],
    ) -> Node:
        """The groups by the keys that are known, with the lost keys and measures blank."""
        known = [key for key in node.keys if key not in lost_keys]
        if lost_keys:
            known.append(self.ids.named("group", always(read_by(key.value for key in lost_keys))))
        kept = [each for each in node.measures if each not in lost]
        helpers = {each.id: self.ids.named("read", again.get(each.id, counted([each.value]))) for each in lost}
        made = Aggregate(child, tuple(known), (*kept, *helpers.values()))
        blank = {key.id: self._nothing(key, []) for key in lost_keys}
        blank.update({each.id: self._nothing(each, [helpers[each.id].attribute]) for each in lost})
        shown = tuple(blank.get(column.id, passed(column)) for column in outputs(node))
        return Project(made, shown)

    def _distinct(self, node: Distinct, inputs: Sequence[_Rows]) -> _Rows:
        lost = [column for column in outputs(node.child) if column.id in self.blank]
        if not (lost or inputs[0].extra):
            return _Rows(node)
        self.unsure = self.unsure or bool(lost)
        rows = Distinct(self._known_of(Repartition(node.child), outputs(node.child), lost))
        return _Rows(self._with_blank(rows, outputs(node.child)), extra=True)

    def _known_of(self, node: Node, columns: Sequence[Attribute], lost: Sequence[Attribute]) -> Node:
        """The columns that are known, and one that reads the others."""
        known = tuple(passed(column) for column in columns if column not in lost)
        return Project(node, (*known, self.ids.named("read", always(lost))) if lost else known)

    def _with_blank(self, node: Node, columns: Iterable[Attribute]) -> Node:
        """Known columns with those beside them that are blank."""
        return Project(node, tuple(self._nothing(c, []) if c.id in self.blank else passed(c) for c in columns))

    def _deduplicate(self, node: Deduplicate, inputs: Sequence[_Rows]) -> _Rows:
        """One row of each key: of more rows than the run had, another one may be kept."""
        keys = {key.id for key in node.keys}
        if keys & self.blank:
            return self._box(node)
        if not inputs[0].extra:
            return _Rows(node)
        self.unsure = True
        self.blank.update(column.id for column in outputs(node.child) if column.id not in keys)
        return _Rows(replace(node, child=Repartition(node.child)), extra=True)

    def _set_operation(self, node: SetOperation, inputs: Sequence[_Rows]) -> _Rows:
        sides = [outputs(node.left), outputs(node.right)]
        lost = [any(side.id in self.blank for side in pair) for pair in zip(*sides, strict=True)]
        if not (any(lost) or inputs[0].extra or inputs[1].extra):
            return _Rows(node)
        self.unsure = self.unsure or any(lost) or node.all or inputs[1].extra
        left, right = (
            self._known_of(Repartition(child), columns, tuple(compress(columns, lost)))
            for child, columns in zip((node.left, node.right), sides, strict=True)
        )
        # Of EXCEPT ALL, the left side may also have too few: one row of a black box stands for any number.
        uneven = inputs[1].extra or (node.all and inputs[0].extra)
        if node.kind == "except" and (any(lost) or uneven):
            right = Project(Filter(right, Literal(False, BOOLEAN)), everything(right))
        blank = {column.id for column in compress(node.columns, lost)}
        own = tuple(column for column, is_lost in zip(node.columns, lost, strict=True) if not is_lost)
        if blank:
            own = (*own, self.ids.attribute("read", BOOLEAN))
        made = SetOperation(left, right, node.kind, node.all and not blank, own)
        self.blank |= blank
        return _Rows(self._with_blank(made, node.columns), extra=True)

    def _window(self, node: Window, inputs: Sequence[_Rows]) -> _Rows:
        lost = [named for named in node.columns if inputs[0].extra or self._term(named.value)[1]]
        if not lost:
            return _Rows(node)
        kept = tuple(named for named in node.columns if named not in lost)
        below = Window(node.child, kept) if kept else node.child
        again = {} if inputs[0].extra else self._chosen(lost)
        values = {named.id: again.get(named.id, self._over_partition(named.value)) for named in lost}
        helpers = {number: self.ids.named("read", value) for number, value in values.items()}
        rows = Window(below if len(again) == len(lost) else Repartition(below), tuple(helpers.values()))
        columns = {named.id: self._nothing(named, [helpers[named.id].attribute]) for named in lost}
        shown = tuple(columns.get(column.id, passed(column)) for column in outputs(node))
        return _Rows(Project(rows, shown), inputs[0].extra)

    def _over_partition(self, call: Expression) -> WindowCall:
        """The operators that read the same rows as a window function, or all of their partition."""
        parts = call.partition if isinstance(call, WindowCall) else ()
        known = tuple(part for part in parts if not self._term(part)[1])
        return WindowCall(counted([call]), known, (), _ALL, LONG)

    # ---- black boxes ----------------------------------------------------------------------------------------------

    def _broken(self, node: Break, inputs: Sequence[_Rows]) -> _Rows:
        self.reasons[node.reason] = None
        return self._box(node)

    def _box(self, node: Node) -> _Rows:
        """One row of unknown values, behind which all inputs stand."""
        self.unsure = True
        leaves: list[Node] = [
            each for each in walk_nodes(node)
            if isinstance(each, (Relation, Range)) or (isinstance(each, LocalRows) and each.columns)
        ]  # fmt: skip
        if not leaves:
            self.missing = next(iter(self.reasons), "its inputs are not known")
        behind = [Exists(Repartition(leaf)) for leaf in dict.fromkeys(leaves)]
        rows = Filter(LocalRows(0, (), ((),)), always(behind))
        return _Rows(Project(rows, tuple(self._nothing(column, []) for column in outputs(node))), extra=True)


def _has_own_terms(node: Aggregate, measures: Sequence[Named]) -> bool:
    """Return whether cells have terms that are not in the annotation of their group: then NULLs among them matter."""
    return bool(measures) and (not node.keys or bool(reads(m.value for m in measures) & computed(node.child)))
