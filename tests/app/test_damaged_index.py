"""A damaged index in the cache: found out and built again, or at least never taken for a bug."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.versions import kept_files
from govtool.arrays import layout as arrays
from govtool.cli.main import main
from govtool.graph import layout

SQL = """
CREATE VIEW stg.users AS SELECT id, lower(email) AS email, address.zip AS zip FROM crm.users WHERE deleted_at IS NULL;
CREATE TABLE mart.audience AS SELECT u.email, count(*) AS orders FROM stg.users u JOIN shop.orders o ON o.user_id = u.id
GROUP BY u.email;
CREATE VIEW mart.all_of_it AS SELECT * FROM mart.audience UNION ALL SELECT nick, 1 FROM crm.nicks;
"""
QUESTIONS = (
    ["impact", "crm.users.email", "--format", "json"],
    ["impact", "mart.all_of_it", "--upstream", "--format", "csv"],
    ["explain", "stg.users.email", "--format", "json"],
    ["path", "crm.users.email", "mart.all_of_it.email", "--format", "json"],
)


class Warehouse:
    """A store with its index in the cache, and the right answers."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store = str(folder / "store")
        self.capsys = capsys
        (folder / "w.sql").write_text(SQL)
        assert main(["init", "--store", self.store]) == 0
        assert main(["ingest", "sql", str(folder / "w.sql"), "--dialect", "postgres", "--store", self.store]) == 0
        capsys.readouterr()
        self.right = [self.ask(question) for question in QUESTIONS]
        assert all(code == 0 for code, _, _ in self.right)
        (self.file,) = (folder / "cache").rglob(layout.FILE)
        self.good = self.file.read_bytes()
        self.made = kept_files._noted(self.file)[0]

    def ask(self, question: list[str]) -> tuple[int, str, str]:
        """Exit code, answer and remarks."""
        code = main([*question, "--store", self.store])
        stated = self.capsys.readouterr()
        return code, stated.out, stated.err

    def damage(self, data: bytes, *, unnoticed: bool) -> None:
        """Put damaged bytes into the cache; ``unnoticed``: as a disk does it, no time of the file says so."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_bytes(data)
        if unnoticed:
            kept_files._note(self.file, self.made)


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Warehouse:
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Warehouse(tmp_path, capsys)


def flipped(data: bytes, place: float, bit: int) -> bytes:
    changed = bytearray(data)
    changed[int(place * (len(data) - 1))] ^= 1 << bit
    return bytes(changed)


FLIPS = st.tuples(st.floats(0, 1), st.integers(0, 7))


@pytest.mark.parametrize("small", [True, False])
def test_any_flipped_bit_that_was_written_is_found(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    monkeypatch.setattr(kept_files, "ALWAYS_VERIFIED", 1 << 30 if small else 0)

    @settings(max_examples=examples(60), deadline=None, database=None)
    @given(FLIPS, st.sampled_from(range(len(QUESTIONS))))
    def check(flip: tuple[float, int], number: int) -> None:
        warehouse.damage(flipped(warehouse.good, *flip), unnoticed=small)
        assert warehouse.ask(QUESTIONS[number])[:2] == warehouse.right[number][:2]

    check()


def test_a_rotten_bit_of_a_large_index_is_never_a_bug(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """No write, no noticing: what is wrong but possible is answered; what is impossible is found out."""
    monkeypatch.setattr(kept_files, "ALWAYS_VERIFIED", 0)

    @settings(max_examples=examples(150), deadline=None, database=None)
    @given(FLIPS, st.sampled_from(range(len(QUESTIONS))))
    def check(flip: tuple[float, int], number: int) -> None:
        warehouse.damage(flipped(warehouse.good, *flip), unnoticed=True)
        code, _, remarks = warehouse.ask(QUESTIONS[number])
        assert code == 0, remarks

    check()


def test_the_user_is_told(warehouse: Warehouse) -> None:
    warehouse.damage(warehouse.good[:16] + b"????" + warehouse.good[20:], unnoticed=False)
    code, answer, remarks = warehouse.ask(QUESTIONS[0])
    assert (code, answer) == warehouse.right[0][:2]
    assert "warning[store.corrupt-index]" in remarks
    assert warehouse.ask(QUESTIONS[0])[2] == "", "once"


def test_a_large_index_is_compared_once_and_after_a_week_again(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "ALWAYS_VERIFIED", 0)
    compared: list[int] = []
    verify = arrays.verify
    monkeypatch.setattr(arrays, "verify", lambda *of: (compared.append(1), verify(*of)))
    warehouse.ask(QUESTIONS[0])
    assert compared == []
    noted = warehouse.file.parent / kept_files.VERIFIED
    os.utime(noted, (0, 0))
    warehouse.ask(QUESTIONS[0])
    warehouse.ask(QUESTIONS[0])
    assert compared == [1]


def test_a_copied_cache_is_compared(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kept_files, "ALWAYS_VERIFIED", 0)
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "copy"))
    (copied,) = (tmp_path / "copy").rglob(layout.FILE)
    before = (copied.parent / kept_files.VERIFIED).read_text()
    assert warehouse.ask(QUESTIONS[0])[:2] == warehouse.right[0][:2]
    assert (copied.parent / kept_files.VERIFIED).read_text() != before


def test_a_bug_stays_a_bug(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sound index an unexpected error is reported, and the command is not run twice."""
    from govtool.query.changes import impact

    runs: list[int] = []

    def broken(*_: object, **__: object) -> None:
        runs.append(1)
        raise IndexError("a bug")

    monkeypatch.setattr(impact, "impact", broken)
    assert warehouse.ask(QUESTIONS[0])[0] == 70
    assert runs == [1]
