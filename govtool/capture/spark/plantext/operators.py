"""Operators of plan text as relations: what each of Spark's physical and logical operators means for lineage.

Aggregates run in phases, with exchanges between them; they are one `Aggregate` again, from the functions of the last
and the input of the first. Operators of Photon and of GPUs are Spark's own under other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from govtool.capture.spark import plan as p
from govtool.capture.spark.lost import LOST
from govtool.capture.spark.plantext import kinds, lists
from govtool.capture.spark.plantext.expressions import Reader, written_conditions
from govtool.capture.spark.plantext.kinds import plain_name
from govtool.capture.spark.plantext.scans import Found
from govtool.capture.spark.plantext.tree import Operator, Tree
from govtool.model import Diagnostic, EdgeKind

TRUNCATED = "break.truncated"
UNKNOWN = "break.operator"

_ORDER = re.compile(r"\s(?:ASC|DESC)(?: NULLS (?:FIRST|LAST))?.*\Z", re.DOTALL)
_NAMED_ID = re.compile(r"([\w$]+)#(\d+)(?!\d)")
_LEAVES = ("Scan", "BatchScan", "FileScan", "LogicalRelation", "Relation", "InMemoryTableScan")
_GENERATE = re.compile(r"(.*?)(?:, (\[.*?\]))?, (true|false)(?:, ([\w`.]+))?, (\[.*\])\Z", re.DOTALL)
_CALL = re.compile(r"\s*([\w$.<>]+)\((.*)\)\Z", re.DOTALL)
_UDF = re.compile(r"([\w<>$. -]*)\((.*)\)(?:#\d+L?)?\Z", re.DOTALL)
_NULL_SAFE = re.compile(r"coalesce\((.*#\d+L?), .*\)\Z", re.DOTALL)
_JOIN_TYPE = re.compile(
    r" (Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|LeftSingle|ExistenceJoin\([^)]*\))(?: |\Z)"
)
_MARK = re.compile(r"ExistenceJoin\((.*)#(\d+)\)")
_DEFINING = frozenset(
    {"Project", "Aggregate", "Window", "Generate", "Expand", "InMemoryRelation", "TakeOrderedAndProject"}
)
_LISTED = ("Output", "Results", "Result", "Aggregate Attributes", "Input", "Left output", "Right output")


@dataclass(slots=True)
class Meaning:
    """What a plan means, and what of it could not be read."""

    node: p.Node | None = None
    sources: dict[str, Found] = field(default_factory=dict)
    """Datasets that are read, by id, and what the plan tells of each."""
    scans: list[tuple[Operator, str]] = field(default_factory=list)
    """Leaves and the dataset that each reads."""
    attributes: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Dataset and column name of attributes of base relations, by id."""
    notes: list[Diagnostic] = field(default_factory=list)
    uncertain: int = 0
    """Expressions whose structure was not clear."""


class Builder:
    """Relations of one plan.

    Args:
        tree: The plan.
        known: Dataset and column of attributes that other plans of the application read, by id: logical plans name
            attributes of a file and not the file.
        locate: What a leaf reads; None if its text does not tell.
    """

    def __init__(
        self, tree: Tree, known: Mapping[int, tuple[str, str]], locate: Callable[[Operator], Found | None]
    ) -> None:
        self.tree = tree
        self.known = known
        self.locate = locate
        self.meaning = Meaning()
        self._nodes: dict[int, p.Node] = {}
        self._queries: dict[int, p.Node | None] = {}
        self._active: set[int] = set()
        self.parents = {child.id: o for o in tree.operators.values() for child in o.children}
        self.reader = Reader((), self._query)
        self._learn()
        self.reader.arrays = self._arrays()
        self.compared = self._compared()

    # ---- names --------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Names of attributes, from the leaves up: an odd one must be known where it is named."""
        for operator in sorted(self.tree.operators.values(), key=lambda o: o.id):
            for key in _LISTED:
                text = operator.fields.get(key, "")
                if text:
                    made = key in ("Results", "Result") or (key == "Output" and bool(operator.children))
                    self._learn_list(text, operator.counts.get(key), made=made)
            name = plain_name(operator)
            if name in _DEFINING or not operator.children or name in kinds.PYTHON:
                for argument in lists.arguments(operator.fields.get("Arguments", "")):
                    if argument.startswith("["):
                        self._learn_list(argument, None, made=name != "Expand")

    def _arrays(self) -> frozenset[int]:
        """Columns that are arrays, as far as scans tell: a field of one is the field of its elements."""
        found = set()
        for operator in self.tree.operators.values():
            schema = operator.fields.get("ReadSchema", "")
            if "array<" in schema:
                names = set(re.findall(r"[<,]([^<>,:]+):array<", schema))
                found |= {o.id for o in self._listed(operator, "Output") if o.name in names}
        return frozenset(found)

    def _learn_list(self, text: str, count: int | None, *, made: bool) -> None:
        items = lists.split(self.reader.plain(text), count).items
        found = [_named(item) if made else lists.attribute(item) for item in items]
        self.reader.learn((item[0], item[1]) for item in found if item is not None and item[1] != "_")

    def _compared(self) -> set[int]:
        """Attributes that joins and generators compare, seen through what they are aliases of."""
        aliases: dict[int, set[int]] = {}
        wanted: set[int] = set()
        for operator in self.tree.operators.values():
            for key in ("Left keys", "Right keys", "Join condition"):
                wanted |= _ids(operator.fields.get(key, ""))
            if plain_name(operator) == "Generate":
                wanted |= _ids(operator.fields.get("Arguments", ""))
            for key in ("Output", "Results"):
                for item in lists.split(operator.fields.get(key, "")).items:
                    made = lists.alias(item)
                    if made is not None:
                        aliases.setdefault(made[1], set()).update(_ids(made[0]))
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

    # ---- the walk ------------------------------------------------------------------------------------------------

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

    def _build(self, operator: Operator) -> p.Node:
        name = plain_name(operator)
        if name == "ReusedExchange" or operator.reuses is not None:
            return p.Renamed(
                self._child(operator), self._listed(operator, "Output") or p.outputs_of(self._child(operator))
            )
        if name in kinds.AGGREGATES or name in kinds.ARROW_AGGREGATES:
            return self._aggregate(operator, python=name in kinds.ARROW_AGGREGATES)
        if name in kinds.JOINS:
            return self._join(operator)
        method = _METHODS.get(name)
        if method is not None:
            return method(self, operator)
        if name in kinds.WINDOWS:
            return self._window(operator)
        if name in kinds.PYTHON:
            return self._python(operator)
        if name in LOST or name in kinds.TYPED:
            return self._lost(operator, name)
        if not self._inputs(operator) or name in _LEAVES:
            return self._leaf(operator)
        if name in kinds.THROUGH or name.endswith(("QueryStage", "Exchange", "Read", "ToRow", "Limit")):
            return self._child(operator)
        return self._unknown(operator, name)

    def _leaf(self, operator: Operator) -> p.Node:
        name = operator.name
        outputs = self._outputs_of_leaf(operator)
        if name.startswith(("Scan In-memory table", "InMemoryTableScan")):
            return self._cached(operator, outputs)
        if plain_name(operator) == "UnionLoopRef":
            found = re.search(r"\d+", operator.fields.get("Loop id", ""))
            return p.Reference(int(found[0]) if found else -1, outputs)
        found_ = self.locate(operator)
        if found_ is None:
            # One relation is one dataset: whichever of its columns another plan has read tells which.
            is_relation = plain_name(operator) in ("LogicalRelation", "Relation")
            known = [self.known.get(output.id) for output in outputs] if is_relation else []
            datasets = {item[0] for item in known if item is not None}
            if len(datasets) == 1:
                return self._scan(operator, datasets.pop(), outputs)
            return p.Lost((), outputs, "break.source", f"what {name.split('(')[0].strip()} reads is not told")
        if found_.nothing:
            if found_.reason:
                return p.Lost((), outputs, found_.reason, found_.message)
            return p.Values(outputs)
        self.meaning.sources.setdefault(found_.place.id, found_)
        if found_.message:
            self._note(found_.reason, found_.message)
        node = self._scan(operator, found_.place.id, outputs)
        if found_.places:
            node = self._several(operator, node, [place.id for place in found_.places], outputs)
        return self._pushed(operator, node, found_.place.id, outputs)

    def _several(self, operator: Operator, first: p.Node, datasets: list[str], outputs: tuple[p.Named, ...]) -> p.Node:
        """Several places that one scan reads as if they were one."""
        node = first
        values: list[list[p.Expression]] = [[p.Attribute(o.id, o.name)] for o in outputs]
        for number, dataset in enumerate(datasets):
            own = tuple(p.Named(-1 - number * len(outputs) - i, o.name) for i, o in enumerate(outputs))
            node = p.Join(node, p.Scan(dataset, own))
            self.meaning.scans.append((operator, dataset))
            for value, named in zip(values, own, strict=True):
                value.append(p.Attribute(named.id, named.name))
        made = (
            p.Output(o.id, o.name, p.Apply("", tuple(value), EdgeKind.IDENTITY))
            for o, value in zip(outputs, values, strict=True)
        )
        return p.Project(node, tuple(made))

    def _scan(self, operator: Operator, dataset: str, outputs: tuple[p.Named, ...]) -> p.Node:
        self.meaning.scans.append((operator, dataset))
        for output in outputs:
            self.meaning.attributes[output.id] = (dataset, output.name)
        return p.Scan(dataset, outputs)

    def _pushed(self, operator: Operator, node: p.Node, dataset: str, outputs: tuple[p.Named, ...]) -> p.Node:
        """Conditions that are only the scan's: on partitions, and what a database answers."""
        for condition in lists.split(operator.fields.get("PartitionFilters", "")).items:
            kept = written_conditions(condition, self.compared)
            if kept:
                node = p.Filter(node, p.Apply("", tuple(self.reader.condition(part) for part in kept)))
        arguments = lists.arguments(operator.fields.get("Arguments", ""))
        if operator.name.startswith("Scan hive") and len(arguments) > 2 and arguments[-1].startswith("["):
            for condition in lists.split(arguments[-1]).items:
                kept = written_conditions(condition, self.compared)
                node = p.Filter(node, p.Apply("", tuple(map(self.reader.condition, kept)))) if kept else node
        handled = [f for f in lists.split(operator.fields.get("PushedFilters", "")).items if f.startswith("*")]
        names = {
            name for item in handled for name in re.findall(r"\(([\w`. ]+?)[,)]", item) if "*IsNotNull" not in item
        }
        if not names:
            return node
        # A column that a database compared need not be among those that it sent.
        by_name = {output.name.lower(): output for output in outputs}
        wanted = tuple(
            by_name.get(n.strip("`").lower()) or p.Named(-1 - i, n.strip("`")) for i, n in enumerate(sorted(names))
        )
        extra = tuple(item for item in wanted if item.id < 0)
        scan = p.Scan(dataset, (*outputs, *extra))
        kept_ = tuple(p.Output(o.id, o.name, p.Attribute(o.id, o.name)) for o in outputs)
        return p.Project(p.Filter(scan, p.Apply("", tuple(p.Attribute(item.id, item.name) for item in wanted))), kept_)

    def _outputs_of_leaf(self, operator: Operator) -> tuple[p.Named, ...]:
        found = self._listed(operator, "Output")
        if found:
            return found
        for argument in lists.arguments(operator.fields.get("Arguments", "")):
            if argument.startswith("["):
                elements = lists.split(argument)
                named = [_named(item) for item in elements.items]
                if any(named):
                    if elements.more:
                        self._note(
                            TRUNCATED, f"{elements.more} columns of {operator.name} are left out of the plan text"
                        )
                    return tuple(p.Named(*item) for item in named if item is not None)
        return ()

    def _cached(self, operator: Operator, outputs: tuple[p.Named, ...]) -> p.Node:
        """A cached relation: the plan that filled it is printed below it."""
        if not operator.children:
            return p.Lost((), outputs, "break.cache", "the plan of a cached table is not told")
        relation = operator.children[0]
        child = self._nodes[relation.id]
        listed = self._outputs_of_leaf(relation) if relation.name.startswith("InMemoryRelation") else ()
        below = p.outputs_of(child)
        known = {output.id for output in below}
        node: p.Node = child
        if listed and [o.id for o in listed] != [o.id for o in below[: len(listed)]] and len(listed) <= len(below):
            names = (*listed, *below[len(listed) :])
            node = p.Renamed(child, names)
            known = {output.id for output in names}
        for output in outputs:
            if output.id not in known:
                same = [o for o in below[len(listed) :] if o.name == output.name]
                value: p.Expression = p.Attribute(same[0].id) if len(same) == 1 else p.Attribute(output.id, output.name)
                node = p.Extend(node, (p.Output(output.id, output.name, value),))
        return p.Project(node, tuple(p.Output(o.id, o.name, p.Attribute(o.id, o.name)) for o in outputs))

    def _in_memory(self, operator: Operator) -> p.Node:
        return self._child(operator)

    def _project(self, operator: Operator) -> p.Node:
        text, count = self._first_list(operator, "Output")
        return self._select(operator, self._child(operator), text, count)

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
            TRUNCATED, f"{operator.name}: expressions that the plan text leaves out, or that cannot be told apart"
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
            if len(parent.children) != 1 or plain_name(parent) not in kinds.THROUGH:
                return ()
            parent = self.parents.get(parent.id)
        return ()

    def _filter(self, operator: Operator) -> p.Node:
        text = operator.fields.get("Condition") or operator.fields.get("Arguments", "")
        kept = written_conditions(text, self.compared, generates=self._generates_above(operator))
        if not kept:
            return self._child(operator)
        return p.Filter(self._child(operator), p.Apply("", tuple(self.reader.condition(part) for part in kept)))

    def _generates_above(self, operator: Operator) -> bool:
        parent = self.parents.get(operator.id)
        while parent is not None and plain_name(parent) in ("Project", "Filter", "Generate", *kinds.THROUGH):
            if plain_name(parent) == "Generate":
                return True
            parent = self.parents.get(parent.id)
        return False

    def _sort(self, operator: Operator) -> p.Node:
        parts = lists.arguments(operator.fields.get("Arguments", ""))
        if len(parts) < 2 or parts[1].strip() != "true":
            return self._child(operator)
        return p.Sort(self._child(operator), self._expressions(parts[0]))

    def _take_ordered(self, operator: Operator) -> p.Node:
        parts = lists.arguments(operator.fields.get("Arguments", ""))
        found = [part for part in parts if part.startswith("[")]
        child = self._child(operator)
        if not found:
            return child
        node: p.Node = p.Sort(child, self._expressions(found[0]))
        return self._select(operator, node, found[1], None) if len(found) > 1 else node

    def _union(self, operator: Operator) -> p.Node:
        children = [_uncast(self._nodes[child.id]) for child in self._inputs(operator)]
        return p.union(children, self._listed(operator, "Output")) if children else p.Values(())

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
        """Whether a semi or anti join is INTERSECT or EXCEPT: all columns, with NULLs equal."""
        for key, side in (("Left keys", left), ("Right keys", right)):
            items = lists.split(operator.fields.get(key, "")).items
            checked = {i for item in items if item.startswith("isnull(") for i in _ids(item)}
            if not checked or checked != {output.id for output in p.outputs_of(side)}:
                return False
        return True

    def _aggregate(self, operator: Operator, *, python: bool = False) -> p.Node:
        if "Results" not in operator.fields and "Functions" not in operator.fields:
            return self._python_aggregate(operator) if python else self._logical_aggregate(operator)
        functions = list(lists.split(operator.fields.get("Functions", ""), operator.counts.get("Functions")).items)
        attributes = self._listed(operator, "Aggregate Attributes")
        results = lists.split(operator.fields.get("Results", ""), operator.counts.get("Results"))
        keys_text = lists.split(operator.fields.get("Keys", ""), operator.counts.get("Keys")).items
        child, keys, functions = self._first_phase(operator, list(keys_text), functions)
        child = _without_steps(child, keys, functions)
        bindings = []
        values = [self.reader.expression(text) for text in functions]
        for position, named in enumerate(attributes):
            if len(attributes) == len(functions):
                bindings.append((named.id, values[position]))
            else:
                bindings.append((named.id, p.Apply("", tuple(values), EdgeKind.AGGREGATION)))
        outputs = [self._output(item) for item in results.items]
        if "Aggregate Attributes" not in operator.fields:
            outputs = _by_position(outputs, keys, values)
        if not results.certain or any(o is None for o in outputs):
            self._note(TRUNCATED, f"{operator.name}: results that cannot be told apart")
            everything = tuple(p.Attribute(o.id, o.name) for o in p.outputs_of(child))
            wanted = self._read_above(operator)
            opaque = p.Opaque(TRUNCATED, everything)
            return p.Aggregate(child, tuple(keys.values()), tuple(p.Output(*named, opaque) for named in wanted))
        made = [o for o in outputs if o is not None]
        if self._is_deduplication(functions, attributes):
            kept = tuple(p.Output(o.id, o.name, _let([*bindings, *keys.items()], o.value)) for o in made)
            return p.Project(p.Distinct(child, tuple(keys.values())), _without_first(kept))
        bound = [*keys.items(), *bindings]
        full = tuple(p.Output(o.id, o.name, _let(bound, o.value)) for o in made)
        if not functions and len(keys) == len(full) and {o.id for o in full} == set(keys):
            distinct = p.Project(child, tuple(p.Output(o.id, o.name, keys[o.id]) for o in full))
            inner = child if all(isinstance(keys[o.id], p.Attribute) for o in full) else distinct
            if [o.id for o in p.outputs_of(inner)] != [o.id for o in full]:
                inner = distinct
            plain = (
                inner.child
                if isinstance(inner, p.Project) and isinstance(inner.child, p.Union) and inner is distinct
                else inner
            )
            if isinstance(plain, p.Union) and not plain.distinct:
                return p.Renamed(
                    p.union(plain.children, plain.outputs, distinct=True), tuple(p.Named(o.id, o.name) for o in full)
                )
            below = inner.child if isinstance(inner, p.Project) else inner
            return inner if isinstance(below, p.SetOperation) else p.Distinct(inner)
        return p.Aggregate(child, tuple(keys.values()), full)

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
            if name in kinds.AGGREGATES:
                lower = list(lists.split(below.fields.get("Functions", ""), below.counts.get("Functions")).items)
                if renamed:
                    below_reuse += lower
                phased = [f for f in lower if re.match(r"(?:partial|merge|finalmerge)_", f)]
                grouping = not lower and not functions and len(keys) == operator.counts.get("Keys", 0)
                if not phased and not (grouping and below.counts.get("Keys") == operator.counts.get("Keys")):
                    break
                # A condition, FILTER (WHERE …), is with the first phase only.
                first = all(f.startswith("partial_") for f in lower)
                if len(lower) == len(functions) and (renamed or (first and any(" FILTER (" in f for f in lower))):
                    functions = lower
                computed = self._keys(lists.split(below.fields.get("Keys", ""), below.counts.get("Keys")).items)
                keys = {number: _computed(key, computed) for number, key in keys.items()}
                current = through = below
                continue
            if name in kinds.THROUGH or name in ("Sort", "Exchange", "BroadcastExchange"):
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
            call, named = _UDF.match(item), lists.attribute(item)
            if call is not None and named is not None:
                udf = p.Opaque(f"python-udf: {call[1].strip() or 'lambda'}", self.reader.attributes(call[2]))
                bound[named[0]] = udf
        outputs = []
        for item, output in zip(lists.split(parts[2]).items, node.outputs, strict=True):
            ids = [number for number in _ids(item) if number in bound]
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

    def _window(self, operator: Operator) -> p.Node:
        child = self._child(operator)
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        elements = lists.split(parts[0]) if parts else lists.Elements((), 1)
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
        named = [_named(item) for item in lists.split(parts[1]).items] if len(parts) > 1 else []
        outputs = []
        for position, item in enumerate(named):
            if item is None:
                continue
            value: p.Expression
            call = _UDF.match(calls[position]) if position < len(calls) else None
            if call is not None:
                value = p.Opaque(f"python-udf: {call[1].strip() or 'lambda'}", self.reader.attributes(call[2]))
            else:
                everything = tuple(p.Attribute(o.id, o.name) for o in p.outputs_of(child))
                self._note(TRUNCATED, f"{operator.name}: functions that the plan text leaves out")
                value = p.Opaque(TRUNCATED, everything)
            outputs.append(p.Output(item[0], item[1], value))
        return p.Extend(child, tuple(outputs))

    def _generate(self, operator: Operator) -> p.Node:
        text = operator.fields.get("Arguments", "")
        found = _GENERATE.match(text)
        child = self._child(operator)
        if found is None:
            return self._unknown(operator, "Generate")
        generator, required = found[1], found[2]
        outputs = tuple(p.Named(*item) for item in map(_named, lists.split(found[5]).items) if item is not None)
        elements = lists.split(found[5])
        if elements.more:
            known = {o.id for o in (*p.outputs_of(child), *outputs)}
            outputs = (*outputs, *(o for o in self._read_above(operator) if o.id not in known))
            self._note(TRUNCATED, "Generate: columns that the plan text leaves out")
        kept = (
            None
            if required is None
            else frozenset(o[0] for o in map(_named, lists.split(required).items) if o is not None)
        )
        if required is None:
            # A physical plan leaves an empty list out: nothing of the child stays.
            kept = frozenset[int]() if "Input" in operator.fields or self._drops_all(operator, outputs) else None
        call = _CALL.match(generator)
        name = call[1].lower() if call is not None else generator.lower()
        arguments = [self.reader.expression(item) for item in lists.arguments(call[2])] if call is not None else []
        if name == "replicaterows":
            return self._all_rows(operator, child, outputs)
        rows = 1
        if name == "stack" and call is not None:
            first = re.match(r"\s*(\d+)", call[2])
            rows = int(first[1]) if first else 1
            arguments = arguments[1:]
        if name.startswith("inline"):
            name = "inline"
        return p.Generate(
            child,
            name,
            tuple(arguments),
            outputs,
            rows,
            map=name in ("explode", "explode_outer") and len(outputs) == 2,
            kept=kept,
        )

    def _all_rows(self, operator: Operator, child: p.Node, outputs: tuple[p.Named, ...]) -> p.Node:
        """EXCEPT ALL and INTERSECT ALL: Spark counts the rows of both sides and repeats as many as remain."""
        below = operator
        while len(self._inputs(below)) == 1:
            below = self._inputs(below)[0]
        sides = [self._nodes[side.id] for side in self._inputs(below)]
        if plain_name(below) != "Union" or len(sides) != 2 or not all(isinstance(s, p.Project) for s in sides):
            return self._unknown(operator, "Generate of replicaterows")
        plain: list[p.Node] = []
        for side in sides:
            assert isinstance(side, p.Project)
            own = tuple(o for o in side.outputs if not o.name.startswith("vcol"))
            plain.append(p.Project(side.child, own))
        return p.SetOperation(plain[0], plain[1], outputs)

    def _drops_all(self, operator: Operator, outputs: tuple[p.Named, ...]) -> bool:
        above = {o.id for o in self._read_above(operator)}
        return bool(above) and above <= {o.id for o in outputs}

    def _expand(self, operator: Operator) -> p.Node:
        child = self._child(operator)
        parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        if len(parts) < 2:
            return self._unknown(operator, "Expand")
        rows = lists.split(parts[0])
        named = lists.split(parts[-1])
        outputs = [p.Named(*item) for item in map(_named, named.items) if item is not None]
        projections = [[self.reader.expression(item) for item in lists.split(row).items] for row in rows.items]
        short = [i for i, row in enumerate(rows.items) if len(lists.split(row).items) != len(outputs)]
        if rows.more or named.more or short:
            return self._cut_expand(operator, child, outputs)
        return p.Expand(child, tuple(tuple(row) for row in projections), tuple(outputs))

    def _cut_expand(self, operator: Operator, child: p.Node, outputs: list[p.Named]) -> p.Node:
        """An Expand whose lists are cut: what groups is a copy of the column of the same name."""
        known = {o.id for o in outputs}
        outputs = outputs + [o for o in self._read_above(operator) if o.id not in known]
        below = p.outputs_of(child)
        ids = {o.id for o in below}
        by_name: dict[str, list[p.Named]] = {}
        for o in below:
            by_name.setdefault(o.name, []).append(o)
        made = []
        lost = False
        for o in outputs:
            same = by_name.get(o.name, [])
            value: p.Expression
            if o.id in ids:
                value = p.Attribute(o.id, o.name)
            elif len(same) == 1:
                value = p.Attribute(same[0].id, o.name)
            elif o.name in ("spark_grouping_id", "gid", "_gen_grouping_id"):
                value = p.CONSTANT
            else:
                lost = True
                value = p.Opaque(TRUNCATED, tuple(p.Attribute(b.id, b.name) for b in below))
            made.append(p.Output(o.id, o.name, value))
        if lost:
            self._note(TRUNCATED, "Expand: projections that the plan text leaves out")
        return p.Project(child, tuple(made))

    def _merge_rows(self, operator: Operator) -> p.Node:
        """MergeRows: for each row the instructions of its case, ``keep(condition, value, value …)``."""
        child = self._child(operator)
        listed = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        named = [_named(item) for item in lists.split(listed[-1]).items] if listed else []
        outputs = [p.Named(*item) for item in named if item is not None]
        values: list[list[p.Expression]] = [[] for _ in outputs]
        by: list[p.Expression] = []
        for part in listed[:-1]:
            elements = lists.split(part)
            for item in elements.items:
                call = _CALL.match(item)
                told = lists.arguments(call[2]) if call is not None else []
                if elements.more or call is None or (call[1].lower() == "keep" and len(told) <= len(outputs)):
                    return self._unknown(operator, "MergeRows")
                by += self.reader.attributes(told[0]) if told else []
                if call[1].lower() in ("keep", "split"):
                    for start in range(len(told) - len(outputs), 0, -len(outputs)):
                        for at, text in enumerate(told[start : start + len(outputs)]):
                            values[at].append(self.reader.expression(text))
        made = []
        for output, found in zip(outputs, values, strict=True):
            different = list(dict.fromkeys(found))
            value = different[0] if len(different) == 1 else p.Apply("", tuple(different), EdgeKind.IDENTITY)
            steered = p.Steered(value, tuple(dict.fromkeys(by))) if by else value
            made.append(p.Output(output.id, output.name, steered))
        return p.Project(child, tuple(made))

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

    def _lost(self, operator: Operator, name: str) -> p.Node:
        code, what = LOST.get(name, ("break.typed", f"{name}: code of the JVM"))
        children = tuple(self._nodes[child.id] for child in self._inputs(operator))
        outputs = self._listed(operator, "Output")
        if not outputs:
            parts = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
            for part in reversed(parts):
                named = [item for item in map(_named, lists.split(part).items) if item is not None]
                if named:
                    outputs = tuple(p.Named(*item) for item in named)
                    break
        outputs = outputs or self._read_above(operator) or _last_attribute(operator)
        return p.Lost(children, outputs, code, f"{what}: what it does with its input is not known")

    def _unknown(self, operator: Operator, name: str) -> p.Node:
        """An operator that is not known here. If nothing but its input comes out of it, little can be wrong."""
        children = tuple(self._nodes[child.id] for child in self._inputs(operator))
        outputs = self._listed(operator, "Output") or self._read_above(operator)
        if not outputs and len(children) == 1:
            outputs = p.outputs_of(children[0])
        return p.Lost(children, outputs, UNKNOWN, f"the operator {name} is not known")

    # ---- pieces ----------------------------------------------------------------------------------------------------

    def _listed(self, operator: Operator, key: str) -> tuple[p.Named, ...]:
        text = operator.fields.get(key, "")
        if not text:
            return ()
        items = lists.split(text, operator.counts.get(key)).items
        return tuple(p.Named(*found) for found in map(_named, items) if found is not None)

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
        self.meaning.notes.append(Diagnostic(code, "warning", message))


_METHODS: dict[str, Callable[[Builder, Operator], p.Node]] = {
    "Project": Builder._project,
    "Filter": Builder._filter,
    "Sort": Builder._sort,
    "TakeOrderedAndProject": Builder._take_ordered,
    "Union": Builder._union,
    "Generate": Builder._generate,
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


def _named(item: str) -> tuple[int, str] | None:
    """The id and the name that an element of a list defines or names."""
    made = lists.alias(item)
    return (made[1], made[2]) if made is not None else lists.attribute(item)


def _ids(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"#(\d+)", text)}


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
            case p.Steered(value=value, by=by):
                stack.extend((value, *by))
            case p.Field(base=base):
                stack.append(base)
            case p.Record(fields=fields):
                stack.extend(value for _, value in fields)
            case p.Let(bindings=bindings, body=body):
                stack.extend((*(value for _, value in bindings), body))
            case _:
                pass
    return found


def _uncast(node: p.Node) -> p.Node:
    """An arm of a union, without the casts by which analysis fits its types: those of columns that keep their name."""
    if not isinstance(node, p.Project):
        return node
    outputs = []
    for output in node.outputs:
        value = output.value
        inner = value.arguments[0] if isinstance(value, p.Apply) and value.name == "cast" else None
        if isinstance(inner, p.Attribute) and inner.name == output.name:
            output = p.Output(output.id, output.name, inner)
        outputs.append(output)
    return p.Project(node.child, tuple(outputs))


def _by_position(
    outputs: list[p.Output | None], keys: Mapping[int, p.Expression], values: list[p.Expression]
) -> list[p.Output | None]:
    """Results of an aggregate in one-line notation, which names them and not what each is: what is no key is one of the
    functions, in their order, or, where there are not as many, any of them.
    """
    made = [o for o in outputs if o is not None and o.id not in keys]
    one_each = len(made) == len(values)
    found: list[p.Output | None] = []
    for output in outputs:
        if output is None or output.id in keys or not values:
            found.append(output)
            continue
        value = values[made.index(output)] if one_each else p.Opaque(TRUNCATED, tuple(values))
        found.append(p.Output(output.id, output.name, value))
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


def _last_attribute(operator: Operator) -> tuple[p.Named, ...]:
    found = re.findall(r"([\w$]+)#(\d+)", operator.fields.get("Arguments", ""))
    return (p.Named(int(found[-1][1]), found[-1][0]),) if found else ()
