"""Expressions: which columns are inside, in which kind, through which functions.

One pass with an explicit stack, so that a chain of ten thousand ORs needs no Python frames. A node's class decides once
and for all what happens to its children (``_role``); the few that need more have a method each.
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
    WINDOW,
    Deps,
    bounded,
    compose,
)
from govtool.capture.sql.walk.functions import AGGREGATE_NAMES, function_name
from govtool.capture.sql.walk.paths import joined_path, json_key, json_path
from govtool.capture.sql.walk.relation import Output, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import ROW_OF, ROW_OF_OPAQUE, Inline
from govtool.model.functions import VALUE_WINDOW_FUNCTIONS

Column = nodes.Column

COMPOSED_BITS: Final = KIND_MASK | CHAIN_MASK
UNSTARRED: Final = ~STAR

PACKAGES: Final = frozenset({"aead", "dbms_crypto"})
"""Packages of built-in functions, whose names are part of the functions' names."""

XML_METHODS: Final = frozenset({"value", "query", "nodes", "exist"})
"""Methods of T-SQL's xml columns."""

Task = tuple[Any, int, int]
"""A node, the kind of the way from it to the output, and the chain of functions on that way."""


class Visit:
    """What a handler of one class of nodes needs of the pass that calls it."""

    __slots__ = ("env", "out", "scope", "stack")

    def __init__(self, scope: Scope, env: Environment | None, stack: list[Task], out: list[int]) -> None:
        self.scope = scope
        self.env = env
        self.stack = stack
        self.out = out


LEAF, PASS, GENERIC, FUNCTION, AGGREGATE, COLUMN, SPECIAL = range(7)

_LEAVES: Final = (
    nodes.Literal, nodes.Identifier, nodes.DataType, nodes.Null, nodes.Boolean, nodes.Star, nodes.Var,
    nodes.Placeholder, nodes.JSONPath, nodes.National, nodes.RawString, nodes.HexString, nodes.BitString,
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
    nodes.Columns: "_columns",
    nodes.Comprehension: "_comprehension",
    nodes.HavingMax: "_having_max",
    nodes.DPipe: "_concat",
    nodes.ArrayAgg: "_array_agg",
    nodes.Table: "_table_leaf",
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
        if node.__class__ is Column:
            self.refer(self.column(node, scope), kind)
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
                        rows[dep & ROW_OF_OPAQUE] = None
                    else:
                        rows[dep & ROW_OF | kind] = None
            elif role == SPECIAL:
                self.refer(self.collect(item, scope, env, CONDITIONAL, 0), kind)
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

    # ---- choices -------------------------------------------------------------------------------

    def _case(self, node: exp.Case, kind: int, chain: int, at: Visit) -> None:
        value, chain = self._through("case", kind, chain)
        condition = CONDITIONAL if kind < CONDITIONAL else kind
        operand = node.args.get("this")
        if operand is not None:
            at.stack.append((operand, condition, 0))
        for branch in node.args.get("ifs") or ():
            at.stack.append((branch.args["this"], condition, 0))
            if branch.args.get("true") is not None:
                at.stack.append((branch.args["true"], value, chain))
        if node.args.get("default") is not None:
            at.stack.append((node.args["default"], value, chain))

    def _if(self, node: exp.If, kind: int, chain: int, at: Visit) -> None:
        self._choice(node, "if", ("true", "false"), kind, chain, at.stack)

    def _nvl2(self, node: exp.Nvl2, kind: int, chain: int, at: Visit) -> None:
        self._choice(node, "nvl2", ("true", "false"), kind, chain, at.stack)

    def _choice(
        self, node: exp.Expr, name: str, branches: tuple[str, ...], kind: int, chain: int, stack: list[Task]
    ) -> None:
        value, chain = self._through(name, kind, chain)
        condition = node.args["this"]
        if not (
            isinstance(condition, nodes.Is)
            and isinstance(condition.expression, nodes.Null)
            and condition.this == node.args.get("false")
        ):
            # IF(x IS NULL, 0, x) is what the parser makes of ZEROIFNULL and its like: x steers nothing but itself.
            stack.append((condition, CONDITIONAL if kind < CONDITIONAL else kind, 0))
        for branch in branches:
            if node.args.get(branch) is not None:
                stack.append((node.args[branch], value, chain))

    def _decode(self, node: exp.DecodeCase, kind: int, chain: int, at: Visit) -> None:
        """DECODE(operand, search, result, search, result, …, default)."""
        value, chain = self._through("decode", kind, chain)
        condition = CONDITIONAL if kind < CONDITIONAL else kind
        items = node.expressions
        for i, item in enumerate(items):
            is_result = i >= 2 and (i % 2 == 0 or i == len(items) - 1)
            at.stack.append((item, value, chain) if is_result else (item, condition, 0))

    def _struct(self, node: exp.Struct, kind: int, chain: int, at: Visit) -> None:
        """Push the fields; those of ``struct(*)`` are all columns there are."""
        value, chain = self._through("struct", kind, chain)
        for item in node.expressions:
            if isinstance(item, nodes.Star):
                for source in at.scope.sources:
                    at.out.extend(compose(dep, value, chain, self.interner) for dep in self.whole_row(source, item))
            else:
                at.stack.append((item, value, chain))

    # ---- aggregates and windows ------------------------------------------------------------------

    def _window(self, node: exp.Window, kind: int, chain: int, at: Visit) -> None:
        function = node.args["this"]
        window = WINDOW if kind < CONDITIONAL else kind
        inner = function
        while isinstance(inner, (nodes.IgnoreNulls, nodes.RespectNulls)):
            inner = inner.this
        name = function_name(inner, self.dialect) if isinstance(inner, nodes.Func) else ""
        if kind < CONDITIONAL and name in VALUE_WINDOW_FUNCTIONS:
            chain = self.interner.prepend(name, chain)
            for value in inner.args.values():
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, nodes.Expr):
                        at.stack.append((item, max(kind, TRANSFORMATION), chain))
        else:
            at.stack.append((function, kind, chain))
        self._window_parts(node, window, at.stack, at.scope, set())

    def _window_parts(self, node: exp.Expr, kind: int, stack: list[Task], scope: Scope, seen: set[str]) -> None:
        """Push PARTITION BY and ORDER BY, those of the named windows it builds on included."""
        for item in node.args.get("partition_by") or ():
            stack.append((item, kind, 0))
        order = node.args.get("order")
        if order is not None:
            stack.extend((item, kind, 0) for item in order.expressions)
        for key in ("alias", "this"):
            base = node.args.get(key)
            if isinstance(base, nodes.Identifier) and self.name(base) not in seen:
                seen.add(self.name(base))
                named = scope.windows.get(self.name(base))
                if named is not None:
                    self._window_parts(named, kind, stack, scope, seen)

    def _filter(self, node: exp.Filter, kind: int, chain: int, at: Visit) -> None:
        at.stack.append((node.this, kind, chain))
        at.stack.append((node.expression, CONDITIONAL if kind < CONDITIONAL else kind, 0))

    def _within_group(self, node: exp.WithinGroup, kind: int, chain: int, at: Visit) -> None:
        """percentile_cont(0.5) WITHIN GROUP (ORDER BY x) is an aggregate of x; LISTAGG(x) … (ORDER BY y) is
        steered by y.
        """
        function = node.this
        at.stack.append((function, kind, chain))
        has_argument = any(True for _ in function.find_all(nodes.Column))
        for item in node.expression.expressions if node.expression else ():
            if has_argument:
                at.stack.append((item, WINDOW if kind < CONDITIONAL else kind, 0))
            elif kind < CONDITIONAL:
                at.stack.append(
                    (item, AGGREGATION, self.interner.prepend(function_name(function, self.dialect), chain))
                )
            else:
                at.stack.append((item, kind, 0))

    def _ordered_argument(self, node: exp.Order, kind: int, chain: int, at: Visit) -> None:
        """array_agg(x ORDER BY y): x is the value, y steers as the ORDER BY of a window does."""
        if node.args.get("this") is not None:
            at.stack.append((node.this, kind, chain))
        at.stack.extend((item, WINDOW if kind < CONDITIONAL else kind, 0) for item in node.expressions)

    def _array_agg(self, node: exp.ArrayAgg, kind: int, chain: int, at: Visit) -> None:
        if kind < CONDITIONAL:
            chain = self.interner.prepend("array_agg", chain)
            kind = AGGREGATION
        at.stack.append((node.this, kind, chain))

    def _having_max(self, node: exp.HavingMax, kind: int, chain: int, at: Visit) -> None:
        """any_value(x HAVING MAX y): y chooses the row."""
        at.stack.append((node.this, kind, chain))
        if node.expression is not None:
            at.stack.append((node.expression, CONDITIONAL if kind < CONDITIONAL else kind, 0))

    # ---- paths -----------------------------------------------------------------------------------

    def _dot(self, node: exp.Dot, kind: int, chain: int, at: Visit) -> None:
        right = node.args.get("expression")
        if isinstance(right, nodes.Func):  # schema.function(…)
            package, function = self._dotted(node.this), function_name(right, self.dialect)
            if self._inline(f"{package}.{function}", right, kind, chain, at.scope, at.env, at.out):
                return
            if package in PACKAGES and isinstance(right, nodes.Anonymous):
                through = self._through(f"{package}.{function}", kind, chain)
                at.stack.extend([(item, *through) for item in right.expressions if isinstance(item, nodes.Expr)])
                return
            at.stack.append((right, kind, chain))
            receiver = self._receiver(node.this, function, at.scope)
            if receiver is not None:
                at.stack.append((receiver, *self._through(function, kind, chain)))
            return
        base, path = self._path(node)
        self._descend(base, path, kind, chain, at)

    def _bracket(self, node: exp.Bracket, kind: int, chain: int, at: Visit) -> None:
        for index in node.expressions:
            if not isinstance(index, nodes.Literal):
                at.stack.append((index, CONDITIONAL if kind < CONDITIONAL else kind, 0))
        base, path = self._path(node)
        self._descend(base, path, kind, chain, at)

    def _json(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        key = node.args.get("expression")
        if isinstance(key, nodes.Expr) and not isinstance(key, (nodes.JSONPath, nodes.Literal)):
            at.stack.append((key, CONDITIONAL if kind < CONDITIONAL else kind, 0))
        value = kind
        if not node.args.get("variant_extract"):  # v:a.b is a path, json_extract(v, '$.a.b') a function
            value, chain = self._through(function_name(node, self.dialect), kind, chain)
        base, path = self._path(node)
        self._descend(base, path, value, chain, at)

    def _path(self, node: exp.Expr) -> tuple[exp.Expr, str]:
        """Split ``x.a[0].b`` into ``x`` and the canonical path ``a[].b``."""
        parts: list[str] = []
        while True:
            if isinstance(node, nodes.Dot) and not isinstance(node.expression, nodes.Func):
                right = node.expression
                parts.append("[]" if isinstance(right, nodes.Star) else self.name(right))
                node = node.this
            elif isinstance(node, nodes.Bracket):
                keys = node.expressions
                if len(keys) == 1 and isinstance(keys[0], nodes.Literal) and keys[0].is_string:
                    parts.append(json_key(keys[0].this))
                else:
                    parts.append("[]")
                node = node.this
            elif _handlers.get(node.__class__) == "_json":
                parts.extend(reversed(json_path(node.args.get("expression") or node.args.get("path"))))
                node = node.this
            elif isinstance(node, nodes.Paren):
                node = node.this
            else:
                break
        return node, joined_path([part for part in reversed(parts) if part])

    def _descend(self, base: exp.Expr, path: str, kind: int, chain: int, at: Visit) -> None:
        """Collect ``base`` with ``path`` below its columns, if it is a column; else just ``base``."""
        if not isinstance(base, nodes.Column):
            built = self.field_of(base, path, at.scope, at.env)
            if built is None:
                at.stack.append((base, max(kind, TRANSFORMATION), chain))
            else:
                at.out.extend(compose(dep, kind, chain, self.interner) for dep in built)
            return
        deps: Deps = ()
        source = at.scope.find((self.name(base.this),)) if not base.args.get("table") else None
        head, _, rest = path.partition(".")
        if (
            source is not None
            and head
            and "[" not in head
            and not any(s.get(self.name(base.this), self.interner) for s in at.scope.sources)
        ):
            deps = self.of_source(source, head, base)  # (t).column
            path = rest
        else:
            deps = self.column(base, at.scope)
        for dep in deps:
            below = self.interner.field(dep & ~STAR, path) if path and dep & KIND_MASK != OPAQUE else dep
            at.out.append(compose(below, kind, chain, self.interner))

    def _receiver(self, node: exp.Expr, function: str, scope: Scope) -> exp.Expr | None:
        """Return what a method is called on (``column.upper()``, ``xml.value(…)``); None if it is a schema."""
        parts: list[exp.Expr] = []
        item: exp.Expr = node
        while isinstance(item, nodes.Dot):
            if not isinstance(item.expression, nodes.Identifier):
                return node  # a call on the result of a call
            parts.insert(0, item.expression)
            item = item.this
        if isinstance(item, nodes.Column):
            parts[:0] = item.parts
        elif isinstance(item, nodes.Identifier):
            parts.insert(0, item)
        else:
            return node
        names = self.qualifier(parts)
        level: Scope | None = scope
        while level is not None:
            if len(names) == 1 and any(names[0] in source.known for source in level.sources):
                return nodes.Column(this=parts[0].copy())
            level = level.parent
        if len(names) == 1:
            is_method = self.dialect == "tsql" and function in XML_METHODS
            return nodes.Column(this=parts[0].copy()) if is_method else None
        if scope.find(names[:-1]) is None:
            return None
        qualifier = dict(zip(("table", "db", "catalog"), (p.copy() for p in reversed(parts[:-1])), strict=False))
        return nodes.Column(this=parts[-1].copy(), **qualifier)

    def _dotted(self, node: exp.Expr) -> str:
        if isinstance(node, nodes.Dot):
            return f"{self._dotted(node.this)}.{self._dotted(node.expression)}"
        if isinstance(node, nodes.Column):
            return ".".join(self.name(part) for part in node.parts)
        return self.name(node) if isinstance(node, nodes.Identifier) else node.name.lower()

    # ---- subqueries ------------------------------------------------------------------------------

    def _subquery(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        output = self.query(node, at.scope, at.env)
        for deps in output.deps:
            at.out.extend(compose(dep, kind, chain, self.interner) for dep in deps)

    def _exists(self, node: exp.Exists, kind: int, chain: int, at: Visit) -> None:
        inner = node.this
        if isinstance(inner, nodes.Query):
            self.query(inner, at.scope, at.env)  # contributes nothing; what it references is recorded
        else:  # exists(array, lambda)
            for value in node.args.values():
                if isinstance(value, nodes.Expr):
                    at.stack.append((value, max(kind, TRANSFORMATION), chain))

    def _in(self, node: exp.In, kind: int, chain: int, at: Visit) -> None:
        kind = max(kind, TRANSFORMATION)
        at.stack.append((node.this, kind, chain))
        for key in ("query", "unnest", "field"):
            value = node.args.get(key)
            if isinstance(value, nodes.Expr):
                at.stack.append((value, kind, chain))
        at.stack.extend((item, kind, chain) for item in node.expressions)

    # ---- calls -----------------------------------------------------------------------------------

    def _anonymous(self, node: exp.Anonymous, kind: int, chain: int, at: Visit) -> None:
        name = function_name(node, self.dialect)
        if self._inline(name, node, kind, chain, at.scope, at.env, at.out):
            return
        inserted = at.scope.by_alias.get("values") if name == "values" else None
        if inserted is not None:  # MySQL's VALUES(column) in ON DUPLICATE KEY UPDATE: the row that was to be inserted
            for item in node.expressions:
                found = inserted.get(self.name(item), self.interner) or ()
                at.out.extend(compose(dep, kind, chain, self.interner) for dep in found)
            return
        if kind < CONDITIONAL:
            chain = self.interner.prepend(name, chain)
            kind = AGGREGATION if name in AGGREGATE_NAMES else max(kind, TRANSFORMATION)
        at.stack.extend((item, kind, chain) for item in node.expressions if isinstance(item, nodes.Expr))

    def _inline(
        self, name: str, call: exp.Expr, kind: int, chain: int, scope: Scope, env: Environment | None, out: list[int]
    ) -> bool:
        """Collect the body of a known SQL function in place of the call. Returns False if there is none."""
        body = self.lookup.function(name)
        if body is None or body.is_table or name in self.inlining or len(self.inlining) > 8:
            return False
        inner = self.bound_arguments(body, call, scope, env)
        self.inlining.append(name)
        try:
            if isinstance(body.body, nodes.Query):
                for deps in self.query(body.body, inner, None).deps:
                    out.extend(compose(dep, max(kind, TRANSFORMATION), chain, self.interner) for dep in deps)
            else:
                out.extend(self.collect(body.body, inner, None, kind, chain))
        finally:
            self.inlining.pop()
        return True

    def bound_arguments(self, body: Inline, call: exp.Expr, scope: Scope, env: Environment | None) -> Scope:
        """Return the scope of a function's body: its parameters, with the dependencies and shapes of the arguments."""
        arguments = Output()
        for i, parameter in enumerate(body.parameters):
            given = call.expressions[i] if i < len(call.expressions) else None
            arguments.add(parameter, self.dependencies(given, scope, env) if given is not None else ())
            if given is not None:
                self.remember_shape(given, arguments, scope, env)
        source = Source("", output=arguments)
        source.is_arguments = True
        inner = Scope(None)
        inner.add(source)
        return inner

    def field_of(self, base: exp.Expr, path: str, scope: Scope, env: Environment | None) -> Deps | None:
        """Return the dependencies of a field of a built struct. Implemented by ``ShapeWalk``."""
        raise NotImplementedError

    def remember_shape(self, node: exp.Expr, output: Output, scope: Scope, env: Environment | None) -> None:
        """Attach a shape to the last column of an output. Implemented by ``ShapeWalk``."""
        raise NotImplementedError

    def _concat(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        value, chain = self._through("concat", kind, chain)
        at.stack.append((node.this, value, chain))
        at.stack.append((node.expression, value, chain))

    def _parameter(self, node: exp.Parameter, kind: int, chain: int, at: Visit) -> None:
        at.out.extend(compose(dep, kind, chain, self.interner) for dep in self.positional(node, None, at.scope))

    def _columns(self, node: exp.Columns, kind: int, chain: int, at: Visit) -> None:
        """COLUMNS('pattern') inside an expression: every matching column of the at.scope."""
        for source in at.scope.sources:
            for name in source.names():
                if self.expanding is not None and name != self.expanding:
                    continue
                at.out.extend(compose(dep, kind, chain, self.interner) for dep in source.get(name, self.interner) or ())

    def _comprehension(self, node: exp.Comprehension, kind: int, chain: int, at: Visit) -> None:
        """[f(x) FOR x IN xs IF g(x)]: x stands for the elements of xs."""
        kind = max(kind, TRANSFORMATION)
        elements = Output()
        iterated = bounded(self.collect(node.args["iterator"], at.scope, at.env, kind, chain))
        elements.add(self.name(node.expression), iterated)
        source = Source("", output=elements)
        source.is_arguments = True
        inner = Scope(at.scope)
        inner.add(source)
        at.out.extend(iterated)
        for part in (node.this, node.args.get("condition")):
            if isinstance(part, nodes.Expr):
                at.out.extend(self.collect(part, inner, at.env, kind, chain))

    def _first_only(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        at.stack.append((node.this, kind, chain))

    def _second_only(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        """name: value. A key of a map is a value too; the name of a field is not."""
        if node.this.__class__ is Column and isinstance(node.parent, nodes.Struct):
            at.stack.append((node.this, kind, chain))
        at.stack.append((node.args["expression"], kind, chain))

    def _generic_special(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        for value in node.args.values():
            if isinstance(value, nodes.Expr):
                at.stack.append((value, max(kind, CONDITIONAL), 0))

    def _table_leaf(self, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
        """A table where an expression is expected (sequence, model): no column."""

    def _through(self, name: str, kind: int, chain: int) -> tuple[int, int]:
        """Return kind and chain below a function that transforms its argument."""
        if kind >= CONDITIONAL:
            return kind, chain
        return max(kind, TRANSFORMATION), self.interner.prepend(name, chain)
