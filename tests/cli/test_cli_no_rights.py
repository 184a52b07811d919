"""Folders without rights: an error of reading or of writing, never of the store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def norights(project, monkeypatch):
    """A folder that nobody may look into: also for root, as who CI runs the tests."""
    folder = project / "norights"
    folder.mkdir()
    (folder / "a.sql").write_text("create view v as select a from t")

    def denied(function):
        def call(path, *args, **kwargs):
            text = os.path.abspath(path) if isinstance(path, (str, os.PathLike)) else ""  # noqa: PTH100 - no link is looked at
            inside = text.startswith(f"{folder}/")
            if inside or (text == str(folder) and function.__name__ in ("scandir", "open", "access")):
                if function.__name__ == "access":
                    return False
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *args, **kwargs)

        return call

    for name in ("stat", "lstat", "open", "scandir", "access"):
        monkeypatch.setattr(os, name, denied(getattr(os, name)))
    return folder


@pytest.mark.parametrize("command", [("ingest", "sql"), ("lineage",)])
@pytest.mark.parametrize(("path", "named"), [("norights", "the folder norights"), ("norights/a.sql", "--> a.sql")])
def test_reading_is_insufficient_evidence(store, norights, command, path, named):
    done = store(*command, path)
    assert done.code == 3
    assert "error[unreadable]" in done.err
    assert named in done.err
    assert "store." not in done.err


@pytest.mark.parametrize("path", ["norights", "norights/a.jsonl"])
def test_events_without_rights(store, norights, path):
    done = store("ingest", "openlineage", path)
    assert done.code == 2
    assert done.err.startswith(f"error[usage.unreadable] permission denied\n  in            {path}")


@pytest.mark.parametrize("place", ["norights/x.csv", "gone/x.csv", f"{'x' * 300}.csv"])
def test_what_cannot_be_written_has_one_code(govtool, project, norights, place):
    Path("q.sql").write_text("select a from t")
    done = govtool("lineage", "q.sql", "-o", place)
    assert done.code == 2
    assert "error[usage.output] cannot write it: " in done.err
