"""Answers from an index that is another one and a change are those of an index that is built anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from changed_graphs import Fragments, changed, fragments, warehouse

import govtool
from govtool.app.versions import gathered
from govtool.app.versions.index import built_index, open_index
from govtool.app.versions.published import publish_index
from govtool.graph.delta.spliced import SplicedIndex
from govtool.graph.index import Index
from govtool.model.columnar import DERIVATIONS, encode
from govtool.query.changes.change import Change
from govtool.query.changes.impact import impact
from govtool.store import Changes, Commit, Fragment, Store

POLICY = """
version: 1
name: some
classes:
  personal: {}
  pseudonymous: {}
classify:
  - class: personal
    columns: ["**.a", "s1.*.q"]
declassify:
  - {name: hash, kind: mask, functions: [md5], from: [personal], to: pseudonymous}
zones:
  marts: {datasets: ["s2.**"]}
rules:
  - id: P1
    title: Nothing personal in marts
    deny: {flow: {class: personal, to: {zone: marts}, via: any}}
"""


@pytest.fixture(autouse=True)
def splicing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive changes of small graphs, too, and of any share of them."""
    monkeypatch.setattr(gathered, "_QUICK", -1)
    monkeypatch.setattr(gathered, "_SHARE", 1)
    monkeypatch.setattr(gathered, "_READ_SHARE", 0)


def commit(store: Store, some: Fragments, batch: str) -> Commit:
    """Commit fragments in place of those before."""
    add = tuple(Fragment("bench", DERIVATIONS, encode(rows), len(rows)) for rows in some)
    changes = Changes(retract=("bench",), add=add)
    return store.commit(changes, message="m", author="a", batch=batch, summary={}).commit


def history(folder: Path, seed: int) -> Store:
    """A store with a graph, and three changes of it."""
    draw = Random(seed)
    of = warehouse(draw)
    some = fragments(draw, of)
    store = Store.init(str(folder / ".govtool"))
    commit(store, some, "0")
    open_index(store, store.head())
    for number in range(1, 4):
        some = changed(draw, of, some)
        commit(store, some, str(number))
    return store


def answers(folder: Path, seed: int) -> Iterator[Any]:
    """What is answered to many questions."""
    graph = govtool.open(str(folder / ".govtool"))
    index = graph.snapshot().index
    draw = Random(seed)
    nodes = [node for node in range(index.node_count) if not index.is_rows(node) and not index.is_unknown(node)]
    shown = [node for node in nodes if not index.is_hidden(index.node_dataset[node])]
    yield index.meta["datasets"], index.meta["columns"], index.node_count, index.edge_count
    for node in draw.sample(shown, min(12, len(shown))):
        name = index.name(node)
        for change in ("logic", "drop", "rename:z"):
            yield graph.impact(name, change=change).to_dict()
        yield graph.explain(name).to_dict()
    for one, two in zip(draw.sample(shown, min(8, len(shown))), draw.sample(shown, min(8, len(shown))), strict=True):
        try:
            yield graph.path(index.name(one), index.name(two)).to_dict()
        except govtool.GovtoolError as error:
            yield str(error)
    yield graph.ls().to_dict()
    yield [graph.ls(index.dataset_name(d)).to_dict() for d in list(index.datasets())[:10]]
    yield graph.check().to_dict()
    yield graph.diff("HEAD~1").to_dict()
    yield graph.diff("HEAD~2", "HEAD~1").to_dict()
    for node in draw.sample(shown, min(6, len(shown))):  # in numpy
        yield [each.column for each in impact(index, index.name(node), change=Change.parse("drop"), small=0).columns]
    for parts in (["a"], ["q"], ["x"]):
        yield [index.name(node) for node in index.ending_columns(parts, 1000)]
    yield sorted(index.path_pool(1000).items()), index.name_pool(1000)


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_an_index_that_is_built_anew(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yml").write_text(POLICY)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    store = history(tmp_path, seed)
    assert isinstance(open_index(store, store.head()), SplicedIndex)
    found = list(answers(tmp_path, seed))
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "another"))
    assert not isinstance(open_index(store, store.head()), SplicedIndex)
    for one, two in zip(found, answers(tmp_path, seed), strict=True):
        assert json.dumps(one, default=str) == json.dumps(two, default=str)


def test_it_is_published_as_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    store = history(tmp_path, 1)
    head = store.head()
    assert head is not None
    index = open_index(store, head)
    assert isinstance(index, SplicedIndex)
    publish_index(store, head, index)
    whole = open_index(store, head)
    assert not isinstance(whole, SplicedIndex)
    assert bytes(whole.buffer) == bytes(built_index(store, head).buffer)


def spoilt(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file that a cache keeps of a graph, and what may stand there instead: bits flipped, or another file."""
    files = sorted(path for path in folder.rglob("*") if path.name in ("graph.index", "columns"))
    whole = {path: path.read_bytes() for path in files}
    draw = Random(1)
    for path, data in whole.items():
        yield path, data[: len(data) // 2]
        for other, instead in whole.items():
            if other != path:
                yield path, instead
        for _ in range(40 if path.name == "columns" else 5):
            place = draw.randrange(len(data))
            yield path, data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]


@pytest.mark.parametrize("is_derived", [False, True])
def test_a_spoilt_cache_gives_no_wrong_answer(
    is_derived: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, cache = tmp_path / "sound", tmp_path / "cache"
    monkeypatch.setenv("GOVTOOL_CACHE", str(sound))
    stores = []
    for seed in (21, 3):  # the second store's files are among those that are put in place of the first's
        (tmp_path / str(seed)).mkdir()
        stores.append(history(tmp_path / str(seed), seed))
        if is_derived:
            open_index(stores[-1], stores[-1].head())
    store, head = stores[0], stores[0].head()
    assert head is not None
    right = said(built_index(store, head))
    mine = [each for each in spoilt(sound) if each[0].parent.name.startswith(f"{store.cache_id}.")]
    assert len(mine) > 50
    for path, data in mine:
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(sound, cache)
        monkeypatch.setenv("GOVTOOL_CACHE", str(cache))
        (cache / path.relative_to(sound)).write_bytes(data)
        assert said(open_index(store, head)) == right, path


def said(index: Index) -> list[tuple[str, str, int]]:
    """The edges of an index."""
    ends = zip(index.edge_source, index.edge_target, index.edge_tag, strict=True)
    return sorted((index.name(one), index.name(two), int(tag)) for one, two, tag in ends)


@pytest.mark.parametrize("what", ["change", "before"])
def test_without_the_index_before_all_is_built(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    store = history(tmp_path, 2)
    head = store.head()
    assert head is not None
    assert isinstance(open_index(store, head), SplicedIndex)
    for file in (tmp_path / "cache").rglob("graph.index"):
        if file.parent.name.endswith("-change") == (what == "change"):
            file.write_bytes(file.read_bytes()[:-70] + bytes(70))
    again = open_index(store, head)
    assert isinstance(again, SplicedIndex) == (what == "change")
    assert again.node_count == built_index(store, head).node_count
