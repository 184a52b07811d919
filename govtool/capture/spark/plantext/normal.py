"""Plans in a form in which equal work reads equal: without expression ids, plan ids, literals and places."""

from __future__ import annotations

import re

from govtool.capture.spark.plantext.tree import Operator, Tree

_ID = re.compile(r"#\d+L?\b")
_PLAN_ID = re.compile(r"\[(?:plan_)?id=#?\d+\]")
_NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+)?(?:[eE]-?\d+)?(?![\w.])")
_COMPARED = re.compile(r"( (?:=|<=>|<|>|<=|>=|LIKE|RLIKE) )(?![^()]*#\d)([^()]*?)(?=\)|\Z)")
_ARGUMENT = re.compile(r"(?<=, )(?![^,()]*#\d)[^,()\[\]]+(?=[,)])")
_SHOWN = ("Condition", "Keys", "Functions", "Join type", "Join condition", "Left keys", "Right keys", "Results")
_LISTS = ("Project", "Window", "Generate", "Expand", "TakeOrderedAndProject", "Sort")
_SKIPPED = frozenset({"AdaptiveSparkPlan", "ColumnarToRow", "WriteFiles", "WholeStageCodegen", "InputAdapter"})
MAX_PLAN = 64 * 1024
"""Characters that are kept."""


def normalised(tree: Tree) -> str:
    """A plan as a drawn tree, an operator a line, with what it does and without what differs from run to run."""
    lines: list[str] = []
    _draw(tree.root, 0, lines, set())
    for number in sorted(tree.subqueries):
        lines.append("subquery")
        _draw(tree.subqueries[number], 1, lines, set())
    text = "\n".join(lines)
    return text if len(text) <= MAX_PLAN else text[:MAX_PLAN] + "\n…"


def _draw(root: Operator, level: int, lines: list[str], seen: set[int]) -> None:
    stack = [(root, level)]
    while stack:
        operator, depth = stack.pop()
        if operator.id in seen:
            continue
        seen.add(operator.id)
        name = operator.name.split("\n")[0].strip()
        shown = name.split("(")[0].strip() if name.startswith("Scan ExistingRDD") else name
        if shown.split()[0] in _SKIPPED if shown else True:
            stack.extend((child, depth) for child in reversed(operator.children))
            continue
        lines.append(f"{'  ' * depth}{plain(shown)}{_detail(operator)}")
        stack.extend((child, depth + 1) for child in reversed(operator.children))


def _detail(operator: Operator) -> str:
    parts = [f"{key}: {plain(operator.fields[key])}" for key in _SHOWN if operator.fields.get(key)]
    kind = operator.name.split()[0] if operator.name.strip() else ""
    if kind == "Project" or kind.startswith(("Scan", "BatchScan", "FileScan")):
        parts.append(plain(operator.fields.get("Output", "")))
    elif kind in _LISTS:
        parts.append(plain(operator.fields.get("Arguments", "")))
    return f" {'; '.join(filter(None, parts))}" if any(parts) else ""


def plain(text: str) -> str:
    """An expression without ids and literals."""
    text = _PLAN_ID.sub("", text)
    text = _COMPARED.sub(r"\1?", text)
    text = _ARGUMENT.sub("?", text)
    text = _ID.sub("", text)
    return _NUMBER.sub("?", text)
