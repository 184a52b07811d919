"""What a person at a terminal of 80 columns sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from govtool.render.layout.text import width

CODE = "import sys; from govtool.cli.main import main; sys.exit(main(sys.argv[1:]))"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
SQL = (
    "create view mart_marketing_department.customer_audience_by_month as\n"
    "select lower(u.electronic_mail_address) as normalised_electronic_mail_address\n"
    "from staging_area_for_everything.users_with_history u where u.deleted_at is null;\n"
    "select " + "a_rather_long_column_name, " * 20 + "((( from nowhere;\n"
)


def on_a_terminal(*arguments: str, columns: int = 80, **environment: str) -> str:
    """Everything that a run writes to a terminal, stdout and stderr together; no bar, however slow the machine."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments, "--no-progress"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=variables | {"TERM": "xterm-256color"} | environment,
    ) as process:
        os.close(slave)
        written = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            written += piece
        process.wait()
    os.close(master)
    return written.decode().replace("\r\n", "\n")


@pytest.fixture
def file(project):
    (project / "a.sql").write_text(SQL)
    return "a.sql"


@pytest.mark.parametrize("columns", [80, 60, 200])
def test_lines_fit_the_terminal_and_names_are_not_cut(file, columns):
    shown = ANSI.sub("", on_a_terminal("lineage", file, columns=columns))
    assert all(width(line) <= columns for line in shown.splitlines())
    together = re.sub(r"\s", "", shown)
    assert "^" in together
    for part in ("mart_marketing_", "month.", "everything.", "deleted_at"):
        assert part in together


def test_colours_and_their_absence(file):
    assert ANSI.search(on_a_terminal("lineage", file))
    assert not ANSI.search(on_a_terminal("lineage", file, NO_COLOR="1"))
    assert not ANSI.search(on_a_terminal("lineage", file, "--color", "never"))
    assert not ANSI.search(on_a_terminal("lineage", file, TERM="dumb"))


def test_a_pipe_gets_no_colours_and_unlimited_width(file, govtool):
    done = govtool("lineage", file)
    assert "\x1b" not in done.out + done.err
    assert "mart_marketing_department.customer_audience_by_month.normalised_electronic_mail_address" in done.out
    assert ANSI.search(govtool("lineage", file, "--color", "always").out)


def test_json_is_never_coloured_or_folded(file):
    shown = on_a_terminal("lineage", file, "-f", "json")
    assert not ANSI.search(shown.rpartition("}\n")[0])


POLICY = """version: 1
name: privacy
classes: {personal: {description: "Any data about an identified or identifiable person"}}
classify: [{class: personal, columns: ["**.electronic_mail_address"]}]
rules:
  - id: PII1
    title: No contact data of anybody in the marts of the departments that send letters
    description: A rather long description of why it must not be there, which no terminal has the room to show in a line
    deny: {flow: {class: personal, to: {datasets: ["mart_marketing_department.**"]}}}
tests:
  - name: a test with a name that is longer than what a narrow terminal shows in one line of it
    given: {sql: "create table mart_marketing_department.a as select electronic_mail_address from crm.everybody"}
    expect: [{rule: PII1, column: mart_marketing_department.a.electronic_mail_address}]
"""


@pytest.mark.parametrize("command", ["check", "policy explain", "policy test"])
def test_prose_is_folded_on_a_terminal_and_whole_in_a_pipe(file, project, govtool, command):
    (project / "policies").mkdir()
    (project / "policies" / "p.yml").write_text(POLICY)
    govtool("init")
    govtool("ingest", "sql", file, "--dialect", "postgres")
    whole = govtool(*command.split()).out
    assert max(map(width, whole.splitlines())) > 80
    for columns in (80, 60):
        for more in ({}, {"COLUMNS": str(columns)}):
            shown = ANSI.sub("", on_a_terminal(*command.split(), columns=columns if not more else 200, **more))
            assert all(width(line) <= columns for line in shown.splitlines())
            assert re.sub(r"\s", "", shown).startswith(re.sub(r"\s", "", whole))
