"""Whether rows that tie in a window that counts them may come out otherwise, by brute force over all their orders."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations, product
from types import SimpleNamespace

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Named, SortKey, WindowCall
from govtool.records.plan.nodes import LocalRows, Session, Window
from govtool.records.replay.compare import ties
from govtool.records.trace.normal import spare_ids

COLUMNS = tuple(Attribute(n, name, t.INTEGER) for n, name in enumerate("gxy"))


def numbered(rows, first):
    """Every way of numbering rows by a column: rows that tie come in any order."""
    of = sorted({row[first] for row in rows}, key=lambda each: (each is not None, each or 0))
    groups = [[n for n, row in enumerate(rows) if row[first] == each] for each in of]
    for chosen in product(*(permutations(group) for group in groups)):
        order = [n for group in chosen for n in group]
        yield {row: n for n, row in enumerate(order)}


def may_differ(rows, firsts):
    ways = [list(numbered(rows, first)) for first in firsts]
    found = {
        frozenset(Counter((row, *(way[n] for way in chosen)) for n, row in enumerate(rows)).items())
        for chosen in product(*ways)
    }
    return len(found) > 1


def test_rows_that_are_equal_may_change_places():
    draw, seen = random.Random(950), Counter()
    for _ in range(60):
        rows = tuple(tuple(draw.choice((1, 1, 2, None)) for _ in COLUMNS) for _ in range(draw.randint(1, 4)))
        firsts = draw.choice([(1,), (1,), (1, 2)])
        child = LocalRows(0, COLUMNS, rows)
        calls = [
            Named(
                WindowCall(Call("row_number", (), t.INTEGER), (), (SortKey(COLUMNS[n]),), None, t.INTEGER), 10 + n, "n"
            )
            for n in firsts
        ]
        node = Window(child, tuple(calls))
        lineage = SimpleNamespace(ids=spare_ids(node), executor=DuckExecutor(Session("4.0.0", True, "UTC")))
        found, expected = ties(lineage, node), may_differ(rows, firsts)
        assert found or not expected, (rows, firsts)
        assert found == expected or len(firsts) > 1, (rows, firsts)
        seen[found, expected] += 1
    assert seen[False, False] > 5
    assert seen[True, True] > 5
