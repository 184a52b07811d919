"""The index of a commit: cached, rebuilt when damaged, and without a cache if need be."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from govtool.app.versions.index import open_index
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.columnar import DERIVATIONS, encode
from govtool.query.changes.impact import impact
from govtool.store import Changes, Commit, Fragment, Store


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.init(str(tmp_path / "store"))


def commit(store: Store, *targets: str) -> Commit:
    rows = [
        Derivation(t, "view", "replace", Statement(t, "create_view", "", f"{t}.sql"), (OutputColumn("a"),),
                   edges=(Edge(ColumnRef("s", "x"), "a", EdgeKind.IDENTITY),))
        for t in targets
    ]  # fmt: skip
    change = Changes(retract=("src",), add=(Fragment("src", DERIVATIONS, encode(rows), len(rows)),))
    return store.commit(change, message="m", author="a", batch="-".join(targets), summary={}).commit


def targets(store: Store, at: Commit | None) -> list[str]:
    return [e.column for e in impact(open_index(store, at), "s.x").columns]


def test_each_commit_has_its_own_index(store: Store, cache: Path) -> None:
    first, second = commit(store, "v"), commit(store, "v", "w")
    assert targets(store, first) == ["v.a"]
    assert targets(store, second) == ["v.a", "w.a"]
    assert len(list(cache.rglob("graph.index"))) == 2


def test_the_second_opening_reads_no_fragment(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = commit(store, "v")
    open_index(store, at)
    monkeypatch.setattr(type(store), "fragments", None)
    assert targets(store, at) == ["v.a"]


def test_progress_ends_at_the_end(store: Store, cache: Path) -> None:
    seen: list[tuple[int, int]] = []
    open_index(store, commit(store, "v", "w"), lambda done, total: seen.append((done, total)))
    assert seen == sorted(set(seen))
    assert len(seen) >= 10
    assert seen[-1] == (1000, 1000)


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_a_damaged_index_is_built_again(store: Store, cache: Path, damage: bytes | None) -> None:
    at = commit(store, "v")
    open_index(store, at)
    (file,) = cache.rglob("graph.index")
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    assert targets(store, at) == ["v.a"]
    (file,) = cache.rglob("graph.index")
    assert file.stat().st_size > 100


def test_without_a_usable_cache_the_index_is_built_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "file" / "cache"))
    assert targets(store, commit(store, "v")) == ["v.a"]


def test_no_commit_is_the_empty_graph(store: Store, cache: Path) -> None:
    assert open_index(store, None).node_count == 0


def test_answers_are_plain_data(store: Store, cache: Path) -> None:
    answer = impact(open_index(store, commit(store, "v")), "s.x")
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_a_question_needs_no_heavy_library(store: Store, cache: Path) -> None:
    import os
    import subprocess
    import sys

    at = commit(store, "v")
    open_index(store, at)
    code = (
        "import sys\n"
        "from govtool.store.quick import open_reader\n"
        "from govtool.app.versions.index import open_index\n"
        "from govtool.query.changes.impact import impact\n"
        f"s = open_reader({str(store.uri)!r})\n"
        "impact(open_index(s, s.head()), 's.x')\n"
        "print(sorted({'numpy', 'pyarrow', 'obstore', 'sqlglot', 'networkx'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"
