from __future__ import annotations

import uuid

import pytest
from store_doubles import speak

from govtool.store import Store


@pytest.fixture(params=["memory", "local"])
def uri(request, tmp_path):
    """An address with nothing there yet, on every backend that needs no server."""
    return f"memory://{uuid.uuid4().hex}" if request.param == "memory" else str(tmp_path / "store")


@pytest.fixture
def store(uri):
    return Store.init(uri)


@pytest.fixture
def say(store):
    """``say("etl", b"a", b"b")``: the source now says this and nothing else."""

    def commit(source, *texts, into=None, **options):
        return speak(into or store, source, *texts, **options)

    return commit


@pytest.fixture
def texts():
    """``texts(store)``: what the sources say at the head of a branch, as {source: {text}}."""

    def read(store, branch="main"):
        head = store.head(branch)
        said = {}
        for ref in store.fragments(head) if head else ():
            said.setdefault(ref.source, set()).add(store.read(ref))
        return said

    return read
