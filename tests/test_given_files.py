"""Files that are read whole: none without an end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from govtool import given_files
from govtool.given_files import open_given, read_bounded, read_given, read_given_text


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb" + b"x" * 3_000_000)
    assert read_given(file) == file.read_bytes()
    assert read_given_text(file, "utf-8-sig")[:4] == "a\nbx"
    with pytest.raises(OSError, match="larger than 3,000,000 bytes"):
        read_given(file, 3_000_000)
    with pytest.raises(IsADirectoryError):
        read_given(tmp_path)


def test_a_device_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="it is no file"):
        read_given(tmp_path / "a")


def test_a_pipe_is_bounded(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    writer = threading.Thread(target=lambda: (tmp_path / "a").write_bytes(b"abc"))
    writer.start()
    assert read_given(tmp_path / "a") == b"abc"
    writer.join()
    with Path("/dev/zero").open("rb") as endless, pytest.raises(OSError, match="larger"):
        read_bounded(endless, "zero", 5_000_000)


def test_a_pipe_to_which_nobody_writes_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_files, "WAIT", 0.01)
    os.mkfifo(tmp_path / "a")
    with pytest.raises(OSError, match="nobody writes"):
        read_given(tmp_path / "a")
    writer = os.open(tmp_path / "a", os.O_RDWR)
    with open_given(tmp_path / "a") as stream:  # open, and nothing is written yet
        os.write(writer, b"abc")
        os.close(writer)
        assert stream.read() == b"abc"
