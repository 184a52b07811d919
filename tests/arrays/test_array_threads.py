"""Work on arrays in threads: results in order, a bounded number of them ahead of the one that is used."""

from __future__ import annotations

import pytest

from govtool.arrays import threads
from govtool.arrays.threads import mapped_ahead


@pytest.fixture(params=[1, 3])
def cores(request, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: request.param)
    return request.param


def test_results_come_in_order_and_a_few_ahead(cores):
    begun = []

    def run(number):
        begun.append(number)
        return number * number

    found = mapped_ahead(run, iter(range(50)))
    assert begun == []
    for number, square in enumerate(found):
        assert square == number * number
        assert len(begun) <= number + 2 + cores
    assert sorted(begun) == list(range(50))
    assert list(mapped_ahead(run, [])) == []


def test_an_error_comes_in_the_place_of_its_result(cores):
    found = mapped_ahead(lambda number: 1 // (3 - number), range(9))
    assert [next(found) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)
