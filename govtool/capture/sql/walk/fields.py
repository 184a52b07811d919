"""Fields below columns: ``x.a[0].b``, ``v:a.b``, ``json_extract(v, '$.a.b')``, and what is called on a column."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.calls import CallWalk
from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, STAR, TRANSFORMATION, Deps, compose
from govtool.capture.sql.walk.expressions import Visit, is_json
from govtool.capture.sql.walk.functions import function_name
from govtool.capture.sql.walk.paths import joined_path, json_key, json_path
from govtool.capture.sql.walk.scope import Scope

PACKAGES: Final = frozenset({"aead", "dbms_crypto"})
"""Packages of built-in functions, whose names are part of the functions' names."""

XML_METHODS: Final = frozenset({"value", "query", "nodes", "exist"})
"""Methods of T-SQL's xml columns."""


class FieldWalk(CallWalk):
    """Handles dots, brackets and JSON paths."""

    def _dot(self, node: exp.Dot, kind: int, chain: int, at: Visit) -> None:
        right = node.args.get("expression")
        if isinstance(right, nodes.Func):  # schema.function(…)
            package, function = self._dotted(node.this), function_name(right, self.dialect)
            if self._inline(f"{package}.{function}", right, kind, chain, at.scope, at.env, at.out):
                return
            if package in PACKAGES and isinstance(right, nodes.Anonymous):
                self._keyed(f"{package}.{function}", right.expressions, kind, chain, at)
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
            elif is_json(node):
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
            if self.variables and (field := self._variable_below(base, path, at.scope)) is not None:
                at.out.extend(compose(dep, kind, chain, self.interner) for dep in field)
                return
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

    def _variable_below(self, base: exp.Expr, path: str, scope: Scope) -> Deps | None:
        """Return the dependencies of ``:r.a``, ``rows(i).a``: a field of a variable."""
        if not isinstance(base, (nodes.Placeholder, nodes.Parameter, nodes.Anonymous)) or not path:
            return None
        return self.variable_field(self.variable_name(base), tuple(path.split(".")), base)

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
