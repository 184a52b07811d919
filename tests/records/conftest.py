from __future__ import annotations

import pytest


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """The recorded write of a report over views and users, in the store of the working directory."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    from recorded import shop as made

    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return made(folder)
