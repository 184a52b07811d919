"""SIGKILL of writers: at random moments, behind the slot's write, and at every write of a removal."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.attacks.forgets import TEXTS, leak
from bench.attacks.rows import Row, shown

KILLS, AT_THE_SLOT = 240, 60
_WRITER = Path(__file__).resolve().parents[2] / "tests" / "store" / "killed_writer.py"


def kills() -> Iterator[Row]:
    """SIGKILL of a writer: at random moments, and right behind the slot's write."""
    good = "nothing acknowledged lost, no half commit, fsck clean"
    tries = KILLS - AT_THE_SLOT
    yield Row("kills", "SIGKILL of a writer at a random moment", tries, shown(_killed(tries, random.Random(2)), good))
    outcome = _killed(AT_THE_SLOT, None)
    yield Row("kills", "SIGKILL between the slot's write and the answer", AT_THE_SLOT, shown(outcome, good))


def _killed(tries: int, rng: random.Random | None) -> Counter[str]:
    from govtool.store import Store
    from govtool.store.upkeep.fsck import fsck

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
    return outcome


def _loop(uri: str, rng: random.Random) -> int:
    """Kill a writer that commits all the time; the number of its last acknowledged commit."""
    command = [sys.executable, str(_WRITER), uri, "loop", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline().split()
        time.sleep(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        lines = [first, *(line.split() for line in process.stdout.read().splitlines() if line.count(" ") == 1)]
    return max(int(line[1]) for line in lines if len(line) == 2)


def _at_the_slot(uri: str) -> int:
    """Kill a writer when its slot is written, before it hears so; what it committed must be whole."""
    done = subprocess.run([sys.executable, str(_WRITER), uri, "slot", "1"], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    return 2  # the slot is there: that is the commit


def forgetting() -> Iterator[Row]:
    """SIGKILL at every write of two removals one after the other; then the same commands again."""
    from govtool.app.upkeep.forget import ForgetRequest, forget_text
    from govtool.store import Store
    from govtool.store.upkeep.fsck import fsck

    outcome: Counter[str] = Counter()
    k, killed = 0, True
    while killed:
        k += 1
        with tempfile.TemporaryDirectory(prefix="forgets-") as folder:
            uri = f"{folder}/store"
            leak(Store.init(uri))
            done = subprocess.run(
                [sys.executable, "-m", "bench.attacks.forgets", uri, str(k)], capture_output=True, check=False
            )
            killed = done.returncode == -signal.SIGKILL
            outcome["the command failed"] += not killed and done.returncode != 0
            for text in TEXTS:
                forget_text(Store.open(uri), ForgetRequest(texts=(text,), author="ann"))
            outcome["a text is still there"] += any(map(_holds, Path(uri).rglob("*.parquet")))
            outcome["fsck found damage"] += bool(fsck(Store.open(uri)).problems)
    attack = "SIGKILL at every write of `store forget` of two texts, then both again"
    yield Row("forgetting", attack, k - 1, shown(+outcome, "both texts gone from every object, fsck clean"))


def _holds(path: Path) -> bool:
    from govtool.app.upkeep.fragment_text import TextForms

    return TextForms(TEXTS).in_fragment(path.read_bytes())
