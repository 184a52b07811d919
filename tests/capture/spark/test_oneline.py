"""Plans of an operator a line: what they do not tell is stated, never guessed."""

from __future__ import annotations

import pytest

from govtool.capture.spark.plantext.read import read_plan

SCAN = (
    "FileScan parquet db.t[k#1,a#2,b#3] Batched: false, Location: InMemoryFileIndex(1 paths)[file:/w/t],"
    " PartitionFilters: [], PushedFilters: [], ReadSchema: struct<k:string,a:int,b:int>"
)
PIVOT = "__pivot_sum(db.t.a) AS `sum(db.t.a)`#9"


def columns(text):
    flow = read_plan(f"== Physical Plan ==\n{text}\n").flow
    found = [(c.name, {f"{d.source.path} {d.kind.label}" for d in c.dependencies}) for c in flow.columns]
    return found, {f"{d.source.path} {d.kind.label}" for d in flow.rows}


CASES = {
    "a limit in order": (
        f"TakeOrderedAndProject(limit=1, orderBy=[a#2 ASC NULLS FIRST,b#3 DESC NULLS LAST], output=[k#1])\n+- {SCAN}",
        [("k", {"k identity"})],
        {"a sort", "b sort"},
    ),
    "a generator that keeps nothing": (
        f"Generate inline(array(struct(x, a#2, y, b#3))), false, [x#7, y#8]\n+- {SCAN}",
        [("x", {"a transformation"}), ("y", {"b transformation"})],
        set(),
    ),
    "functions one by one": (
        f"SortAggregate(key=[k#1], functions=[max(a#2), sum(b#3)], output=[k#1, m#7, s#8L])\n+- {SCAN}",
        [("k", {"k identity"}), ("m", {"a aggregation"}), ("s", {"b aggregation"})],
        {"k group_by"},
    ),
    "functions that have moved": (
        f"HashAggregate(keys=[k#1], functions=[max(a#2), count(distinct b#3)], output=[k#1, n#7L, m#8])\n+- {SCAN}",
        [("k", {"k identity"}), *((n, {"k opaque", "a opaque", "b opaque"}) for n in ("n", "m"))],
        {"k group_by"},
    ),
    "a key under another name": (
        f"HashAggregate(keys=[k#1], functions=[count(1)], output=[u#7, n#8L])\n+- {SCAN}",
        [("u", {"k opaque"}), ("n", {"k opaque"})],
        {"k group_by"},
    ),
    "a pivot": (
        "Project [k#1, __pivot_sum(db.t.a) AS `sum(db.t.a)`#9[0] AS x#10]\n+- HashAggregate(keys=[k#1], functions="
        f"[pivotfirst(b#3, sum(db.t.a)#8L, 1, 0, 0)], output=[k#1, {PIVOT}])\n   +- HashAggregate(keys=[k#1, b#3],"
        f" functions=[sum(a#2)], output=[k#1, b#3, sum(db.t.a)#8L])\n      +- {SCAN}",
        [("k", {"k identity"}), ("x", {"a aggregation", "b conditional"})],
        {"k group_by"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_a_line(case):
    text, *expected = CASES[case]
    assert list(columns(text)) == expected
