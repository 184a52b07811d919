"""Shared parts of reading operators of a plan text: names of attributes, the walk over the tree, lists of columns.

The ideas that take more than a few lines have a file each (`leaves`, `aggregates`, `generators`); `operators` puts them
together.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from govtool.capture.spark import plan as p
from govtool.capture.spark.breaks import BREAKS, unknown
from govtool.capture.spark.plantext import lists, operator_names
from govtool.capture.spark.plantext.expressions import TextExpressionReader
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.scans import ScannedSource
from govtool.capture.spark.plantext.tree import Operator, PlanTree
from govtool.model import Diagnostic

TRUNCATED = "break.truncated"

_ORDER = re.compile(r"\s(?:ASC|DESC)(?: NULLS (?:FIRST|LAST))?.*\Z", re.DOTALL)
_DEFINING = frozenset(
    {"Project", "Aggregate", "Window", "Generate", "Expand", "InMemoryRelation", "TakeOrderedAndProject"}
)
_LISTED = ("Output", "Results", "Result", "Aggregate Attributes", "Input", "Left output", "Right output")


@dataclass(slots=True)
class PlanLineage:
    """The lineage of a plan, and its parts that could not be read."""

    node: p.Node | None = None
    sources: dict[str, ScannedSource] = field(default_factory=dict)
    """Datasets that are read, by id, and what the plan tells of each."""
    scans: list[tuple[Operator, str]] = field(default_factory=list)
    """Leaves and the dataset that each reads."""
    attributes: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Dataset and column name of attributes of base relations, by id."""
    notes: list[Diagnostic] = field(default_factory=list)
    uncertain: int = 0
    """Expressions whose structure was not clear."""


class PlanReader(ABC):
    """Relations of one plan.

    Args:
        tree: The plan.
        known: Dataset and column of attributes that other plans of the application read, by id: logical plans name
            attributes of a file and not the file.
        locate: What a leaf reads; None if its text does not tell.
        batch: The plan behind the batch of a stream, where the plan is part of a function of ``foreachBatch``.
    """

    def __init__(
        self,
        tree: PlanTree,
        known: Mapping[int, tuple[str, str]],
        locate: Callable[[Operator], ScannedSource | None],
        batch: p.Node | None = None,
    ) -> None:
        self.tree = tree
        self.known = known
        self.locate = locate
        self.batch = batch
        self.lineage = PlanLineage()
        self._nodes: dict[int, p.Node] = {}
        self._queries: dict[int, p.Node | None] = {}
        self._active: set[int] = set()
        self.parents = {child.id: o for o in tree.operators.values() for child in o.children}
        self.reader = TextExpressionReader((), self._query)
        self._collect()
        self.reader.arrays = self._arrays()
        self.types = self._types()
        self.compared = self._compared()

    def _collect(self) -> None:
        """Names of attributes, from the leaves up: an odd one must be known where it is named."""
        for operator in sorted(self.tree.operators.values(), key=lambda o: o.id):
            for key in _LISTED:
                text = operator.fields.get(key, "")
                if text:
                    computed = key == "Result" or (key == "Results" and "Aggregate Attributes" in operator.fields)
                    made = computed or (key == "Output" and bool(operator.children))
                    self._add_list(text, operator.counts.get(key), made=made)
            name = plain_name(operator)
            python = name in operator_names.PYTHON or name in operator_names.TABLE_FUNCTIONS
            if name in _DEFINING or not operator.children or python:
                for argument in lists.arguments(operator.fields.get("Arguments", "")):
                    if argument.startswith("["):
                        self._add_list(argument, None, made=name != "Expand")

    def _arrays(self) -> frozenset[int]:
        """Columns that are arrays, as far as scans tell: a field of one is the field of its elements."""
        found = set()
        for operator in self.tree.operators.values():
            schema = operator.fields.get("ReadSchema", "")
            if "array<" in schema:
                names = set(re.findall(r"[<,]([^<>,:]+):array<", schema))
                found |= {o.id for o in self._listed(operator, "Output") if o.name in names}
        return frozenset(found)

    def _types(self) -> dict[int, str]:
        """Simple types of columns, as far as scans tell."""
        found = {}
        for operator in self.tree.operators.values():
            schema = dict(re.findall(r"[<,]([^<>,:]+):(\w+)(?=[,>(])", operator.fields.get("ReadSchema", "")))
            found.update({o.id: schema[o.name] for o in self._listed(operator, "Output") if o.name in schema})
        return found

    def _add_list(self, text: str, count: int | None, *, made: bool) -> None:
        items = lists.split(self.reader.plain(text), count).items
        found = [named_of(item) if made else lists.attribute(item) for item in items]
        self.reader.add_attributes((item[0], item[1]) for item in found if item is not None and item[1] != "_")

    def _compared(self) -> set[int]:
        """Attributes that joins and generators compare, seen through what they are aliases of."""
        aliases: dict[int, set[int]] = {}
        wanted: set[int] = set()
        for operator in self.tree.operators.values():
            for key in ("Left keys", "Right keys", "Join condition"):
                wanted |= ids_of(operator.fields.get(key, ""))
            if plain_name(operator) in ("Generate", "Join"):  # a join of a loop's step is as the optimizer has it
                wanted |= ids_of(operator.fields.get("Arguments", ""))
            for key in ("Output", "Results"):
                for item in lists.split(operator.fields.get(key, "")).items:
                    made = lists.alias(item)
                    if made is not None:
                        aliases.setdefault(made[1], set()).update(ids_of(made[0]))
        todo = list(wanted)
        while todo:
            for number in aliases.get(todo.pop(), ()):
                if number not in wanted:
                    wanted.add(number)
                    todo.append(number)
        return wanted

    def _query(self, number: int) -> p.Node | None:
        if number not in self._queries:
            root = self.tree.subqueries.get(number)
            self._queries[number] = None
            if root is not None:
                self._queries[number] = self.node(root)
        return self._queries[number]

    def node(self, root: Operator) -> p.Node:
        """The relation of an operator; its children first, without a Python frame for each."""
        stack: list[tuple[Operator, bool]] = [(root, False)]
        while stack:
            operator, seen = stack.pop()
            if operator.id in self._nodes:
                continue
            if seen:
                self._active.discard(operator.id)
                self._nodes[operator.id] = self._build(operator)
                continue
            if operator.id in self._active:
                raise RecursionError("a plan that contains itself")
            self._active.add(operator.id)
            stack.append((operator, True))
            stack.extend((child, False) for child in reversed(self._inputs(operator)))
        return self._nodes[root.id]

    def _inputs(self, operator: Operator) -> list[Operator]:
        if operator.reuses is not None and operator.reuses in self.tree.operators:
            return [self.tree.operators[operator.reuses]]
        return operator.children

    def _child(self, operator: Operator, position: int = 0) -> p.Node:
        inputs = self._inputs(operator)
        return self._nodes[inputs[position].id] if position < len(inputs) else p.Values(())

    def _break(self, operator: Operator, name: str) -> p.Node:
        code, what = BREAKS.get(name, ("break.typed", f"{name}: code of the JVM"))
        children = tuple(self._nodes[child.id] for child in self._inputs(operator))
        outputs = self._listed(operator, "Output")
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        keys = self._expressions(parts[0]) if name in operator_names.GROUPED and len(parts) > 1 else ()
        if not outputs:
            for part in reversed(parts):
                named = [item for item in map(named_of, lists.split(part).items) if item is not None]
                if named:
                    outputs = tuple(p.Named(*item) for item in named)
                    break
        outputs = outputs or self._read_above(operator) or _last_attribute(operator)
        return p.LineageBreak(children, outputs, code, f"{what}: what it does with its input is not known", keys)

    def _unknown(self, operator: Operator, name: str) -> p.Node:
        """An operator that is not known here. If nothing but its input comes out of it, little can be wrong."""
        children = tuple(self._nodes[child.id] for child in self._inputs(operator))
        outputs = self._listed(operator, "Output") or self._read_above(operator)
        if not outputs and len(children) == 1:
            outputs = p.outputs_of(children[0])
        return unknown(f"the operator {name} is not known", children, outputs)

    def _select(self, operator: Operator, child: p.Node, text: str, count: int | None) -> p.Node:
        elements = lists.split(text, count)
        outputs = [self._output(item) for item in elements.items]
        certain = elements.certain and not elements.more
        if certain and all(o is not None for o in outputs):
            return p.Project(child, tuple(o for o in outputs if o is not None))
        # What the text hides is known by name from whoever reads it.
        made = {o.id: o for o in outputs if o is not None} if elements.certain else {}
        wanted = self._read_above(operator)
        if not wanted:
            wanted = tuple(p.Named(o.id, o.name) for o in made.values())
        below = {o.id for o in p.outputs_of(child)}
        self._note(
            TRUNCATED, f"{operator.name}: expressions that the plan text leaves out, or that cannot be distinguished"
        )
        everything = tuple(p.Attribute(o.id, o.name) for o in p.outputs_of(child))
        full = []
        for named in wanted:
            if named.id in made:
                full.append(made[named.id])
            elif named.id in below:
                full.append(p.Output(named.id, named.name, p.Attribute(named.id, named.name)))
            else:
                full.append(p.Output(named.id, named.name, p.Opaque(TRUNCATED, everything)))
        return p.Project(child, tuple(full))

    def _read_above(self, operator: Operator) -> tuple[p.Named, ...]:
        """The columns that the next operator says it reads from here."""
        parent = self.parents.get(operator.id)
        while parent is not None:
            found = self._listed(parent, "Input")
            if found:
                return found
            if parent.name.strip() == "AdaptiveSparkPlan" and self._listed(parent, "Output"):
                return self._listed(parent, "Output")
            for key in ("Left output", "Right output"):
                found = self._listed(parent, key)
                if found:
                    return found
            if len(parent.children) != 1 or plain_name(parent) not in operator_names.THROUGH:
                return ()
            parent = self.parents.get(parent.id)
        return ()

    def _listed(self, operator: Operator, key: str) -> tuple[p.Named, ...]:
        text = operator.fields.get(key, "")
        if not text:
            return ()
        items = lists.split(text, operator.counts.get(key)).items
        return tuple(p.Named(*found) for found in map(named_of, items) if found is not None)

    def _first_list(self, operator: Operator, key: str) -> tuple[str, int | None]:
        if key in operator.fields:
            return operator.fields[key], operator.counts.get(key)
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        return (parts[0] if parts else "[]"), None

    def _output(self, item: str) -> p.Output | None:
        """``expression AS name#12`` or ``name#12``."""
        item = self.reader.plain(item)
        made = lists.alias(item)
        if made is not None:
            return p.Output(made[1], self.reader.name(made[1], made[2]), self.reader.expression(made[0]))
        named = lists.attribute(item)
        if named is None:
            return None
        if "(" in named[1] and named[0] not in self.reader.known:
            return None
        name = self.reader.name(*named)
        return p.Output(named[0], name, p.Attribute(named[0], name))

    def _expressions(self, text: str) -> tuple[p.Expression, ...]:
        return tuple(self.reader.expression(_ORDER.sub("", item)) for item in lists.split(text).items)

    def _note(self, code: str, message: str) -> None:
        self.lineage.notes.append(Diagnostic(code, "warning", message))

    @abstractmethod
    def _build(self, operator: Operator) -> p.Node:
        """The relation of an operator whose inputs have theirs."""


def named_of(item: str) -> tuple[int, str] | None:
    """The id and the name that an element of a list defines or names."""
    made = lists.alias(item)
    return (made[1], made[2]) if made is not None else lists.attribute(item)


def ids_of(text: str) -> set[int]:
    """The ids that a text names."""
    return {int(number) for number in re.findall(r"#(\d+)", text)}


def _last_attribute(operator: Operator) -> tuple[p.Named, ...]:
    found = re.findall(r"(?<![\w$])([\w$]++)#(\d+)", operator.fields.get("Arguments", ""))
    return (p.Named(int(found[-1][1]), found[-1][0]),) if found else ()
