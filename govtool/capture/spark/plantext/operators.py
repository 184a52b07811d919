"""Operators of plan text as relations: what each of Spark's physical and logical operators means for lineage.

Operators of Photon and of GPUs are Spark's own under other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.breaks import BREAKS
from govtool.capture.spark.plantext import lists, operator_names
from govtool.capture.spark.plantext.aggregates import PYTHON_CALL, Aggregates
from govtool.capture.spark.plantext.expressions import written_conditions
from govtool.capture.spark.plantext.generators import Generators
from govtool.capture.spark.plantext.leaves import Leaves
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.reading import TRUNCATED, ids_of, named_of
from govtool.capture.spark.plantext.tree import Operator

_LEAVES = ("Scan", "BatchScan", "FileScan", "LogicalRelation", "Relation", "InMemoryTableScan")
_JOIN_TYPE = re.compile(
    r" (Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|LeftSingle|ExistenceJoin\([^)]*\))(?: |\Z)"
)
_CAST = re.compile(r"cast\([^()]*#(\d+)(L?) as (\w+)(?:\([\d,]+\))?\) AS ")
_MARK = re.compile(r"ExistenceJoin\((.*)#(\d+)\)")


class Builder(Leaves, Aggregates, Generators):
    """Relations of one plan; see `Reading`."""

    def _build(self, operator: Operator) -> p.Node:
        name = plain_name(operator)
        if name == "ReusedExchange" or operator.reuses is not None:
            return p.Renamed(
                self._child(operator), self._listed(operator, "Output") or p.outputs_of(self._child(operator))
            )
        if name in operator_names.AGGREGATES or name in operator_names.ARROW_AGGREGATES:
            return self._aggregate(operator, python=name in operator_names.ARROW_AGGREGATES)
        if name in operator_names.JOINS:
            return self._join(operator)
        method = _METHODS.get(name)
        if method is not None:
            return method(self, operator)
        if name in operator_names.WINDOWS:
            return self._window(operator)
        if name in operator_names.PYTHON:
            return self._python(operator)
        if name in BREAKS or name in operator_names.TYPED:
            return self._break(operator, name)
        if not self._inputs(operator) or name in _LEAVES:
            return self._leaf(operator)
        if name in operator_names.THROUGH or name.endswith(("QueryStage", "Exchange", "Read", "ToRow", "Limit")):
            return self._child(operator)
        return self._unknown(operator, name)

    def _in_memory(self, operator: Operator) -> p.Node:
        return self._child(operator)

    def _project(self, operator: Operator) -> p.Node:
        text, count = self._first_list(operator, "Output")
        return self._select(operator, self._child(operator), text, count)

    def _filter(self, operator: Operator) -> p.Node:
        text = operator.fields.get("Condition") or operator.fields.get("Arguments", "")
        kept = written_conditions(text, self.compared, generates=self._generates_above(operator))
        if not kept:
            return self._child(operator)
        return p.Filter(self._child(operator), p.Apply("", tuple(self.reader.condition(part) for part in kept)))

    def _generates_above(self, operator: Operator) -> bool:
        parent = self.parents.get(operator.id)
        while parent is not None and plain_name(parent) in ("Project", "Filter", "Generate", *operator_names.THROUGH):
            if plain_name(parent) == "Generate":
                return True
            parent = self.parents.get(parent.id)
        return False

    def _sort(self, operator: Operator) -> p.Node:
        parts = lists.arguments(operator.fields.get("Arguments", ""))
        parent = self.parents.get(operator.id)
        written = parent is None or plain_name(parent) in operator_names.UNORDERED
        if len(parts) < 2 or (parts[1].strip() != "true" and not written):
            return self._child(operator)
        return p.Sort(self._child(operator), self._expressions(parts[0]))

    def _exchange(self, operator: Operator) -> p.Node:
        """Rows that somebody places by columns (``repartition``) are, all others go where Spark wants them."""
        text, written, _ = operator.fields.get("Arguments", "").partition(", REPARTITION_BY_")
        keys = self.reader.attributes(text) if written else ()
        return p.Sort(self._child(operator), keys) if keys else self._child(operator)

    def _take_ordered(self, operator: Operator) -> p.Node:
        parts = lists.arguments(operator.fields.get("Arguments", ""))
        found = [part for part in parts if part.startswith("[")]
        child = self._child(operator)
        if not found:
            return child
        node: p.Node = p.Sort(child, self._expressions(found[0]))
        return self._select(operator, node, found[1], None) if len(found) > 1 else node

    def _union(self, operator: Operator) -> p.Node:
        children = [_uncast(self._nodes[child.id], self._narrowed(child)) for child in self._inputs(operator)]
        return build.union(children, self._listed(operator, "Output")) if children else p.Values(())

    def _narrowed(self, operator: Operator) -> set[int]:
        """Columns that a select list casts to a type that holds less: analysis fits arms of a union to wider ones."""
        while plain_name(operator) in operator_names.THROUGH and len(operator.children) == 1:
            operator = operator.children[0]
        found = set()
        for item in lists.split(operator.fields.get("Output", "")).items:
            made, cast = lists.alias(item), _CAST.match(item)
            if made is not None and cast is not None:
                source = "bigint" if cast[2] else self.types.get(int(cast[1]), "")
                if build.narrows(source, cast[3]):
                    found.add(made[1])
        return found

    def _objects(self, operator: Operator) -> p.Node:
        """Rows that a function of the driver's gets, of ``foreachPartition`` or a connector, are what they were."""
        if self.parents.get(operator.id) is not None:
            return self._break(operator, plain_name(operator))
        return self._child(operator)

    def _view(self, operator: Operator) -> p.Node:
        return _uncast(self._child(operator))

    def _join(self, operator: Operator) -> p.Node:
        left, right = self._child(operator), self._child(operator, 1)
        drawn = _JOIN_TYPE.search(operator.name)  # the details tell it since Spark 3.4
        join_type = operator.fields.get("Join type", "") or (drawn[1] if drawn is not None else "")
        parts: list[p.Expression] = []
        arguments = operator.fields.get("Arguments", "")
        if not join_type:
            items = lists.arguments(arguments)
            join_type = next((i for i in items if re.match(r"(?:Inner|Left|Right|Full|Cross|Existence)", i)), "Inner")
            parts += [self.reader.condition(i) for i in items if i != join_type]
        for key in ("Left keys", "Right keys"):
            parts += [self.reader.condition(item) for item in lists.split(operator.fields.get(key, "")).items]
        condition = operator.fields.get("Join condition", "None")
        if condition != "None":
            parts.append(self.reader.condition(condition))
        mark = _MARK.match(join_type)
        one_sided = join_type.startswith(("LeftSemi", "LeftAnti")) or mark is not None
        if one_sided and mark is None and condition == "None" and self._null_safe(operator, left, right):
            return p.SetOperation(left, right)
        outputs = (p.Named(int(mark[2]), mark[1]),) if mark is not None else ()
        on = p.Apply("", tuple(parts)) if parts else None
        return p.Join(left, right, on, left_only=one_sided, outputs=outputs)

    def _null_safe(self, operator: Operator, left: p.Node, right: p.Node) -> bool:
        """Return whether a semi or anti join is INTERSECT or EXCEPT: all columns, with NULLs equal."""
        for key, side in (("Left keys", left), ("Right keys", right)):
            items = lists.split(operator.fields.get(key, "")).items
            checked = {i for item in items if item.startswith("isnull(") for i in ids_of(item)}
            if not checked or checked != {output.id for output in p.outputs_of(side)}:
                return False
        return True

    def _window(self, operator: Operator) -> p.Node:
        child = self._child(operator)
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        elements = lists.split(parts[0]) if parts else lists.ListItems((), 1)
        made = [o for o in (self._output(item) for item in elements.items) if o is not None]
        below = {o.id for o in p.outputs_of(child)}
        made = [o for o in made if o.id not in below]
        if elements.more or len(made) < len(elements.items):
            window = tuple(e for part in parts[1:] for e in self._expressions(part))
            known = below | {o.id for o in made}
            hidden = [named for named in self._read_above(operator) if named.id not in known]
            self._note(TRUNCATED, f"{operator.name}: window functions that the plan text leaves out")
            everything = tuple(p.Attribute(o.id, o.name) for o in p.outputs_of(child)) or window
            made += [p.Output(named.id, named.name, p.Opaque(TRUNCATED, everything)) for named in hidden]
        return p.Extend(child, tuple(made))

    def _python(self, operator: Operator) -> p.Node:
        """Python functions: their arguments are exact, what they do is not known."""
        child = self._child(operator)
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        calls = lists.split(parts[0]).items if parts else ()
        named = [named_of(item) for item in lists.split(parts[1]).items] if len(parts) > 1 else []
        outputs = []
        for position, item in enumerate(named):
            if item is None:
                continue
            value: p.Expression
            call = PYTHON_CALL.match(calls[position]) if position < len(calls) else None
            if call is not None:
                value = p.Opaque(f"python-udf: {call[1].strip() or 'lambda'}", self.reader.attributes(call[2]))
            else:
                everything = tuple(p.Attribute(o.id, o.name) for o in p.outputs_of(child))
                self._note(TRUNCATED, f"{operator.name}: functions that the plan text leaves out")
                value = p.Opaque(TRUNCATED, everything)
            outputs.append(p.Output(item[0], item[1], value))
        return p.Extend(child, tuple(outputs))

    def _loop(self, operator: Operator) -> p.Node:
        found = re.search(r"\d+", operator.fields.get("Loop id", ""))
        outputs = self._listed(operator, "Output")
        if len(operator.children) < 2 or found is None:
            return self._unknown(operator, "UnionLoop")
        anchor, step = self._child(operator), self._child(operator, 1)
        return p.Loop(int(found[0]), anchor, step, outputs or p.outputs_of(anchor))

    def _set_operation(self, operator: Operator) -> p.Node:
        return p.SetOperation(self._child(operator), self._child(operator, 1))

    def _distinct(self, operator: Operator) -> p.Node:
        return p.Distinct(self._child(operator))

    def _deduplicate(self, operator: Operator) -> p.Node:
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        return p.Distinct(self._child(operator), self._expressions(parts[0]) if parts else None)


def _uncast(node: p.Node, kept: Container[int] = ()) -> p.Node:
    """An arm of a union, or a view's query, without the casts by which analysis fits its types: those of columns that
    keep their name, but for the columns in ``kept``.
    """
    if not isinstance(node, p.Project):
        return node
    outputs = []
    for output in node.outputs:
        value = output.value
        inner = value.arguments[0] if isinstance(value, p.Apply) and value.name == "cast" else None
        if isinstance(inner, p.Attribute) and inner.name == output.name and output.id not in kept:
            output = p.Output(output.id, output.name, inner)
        outputs.append(output)
    return p.Project(node.child, tuple(outputs))


_METHODS: dict[str, Callable[[Builder, Operator], p.Node]] = {
    "Project": Builder._project,
    "Filter": Builder._filter,
    "Sort": Builder._sort,
    "Exchange": Builder._exchange,
    "TakeOrderedAndProject": Builder._take_ordered,
    "Union": Builder._union,
    "View": Builder._view,
    "DeserializeToObject": Builder._objects,
    "Generate": Builder._generate,
    "ArrowEvalPythonUDTF": Builder._table_function,
    "BatchEvalPythonUDTF": Builder._table_function,
    "Expand": Builder._expand,
    "UnionLoop": Builder._loop,
    "MergeRows": Builder._merge_rows,
    "InMemoryRelation": Builder._in_memory,
    "Except": Builder._set_operation,
    "Intersect": Builder._set_operation,
    "Distinct": Builder._distinct,
    "Deduplicate": Builder._deduplicate,
    "StreamingDeduplicate": Builder._deduplicate,
    "StreamingDeduplicateWithinWatermark": Builder._deduplicate,
}
