"""Errors: code, nearest names, hint; and one exit code for one meaning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from govtool.errors import AmbiguousNameError, GovtoolError, StoreError, UnknownNameError
from govtool.render.errors import error_lines


def text_of(error: GovtoolError) -> str:
    return "\n".join("".join(span.text for span in line) for line in error_lines(error))


def test_an_error_shows_all_its_parts():
    error = UnknownNameError(
        "no column crm.user.email",
        code="usage.unknown-column",
        nearest=("crm.users.email", "crm.users.mail"),
        hint="govtool explain crm.users",
    )
    assert text_of(error) == (
        "error[usage.unknown-column] no column crm.user.email\n"
        "  did you mean  crm.users.email\n"
        "                crm.users.mail\n"
        "  hint          govtool explain crm.users"
    )


def test_an_ambiguous_name_lists_its_candidates():
    assert "candidates    a.id" in text_of(AmbiguousNameError("2 columns answer to id", nearest=("a.id", "b.id")))


def test_terminal_escapes_in_an_error_are_made_visible():
    error = StoreError("cannot read \x1b[2Jevil", location="x\u202ey")
    assert "\x1b" not in text_of(error)
    assert r"\x1b[2Jevil" in text_of(error)
    assert r"\u202e" in text_of(error)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["impct"], 2, "usage.unknown-command] no command impct"),
        (["policy", "validate"], 2, "hint          one of lint, test, explain, schema"),
        (["init", "--stor", "x"], 2, "usage.arguments] no such option: --stor"),
        (["ingest", "sql"], 2, "usage.arguments] missing argument"),
        (["erase", "plan", "--where", "id = 1"], 2, "--subject TABLE.COLUMN=VALUE"),
        (["lineage"], 2, "nothing to read"),
        (["lineage", "nowhere.sql"], 2, "usage.no-such-path"),
        (["lineage", "-", "--dialect", "postgrse"], 2, "did you mean  postgres"),
        (["lineage", "-", "--format", "jsno"], 2, "did you mean  json"),
        (["lineage", "-", "--semantics", "lax"], 2, "usage.unknown-semantics"),
        (["lineage", "-", "--batch"], 2, "--batch reads stdin"),
        (["lineage", "--batch", "--schema", "x.sql"], 2, "--batch goes with"),
        (["lineage", "--batch", "x.sql"], 2, "takes no PATH"),
        (["log"], 4, "store.missing"),
        (["ingest", "sql", "."], 4, "store.missing"),
        (["impact", "a.b"], 4, "store.missing"),
    ],
)
def test_exit_codes(govtool, arguments, code, says):
    done = govtool(*arguments)
    assert done.code == code
    assert says in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


def test_a_folder_with_a_store_in_it_is_no_store_but_its_store_is_named(govtool, project):
    assert govtool("init", "--no-sources").code == 0
    done = govtool("log", "--store", str(project))
    assert done.code == 4
    assert f"hint          its store is {project / '.govtool'}" in done.err


def test_debug_shows_the_traceback(govtool):
    assert "Traceback" in govtool("log", "--debug").err


def test_a_bad_configuration_names_the_file_and_the_key(govtool, project):
    (project / "govtool.toml").write_text("[sql]\ndialekt = 'postgres'\n")
    done = govtool("config", "show")
    assert done.code == 2
    assert "unknown key sql.dialekt" in done.err
    assert "did you mean  sql.dialect" in done.err
    assert "govtool.toml" in done.err


def test_no_command_shows_the_help(govtool):
    done = govtool()
    assert done.code == 2
    assert "impact" in done.out


def test_a_reader_that_leaves_early_is_no_error(project):
    """``govtool … | head -1``: no traceback, no complaint."""
    code = "import sys; from govtool.cli.main import main; sys.exit(main(sys.argv[1:]))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", code, "config", "show"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


RUN = "import sys; from govtool.cli.main import main; sys.exit(main(sys.argv[1:]))"


def shell(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as ``"$@"`` in a shell script."""
    command = ["sh", "-c", script, "sh", sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_reader_that_leaves_while_help_is_printed_is_no_error(project):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", RUN, "--help"], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_full_disk_behind_the_output(project):
    done = shell('"$@" > /dev/full', "config", "show")
    assert done.returncode == 4
    assert done.stderr == "error[output.io] the output cannot be written: no space left on device\n"
    assert shell('"$@" 2> /dev/full', "lineage", "nowhere.sql").returncode == 2
    done = shell('"$@"', "config", "show", "-o", "/dev/full")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        4,
        "error[output.io] cannot write it: no space left on device",
    )
    done = shell('"$@"', "config", "show", "-o", "nowhere/x.txt")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error[usage.output] cannot write it: no such file or directory",
    )


@pytest.mark.parametrize(("script", "code"), [('"$@" >&-', 0), ('"$@" 2>&-', 0), ('"$@" <&-', 0)])
def test_closed_streams_hold_nothing(project, script, code):
    (project / "a.sql").write_text("select a from t")
    for arguments in (["lineage", "a.sql"], ["lineage", "-"], ["lineage", "--batch"]):
        done = shell(script + " < /dev/null" * ("<&-" not in script), *arguments)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert "internal" not in done.stderr
