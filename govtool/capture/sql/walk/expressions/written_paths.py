"""Paths as they are written: ``x.a[0].b``, ``v:a.b``, ``package.function``."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.expressions.paths import joined_path, json_key, json_path

JSON_READERS: Final = (
    exp.JSONExtract,
    exp.JSONExtractScalar,
    exp.JSONBExtract,
    exp.JSONBExtractScalar,
    exp.JSONValue,
)
"""The classes of nodes that read a value out of JSON."""


def path_below(walk: Walk, node: exp.Expr) -> tuple[exp.Expr, str]:
    """Split ``x.a[0].b`` into ``x`` and the canonical path ``a[].b``."""
    parts: list[str] = []
    while True:
        if isinstance(node, nodes.Dot) and not isinstance(node.expression, nodes.Func):
            right = node.expression
            parts.append("[]" if isinstance(right, nodes.Star) else walk.name(right))
            node = node.this
        elif isinstance(node, nodes.Bracket):
            keys = node.expressions
            if len(keys) == 1 and isinstance(keys[0], nodes.Literal) and keys[0].is_string:
                parts.append(json_key(keys[0].this))
            else:
                parts.append("[]")
            node = node.this
        elif isinstance(node, JSON_READERS):
            parts.extend(reversed(json_path(node.args.get("expression") or node.args.get("path"))))
            node = node.this
        elif isinstance(node, nodes.Paren):
            node = node.this
        else:
            break
    return node, joined_path([part for part in reversed(parts) if part])


def dotted(walk: Walk, node: exp.Expr) -> str:
    """Return names with dots between them as one text: the qualifier of a function."""
    if isinstance(node, nodes.Dot):
        return f"{dotted(walk, node.this)}.{dotted(walk, node.expression)}"
    if isinstance(node, nodes.Column):
        return ".".join(walk.name(part) for part in node.parts)
    return walk.name(node) if isinstance(node, nodes.Identifier) else node.name.lower()
