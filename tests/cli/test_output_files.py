"""What `-o` writes to: files of rows are their owner's alone, what is open already is written to as it is."""

from __future__ import annotations

import os
from pathlib import Path

from govtool.cli.shared.ui import Ui


def test_a_private_file_that_there_was_is_closed(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text("old")
    file.chmod(0o644)
    trap = tmp_path / f".rows.json.{os.getpid()}.tmp"
    trap.touch(0o666)
    Ui().show(["new"], file, private=True)
    assert (file.read_text(), file.stat().st_mode & 0o777, trap.exists()) == ("new\n", 0o600, False)


def test_a_pipe_is_written_to_by_the_name_of_its_descriptor():
    reading, writing = os.pipe()
    try:
        Ui().show(["row"], Path(f"/dev/fd/{writing}"), private=True)
    finally:
        os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "row\n"
