"""Traces around breaks, against the reference: a random part of a random plan cannot be evaluated again.

python tests/records/trace/broken_plans.py 1000 [first seed] [--inputs]

With ``--inputs``, a whole input is not known, as a table of a database is: rows of the others are not to be missed.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from differential import Case, normal_rows, same_as
from reference.algebra import Row, present
from reference.polynomial import NOTHING, Trace

from govtool.errors import EngineError
from govtool.records.leaves import with_relations
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Cast,
    Exists,
    InSubquery,
    Named,
    Opaque,
    ScalarSubquery,
    SortKey,
    WindowCall,
    passed,
)
from govtool.records.plan.expressions import (
    Case as CaseWhen,
)
from govtool.records.plan.nodes import Break, Filter, LocalRows, Project, Relation, Write, outputs
from govtool.records.plan.tree import Node, Term, rewrite_nodes, walk, walk_nodes
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.lost_inputs import around_lost_inputs

_LOST = (Call, CaseWhen, Cast, AggregateCall, WindowCall, Attribute, ScalarSubquery, Exists, InSubquery)


@dataclass
class Broken:
    """What some cases came to."""

    cases: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def broken(rng: Random, root: Node) -> Node | None:
    """A plan in which an expression, or sometimes an operator, is not known; None if it has nothing of the kind."""
    nodes = [each for each in walk_nodes(root) if not isinstance(each, (Relation, LocalRows, Write))]
    places = [(each, term) for each in nodes for term in walk(each) if _may_be_lost(each, term)]
    if places and rng.random() < 0.85:
        node, term = rng.choice(places)
        return _within(root, node, _without(node, term))
    if not nodes:
        return None
    node = rng.choice(nodes)
    queries = tuple(plan for term in walk(node) for plan in term.nodes())
    return _within(root, node, Break("Lost: not on the list", (*node.nodes(), *queries), outputs(node)))


def _may_be_lost(node: Node, term: Term) -> bool:
    if not isinstance(term, _LOST) or not hasattr(term, "type"):
        return False
    if not isinstance(term, Attribute):
        return True
    owners = [owner for owner in walk(node) if term in owner.terms()]
    passed_on = any(isinstance(owner, Named) and owner.id == term.id for owner in owners)  # a new value has a new id
    return not passed_on and any(isinstance(owner, (Named, SortKey, Call)) for owner in owners)


def _without(node: Node, lost: Term) -> Node:
    kind = lost.type  # type: ignore[attr-defined]
    arguments = tuple(_arguments(lost))
    aggregate = isinstance(lost, AggregateCall)
    opaque = Opaque("lost: not on the list", arguments, kind, aggregate)
    done = False

    def changed(term: Term) -> Term:
        nonlocal done
        if done or isinstance(term, Opaque):
            return term
        if term == lost and not (isinstance(term, Attribute)):
            done = True
            return opaque
        if isinstance(term, (Named, SortKey, Call)) and isinstance(lost, Attribute) and lost in term.terms():
            done = True
            return term.replaced(terms=tuple(opaque if each == lost else each for each in term.terms()))
        return term.replaced(terms=tuple(changed(each) for each in term.terms()))

    return node.replaced(terms=tuple(changed(each) for each in node.terms()))


def _arguments(term: Term) -> Iterator[Any]:
    if isinstance(term, (Attribute, ScalarSubquery, Exists, InSubquery)):
        yield term
        return
    for each in walk(term):
        if isinstance(each, (Attribute, ScalarSubquery, Exists, InSubquery)):
            yield each


def _within(root: Node, old: Node, new: Node) -> Node:
    """A plan with another operator in place of one, that may be in a subquery."""

    def term_of(term: Term) -> Term:
        if isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            term = term.replaced(nodes=tuple(_within(plan, old, new) for plan in term.nodes()))
        return term.replaced(terms=tuple(term_of(each) for each in term.terms()))

    def change(node: Node) -> Node:
        if node == old:
            return new
        return node.replaced(terms=tuple(term_of(each) for each in node.terms()))

    return rewrite_nodes(root, change)


def without_input(rng: Random, root: Node) -> tuple[Node | None, str]:
    """A plan in which an input is not known, or only where others are joined with it; None if it has no other input."""
    names: set[str] = set()

    def note(leaf: Relation) -> Node:
        names.add(leaf.dataset)
        return leaf

    with_relations(root, note)
    if len(names) < 2:
        return None, ""
    lost = rng.choice(sorted(names))
    if rng.random() < 0.5:
        made = around_lost_inputs(root, {lost})
        return (None if made == root else made), lost

    def broken_leaf(leaf: Relation) -> Node:
        return Break("Lost: rows of a database", (), outputs(leaf)) if leaf.dataset == lost else leaf

    return with_relations(root, broken_leaf), lost


class BrokenCase(Case):
    """A plan with a break, over data."""

    is_of_inputs = False
    lost = ""

    def check(self, total: Broken) -> None:
        """Trace some rows back and one row forward around the break."""
        from govtool.records.plan.from_sql import from_sql

        whole = from_sql(self.sql, self.tables.catalog)
        rng = Random(self.seed + 1)
        if self.is_of_inputs:
            plan, self.lost = without_input(rng, whole)
        else:
            plan = broken(rng, whole)
        if plan is None:
            return
        total.cases += 1
        try:
            raw = self.duck.fetch(whole)
        except NotExact as error:
            total.skipped[str(error).splitlines()[0][:60]] += 1
            return
        self.lineage = Lineage.in_part(plan, self.duck)
        visible = outputs(whole)
        self.chosen = [at for at, column in enumerate(visible) if not isinstance(column.type, t.Array)]
        written = self.duck.keep(_as_rows(self.lineage, whole))
        rows = present(self.plan, self.data)
        originals = {self.key(row): row for row in raw}
        for value in rng.sample(sorted(originals, key=repr), min(2, len(originals))):
            pairs = [outputs(written)[at] for at in self.chosen], [originals[value][at] for at in self.chosen]
            chosen = Filter(written, same_as(*pairs)) if self.chosen else written
            self._traced(total, chosen, [row for row in rows if self.key(row.values) == value], value)
        self._ahead(total, rng, rows)

    def _traced(self, total: Broken, chosen: Node, rows: list[Row], value: Any) -> None:
        expected = NOTHING
        for row in rows:
            expected |= row.trace
        where = f"{self.seed} row {value}"
        try:
            reached = self.lineage.recorded(chosen).go_back_all().parts
        except (EngineError, NotExact) as error:
            total.skipped[str(error).splitlines()[0][:60]] += 1
            return
        grades = [self.lineage.graded(each.grade).exactness for each in reached if not each.against]
        grade = max(grades, key=["exact", "superset", "coarse", "incomplete"].index, default="exact")
        total.grades[grade] += 1
        found = Trace(self.tokens(reached, False), self.tokens(reached, True))
        missed = expected.rows - found.rows
        if self.lost:
            missed -= {each[0] for each in self.data[self.lost]}
        if missed and (self.lost or grade != "incomplete"):
            total.wrong.append(f"{where}: misses {sorted(missed)}, {grade}: {self.sql}")
        if grade == "exact" and found.rows != expected.rows and (grades or not self.lost):
            total.wrong.append(f"{where}: {sorted(found.rows)} instead of {sorted(expected.rows)}: {self.sql}")

    def _ahead(self, total: Broken, rng: Random, rows: list[Row]) -> None:
        """Rows that an input row reached are among those of the trace, by the columns that are known."""
        names = sorted({leaf.dataset for leaf in self.lineage.leaves() if isinstance(leaf, Relation)})
        names = [name for name in names if self.data[name]]
        if not names:
            return
        name = rng.choice(names)
        number = rng.randrange(len(self.data[name]))
        token = self.data[name][number][0]
        known = [n for n, c in enumerate(self.lineage.stage.segment.visible) if c.id not in self.lineage.blank]
        expected = {_some(values, known) for values in normal_rows(r.values for r in rows if token in r.trace.rows)}
        _, file, row = _unpacked(self.tables.record(name, number))
        try:
            chosen = self.lineage.input(name).rows([(file, row)])
            found = [fetched for part in chosen.go_next_all().parts for fetched in self._fetched(part)]
        except (EngineError, NotExact) as error:
            total.skipped[str(error).splitlines()[0][:60]] += 1
            return
        missed = expected - {_some(values, known) for values in normal_rows(found)}
        if missed and (self.lost or not (self.lineage.looseness and self.lineage.looseness.missing)):
            total.wrong.append(f"{self.seed} forward {token}: misses {missed}: {self.sql}")

    def _fetched(self, part: Any) -> list[tuple[Any, ...]]:
        visible = self.lineage.stage.segment.visible
        return self.duck.fetch(Project(part.rows, tuple(passed(column) for column in visible)))


def _unpacked(record: int) -> tuple[int, int, int]:
    from govtool.model.token import unpack

    return unpack(record)


def _some(values: tuple[Any, ...], places: list[int]) -> tuple[Any, ...]:
    return tuple(values[place] for place in places)


def _as_rows(lineage: Lineage, node: Node) -> Node:
    return Project(node, tuple(lineage.ids.named(column.name, column) for column in outputs(node)))


def run(seeds: Iterable[int], *, inputs: bool = False) -> Broken:
    """Check some seeds; with ``inputs``, plans of which an input is not known."""
    total = Broken()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case = BrokenCase(seed, Path(folder))
                case.is_of_inputs = inputs
            except Exception as error:
                total.skipped[f"case: {type(error).__name__}"] += 1
                continue
            try:
                case.check(total)
            except Exception as error:
                total.wrong.append(f"{seed}: {type(error).__name__}: {str(error)[:300]}: {case.sql}")
            finally:
                case.tables.close()
    return total


if __name__ == "__main__":
    count, first = ([int(text) for text in sys.argv[1:] if not text.startswith("-")] + [0])[:2]
    outcome = run(range(first, first + count), inputs="--inputs" in sys.argv)
    print(*outcome.wrong, sep="\n")
    print(outcome.cases, dict(outcome.grades), dict(outcome.skipped), len(outcome.wrong))
    sys.exit(bool(outcome.wrong))
