"""Reading scripts: what is found, how it is decoded, and that nothing stops the rest."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from govtool.capture.sql.files import STDIN, Script, read_scripts
from govtool.errors import UsageError
from govtool.model.diagnostic import Diagnostic


def write(root: Path, name: str, data: bytes = b"select 1") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(path: Path) -> Script | Diagnostic:
    (item,) = read_scripts([path])
    return item


def test_folders_are_read_in_order_without_packages_and_hidden_files(tmp_path: Path):
    for name in (
        "b.sql",
        "a/z.SQL",
        "a/b.sql.j2",
        "a/c.hql",
        "x.txt",
        ".git/q.sql",
        "node_modules/q.sql",
        ".h.sql",
        "d.ddl",
    ):
        write(tmp_path, name)
    assert [s.file for s in read_scripts([tmp_path]) if isinstance(s, Script)] == [
        "a/b.sql.j2",
        "a/c.hql",
        "a/z.SQL",
        "b.sql",
        "d.ddl",
    ]


def test_files_named_one_by_one_need_no_ending(tmp_path: Path):
    script = read(write(tmp_path, "query.txt"))
    assert script == Script("query.txt", "select 1")


def test_names_are_relative_to_the_root(tmp_path: Path):
    path = write(tmp_path, "a/b/c.sql")
    (script,) = read_scripts([path], root=tmp_path)
    assert isinstance(script, Script)
    assert script.file == "a/b/c.sql"
    (script,) = read_scripts([path], root=tmp_path / "other")
    assert isinstance(script, Script)
    assert script.file == "c.sql", "absolute paths are never stored"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("sélect".encode(), "sélect"),
        (b"\xef\xbb\xbfselect", "select"),
        ("sélect".encode("utf-16"), "sélect"),
        ("select 1".encode("utf-16-le"), "select 1"),
        ("select 1".encode("utf-16-be"), "select 1"),
        (b"", ""),
    ],
)
def test_encodings(tmp_path: Path, data: bytes, text: str):
    script = read(write(tmp_path, "a.sql", data))
    assert isinstance(script, Script)
    assert script.text == text


def test_latin_1_is_read_with_a_note(tmp_path: Path):
    script = read(write(tmp_path, "a.sql", b"select 'caf\xe9'"))
    assert isinstance(script, Script)
    assert script.text == "select 'café'"
    assert script.note is not None
    assert script.note.severity == "info"


@pytest.mark.parametrize(
    "data", [b"\x7fELF\0\0\0\1\2", b"PK\3\4" + bytes(range(256)) * 4, b"select\0 1", b"\xff\xfe\0"]
)
def test_binary_files_are_reported(tmp_path: Path, data: bytes):
    item = read(write(tmp_path, "a.sql", data))
    assert isinstance(item, Diagnostic)
    assert (item.code, item.file) == ("not-sql", "a.sql")


def test_a_file_that_vanishes_does_not_stop_the_rest(tmp_path: Path):
    for name in ("a.sql", "b.sql", "c.sql"):
        write(tmp_path, name)
    items = []
    for item in read_scripts([tmp_path]):
        items.append(item)
        (tmp_path / "b.sql").unlink(missing_ok=True)
    assert [type(item).__name__ for item in items] == ["Script", "Diagnostic", "Script"]
    assert isinstance(items[1], Diagnostic)
    assert items[1].code == "unreadable"


def test_loops_and_dangling_links(tmp_path: Path):
    write(tmp_path, "a/b.sql")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "self.sql").symlink_to(tmp_path / "self.sql")
    (tmp_path / "gone.sql").symlink_to(tmp_path / "nothing")
    items = list(read_scripts([tmp_path]))
    assert sorted((type(i).__name__, i.file) for i in items) == [
        ("Diagnostic", "gone.sql"),
        ("Diagnostic", "self.sql"),
        ("Script", "a/b.sql"),
    ]


def test_a_link_to_a_file_that_is_read_anyway_is_left_out(tmp_path: Path):
    real = write(tmp_path, "b/real.sql")
    (tmp_path / "a.sql").symlink_to(real)
    outside = write(tmp_path.parent, f"{tmp_path.name}-outside.sql")
    for name in ("c.sql", "d.sql"):
        (tmp_path / name).symlink_to(outside)
    found = read_scripts([tmp_path], follow_links=True)
    assert [item.file for item in found if isinstance(item, Script)] == ["b/real.sql", "c.sql"]


def test_huge_files_are_not_read(tmp_path: Path):
    path = write(tmp_path, "dump.sql")
    os.truncate(path, 200 * 2**20)
    item = read(path)
    assert isinstance(item, Diagnostic)
    assert "200 MiB" in item.message


def test_a_fifo_or_device_is_not_waited_for(tmp_path: Path):
    item = read(Path("/dev/null"))
    assert isinstance(item, Diagnostic)


@pytest.mark.parametrize(("make", "code"), [(True, "usage.no-sql"), (False, "usage.no-such-path")])
def test_nothing_to_read_is_a_usage_error(tmp_path: Path, make: bool, code: str):
    folder = tmp_path / "f"
    if make:
        write(folder, "readme.md")
    with pytest.raises(UsageError) as caught:
        list(read_scripts([folder]))
    assert caught.value.code == code
    assert caught.value.hint


def test_standard_input():
    assert list(read_scripts(["-"], stdin=io.BytesIO("sélect".encode()))) == [Script(STDIN, "sélect")]
    assert list(read_scripts(["-"], stdin=io.StringIO("select"))) == [Script(STDIN, "select")]


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path):
    write(tmp_path, "a.sql")
    os.mkfifo(tmp_path / "b.sql")
    _, pipe = read_scripts([tmp_path])
    assert isinstance(pipe, Diagnostic)
    assert pipe.message == "cannot be read: not a regular file"


def test_a_pipe_that_is_named_is_read_to_its_end(tmp_path: Path):
    os.mkfifo(tmp_path / "a.sql")
    text = "select 1; " * 100_000
    writer = threading.Thread(target=(tmp_path / "a.sql").write_text, args=(text,))
    writer.start()
    assert read(tmp_path / "a.sql") == Script("a.sql", text)
    writer.join()


def test_a_file_that_grows_while_it_is_read_is_read_as_it_is_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path, "a.sql", b"select 1")
    shorter = path.stat()
    path.write_bytes(b"select 1, 2")
    monkeypatch.setattr(os, "stat", lambda *_, **__: shorter)
    assert read(path) == Script("a.sql", "select 1, 2")


def test_only_the_target_folder_of_dbt_is_left_out(tmp_path: Path):
    write(tmp_path, "target/a.sql")
    assert [item.file for item in read_scripts([tmp_path])] == ["target/a.sql"]
    write(tmp_path, "b.sql")
    write(tmp_path, "dbt_project.yml", b"")
    assert [item.file for item in read_scripts([tmp_path])] == ["b.sql"]
