"""A writer that is killed; started by test_store_kill.py.

``killed_writer.py`` alone makes one for each line ``[STORE, MODE, K, N]`` of stdin, prints its process id, and at last how
it ended: it forks, as most of what a process costs are its imports. ``killed_writer.py STORE MODE K`` is one alone, and
commits batch 2.

Modes: ``loop`` commits batches from K + 1 until it is killed from outside, and prints each sequence number after the
store acknowledged it; the others commit batch N: ``after`` kills after the K-th request (which is before the next one),
``packed`` after the K-th of those that a server gets, ``slot`` when the slot is written, ``sync`` at the K-th fsync,
``init`` at the K-th fsync of making the store.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from store_doubles import At, Wrapped, kill  # noqa: E402

from govtool.store import Changes, Fragment, Store  # noqa: E402
from govtool.store.backends import local  # noqa: E402


class Packing(Wrapped):
    """Objects that take themselves for remote: small fragments are packed, and requests are saved."""

    is_remote = True


def batch(store, n):
    """Ten sources speak at once, so that half a commit would show."""
    fragments = tuple(Fragment(f"s{i}", "derivation", b"%d %d" % (i, n), 1) for i in range(10))
    changes = Changes(tuple(f"s{i}" for i in range(10)), fragments)
    return store.commit(changes, message=f"{n}", author="me", batch=f"b{n}")


def synced(act):
    """Call this at each fsync of a local store."""
    real = local.sync
    local.sync = lambda path: (act("sync", str(path)), real(path))


def main(uri, mode, k, n=2):
    if mode == "loop":
        loop(uri, k)
    if mode == "init":
        synced(At(k, kill))
        Store.init(uri)
        return
    store = Store.init(uri, exist_ok=True)
    if mode == "slot":
        ends = lambda op, key: kill() if op == "create" and key.startswith("log/") else None  # noqa: E731
        store.objects = Wrapped(store.objects, after=ends)
    elif mode == "sync":
        synced(At(k, kill))
    else:
        store.objects = (Packing if mode == "packed" else Wrapped)(store.objects, after=At(k, kill))
    batch(store, n)


def loop(uri, k):
    store = Store.init(uri, exist_ok=True)
    while True:
        k += 1
        print(batch(store, k).commit.seq, k, flush=True)


def fork_each():
    for line in sys.stdin:
        child = os.fork()
        if not child:
            main(*json.loads(line))
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    if not sys.argv[1:]:
        fork_each()
    else:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
