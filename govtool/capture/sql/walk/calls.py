"""Subqueries and calls in expressions: SQL functions whose bodies are known are inlined."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.choices import ChoiceWalk
from govtool.capture.sql.walk.dependencies import AGGREGATION, CONDITIONAL, OPAQUE, TRANSFORMATION, Deps, compose
from govtool.capture.sql.walk.expressions import Visit
from govtool.capture.sql.walk.functions import function_name
from govtool.capture.sql.walk.relation import QueryOutput, Source, file_name
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import Inline
from govtool.functions.facts import AGGREGATES, ELSEWHERE, KEYED, as_key, as_unread, positions_of
from govtool.model import HIDDEN


class CallWalk(ChoiceWalk):
    """Handles subqueries and calls."""

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
        self._returned_value(name, kind, chain, at)
        inserted = at.scope.by_alias.get("values") if name == "values" else None
        if inserted is not None:  # MySQL's VALUES(column) in ON DUPLICATE KEY UPDATE: the row that was to be inserted
            for item in node.expressions:
                found = inserted.get(self.name(item), self.interner) or ()
                at.out.extend(compose(dep, kind, chain, self.interner) for dep in found)
            return
        if name == "getvariable" and self.variables and node.expressions:  # DuckDB
            at.out.extend(compose(dep, kind, chain, self.interner) for dep in self._got(node.expressions[0]))
            return
        if name in self.parameters and (value := self.variable(name, node)) is not None:  # an element of a collection
            at.out.extend(compose(dep, kind, chain, self.interner) for dep in value)
            return
        if name in ELSEWHERE:
            self.diagnose("opaque", f"{name}(…) reads what its arguments name: that is not known here", node)
            at.out.append(self.interner.ref(file_name(f"{name}(…)"), HIDDEN) | OPAQUE)
        if kind < CONDITIONAL:
            if self.lookup.is_unread(name):
                chain = self.interner.prepend(as_unread(name), chain)
                at.stack.extend((item, max(kind, TRANSFORMATION), chain) for item in node.expressions)
                return
            if name in KEYED:
                self._keyed(name, node.expressions, kind, chain, at)
                return
            chain = self.interner.prepend(name, chain)
            kind = AGGREGATION if name in AGGREGATES else max(kind, TRANSFORMATION)
        at.stack.extend((item, kind, chain) for item in node.expressions if isinstance(item, nodes.Expr))

    def _returned_value(self, name: str, kind: int, chain: int, at: Visit) -> None:
        """Collect what a function returns whose body is a block of statements; its arguments are followed beside it."""
        returned = self.lookup.returned(name) if name not in self.inlining else None
        if returned is None:
            return
        below = self.interner.prepend(name, chain) if kind < CONDITIONAL else chain
        for value in returned.values:
            self.rows.update(value.rows)
            self.read(value.reads)
            for deps in value.output.deps:
                at.out.extend(compose(dep, max(kind, TRANSFORMATION), below, self.interner) for dep in deps)
            if value.reason:
                self.diagnose("opaque", f"what {name} returns is not known: it comes from {value.reason}")

    def _encrypt(self, node: exp.Encrypt | exp.EncryptRaw, kind: int, chain: int, at: Visit) -> None:
        arguments = [value for value in node.args.values() if isinstance(value, nodes.Expr)]
        self._keyed(function_name(node, self.dialect), arguments, kind, chain, at)

    def _keyed(self, name: str, arguments: list[exp.Expr], kind: int, chain: int, at: Visit) -> None:
        """A keyed function hides its value, but not its key: ``hmac('x', email)`` is a hash that anyone can repeat."""
        positions = positions_of(name, self.dialect)
        kind, hidden = self._through(name, kind, chain)
        for i, item in enumerate(arguments):
            if isinstance(item, nodes.Expr):
                is_key = positions is not None and i == positions.key - 1 and kind < CONDITIONAL
                at.stack.append((item, kind, self.interner.prepend(as_key(name), chain) if is_key else hidden))

    def _got(self, name: exp.Expr) -> Deps:
        return self.variable(self.name(name.name), name) or () if isinstance(name, nodes.Literal) else ()

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
        arguments = QueryOutput()
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
