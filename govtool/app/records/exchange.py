"""Which recorded writes exchange files: known by place, size and time of writing, never by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from govtool.records.execute.places import Place


@dataclass(frozen=True, slots=True)
class FileExchange:
    """The files that writes read and left.

    Attributes:
        reads: The files that each write read, by the write.
        writes: The files that each write left.
        readers: Writes by the files that they read.
        writers: Writes by the files that they left.
        paths: The last write that left a file of a URI, whatever its size and time.
    """

    reads: dict[str, set[Place]] = field(default_factory=dict)
    writes: dict[str, set[Place]] = field(default_factory=dict)
    readers: dict[Place, list[str]] = field(default_factory=dict)
    writers: dict[Place, list[str]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, reads: Iterable[Place], writes: Iterable[Place]) -> None:
        """Take in a write."""
        self.reads[name], self.writes[name] = set(reads), set(writes)
        for place in self.reads[name]:
            self.readers.setdefault(place, []).append(name)
        for place in self.writes[name]:
            self.writers.setdefault(place, []).append(name)
            self.paths[place[0]] = name

    def before(self, start: Iterable[str]) -> set[str]:
        """Writes, and all whose files they were made of, directly or not."""
        return _reached(start, self._suppliers)

    def after(self, start: Iterable[str]) -> set[str]:
        """Writes, and all that were made of their files, directly or not."""
        return _reached(start, self._consumers)

    def joined(self, start: Iterable[str]) -> set[str]:
        """Writes, and all that exchange files with them, directly or not; those that read one file, too."""
        return _reached(start, self._partners)

    def ordered(self, names: Collection[str]) -> list[str]:
        """Writes in topological order, and as given where that allows it: one comes after those whose files it read."""
        place = {name: at for at, name in enumerate(dict.fromkeys(names))}
        before = {name: {each for each in self._suppliers(name) if each in place} - {name} for name in place}
        after: dict[str, list[str]] = {}
        for name, suppliers in before.items():
            for each in suppliers:
                after.setdefault(each, []).append(name)
        ready = [at for name, at in place.items() if not before[name]]
        every, done = list(place), dict[str, None]()
        while len(done) < len(every):
            # Two writes that read each other's files cannot be; a damaged record must not make this endless.
            at = heappop(ready) if ready else next(at for at, name in enumerate(every) if name not in done)
            if every[at] in done:
                continue
            done[every[at]] = None
            for name in after.get(every[at], ()):
                before[name].discard(every[at])
                if not before[name]:
                    heappush(ready, place[name])
        return list(done)

    def _suppliers(self, name: str) -> Iterator[str]:
        for place in self.reads.get(name, ()):
            yield from self.writers.get(place, ())

    def _consumers(self, name: str) -> Iterator[str]:
        for place in self.writes.get(name, ()):
            yield from self.readers.get(place, ())

    def _partners(self, name: str) -> Iterator[str]:
        for place in self.reads.get(name, set()) | self.writes.get(name, set()):
            yield from self.readers.get(place, ())
            yield from self.writers.get(place, ())


def _reached(start: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    found = set(start)
    waiting = list(found)
    while waiting:
        new = set(following(waiting.pop())) - found
        found |= new
        waiting += new
    return found
