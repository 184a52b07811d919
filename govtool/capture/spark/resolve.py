"""A pass over a plan, from its leaves to its root: each relation with what its columns and its rows depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.dependencies import (
    ColumnDependencies,
    ColumnValue,
    Dependency,
    PlanDependencies,
    bounded,
    compose,
    in_arm,
    mapped,
    marked,
    merged,
)
from govtool.capture.spark.expression_walk import Environment, ExpressionWalk, Relation, environment, influences
from govtool.capture.spark.identity import output_paths
from govtool.model import ROWS, ColumnRef, EdgeKind

_IDENTITY, _TRANSFORMATION, _AGGREGATION = EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION
_CONDITIONAL, _OPAQUE = EdgeKind.CONDITIONAL, EdgeKind.OPAQUE

MAX_ROUNDS = 50
MAX_BREAKS = 4096
"""Opaque pairs of columns of one lost step that are written out; beyond, the rows of what was read stand for all."""
_ARMS_PER_GROUP = 1 << 12
_GROUPS = 1 << 4


class PlanWalk(ExpressionWalk):
    """One pass over a plan, from its leaves to its root."""

    def __init__(self, expand_views: bool) -> None:
        super().__init__()
        self.expand_views = expand_views
        self.groups = 0
        self.views: dict[str, PlanDependencies] = {}
        self.definitions: dict[int, Relation] = {}
        self.checkpoints: dict[int, Relation] = {}

    def finish(self, relation: Relation) -> PlanDependencies:
        """Finish the lineage of a relation, with the places where it was lost."""
        columns = [
            ColumnDependencies(output.name, value.deps)
            for output, value in zip(relation.outputs, relation.values(), strict=True)
        ]
        return PlanDependencies(
            tuple(columns), tuple(relation.rows), tuple(relation.reads), tuple(self.breaks), tuple(self.views.items())
        )

    # ---- the order -------------------------------------------------------------------------------------------

    def resolve(self, root: p.Node, outer: Environment) -> Relation:
        """Return the relation of a node. A chain of a thousand projections needs no Python frames.

        Args:
            root: The node.
            outer: Columns of the relation that a subquery stands in.
        """
        done: list[Relation] = []
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

    def _node(self, node: p.Node, inputs: list[Relation], outer: Environment) -> Relation:
        match node:
            case p.Scan() | p.Values() | p.CatalogView() | p.With() | p.Reference() | p.Loop() | p.Checkpoint():
                return self._own(node, outer)
            case p.Project():
                return self._project(node.outputs, inputs[0], outer)
            case p.Extend():
                return self._extend(node, inputs[0], outer)
            case p.Filter():
                self.refer_to((node.condition,), inputs[0], outer, EdgeKind.FILTER)
                return inputs[0]
            case p.Sort():
                self.refer_to(node.keys, inputs[0], outer, EdgeKind.SORT)
                return inputs[0]
            case p.Distinct():
                return self._distinct(node, inputs[0], outer)
            case p.Aggregate():
                self.refer_to(node.keys, inputs[0], outer, EdgeKind.GROUP_BY)
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

    def _own(
        self,
        node: p.Scan | p.Values | p.CatalogView | p.With | p.Reference | p.Loop | p.Checkpoint,
        outer: Environment,
    ) -> Relation:
        """A relation without inputs, or one that resolves them by itself."""
        match node:
            case p.Scan():
                return _scan(node)
            case p.Values():
                return Relation(node.outputs, {output.id: ColumnValue() for output in node.outputs})
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
            case p.Checkpoint():
                return self._checkpoint(node)

    # ---- relations by kind -------------------------------------------------------------------------------------

    def _project(self, outputs: Sequence[p.Output], child: Relation, outer: Environment) -> Relation:
        env = environment(child.columns, outer)
        columns = {output.id: self.value(output.value, env, child) for output in outputs}
        return Relation(tuple(p.Named(o.id, o.name) for o in outputs), columns, child.rows, child.reads)

    def _extend(self, node: p.Extend, child: Relation, outer: Environment) -> Relation:
        for output in node.outputs:
            child.columns[output.id] = self.value(output.value, environment(child.columns, outer), child)
        child.outputs = (*child.outputs, *(p.Named(o.id, o.name) for o in node.outputs))
        return child

    def _distinct(self, node: p.Distinct, child: Relation, outer: Environment) -> Relation:
        if node.keys is not None:
            self.refer_to(node.keys, child, outer, EdgeKind.DISTINCT)
        else:
            for value in child.values():
                child.refer(value.deps, EdgeKind.DISTINCT)
        return child

    def _join(self, node: p.Join, inputs: list[Relation], outer: Environment) -> Relation:
        left = inputs[0]
        right = self.resolve(node.right, environment(left.columns, outer)) if node.lateral else inputs[1]
        left.take(right)
        env = environment({**right.columns, **left.columns}, outer)
        marks = {}
        if node.outputs:  # whether a row is met, and all rows stay
            met = ColumnValue() if node.condition is None else self.value(p.Apply("", (node.condition,)), env, left)
            marks = {output.id: met for output in node.outputs}
        elif node.condition is not None:
            left.refer(self.collect(node.condition, env, left, _CONDITIONAL), EdgeKind.JOIN)
        if node.left_only:
            left.columns.update(marks)
            left.outputs = (*left.outputs, *node.outputs)
            return left
        left.columns = {**right.columns, **left.columns, **marks}
        left.outputs = (*left.outputs, *right.outputs, *node.outputs)
        return left

    def _modify(self, node: p.Modify, inputs: list[Relation], outer: Environment) -> Relation:
        """As SQL text has it (``govtool/capture/sql/walk/writing/modify.py``).

        What decides about an UPDATE steers the columns that it sets; what decides about an INSERT or a DELETE decides
        about rows. Each WHEN is an alternative.
        """
        target, source = inputs[0], inputs[1] if len(inputs) > 1 else None
        merges = source is not None
        env = environment({**(source.columns if source is not None else {}), **target.columns}, outer)
        group, self.groups = self.groups, self.groups + merges
        result = Relation(node.outputs, {})
        given: dict[str, list[ColumnValue]] = {}
        condition_inputs = Relation((), {}, {}, {})
        if source is not None:
            condition_inputs.take(source)
        on = self.collect(node.on, env, condition_inputs, _CONDITIONAL) if node.on is not None else ()
        for number, clause in enumerate(node.clauses):
            # An edge has room for so many groups; beyond them, alternatives are not told apart.
            arm = group * _ARMS_PER_GROUP + number + 1 if merges and group < _GROUPS else 0
            own = Relation((), {}, dict(condition_inputs.rows), dict(condition_inputs.reads))
            when = self.collect(clause.condition, env, own, _CONDITIONAL) if clause.condition is not None else ()
            if clause.action == "update":
                deciding = (compose(dep, _CONDITIONAL) for dep in (*on, *when, *influences(own.rows)))
                steering = ColumnValue(bounded(deciding))
                for assignment in clause.assignments:
                    inner = Relation((), {})
                    value = self.value(assignment.value, env, inner)
                    deps = (*value.deps, *influences(inner.rows), *steering.deps)
                    given.setdefault(assignment.path, []).append(in_arm(ColumnValue(bounded(deps)), arm))
                    own.reads.update(inner.reads)
            else:
                for assignment in clause.assignments:
                    value = self.value(assignment.value, env, own)
                    given.setdefault(assignment.path, []).append(in_arm(value, arm))
                own.refer(on, EdgeKind.JOIN)
                own.refer(when, EdgeKind.FILTER)
                result.rows.update((marked(row, arm), None) for row in own.rows)
            result.reads.update(own.reads)
        # The target's rows are changed and not read, unless the source reads the same table.
        of_target = set(target.reads)
        again = source.reads if source is not None and isinstance(_bare(node.source), p.Scan) else {}
        result.reads = {read: None for read in result.reads if read not in of_target or read in again}
        result.columns = {output.id: merged(given[output.name]) for output in result.outputs}
        return result

    def _union(self, node: p.Union, inputs: list[Relation]) -> Relation:
        group, self.groups = self.groups, self.groups + 1
        outputs = node.outputs or inputs[0].outputs
        result = Relation(outputs, {})
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

    def _set_operation(self, node: p.SetOperation, inputs: list[Relation]) -> Relation:
        self.groups += 1
        left, right = inputs
        left.take(right)
        for side in inputs:
            for value in side.values():
                left.refer(value.deps, EdgeKind.SET_OPERATION)
        return _renamed(left, node.outputs) if node.outputs else left

    def _generate(self, node: p.Generate, child: Relation, outer: Environment) -> Relation:
        env = environment(child.columns, outer)
        made = self._generated(node, env, child)
        if node.kept is not None:
            child.outputs = tuple(output for output in child.outputs if output.id in node.kept)
        child.columns.update({output.id: value for output, value in zip(node.outputs, made, strict=True)})
        child.outputs = (*child.outputs, *node.outputs)
        return child

    def _generated(self, node: p.Generate, env: Environment, child: Relation) -> list[ColumnValue]:
        width = len(node.outputs)
        name = node.name.removesuffix("_outer")
        if node.reason:
            deps = self.collect(p.Opaque(node.reason, node.arguments), env, child, _IDENTITY)
            return [ColumnValue(deps)] * width
        if name == "stack" and node.rows > 0:
            # stack(2, a, b, c, d) fills rows one after the other: its first column has a and c.
            across = -(-len(node.arguments) // node.rows)
            cells = [p.Apply("stack", node.arguments[i::across]) for i in range(min(across, width))]
            made = [self.value(cell, env, child) for cell in cells]
            return [*made, *[ColumnValue()] * (width - len(made))]
        whole = [self.value(argument, env, child) for argument in node.arguments]
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

    def _expand(self, node: p.Expand, child: Relation, outer: Environment) -> Relation:
        env = environment(child.columns, outer)
        rows = [[self.value(item, env, child) for item in projection] for projection in node.projections]
        columns = {}
        for position, output in enumerate(node.outputs):
            columns[output.id] = merged([row[position] for row in rows if position < len(row)])
        return Relation(node.outputs, columns, child.rows, child.reads)

    def _view(self, node: p.CatalogView, outer: Environment) -> Relation:
        if self.expand_views:
            return _renamed(self.resolve(node.child, outer), node.outputs)
        if node.dataset not in self.views:
            inner = PlanWalk(expand_views=False)
            relation = _renamed(inner.resolve(node.child, {}), node.outputs)
            flow = inner.finish(relation)
            self.views.update(flow.views)
            self.views[node.dataset] = replace(flow, views=())
        return _scan(p.Scan(node.dataset, node.outputs))

    def _reference(self, node: p.Reference) -> Relation:
        known = self.definitions.get(node.definition)
        if known is None:
            self.note("unresolved", f"a common table expression is not defined: {node.definition}")
            return Relation(node.outputs, {output.id: ColumnValue() for output in node.outputs})
        return _renamed(_copied(known), node.outputs)

    def _checkpoint(self, node: p.Checkpoint) -> Relation:
        """Each checkpoint is walked once, the first first: those of a long loop read the one before, in many places."""
        waiting = [node]
        while waiting:
            last = waiting[-1]
            below = [each for each in _checkpoints_in(last.child) if each.number not in self.checkpoints]
            waiting += below
            if not below:
                waiting.pop()
                if last.number not in self.checkpoints:
                    self.checkpoints[last.number] = self.resolve(last.child, {})
        return _copied(self.checkpoints[node.number])

    def _loop(self, node: p.Loop, outer: Environment) -> Relation:
        """A recursive CTE is iterated until nothing new flows."""
        anchor = self.resolve(node.anchor, outer)
        values = anchor.values()
        for _ in range(MAX_ROUNDS):
            so_far = Relation(anchor.outputs, dict(zip((o.id for o in anchor.outputs), values, strict=True)))
            self.definitions[node.id] = so_far
            step = self.resolve(node.step, outer)
            if len(step.outputs) != len(anchor.outputs):
                self.note("unresolved", "a recursive query whose steps have other columns than its anchor")
                break
            together = [merged(pair) for pair in zip(values, step.values(), strict=True)]
            anchor.take(step)
            if [set(value.deps) for value in together] == [set(value.deps) for value in values]:
                break
            values = together
        result = Relation(
            node.outputs, dict(zip((o.id for o in node.outputs), values, strict=False)), anchor.rows, anchor.reads
        )
        for value in values:
            result.refer(value.deps, EdgeKind.UNION_ALL)
        return result

    def _break(self, node: p.LineageBreak, inputs: list[Relation], outer: Environment) -> Relation:
        result = Relation(node.outputs, {})
        self.note(node.code, node.message)
        sources: dict[Dependency, None] = {}
        for child in inputs:
            self.refer_to(node.keys, child, outer, EdgeKind.GROUP_BY)
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


def _bare(node: p.Node | None) -> p.Node | None:
    """A relation below select lists."""
    while isinstance(node, p.Project | p.Renamed):
        node = node.child
    return node


def _scan(node: p.Scan) -> Relation:
    paths = node.paths or tuple(output_paths(output.name for output in node.outputs))
    columns = {
        output.id: ColumnValue((Dependency(ColumnRef(node.dataset, path)),))
        for output, path in zip(node.outputs, paths, strict=True)
    }
    return Relation(node.outputs, columns, {}, {node.dataset: None})


def _checkpoints_in(root: p.Node) -> Iterator[p.Checkpoint]:
    """The checkpoints that a plan reads itself; those in subqueries are few, and are left to their own walk."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, p.Checkpoint):
            yield node
        else:
            waiting += p.relations_below(node)


def _copied(known: Relation) -> Relation:
    return Relation(known.outputs, dict(known.columns), dict(known.rows), dict(known.reads))


def _renamed(relation: Relation, outputs: tuple[p.Named, ...]) -> Relation:
    values = relation.values()
    relation.columns = {output.id: value for output, value in zip(outputs, values, strict=False)}
    relation.outputs = outputs
    return relation
