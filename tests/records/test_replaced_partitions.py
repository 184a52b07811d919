"""Deletions in runs whose later writes replaced some partitions: the rows at the end, against a simulation."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from govtool.app.workflow_runs.programs.replaced import PartitionHistory, PartitionWrite, without_replaced
from govtool.workflow.modules.run_rows import OutputDeletion
from govtool.workflow.queries.statuses import RowStatus

COLUMNS = ("part", "value")


def replaced(there, write, rows):
    """What a table holds after a write: an overwrite replaces the partitions that it has rows for."""
    parts = {row[0] for row in rows} | {part for (part,) in write.emptied} if write.replaces else set()
    return [row for row in there if row[0] not in parts] + rows


def history(rng, rows):
    """Writes of rows, each with its status."""
    writes, emptied = [], rng.random() < 0.2
    for number, own in enumerate(rows):
        parts = frozenset((row.before[0],) for row in own)
        none = frozenset({(3,)}) - parts if emptied and number else frozenset()
        writes.append(PartitionWrite(str(number), number > 0 and rng.random() < 0.7, parts, none))
    return PartitionHistory("log", ("part",), tuple(writes), "log: perhaps")


def status(rng, unknown):
    before = (rng.randint(1, 3), rng.randint(1, 4))
    kind = rng.choice(("kept", "kept", "deleted", "recomputed", *(["unknown"] if unknown else [])))
    after = {"kept": before, "recomputed": (rng.choice((before[0], rng.randint(1, 3))), 9)}.get(kind)
    return RowStatus(before, kind, after)


@pytest.mark.parametrize("seed", range(300))
def test_rows_are_those_of_a_simulation(seed):
    rng = Random(seed)
    rows = [[status(rng, seed % 3 == 0) for _ in range(rng.randint(0, 4))] for _ in range(rng.randint(2, 4))]
    known, deletion = history(rng, rows), OutputDeletion(COLUMNS)
    gains = [[(rng.randint(1, 3), 7)] if rng.random() < 0.2 else [] for _ in rows]
    for number, own in enumerate(rows):
        deletion = deletion.joined((1, str(number)), COLUMNS, own, gains[number], COLUMNS)
    (after,), notes = list(without_replaced({"log": deletion}, [known])[0].values()), ()
    assert notes == ()
    there = []
    for write, own in zip(known.writes, rows, strict=True):
        there = replaced(there, write, [row.before for row in own])
    assert Counter(row.before for _, row in after.rows) == Counter(there)
    for world in range(8):  # rows that are unknown may be gone, stay, or be others
        there, draw = [], Random(world)
        for write, own, gained in zip(known.writes, rows, gains, strict=True):
            left = [row.after for row in own if row.after is not None] + gained
            left += [
                draw.choice((row.before, (3, 8))) for row in own if row.status == "unknown" and draw.random() < 0.6
            ]
            there = replaced(there, write, left)
        rest = Counter(there)
        sure = Counter(row.after for _, row in after.rows if row.after is not None) + Counter(after.gains)
        assert not sure - rest, "rows that are not left"
        doubts = sum(row.status == "unknown" for _, row in after.rows)
        if not after.gains_possible and not doubts:
            assert rest == sure


def test_partitions_that_are_not_known_are_noted_and_all_rows_stay():
    rows = [RowStatus((1, 1), "kept", (1, 1))]
    deletion = OutputDeletion(COLUMNS).joined((1, "0"), COLUMNS, rows, ())
    unknown = PartitionHistory("log", (), (), "log: perhaps")
    assert without_replaced({"log": deletion}, [unknown]) == ({"log": deletion}, ("log: perhaps",))
    assert without_replaced({}, [unknown]) == ({}, ())


def test_columns_in_another_order_are_put_in_that_of_the_first_write():
    own = [RowStatus(("a", 1), "recomputed", ("b", 2))]
    deletion = OutputDeletion(COLUMNS).joined((1, "0"), ("value", "part"), own, [("c", 3)])
    assert deletion.rows == ((1, RowStatus((1, "a"), "recomputed", (2, "b"))),)
    assert deletion.gains == ((3, "c"),)
