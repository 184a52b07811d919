"""What an ingest is called and what its file names are relative to."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from govtool.app.ingest.sql_options import SourceText, file_name, root_of
from govtool.app.project.sources import former_name, place_of
from govtool.model import Diagnostic
from govtool.store import Store


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / "etl" / "mart").mkdir(parents=True)
    (tmp_path / "etl" / "a.sql").write_text("select 1\nselect 2\n")
    (tmp_path / "etl" / "mart" / "b.sql").write_text("select 3")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "root", "place", "former"),
    [
        (["etl"], "etl", "etl", "etl"),
        (["etl/"], "etl", "etl", "etl"),
        (["etl/mart/.."], "etl", "etl", "etl"),
        (["etl/a.sql"], "etl", "etl/a.sql", "a.sql"),
        (["etl/a.sql", "etl/mart"], "etl", "etl/a.sql+etl/mart", "a.sql+mart"),
        (["etl/mart", "etl/mart/b.sql"], "etl/mart", "etl/mart+etl/mart/b.sql", "b.sql+mart"),
        (["-"], ".", "stdin", "stdin"),
    ],
)
def test_root_and_place_of_what_was_given(tree, paths, root, place, former):
    assert root_of(paths) == (tree / root if root != "." else Path.cwd())
    assert place_of(paths, Store.init(str(tree / ".govtool"))) == place
    assert former_name(paths) == former


def test_two_folders_without_a_common_parent_meet_at_the_root(tree):
    assert root_of(["etl/mart", "/"]) == Path("/")


def test_a_source_line_is_found_again(tree):
    text = SourceText(tree / "etl")
    assert text.line(Diagnostic("x", "error", "m", file="a.sql", line=2)) == "select 2"
    assert text.line(Diagnostic("x", "error", "m", file="a.sql", line=9)) is None
    assert text.line(Diagnostic("x", "error", "m", file="gone.sql", line=1)) is None
    assert text.line(Diagnostic("x", "error", "m")) is None


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda data: b"\x28\xb5\x2f\xfd\x04" + data])
def test_no_line_is_quoted_of_a_file_that_is_no_text(tree, pack):
    (tree / "etl" / "log.gz").write_bytes(pack(b"select 1;\n" * 100))
    text = SourceText(tree / "etl")
    assert text.line(Diagnostic("x", "error", "m", file="log.gz", line=1)) is None


def test_lines_of_old_encodings_and_form_feeds_are_quoted(tree):
    (tree / "etl" / "old.sql").write_bytes("select 'é'\n\fselect 2\t\x1b[0m\n".encode("latin-1"))
    text = SourceText(tree / "etl")
    assert text.line(Diagnostic("x", "error", "m", file="old.sql", line=1)) == "select '\ufffd'"


@pytest.mark.parametrize(
    ("path", "name"),
    [("etl/mart/b.sql", "mart/b.sql"), ("etl", "etl"), ("else/c.sql", "c.sql"), ("etl/\udcff.sql", "\\udcff.sql")],
)
def test_files_are_named_from_the_root_and_by_what_can_be_written(tree, path, name):
    assert file_name(Path(path), tree / "etl") == name


def test_a_line_that_is_too_long_is_not_shown(tmp_path, monkeypatch):
    """A log of one line of a gigabyte costs neither its memory nor its redaction."""
    (tmp_path / "a.sql").write_text("select 1\n" + "x" * 200_000 + "\nselect 3\n")
    text = SourceText(tmp_path)
    shown = [text.line(Diagnostic("a", "error", "m", "a.sql", line)) for line in (1, 2, 3, 4)]
    assert shown == ["select 1", None, "select 3", None]
    monkeypatch.setattr("govtool.app.ingest.sql_options._MOST_TEXT", 9)
    text = SourceText(tmp_path)
    assert [text.line(Diagnostic("a", "error", "m", "a.sql", line)) for line in (1, 3)] == ["select 1", None]
