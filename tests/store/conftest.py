from __future__ import annotations

import os
import uuid

import pytest
from store_doubles import speak

from govtool.store import Store

OTHERS = os.environ.get("GOVTOOL_TEST_STORES", "").split()
"""Addresses below which the contract is tested as well, as in ``s3://bucket/tests``."""


@pytest.fixture(params=["memory", "local", *OTHERS])
def uri(request, tmp_path):
    """An address with nothing there yet, on every backend."""
    if request.param == "local":
        return str(tmp_path / "store")
    return f"{'memory:/' if request.param == 'memory' else request.param}/{uuid.uuid4().hex}"


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
