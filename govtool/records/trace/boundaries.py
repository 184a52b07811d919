"""Rules of the boundaries: groups, DISTINCT, set operations, windows, limits.

Source: the specification of fine-grained provenance, section 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from govtool.records.plan.expressions import Named
from govtool.records.plan.nodes import Aggregate, Deduplicate, Distinct, SetOperation, outputs
from govtool.records.plan.tree import Node
from govtool.records.trace.candidates import relaxed, set_candidates
from govtool.records.trace.carrier import Carrier, Linked, Needed
from govtool.records.trace.computed import computed
from govtool.records.trace.measure_terms import term_conditions
from govtool.records.trace.segment import Grade, Segment, reads, unique
from govtool.records.trace.subqueries import against


def evaluated(carrier: Carrier, node: Node) -> Node:
    """Return a boundary over its inputs as they are, or with their candidates."""
    if not carrier.candidates:
        return node
    return node.replaced(nodes=tuple(relaxed(child, carrier.ids) for child in node.nodes()))


def aggregate(carrier: Carrier, node: Aggregate, needed: Needed) -> Segment:
    """δ(Σ t) of the group; without keys 1, and the terms of the cells that count."""
    keys = [named.value for named in node.keys]
    above = [named.attribute for named in node.keys]
    links = [carrier.by_values("aggregate", above, node.child, keys)] if keys else []
    nested = computed(node.child)
    for measure in {_terms(m): m for m in node.measures if m.id in needed}.values():
        used = reads([measure.value])
        if not keys or used & nested:  # else the group's own rows are there already
            link = carrier.by_values("aggregate", above, node.child, keys, term_conditions(measure.value))
            link.link.make = carrier.below(node.child, used | reads(keys))
            links.append(link)
    return carrier.linked(Segment(evaluated(carrier, node), outputs(node), ()), links)


def _terms(measure: Named) -> Any:
    """Return a key of the terms of a measure: measures with the same key need one link."""
    return tuple(term_conditions(measure.value)), reads([measure.value])


def distinct(carrier: Carrier, node: Distinct, needed: Needed) -> Segment:
    """δ(Σ) of the equal rows."""
    columns = unique(outputs(node))
    link = carrier.by_values("distinct", columns, node.child, columns)
    return carrier.linked(Segment(evaluated(carrier, node), outputs(node), ()), [link])


def deduplicate(carrier: Carrier, node: Deduplicate, needed: Needed) -> Segment:
    """One row a key: not determined which, so that all of them are given."""
    grade = Grade("superset", "dropDuplicates by some columns keeps one row of each, not determined which")
    link = carrier.by_values("drop duplicates", node.keys, node.child, node.keys, grade=grade)
    return carrier.linked(Segment(node, outputs(node), ()), [link])


def set_operation(carrier: Carrier, node: SetOperation, needed: Needed) -> Segment:
    """Intersect δ(L)·δ(R), L ⊖ (L ⊖ R); except δ(L) ⊖ δ(R), L ⊖ R: values match, NULL being one."""
    name = f"{node.kind}{' all' if node.all else ''}"

    def side(other: Node, carrying: Carrier) -> Linked:
        return carrying.by_values(name, node.columns, other)

    links = [side(node.left, carrier)]
    if node.kind == "intersect" and not node.all:
        links.append(side(node.right, carrier))
    else:
        links += against(carrier, node.right, lambda whole: side(node.right, whole), always=node.all)
    if node.kind == "intersect" and node.all:  # L is in its own right operand, candidates and all
        links += against(carrier, node.left, lambda whole: side(node.left, whole))
    made: Node = node
    if carrier.candidates:
        left, right = (relaxed(each, carrier.ids) for each in (node.left, node.right))
        made = set_candidates(replace(node, left=left, right=right))
    return carrier.linked(Segment(made, node.columns, ()), links)
