"""Annotations as tables show them."""

from __future__ import annotations

import pytest

from govtool.render.layout.parentheses import parenthesised


@pytest.mark.parametrize(
    ("canonical", "shown"),
    [
        ("(1 ⊖ a + b)", "(1 ⊖ (a + b))"),
        ("(a + b ⊖ c)", "((a + b) ⊖ c)"),
        ("c*(1 ⊖ a*b) + d", "c*(1 ⊖ a*b) + d"),
        ("(1 ⊖ (1 ⊖ a + b) + c)", "(1 ⊖ ((1 ⊖ (a + b)) + c))"),
        ("(δ(a + b) ⊖ δ(c + d))", "(δ(a + b) ⊖ δ(c + d))"),
        ("([COUNT(a⊗1 + b⊗1) > 2] ⊖ c)", "([COUNT(a⊗1 + b⊗1) > 2] ⊖ c)"),
        ("a + b", "a + b"),
        ("(1 ⊖ odd:( + b)", "(1 ⊖ odd:( + b)"),
        ("(1 ⊖ a] + b)", "(1 ⊖ a] + b)"),
    ],
)
def test_sums_within_differences_stand_in_parentheses(canonical, shown):
    assert parenthesised(canonical) == shown


def test_deep_differences_are_read_in_one_pass():
    depth = 100_000  # each level was copied for each above it: hours
    deep = parenthesised("(a ⊖ " * depth + "b + c" + ")" * depth)
    assert deep == "(a ⊖ " * depth + "(b + c)" + ")" * depth
