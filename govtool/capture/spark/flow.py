"""From a plan to what flows into its columns: attributes by expression id become dependencies on base columns.

The meaning of every edge is that of the SQL extractor (docs/architecture.md): a column depends on base columns in a
kind (`identity`, `transformation`, `aggregation`, `conditional`, `window`, `opaque`) through functions; the rows of a
relation depend on columns in others (`join`, `filter`, `group_by` …); and composing two steps is the same table
(``govtool/capture/sql/walk/dependencies.py``).

    >>> from govtool.capture.spark.plan import Apply, Attribute, Named, Output, Project, Scan
    >>> users = Scan("crm.users", (Named(1, "id"), Named(2, "Email")))
    >>> flow = flow_of(Project(users, (Output(3, "mail", Apply("lower", (Attribute(2),))),)))
    >>> [(d.source.text, d.kind.label, d.functions) for d in flow.columns[0].dependencies]
    [('crm.users.email', 'transformation', ('lower',))]
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from govtool.capture.spark import plan as p
from govtool.capture.spark.identity import column_path
from govtool.model import ROWS, STEERING, ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.functions import is_masking
from govtool.names import DEFAULT_NAMESPACE

_IDENTITY, _TRANSFORMATION, _AGGREGATION = EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION
_CONDITIONAL, _OPAQUE = EdgeKind.CONDITIONAL, EdgeKind.OPAQUE

UDFS = ("python-udf", "jvm-udf")
"""Reasons that begin so are of functions whose arguments are certain: only what they do with them is not known."""

MAX_CHAIN = 32
MAX_VARIANTS = 256
MAX_ROUNDS = 50
MAX_LOST = 4096
"""Opaque pairs of columns of one lost step that are written out; beyond, the rows of what was read stand for all."""
_ARMS_PER_GROUP = 1 << 12
_GROUPS = 1 << 4


class Dependency(NamedTuple):
    """What a column depends on, and how."""

    source: ColumnRef
    kind: EdgeKind = EdgeKind.IDENTITY
    functions: tuple[str, ...] = ()
    """Innermost first."""
    arm: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """An output column and what it depends on."""

    name: str
    dependencies: tuple[Dependency, ...]
    is_path: bool = False
    """The name is a canonical path already: of a column, or a field, that UPDATE or MERGE assigns."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What a plan says of its output."""

    columns: tuple[Column, ...] = ()
    """By position."""
    rows: tuple[Dependency, ...] = ()
    """What decides which rows there are: row-set kinds, and `OPAQUE`."""
    reads: tuple[str, ...] = ()
    """Datasets, in order; views of the catalog, not what is behind them."""
    breaks: tuple[Diagnostic, ...] = ()
    """Where lineage was lost, or an attribute could not be found."""
    views: tuple[tuple[str, Flow], ...] = ()
    """Views of the catalog that were read, and what they say; each once."""


def flow_of(plan: p.Node, *, expand_views: bool = False) -> Flow:
    """Return what flows into the output of a plan.

    Args:
        plan: The plan.
        expand_views: See through views of the catalog, as a physical plan does.
    """
    walk = _Walk(expand_views)
    flow = walk.finish(walk.resolve(plan, {}))
    if isinstance(plan, p.Modify):
        return replace(flow, columns=tuple(replace(column, is_path=True) for column in flow.columns))
    return flow


def derivation(
    flow: Flow,
    target: str,
    statement: Statement,
    *,
    target_kind: str,
    mode: str,
    columns: Sequence[str] | None = None,
    types: Sequence[str | None] = (),
    namespace: str = DEFAULT_NAMESPACE,
) -> Derivation:
    """Return what a write says of its target.

    Args:
        flow: Of what is written.
        target: Canonical id of the dataset that is written.
        statement: The evidence.
        target_kind: As in `Derivation`.
        mode: As in `Derivation`.
        columns: Column paths of the target, by position; by default those of the flow's names.
        types: Of the columns, by position.
        namespace: Of the target.
    """
    paths = list(columns) if columns is not None else paths_of(flow.columns)
    edges: dict[Edge, None] = {}
    for path, column in zip(paths, flow.columns, strict=False):
        edges.update(dict.fromkeys(_edge(dependency, path) for dependency in column.dependencies))
    edges.update(dict.fromkeys(_edge(dependency, ROWS) for dependency in flow.rows))
    edges.update((Edge(ColumnRef(read, ROWS), ROWS, EdgeKind.READ), None) for read in flow.reads)
    complete = len(paths) >= len(flow.columns)
    notes = flow.breaks
    if not complete:
        text = f"{len(flow.columns)} columns are written and {len(paths)} of the target are known"
        notes = (*notes, Diagnostic("arity", "warning", text, target=target))
    padded = [*types, *[None] * len(paths)]
    return Derivation(
        target=target,
        target_kind=target_kind,
        mode=mode,
        statement=statement,
        columns=tuple(OutputColumn(path, type_) for path, type_ in zip(paths, padded, strict=False)),
        columns_complete=complete,
        edges=tuple(edges),
        status="partial" if notes or any(edge.kind is _OPAQUE for edge in edges) else "understood",
        diagnostics=tuple(replace(note, target=note.target or target) for note in notes),
        namespace=namespace,
    )


def paths_of(columns: Sequence[Column]) -> list[str]:
    """Paths of the columns of a flow."""
    paths = output_paths([column.name for column in columns])
    return [column.name if column.is_path else path for column, path in zip(columns, paths, strict=True)]


def output_paths(names: Iterable[str]) -> list[str]:
    """Paths of output columns by their names: folded, and ``_c0``, ``_c1`` … by position where there is none."""
    return [column_path(name) if name else f"_c{position}" for position, name in enumerate(names)]


def _edge(dependency: Dependency, path: str) -> Edge:
    source, kind, functions, arm, reason = dependency
    return Edge(source, path, kind, functions, arm=arm, masking=is_masking(functions), reason=reason)


# ---- dependencies -----------------------------------------------------------------------------------------


def compose(inner: Dependency, kind: EdgeKind, functions: tuple[str, ...] = ()) -> Dependency:
    """Return a dependency as seen through an outer step: what steers once never becomes a value again, an aggregation
    stays one, and what is opaque stays opaque, unless a Python function with certain arguments only steers.
    """
    if inner.kind is _OPAQUE:
        if kind in STEERING and _is_certain(inner):
            return inner._replace(kind=kind, reason=None)
        return inner
    if kind in STEERING:
        return inner if inner.kind is kind else inner._replace(kind=kind)
    if inner.kind in STEERING or (kind is _IDENTITY and not functions):
        return inner
    return inner._replace(kind=max(inner.kind, kind), functions=_shortened(inner.functions + functions))


def _is_certain(dependency: Dependency) -> bool:
    return (dependency.reason or "").startswith(UDFS)


def _shortened(functions: tuple[str, ...]) -> tuple[str, ...]:
    """Drop neighbours that repeat, and cap the length."""
    kept = tuple(name for i, name in enumerate(functions) if not i or functions[i - 1] != name)
    if len(kept) > MAX_CHAIN:
        kept = (*kept[: MAX_CHAIN // 2], "…", *kept[-MAX_CHAIN // 2 :])
    return kept


def _bounded(dependencies: Iterable[Dependency]) -> tuple[Dependency, ...]:
    unique = tuple(dict.fromkeys(dependencies))
    if len(unique) <= MAX_VARIANTS:
        return unique
    return tuple(dict.fromkeys(dependency._replace(functions=()) for dependency in unique))


@dataclass(frozen=True, slots=True)
class _Value:
    """What a column depends on, and what its parts do where it was built here."""

    deps: tuple[Dependency, ...] = ()
    fields: Mapping[str, _Value] | None = None
    element: _Value | None = None

    def step(self, step: str) -> _Value:
        """Return a part of the value: a field, an element, what is under a key."""
        if step == "[]" and self.element is not None:
            return self.element
        if self.fields is not None and step in self.fields:
            return self.fields[step]
        if self.element is not None and self.element.fields is not None and step in self.element.fields:
            return self.element.fields[step]  # items.price: the prices of all items
        return _Value(tuple(dict.fromkeys(_below(dep, step) for dep in self.deps)))


def _below(dep: Dependency, step: str) -> Dependency:
    if dep.kind is not _IDENTITY or dep.functions:
        return compose(dep, _TRANSFORMATION)
    path = dep.source.path
    return dep._replace(source=ColumnRef(dep.source.dataset, f"{path}{step}" if step[0] == "[" else f"{path}.{step}"))


def _mapped(value: _Value, change: Callable[[Dependency], Dependency]) -> _Value:
    """Return a value with every dependency changed, those of its parts too."""
    return _Value(
        tuple(dict.fromkeys(change(dep) for dep in value.deps)),
        None if value.fields is None else {name: _mapped(part, change) for name, part in value.fields.items()},
        None if value.element is None else _mapped(value.element, change),
    )


def _merged(values: Sequence[_Value]) -> _Value:
    """Return what is any of several values; parts are known where all of them know them."""
    if len(values) == 1:
        return values[0]
    fields: Mapping[str, _Value] | None = None
    if values and all(value.fields is not None for value in values):
        known = [value.fields or {} for value in values]
        shared = [name for name in known[0] if all(name in each for each in known)]
        fields = {name: _merged([each[name] for each in known]) for name in shared}
    elements = [value.element for value in values if value.element is not None]
    return _Value(
        _bounded(dep for value in values for dep in value.deps),
        fields,
        _merged(elements) if elements and len(elements) == len(values) else None,
    )


# ---- relations ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Relation:
    """A relation on the way: its columns by id, and what decides its rows."""

    outputs: tuple[p.Named, ...]
    columns: dict[int, _Value]
    rows: dict[Dependency, None] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)

    def values(self) -> list[_Value]:
        return [self.columns.get(output.id, _Value()) for output in self.outputs]

    def refer(self, deps: Iterable[Dependency], kind: EdgeKind) -> None:
        """Record dependencies as referenced by the rows."""
        for dep in deps:
            if dep.kind is _OPAQUE and not _is_certain(dep):
                self.rows[dep._replace(functions=())] = None
            else:
                self.rows[Dependency(dep.source, kind, (), dep.arm)] = None

    def take(self, other: _Relation) -> None:
        """Take over what decides about another relation, and what it reads."""
        self.rows.update(other.rows)
        self.reads.update(other.reads)


_Env = Mapping[int, _Value]
_Task = tuple[p.Expression, EdgeKind, tuple[str, ...]]


class _Walk:
    """One pass over a plan, from its leaves to its root."""

    def __init__(self, expand_views: bool) -> None:
        self.expand_views = expand_views
        self.groups = 0
        self.breaks: dict[Diagnostic, None] = {}
        self.views: dict[str, Flow] = {}
        self.definitions: dict[int, _Relation] = {}

    def finish(self, relation: _Relation) -> Flow:
        columns = [
            Column(output.name, value.deps) for output, value in zip(relation.outputs, relation.values(), strict=True)
        ]
        return Flow(
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
            case p.Scan():
                return _scan(node)
            case p.Values():
                return _Relation(node.outputs, {output.id: _Value() for output in node.outputs})
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
            case p.View():
                return self._view(node, outer)
            case p.With():
                for number, definition in node.definitions:
                    self.definitions[number] = self.resolve(definition, outer)
                return self.resolve(node.body, outer)
            case p.Reference():
                return self._reference(node)
            case p.Loop():
                return self._loop(node, outer)
            case p.Renamed():
                return _renamed(inputs[0], node.outputs)
            case p.Lost():
                return self._lost(node, inputs, outer)
            case p.Modify():
                return self._modify(node, inputs, outer)

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
        if node.condition is not None:
            left.refer(self._collect(node.condition, env, left, _CONDITIONAL), EdgeKind.JOIN)
        marks = {output.id: _Value() for output in node.outputs}
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
        given: dict[str, list[_Value]] = {}
        asked = _Relation((), {}, {}, {})
        if source is not None:
            asked.take(source)
        on = self._collect(node.on, env, asked, _CONDITIONAL) if node.on is not None else ()
        for number, clause in enumerate(node.clauses):
            arm = group * _ARMS_PER_GROUP + number + 1 if merges and group < _GROUPS else 0
            own = _Relation((), {}, dict(asked.rows), dict(asked.reads))
            when = self._collect(clause.condition, env, own, _CONDITIONAL) if clause.condition is not None else ()
            if clause.action == "update":
                deciding = (compose(dep, _CONDITIONAL) for dep in (*on, *when, *_steering(own.rows)))
                steering = _Value(_bounded(deciding))
                for assignment in clause.assignments:
                    inner = _Relation((), {})
                    value = self._value(assignment.value, env, inner)
                    deps = (*value.deps, *_steering(inner.rows), *steering.deps)
                    given.setdefault(assignment.path, []).append(_in_arm(_Value(_bounded(deps)), arm))
                    own.reads.update(inner.reads)
            else:
                for assignment in clause.assignments:
                    value = self._value(assignment.value, env, own)
                    given.setdefault(assignment.path, []).append(_in_arm(value, arm))
                own.refer(on, EdgeKind.JOIN)
                own.refer(when, EdgeKind.FILTER)
                result.rows.update((_marked(row, arm), None) for row in own.rows)
            result.reads.update(own.reads)
        of_target = set(target.reads)
        again = source.reads if source is not None and isinstance(_bare(node.source), p.Scan) else {}
        result.reads = {read: None for read in result.reads if read not in of_target or read in again}
        result.columns = {output.id: _merged(given[output.name]) for output in result.outputs}
        return result

    def _union(self, node: p.Union, inputs: list[_Relation]) -> _Relation:
        group, self.groups = self.groups, self.groups + 1
        outputs = node.outputs or inputs[0].outputs
        result = _Relation(outputs, {})
        arms: list[list[_Value]] = []
        for number, child in enumerate(inputs):
            arm = group * _ARMS_PER_GROUP + number + 1 if group < _GROUPS and number < _ARMS_PER_GROUP - 1 else 0
            values = [_in_arm(value, arm) for value in child.values()]
            result.rows.update((_marked(row, arm), None) for row in child.rows)
            result.reads.update(child.reads)
            if not node.distinct:
                for value in values:
                    result.refer(value.deps, EdgeKind.UNION_ALL)
            arms.append(values)
        for position, output in enumerate(outputs):
            result.columns[output.id] = _merged([values[position] for values in arms if position < len(values)])
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

    def _generated(self, node: p.Generate, env: _Env, child: _Relation) -> list[_Value]:
        width = len(node.outputs)
        name = node.name.removesuffix("_outer")
        if node.reason:
            deps = self._collect(p.Opaque(node.reason, node.arguments), env, child, _IDENTITY)
            return [_Value(deps)] * width
        if name == "stack" and node.rows > 0:
            across = -(-len(node.arguments) // node.rows)
            cells = [p.Apply("stack", node.arguments[i::across]) for i in range(min(across, width))]
            made = [self._value(cell, env, child) for cell in cells]
            return [*made, *[_Value()] * (width - len(made))]
        whole = [self._value(argument, env, child) for argument in node.arguments]
        deps = _bounded(compose(dep, _TRANSFORMATION, (name,)) for value in whole for dep in value.deps)
        element = whole[0].element if len(whole) == 1 else None
        positions = [_Value()] if name == "posexplode" else []
        if name in ("inline", "explode", "posexplode") and element is not None and not node.map:
            element = _mapped(element, lambda dep: compose(dep, _TRANSFORMATION, (name,)))
            if name != "inline":
                return [*positions, element]
            if element.fields is not None and len(element.fields) == width:
                return list(element.fields.values())
        return [*positions, *[_Value(deps)] * (width - len(positions))]

    def _expand(self, node: p.Expand, child: _Relation, outer: _Env) -> _Relation:
        env = _env(child.columns, outer)
        rows = [[self._value(item, env, child) for item in projection] for projection in node.projections]
        columns = {}
        for position, output in enumerate(node.outputs):
            merged = _merged([row[position] for row in rows if position < len(row)])
            columns[output.id] = merged
        return _Relation(node.outputs, columns, child.rows, child.reads)

    def _view(self, node: p.View, outer: _Env) -> _Relation:
        if self.expand_views:
            return _renamed(self.resolve(node.child, outer), node.outputs)
        if node.dataset not in self.views:
            inner = _Walk(expand_views=False)
            relation = _renamed(inner.resolve(node.child, {}), node.outputs)
            flow = inner.finish(relation)
            self.views.update(flow.views)
            self.views[node.dataset] = replace(flow, views=())
        return _scan(p.Scan(node.dataset, node.outputs))

    def _reference(self, node: p.Reference) -> _Relation:
        known = self.definitions.get(node.definition)
        if known is None:
            self._note("unresolved", f"a common table expression is not defined: {node.definition}")
            return _Relation(node.outputs, {output.id: _Value() for output in node.outputs})
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
            merged = [_merged(pair) for pair in zip(values, step.values(), strict=False)]
            anchor.take(step)
            if [set(value.deps) for value in merged] == [set(value.deps) for value in values]:
                break
            values = merged
        result = _Relation(
            node.outputs, dict(zip((o.id for o in node.outputs), values, strict=False)), anchor.rows, anchor.reads
        )
        for value in values:
            result.refer(value.deps, EdgeKind.UNION_ALL)
        return result

    def _lost(self, node: p.Lost, inputs: list[_Relation], outer: _Env) -> _Relation:
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
        if len(sources) * len(node.outputs) > MAX_LOST:
            sources = {Dependency(ColumnRef(read, ROWS), _OPAQUE, reason=node.code): None for read in result.reads}
        deps = tuple(sources)
        result.columns = {output.id: _Value(deps) for output in node.outputs}
        result.rows.update(sources)
        return result

    # ---- expressions -----------------------------------------------------------------------------------------

    def _refer_to(self, items: Iterable[p.Expression], relation: _Relation, outer: _Env, kind: EdgeKind) -> None:
        env = _env(relation.columns, outer)
        for item in items:
            relation.refer(self._collect(item, env, relation, _CONDITIONAL), kind)

    def _value(self, item: p.Expression, env: _Env, relation: _Relation) -> _Value:
        """Return the dependencies of an expression, and those of its parts where it builds them."""
        match item:
            case p.Attribute():
                found = env.get(item.id)
                return found if found is not None else self._unresolved(item, relation)
            case p.Field():
                return self._value(item.base, env, relation).step(item.step)
            case p.Record():
                fields = {name: self._value(value, env, relation) for name, value in item.fields}
                deps = (compose(d, _TRANSFORMATION, (item.name,)) for value in fields.values() for d in value.deps)
                return _Value(_bounded(deps), fields)
            case p.Elements():
                values = [self._value(value, env, relation) for value in item.items]
                whole = _mapped(_merged(values), lambda d: compose(d, item.kind, (item.name,)))
                part = whole if item.kind is _AGGREGATION else _merged(values)
                return _Value(whole.deps, None, part if part.fields is not None else None)
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
                return values[0] if len(values) == 1 else _Value(_bounded(d for v in values for d in v.deps))
            case _:
                return _Value(self._collect(item, env, relation, _IDENTITY))

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
                case p.Steered():
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
        return _bounded(out)

    def _unresolved(self, item: p.Attribute, relation: _Relation) -> _Value:
        self._note("unresolved", f"{item.name or 'an attribute'}#{item.id} is nowhere in the plan")
        reads = relation.reads
        return _Value(tuple(Dependency(ColumnRef(read, ROWS), _OPAQUE, reason="unresolved") for read in reads))

    def _note(self, code: str, message: str) -> None:
        self.breaks[Diagnostic(code, "warning", message)] = None


def _steering(rows: Iterable[Dependency]) -> Iterable[Dependency]:
    """What decides about rows, as it decides about a value that is set for them."""
    return (dep if dep.kind is _OPAQUE else dep._replace(kind=_CONDITIONAL, functions=()) for dep in rows)


def _bare(node: p.Node | None) -> p.Node | None:
    """A relation below select lists."""
    while isinstance(node, p.Project | p.Renamed):
        node = node.child
    return node


def _scan(node: p.Scan) -> _Relation:
    paths = node.paths or tuple(output_paths(output.name for output in node.outputs))
    columns = {
        output.id: _Value((Dependency(ColumnRef(node.dataset, path)),))
        for output, path in zip(node.outputs, paths, strict=True)
    }
    return _Relation(node.outputs, columns, {}, {node.dataset: None})


def _renamed(relation: _Relation, outputs: tuple[p.Named, ...]) -> _Relation:
    values = relation.values()
    relation.columns = {output.id: value for output, value in zip(outputs, values, strict=False)}
    relation.outputs = outputs
    return relation


def _env(inner: Mapping[int, _Value], outer: _Env) -> _Env:
    return ChainMap(dict(inner), dict(outer)) if outer else inner


def _marked(dep: Dependency, arm: int) -> Dependency:
    return dep._replace(arm=arm) if arm else dep


def _in_arm(value: _Value, arm: int) -> _Value:
    return _mapped(value, lambda dep: _marked(dep, arm)) if arm else value
