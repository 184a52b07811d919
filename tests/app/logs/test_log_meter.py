"""Progress of an ingest from within a long step."""

from __future__ import annotations

from govtool.app.ingest.logs.meter import Meter
from govtool.app.ingest.logs.request import Status


def test_definitions_that_take_long_move_the_bar_every_other_second():
    now = [0.0]
    seen: list[Status] = []
    meter = Meter(seen.append, 100, clock=lambda: now[0])
    meter.resolving(1000, 0)
    for _ in range(8):
        now[0] += 1
        meter.within(int(now[0] * 100), 0)
    assert [status.done for status in seen] == [400, 510, 620, 730, 840]
    assert [round(status.rate) for status in seen[1:]] == [100, 100, 100, 100]


def test_queries_move_the_bar_before_the_first_batch_ends_and_say_what_is_left():
    now = [0.0]
    seen: list[Status] = []
    meter = Meter(seen.append, 100, clock=lambda: now[0])
    now[0] = 2.0  # of reading, which says nothing of what follows
    meter.resolving(0, 1000)
    meter.stage()
    for _ in range(2):
        now[0] += 5
        meter.within(int((now[0] - 2) * 20), int(now[0] - 2))
    last = seen[-1]
    assert (last.done, round(last.rate), last.failed) == (400 + 110, 20, 10)
    assert last.left is not None
    assert 40 <= last.left <= 46  # 40 of resolving, and the writing


def test_what_several_processes_have_done_is_counted_once():
    from govtool.app.ingest.logs.meter import _SELDOM
    from govtool.app.ingest.logs.parts import Findings

    now = [0.0]
    seen: list[Status] = []
    meter = Meter(seen.append, 100, clock=lambda: now[0])
    meter.resolving(0, 100)
    meter.stage()
    now[0] += _SELDOM
    meter.within(60, 0)
    meter.resolved(40, Findings())
    assert [status.done for status in seen] == [400, 730, 730]
    meter.resolved(60, Findings())
    assert seen[-1].done == 950
