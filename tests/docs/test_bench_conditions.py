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


def test_the_page_names_the_code_of_its_sections(conditions):
    conditions([], 0.5)
    sections = {"one": page.machine(), "two": page.machine()}
    assert "All sections are of one commit." in page.page_head(sections)
    dirty = "*AMD, 2 cores; load 0.8; govtool at abc123-dirty.*"
    busy = "*AMD, 2 cores; load 21.5; govtool at abc123; changes that are not committed in x.py.*"
    head = page.page_head({**sections, "three": dirty, "four": busy, "five": "no note"})
    assert "not of one commit" in head
    assert "* of abc123: three, four" in head
    assert "nobody can check it out: three, four" in head
    assert "load over 2; only ratios say anything: four" in head
    assert "* of an unknown commit: five" in head


def test_the_head_is_that_of_the_sections():
    assert page.PAGE.read_text().startswith(page.page_head(page.page_sections()))
