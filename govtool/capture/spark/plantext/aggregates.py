"""Aggregates: their phases, with exchanges between them, are one again, from the functions of the last and the input of
the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext import lists, operator_names
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.reading import TRUNCATED, PlanReader, ids_of
from govtool.capture.spark.plantext.tree import Operator
from govtool.model import EdgeKind

_NAMED_ID = re.compile(r"(?<![\w$])([\w$]++)#(\d+)(?!\d)")
PYTHON_CALL = re.compile(r"([\w<>$. -]*)\((.*)\)(?:#\d+L?)?\Z", re.DOTALL)
"""A Python function with its arguments, and the id of its result."""


class Aggregates(PlanReader):
    """Relations of aggregates."""

    def _aggregate(self, operator: Operator, *, python: bool = False) -> p.Node:
        if "Results" not in operator.fields and "Functions" not in operator.fields:
            return self._python_aggregate(operator) if python else self._logical_aggregate(operator)
        functions = list(lists.split(operator.fields.get("Functions", ""), operator.counts.get("Functions")).items)
        attributes = self._listed(operator, "Aggregate Attributes")
        results = lists.split(operator.fields.get("Results", ""), operator.counts.get("Results"))
        keys_text = lists.split(operator.fields.get("Keys", ""), operator.counts.get("Keys")).items
        child, keys, functions = self._first_phase(operator, list(keys_text), functions)
        child = _without_steps(child, keys, functions)
        values = [self.reader.expression(text) for text in functions]
        if "Aggregate Attributes" in operator.fields:
            outputs = [self._output(item) for item in results.items]
        else:
            named = [lists.attribute(self.reader.plain(item)) for item in results.items]
            certain = not any("(distinct " in text for text in functions)  # these have moved behind the others
            outputs = _by_position(named, keys, values, certain=certain)
        made = [o for o in outputs if o is not None]
        if not results.certain or len(made) < len(outputs):
            return self._indistinct(operator, child, keys)
        bindings = _bindings(attributes, values)
        if self._is_deduplication(functions, attributes):
            kept = tuple(p.Output(o.id, o.name, _let([*bindings, *keys.items()], o.value)) for o in made)
            return p.Project(p.Distinct(child, tuple(keys.values())), _without_first(kept))
        bound = [*keys.items(), *bindings]
        full = tuple(p.Output(o.id, o.name, _let(bound, o.value)) for o in made)
        taken = _keys_taken(made)
        if not functions and len(keys) == len(full) and set(taken.values()) == set(keys):
            return _distinct(child, {new: keys[old] for new, old in taken.items()}, full)
        return p.Aggregate(child, tuple(keys.values()), full)

    def _indistinct(self, operator: Operator, child: p.Node, keys: Mapping[int, p.Expression]) -> p.Node:
        """An aggregate whose results the text does not distinguish: any column may be in each."""
        self._note(TRUNCATED, f"{operator.name}: results that cannot be distinguished")
        everything = tuple(p.Attribute(o.id, o.name) for o in p.outputs_of(child))
        opaque = p.Opaque(TRUNCATED, everything)
        wanted = tuple(p.Output(*named, opaque) for named in self._read_above(operator))
        return p.Aggregate(child, tuple(keys.values()), wanted)

    def _first_phase(
        self, operator: Operator, keys_text: list[str], functions: list[str]
    ) -> tuple[p.Node, dict[int, p.Expression], list[str]]:
        """The input of the first phase of an aggregate, the keys as computed there, and the functions that name its
        columns.
        """
        renamed: dict[int, p.Expression] = {}
        keys = self._keys(keys_text)
        current = operator
        through = operator
        below_reuse: list[str] = []
        while True:
            inputs = self._inputs(through)
            if len(inputs) != 1:
                break
            below = inputs[0]
            if below.reuses is not None and below.reuses in self.tree.operators:
                original = self.tree.operators[below.reuses]
                new, old = self._listed(below, "Output"), p.outputs_of(self._nodes[original.id])
                renamed = {n.id: p.Attribute(o.id, o.name) for n, o in zip(new, old, strict=False)}
                keys = {number: renamed.get(number, key) for number, key in keys.items()}
                through = below
                continue
            name = plain_name(below)
            if name in operator_names.AGGREGATES:
                lower = list(lists.split(below.fields.get("Functions", ""), below.counts.get("Functions")).items)
                if renamed:
                    below_reuse += lower
                if not _is_phase(operator, below, lower, functions, keys):
                    break
                functions = _as_below(functions, lower, reused=bool(renamed))
                computed = self._keys(lists.split(below.fields.get("Keys", ""), below.counts.get("Keys")).items)
                keys = {number: _computed(key, computed) for number, key in keys.items()}
                current = through = below
                continue
            if name in operator_names.THROUGH or name in ("Sort", "Exchange", "BroadcastExchange"):
                through = below
                continue
            break
        if renamed:
            functions = self._as_reused(functions, below_reuse)
        return self._child(current), keys, functions

    def _as_reused(self, functions: list[str], originals: list[str]) -> list[str]:
        """Functions over a reused exchange name columns of the copy, which is not printed: those of the original by the
        same name, where there is one of that name.
        """
        by_name: dict[str, set[str]] = {}
        for text in originals:
            for name, number in _NAMED_ID.findall(text):
                by_name.setdefault(name, set()).add(number)

        def original(found: re.Match[str]) -> str:
            same = by_name.get(found[1], set())
            return f"{found[1]}#{next(iter(same))}" if len(same) == 1 else found[0]

        return [_NAMED_ID.sub(original, text) for text in functions]

    def _keys(self, items: Iterable[str]) -> dict[int, p.Expression]:
        """Keys by id: ``name#1``, ``upper(name#1) AS u#2``."""
        found: dict[int, p.Expression] = {}
        for number, item in enumerate(items):
            output = self._output(item)
            if output is not None:
                found[output.id] = output.value
            else:
                found[-1 - number] = self.reader.expression(item)
        return found

    def _is_deduplication(self, functions: list[str], attributes: tuple[p.Named, ...]) -> bool:
        """``dropDuplicates``: an aggregate of ``first`` over all other columns, which the optimizer has named so."""
        return (
            bool(functions)
            and all(f.startswith("first(") for f in functions)
            and all(named.name.endswith(")()") for named in attributes)
        )

    def _python_aggregate(self, operator: Operator) -> p.Node:
        """An aggregate in Python: its keys and arguments are exact."""
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        node = self._logical_aggregate(operator)
        if len(parts) < 3 or not isinstance(node, p.Aggregate):
            return node
        bound: dict[int, p.Expression] = {}
        for item in lists.split(parts[1]).items:
            call, named = PYTHON_CALL.match(item), lists.attribute(item)
            if call is not None and named is not None:
                udf = p.Opaque(f"python-udf: {call[1].strip() or 'lambda'}", self.reader.attributes(call[2]))
                bound[named[0]] = udf
        items = lists.split(parts[2]).items
        if len(items) != len(node.outputs):
            return node
        outputs = []
        for item, output in zip(items, node.outputs, strict=True):
            ids = [number for number in ids_of(item) if number in bound]
            value = bound[ids[0]] if len(ids) == 1 and lists.alias(item) is not None else output.value
            outputs.append(p.Output(output.id, output.name, value))
        return p.Aggregate(node.child, node.keys, tuple(outputs))

    def _logical_aggregate(self, operator: Operator) -> p.Node:
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        child = self._child(operator)
        if not parts:
            return self._unknown(operator, "Aggregate")
        keys = self._expressions(parts[0]) if len(parts) > 1 else ()
        node = self._select(operator, child, parts[-1], None)
        if isinstance(node, p.Project):
            return p.Aggregate(node.child, keys, node.outputs)
        return node


def _with_conditions(functions: list[str], lower: list[str]) -> list[str]:
    """Functions of a later phase with the conditions that those of the first phase have."""
    found: dict[str, list[str]] = {}
    for text in lower:
        name, mark, condition = text.removeprefix("partial_").partition(" FILTER (")
        found.setdefault(name, []).append(name + mark + condition)
    # The same function with several conditions is listed as often in both phases, in the same order.
    in_turn = {name: iter(texts) for name, texts in found.items() if len(texts) == functions.count(name)}
    return [next(in_turn[text]) if text in in_turn else found.get(text, [text])[-1] for text in functions]


def _let(bindings: Iterable[tuple[int, p.Expression]], body: p.Expression) -> p.Expression:
    """A result of an aggregate in terms of its input: only what it names is bound."""
    wanted = _mentioned(body)
    bound = []
    for number, value in bindings:
        if number in wanted and not (isinstance(value, p.Attribute) and value.id == number):
            bound.append((number, value))
    if isinstance(body, p.Attribute):
        return next((value for number, value in bound if number == body.id), body)
    return p.Let(tuple(bound), body) if bound else body


def _mentioned(root: p.Expression) -> set[int]:
    found: set[int] = set()
    stack: list[p.Expression] = [root]
    while stack:
        match stack.pop():
            case p.Attribute(id=number):
                found.add(number)
            case p.Apply(arguments=items) | p.Opaque(arguments=items) | p.Elements(items=items):
                stack.extend(items)
            case p.Conditional(value=value, by=by):
                stack.extend((value, *by))
            case p.Field(base=base):
                stack.append(base)
            case p.StructValue(fields=fields):
                stack.extend(value for _, value in fields)
            case p.Let(bindings=bindings, body=body):
                stack.extend((*(value for _, value in bindings), body))
            case _:
                pass
    return found


def _by_position(
    named: Sequence[tuple[int, str] | None],
    keys: Mapping[int, p.Expression],
    values: Sequence[p.Expression],
    *,
    certain: bool,
) -> list[p.Output | None]:
    """Results of an aggregate in one-line notation, which names them and not what each is: what is no key is one of the
    functions, in their order, or, where that is not ``certain`` or there are not as many, any of them or of the keys.
    """
    made = [item[0] for item in named if item is not None and item[0] not in keys]
    one_each = certain and len(made) == len(values)
    anything = p.Opaque(TRUNCATED, (*keys.values(), *values))
    found: list[p.Output | None] = []
    for item in named:
        if item is None:
            found.append(None)
        elif item[0] in keys:
            found.append(p.Output(item[0], item[1], p.Attribute(*item)))
        else:
            found.append(p.Output(item[0], item[1], values[made.index(item[0])] if one_each else anything))
    return found


def _without_steps(child: p.Node, keys: Mapping[int, p.Expression], functions: Iterable[str]) -> p.Node:
    """PIVOT, and several DISTINCT aggregates, group by more than what was written before they group by that."""
    if not isinstance(child, p.Aggregate):
        return child
    made = any(f.startswith(("pivotfirst(", "partial_pivotfirst(")) for f in functions) or any(
        isinstance(key, p.Attribute) and key.name == "gid" for key in child.keys
    )
    if not made:
        return child
    own = {key.id for key in keys.values() if isinstance(key, p.Attribute)}
    named = {output.id: output.value for output in child.outputs}
    written = {value.id for number in own if isinstance(value := named.get(number), p.Attribute)} | own
    kept = tuple(key for key in child.keys if isinstance(key, p.Attribute) and key.id in written)
    return p.Aggregate(child.child, kept, child.outputs)


def _computed(key: p.Expression, computed: Mapping[int, p.Expression]) -> p.Expression:
    """A key of a later phase in terms of the first one's input."""
    return computed.get(key.id, key) if isinstance(key, p.Attribute) else key


def _without_first(outputs: tuple[p.Output, ...]) -> tuple[p.Output, ...]:
    kept = []
    for output in outputs:
        value = output.value
        while isinstance(value, p.Apply) and value.name == "first" and len(value.arguments) == 1:
            value = value.arguments[0]
        kept.append(p.Output(output.id, output.name, value))
    return tuple(kept)


def _is_phase(
    operator: Operator,
    below: Operator,
    lower: Sequence[str],
    functions: Sequence[str],
    keys: Mapping[int, p.Expression],
) -> bool:
    """Return whether an aggregate below another is an earlier phase of it."""
    if any(re.match(r"(?:partial|merge|finalmerge)_", f) for f in lower):
        return True
    grouping = not lower and not functions and len(keys) == operator.counts.get("Keys", 0)
    return grouping and below.counts.get("Keys") == operator.counts.get("Keys")


def _as_below(functions: list[str], lower: list[str], *, reused: bool) -> list[str]:
    """Functions as the phase below has them: its conditions, ``FILTER (WHERE …)``, are with the first phase only."""
    first = all(f.startswith("partial_") for f in lower)
    if len(lower) == len(functions) and (reused or (first and any(" FILTER (" in f for f in lower))):
        return lower
    # Beside a count of distinct values, which has phases of its own.
    return _with_conditions(functions, lower) if first else functions


def _bindings(attributes: Sequence[p.Named], values: Sequence[p.Expression]) -> list[tuple[int, p.Expression]]:
    """The values of aggregate attributes by id: position by position, or all of them if there are not as many."""
    if len(attributes) == len(values):
        return [(named.id, value) for named, value in zip(attributes, values, strict=True)]
    return [(named.id, p.Apply("", tuple(values), EdgeKind.AGGREGATION)) for named in attributes]


def _keys_taken(outputs: Iterable[p.Output]) -> dict[int, int]:
    """The keys that outputs of an aggregate are as they stand, by the outputs' ids.

    Partition columns that are written come as ``empty2null(day#1) AS day#2``, which is no alias of anybody's.
    """
    found = {}
    for output in outputs:
        value = output.value
        if isinstance(value, p.Attribute) and (value.id == output.id or value.name == output.name):
            found[output.id] = value.id
    return found


def _distinct(child: p.Node, keys: Mapping[int, p.Expression], outputs: tuple[p.Output, ...]) -> p.Node:
    """An aggregate without functions whose keys are its outputs: DISTINCT, or the distinct form of what is below."""
    wanted = [keys[o.id] for o in outputs]
    by_name = [key.id for key in wanted if isinstance(key, p.Attribute)]
    columns = [o.id for o in p.outputs_of(child)]
    if isinstance(child, p.Union) and not child.distinct and len(wanted) == len(by_name) and by_name == columns:
        named = tuple(p.Named(o.id, o.name) for o in outputs)
        return p.Renamed(build.union(child.children, child.outputs, distinct=True), named)
    if len(wanted) == len(by_name) and columns == [o.id for o in outputs]:
        inner = child
    else:
        inner = p.Project(child, tuple(p.Output(o.id, o.name, keys[o.id]) for o in outputs))
    below = inner.child if isinstance(inner, p.Project) else inner
    return inner if isinstance(below, p.SetOperation) else p.Distinct(inner)
