"""Expressions of a plan: the columns of a relation that each depends on, and how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from govtool.capture.spark import plan as p
from govtool.capture.spark.dependencies import (
    ColumnValue,
    Dependency,
    bounded,
    compose,
    is_certain,
    mapped,
    merged,
)
from govtool.model import ROWS, STEERING, ColumnRef, Diagnostic, EdgeKind

_IDENTITY, _TRANSFORMATION, _AGGREGATION = EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION
_CONDITIONAL, _OPAQUE = EdgeKind.CONDITIONAL, EdgeKind.OPAQUE


@dataclass(slots=True)
class Relation:
    """A relation on the way: its columns by id, and what decides its rows."""

    outputs: tuple[p.Named, ...]
    columns: dict[int, ColumnValue]
    rows: dict[Dependency, None] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)

    def values(self) -> list[ColumnValue]:
        """The dependencies of its columns, in order."""
        return [self.columns.get(output.id, ColumnValue()) for output in self.outputs]

    def refer(self, deps: Iterable[Dependency], kind: EdgeKind) -> None:
        """Record dependencies as referenced by the rows."""
        for dep in deps:
            if dep.kind is _OPAQUE and not is_certain(dep):
                self.rows[dep._replace(functions=())] = None
            else:
                self.rows[Dependency(dep.source, kind, (), dep.arm)] = None

    def take(self, other: Relation) -> None:
        """Take over what decides about another relation, and what it reads."""
        self.rows.update(other.rows)
        self.reads.update(other.reads)


Environment = Mapping[int, ColumnValue]
"""Columns by their ids."""
_Task = tuple[p.Expression, EdgeKind, tuple[str, ...]]


class ExpressionWalk(ABC):
    """Dependencies of expressions; what is not found is noted."""

    def __init__(self) -> None:
        self.breaks: dict[Diagnostic, None] = {}

    @abstractmethod
    def resolve(self, root: p.Node, outer: Environment) -> Relation:
        """Return the relation of a subquery.

        Args:
            root: Its plan.
            outer: Columns of the relation that it stands in.
        """

    def refer_to(self, items: Iterable[p.Expression], relation: Relation, outer: Environment, kind: EdgeKind) -> None:
        """Record what expressions depend on as referenced by the rows of a relation."""
        env = environment(relation.columns, outer)
        for item in items:
            relation.refer(self.collect(item, env, relation, _CONDITIONAL), kind)

    def value(self, item: p.Expression, env: Environment, relation: Relation) -> ColumnValue:
        """Return the dependencies of an expression, and those of its parts where it builds them."""
        match item:
            case p.Attribute():
                found = env.get(item.id)
                return found if found is not None else self._unresolved(item, relation)
            case p.Field():
                return self.value(item.base, env, relation).step(item.step)
            case p.StructValue():
                fields = {name: self.value(value, env, relation) for name, value in item.fields}
                deps = (compose(d, _TRANSFORMATION, (item.name,)) for value in fields.values() for d in value.deps)
                return ColumnValue(bounded(deps), fields)
            case p.Elements():
                values = [self.value(value, env, relation) for value in item.items]
                whole = mapped(merged(values), lambda d: compose(d, item.kind, (item.name,)))
                # An element of array(a, b) is a value as it was; what an aggregate collected has gone through it.
                part = whole if item.kind is _AGGREGATION else merged(values)
                return ColumnValue(whole.deps, None, part if part.fields is not None else None)
            case p.Let():
                bound = dict(env)
                for number, value in item.bindings:
                    bound[number] = self.value(value, bound, relation)
                return self.value(item.body, bound, relation)
            case p.Apply(kind=EdgeKind.IDENTITY, arguments=(only,)):
                return self.value(only, env, relation)
            case p.Query(value=True):
                inner = self.resolve(item.plan, env)
                relation.take(inner)
                values = inner.values()
                return values[0] if len(values) == 1 else ColumnValue(bounded(d for v in values for d in v.deps))
            case _:
                return ColumnValue(self.collect(item, env, relation, _IDENTITY))

    def collect(
        self, root: p.Expression, env: Environment, relation: Relation, kind: EdgeKind
    ) -> tuple[Dependency, ...]:
        """Return the dependencies inside an expression as seen through ``kind``; deep nesting needs no frames."""
        out: list[Dependency] = []
        decides = kind in STEERING  # about rows: what an EXISTS depends on is among them already
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
                    for dep in self.collect(p.Apply("", item.arguments), env, relation, _TRANSFORMATION):
                        opaque = (
                            dep if dep.kind is _OPAQUE else Dependency(dep.source, _OPAQUE, (), dep.arm, item.reason)
                        )
                        out.append(compose(opaque, kind, functions))
                case p.Query(value=False):
                    inner = self.resolve(item.plan, env)
                    relation.take(inner)
                    if not decides:
                        out.extend(influences(inner.rows))
                case _:
                    out.extend(compose(dep, kind, functions) for dep in self.value(item, env, relation).deps)
        return bounded(out)

    def _unresolved(self, item: p.Attribute, relation: Relation) -> ColumnValue:
        self.note("unresolved", f"{item.name or 'an attribute'}#{item.id} is nowhere in the plan")
        reads = relation.reads
        return ColumnValue(tuple(Dependency(ColumnRef(read, ROWS), _OPAQUE, reason="unresolved") for read in reads))

    def note(self, code: str, message: str) -> None:
        """Record that lineage was lost, or is doubtful."""
        self.breaks[Diagnostic(code, "warning", message)] = None


def influences(rows: Iterable[Dependency]) -> Iterable[Dependency]:
    """Return the influences on rows, as those on a value that is set for them."""
    return (dep if dep.kind is _OPAQUE else dep._replace(kind=_CONDITIONAL, functions=()) for dep in rows)


def environment(inner: Mapping[int, ColumnValue], outer: Environment) -> Environment:
    """The columns that an expression may name: those of its relation, and those around it."""
    return ChainMap(dict(inner), dict(outer)) if outer else inner
