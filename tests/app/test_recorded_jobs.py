"""What is recorded about a job: the state of its repository, how much of its rows, the names of its inputs."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from govtool.app.records.dataset_names import is_called
from govtool.app.runs.attach import attach
from govtool.app.runs.job import repository_state
from govtool.spark.live import hook, process


@pytest.mark.parametrize("status", [" M job.py\n", None])
def test_a_repository_is_clean_only_if_git_says_so(monkeypatch, tmp_path, status):
    def git(command, **_):
        if "rev-parse" in command:
            return subprocess.CompletedProcess(command, 0, "ab12\n")
        if status is None:
            raise subprocess.TimeoutExpired(command, 20)
        return subprocess.CompletedProcess(command, 0, status)

    monkeypatch.setattr(subprocess, "run", git)
    assert repository_state(tmp_path) == "ab12+"


@pytest.mark.parametrize(("records", "eager"), [(None, True), (True, False)])
def test_positions_that_a_job_is_run_with_are_kept_unless_it_says_otherwise(monkeypatch, tmp_path, records, eager):
    """``govtool run --records eager`` started the recorder; the script calls ``attach``."""
    monkeypatch.chdir(tmp_path)
    started = SimpleNamespace(replay=SimpleNamespace(eager=True), spool=SimpleNamespace(folder=str(tmp_path)))
    monkeypatch.setattr(process, "recorder", lambda folder: started)
    monkeypatch.setattr(hook, "install", lambda folder: None)
    attach(object(), spool=str(tmp_path), records=records)
    assert started.replay.eager is eager


@pytest.mark.parametrize("text", ["a", "b", "data/a", "file:///data/b"])
def test_paths_that_are_read_as_one_are_called_by_each_of_them(text):
    assert is_called("file:///data/a,file:///data/b", text)
    assert not is_called("file:///data/a,file:///data/b", "ta/a")
