"""The entries of a commit: what it adds and retracts, where that lies, and whether the sources hold it already."""

from __future__ import annotations

from collections.abc import Container, Mapping

from govtool.store.codec import digest
from govtool.store.commit import Changes, FragmentRef
from govtool.store.manifest import Entry, Live
from govtool.store.packs import PackPlace, arrange


def entries_of(changes: Changes, batch: str) -> tuple[list[Entry], dict[str, bytes]]:
    """The entries of a commit, not yet placed, and the contents of its new fragments by their digests."""
    data: dict[str, bytes] = {}
    refs: list[FragmentRef] = []
    for fragment in changes.add:
        sha256 = digest(fragment.data)
        refs.append(FragmentRef(fragment.source, fragment.table, sha256, len(fragment.data), fragment.rows))
        data[sha256] = fragment.data
    refs += changes.uploaded
    adding = {ref.source for ref in refs}
    entries = [Entry("~", r.source, batch, r.table, r.sha256, r.size, r.rows, r.pack, r.offset) for r in refs]
    entries += [Entry("=", source, batch) for source in dict.fromkeys(changes.retract) if source not in adding]
    return entries, data


def placed(
    entries: list[Entry], data: Mapping[str, bytes], there: Mapping[tuple[str, str], tuple[str, int]], *, pack: bool
) -> tuple[list[Entry], list[tuple[str, bytes]]]:
    """Find a place for an added fragment: where it is already, in a pack, or in an object of its own.

    Args:
        entries: Of the commit.
        data: New contents by their digests; what entries add beyond that is in its place.
        there: Places of what the sources hold already, by table and digest.
        pack: Whether to put small fragments together.

    Returns:
        The entries with their places, and the objects to be written.
    """
    new = {e.sha256: data[e.sha256] for e in entries if e.sha256 in data and (e.table, e.sha256) not in there}
    packs, places = arrange(new) if pack else ({}, {})
    found: list[Entry] = []
    items: dict[str, bytes] = dict(packs)
    for entry in entries:
        if entry.sha256 in data:
            place = there.get((entry.table, entry.sha256)) or places.get(entry.sha256) or PackPlace()
            entry = entry._replace(pack=place[0], offset=place[1])
            if not entry.pack and (entry.table, entry.sha256) not in there:
                items[FragmentRef.of(entry).key] = data[entry.sha256]
        found.append(entry)
    return found, list(items.items())


def holds(live: Live, changes: Changes, entries: list[Entry]) -> bool:
    """Return whether the sources of ``changes`` hold exactly this already, by the same batch."""
    after = Live()
    for source in changes.sources:
        after.feed(live.entries(source))
    before = {entry.content for entry in after.entries()}
    after.feed([Entry("-", source) for source in changes.retract])
    after.feed(entries)
    return before == {entry.content for entry in after.entries()}


def as_created(entries: list[Entry], created: Container[str]) -> list[Entry]:
    """The entries; those of fragments that this writer itself created, by their keys, are marked as new."""
    return [e._replace(op="+") if not e.pack and FragmentRef.of(e).key in created else e for e in entries]
