"""Causal order: random histories of runs in random orders; every prefix is compared with brute force.

An event may come before those that it depends on, writers work side by side and are merged, sources are retracted. At
every commit ``show DATASET@VERSION``, ``impact run:RUN`` and ``store fsck`` must answer from what is known there. CI
takes some histories; ``GOVTOOL_HISTORIES=1000 scripts/test tests/app/test_causal_order.py`` takes more.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field

import pytest

from govtool.api.graph import Graph
from govtool.app.ingest.openlineage import commit_events, read_events
from govtool.app.project.sources import drop_source
from govtool.app.questions.history import show_answer
from govtool.app.runs.lookup import read_history
from govtool.app.versions.ancestors import unknown_at
from govtool.errors import UnknownNameError, UsageError
from govtool.store import Store, branches

HISTORIES = int(os.environ.get("GOVTOOL_HISTORIES", "8"))
DATASETS = [f"s3://b/{name}" for name in "abcde"]


@dataclass(frozen=True)
class Event:
    """A run as an event states it: what it read, in which version, and what it wrote."""

    number: int
    minute: int
    reads: tuple[tuple[str, str], ...]
    writes: tuple[tuple[str, str, str], ...]
    """Dataset, version and mode."""

    @property
    def run(self):
        return f"00000000-0000-4000-8000-{self.number:012d}"

    @property
    def ended(self):
        return f"2026-11-20T{self.minute // 60:02d}:{self.minute % 60:02d}:30.000000Z"

    @property
    def started(self):
        return self.ended.replace(":30.", ":00.")

    def line(self, kind):
        """The event as OpenLineage has it."""
        place = lambda name: {"namespace": "s3://b", "name": name.rsplit("/", 1)[1]}  # noqa: E731
        version = lambda text: {"version": {"datasetVersion": text}} if text else {}  # noqa: E731
        change = {"overwrite": "OVERWRITE", "append": ""}
        outputs = [
            {**place(name), "facets": {**version(text), **_lifecycle(change[mode])}} for name, text, mode in self.writes
        ]
        return json.dumps(
            {
                "eventType": kind,
                "eventTime": self.started if kind == "START" else self.ended,
                "producer": "test",
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": self.run},
                "job": {"namespace": "jobs", "name": f"job{self.number}"},
                "inputs": [{**place(name), "facets": version(text)} for name, text in self.reads],
                "outputs": outputs,
            }
        )


def _lifecycle(change):
    return {"lifecycleStateChange": {"lifecycleStateChange": change}} if change else {}


def random_events(rng):
    """Runs in their true order; a version that is read was written before, or by nobody who is ever heard of."""
    minutes = sorted(rng.sample(range(60, 600), rng.randint(3, 7)))
    written = []
    events = []
    for number, minute in enumerate(minutes):
        reads = []
        for name in rng.sample(DATASETS, rng.randint(0, 2)):
            known = [text for dataset, text in written if dataset == name]
            texts = {rng.choice([*known, "elsewhere", ""])}
            if "" not in texts and rng.random() < 0.3:  # as a job that compares a table with what it was
                texts.add(rng.choice([*known, "elsewhere"]))
            reads += [(name, text) for text in texts]
        writes = [
            (name, f"v{number}", rng.choice(("overwrite", "append")))
            for name in rng.sample(DATASETS, rng.randint(1, 2))
        ]
        written += [(name, text) for name, text, _ in writes]
        events.append(Event(number, minute, tuple(sorted(reads)), tuple(sorted(writes))))
    return events


@dataclass
class Known:
    """Brute force: everything is looked up among all events that are known, from the definitions alone."""

    events: list[Event] = field(default_factory=list)

    def writings(self, dataset):
        """The events that wrote a dataset, in order of their ends, with version and mode."""
        found = [
            (event.minute, event.run, event, text, mode)
            for event in self.events
            for name, text, mode in event.writes
            if name == dataset
        ]
        return [(event, text, mode) for *_, event, text, mode in sorted(found, key=lambda each: each[:2])]

    def read(self, event, dataset, text):
        """The place of the version that an event read, among those of the dataset; None if there is none."""
        versions = self.writings(dataset)
        others = [n for n, (writer, stated, _) in enumerate(versions) if writer != event and text and stated == text]
        before = [n for n in others if versions[n][0].ended <= event.started]
        if others:
            return (before or others)[-1]
        earlier = [n for n, (writer, *_) in enumerate(versions) if writer != event and writer.ended <= event.started]
        return earlier[-1] if earlier else None

    def holds(self, dataset, number):
        """The places of the versions that a version still holds."""
        versions, found = self.writings(dataset), []
        for n in range(number, -1, -1):
            found.append(n)
            if versions[n][2] == "overwrite":
                break
        return found

    def ancestors(self, dataset, number):
        """What a version holds or was made of, with the least number of runs between."""
        hops, frontier, distance = {}, {(dataset, number)}, 0
        while frontier:
            held = {(name, n) for name, place in frontier for n in self.holds(name, place)} - set(hops)
            hops.update(dict.fromkeys(held, distance))
            frontier = set()
            for name, n in held:
                event = self.writings(name)[n][0]
                for source, text in event.reads:
                    place = self.read(event, source, text)
                    if place is not None:
                        frontier.add((source, place))
            distance += 1
        return hops

    def unknown(self):
        """The stated versions that were read and that no other event wrote."""
        return {
            (event.run, name, text)
            for event in self.events
            for name, text in event.reads
            if text and not any(w != event and stated == text for w, stated, _ in self.writings(name))
        }

    def reached(self, run):
        """Datasets that hold something of a run now, or of what was made of what it wrote."""
        start = {
            (name, n) for name in DATASETS for n, (event, *_) in enumerate(self.writings(name)) if event.run == run
        }
        return {
            name
            for name in DATASETS
            if (versions := self.writings(name)) and start & set(self.ancestors(name, len(versions) - 1))
        }


class World:
    """A store and, by branch and source, the events that it was given."""

    def __init__(self, tmp_path, seed):
        self.rng = random.Random(seed)
        self.file = tmp_path / "events.jsonl"
        self.store = Store.init("memory://")
        self.given = {"main": {}}

    def ingest(self, events, source, branch, kinds):
        self.file.write_text("\n".join(event.line(kind) for event in events for kind in kinds))
        commit_events(self.store, read_events([str(self.file)]), source, append=True, author="ann", branch=branch)
        if "COMPLETE" in kinds:
            self.given[branch].setdefault(source, []).extend(events)

    def known(self, branch):
        return Known(list({event.run: event for found in self.given[branch].values() for event in found}.values()))

    def compare(self, branch):
        """Three questions, each for everything that can be asked."""
        known, commit = self.known(branch), self.store.head(branch)
        found = {(each.run, each.ancestor.strip('"'), each.digest) for each in unknown_at(self.store, commit)}
        assert found == known.unknown()
        history = read_history(self.store, commit)
        names = {name.strip('"'): name for name in history.datasets}
        assert set(names) == {name for name in DATASETS if known.writings(name)}
        for name, called in names.items():
            for number, (event, text, _) in enumerate(known.writings(name)):
                answer = show_answer(self.store, f"{name}@{text}", commit, branch)
                shown = {(w.version.dataset.strip('"'), w.version.number - 1): hops for _, hops, w in answer.entries}
                assert shown == known.ancestors(name, number)
                assert answer.entries[0][2].run.id == event.run
                assert called == answer.entries[0][2].version.dataset
        graph = Graph(self.store, commit, branch)
        for run in history.runs:
            reached = known.reached(run.id)
            starts = {name.strip('"') for name in history.tainted([run])}
            assert starts <= reached
            assert reached <= starts | affected(graph, run.id)


def affected(graph, run):
    """The datasets in the answer of ``impact run:RUN``."""
    try:
        answer = graph.impact(f"run:{run}")
    except UsageError as error:
        if error.code != "usage.nothing-selected":
            raise
        return set()  # nothing of it is left
    return {column.dataset.strip('"') for column in answer.columns}


def play(tmp_path, seed):
    """Ingest a random history in a random order, comparing after every commit."""
    world = World(tmp_path, seed)
    rng = world.rng
    events = random_events(rng)
    late = list(events)
    rng.shuffle(late)
    forked = None
    for step, event in enumerate(late):
        branch = rng.choice(["main", "side"]) if forked else "main"
        source = f"{branch}-{rng.randint(1, 2)}" + ("" if branch == "main" else f"-{step}")
        kinds = rng.choice((("COMPLETE",), ("START", "COMPLETE"), ("COMPLETE", "COMPLETE")))
        world.ingest([event], source, branch, kinds)
        world.compare(branch)
        if forked is None and rng.random() < 0.3:
            branches.create_branch(world.store, "side", world.store.head(), author="ann")
            world.given["side"] = {name: list(found) for name, found in world.given["main"].items()}
            forked = set(world.given["main"])
        elif rng.random() < 0.2 and not forked:
            gone = rng.choice(sorted(world.given["main"]))
            drop_source(world.store, gone, message=None, author="ann", branch="main")
            del world.given["main"][gone]
            world.compare("main")
    if forked is not None:
        branches.merge_branch(world.store, "side", author="ann")
        world.given["main"].update({n: f for n, f in world.given["side"].items() if n not in forked})
        world.compare("main")


@pytest.fixture(autouse=True)
def _cheap_questions(tmp_path, monkeypatch):
    """A cache of its own, no policies, and the runs of a commit read once rather than for each question."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    known = {}

    def read_once(store, commit):
        if commit.id not in known:
            known[commit.id] = read_history(store, commit)
        return known[commit.id]

    monkeypatch.setattr("govtool.app.runs.lookup.read_history", read_once)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_every_prefix_of_a_random_history_answers_as_brute_force_does(tmp_path, seed):
    play(tmp_path, seed)


def test_the_reader_before_its_writer(tmp_path):
    """The example: a version is unknown at the commit of its reader and known from that of its writer on."""
    world = World(tmp_path, 0)
    world.ingest([Event(2, 120, (("s3://b/a", "v1"),), (("s3://b/b", "v2", "overwrite"),))], "s", "main", ["COMPLETE"])
    first = world.store.head()
    (unknown,) = unknown_at(world.store, first)
    assert (unknown.ancestor, unknown.digest) == ("s3://b/a", "v1")
    world.ingest([Event(1, 60, (), (("s3://b/a", "v1", "overwrite"),))], "s", "main", ["COMPLETE"])
    assert list(unknown_at(world.store, world.store.head())) == []
    assert len(list(unknown_at(world.store, first))) == 1
    with pytest.raises(UnknownNameError):
        show_answer(world.store, "s3://b/a@v1", first, "main")
    assert show_answer(world.store, "s3://b/a@latest", world.store.head(), "main").entries
