"""Expressions: which columns are inside, in which kind, through which functions.

One pass with an explicit stack, so that a chain of ten thousand ORs needs no Python frames. A node's class decides once
and for all what happens to its children (``_role``); the few that need more have a method each, in ``choices``,
``calls`` and ``fields``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ColumnWalk
from govtool.capture.sql.walk.dependencies import (
    AGGREGATION,
    CHAIN_MASK,
    CHAIN_SHIFT,
    CONDITIONAL,
    IDENTITY,
    KIND_MASK,
    OPAQUE,
    STAR,
    TRANSFORMATION,
    Deps,
    bounded,
    compose,
)
from govtool.capture.sql.walk.functions import function_name
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import ROW_OF, ROW_OF_OPAQUE

Column = nodes.Column

COMPOSED_BITS: Final = KIND_MASK | CHAIN_MASK
UNSTARRED: Final = ~STAR

Task = tuple[Any, int, int]
"""A node, the kind of the way from it to the output, and the chain of functions on that way."""


class Visit:
    """The context of a handler of one class of nodes."""

    __slots__ = ("env", "out", "scope", "stack")

    def __init__(self, scope: Scope, env: Environment | None, stack: list[Task], out: list[int]) -> None:
        self.scope = scope
        self.env = env
        self.stack = stack
        self.out = out


LEAF, PASS, GENERIC, FUNCTION, AGGREGATE, COLUMN, SPECIAL = range(7)

_LEAVES: Final = (
    nodes.Literal, nodes.Identifier, nodes.DataType, nodes.Null, nodes.Boolean, nodes.Var,
    nodes.JSONPath, nodes.National, nodes.RawString, nodes.HexString, nodes.BitString,
    nodes.ByteString, nodes.UnicodeString, nodes.CurrentDate, nodes.CurrentTimestamp, nodes.CurrentTime,
    nodes.CurrentUser, nodes.SessionParameter, nodes.WindowSpec, nodes.Heredoc, nodes.Hint,
)  # fmt: skip
_PASSING: Final = (
    nodes.Paren, nodes.Alias, nodes.Ordered, nodes.Distinct, nodes.IgnoreNulls, nodes.RespectNulls, nodes.Tuple,
    nodes.Prior, nodes.Final, nodes.Kwarg, nodes.Where, nodes.Having, nodes.Qualify, nodes.Group, nodes.Order,
    nodes.Aliases,
)  # fmt: skip

_roles: Final[dict[type, int]] = {**dict.fromkeys(_LEAVES, LEAF), **dict.fromkeys(_PASSING, PASS), nodes.Column: COLUMN}
_handlers: Final[dict[type, str]] = {
    nodes.Case: "_case",
    nodes.If: "_if",
    nodes.Nvl2: "_nvl2",
    nodes.DecodeCase: "_decode",
    nodes.Window: "_window",
    nodes.Filter: "_filter",
    nodes.WithinGroup: "_within_group",
    nodes.Order: "_ordered_argument",
    nodes.Dot: "_dot",
    nodes.Bracket: "_bracket",
    nodes.Subquery: "_subquery",
    nodes.Select: "_subquery",
    nodes.Union: "_subquery",
    nodes.Intersect: "_subquery",
    nodes.Except: "_subquery",
    nodes.Exists: "_exists",
    nodes.In: "_in",
    nodes.Anonymous: "_anonymous",
    nodes.Struct: "_struct",
    nodes.Collate: "_first_only",
    nodes.PropertyEQ: "_second_only",
    nodes.Slice: "_generic_special",
    nodes.Parameter: "_parameter",
    nodes.Placeholder: "_placeholder",
    nodes.DynamicIdentifier: "_identifier",
    nodes.Columns: "_columns",
    nodes.Comprehension: "_comprehension",
    nodes.HavingMax: "_having_max",
    nodes.DPipe: "_concat",
    nodes.Encrypt: "_encrypt",
    nodes.EncryptRaw: "_encrypt",
    nodes.ArrayAgg: "_array_agg",
    nodes.Table: "_table_leaf",
    nodes.Star: "_star",
    nodes.NextValueFor: "_next_value",
    nodes.PositionalColumn: "_numbered_column",
}
for _cls in _handlers:
    _roles[_cls] = SPECIAL
for _name in ("JSONExtract", "JSONExtractScalar", "JSONBExtract", "JSONBExtractScalar", "JSONValue"):
    _roles[getattr(exp, _name)] = SPECIAL
    _handlers[getattr(exp, _name)] = "_json"


_skipped: Final[set[type]] = {type(None), str, bool, int, float, tuple, dict, *_LEAVES}
"""Classes of argument values that hold no columns."""


def _role(cls: type) -> int:
    """Decide once what a class of node does to its children."""
    if not issubclass(cls, nodes.Expr):
        _skipped.add(cls)
        return LEAF
    for base, handler in list(_handlers.items()):
        if issubclass(cls, base):
            _handlers[cls] = handler
            _roles[cls] = SPECIAL
            return SPECIAL
    if issubclass(cls, nodes.AggFunc):
        role = AGGREGATE
    elif issubclass(cls, _LEAVES):
        role = LEAF
        _skipped.add(cls)
    elif issubclass(cls, nodes.Connector | nodes.Binary | nodes.Unary):
        role = GENERIC
    elif issubclass(cls, nodes.Func):
        role = FUNCTION
    else:
        role = GENERIC
    _roles[cls] = role
    return role


def is_json(node: exp.Expr) -> bool:
    """Return whether a node reads a value out of JSON."""
    return _handlers.get(node.__class__) == "_json"


class ExpressionWalk(ColumnWalk):
    """Collects the dependencies of expressions."""

    def dependencies(self, node: exp.Expr, scope: Scope, env: Environment | None) -> Deps:
        """Return the dependencies of an output expression."""
        cls = node.__class__
        if cls is Column:
            found = self.column(cast(exp.Column, node), scope)
            if len(found) == 1:
                dep = found[0]
                return (dep & ~STAR,) if dep & STAR else found
            return tuple(dep & ~STAR for dep in found)
        if cls in _skipped:
            return ()
        return bounded(self.collect(node, scope, env, IDENTITY, 0))

    def refer_to(self, node: exp.Expr | None, scope: Scope, env: Environment | None, kind: int) -> None:
        """Record every column inside ``node`` as referenced by the row set, as ``kind``."""
        if node is None:
            return
        if type(node) is Column:
            self.refer(self.column(node, scope), kind, node)
            return
        # A leaner pass than ``collect``: predicates are most of a query, and neither functions nor kinds matter here.
        stack: list[Any] = [node]
        pop = stack.pop
        push = stack.append
        roles = _roles
        skipped = _skipped
        rows = self.rows
        column = self.column
        while stack:
            item = pop()
            cls = item.__class__
            role = roles.get(cls)
            if role is None:
                role = _role(cls)
            if role == COLUMN:
                for dep in column(item, scope):
                    if dep & KIND_MASK == OPAQUE:
                        rows[dep & ROW_OF_OPAQUE] = item
                    else:
                        rows[dep & ROW_OF | kind] = item
            elif role == SPECIAL:
                self.refer(self.collect(item, scope, env, CONDITIONAL, 0), kind, item)
                rows = self.rows
            elif role != LEAF:
                for value in item.args.values():
                    cls = value.__class__
                    if cls is list:
                        for child in value:
                            if child.__class__ not in skipped:
                                push(child)
                    elif cls not in skipped:
                        push(value)

    def collect(self, node: exp.Expr, scope: Scope, env: Environment | None, kind: int, chain: int) -> list[int]:
        """Return the dependencies inside ``node``, seen through ``kind`` and ``chain``; may repeat."""
        out: list[int] = []
        stack: list[Task] = [(node, kind, chain)]
        at: Visit | None = None
        pop = stack.pop
        push = stack.append
        roles = _roles
        skipped = _skipped
        interner = self.interner
        column = self.column
        while stack:
            item, kind, chain = pop()
            cls = item.__class__
            role = roles.get(cls)
            if role is None:
                role = _role(cls)
            if role == COLUMN:
                # The common case, a plain base column, needs no composition.
                plain = kind | chain << CHAIN_SHIFT if kind < CONDITIONAL else kind
                for dep in column(item, scope):
                    if dep & COMPOSED_BITS:
                        out.append(compose(dep, kind, chain, interner))
                    else:
                        out.append(dep & UNSTARRED | plain)
                continue
            if role == LEAF:
                continue
            if role == SPECIAL:
                if at is None:
                    at = Visit(scope, env, stack, out)
                handler: Callable[..., None] = getattr(self, _handlers[cls])
                handler(item, kind, chain, at)
                continue
            if role == GENERIC:
                if kind == IDENTITY:
                    kind = TRANSFORMATION
            elif role == FUNCTION:
                if kind < CONDITIONAL:
                    chain = interner.prepend(function_name(item, self.dialect), chain)
                    if kind == IDENTITY:
                        kind = TRANSFORMATION
            elif role == AGGREGATE and kind < CONDITIONAL:
                chain = interner.prepend(function_name(item, self.dialect), chain)
                kind = AGGREGATION
            for value in item.args.values():
                cls = value.__class__
                if cls is list:
                    for child in value:
                        if child.__class__ not in skipped:
                            push((child, kind, chain))
                elif cls not in skipped:
                    push((value, kind, chain))
        return out

    def _through(self, name: str, kind: int, chain: int) -> tuple[int, int]:
        """Return kind and chain below a function that transforms its argument."""
        if kind >= CONDITIONAL:
            return kind, chain
        return max(kind, TRANSFORMATION), self.interner.prepend(name, chain)

    # ---- implemented by ShapeWalk ----------------------------------------------------------------

    def field_of(self, base: exp.Expr, path: str, scope: Scope, env: Environment | None) -> Deps | None:
        """Return the dependencies of a field of a built struct. Implemented by ``ShapeWalk``."""
        raise NotImplementedError

    def remember_shape(self, node: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None) -> None:
        """Attach a shape to the last column of an output. Implemented by ``ShapeWalk``."""
        raise NotImplementedError
