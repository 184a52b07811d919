"""Operators that make several rows of one, or choose between several forms of it: generators, grouping sets, MERGE."""

from __future__ import annotations

import re

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.reading import TRUNCATED, PlanReader, named_of
from govtool.capture.spark.plantext.tree import Operator
from govtool.model import EdgeKind

_OUTER = re.compile(r", (?:true|false)(?:, [\w`.]++)?, (?=\[)")
"""What stands before the columns that a generator makes: whether it is outer, and the name of the view."""
_SIDE = re.compile(r"\[(1|true|-1|null) AS vcol1?#")
"""The mark of the rows of a side of EXCEPT ALL and INTERSECT ALL."""
_FUNCTION = re.compile(r"\s*([\w$.<>]+)\((.*)\)#\d+L?\Z", re.DOTALL)
_CALL = re.compile(r"\s*([\w$.<>]+)\((.*)\)\Z", re.DOTALL)


class Generators(PlanReader):
    """Relations of generators."""

    def _generate(self, operator: Operator) -> p.Node:
        text = operator.fields.get("Arguments", "")
        parts = _generate_parts(text)
        child = self._child(operator)
        if parts is None:
            return self._unknown(operator, "Generate")
        generator, required, made = parts
        elements = lists.split(made)
        outputs = tuple(p.Named(*item) for item in map(named_of, elements.items) if item is not None)
        # The text of the plan is cut here: what operators above read, and nothing below makes, is among the rest.
        if elements.more:
            known = {o.id for o in (*p.outputs_of(child), *outputs)}
            outputs = (*outputs, *(o for o in self._read_above(operator) if o.id not in known))
            self._note(TRUNCATED, "Generate: columns that the plan text leaves out")
        call = _CALL.match(generator)
        name = call[1].lower() if call is not None else generator.lower()
        arguments = lists.arguments(call[2]) if call is not None else []
        values = [self.reader.expression(item) for item in arguments]
        if name == "replicaterows":
            return self._all_rows(operator, child, outputs)
        rows = 1
        if name == "stack" and call is not None:
            first = re.match(r"\s*(\d+)", call[2])
            rows = int(first[1]) if first else 1
            values = values[1:]
        name = "inline" if name.startswith("inline") else name
        of_map = name in ("explode", "explode_outer") and len(outputs) == 2
        return p.Generate(
            child, name, tuple(values), outputs, rows, map=of_map, kept=self._kept(operator, required, outputs)
        )

    def _kept(self, operator: Operator, required: str | None, outputs: tuple[p.Named, ...]) -> frozenset[int] | None:
        """The columns of the child that stay beside those that are made; None: all.

        A physical plan leaves an empty list out: then nothing of the child stays.
        """
        if required is not None:
            return frozenset(o[0] for o in map(named_of, lists.split(required).items) if o is not None)
        return frozenset() if "Input" in operator.fields or self._drops_all(operator, outputs) else None

    def _all_rows(self, operator: Operator, child: p.Node, outputs: tuple[p.Named, ...]) -> p.Node:
        """EXCEPT ALL and INTERSECT ALL: Spark counts the rows of both sides and repeats as many as remain."""
        below = operator
        while len(self._inputs(below)) == 1:
            below = self._inputs(below)[0]
        sides: dict[bool, list[p.Node]] = {True: [], False: []}
        for side in self._inputs(below) if plain_name(below) == "Union" else []:
            node, mark = self._nodes[side.id], _SIDE.match(side.fields.get("Output", ""))
            if not isinstance(node, p.Project) or mark is None:
                sides.clear()
                break
            own = tuple(o for o in node.outputs if not o.name.startswith("vcol"))
            sides[mark[1] in ("1", "true")].append(p.Project(node.child, own))
        if not all(sides.get(is_left) for is_left in (True, False)):
            return self._unknown(operator, "Generate of replicaterows")
        # A UNION ALL on either side is one with the union that counts.
        left, right = (arms[0] if len(arms) == 1 else build.union(arms) for arms in sides.values())
        return p.SetOperation(left, right, outputs)

    def _table_function(self, operator: Operator) -> p.Node:
        """A table function in Python: ``f(a#1)#2, [columns of the input that stay], [columns that it makes], 301``."""
        parts = lists.arguments(operator.fields.get("Arguments", ""))
        call = _FUNCTION.match(parts[0]) if parts else None
        listed = [part for part in parts[1:] if part.startswith("[")]
        made = lists.split(listed[-1]) if listed else None
        if call is None or made is None or made.more:
            return self._unknown(operator, operator.name)
        outputs = tuple(p.Named(*item) for item in map(named_of, made.items) if item is not None)
        return p.Generate(
            self._child(operator),
            call[1].lower(),
            tuple(self.reader.expression(item) for item in lists.arguments(call[2])),
            outputs,
            reason=f"python-udf: {call[1]}",
            kept=self._kept(operator, listed[0] if len(listed) > 1 else None, outputs),
        )

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
        outputs = [p.Named(*item) for item in map(named_of, named.items) if item is not None]
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
        truncated = False
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
                truncated = True
                value = p.Opaque(TRUNCATED, tuple(p.Attribute(b.id, b.name) for b in below))
            made.append(p.Output(o.id, o.name, value))
        if truncated:
            self._note(TRUNCATED, "Expand: projections that the plan text leaves out")
        return p.Project(child, tuple(made))

    def _merge_rows(self, operator: Operator) -> p.Node:
        """MergeRows: for each row the instructions of its case, ``keep(condition, value, value …)``."""
        child = self._child(operator)
        listed = [part for part in lists.arguments(operator.fields.get("Arguments", "")) if part.startswith("[")]
        named = [named_of(item) for item in lists.split(listed[-1]).items] if listed else []
        outputs = [p.Named(*item) for item in named if item is not None]
        values: list[list[p.Expression]] = [[] for _ in outputs]
        by: list[p.Expression] = []
        for part in listed[:-1]:
            elements = lists.split(part)
            for item in elements.items:
                call = _CALL.match(item)
                instructions = lists.arguments(call[2]) if call is not None else []
                if elements.more or call is None or (call[1].lower() == "keep" and len(instructions) <= len(outputs)):
                    return self._unknown(operator, "MergeRows")
                by += self.reader.attributes(instructions[0]) if instructions else []
                if outputs and call[1].lower() in ("keep", "split"):
                    self._add_values(values, instructions)
        conditions = tuple(dict.fromkeys(by))
        made = (
            p.Output(output.id, output.name, _one_of(found, conditions))
            for output, found in zip(outputs, values, strict=True)
        )
        return p.Project(child, tuple(made))

    def _add_values(self, values: list[list[p.Expression]], instructions: list[str]) -> None:
        """Add the values that an instruction gives to each column; ``split`` makes two rows, with values for each."""
        for start in range(len(instructions) - len(values), 0, -len(values)):
            for found, text in zip(values, instructions[start : start + len(values)], strict=True):
                found.append(self.reader.expression(text))


def _one_of(values: list[p.Expression], conditions: tuple[p.Expression, ...]) -> p.Expression:
    """One of several values, chosen by conditions."""
    different = list(dict.fromkeys(values))
    value = different[0] if len(different) == 1 else p.Apply("", tuple(different), EdgeKind.IDENTITY)
    return p.Conditional(value, conditions) if conditions else value


def _generate_parts(text: str) -> tuple[str, str | None, str] | None:
    """The parts of ``explode(a#1), [columns that stay], false, v, [columns that it makes]``; None if it is none.

    In steps, as a pattern with a list in its middle looks at the rest of the text from each bracket.
    """
    if not text.endswith("]"):
        return None
    ends = list(_OUTER.finditer(text))
    if not ends:
        return None
    listed = text.find(", [")
    if 0 <= listed < ends[0].start():
        # the list ends where one of these follows a bracket
        closing = next((end for end in ends if end.start() >= listed + 4 and text[end.start() - 1] == "]"), None)
        if closing is not None:
            return text[:listed], text[listed + 2 : closing.start()], text[closing.end() :]
    return text[: ends[0].start()], None, text[ends[0].end() :]
