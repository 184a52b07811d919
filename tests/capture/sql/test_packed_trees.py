"""Trees as bytes: unpacked they are what the parser made, to the place of each node."""

from __future__ import annotations

from typing import Any

import pytest
from lineage_cases import load_cases
from sqlglot import exp

from govtool.capture.sql.scripts.packed_trees import packed, unpacked
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.syntax.lexer import lexer

CASES = load_cases()


def form(node: Any) -> Any:
    """All that a tree holds, but for what refers back."""
    if isinstance(node, exp.Expr):
        args = [(key, form(value)) for key, value in node.args.items()]
        return type(node), args, node._meta, node.comments, form(node._type)
    if isinstance(node, list):
        return [form(each) for each in node]
    return type(node), node


def above(tree: exp.Expr) -> bool:
    """Whether each node knows the node that holds it, and by which argument."""
    return all(
        part.parent is node and part.arg_key == key
        for node in tree.walk()
        for key, value in node.args.items()
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr)
    )


@pytest.mark.parametrize("dialect", sorted({case.dialect for case in CASES}))
def test_a_tree_that_is_packed_and_unpacked_is_the_same(dialect: str) -> None:
    trees = [
        statement.tree
        for case in CASES
        if case.dialect == dialect
        for statement in parse_script(case.sql, dialect)
        if statement.tree is not None
    ]
    assert trees
    for tree in trees:
        before = form(tree)
        data = packed(tree)
        if data is not None:
            again = unpacked(data)
            assert form(again) == before
            assert above(again)


def test_what_cannot_be_packed_is_kept() -> None:
    deep = exp.column("a")
    for _ in range(3000):
        deep = exp.Paren(this=deep)
    assert packed(deep) is None
    assert packed(exp.Command(this="x", expression={"not": "foreseen"})) is None


def test_packed_trees_are_small() -> None:
    lex = lexer("bigquery")
    text = "SELECT " + ", ".join(f"t.column_{i} + {i} AS result_{i}" for i in range(500)) + " FROM `p.d.t` AS t"
    tree = lex.parse(lex.tokenize(text), text)
    assert tree is not None
    assert len(packed(tree) or b"") < 2 * len(text)
