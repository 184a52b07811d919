"""Measurements: refused on a busy machine and of code that nobody can check out, unless allowed, and noted then."""

from __future__ import annotations

import pytest

from bench import page


@pytest.fixture
def conditions(monkeypatch):
    """Set the files that differ from the commit, and the load."""

    def make(changed: list[str], load: float) -> None:
        monkeypatch.setattr(page, "changed_files", lambda: changed)
        monkeypatch.setattr(page.os, "getloadavg", lambda: (load, load, load))

    return make


@pytest.mark.parametrize(
    ("changed", "load", "reason"),
    [(["govtool/x.py"], 0.5, "not committed in govtool/x.py"), ([], 2.1, "a load of 2.1")],
)
def test_a_measurement_is_refused(conditions, changed, load, reason):
    conditions(changed, load)
    with pytest.raises(SystemExit, match=reason):
        page.check_conditions(allow_dirty=False, allow_load=False)
    page.check_conditions(allow_dirty=True, allow_load=True)
    assert reason in page.machine()


def test_a_quiet_machine_and_a_commit_are_measured(conditions):
    conditions([], 1.9)
    page.check_conditions(allow_dirty=False, allow_load=False)
    assert "not committed" not in page.machine()
    assert "a load of" not in page.machine()
