from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import govtool as package
from govtool.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a run of the command line gave."""

    code: int
    out: str
    err: str


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty working directory with its own cache, away from the settings of whoever runs the tests."""
    for name in ("GOVTOOL_STORE", "NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))  # for tests that start a process
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def govtool(project, capsys, monkeypatch):
    """Run the command line in this process: ``govtool("lineage", "-", stdin=b"select 1")``."""

    def run(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def store(govtool):
    """The command line in a project with an empty store."""
    assert govtool("init").code == 0
    return govtool


@pytest.fixture
def ingested(store, project):
    """Write SQL into ``etl/all.sql`` and ingest it: ``ingested("create table …")``; returns the command line."""

    def ingest(sql: str):
        (project / "etl").mkdir()
        (project / "etl" / "all.sql").write_text(sql)
        assert store("ingest", "sql", "etl", "--dialect", "postgres").code == 0
        return store

    return ingest
