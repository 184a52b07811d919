"""Attacks on a store and what came of them: kills, truncations, flipped bits; and requests at any age.

``python -m bench.attacks [kills|truncations|flips|requests]…`` writes the table into docs/store-attacks.md.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.page import machine, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "store-attacks.md"
_HEAD = """# Attacks on a store

Made by `python -m bench.attacks`; do not edit. Every row says what was tried, how often, and what came of it. The
rows of `scripts/test` are smaller: `tests/store`.
"""
KILLS, AT_THE_SLOT, FLIPS = 200, 40, 2000
AGES = (10, 100, 1000, 3000)
_WRITER = Path(__file__).resolve().parents[1] / "tests" / "store" / "killed_writer.py"
Row = tuple[str, int, str]


def sound_store() -> Any:
    """A small store in memory with every kind of object: branches, tags, nodes, tombstones, a published index."""
    from bench.fuzz.targets import sound_store as objects
    from govtool.app.index import built_index
    from govtool.app.published import publish_index
    from govtool.store import Store
    from govtool.store.location import open_objects

    made = open_objects(f"memory://{uuid.uuid4().hex}")
    for key, data in objects().items():
        made.put(key, data)
    store = Store.open_objects(made)
    head = store.resolve("HEAD")
    publish_index(store, head, built_index(store, head), author="a")
    return Store.open_objects(made)


def read_everything(store: Any) -> dict[str, object]:
    """What each version of a store says, by its number; an error in place of what cannot be read."""
    from govtool.errors import GovtoolError
    from govtool.store import branches, tags

    def attempt(ask: Callable[[], object]) -> object:
        try:
            return ask()
        except GovtoolError as error:
            return error

    def version(ref: str) -> object:
        commit = store.resolve(ref)
        return commit.id, [store.read(fragment) for fragment in store.fragments(commit)]

    found: dict[str, object] = {ref: attempt(lambda ref=ref: version(ref)) for ref in ("HEAD", "next", "v1", "7", "20")}  # type: ignore[misc]
    found["log"] = attempt(lambda: [commit.id for commit in store.log()])
    found["tags"] = attempt(lambda: [tag.commit.id for tag in tags.list_tags(store)])
    found["branches"] = attempt(lambda: [branch.head.id for branch in branches.list_branches(store)])
    return found


def _spoilt(store: Any, changes: Iterator[tuple[str, bytes]]) -> tuple[int, Counter[str]]:
    """Put each changed object in place of the sound one, ask and check, and put the sound one back."""
    from govtool.store import Store
    from govtool.store.fsck import fsck

    sound = read_everything(store)
    outcome: Counter[str] = Counter()
    tries = 0
    for key, data in changes:
        before = store.objects.get(key)
        store.objects.put(key, data)
        tries += 1
        try:
            asked = Store(store.objects, store.store_id)
            for ref, answer in read_everything(asked).items():
                if not isinstance(answer, Exception) and answer != sound[ref]:
                    outcome[f"read as data ({key.split('/')[0]})"] += 1
            if not fsck(asked).problems:
                outcome[f"not found by fsck ({key.split('/')[0]})"] += 1
        finally:
            store.objects.put(key, before)
    return tries, outcome


def _text(outcome: Counter[str], good: str) -> str:
    return "; ".join(f"{text}: {count:,}" for text, count in sorted(outcome.items())) or good


def flips() -> Iterator[Row]:
    """Single bits, anywhere in the store."""
    rng = random.Random(1)
    store = sound_store()
    keys = [info.key for info in store.objects.scan("")]
    weights = [max(1, len(store.objects.get(key))) for key in keys]

    def changes() -> Iterator[tuple[str, bytes]]:
        for key in rng.choices(keys, weights, k=FLIPS):
            data = bytearray(store.objects.get(key))
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            yield key, bytes(data)

    tries, outcome = _spoilt(store, changes())
    yield "a bit flipped, anywhere", tries, _text(outcome, "all found by fsck, none read as data")


def truncations() -> Iterator[Row]:
    """Every length of one object of every kind."""
    store = sound_store()
    kinds: dict[str, str] = {}
    for info in sorted(store.objects.scan(""), key=lambda info: info.size):
        kinds.setdefault(info.key.split("/")[0] + info.key[-5:], info.key)
    for kind, key in sorted(kinds.items()):
        data = store.objects.get(key)
        tries, outcome = _spoilt(store, ((key, data[:length]) for length in range(len(data))))
        yield f"`{kind[:-5]}` cut short, every length", tries, _text(outcome, "all found by fsck, none read as data")


def kills() -> Iterator[Row]:
    """SIGKILL of a writer: at random moments, and right behind the slot's write."""
    rng = random.Random(2)
    yield "SIGKILL of a writer at a random moment", KILLS - AT_THE_SLOT, _killed(KILLS - AT_THE_SLOT, rng)
    yield "SIGKILL between the slot's write and the answer", AT_THE_SLOT, _killed(AT_THE_SLOT, None)


def _killed(tries: int, rng: random.Random | None) -> str:
    from govtool.store import Store
    from govtool.store.fsck import fsck

    outcome: Counter[str] = Counter()
    for _ in range(tries):
        with tempfile.TemporaryDirectory(prefix="killed-") as folder:
            store = Store.init(f"{folder}/store")
            acknowledged = _loop(store.uri, rng) if rng is not None else _at_the_slot(store.uri)
            head = Store.open(store.uri).head()
            numbers = {store.read(ref).split()[1] for ref in store.fragments(head)} if head else set()
            if (int(head.message) if head else 0) < acknowledged:
                outcome["an acknowledged commit was lost"] += 1
            if len(numbers) > 1:
                outcome["half a commit is visible"] += 1
            if fsck(Store.open(store.uri)).problems:
                outcome["fsck found damage"] += 1
    return _text(outcome, "nothing acknowledged lost, no half commit, fsck clean")


def _loop(uri: str, rng: random.Random) -> int:
    """Kill a writer that commits all the time; the number of its last acknowledged commit."""
    with subprocess.Popen(
        [sys.executable, str(_WRITER), uri, "loop", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline().split()
        time.sleep(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        lines = [first, *(line.split() for line in process.stdout.read().splitlines() if line.count(" ") == 1)]
    return max(int(line[1]) for line in lines if len(line) == 2)


def _at_the_slot(uri: str) -> int:
    """Kill a writer when its slot is written, before it hears so; what it committed must be whole."""
    subprocess.run([sys.executable, str(_WRITER), uri, "slot", "1"], capture_output=True, check=False)
    return 2  # the slot is there: that is the commit


def requests() -> Iterator[Row]:
    """Requests at an age: a commit, an unchanged ingest, a cold question with a published index."""
    from bench.ages import figures

    for age in AGES:
        counts = figures(age)
        yield f"requests at {age:,} commits: commit, unchanged ingest, cold opening", 1, ", ".join(map(str, counts))


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "kills": kills, "truncations": truncations, "flips": flips, "requests": requests
}  # fmt: skip


def main(names: list[str]) -> int:
    """Run some parts, by default all, and write the page."""
    os.environ["GOVTOOL_CACHE"] = tempfile.mkdtemp(prefix="attacks-")
    rows: list[Row] = []
    for name in names or list(PARTS):
        for row in PARTS[name]():
            sys.stdout.write(f"{row[0]} · {row[1]:,} · {row[2]}\n")
            sys.stdout.flush()
            rows.append(row)
    if not names:
        shown = table(["attack", "tries", "result"], ((what, f"{tries:,}", result) for what, tries, result in rows))
        PAGE.write_text(f"{_HEAD}\n{shown}\n\n{machine()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
