"""Connections of the endpoint while it is being stopped."""

from __future__ import annotations

import socket

import pytest

from govtool.app.serve.endpoint import LineageServer
from govtool.app.serve.event_spool import EventSpool


@pytest.fixture
def server(tmp_path):
    spool = EventSpool(tmp_path / "spool")
    made = LineageServer(("127.0.0.1", 0), spool, notice=lambda: None)
    yield made
    made.server_close()
    spool.close()


def test_a_connection_that_comes_while_it_stops_awaits_nothing(server):
    """`stop` has looked at the connections already: nobody else would end this one."""
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    with ours, theirs:
        server.stopping = True
        server.begin_reading(ours)
        assert ours.recv(1) == b""


def test_until_then_a_connection_is_read(server):
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    with ours, theirs:
        server.begin_reading(ours)
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"
        server.end_reading(ours)
        assert not server._reading
