"""Plans in a form in which equal work reads equal: without expression ids, plan ids, literals and places."""

from __future__ import annotations

import re

from govtool.capture.spark.plantext.expressions import TextExpressionReader
from govtool.capture.spark.plantext.tree import Operator, PlanTree

_PLAN_ID = re.compile(r",? ?\[(?:plan_)?id=#?\d+\]")
_TOKEN = re.compile(
    r"(?P<attribute>(?<![^\s,()\[\]{}#])[^\s,()\[\]{}#]++#\d+L?(?!\w))"
    r"|(?P<call>[A-Za-z_$<][\w$.<>]{0,300}+(?=\())|(?P<type>(?<= as )[a-z]\w*)"
    r"|(?P<word>AND|OR|NOT|CASE|WHEN|THEN|ELSE|END|AS|as|IN|LIKE|RLIKE|ASC|DESC|NULLS FIRST|NULLS LAST|FILTER|WHERE|if"
    r"|else|distinct|Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|true|false|null)(?![\w#])"
    r"|(?P<sign><=>|>=|<=|>>>|>>|<<|[=<>+*/%&|^,()\[\]]|(?<= )-(?= ))|(?P<space>\s+)|(?P<other>.[^\s,()\[\]#=<>]*)",
    re.DOTALL,
)
_SHOWN = ("Condition", "Keys", "Functions", "Join type", "Join condition", "Left keys", "Right keys", "Results")
_LISTS = ("Project", "Window", "Generate", "Expand", "TakeOrderedAndProject", "Sort")
_SKIPPED = frozenset({"AdaptiveSparkPlan", "ColumnarToRow", "WriteFiles", "WholeStageCodegen", "InputAdapter"})
_OWN = ("Scan JDBCRelation", "Scan ExistingRDD", "Scan KafkaRelation")
MAX_PLAN = 64 * 1024
"""Characters that are kept."""


def normalised(tree: PlanTree, reader: TextExpressionReader) -> str:
    """A plan as a drawn tree, an operator a line, with what it does and without what differs from run to run."""
    lines: list[str] = []
    _draw(tree.root, 0, lines, reader)
    for number in sorted(tree.subqueries):
        lines.append("subquery")
        _draw(tree.subqueries[number], 1, lines, reader)
    text = "\n".join(lines)
    return text if len(text) <= MAX_PLAN else text[:MAX_PLAN] + "\n…"


def _draw(root: Operator, level: int, lines: list[str], reader: TextExpressionReader) -> None:
    seen: set[int] = set()
    stack = [(root, level)]
    while stack:
        operator, depth = stack.pop()
        if operator.id in seen:
            continue
        seen.add(operator.id)
        name = operator.name.split("\n")[0].strip()
        if not name or name.split()[0] in _SKIPPED:
            stack.extend((child, depth) for child in reversed(operator.children))
            continue
        own = next((known for known in _OWN if name.startswith(known)), None)
        lines.append(f"{'  ' * depth}{own or name}{_detail(operator, reader)}")
        stack.extend((child, depth + 1) for child in reversed(operator.children))


def _detail(operator: Operator, reader: TextExpressionReader) -> str:
    kind = operator.name.split()[0] if operator.name.strip() else ""
    fields = operator.fields
    parts = [f"{key}: {without_literals(fields[key], reader)}" for key in _SHOWN if fields.get(key)]
    if kind == "Project" or kind.startswith(("Scan", "BatchScan", "FileScan")):
        parts.append(without_literals(fields.get("Output", ""), reader))
    elif kind in _LISTS:
        parts.append(without_literals(fields.get("Arguments", ""), reader))
    return f" {'; '.join(filter(None, parts))}" if any(parts) else ""


def without_literals(text: str, reader: TextExpressionReader) -> str:
    """An expression of columns, functions and operators; all else, which may be anybody's data, is ``?``."""
    out: list[str] = []
    for found in _TOKEN.finditer(reader.plain(_PLAN_ID.sub("", text))):
        token = found[0]
        if found.lastgroup == "attribute":
            name, _, number = token.rpartition("#")
            known = reader.known.get(int(number.rstrip("L")), set())
            column = reader.name(int(number.rstrip("L")), name) if name in known or "" in known else "?"
            out.append(column if "#" not in column else "_")  # named after an expression, literals and all
        elif found.lastgroup == "other":
            _literal(out)
        else:
            out.append(token)
    return "".join(out)


def _literal(out: list[str]) -> None:
    """Add a literal; several in a row, however many there are, are one."""
    end = len(out)
    while end and (out[end - 1] == "," or out[end - 1].isspace()):
        end -= 1
    if end and out[end - 1] == "?":
        del out[end:]
    else:
        out.append("?")
