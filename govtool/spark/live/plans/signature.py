"""The signature of an analyzed plan: an operator a line, with operators by name and a digest for each literal.

Two runs with one signature did the same work on their inputs. Unlike the plan that lineage is read from, it tells
``>`` from ``<``, an inner from a left join, ascending from descending. Names that Spark numbers anew in each session
(ids of expressions, of CTEs, seeds) are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Json = Any

MAX_SIGNATURE = 64 * 1024
"""Characters that are kept."""
MAX_LINE = 2000

_OPERATORS = {
    "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<=", "EqualTo": "=",
    "EqualNullSafe": "<=>", "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "And": "and", "Or": "or", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "IntegralDivide": "div",
}  # fmt: skip
_RANDOM = {"Rand": "rand", "Randn": "randn", "Uuid": "uuid", "Shuffle": "shuffle", "RandStr": "randstr",
           "Uniform": "uniform"}  # fmt: skip
_CLOCK = {
    "CurrentTimestamp": "current_timestamp", "CurrentDate": "current_date", "Now": "now",
    "LocalTimestamp": "localtimestamp", "CurrentBatchTimestamp": "current_batch_timestamp", "UnixTimestamp": "",
    "CurrentTime": "current_time",
}  # fmt: skip
_PLACED = {
    "MonotonicallyIncreasingID": "monotonically_increasing_id", "SparkPartitionID": "spark_partition_id",
    "InputFileName": "input_file_name", "First": "first", "Last": "last", "AnyValue": "any_value",
    "CollectList": "collect_list", "CollectSet": "collect_set", "Sample": "sample", "ListAgg": "listagg",
    "RowNumber": "row_number", "NTile": "ntile", "Lead": "lead", "Lag": "lag", "NthValue": "nth_value",
    "MaxBy": "max_by", "MinBy": "min_by", "Mode": "mode", "ApproximatePercentile": "approx_percentile",
}  # fmt: skip
_NAMES = ("name", "udfName", "joinType", "colName", "functionName")
_NUMBERS = ("lowerBound", "upperBound", "numPartitions", "withReplacement", "isDistinct", "global", "byName", "left",
            "outer", "isAll", "start", "end", "step", "isDefault")  # fmt: skip
_PARAMETERS = ("options", "schema", "format", "unit", "interval", "pattern")
_UNSTABLE = ("nullable", "isStreaming", "hideSeed", "udfDeterministic", "resolved", "deterministic")
_SUMS = frozenset({"Sum", "Average", "StddevSamp", "StddevPop", "VarianceSamp", "VariancePop", "Corr", "CovPopulation"})
PYTHON_CALLS = ("PythonUDF", "PythonUDAF", "PythonUDTF")
"""Expressions that call a Python function."""
_MAY_DIFFER = re.compile(
    r'"class":"(?:[^"]*\.)?(?:GlobalLimit|Deduplicate[^".]*|'
    + "|".join(sorted({*_RANDOM, *_CLOCK, *_PLACED, *_SUMS}))
    + r')"|"udfDeterministic":false'
)
"""What ``unstable_functions`` looks at, in the text of a plan."""
_LONG_NUMBER = re.compile(r"-?\d{9,}")


class Node:
    """A node of the JSON: its class without the package, its fields and its children."""

    __slots__ = ("children", "fields", "name")

    def __init__(self, fields: dict[str, Json]) -> None:
        self.fields = fields
        self.name = str(fields["class"]).rsplit(".", 1)[-1]
        self.children: list[Node] = []


def signature(nodes: list[dict[str, Json]], digest: Callable[[str], str]) -> str:
    """Draw a plan from its JSON.

    Args:
        nodes: As ``toJSON()`` gives it.
        digest: Of a literal; empty where there is no key, and then all literals are one.
    """
    lines: list[str] = []
    size = 0
    for node, depth in _walk(_tree(nodes)):
        line = f"{'  ' * min(depth, 40)}{_snake(node.name)} {_described(node, digest)}".rstrip()
        line = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}… {digest(line)}"
        size += len(line) + 1
        if size > MAX_SIGNATURE:
            lines.append(f"… {digest(repr([n.name for n, _ in _walk(_tree(nodes))]))}")
            break
        lines.append(line)
    return "\n".join(lines)


def may_be_unstable(text: str) -> bool:
    """Return whether ``unstable_functions`` may find some in a plan, as ``toJSON()`` writes it."""
    return _MAY_DIFFER.search(text) is not None


def unstable_functions(nodes: list[dict[str, Json]], digest: Callable[[str], str]) -> list[str]:
    """Functions of a plan that may give another result each time: random ones, clocks, then what rests on order.

    Random functions carry a digest of their seed: with the same seed they are random only in another partitioning.
    """
    random: dict[str, None] = {}
    clock: dict[str, None] = {}
    placed: dict[str, None] = {}
    for node in _every(_tree(nodes)):
        if node.name in _RANDOM:
            random[f"{_RANDOM[node.name]}({_seed(node, digest)})"] = None
        elif _CLOCK.get(node.name):
            clock[f"{_CLOCK[node.name]}()"] = None
        elif node.name in _PLACED:
            placed[f"{_PLACED[node.name]}()"] = None
        elif node.name == "GlobalLimit" and not _is_sorted(node):
            placed["limit without an order"] = None
        elif node.name.startswith("Deduplicate") and not _is_whole_row(node):
            placed["dropDuplicates of some columns"] = None
        elif node.name in _SUMS and _is_float(node):
            placed[f"{_snake(node.name)} of floats"] = None
        elif node.fields.get("udfDeterministic") is False:
            random[f"{node.fields.get('name') or 'function'}()"] = None
    return [*sorted(random), *sorted(clock), *sorted(placed)]


def python_calls(nodes: list[dict[str, Json]]) -> list[str]:
    """The names of the Python functions that a plan calls."""
    names = (str(node.fields.get("name") or "") for node in _every(_tree(nodes)) if node.name in PYTHON_CALLS)
    return list(dict.fromkeys(names))


# ---- the tree -------------------------------------------------------------------------------------------------


def _tree(nodes: list[dict[str, Json]]) -> Node:
    root: Node | None = None
    open_: list[tuple[Node, int]] = []
    for fields in nodes:
        node = Node(fields)
        while open_ and len(open_[-1][0].children) == open_[-1][1]:
            open_.pop()
        if open_:
            open_[-1][0].children.append(node)
        root = root or node
        open_.append((node, int(fields.get("num-children", 0))))
    if root is None:
        raise ValueError("no plan")
    return root


def _is_tree(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "class" in value[0]


def _trees(value: Json) -> Iterator[Node]:
    """The trees in a field: one, a list of them, or lists of lists."""
    if _is_tree(value):
        yield _tree(value)
    elif isinstance(value, list):
        for item in value:
            yield from _trees(item)


def _walk(root: Node) -> Iterator[tuple[Node, int]]:
    """The operators of a plan and of the plans in its commands, subqueries left to their expressions."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        inner = [
            tree for key in ("query", "plan") if _is_tree(node.fields.get(key)) for tree in _trees(node.fields[key])
        ]
        stack.extend((child, depth + 1) for child in reversed([*node.children, *inner]))


def _every(root: Node) -> Iterator[Node]:
    """The nodes of a plan and of all expressions and plans in it."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)
        for value in node.fields.values():
            if isinstance(value, list):
                stack.extend(_trees(value))


# ---- expressions ----------------------------------------------------------------------------------------------


def _described(node: Node, digest: Callable[[str], str]) -> str:
    parts = [_scalar(name, node.fields[name]) for name in _NAMES if node.fields.get(name) is not None]
    parts += [_number(name, node.fields[name], digest) for name in _NUMBERS if node.fields.get(name) is not None]
    if node.name == "LocalRelation" or not node.children:
        parts.append(f"[{', '.join(_name(tree) for tree in _trees(node.fields.get('output')))}]")
    for key, value in node.fields.items():
        if key in ("output", "query", "plan") or not isinstance(value, list):
            continue
        texts = [_expression(tree, digest) for tree in _trees(value)]
        if texts:
            parts.append(f"[{', '.join(texts)}]")
    return " ".join(part for part in parts if part)


def _scalar(name: str, value: Json) -> str:
    if isinstance(value, dict):  # a Scala object or a product: its name
        value = str(value.get("object") or value.get("product-class") or "").rsplit(".", 1)[-1].rstrip("$")
    if isinstance(value, str):
        return _LONG_NUMBER.sub("?", value)
    return f"{name}={value}" if isinstance(value, bool | int | float) else ""


def _number(name: str, value: Json, digest: Callable[[str], str]) -> str:
    """A flag as it stands; a number, which may be data, by its digest."""
    if isinstance(value, bool):
        return f"{name}={value}"
    return f"{name}=‹{digest(str(value))}›" if isinstance(value, int | float | str) else ""


def _parameters(node: Node, digest: Callable[[str], str]) -> Iterator[str]:
    """Flags of an expression, and a digest for what stands beside its arguments: schemas, options, units."""
    for key, value in sorted(node.fields.items()):
        if value is True and key not in _UNSTABLE:
            yield key
        elif key in _PARAMETERS and value:
            yield f"{key}=‹{digest(json.dumps(value, sort_keys=True))}›"


def _name(tree: Node) -> str:
    return _LONG_NUMBER.sub("?", str(tree.fields.get("name") or "_"))


def _expression(node: Node, digest: Callable[[str], str]) -> str:
    name = node.name
    if name == "Literal":
        value = node.fields.get("value")
        return "null" if value is None else f"‹{digest(f'{_type(node)} {value}')}›"
    if name in ("AttributeReference", "NamedLambdaVariable", "OuterReference") and not node.children:
        return _name(node)
    # Their seeds differ from run to run; signatures of equal queries must not.
    if name in _RANDOM:
        return f"{_RANDOM[name]}()"
    children = [_expression(child, digest) for child in node.children]
    if name == "Alias":
        named = _name(node)
        return children[0] if children[0] == named else f"{children[0]} as {named}"
    if name in _OPERATORS and len(children) == 2:
        return f"({children[0]} {_OPERATORS[name]} {children[1]})"
    if name == "Cast":
        return f"cast({children[0]} as {_type(node)})"
    if name == "SortOrder":
        return (
            f"{children[0]} {_scalar('', node.fields.get('direction'))} {_scalar('', node.fields.get('nullOrdering'))}"
        )
    if name == "AggregateExpression":
        distinct = "distinct " if node.fields.get("isDistinct") is True else ""
        return f"{distinct}{children[0]}" + (f" filter {children[1]}" if len(children) > 1 else "")
    inner = ["; ".join(_drawn(tree, digest)) for tree in _trees(node.fields.get("plan"))]
    words = [_scalar(key, node.fields.get(key)) for key in ("name", "udfName", "frameType") if node.fields.get(key)]
    words += _parameters(node, digest)
    return f"{' '.join((_snake(name), *words))}({', '.join((*children, *inner))})"


def _drawn(tree: Node, digest: Callable[[str], str]) -> Iterator[str]:
    """A subquery, in one line."""
    for node, _ in _walk(tree):
        yield f"{_snake(node.name)} {_described(node, digest)}".rstrip()


def _type(node: Node) -> str:
    type_ = node.fields.get("dataType")
    return type_ if isinstance(type_, str) else str(type_.get("type", "")) if isinstance(type_, dict) else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# ---- what may answer otherwise --------------------------------------------------------------------------------


def _seed(node: Node, digest: Callable[[str], str]) -> str:
    values = [child.fields.get("value") for child in node.children if child.name == "Literal"]
    values += [node.fields[key] for key in ("randomSeed", "seed") if isinstance(node.fields.get(key), int | str)]
    return digest(repr(values)) if values else ""


def _is_sorted(limit: Node) -> bool:
    """Return whether a limit stands on a sort, with nothing between that loses the order."""
    node = limit
    while node.children and node.name in ("GlobalLimit", "LocalLimit", "Project", "Filter", "SubqueryAlias", "Offset"):
        node = node.children[0]
    return node.name == "Sort"


def _is_whole_row(deduplicate: Node) -> bool:
    """Return whether rows are duplicates by all columns, so that it does not count which of them stays."""
    width = _width(deduplicate.children[0]) if deduplicate.children else None
    return width is not None and len(list(_trees(deduplicate.fields.get("keys")))) >= width


def _width(node: Node) -> int | None:
    """The number of columns of an operator; None: it is not known."""
    while True:
        for key in ("projectList", "aggregateExpressions", "output"):
            if isinstance(node.fields.get(key), list):
                return len(list(_trees(node.fields[key])))
        if len(node.children) != 1 or node.name in ("Window", "Generate", "Expand"):
            return None
        node = node.children[0]


def _is_float(node: Node) -> bool:
    return any(_type(each) in ("double", "float") for each in _every(node) if each is not node)
