"""What Spark's launcher prints while a trace starts it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from govtool.app.records.engines import _without_stderr

CHATTER = [sys.executable, "-c", "import sys; sys.stderr.write('WARNING: Using incubator modules\\nsays why\\n')"]


def test_a_start_prints_nothing(capfd):
    printed = []
    with _without_stderr(printed):
        subprocess.run(CHATTER, check=True)
    subprocess.run(CHATTER, check=True)
    assert capfd.readouterr().err.count("incubator") == 1
    assert printed == []


def test_a_start_that_fails_says_why(capfd):
    printed = []
    failing = [*CHATTER[:2], f"{CHATTER[2]}; sys.exit(1)"]
    with pytest.raises(subprocess.CalledProcessError), _without_stderr(printed):
        subprocess.run(failing, check=True)
    assert printed == ["WARNING: Using incubator modules", "says why"]
    assert capfd.readouterr().err == ""
