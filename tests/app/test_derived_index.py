"""The index of a commit is derived from the columns of an earlier one, and equals one that is built of all fragments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import govtool
from govtool.app.coverage.sources import read_coverage
from govtool.app.coverage.total import total_coverage
from govtool.app.questions.diff import diff_commits
from govtool.app.versions.index import built_index, open_index
from govtool.store import Commit, FragmentRef, Reader, Store


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store and a cache of its own."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Store.init(str(tmp_path / ".govtool"))
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[FragmentRef]:
    """The fragments that are read from a store, as they are read."""
    seen: list[FragmentRef] = []
    plain = Reader.read_many

    def noted(self: Reader, refs: Sequence[FragmentRef]) -> list[bytes]:
        seen.extend(refs)
        return plain(self, refs)

    monkeypatch.setattr(Reader, "read_many", noted)
    return seen


def ingest(project: Path, name: str, sql: str) -> Commit:
    """Ingest one folder, a source of its own, and return the head."""
    folder = project / name
    folder.mkdir(exist_ok=True)
    (folder / "q.sql").write_text(sql)
    govtool.ingest_sql(str(folder), dialect="postgres")
    head = opened(project).head()
    assert head is not None
    return head


def opened(project: Path) -> Store:
    return Store.open(str(project / ".govtool"))


def sources(project: Path, count: int) -> Commit:
    """Ingest some folders that all read one table."""
    for number in range(count):
        head = ingest(
            project, f"s{number}", f"create view v{number} as select id, x{number} from t; drop nonsense {number}"
        )
    return head


def test_only_fragments_of_what_is_new_are_read(project: Path, reads: list[FragmentRef]) -> None:
    old = sources(project, 4)
    open_index(opened(project), old)
    total_coverage(opened(project), old)
    new = ingest(project, "s2", "create view v2 as select id, y from t join u using (id)")
    reads.clear()
    index = open_index(opened(project), new)
    total = total_coverage(opened(project), new)
    assert {(ref.source, ref.table) for ref in reads} == {("sql:s2", "derivations"), ("sql:s2", "coverage")}
    assert bytes(memoryview(index.buffer)) == bytes(memoryview(built_index(opened(project), new).buffer))
    assert total == read_coverage(opened(project), new).total


def test_a_source_that_is_gone_is_gone(project: Path) -> None:
    open_index(opened(project), sources(project, 3))
    head = ingest(project, "s1", "select 1")
    index = open_index(opened(project), head)
    assert bytes(memoryview(index.buffer)) == bytes(memoryview(built_index(opened(project), head).buffer))
    assert index.find_dataset("v1") is None


@pytest.mark.parametrize("damage", ["columns", "fragments.json"])
def test_what_is_damaged_in_the_cache_is_read_anew(project: Path, damage: str) -> None:
    old = sources(project, 2)
    open_index(opened(project), old)
    total_coverage(opened(project), old)
    (file,) = (project / "cache").rglob(damage)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(bytes(data))
    new = ingest(project, "s9", "create view v9 as select id from v0")
    index = open_index(opened(project), new)
    assert bytes(memoryview(index.buffer)) == bytes(memoryview(built_index(opened(project), new).buffer))
    assert total_coverage(opened(project), new).statements == read_coverage(opened(project), new).total.statements


def test_the_columns_that_have_most_of_a_commit_are_taken(project: Path, reads: list[FragmentRef]) -> None:
    old = sources(project, 1)
    new = sources(project, 5)
    open_index(opened(project), new)
    open_index(opened(project), old)  # asked about later: the head's columns stay
    assert len(list((project / "cache").rglob("columns"))) == 2
    head = ingest(project, "s9", "create view v9 as select id from v0")
    reads.clear()
    open_index(opened(project), head)
    assert {ref.source for ref in reads} == {"sql:s9"}
    assert len(list((project / "cache").rglob("columns"))) == 2


def test_a_difference_is_found_without_reading_what_both_have(project: Path, reads: list[FragmentRef]) -> None:
    old = sources(project, 12)
    new = ingest(project, "s3", "create view v3 as select id from t")
    by_fragments = diff_commits(opened(project), old, new)
    open_index(opened(project), new)
    reads.clear()
    assert diff_commits(opened(project), old, new) == by_fragments
    assert {ref.source for ref in reads} == {"sql:s3"}
