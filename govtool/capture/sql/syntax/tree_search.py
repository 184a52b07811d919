"""Search of a tree for nodes of a class: sqlglot's own is a generator in a generator in a generator."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.syntax import nodes


def nodes_of(tree: exp.Expr, cls: type) -> list[exp.Expr]:
    """Return the nodes of a class in a tree, itself included, level by level as ``find_all`` yields them."""
    found: list[exp.Expr] = []
    level: list[exp.Expr] = [tree]
    while level:
        below: list[exp.Expr] = []
        for node in level:
            if isinstance(node, cls):
                found.append(node)
            if type(node) is nodes.Identifier or type(node) is nodes.Literal:
                continue
            for value in node.args.values():
                if isinstance(value, nodes.Expr):
                    below.append(value)
                elif type(value) is list:
                    below.extend([part for part in value if isinstance(part, nodes.Expr)])
        level = below
    return found
