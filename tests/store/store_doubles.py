"""Objects that count, fail, lose answers or kill their process, around real ones."""

from __future__ import annotations

import os
import signal
from collections import Counter

from govtool.errors import StoreError
from govtool.store import Changes, Fragment, Store

REMOTE = ("moto", "seaweedfs")
"""S3 servers on loopback, each started when a test first asks for it."""
OTHERS = os.environ.get("GOVTOOL_TEST_STORES", "").split()
"""Addresses below which the contract is tested as well, as in ``s3://bucket/tests``."""


def speak(store, source, *texts, batch="", branch="main", retract=True):
    """Commit that the source says this and, unless ``retract`` is false, nothing else."""
    changes = Changes(
        retract=(source,) if retract else (),
        add=tuple(Fragment(source, "derivation", text, rows=1) for text in texts),
    )
    return store.commit(changes, message=f"{source} speaks", author="ann", batch=batch, branch=branch)


def write_many(uri, who, commits, environment):
    """Commit so often, in a process of its own."""
    os.environ.update(environment)
    store = Store.open(uri)
    for n in range(commits):
        fragment = Fragment(f"job{who}", "derivation", f"{who} {n}".encode(), 1)
        result = store.commit(Changes(add=(fragment,)), message="m", author=who, batch=f"{who}-{n}")
        assert result.created


class Wrapped:
    """Passes every request on, calling ``before(op, key)`` and ``after(op, key)`` around it."""

    def __init__(self, objects, before=None, after=None):
        self.inner = objects
        self.uri = objects.uri
        self.before = before or (lambda op, key: None)
        self.after = after or (lambda op, key: None)

    def _request(self, op, key, *rest):
        self.before(op, key)
        result = getattr(self.inner, op)(key, *rest)
        if op == "scan":
            result = list(result)
        self.after(op, key)
        return result

    def get(self, key):
        return self._request("get", key)

    def get_many(self, keys):
        return [self.get(key) for key in keys]

    def get_range(self, key, start, end):
        return self._request("get_range", key, start, end)

    def scan(self, prefix, after=""):
        return iter(self._request("scan", prefix, after))

    def create(self, key, data):
        return self._request("create", key, data)

    def create_many(self, items):
        return [self.create(key, data) for key, data in items]

    def put(self, key, data):
        return self._request("put", key, data)

    def delete(self, key):
        return self._request("delete", key)


def counting(objects):
    """Wrapped objects and the Counter of their requests."""
    counts = Counter()
    return Wrapped(objects, before=lambda op, key: counts.update([op])), counts


class At:
    """Calls ``act`` at the k-th request (1-based) and never again."""

    def __init__(self, k, act):
        self.left = k
        self.act = act
        self.fired = None

    def __call__(self, op, key):
        self.left -= 1
        if self.left == 0:
            self.fired = (op, key)
            self.act()


def unreachable():
    raise StoreError("cannot reach the store: connection reset", code="store.unreachable")


def full():
    raise StoreError("cannot write: no space left", code="store.full")


def kill():
    os.kill(os.getpid(), signal.SIGKILL)
