"""Circuits as bytes: read back whole, and nothing but data is read."""

from __future__ import annotations

import hashlib
import os
import pickle
from types import SimpleNamespace

import pytest

from govtool.app.workflow_runs import circuit_cache
from govtool.errors import IntegrityError
from govtool.records.execute import duck_tables
from govtool.records.plan.nodes import Session
from govtool.workflow.annotate.circuit import Circuit
from govtool.workflow.storage.circuits import StoredCircuit, unpack_circuit


class Hostile:
    """Runs a command where it is read."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def signed(obj):
    body = pickle.dumps(obj)
    return hashlib.sha256(body).digest() + body


@pytest.mark.parametrize(
    "hostile",
    [
        Hostile(os.system, "true"),
        Hostile(eval, "1"),
        Hostile(getattr, Circuit, "add"),
        Hostile(pickle.loads, b"N."),
    ],
    ids=["system", "eval", "getattr", "pickle"],
)
def test_functions_are_never_called(hostile):
    with pytest.raises(IntegrityError, match="no data of a circuit"):
        unpack_circuit(signed((hostile, 1, 1)), None, {}.__getitem__)


@pytest.mark.parametrize("name", ["count", "TableStore"])
def test_a_class_that_a_module_only_imports_is_refused(name):
    body = f"cgovtool.workflow.storage.circuits\n{name}\n(tR.".encode()
    with pytest.raises(IntegrityError, match="no data of a circuit"):
        unpack_circuit(hashlib.sha256(body).digest() + body, None, {}.__getitem__)


@pytest.mark.parametrize(
    "body",
    [
        pickle.dumps((1, 2)),
        pickle.dumps((1, 2, 3)),
        pickle.dumps((1, "x", 3)),
        b"\x80\x05(U\x04rowsX\x01\x00\x00\x00atQ.",
    ],
    ids=["two", "no circuit", "no number", "unknown rows"],
)
def test_bytes_of_something_else_are_refused(body):
    with pytest.raises(IntegrityError, match="cannot be read"):
        unpack_circuit(hashlib.sha256(body).digest() + body, None, {}.__getitem__)


@pytest.mark.parametrize("at", [0, 31, 32, -1])
def test_a_damaged_circuit_is_refused(at):
    stored = StoredCircuit(Circuit(), {}, {}, {}, frozenset())
    data = bytearray(signed((stored, 7, 3)))
    found, tables = unpack_circuit(bytes(data), None, {}.__getitem__)
    assert found.circuit.size == 2
    assert (next(tables.ids.numbers), tables.loaded) == (7, 3)
    data[at] ^= 1
    with pytest.raises(IntegrityError):
        unpack_circuit(bytes(data), None, {}.__getitem__)


@pytest.mark.parametrize(
    ("circuit", "error"),
    [
        (signed((StoredCircuit(Circuit(), {"gone": 1}, {}, {}, frozenset()), 1, 1)), "another run"),
        (signed((StoredCircuit(Circuit(), {}, {}, {}, frozenset()), 1, 1))[:-1], "damaged"),
        (None, "not a valid DuckDB"),
    ],
    ids=["another run", "cut", "no database"],
)
def test_a_damaged_cache_leaves_no_connection_open(tmp_path, monkeypatch, circuit, error):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    opened = []
    made = duck_tables.DuckExecutor
    monkeypatch.setattr(duck_tables, "DuckExecutor", lambda session: opened.append(made(session)) or opened[-1])
    if circuit is None:
        (tmp_path / "tables.duckdb").write_bytes(b"x" * 20_000)
    else:
        duckdb.connect(str(tmp_path / "tables.duckdb")).close()
        (tmp_path / "circuit").write_bytes(circuit)
    with pytest.raises((IntegrityError, duckdb.Error), match=error):
        circuit_cache._opened(tmp_path, SimpleNamespace(relations={}), None, Session("", ansi=True, zone="UTC"))
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        opened[0].connection.execute("SELECT 1")
