"""Leaves of a plan: what is read, which of its columns, and conditions that only the scan has."""

from __future__ import annotations

import re

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext import database, lists
from govtool.capture.spark.plantext.expressions import written_conditions
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.reading import TRUNCATED, PlanReader, named_of
from govtool.capture.spark.plantext.tree import Operator

_BATCH = re.compile(r"\bSQLExecutionRDD\[\d+\] at start at ")
"""The RDD that ``foreachBatch`` hands to its function: made where the query was started."""


class Leaves(PlanReader):
    """Relations of leaves."""

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
            return p.LineageBreak((), outputs, "break.source", f"what {name.split('(')[0].strip()} reads is not told")
        if found_.nothing:
            if self.batch is not None and _is_of(operator, outputs, self.batch):
                return p.Renamed(self.batch, outputs)
            if found_.reason:
                return p.LineageBreak((), outputs, found_.reason, found_.message)
            return p.Values(outputs)
        self.lineage.sources.setdefault(found_.place.id, found_)
        if found_.message:
            self._note(found_.reason, found_.message)
        if operator.name.startswith(database.SCAN):
            return database.answered(operator, outputs, lambda read: self._scan(operator, found_.place.id, read))
        node = self._scan(operator, found_.place.id, outputs)
        if found_.places:
            others = [place.id for place in found_.places]
            self.lineage.scans += [(operator, dataset) for dataset in others]
            node = build.several(node, others, outputs)
        return self._pushed(operator, node, found_.place.id, outputs)

    def _scan(self, operator: Operator, dataset: str, outputs: tuple[p.Named, ...]) -> p.Node:
        self.lineage.scans.append((operator, dataset))
        self.lineage.attributes.update({o.id: (dataset, o.name) for o in outputs if o.id >= 0})
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
        names = _handled(operator)
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
                named = [named_of(item) for item in elements.items]
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
            return p.LineageBreak((), outputs, "break.cache", "the plan of a cached table is not known")
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


def _handled(operator: Operator) -> set[str]:
    """The columns of conditions that a database answers by itself."""
    pushed = lists.split(operator.fields.get("PushedFilters", "")).items
    handled = [item for item in pushed if item.startswith("*") and "*IsNotNull" not in item]
    return {name for item in handled for name in re.findall(r"\(([\w`. ]+?)[,)]", item)}


def _is_of(operator: Operator, outputs: tuple[p.Named, ...], batch: p.Node) -> bool:
    """Return whether a scan of an RDD is that of a batch: by the RDD, and by the names of all columns in order."""
    if not _BATCH.search(operator.fields.get("Arguments", "")):
        return False
    return [output.name for output in outputs] == [output.name for output in p.outputs_of(batch)]
