from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _settings_of_its_own(tmp_path, monkeypatch):
    """A page is read in its own folder with its own cache, away from the settings of whoever runs the tests."""
    for name in ("GOVTOOL_STORE", "NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
