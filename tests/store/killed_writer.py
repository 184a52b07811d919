"""A writer that is killed: ``killed_writer.py STORE MODE K``; started by test_store_kill.py.

Modes: ``after`` kills after the K-th request (which is before the next one), ``slot`` when the slot is written, ``sync`` at the K-th fsync,
``loop`` commits until it is
killed from outside and prints each sequence number after the store acknowledged it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from store_doubles import At, Wrapped, kill  # noqa: E402

from govtool.store import Changes, Fragment, Store  # noqa: E402
from govtool.store.backends import local  # noqa: E402


def batch(store, n):
    """Ten sources speak at once, so that half a commit would show."""
    fragments = tuple(Fragment(f"s{i}", "derivation", b"%d %d" % (i, n), 1) for i in range(10))
    changes = Changes(tuple(f"s{i}" for i in range(10)), fragments)
    return store.commit(changes, message=f"{n}", author="me", batch=f"b{n}")


def main(uri, mode, k):
    store = Store.init(uri, exist_ok=True)
    if mode == "loop":
        while True:
            k += 1
            print(batch(store, k).commit.seq, k, flush=True)
    if mode == "slot":
        ends = lambda op, key: kill() if op == "create" and key.startswith("log/") else None  # noqa: E731
        store.objects = Wrapped(store.objects, after=ends)
    elif mode == "sync":
        real, at = local.sync, At(k, kill)
        local.sync = lambda path: (at("sync", str(path)), real(path))
    else:
        at = At(k, kill)
        store.objects = Wrapped(store.objects, after=at)
    batch(store, 2)
    print("survived")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
