"""Differences between two commits, in fragments; the graph's difference is made from these alone."""

from __future__ import annotations

from typing import NamedTuple

from govtool.store import log
from govtool.store.backends.objects import ReadableObjects
from govtool.store.commit import Commit, FragmentRef
from govtool.store.manifest import Entry, Live, NodeRef


class FragmentChanges(NamedTuple):
    """The fragments that are live at one commit only, sorted."""

    removed: tuple[FragmentRef, ...]
    added: tuple[FragmentRef, ...]


def fragment_changes(objects: ReadableObjects, old: Commit, new: Commit) -> FragmentChanges:
    """The fragments to take away from ``old`` and to add to it to get ``new``.

    Nodes that both manifests begin with are read only if they may mention a source that was retracted since, so the
    cost is that of the change.

    Raises:
        IntegrityError: if a manifest node is missing or damaged.
    """
    shared, left, right = _part(objects, list(old.manifest.refs), list(new.manifest.refs))
    before = [*_entries(objects, left, None), *old.manifest.tail]
    after = [*_entries(objects, right, None), *new.manifest.tail]
    by_source = _by_source(before), _by_source(after)
    touched = {
        source
        for source in by_source[0].keys() | by_source[1].keys()
        if by_source[0].get(source) != by_source[1].get(source)
    }
    # What only adds bytes that were new to the store has nothing to do with what was there before.
    rewritten = {entry.source for entry in (*before, *after) if entry.op in ("-", "~")}
    common = _entries(objects, shared, touched & rewritten)
    sides = []
    for entries in (before, after):
        live = Live()
        live.feed(common)
        live.feed(entries)
        refs = [FragmentRef.of(entry) for source in touched for entry in live.entries(source) if entry.adds]
        sides.append({ref[:5]: ref for ref in refs})  # A fragment is the same in whichever pack it lies.
    removed, added = (
        tuple(sorted(ref for key, ref in one.items() if key not in other)) for one, other in (sides, sides[::-1])
    )
    return FragmentChanges(removed, added)


def _part(
    objects: ReadableObjects, left: list[NodeRef], right: list[NodeRef]
) -> tuple[list[NodeRef], list[NodeRef], list[NodeRef]]:
    """Split two sequences of nodes into the common beginning and the rests; open a node where one side has folded
    more.
    """
    shared: list[NodeRef] = []
    while True:
        while left and right and left[0].sha256 == right[0].sha256:
            shared.append(left.pop(0))
            right.pop(0)
        if not left or not right:
            return shared, left, right
        side = left if left[0].entries > right[0].entries else right
        ((entries, children),) = log.read_nodes(objects, [side[0]])
        if entries:
            return shared, left, right
        side[:1] = children


def _by_source(entries: list[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.source, []).append(entry)
    return found


def _entries(objects: ReadableObjects, refs: list[NodeRef], sources: set[str] | None) -> list[Entry]:
    """The entries below nodes, oldest first; with ``sources``, only nodes that may mention one of them are read."""
    found: list[Entry] = []
    wanted = [ref for ref in refs if sources is None or any(map(ref.mentions, sources))]
    for entries, children in log.read_nodes(objects, wanted) if wanted else ():
        found.extend(entries if not children else _entries(objects, list(children), sources))
    return found
