"""The analyzed plan of a text in ``spark.sql.ui.explainMode=extended``: what was written, before the optimizer came.

The physical plan of such a text has an operator a line: it leaves out functions of aggregates, and does not tell a join
from EXISTS. The analyzed plan above it has both. It is used where it can be read as a whole; what is read from where
stays what the physical plan says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext import lists, oneline
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.operators import Builder
from govtool.capture.spark.plantext.tree import Operator, PlanTextError, PlanTree

_START = "== Analyzed Logical Plan ==\n"
_END = "\n== Optimized Logical Plan =="
_INSERTS = re.compile(r"(?:InsertInto\w+|AppendData|OverwriteByExpression|OverwritePartitionsDynamic)\Z")
_WRITES = re.compile(
    r"(?:InsertInto\w+|Create\w+AsSelect\w*|SaveAsV1TableCommand|SaveIntoDataSourceCommand|ReplaceTableAsSelect"
    r"|AppendData|OverwriteByExpression|OverwritePartitionsDynamic)\Z"
)
_SUBQUERY = re.compile(r"\b(?:scalar-subquery|exists|list|lateral-subquery)#(\d+)")
_FUNCTION = re.compile(r"\)#(\d+)L?")
MAX_CALLS = 200
"""Calls of Python functions in a plan."""
MAX_CALL = 50_000
"""Characters of a call."""
_NAME = re.compile(r"[\w<>$.]+\Z")
PYTHON = "pythonUDF"
"""The name of the columns that stand for calls of Python functions."""
_ONE_SIDED = ("LeftSemi", "LeftAnti")
_CUT = re.compile(r"\.\.\. \d+ more fields")


def analyzed_query(text: str, known: Mapping[int, tuple[str, str]], physical: Builder) -> p.Node | None:
    """Return the query of the analyzed plan in a text; None if there is none, or not all of it can be read.

    Args:
        text: Of all phases of a plan.
        known: Dataset and column of attributes that other plans of the application read, by id.
        physical: What has read the physical plan.
    """
    start, end = text.find(_START), text.find(_END)
    if start < 0 or end < start:
        return None
    body = text[start + len(_START) : end]
    _, _, rest = body.partition("\n")
    if not rest.startswith((":", "+-")):  # the first line of a query has its columns and their types
        body = rest
    if "update_fields(" in body:  # the optimizer writes out which fields a struct has then
        return None
    try:
        tree = oneline.parse(body)
    except PlanTextError:
        return None
    query = _prepared(tree)
    if query is None:
        return None
    read = {**known, **physical.lineage.attributes}
    builder = AnalyzedBuilder(tree, read, physical.locate)
    builder.reader.arrays = physical.reader.arrays
    if _CUT.search(body):
        builder.add_columns(physical.lineage.attributes)
        if any(int(number) not in builder.reader.known for number in re.findall(r"#(\d+)", body)):
            return None
    node = builder.node(query)
    if builder.reader.uncertain or builder.lineage.notes:
        return None
    inserts = query is not tree.root and _INSERTS.match(plain_name(tree.root)) is not None
    return build.uncast(node) if inserts else node


def _prepared(tree: PlanTree) -> Operator | None:
    """The operator of the query, its tree made ready; None if the text leaves anything open."""
    for operator in list(tree.operators.values()):
        if any(_CUT.search(operator.fields.get(key, "")) for key in ("Arguments", "Condition")):
            return None
        if not _take_subqueries(tree, operator):
            return None
    made = {
        int(number)
        for operator in tree.operators.values()
        for number in re.findall(r"#(\d+)L?(?=[,\]])", operator.fields.get("Arguments", ""))
    }
    calls = [MAX_CALLS]
    if not all(_take_functions(operator, made, calls) for operator in tree.operators.values()):
        return None
    root = tree.root
    if any(_WRITES.match(plain_name(child)) for child in root.children):
        return None  # a multi-insert
    if _WRITES.match(plain_name(root)):
        return root.children[0] if len(root.children) == 1 else None
    return root


def _take_functions(operator: Operator, made: set[int], left: list[int]) -> bool:
    """Take the calls of Python functions, ``f(a#1)#7``, out of the arguments: each has an id of its own, and is read as
    a column that the input has. False if it has no place in one input, or there are more than ``left``.
    """
    taken = []
    for key in [key for key in ("Arguments", "Condition") if key in operator.fields]:
        text, start = operator.fields[key], 0
        while (found := _FUNCTION.search(text, start)) is not None:
            start = found.end()
            if int(found[1]) in made:
                continue
            left[0] -= 1
            opening = _opening(text, found.start())
            name = _NAME.search(text, max(0, opening - 200), opening) if opening > 0 and left[0] >= 0 else None
            if name is None:
                return False
            taken.append(f"{text[name.start() : found.start() + 1]} AS {PYTHON}#{found[1]}")
            text = f"{text[: name.start()]}{PYTHON}#{found[1]}{text[found.end() :]}"
            start = name.start()
        operator.fields[key] = text
    if taken:
        operator.fields[PYTHON] = "\n".join(dict.fromkeys(taken))
    return not taken or len(operator.children) == 1


def _opening(text: str, closing: int) -> int:
    """The place of the bracket that another closes; -1 if there is none nearby."""
    depth = 0
    for at in range(closing, max(-1, closing - MAX_CALL), -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if not depth:
            return at
    return -1


def _take_subqueries(tree: PlanTree, operator: Operator) -> bool:
    """Take the plans of subqueries, which come first among the children; False if they cannot be told."""
    numbers = [int(number) for number in _SUBQUERY.findall(operator.fields.get("Arguments", ""))]
    if not numbers:
        return True
    if len(operator.children) <= len(numbers) - (operator.name == "OneRowRelation"):
        return False
    inner, operator.children = operator.children[: len(numbers)], operator.children[len(numbers) :]
    for number, root in zip(numbers, inner, strict=True):
        tree.subqueries.setdefault(number, root)
    return True


class AnalyzedBuilder(Builder):
    """Relations of an analyzed plan, of which everything was written or has been added by analysis."""

    read: Mapping[int, tuple[str, str]] = MappingProxyType({})
    """Dataset and column of what the physical plan reads, by id."""

    def add_columns(self, read: Mapping[int, tuple[str, str]]) -> None:
        """Add columns of wide tables that the text leaves out: those that the physical plan reads."""
        self.read = read
        self.reader.add_attributes((number, name) for number, (_, name) in read.items())

    def _outputs_of_leaf(self, operator: Operator) -> tuple[p.Named, ...]:
        """The columns of a leaf; of a wide one, of which the text leaves columns out, those that the scan reads too."""
        listed = super()._outputs_of_leaf(operator)
        found = self.locate(operator) if _CUT.search(operator.fields.get("Output", "")) else None
        if found is None:
            return listed
        known = {output.id for output in listed}
        more = (p.Named(number, name) for number, (dataset, name) in self.read.items() if dataset == found.place.id)
        return (*listed, *(named for named in more if named.id not in known))

    def _build(self, operator: Operator) -> p.Node:
        method = _METHODS.get(plain_name(operator))
        return method(self, operator) if method is not None else super()._build(operator)

    def _child(self, operator: Operator, position: int = 0) -> p.Node:
        child = super()._child(operator, position)
        outputs = []
        for text in operator.fields.get(PYTHON, "").splitlines():
            call, _, number = text.rpartition(f" AS {PYTHON}#")
            name, _, arguments = call.partition("(")
            value = p.Opaque(f"python-udf: {name}", self.reader.attributes(arguments))
            outputs.append(p.Output(int(number), PYTHON, value))
            self.reader.add_attributes([(int(number), PYTHON)])
        for output in outputs:  # one by one: a function may take what another gave
            child = p.Extend(child, (output,))
        return child

    def _unknown(self, operator: Operator, name: str) -> p.Node:
        self._note("break.operator", f"the operator {name} is not known")  # so that the physical plan is read
        return super()._unknown(operator, name)

    def _parts(self, operator: Operator) -> Iterator[str]:
        """The lists among the arguments of an operator."""
        return (part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("["))

    def _filter(self, operator: Operator) -> p.Node:
        return p.Filter(self._child(operator), self.reader.condition(operator.fields["Condition"]))

    def _sort(self, operator: Operator) -> p.Node:
        return p.Sort(self._child(operator), self._expressions(next(self._parts(operator), "[]")))

    def _join(self, operator: Operator) -> p.Node:
        kind, _, condition = operator.fields.get("Arguments", "").partition(", ")
        on = self.reader.condition(condition) if condition else None
        left_only = kind.startswith(_ONE_SIDED)
        return p.Join(self._child(operator), self._child(operator, 1), on, left_only=left_only)

    def _lateral_join(self, operator: Operator) -> p.Node:
        found = _SUBQUERY.search(operator.fields.get("Arguments", ""))
        inner = self._query(int(found[1])) if found is not None else None
        if inner is None:
            return self._unknown(operator, "LateralJoin")
        condition = re.search(r", (?:Inner|LeftOuter|Cross), (.*)\Z", operator.fields["Arguments"], re.DOTALL)
        on = self.reader.condition(condition[1]) if condition is not None else None
        return p.Join(self._child(operator), inner, on, lateral=True)

    def _union(self, operator: Operator) -> p.Node:
        children = [self._nodes[child.id] for child in operator.children]
        return build.union(children, p.outputs_of(children[0])) if children else self._unknown(operator, "Union")

    def _set_operation(self, operator: Operator) -> p.Node:
        left, right = (build.uncast(self._child(operator, side), narrower=False) for side in (0, 1))
        return p.SetOperation(left, right)

    def _distinct(self, operator: Operator) -> p.Node:
        child = self._child(operator)
        if isinstance(child, p.Union) and not child.distinct:
            return build.union(child.children, child.outputs, distinct=True)
        return p.Distinct(child)

    def _view(self, operator: Operator) -> p.Node:
        """A view: analysis casts all columns of one of SQL text, and none of a frame's."""
        child = self._child(operator)
        casts = isinstance(child, p.Project) and all(_is_cast(output.value) for output in child.outputs)
        return build.uncast(child) if casts else child

    def _with(self, operator: Operator) -> p.Node:
        definitions = {_number(child): self._nodes[child.id] for child in operator.children if _is_definition(child)}
        body = next((self._nodes[child.id] for child in operator.children if not _is_definition(child)), None)
        return self._unknown(operator, "WithCTE") if body is None else p.With(tuple(definitions.items()), body)

    def _reference(self, operator: Operator) -> p.Node:
        return p.Reference(_number(operator), self._listed_in(operator))

    def _listed_in(self, operator: Operator) -> tuple[p.Named, ...]:
        items = lists.split(next(self._parts(operator), "[]")).items
        return tuple(p.Named(found[0], found[1]) for found in map(lists.attribute, items) if found is not None)

    def _logical_aggregate(self, operator: Operator) -> p.Node:
        node = super()._logical_aggregate(operator)
        return build.aggregate(node.child, node.keys, node.outputs) if isinstance(node, p.Aggregate) else node

    def _kept(self, operator: Operator, required: str | None, outputs: tuple[p.Named, ...]) -> frozenset[int] | None:
        return None  # all columns of the input stay

    def _through(self, operator: Operator) -> p.Node:
        return self._child(operator)


def _is_cast(value: p.Expression) -> bool:
    return isinstance(value, p.Apply) and value.name == "cast"


def _is_definition(operator: Operator) -> bool:
    return plain_name(operator) == "CTERelationDef"


def _number(operator: Operator) -> int:
    """The number of a common table expression, the first of the arguments."""
    found = re.match(r"\d+", operator.fields.get("Arguments", ""))
    return int(found[0]) if found is not None else -1


_METHODS: dict[str, Callable[[AnalyzedBuilder, Operator], p.Node]] = {
    "Filter": AnalyzedBuilder._filter,
    "Sort": AnalyzedBuilder._sort,
    "RepartitionByExpression": AnalyzedBuilder._sort,
    "Join": AnalyzedBuilder._join,
    "LateralJoin": AnalyzedBuilder._lateral_join,
    "Union": AnalyzedBuilder._union,
    "Except": AnalyzedBuilder._set_operation,
    "Intersect": AnalyzedBuilder._set_operation,
    "Distinct": AnalyzedBuilder._distinct,
    "View": AnalyzedBuilder._view,
    "WithCTE": AnalyzedBuilder._with,
    "CTERelationRef": AnalyzedBuilder._reference,
    "CTERelationDef": AnalyzedBuilder._through,
    "PipeOperator": AnalyzedBuilder._through,
    "WithWindowDefinition": AnalyzedBuilder._through,
    "DataFrameDropColumns": AnalyzedBuilder._through,
}
