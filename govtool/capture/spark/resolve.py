"""A pass over a plan, from its leaves to its root: each relation with what its columns and its rows depend on."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.dependencies import (
    ColumnDependencies,
    ColumnValue,
    Dependency,
    PlanDependencies,
    bounded,
    compose,
    in_arm,
    is_certain,
    mapped,
    marked,
    merged,
)
from govtool.capture.spark.identity import output_paths
from govtool.model import ROWS, STEERING, ColumnRef, Diagnostic, EdgeKind

_IDENTITY, _TRANSFORMATION, _AGGREGATION = EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION
_CONDITIONAL, _OPAQUE = EdgeKind.CONDITIONAL, EdgeKind.OPAQUE

MAX_ROUNDS = 50
MAX_BREAKS = 4096
"""Opaque pairs of columns of one lost step that are written out; beyond, the rows of what was read stand for all."""
_ARMS_PER_GROUP = 1 << 12
_GROUPS = 1 << 4


@dataclass(slots=True)
class _Relation:
    """A relation on the way: its columns by id, and what decides its rows."""

    outputs: tuple[p.Named, ...]
    columns: dict[int, ColumnValue]
    rows: dict[Dependency, None] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)

    def values(self) -> list[ColumnValue]:
        return [self.columns.get(output.id, ColumnValue()) for output in self.outputs]

    def refer(self, deps: Iterable[Dependency], kind: EdgeKind) -> None:
        """Record dependencies as referenced by the rows."""
        for dep in deps:
            if dep.kind is _OPAQUE and not is_certain(dep):
                self.rows[dep._replace(functions=())] = None
            else:
                self.rows[Dependency(dep.source, kind, (), dep.arm)] = None

    def take(self, other: _Relation) -> None:
        """Take over what decides about another relation, and what it reads."""
        self.rows.update(other.rows)
        self.reads.update(other.reads)


_Env = Mapping[int, ColumnValue]
_Task = tuple[p.Expression, EdgeKind, tuple[str, ...]]


class PlanWalk:
    """One pass over a plan, from its leaves to its root."""

    def __init__(self, expand_views: bool) -> None:
        self.expand_views = expand_views
        self.groups = 0
        self.breaks: dict[Diagnostic, None] = {}
        self.views: dict[str, PlanDependencies] = {}
        self.definitions: dict[int, _Relation] = {}

    def finish(self, relation: _Relation) -> PlanDependencies:
        """Finish the lineage of a relation, with the places where it was lost."""
        columns = [
            ColumnDependencies(output.name, value.deps)
            for output, value in zip(relation.outputs, relation.values(), strict=True)
        ]
        return PlanDependencies(
            tuple(columns), tuple(relation.rows), tuple(relation.reads), tuple(self.breaks), tuple(self.views.items())
        )

    # ---- the order -------------------------------------------------------------------------------------------

    def resolve(self, root: p.Node, outer: _Env) -> _Relation:
        """Return the relation of a node. A chain of a thousand projections needs no Python frames.

        Args:
            root: The node.
            outer: Columns of the relation that a subquery stands in.
        """
        done: list[_Relation] = []
        stack: list[tuple[p.Node, bool]] = [(root, False)]
        while stack:
            node, seen = stack.pop()
            children = p.walked_children(node)
            if seen or not children:
                inputs = done[len(done) - len(children) :] if children else []
                del done[len(done) - len(children) :]
                done.append(self._node(node, inputs, outer))
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(children))
        return done[0]

    def _node(self, node: p.Node, inputs: list[_Relation], outer: _Env) -> _Relation:
        match node:
            case p.Scan() | p.Values() | p.CatalogView() | p.With() | p.Reference() | p.Loop():
                return self._own(node, outer)
            case p.Project():
                return self._project(node.outputs, inputs[0], outer)
            case p.Extend():
                return self._extend(node, inputs[0], outer)
            case p.Filter():
                self._refer_to((node.condition,), inputs[0], outer, EdgeKind.FILTER)
                return inputs[0]
            case p.Sort():
                self._refer_to(node.keys, inputs[0], outer, EdgeKind.SORT)
                return inputs[0]
            case p.Distinct():
                return self._distinct(node, inputs[0], outer)
            case p.Aggregate():
                self._refer_to(node.keys, inputs[0], outer, EdgeKind.GROUP_BY)
                return self._project(node.outputs, inputs[0], outer)
            case p.Join():
                return self._join(node, inputs, outer)
            case p.Union():
                return self._union(node, inputs)
            case p.SetOperation():
                return self._set_operation(node, inputs)
            case p.Generate():
                return self._generate(node, inputs[0], outer)
            case p.Expand():
                return self._expand(node, inputs[0], outer)
            case p.Renamed():
                return _renamed(inputs[0], node.outputs)
            case p.LineageBreak():
                return self._break(node, inputs, outer)
            case p.Modify():
                return self._modify(node, inputs, outer)

    def _own(self, node: p.Scan | p.Values | p.CatalogView | p.With | p.Reference | p.Loop, outer: _Env) -> _Relation:
        """A relation without inputs, or one that resolves them by itself."""
        match node:
            case p.Scan():
                return _scan(node)
            case p.Values():
                return _Relation(node.outputs, {output.id: ColumnValue() for output in node.outputs})
            case p.CatalogView():
                return self._view(node, outer)
            case p.With():
                for number, definition in node.definitions:
                    self.definitions[number] = self.resolve(definition, outer)
                return self.resolve(node.body, outer)
            case p.Reference():
                return self._reference(node)
            case p.Loop():
                return self._loop(node, outer)

    # ---- relations by kind -------------------------------------------------------------------------------------

    def _project(self, outputs: Sequence[p.Output], child: _Relation, outer: _Env) -> _Relation:
        env = _env(child.columns, outer)
        columns = {output.id: self._value(output.value, env, child) for output in outputs}
        return _Relation(tuple(p.Named(o.id, o.name) for o in outputs), columns, child.rows, child.reads)

    def _extend(self, node: p.Extend, child: _Relation, outer: _Env) -> _Relation:
        for output in node.outputs:
            child.columns[output.id] = self._value(output.value, _env(child.columns, outer), child)
        child.outputs = (*child.outputs, *(p.Named(o.id, o.name) for o in node.outputs))
        return child

    def _distinct(self, node: p.Distinct, child: _Relation, outer: _Env) -> _Relation:
        if node.keys is not None:
            self._refer_to(node.keys, child, outer, EdgeKind.DISTINCT)
        else:
            for value in child.values():
                child.refer(value.deps, EdgeKind.DISTINCT)
        return child

    def _join(self, node: p.Join, inputs: list[_Relation], outer: _Env) -> _Relation:
        left = inputs[0]
        right = self.resolve(node.right, _env(left.columns, outer)) if node.lateral else inputs[1]
        left.take(right)
        env = _env({**right.columns, **left.columns}, outer)
        marks = {}
        if node.outputs:  # whether a row is met, and all rows stay
            met = ColumnValue() if node.condition is None else self._value(p.Apply("", (node.condition,)), env, left)
            marks = {output.id: met for output in node.outputs}
        elif node.condition is not None:
            left.refer(self._collect(node.condition, env, left, _CONDITIONAL), EdgeKind.JOIN)
        if node.left_only:
            left.columns.update(marks)
            left.outputs = (*left.outputs, *node.outputs)
            return left
        left.columns = {**right.columns, **left.columns, **marks}
        left.outputs = (*left.outputs, *right.outputs, *node.outputs)
        return left

    def _modify(self, node: p.Modify, inputs: list[_Relation], outer: _Env) -> _Relation:
        """As SQL text has it (``govtool/capture/sql/walk/modify.py``): what decides about an UPDATE steers the columns
        that it sets; what decides about an INSERT or a DELETE decides about rows. Each WHEN is an alternative.
        """
        target, source = inputs[0], inputs[1] if len(inputs) > 1 else None
        merges = source is not None
        env = _env({**(source.columns if source is not None else {}), **target.columns}, outer)
        group, self.groups = self.groups, self.groups + merges
        result = _Relation(node.outputs, {})
        given: dict[str, list[ColumnValue]] = {}
        condition_inputs = _Relation((), {}, {}, {})
        if source is not None:
            condition_inputs.take(source)
        on = self._collect(node.on, env, condition_inputs, _CONDITIONAL) if node.on is not None else ()
        for number, clause in enumerate(node.clauses):
            arm = group * _ARMS_PER_GROUP + number + 1 if merges and group < _GROUPS else 0
            own = _Relation((), {}, dict(condition_inputs.rows), dict(condition_inputs.reads))
            when = self._collect(clause.condition, env, own, _CONDITIONAL) if clause.condition is not None else ()
            if clause.action == "update":
                deciding = (compose(dep, _CONDITIONAL) for dep in (*on, *when, *_steering(own.rows)))
                steering = ColumnValue(bounded(deciding))
                for assignment in clause.assignments:
                    inner = _Relation((), {})
                    value = self._value(assignment.value, env, inner)
                    deps = (*value.deps, *_steering(inner.rows), *steering.deps)
                    given.setdefault(assignment.path, []).append(in_arm(ColumnValue(bounded(deps)), arm))
                    own.reads.update(inner.reads)
            else:
                for assignment in clause.assignments:
                    value = self._value(assignment.value, env, own)
                    given.setdefault(assignment.path, []).append(in_arm(value, arm))
                own.refer(on, EdgeKind.JOIN)
                own.refer(when, EdgeKind.FILTER)
                result.rows.update((marked(row, arm), None) for row in own.rows)
            result.reads.update(own.reads)
        of_target = set(target.reads)
        again = source.reads if source is not None and isinstance(_bare(node.source), p.Scan) else {}
        result.reads = {read: None for read in result.reads if read not in of_target or read in again}
        result.columns = {output.id: merged(given[output.name]) for output in result.outputs}
        return result

    def _union(self, node: p.Union, inputs: list[_Relation]) -> _Relation:
        group, self.groups = self.groups, self.groups + 1
        outputs = node.outputs or inputs[0].outputs
        result = _Relation(outputs, {})
        arms: list[list[ColumnValue]] = []
        for number, child in enumerate(inputs):
            arm = group * _ARMS_PER_GROUP + number + 1 if group < _GROUPS and number < _ARMS_PER_GROUP - 1 else 0
            values = [in_arm(value, arm) for value in child.values()]
            result.rows.update((marked(row, arm), None) for row in child.rows)
            result.reads.update(child.reads)
            if not node.distinct:
                for value in values:
                    result.refer(value.deps, EdgeKind.UNION_ALL)
            arms.append(values)
        for position, output in enumerate(outputs):
            result.columns[output.id] = merged([values[position] for values in arms if position < len(values)])
        if node.distinct:
            for value in result.values():
                result.refer(value.deps, EdgeKind.DISTINCT)
        return result

    def _set_operation(self, node: p.SetOperation, inputs: list[_Relation]) -> _Relation:
        self.groups += 1
        left, right = inputs
        left.take(right)
        for side in inputs:
            for value in side.values():
                left.refer(value.deps, EdgeKind.SET_OPERATION)
        return _renamed(left, node.outputs) if node.outputs else left

    def _generate(self, node: p.Generate, child: _Relation, outer: _Env) -> _Relation:
        env = _env(child.columns, outer)
        made = self._generated(node, env, child)
        if node.kept is not None:
            child.outputs = tuple(output for output in child.outputs if output.id in node.kept)
        child.columns.update({output.id: value for output, value in zip(node.outputs, made, strict=True)})
        child.outputs = (*child.outputs, *node.outputs)
        return child

    def _generated(self, node: p.Generate, env: _Env, child: _Relation) -> list[ColumnValue]:
        width = len(node.outputs)
        name = node.name.removesuffix("_outer")
        if node.reason:
            deps = self._collect(p.Opaque(node.reason, node.arguments), env, child, _IDENTITY)
            return [ColumnValue(deps)] * width
        if name == "stack" and node.rows > 0:
            across = -(-len(node.arguments) // node.rows)
            cells = [p.Apply("stack", node.arguments[i::across]) for i in range(min(across, width))]
            made = [self._value(cell, env, child) for cell in cells]
            return [*made, *[ColumnValue()] * (width - len(made))]
        whole = [self._value(argument, env, child) for argument in node.arguments]
        deps = bounded(compose(dep, _TRANSFORMATION, (name,)) for value in whole for dep in value.deps)
        element = whole[0].element if len(whole) == 1 else None
        positions = [ColumnValue()] if name == "posexplode" else []
        if name in ("inline", "explode", "posexplode") and element is not None and not node.map:
            element = mapped(element, lambda dep: compose(dep, _TRANSFORMATION, (name,)))
            if name != "inline":
                return [*positions, element]
            if element.fields is not None and len(element.fields) == width:
                return list(element.fields.values())
        return [*positions, *[ColumnValue(deps)] * (width - len(positions))]

    def _expand(self, node: p.Expand, child: _Relation, outer: _Env) -> _Relation:
        env = _env(child.columns, outer)
        rows = [[self._value(item, env, child) for item in projection] for projection in node.projections]
        columns = {}
        for position, output in enumerate(node.outputs):
            columns[output.id] = merged([row[position] for row in rows if position < len(row)])
        return _Relation(node.outputs, columns, child.rows, child.reads)

    def _view(self, node: p.CatalogView, outer: _Env) -> _Relation:
        if self.expand_views:
            return _renamed(self.resolve(node.child, outer), node.outputs)
        if node.dataset not in self.views:
            inner = PlanWalk(expand_views=False)
            relation = _renamed(inner.resolve(node.child, {}), node.outputs)
            flow = inner.finish(relation)
            self.views.update(flow.views)
            self.views[node.dataset] = replace(flow, views=())
        return _scan(p.Scan(node.dataset, node.outputs))

    def _reference(self, node: p.Reference) -> _Relation:
        known = self.definitions.get(node.definition)
        if known is None:
            self._note("unresolved", f"a common table expression is not defined: {node.definition}")
            return _Relation(node.outputs, {output.id: ColumnValue() for output in node.outputs})
        copied = _Relation(known.outputs, dict(known.columns), dict(known.rows), dict(known.reads))
        return _renamed(copied, node.outputs)

    def _loop(self, node: p.Loop, outer: _Env) -> _Relation:
        """A recursive CTE is iterated until nothing new flows."""
        anchor = self.resolve(node.anchor, outer)
        values = anchor.values()
        for _ in range(MAX_ROUNDS):
            so_far = _Relation(anchor.outputs, dict(zip((o.id for o in anchor.outputs), values, strict=True)))
            self.definitions[node.id] = so_far
            step = self.resolve(node.step, outer)
            together = [merged(pair) for pair in zip(values, step.values(), strict=False)]
            anchor.take(step)
            if [set(value.deps) for value in together] == [set(value.deps) for value in values]:
                break
            values = together
        result = _Relation(
            node.outputs, dict(zip((o.id for o in node.outputs), values, strict=False)), anchor.rows, anchor.reads
        )
        for value in values:
            result.refer(value.deps, EdgeKind.UNION_ALL)
        return result

    def _break(self, node: p.LineageBreak, inputs: list[_Relation], outer: _Env) -> _Relation:
        result = _Relation(node.outputs, {})
        self._note(node.code, node.message)
        sources: dict[Dependency, None] = {}
        for child in inputs:
            self._refer_to(node.keys, child, outer, EdgeKind.GROUP_BY)
            result.take(child)
            for value in child.values():
                for dep in value.deps:
                    reason = dep.reason if dep.kind is _OPAQUE else node.code
                    sources[Dependency(dep.source, _OPAQUE, (), dep.arm, reason)] = None
        if len(sources) * len(node.outputs) > MAX_BREAKS:
            sources = {Dependency(ColumnRef(read, ROWS), _OPAQUE, reason=node.code): None for read in result.reads}
        deps = tuple(sources)
        result.columns = {output.id: ColumnValue(deps) for output in node.outputs}
        result.rows.update(sources)
        return result

    # ---- expressions -----------------------------------------------------------------------------------------

    def _refer_to(self, items: Iterable[p.Expression], relation: _Relation, outer: _Env, kind: EdgeKind) -> None:
        env = _env(relation.columns, outer)
        for item in items:
            relation.refer(self._collect(item, env, relation, _CONDITIONAL), kind)

    def _value(self, item: p.Expression, env: _Env, relation: _Relation) -> ColumnValue:
        """Return the dependencies of an expression, and those of its parts where it builds them."""
        match item:
            case p.Attribute():
                found = env.get(item.id)
                return found if found is not None else self._unresolved(item, relation)
            case p.Field():
                return self._value(item.base, env, relation).step(item.step)
            case p.StructValue():
                fields = {name: self._value(value, env, relation) for name, value in item.fields}
                deps = (compose(d, _TRANSFORMATION, (item.name,)) for value in fields.values() for d in value.deps)
                return ColumnValue(bounded(deps), fields)
            case p.Elements():
                values = [self._value(value, env, relation) for value in item.items]
                whole = mapped(merged(values), lambda d: compose(d, item.kind, (item.name,)))
                part = whole if item.kind is _AGGREGATION else merged(values)
                return ColumnValue(whole.deps, None, part if part.fields is not None else None)
            case p.Let():
                bound = dict(env)
                for number, value in item.bindings:
                    bound[number] = self._value(value, bound, relation)
                return self._value(item.body, bound, relation)
            case p.Apply(kind=EdgeKind.IDENTITY, arguments=(only,)):
                return self._value(only, env, relation)
            case p.Query(value=True):
                inner = self.resolve(item.plan, env)
                relation.take(inner)
                values = inner.values()
                return values[0] if len(values) == 1 else ColumnValue(bounded(d for v in values for d in v.deps))
            case _:
                return ColumnValue(self._collect(item, env, relation, _IDENTITY))

    def _collect(self, root: p.Expression, env: _Env, relation: _Relation, kind: EdgeKind) -> tuple[Dependency, ...]:
        """Return the dependencies inside an expression as seen through ``kind``; deep nesting needs no frames."""
        out: list[Dependency] = []
        stack: list[_Task] = [(root, kind, ())]
        while stack:
            item, kind, functions = stack.pop()
            match item:
                case p.Constant():
                    pass
                case p.Apply():
                    if kind not in STEERING:
                        kind = max(kind, item.kind)
                        functions = (item.name, *functions) if item.name else functions
                    stack.extend((argument, kind, functions) for argument in reversed(item.arguments))
                case p.Conditional():
                    steering = kind if kind in STEERING else item.kind
                    stack.extend((by, steering, ()) for by in reversed(item.by))
                    stack.append((item.value, kind, functions))
                case p.Opaque():
                    for dep in self._collect(p.Apply("", item.arguments), env, relation, _TRANSFORMATION):
                        opaque = (
                            dep if dep.kind is _OPAQUE else Dependency(dep.source, _OPAQUE, (), dep.arm, item.reason)
                        )
                        out.append(compose(opaque, kind, functions))
                case p.Query(value=False):
                    relation.take(self.resolve(item.plan, env))
                case _:
                    out.extend(compose(dep, kind, functions) for dep in self._value(item, env, relation).deps)
        return bounded(out)

    def _unresolved(self, item: p.Attribute, relation: _Relation) -> ColumnValue:
        self._note("unresolved", f"{item.name or 'an attribute'}#{item.id} is nowhere in the plan")
        reads = relation.reads
        return ColumnValue(tuple(Dependency(ColumnRef(read, ROWS), _OPAQUE, reason="unresolved") for read in reads))

    def _note(self, code: str, message: str) -> None:
        self.breaks[Diagnostic(code, "warning", message)] = None


def _steering(rows: Iterable[Dependency]) -> Iterable[Dependency]:
    """Return the influences on rows, as those on a value that is set for them."""
    return (dep if dep.kind is _OPAQUE else dep._replace(kind=_CONDITIONAL, functions=()) for dep in rows)


def _bare(node: p.Node | None) -> p.Node | None:
    """A relation below select lists."""
    while isinstance(node, p.Project | p.Renamed):
        node = node.child
    return node


def _scan(node: p.Scan) -> _Relation:
    paths = node.paths or tuple(output_paths(output.name for output in node.outputs))
    columns = {
        output.id: ColumnValue((Dependency(ColumnRef(node.dataset, path)),))
        for output, path in zip(node.outputs, paths, strict=True)
    }
    return _Relation(node.outputs, columns, {}, {node.dataset: None})


def _renamed(relation: _Relation, outputs: tuple[p.Named, ...]) -> _Relation:
    values = relation.values()
    relation.columns = {output.id: value for output, value in zip(outputs, values, strict=False)}
    relation.outputs = outputs
    return relation


def _env(inner: Mapping[int, ColumnValue], outer: _Env) -> _Env:
    return ChainMap(dict(inner), dict(outer)) if outer else inner
