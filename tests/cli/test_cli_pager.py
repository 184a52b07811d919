"""The pager: which one, when, and what becomes of an answer that it cannot show."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from govtool.cli.shared.pager import is_long, pager_command, show_paged
from govtool.cli.shared.ui import Ui
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import Prose

TABLE = Table(columns=(TableColumn("n"),), rows=[(str(number),) for number in range(40)])


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"GOVTOOL_PAGER": "more", "PAGER": "most"}, "more"),
        ({"PAGER": "most -s"}, "most -s"),
        ({"GOVTOOL_PAGER": "", "PAGER": "most"}, None),
        ({"GOVTOOL_PAGER": "cat"}, None),
        ({"PAGER": "most", "TERM": "dumb"}, None),
    ],
)
def test_the_pager_is_what_the_environment_says(environ, command):
    assert pager_command(environ) == command


@pytest.fixture
def terminal():
    """A terminal of 24 lines, as a stream to write to."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream
    os.close(master)


def test_only_what_is_longer_than_a_terminal_is_long(terminal):
    assert is_long(24, terminal)
    assert not is_long(23, terminal)
    assert not is_long(10_000, io.StringIO())


def test_a_terminal_without_a_height_has_no_pages():
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        assert not is_long(10_000, stream)
    os.close(master)


def test_the_pager_gets_every_line(terminal, monkeypatch, tmp_path):
    seen = tmp_path / "seen"
    monkeypatch.setenv("GOVTOOL_PAGER", f"cat > {seen}")
    monkeypatch.setenv("TERM", "xterm")
    Ui(out=terminal, color="never").table(TABLE)
    assert seen.read_text().split() == ["n", *(str(number) for number in range(40))]


def test_the_pager_gets_prose_folded(terminal, monkeypatch, tmp_path):
    seen = tmp_path / "seen"
    monkeypatch.setenv("GOVTOOL_PAGER", f"cat > {seen}")
    monkeypatch.setenv("TERM", "xterm")
    ui = Ui(out=terminal, color="never")
    ui.show(Prose(["one line"]))
    assert not seen.exists()
    ui.show(Prose([f"  crm.users.email ──copy──▶ stg.users.email {'is a finding ' * 4}"] * 20))
    shown = seen.read_text().splitlines()
    assert len(shown) == 40
    assert all(len(line) <= 80 for line in shown)
    assert shown[1].startswith("    ")


def test_a_pager_that_is_left_early_is_no_error():
    assert show_paged("line\n" * 100_000, "head -1 > /dev/null")


def test_a_pager_that_is_not_there_is_noticed():
    assert not show_paged("line\n", "no-such-pager-here 2> /dev/null")
