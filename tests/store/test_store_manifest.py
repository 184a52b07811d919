"""Slots stay small, and the tree of nodes says what a plain set would say."""

from __future__ import annotations

import json

from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from store_doubles import counting

from govtool.store import Changes, Fragment, Store, manifest
from govtool.store.backends.location import open_objects
from govtool.store.log import read_live
from govtool.store.manifest import Entry, Live, Manifest, decode_node, node_key

SOURCES = st.sampled_from(["a", "b", "c", *(f"s{n}" for n in range(12))])
STEP = st.tuples(st.lists(SOURCES, max_size=2), st.lists(st.tuples(SOURCES, st.integers(0, 30)), max_size=6))


class Nodes(dict):
    uri = "nodes"

    def get_many(self, keys):
        return [self[key] for key in keys]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STEP, max_size=60))
def test_folding_changes_nothing(steps):
    saved = manifest.TAIL, manifest.FAN, manifest.LEAF
    manifest.TAIL, manifest.FAN, manifest.LEAF = 3, 2, 4
    try:
        tree, nodes, model = Manifest(), Nodes(), {}
        for retract, adds in steps:
            for source in retract:
                model.pop(source, None)
            for source, n in adds:
                model.setdefault(source, set()).add(n)
            entries = [Entry("~", source, "b", "t", str(n), 1, 1) for source, n in adds]
            tree, made = tree.apply(retract, entries).folded()
            nodes.update({node_key(sha256): data for sha256, data in made.items()})
            assert Manifest.from_json(tree.to_json()) == tree
            live = read_live(nodes, type("C", (), {"manifest": tree})())
            stated = {}
            for entry in live.entries():
                stated.setdefault(entry.source, set()).add(int(entry.sha256))
            assert stated == model
    finally:
        manifest.TAIL, manifest.FAN, manifest.LEAF = saved


def test_live_is_ordered_and_last_wins():
    live = Live()
    live.feed([Entry("+", "a", "1", "t", "x", 1, 1), Entry("=", "b", "1"), Entry("+", "a", "2", "t", "x", 1, 1)])
    assert [entry.batch for entry in live.entries("a")] == ["2"]
    assert live.sources == ("a", "b")


def test_a_node_is_read_back():
    tree = Manifest().apply([], [Entry("+", f"s{n}", "b", "t", f"{n:064x}", n, n) for n in range(5000)])
    folded, nodes = tree.folded()
    assert folded.tail == ()
    assert folded.stored == 5000
    assert sum(len(decode_node(data, "x").entries) for data in nodes.values()) == 5000


def test_a_small_commit_takes_at_most_six_requests_and_a_bounded_slot_at_any_age():
    objects, counts = counting(open_objects("memory://"))
    store = Store.init_objects(objects)
    costs, sizes = [], []
    for n in range(2300):
        counts.clear()
        fresh = Store(objects, store.store_id)
        fragment = Fragment(f"job{n % 50}", "derivation", b"%d" % n, 1)
        fresh.commit(Changes(add=(fragment,)), message="m", author="a", batch=f"b{n}")
        costs.append(sum(counts.values()))
        sizes.append(len(objects.inner.get(f"log/main/{n + 1:012d}.json")))
    head = store.head()
    # When the manifest has grown to twice its size, one commit looks whether compaction is due.
    assert len([cost for cost in costs if cost > 6]) <= 2
    assert max(costs) < 100
    assert len(head.manifest.levels) == 2
    assert max(sizes[1200:]) <= max(sizes[:1200]) * 1.2
    assert len(store.fragments(head)) == 2300


def test_a_source_that_is_ingested_again_and_again_leaves_nothing_behind():
    store = Store.init("memory://")
    for n in range(100):
        fragments = tuple(
            Fragment("etl", "derivation", b"%d-%d" % (bucket, n if bucket == 0 else 0), 1) for bucket in range(64)
        )
        store.commit(Changes(("etl",), fragments), message="m", author="a", batch=f"b{n}")
    head = store.head()
    assert head.manifest.stored == 64
    assert len(store.fragments(head)) == 64


def test_unchanged_fragments_are_not_written_again():
    objects, counts = counting(open_objects("memory://"))
    store = Store.init_objects(objects)
    for n in range(2):
        counts.clear()
        fragments = tuple(
            Fragment("etl", "derivation", b"%d-%d" % (bucket, n if bucket == 0 else 0), 1) for bucket in range(64)
        )
        store.commit(Changes(("etl",), fragments), message="m", author="a", batch=f"b{n}")
    assert counts["create"] == 3  # one fragment, one node, the slot


@given(st.lists(st.text(min_size=1, max_size=30), min_size=9, max_size=40, unique=True), st.text(min_size=1))
def test_a_node_of_many_sources_has_a_filter_that_lets_all_of_them_pass(names, other):
    entries = tuple(manifest.Entry("=", name, "b") for name in names)
    folded, _ = manifest.Manifest(entries * 4).folded()
    (ref,) = folded.refs
    assert isinstance(ref.sources, str)
    assert all(map(ref.mentions, names))
    again = manifest.Manifest.from_json(json.loads(json.dumps(folded.to_json())))
    assert again == folded
    assert again.refs[0].mentions(other) == ref.mentions(other)
    assert (folded.format, manifest.Manifest(entries[:1]).format) == (2, 1)


def test_a_filter_is_of_use():
    entries = tuple(manifest.Entry("=", f"job{n}", "b") for n in range(33))
    (ref,) = manifest.Manifest(entries).folded()[0].refs
    assert sum(ref.mentions(f"other{n}") for n in range(1000)) < 100
