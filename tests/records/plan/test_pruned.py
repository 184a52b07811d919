"""Plans without columns that nothing reads give the rows that they gave."""

from __future__ import annotations

from random import Random

import pytest
from reference.generate import RELATIONS, Plans, Sql, random_data

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.leaves import with_relations
from govtool.records.plan import types as t
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Literal, Named, Outer, ScalarSubquery
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import Aggregate, Filter, LocalRows, Project, Relation, Session, outputs
from govtool.records.plan.pruned import pruned
from govtool.records.plan.tree import walk_nodes

KINDS = {"int": t.INTEGER, "str": t.STRING, "list": t.Array(t.INTEGER)}
A, B, C = (Attribute(n, name, t.LONG) for n, name in enumerate("abc", 1))
ROWS = LocalRows(0, (A, B, C), ((1, 10, 5), (1, 20, 6), (2, 30, 7)))
COUNT = AggregateCall("count", (Literal(1, t.INTEGER),), t.LONG)


def fetched(node):
    return sorted(DuckExecutor(Session("4.0", True, "UTC"), threads=1).fetch(node), key=repr)


def local(data):
    """Relations as rows of the driver, read by a query."""

    def change(leaf):
        names = [column for column, _ in RELATIONS[leaf.dataset]]
        rows = tuple(
            tuple(tuple(v) if isinstance(v, list) else v for v in (values[names.index(c.name)] for c in leaf.columns))
            for _, values in data[leaf.dataset]
        )
        return LocalRows(leaf.leaf, leaf.columns, rows)

    return change


@pytest.mark.parametrize("first", [0, 740_102])
def test_random_plans_give_the_same_rows_over_fewer_columns(first):
    dropped = 0
    for seed in range(first, first + 25):
        rng = Random(seed)
        data = random_data(rng)
        text = Sql().text(Plans(rng).plan(rng.randint(1, 4)).plan)
        catalog = {
            name: table(name, t.Struct(tuple(t.Field(c, KINDS[kind]) for c, kind in columns)))
            for name, columns in RELATIONS.items()
        }
        plan = from_sql(text, catalog)
        top = Project(plan, tuple(Named(c, c.id, c.name) for c in outputs(plan)[:1]))
        fewer = pruned(top)
        dropped += width(fewer) < width(top)
        change = local(data)
        assert fetched(with_relations(fewer, change)) == fetched(with_relations(top, change)), text
    assert dropped > 10


def width(plan):
    return sum(len(node.columns) for node in walk_nodes(plan) if isinstance(node, (Relation, Project)))


def test_an_aggregate_without_keys_stays_one_row_when_no_measure_is_read():
    plan = Aggregate(
        Aggregate(ROWS, (), (Named(AggregateCall("sum", (B,), t.LONG), 4, "s"),)), (), (Named(COUNT, 5, "n"),)
    )
    assert fetched(pruned(plan)) == [(1,)]


def test_a_group_stays_when_only_its_count_is_read():
    groups = Aggregate(ROWS, (Named(A, 1, "a"),), (Named(AggregateCall("sum", (B,), t.LONG), 4, "s"),))
    assert fetched(pruned(Aggregate(groups, (), (Named(COUNT, 5, "n"),)))) == [(2,)]


def test_a_column_that_only_a_subquery_reads_stays():
    inner = LocalRows(1, (Attribute(9, "k", t.LONG),), ((5,), (6,)))
    matches = Filter(inner, Call("=", (Attribute(9, "k", t.LONG), Outer(C)), t.BOOLEAN))
    value = ScalarSubquery(Aggregate(matches, (), (Named(COUNT, 7, "n"),)), t.LONG)
    below = Project(ROWS, (Named(A, 1, "a"), Named(B, 2, "b"), Named(C, 3, "c")))
    plan = Project(below, (Named(A, 1, "a"), Named(value, 8, "there")))
    assert fetched(pruned(plan)) == [(1, 1), (1, 1), (2, 0)]
    assert [c.name for c in pruned(plan).child.columns] == ["a", "c"]
