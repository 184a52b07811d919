"""The history of runs: which run left which version of a dataset, which version a later run read, and what follows.

Runs and the versions that they wrote form a graph in time, finer than the graph of columns: what a faulty program wrote
and a sound one has replaced since is no longer there, but what was made of it meanwhile may be. This answers the three
queries of Muniswamy-Reddy, Macko and Seltzer, "Making a Cloud Provenance-Aware" (TaPP 2009, section 5): the provenance
of an object version, all outputs of a tool, all descendants of those.

A run reads the version whose content it states; else the last one that was finished before it started. A write that
is known to replace ends what was there before; any other, one of unknown mode too, adds to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from govtool.model.run import KEPT_FROM, Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.runs.executions import one_run_each

_REPLACES = frozenset({"overwrite", "create", "replace", "truncate", "drop"})
_SPOILED = frozenset({"failed", "aborted"})


class WrittenVersion(NamedTuple):
    """A dataset as a run left it."""

    dataset: str
    number: int
    """1 for the first write that is known, and so on."""


class Writing(NamedTuple):
    """A version, who wrote it and what of the version before it lives on."""

    version: WrittenVersion
    run: Run
    output: RunOutput
    replaces: bool
    """The content of the version before is gone."""

    @property
    def time(self) -> str:
        """The time of the version; empty if it is not known."""
        return self.run.ended or self.run.started or ""


@dataclass(frozen=True, slots=True)
class RunInputVersion:
    """The version of an input that a run read."""

    dataset: str
    version: WrittenVersion | None
    """None: no run is known to have written it before."""
    exact: bool
    """The content that was read is the content that was written; else it is told by the time alone."""


class History:
    """All runs of a version of the graph.

    Args:
        runs: In any order; several records of one execution are one run.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = one_run_each(runs)
        """A run for every execution, in order of time."""

    @cached_property
    def _writings(self) -> dict[str, list[Writing]]:
        found: dict[str, list[Writing]] = {}
        for run in sorted(self.runs, key=lambda run: (run.ended or run.started or "", run.id, run.job)):
            for output in run.outputs:
                before = found.setdefault(output.dataset, [])
                version = WrittenVersion(output.dataset, len(before) + 1)
                before.append(Writing(version, run, output, output.mode in _REPLACES and run.status not in _SPOILED))
        return found

    @cached_property
    def _by_content(self) -> dict[tuple[str, ContentIdentity | None], list[Writing]]:
        found: dict[tuple[str, ContentIdentity | None], list[Writing]] = {}
        for writings in self._writings.values():
            for writing in writings:
                output = writing.output
                for identity in (output.identity, output.left.identity if output.left is not None else None):
                    if identity is not None:
                        found.setdefault((writing.version.dataset, identity), []).append(writing)
        return found

    @property
    def datasets(self) -> Iterable[str]:
        """Datasets that a run wrote."""
        return self._writings.keys()

    def versions(self, dataset: str) -> Sequence[Writing]:
        """The versions of a dataset, oldest first."""
        return self._writings.get(dataset, ())

    def writing(self, version: WrittenVersion) -> Writing:
        """Return the run that wrote a version."""
        return self._writings[version.dataset][version.number - 1]

    def before(self, dataset: str, time: str | None) -> WrittenVersion | None:
        """The version of a dataset at a time (ISO 8601); without one, the last."""
        versions = self.versions(dataset)
        count = len(versions) if time is None else bisect_right(versions, time, key=lambda writing: writing.time)
        return versions[count - 1].version if count else None

    def readings(self, run: Run) -> Iterator[RunInputVersion]:
        """Return the inputs of a run, dataset by dataset."""
        for read in run.inputs:
            same = self._same_content(read.dataset, read.identity, run)
            if same is not None:
                yield RunInputVersion(read.dataset, same, exact=True)
            else:
                yield RunInputVersion(read.dataset, self._earlier(read.dataset, run), exact=False)

    def unknown_inputs(self, run: Run) -> Iterator[RunInput]:
        """The inputs of a run whose content it states, where no other run is known to have written that content.

        Where the last write before it has no identity of that kind, it may have been that: such an input is not here.
        Nor is a copy that govtool made for the run.
        """
        for read in run.inputs:
            if read.identity is None or any(name == KEPT_FROM for name, _ in read.options):
                continue
            if self._same_content(read.dataset, read.identity, run) is not None:
                continue
            last = self._earlier(read.dataset, run)
            if last is None or read.identity.kind in self._kinds(last):
                yield read

    def _kinds(self, version: WrittenVersion) -> set[str]:
        """The kinds of identity that a version is known by."""
        output = self.writing(version).output
        known = (output.identity, output.left.identity if output.left is not None else None)
        return {identity.kind for identity in known if identity is not None}

    def _same_content(self, dataset: str, identity: ContentIdentity | None, reader: Run) -> WrittenVersion | None:
        found = [w for w in self._by_content.get((dataset, identity), ()) if w.run is not reader]
        earlier = [w for w in found if not reader.started or w.time <= reader.started]
        return (earlier or found)[-1].version if found else None

    def _earlier(self, dataset: str, run: Run) -> WrittenVersion | None:
        """Return the versions that were there when a run started; never those that it wrote itself."""
        found = self.before(dataset, run.started)
        while found is not None and self.writing(found).run is run:
            found = WrittenVersion(dataset, found.number - 1) if found.number > 1 else None
        return found

    def parts(self, version: WrittenVersion) -> Iterator[Writing]:
        """The writes whose content a version holds, newest first."""
        for number in range(version.number, 0, -1):
            writing = self.writing(WrittenVersion(version.dataset, number))
            yield writing
            if writing.replaces:
                return

    # Down and up the graph of runs and versions.

    @cached_property
    def _readers(self) -> dict[WrittenVersion, list[Run]]:
        found: dict[WrittenVersion, list[Run]] = {}
        for run in self.runs:
            for reading in self.readings(run):
                if reading.version is not None:
                    found.setdefault(reading.version, []).append(run)
        return found

    @cached_property
    def _written(self) -> dict[int, list[WrittenVersion]]:
        found: dict[int, list[WrittenVersion]] = {}
        for writings in self._writings.values():
            for writing in writings:
                found.setdefault(id(writing.run), []).append(writing.version)
        return found

    def made_by(self, runs: Iterable[Run]) -> frozenset[WrittenVersion]:
        """The versions that hold something that these runs wrote, later versions that were added to included."""
        found: dict[WrittenVersion, int] = {}
        for run in runs:
            for version in self._written.get(id(run), ()):
                self._add_lasting(version, found, 0)
        return frozenset(found)

    def _add_lasting(
        self, version: WrittenVersion, steps: dict[WrittenVersion, int], hops: int
    ) -> list[WrittenVersion]:
        """Add a version and later ones that still hold it; versions that are already there have been followed."""
        added: list[WrittenVersion] = []
        for writing in self.versions(version.dataset)[version.number - 1 :]:
            if writing.version in steps or (writing.replaces and writing.version != version):
                break
            steps[writing.version] = hops
            added.append(writing.version)
        return added

    def _add_parts(self, version: WrittenVersion, steps: dict[WrittenVersion, int], hops: int) -> list[WrittenVersion]:
        """Add a version and those before it that it still holds."""
        added: list[WrittenVersion] = []
        for writing in self.parts(version):
            if writing.version in steps:
                break
            steps[writing.version] = hops
            added.append(writing.version)
        return added

    def derived(self, versions: Iterable[WrittenVersion]) -> dict[WrittenVersion, int]:
        """Versions that contain or derive from some of these, each with the number of runs between."""
        steps = dict.fromkeys(versions, 0)
        frontier, hops = list(steps), 0
        while frontier:
            hops += 1
            readers = {id(run): run for version in frontier for run in self._readers.get(version, ())}
            written = [version for run in readers for version in self._written.get(run, ())]
            frontier = [added for version in written for added in self._add_lasting(version, steps, hops)]
        return steps

    def ancestors(self, version: WrittenVersion) -> dict[WrittenVersion, int]:
        """The versions that a version contains or derives from, itself with 0 runs between."""
        steps: dict[WrittenVersion, int] = {}
        frontier, hops = self._add_parts(version, steps, 0), 0
        while frontier:
            hops += 1
            read = [r.version for made in frontier for r in self.readings(self.writing(made).run)]
            frontier = [part for one in read if one is not None for part in self._add_parts(one, steps, hops)]
        return steps

    def present(self, versions: Iterable[WrittenVersion]) -> set[str]:
        """The datasets whose last version is among these."""
        return {v.dataset for v in versions if v.number == len(self.versions(v.dataset))}

    def tainted(self, runs: Iterable[Run]) -> set[str]:
        """Return the start of a search for all current data that was made by some runs, or of their outputs.

        These are the datasets whose present content they wrote, and those that were made of content of theirs which
        has been replaced since: to these no way leads through the graph of what is there now.
        """
        direct = self.made_by(runs)
        found = self.present(direct)
        all_of_it = self.derived(direct)
        still = self.present(all_of_it)
        origins = {name: self._present_origins(name, all_of_it) for name in still}
        found.update(name for name, read in origins.items() if not read <= still)
        # What was replaced by something made of itself has its origins among what is there, and is reached from none.
        for version in sorted(all_of_it, key=lambda version: (all_of_it[version], version)):
            if version.dataset in still and version.dataset not in _reached(found, origins):
                found.add(version.dataset)
        return found

    def _present_origins(self, dataset: str, among: Container[WrittenVersion]) -> set[str]:
        """The datasets of the versions, of some, that were read for the present content of a dataset."""
        last = self.versions(dataset)[-1].version
        made = [writing for writing in self.parts(last) if writing.version in among]
        read = [one.version for writing in made for one in self.readings(writing.run)]
        return {version.dataset for version in read if version is not None and version in among}


def _reached(start: Iterable[str], origins: Mapping[str, set[str]]) -> set[str]:
    """Datasets that a way leads to from some, where each was made of its origins."""
    reached = set(start)
    while more := {name for name, read in origins.items() if name not in reached and read & reached}:
        reached |= more
    return reached
