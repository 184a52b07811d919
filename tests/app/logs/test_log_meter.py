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
        meter.within(int(now[0] * 100), 1000)
    assert [status.done for status in seen] == [400, 510, 620, 730, 840]
    assert [round(status.rate) for status in seen[1:]] == [100, 100, 100, 100]
