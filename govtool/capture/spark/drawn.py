"""A plan drawn as a tree, an operator a line: without ids and literals, so that equal work reads equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from govtool.capture.spark import plan as p

MAX_PLAN = 64 * 1024
"""Characters that are kept."""
MAX_EXPRESSION = 4096


def drawn(root: p.Node) -> str:
    """Draw a plan."""
    lines: list[str] = []
    size = 0
    stack: list[tuple[p.Node, int]] = [(root, 0)]
    names: dict[int, str] = {}
    while stack:
        node, depth = stack.pop()
        names.update((output.id, output.name) for output in _made(node))
        line = f"{'  ' * min(depth, 60)}{_line(node, names)}"
        size += len(line) + 1
        if size > MAX_PLAN:
            lines.append("…")
            break
        lines.append(line)
        stack.extend((child, depth + 1) for child in reversed(_children(node)))
    return "\n".join(lines)


def _made(node: p.Node) -> tuple[p.Named, ...]:
    match node:
        case p.Project() | p.Aggregate() | p.Extend():
            return tuple(p.Named(output.id, output.name) for output in node.outputs)
        case p.Filter() | p.Sort() | p.Distinct() | p.With():
            return ()
        case _:
            return node.outputs


def _children(node: p.Node) -> tuple[p.Node, ...]:
    return () if isinstance(node, p.CatalogView) else p.relations_below(node)  # what is behind a view is the view's


def _line(node: p.Node, names: Mapping[int, str]) -> str:
    match node:
        case (
            p.Scan() | p.Values() | p.Expand() | p.CatalogView() | p.Reference() | p.Loop() | p.Renamed()
            | p.LineageBreak() | p.Checkpoint()
        ):  # fmt: skip
            return f"{_head(node)} [{_listed(node)}]"
        case p.Project():
            return f"select [{_outputs(node.outputs)}]"
        case p.Extend():
            return f"extend [{_outputs(node.outputs)}]"
        case p.Filter():
            return f"filter {expression(node.condition)}"
        case p.Join():
            return _join(node)
        case p.Aggregate():
            return f"aggregate by [{_expressions(node.keys)}] [{_outputs(node.outputs)}]"
        case p.Sort():
            return f"sort [{_expressions(node.keys)}]"
        case p.Distinct():
            return f"distinct [{_expressions(node.keys)}]" if node.keys is not None else "distinct"
        case p.Union():
            return "union" if node.distinct else "union all"
        case p.SetOperation():
            return "set operation"
        case p.Generate():
            return f"generate {node.name}({_expressions(node.arguments)}) [{_listed(node)}]"
        case p.With():
            return "with"
        case p.Modify():
            on = f" on {expression(node.on)}" if node.on is not None else ""
            return f"modify{on}: {'; '.join(_clause(clause) for clause in node.clauses)}"


def _expressions(items: Iterable[p.Expression]) -> str:
    return ", ".join(expression(item) for item in items)


def _outputs(items: Iterable[p.Output]) -> str:
    return ", ".join(_output(item) for item in items)


def _head(
    node: p.Scan
    | p.Values
    | p.Expand
    | p.CatalogView
    | p.Reference
    | p.Loop
    | p.Renamed
    | p.LineageBreak
    | p.Checkpoint,
) -> str:
    """The words for an operator of which the columns are all that there is besides."""
    match node:
        case p.Scan():
            return f"read {node.dataset}"
        case p.Values():
            return "values"
        case p.Expand():
            return f"expand {len(node.projections)}"
        case p.CatalogView():
            return f"view {node.dataset}"
        case p.Reference():
            return "reference"
        case p.Loop():
            return "recursive"
        case p.Renamed():
            return "as"
        case p.Checkpoint():
            return "checkpoint"
        case p.LineageBreak():
            return f"{node.code} {node.message}"


def _join(node: p.Join) -> str:
    kind = "semi join" if node.left_only else "lateral join" if node.lateral else "join"
    return f"{kind} {expression(node.condition)}" if node.condition is not None else kind


def _listed(node: p.Node) -> str:
    return ", ".join(output.name for output in _made(node))


def _clause(clause: p.Clause) -> str:
    when = f" where {expression(clause.condition)}" if clause.condition is not None else ""
    values = ", ".join(f"{path} = {expression(value)}" for path, value in clause.assignments)
    return f"{clause.action}{f' [{values}]' if values else ''}{when}"


def _output(item: p.Output) -> str:
    text = expression(item.value)
    return text if text == item.name else f"{text} as {item.name}"


def expression(item: p.Expression, depth: int = 0) -> str:
    """Write an expression by the names of its columns; literals are ``?``."""
    if depth > 40:
        return "…"

    def inner(items: tuple[p.Expression, ...]) -> str:
        return ", ".join(expression(each, depth + 1) for each in items)

    match item:
        case p.Attribute():
            text = item.name or "_"
        case p.Constant():
            text = "?"
        case p.Apply():
            text = f"{item.name}({inner(item.arguments)})"
        case p.Conditional():
            text = f"{expression(item.value, depth + 1)} {item.kind.label} ({inner(item.by)})"
        case p.Field():
            text = f"{expression(item.base, depth + 1)}{'' if item.step[0] == '[' else '.'}{item.step}"
        case p.StructValue():
            text = f"{item.name}({', '.join(f'{n}: {expression(v, depth + 1)}' for n, v in item.fields)})"
        case p.Elements():
            text = f"{item.name}({inner(item.items)})"
        case p.Opaque():
            text = f"{item.reason}({inner(item.arguments)})"
        case p.Query():
            text = f"(subquery: {' / '.join(line.strip() for line in drawn(item.plan).splitlines())})"
        case p.Let():
            text = expression(item.body, depth + 1)
    return text if len(text) <= MAX_EXPRESSION else f"{text[:MAX_EXPRESSION]}…"
