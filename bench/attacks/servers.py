"""Attacks by way of the network: requests that fail one by one, and many writers while a tenth of all fail."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise

from bench import servers
from bench.attacks.rows import Row, shown
from bench.proxy import Fault, Plan, Proxy, at

MINUTES = float(os.environ.get("GOVTOOL_ATTACK_MINUTES", "10"))
WRITERS = 8
FAULTS = (
    Fault("drop"),
    Fault("drop", applied=True),
    Fault("status", status=500, error="InternalError"),
    Fault("status", applied=True, status=500, error="InternalError"),
    Fault("status", status=503, error="SlowDown"),
    Fault("truncate"),
    Fault("delay", seconds=0.05),
)
"""Failures of a request, before the server has it and after."""
_WRITER = """
import sys, time
from govtool.errors import StoreError
from govtool.store import Changes, Fragment, Store
who, uri, end = sys.argv[1], sys.argv[2], time.time() + float(sys.argv[3])
store = None
n = failed = 0
while time.time() < end:
    fragment = Fragment("job" + who, "derivation", f"{who} {n}".encode(), 1)
    try:
        store = store or Store.open(uri)
        store.commit(Changes(add=(fragment,)), message="m", author=who, batch=f"{who}-{n}")
    except StoreError:
        failed += 1  # the same again: a batch is applied once
        continue
    print(f"{who}-{n}", flush=True)
    n += 1
print("failed", failed, flush=True)
"""


def _server() -> tuple[str, AbstractContextManager[servers.Server]]:
    """A server that takes two writers in turn: SeaweedFS where it is installed, else moto behind a lock."""
    return ("SeaweedFS", servers.seaweedfs()) if servers.weed() else ("moto", servers.moto())


def _tenth(seed: int) -> Plan:
    """Fail a request in ten, in one of all ways."""
    rng = random.Random(seed)
    return lambda request: rng.choice(FAULTS) if rng.random() < 0.1 else None


def writers() -> Iterator[Row]:
    """Writers side by side, through a proxy that fails a request in ten."""
    from govtool.store import Store
    from govtool.store.upkeep.fsck import fsck

    name, started = _server()
    with started as server, Proxy((server.host, server.port)) as proxy:
        direct = {**os.environ, **servers.environment(server.url)}
        os.environ.update(direct)
        uri = f"s3://{servers.BUCKET}/{uuid.uuid4().hex}"
        Store.init(uri)
        proxy.reset(_tenth(1))
        environment = {**direct, **servers.environment(proxy.url)}
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, str(who), uri, str(MINUTES * 60)],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for who in range(WRITERS)
        ]
        acknowledged: list[str] = []
        failed = 0
        for process in processes:
            out = process.communicate(timeout=MINUTES * 60 + 300)[0].split("\n")
            acknowledged += [line for line in out if "-" in line]
            failed += sum(int(line.split()[1]) for line in out if line.startswith("failed"))
        hits, requests = proxy.hits, len(proxy.exchanges)
        outcome = _judged(uri, acknowledged)
        outcome["fsck found damage"] += bool(fsck(Store.open(uri)).problems)
    attack = f"{WRITERS} writers for {MINUTES:.0f} minutes against {name}, 10% of requests fail"
    good = "each acknowledged batch is there once, times in order, fsck clean"
    detail = f"{good}; {requests:,} requests, {hits:,} faults, {failed:,} commits refused and tried again"
    yield Row("writers", attack, len(acknowledged), shown(+outcome, detail))


def _judged(uri: str, acknowledged: list[str]) -> Counter[str]:
    from govtool.store import Store

    store = Store.open(uri)
    commits = list(store.log())
    batches = Counter(commit.batch for commit in commits)
    live = {data.decode().replace(" ", "-") for data in store.read_many(store.fragments(commits[0]))}
    return Counter(
        {
            "an acknowledged commit was lost": sum(batch not in batches for batch in acknowledged),
            "a batch was committed twice": sum(count > 1 for count in batches.values()),
            "an acknowledged fragment is not live": len(set(acknowledged) - live),
            "times run backwards": sum(later.time < earlier.time for later, earlier in pairwise(commits)),
        }
    )


def faults() -> Iterator[Row]:
    """Fail each request of a commit in turn, in every way; then the same commit again."""
    from govtool.errors import StoreError
    from govtool.store import Changes, Fragment, Store
    from govtool.store.upkeep.fsck import fsck

    outcome: Counter[str] = Counter()
    tries = 0
    with servers.moto() as server, Proxy((server.host, server.port)) as proxy:
        os.environ.update(servers.environment(proxy.url))
        os.environ["AWS_MAX_ATTEMPTS"] = "1"
        proxy.reset()
        uri = f"s3://{servers.BUCKET}/{uuid.uuid4().hex}"
        Store.init(uri)
        number = 0
        began = time.monotonic()
        for _ in range(20):
            for fault in FAULTS[:6]:
                k, hit = 0, True
                while hit:
                    k, number = k + 1, number + 1
                    add = tuple(Fragment(f"s{i}", "derivation", b"%d %d" % (i, number), 1) for i in range(3))
                    changes = Changes(("s0", "s1", "s2"), add)
                    proxy.reset(at(k, fault))
                    acknowledged = True
                    try:
                        Store.open(uri).commit(changes, message=f"{number}", author="a", batch=f"b{number}")
                    except StoreError:
                        acknowledged = False
                    hit = proxy.hits > 0
                    tries += hit
                    proxy.reset()
                    store = Store.open(uri)
                    head = store.head()
                    found = {store.read(ref).split()[1] for ref in store.fragments(head)} if head else set()
                    outcome["half a commit is visible"] += len(found) > 1
                    outcome["an acknowledged commit was lost"] += acknowledged and found != {b"%d" % number}
                    made = store.commit(changes, message=f"{number}", author="a", batch=f"b{number}").created
                    outcome["a batch was committed twice"] += made and found == {b"%d" % number}
            if time.monotonic() - began > 600:
                break
        outcome["fsck found damage"] += bool(fsck(Store.open(uri)).problems)
    del os.environ["AWS_MAX_ATTEMPTS"]
    attack = "a request of a commit dropped, refused, answered in half, or its answer lost; each in turn, each way"
    yield Row(
        "faults", attack, tries, shown(+outcome, "the commit is whole or not there; the same again makes it once")
    )
