"""Expressions: which columns are inside, in which kind, through which functions.

One pass with an explicit stack, so that a chain of ten thousand ORs needs no Python frames. A node's class decides once
and for all what happens to its children (``_role``); the few that need more have a function each, in ``choices``,
``calls``, ``fields`` and ``stars``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import ROW_OF, ROW_OF_OPAQUE, Walk
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
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.expressions.columns import resolve_column
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.functions.facts import as_unread

Column = nodes.Column

COMPOSED_BITS: Final = KIND_MASK | CHAIN_MASK

UNSTARRED: Final = ~STAR

Task = tuple[Any, int, int]
"""A node, the kind of the way from it to the output, and the chain of functions on that way."""


class Visit:
    """The context of a handler of one class of nodes.

    Attributes:
        decides: Whether the expression as a whole decides about rows, or steers what others are.
    """

    __slots__ = ("decides", "env", "out", "scope", "stack")

    def __init__(self, scope: Scope, env: Environment | None, stack: list[Task], out: list[int], decides: bool) -> None:
        self.decides = decides
        self.scope = scope
        self.env = env
        self.stack = stack
        self.out = out


# What a class of node does to its children.
LEAF: Final = 0
"""It has none, or none with columns."""
PASS: Final = 1
"""They are the value."""
GENERIC: Final = 2
"""The value is made of them."""
FUNCTION: Final = 3
"""The value is made of them by a function, which is kept."""
AGGREGATE: Final = 4
"""The same by an aggregate."""
COLUMN: Final = 5
"""It is a column."""
SPECIAL: Final = 6
"""Its handler decides."""

_LEAVES: Final = (
    nodes.Literal, nodes.Identifier, nodes.DataType, nodes.Null, nodes.Boolean, nodes.Var,
    nodes.JSONPath, nodes.National, nodes.RawString, nodes.HexString, nodes.BitString,
    nodes.ByteString, nodes.UnicodeString, nodes.CurrentDate, nodes.CurrentTimestamp, nodes.CurrentTime,
    nodes.CurrentUser, nodes.SessionParameter, nodes.WindowSpec, nodes.Heredoc, nodes.Hint,
)  # fmt: skip

_PASSING: Final = (
    nodes.Paren, nodes.Alias, nodes.Ordered, nodes.Distinct, nodes.IgnoreNulls, nodes.RespectNulls, nodes.Tuple,
    nodes.Prior, nodes.Final, nodes.Kwarg, nodes.Where, nodes.Having, nodes.Qualify, nodes.Group, nodes.Aliases,
)  # fmt: skip

_roles: Final[dict[type, int]] = {**dict.fromkeys(_LEAVES, LEAF), **dict.fromkeys(_PASSING, PASS), nodes.Column: COLUMN}

Handler = Callable[[Walk, Any, int, int, Visit], None]
"""Collects a node that was reached in a kind and through a chain: into ``Visit.out``, or as tasks onto its stack."""

HANDLERS: Final[dict[type, Handler]] = {}
"""The classes of nodes whose children lie on ways of different kinds, or that stand for more than their children;
``statements`` fills it.
"""

_skipped: Final[set[type]] = {type(None), str, bool, int, float, tuple, dict, *_LEAVES}
"""Classes of argument values that hold no columns."""


def _role(cls: type) -> int:
    """Decide once what a class of node does to its children."""
    if not issubclass(cls, nodes.Expr):
        _skipped.add(cls)
        return LEAF
    handler = by_class(HANDLERS, cls)
    if handler is not None:
        HANDLERS[cls] = handler
        role = SPECIAL
    elif issubclass(cls, nodes.AggFunc):
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


def dependencies(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None) -> Deps:
    """Return the dependencies of an output expression."""
    cls = type(node)
    if cls is Column:
        found = resolve_column(walk, cast(exp.Column, node), scope)
        if len(found) == 1:
            dep = found[0]
            return (dep & ~STAR,) if dep & STAR else found
        return tuple(dep & ~STAR for dep in found)
    if cls in _skipped:
        return ()
    inside = collect(walk, node, scope, env, IDENTITY, 0)
    return bounded(inside) if len(inside) > 1 else tuple(inside)


def refer_to(walk: Walk, node: exp.Expr | None, scope: Scope, env: Environment | None, kind: int) -> None:
    """Record every column inside ``node`` as referenced by the row set, as ``kind``."""
    if node is None:
        return
    if type(node) is Column:
        walk.refer(resolve_column(walk, node, scope), kind, node)
        return
    # A leaner pass than ``collect``: predicates are most of a query, and neither functions nor kinds matter here.
    stack: list[Any] = [node]
    pop = stack.pop
    push = stack.append
    roles = _roles
    skipped = _skipped
    rows = walk.rows
    while stack:
        item = pop()
        cls = type(item)
        role = roles.get(cls)
        if role is None:
            role = _role(cls)
        if role == COLUMN:
            for dep in resolve_column(walk, item, scope):
                if dep & KIND_MASK == OPAQUE:
                    rows[dep & ROW_OF_OPAQUE] = item
                else:
                    rows[dep & ROW_OF | kind] = item
        elif role == SPECIAL:
            walk.refer(collect(walk, item, scope, env, CONDITIONAL, 0), kind, item)
            rows = walk.rows
        elif role != LEAF:
            for value in item.args.values():
                cls = type(value)
                if cls is list:
                    for child in value:
                        if type(child) not in skipped:
                            push(child)
                elif cls not in skipped:
                    push(value)


def collect(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None, kind: int, chain: int) -> list[int]:
    """Return the dependencies inside ``node``, seen through ``kind`` and ``chain``; may repeat.

    One function, as most of a walk's time is spent here: a call per node would cost more than what is done with it.
    """
    out: list[int] = []
    decides = kind >= CONDITIONAL
    stack: list[Task] = [(node, kind, chain)]
    at: Visit | None = None
    pop = stack.pop
    push = stack.append
    roles = _roles
    skipped = _skipped
    interner = walk.interner
    while stack:
        item, kind, chain = pop()
        cls = type(item)
        role = roles.get(cls)
        if role is None:
            role = _role(cls)
        if role == COLUMN:
            # The common case, a plain base column, needs no composition.
            plain = kind | chain << CHAIN_SHIFT if kind < CONDITIONAL else kind
            for dep in resolve_column(walk, item, scope):
                if dep & COMPOSED_BITS:
                    out.append(compose(dep, kind, chain, interner))
                else:
                    out.append(dep & UNSTARRED | plain)
            continue
        if role == LEAF:
            continue
        if role == SPECIAL:
            if at is None:
                at = Visit(scope, env, stack, out, decides)
            HANDLERS[cls](walk, item, kind, chain, at)
            continue
        if role == GENERIC:
            if kind == IDENTITY:
                kind = TRANSFORMATION
        elif role >= FUNCTION and kind < CONDITIONAL:  # or an aggregate: columns and special nodes are done with
            name = function_name(item, walk.dialect)
            if name in walk.redefined:
                name = as_unread(name)
            chain = interner.prepend(name, chain)
            kind = _through_call(role, kind)
        for value in item.args.values():
            cls = type(value)
            if cls is list:
                for child in value:
                    if type(child) not in skipped:
                        push((child, kind, chain))
            elif cls not in skipped:
                push((value, kind, chain))
    return out


def _through_call(role: int, kind: int) -> int:
    """Return the kind of a value's dependency through a call of a function or an aggregate."""
    if role == AGGREGATE:
        return AGGREGATION
    return TRANSFORMATION if kind == IDENTITY else kind
