"""Jars are used only if they are the ones that were meant; without a repository tests are skipped, not failed."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import published
import pytest

JAR = b"a jar"
COORDINATE = "org.example:thing:1.0"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository on this machine that has one jar; what it was asked for."""
    requested = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            there = self.path == "/org/example/thing/1.0/thing-1.0.jar"
            self.send_response(200 if there else 404)
            self.end_headers()
            if there:
                self.wfile.write(JAR)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("MAVEN_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setattr(published, "CACHE", tmp_path / "jars")
    yield requested
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_jar_is_fetched_once(repository):
    digest = hashlib.sha256(JAR).hexdigest()
    file = published.fetched(COORDINATE, digest)
    assert file.read_bytes() == JAR
    assert published.fetched(COORDINATE, digest) == file
    assert repository == ["/org/example/thing/1.0/thing-1.0.jar"]
    file.write_bytes(b"another")
    assert published.fetched(COORDINATE, digest).read_bytes() == JAR


def test_another_jar_is_refused(repository):
    with pytest.raises(ValueError, match="SHA-256"):
        published.fetched(COORDINATE, "0" * 64)
    assert not published.CACHE.exists()


def test_a_jar_that_is_not_there_is_a_mistake_and_no_outage(repository):
    with pytest.raises(OSError, match="404"):
        published.fetched("org.example:other:1.0", "0" * 64)


def test_no_repository_is_an_outage(repository, monkeypatch):
    monkeypatch.setenv("MAVEN_REPOSITORY", "http://127.0.0.1:9")
    with pytest.raises(published.Unreachable):
        published.fetched(COORDINATE, "0" * 64)
    assert not published.is_reachable()
