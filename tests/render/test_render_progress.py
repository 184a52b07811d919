"""The time that is left, as a progress bar tells it."""

from __future__ import annotations

import pytest

from govtool.render.progress import rated_label, time_left


@pytest.mark.parametrize(
    ("done", "total", "passed", "text"),
    [
        (1, 2, 60, "~0:01:00 left"),
        (1, 4, 3600, "~3:00:00 left"),
        (4, 4, 5, "~0:00:00 left"),
        (1, 100, 5, ""),  # too little is done to say
        (0, 100, 5, ""),
        (0, 0, 5, ""),
        (5, 4, 5, ""),
    ],
)
def test_time_left(done: int, total: int, passed: float, text: str) -> None:
    assert time_left(done, total, passed) == text


def test_it_grows_while_nothing_moves() -> None:
    assert time_left(1, 2, 10) == "~0:00:10 left"
    assert time_left(1, 2, 20) == "~0:00:20 left"


@pytest.mark.parametrize(
    ("done", "total", "passed", "text"),
    [
        (120_000, 900_000, 2.5, "building, 48,000 definitions/s"),
        (500, 1000, 2.5, "building"),  # shares of a thousand are no definitions
        (0, 900_000, 2.5, "building"),
        (120_000, 900_000, 0.5, "building"),  # too early to say
    ],
)
def test_rate(done: int, total: int, passed: float, text: str) -> None:
    assert rated_label("building", "definitions", done, total, passed) == text
