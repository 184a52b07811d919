"""Differences of two versions of a store: what they say, and what they cost."""

from __future__ import annotations

from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_doubles import counting, speak

from govtool.store import Store, log, manifest
from govtool.store.backends.location import open_objects
from govtool.store.changes import fragment_changes

STEP = st.tuples(st.sampled_from("abcdefgh"), st.lists(st.integers(0, 9), max_size=3), st.booleans())


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=2, max_size=30), st.data())
def test_changes_are_the_difference_of_the_versions(steps, data):
    saved = manifest.TAIL, manifest.FAN, manifest.LEAF
    manifest.TAIL, manifest.FAN, manifest.LEAF = 2, 2, 3
    try:
        store = Store.init("memory://")
        commits = [
            speak(store, source, *(b"%d" % n for n in numbers), retract=retract or not numbers).commit
            for source, numbers, retract in steps
        ]
        old, new = data.draw(st.sampled_from(commits)), data.draw(st.sampled_from(commits))
        before, after = ({ref[:5] for ref in store.fragments(commit)} for commit in (old, new))
        for commit in (old, new):
            live = log.read_live(store.objects, commit)
            for source in "abcdefgh":
                stated = log.read_sources(log.Nodes(store.objects), commit, (source,))
                assert sorted(stated.entries()) == sorted(live.entries(source))
        changes = fragment_changes(store.objects, old, new)
        assert {ref[:5] for ref in changes.removed} == before - after
        assert {ref[:5] for ref in changes.added} == after - before
    finally:
        manifest.TAIL, manifest.FAN, manifest.LEAF = saved


def test_a_difference_costs_what_changed():
    objects, counts = counting(open_objects("memory://"))
    store = Store.init_objects(objects)
    for n in range(1000):
        speak(store, f"job{n}", b"%d" % n, retract=False)
    old, new = store.resolve("HEAD~3"), store.head()
    counts.clear()
    changes = fragment_changes(objects, old, new)
    assert [ref.source for ref in changes.added] == ["job997", "job998", "job999"]
    assert changes.removed == ()
    assert sum(counts.values()) <= 5
