"""Progress of an ingest from within a long step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from govtool.app.ingest.logs.meter import Meter
from govtool.app.ingest.logs.parts import Findings
from govtool.app.ingest.logs.request import Status


def _collected(records: int, distinct: int) -> Any:
    counts = SimpleNamespace(records=records, failed=0)
    return SimpleNamespace(log=SimpleNamespace(counts=counts, statements=range(distinct)), rejected=0)


def _metered(weight: int = 100) -> tuple[list[float], list[Status], Meter]:
    now = [0.0]
    seen: list[Status] = []
    return now, seen, Meter(seen.append, weight, clock=lambda: now[0])


def test_definitions_that_take_long_move_the_bar_twice_a_second():
    now, seen, meter = _metered()
    meter.resolving(1000, 0)
    for _ in range(8):
        now[0] += 0.25
        meter.within(int(now[0] * 400), 0)
    assert [status.done for status in seen] == [0, 190, 380, 570, 760]
    assert [round(status.rate) for status in seen[1:]] == [400, 400, 400, 400]


def test_queries_move_the_bar_before_the_first_batch_ends_and_say_what_is_left():
    now, seen, meter = _metered()
    now[0] = 2.0  # of reading, which says nothing of what follows
    meter.resolving(0, 1000)
    assert (seen[-1].rate, seen[-1].left) == (0, None)
    meter.stage()
    for _ in range(2):
        now[0] += 5
        meter.within(int((now[0] - 2) * 20), int(now[0] - 2))
    last = seen[-1]
    assert (last.done, round(last.rate), last.failed) == (190, 20, 10)
    assert last.left is not None
    assert 40 <= last.left <= 46  # 40 of resolving, and the writing


def test_what_several_processes_have_done_is_counted_once():
    from govtool.app.ingest.logs.meter import _SELDOM

    now, seen, meter = _metered()
    meter.resolving(0, 100)
    meter.stage()
    now[0] += _SELDOM
    meter.within(60, 0)
    meter.resolved(40, Findings())
    assert [status.done for status in seen] == [0, 570, 570]
    meter.resolved(60, Findings())
    assert seen[-1].done == 950


def test_reading_counts_by_how_many_statements_are_to_be_resolved():
    """A log that repeats itself is nearly done when it is read; one of distinct statements has hardly begun."""
    now, seen, meter = _metered()
    now[0] = 10
    meter.read(50, _collected(10_000, 5))
    assert 470 <= seen[-1].done <= 475
    assert seen[-1].left is not None
    assert 11 <= seen[-1].left <= 12  # half of the reading, and the writing
    meter.read(50, _collected(20_000, 10))
    meter.resolving(0, 10)
    assert 940 <= seen[-1].done <= 950

    now, seen, meter = _metered()
    now[0] = 10
    meter.read(100, _collected(10_000, 10_000))
    assert 100 <= seen[-1].done <= 110
    assert seen[-1].left is not None
    assert 80 <= seen[-1].left <= 90
    meter.resolving(0, 10_000)
    assert 100 <= seen[-1].done <= 110


def test_the_writing_says_its_rate_and_what_is_left():
    now, seen, meter = _metered()
    meter.read(100, _collected(100, 100))
    meter.resolving(0, 100)
    meter.stage()
    now[0] = 10
    meter.resolved(100, Findings())
    now[0] = 14
    meter.wrote(1, 2)
    assert (seen[-1].done, seen[-1].rate, seen[-1].left) == (975, 12.5, 4)
