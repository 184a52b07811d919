"""Functions of the user in recorded plans: those that are gone, or were changed, are opaque."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from govtool.app.records.engines import own_files
from govtool.records.plan.expressions import Opaque, Udf, UdfReference
from govtool.records.plan.subqueries import everywhere
from govtool.records.plan.tree import Node, Term, rewrite, walk, walk_nodes


def without_lost_functions(root: Node) -> Node:
    """A plan whose functions are all at hand: a call of one that is gone, or was changed, is an opaque cell."""
    from govtool.records.execute.functions import find, lost_reason

    used = functions_of(root)
    files = own_files(Path.cwd()) if used else []
    lost = {reference: lost_reason(reference, files) for reference in used if find(reference, files) is None}
    if not lost:
        return root

    return without_functions(root, lost)


def functions_of(root: Node) -> set[UdfReference]:
    """The functions of the user that a plan calls."""
    return {term.reference for node in walk_nodes(root) for term in walk(node) if isinstance(term, Udf)}


def without_functions(root: Node, reasons: Mapping[UdfReference, str]) -> Node:
    """A plan whose calls of some functions are opaque, those of its subqueries included."""

    def replaced(term: Term) -> Term:
        if not isinstance(term, Udf) or term.reference not in reasons:
            return term
        return Opaque(reasons[term.reference], term.arguments, term.type, term.aggregate)

    return everywhere(root, lambda node: node.replaced(terms=tuple(rewrite(term, replaced) for term in node.terms())))
