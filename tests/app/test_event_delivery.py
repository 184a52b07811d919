"""Delivery of OpenLineage events, against a server that records what it gets and fails by a script."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from govtool.app.event_delivery.client import event_endpoint
from govtool.app.event_delivery.delivery import DeliveryPolicy, deliver
from govtool.cli.main import main
from govtool.errors import DeliveryError, UsageError

TOKEN = "tok-3f9a1c77b2"
EVENTS = [{"job": {"namespace": "n", "name": f"j{number}"}, "number": number} for number in range(3)]


class Recorder(ThreadingHTTPServer):
    """Answers in turn by ``script`` (a status, or status, body and headers, or a function of the handler); then 201."""

    daemon_threads = True

    def __init__(self, *script) -> None:
        super().__init__(("127.0.0.1", 0), Recording)
        self.script, self.requests, self.connections = list(script), [], set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def bodies(self) -> list[dict]:
        return [json.loads(body) for _, _, body in self.requests]


class Recording(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.connections.add(self.client_address)
        step = self.server.script.pop(0) if self.server.script else 201
        if callable(step):
            step(self)
            return
        status, text, headers = step if isinstance(step, tuple) else (step, "", {})
        if callable(text):
            text = text(self)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def recorder(*script) -> Iterator[Recorder]:
    server = Recorder(*script)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def quick(**more) -> DeliveryPolicy:
    """A policy whose pauses take no time; ``policy.sleep.__self__`` is the list of them."""
    pauses: list[float] = []
    return DeliveryPolicy(**{"timeout": 30.0, "sleep": pauses.append, **more})


def test_events_arrive_in_order_over_one_connection():
    with recorder() as server:
        done = deliver(EVENTS, event_endpoint(server.url, TOKEN), quick())
        assert (done.sent, done.rejected, done.retries) == (3, (), 0)
        assert server.bodies == EVENTS
        assert len(server.connections) == 1
        path, headers, _ = server.requests[0]
        assert path == "/api/v1/lineage"
        assert headers["Content-Type"] == "application/json"
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert TOKEN not in repr(event_endpoint(server.url, TOKEN)) + repr(done)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("", "/api/v1/lineage"),
        ("/", "/api/v1/lineage"),
        ("/api/v1/lineage", "/api/v1/lineage"),
        ("/openapi/openlineage/", "/openapi/openlineage/api/v1/lineage"),
        ("/api/v1/openlineage/lineage", "/api/v1/openlineage/lineage"),
        ("/v1/projects/p/locations/eu:processOpenLineageRunEvent",) * 2,
    ],
)
def test_the_path_of_a_service_is_added(given, path):
    with recorder() as server:
        deliver(EVENTS[:1], event_endpoint(server.url + given), quick())
        assert server.requests[0][0] == path
        assert "Authorization" not in server.requests[0][1]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_succeed_later_is_sent_again(status):
    with recorder(status, status, 201) as server:
        policy = quick()
        done = deliver(EVENTS, event_endpoint(server.url), policy)
        assert (done.sent, done.retries) == (3, 2)
        assert server.bodies == [EVENTS[0], EVENTS[0], *EVENTS]
        first, second = policy.sleep.__self__
        assert 0.25 <= first <= 0.5 <= second <= 1.0


@pytest.mark.parametrize("header", ["7", "date"])
def test_the_pause_is_as_long_as_the_endpoint_requests(header):
    stated = formatdate(time.time() + 7.9, usegmt=True) if header == "date" else header
    with recorder((503, "", {"Retry-After": stated})) as server:
        policy = quick()
        deliver(EVENTS, event_endpoint(server.url), policy)
        assert 5.5 < policy.sleep.__self__[0] <= 8


def test_a_pause_beyond_the_deadline_is_not_waited_for():
    with recorder(201, (503, "busy", {"Retry-After": "3600"})) as server:
        policy = quick()
        with pytest.raises(DeliveryError, match=r"deadline of 300 seconds.*503: busy.*; 1 of 3 events") as caught:
            deliver(EVENTS, event_endpoint(server.url), policy)
        assert caught.value.code == "delivery.deadline"
        assert policy.sleep.__self__ == []


def test_it_gives_up_after_some_attempts():
    with recorder(201, *[500] * 9) as server, pytest.raises(DeliveryError, match="500, 4 times; 1 of 3") as caught:
        deliver(EVENTS, event_endpoint(server.url), quick(attempts=4))
    assert caught.value.code == "delivery.unreachable"
    assert caught.value.exit_code == 4
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_an_event_that_is_rejected_does_not_stop_the_others(status):
    with recorder(201, (status, "bad\x1b[31m \u202eevent\n\n", {}), 201) as server:
        done = deliver(EVENTS, event_endpoint(server.url), quick())
        assert (done.sent, done.retries) == (2, 0)
        (event,) = done.rejected
        assert (event.number, event.name, event.status) == (2, "n/j1", status)
        assert "event" in event.reason
        assert not {"\x1b", "\u202e", "\n"} & set(event.reason)


def test_an_endpoint_that_rejects_everything_is_left_alone_in_the_end():
    with recorder(*[422] * 100) as server, pytest.raises(DeliveryError, match="422; 0 of 50") as caught:
        deliver(EVENTS[:1] * 50, event_endpoint(server.url), quick())
    assert len(server.requests) == 20
    assert "--run-events" in (caught.value.hint or "")


@pytest.mark.parametrize("status", [301, 302, 307, 308, 401, 403, 404, 405, 415, 501])
def test_what_no_other_event_would_change_ends_it(status):
    with recorder() as other, recorder(201, (status, "", {"Location": other.url})) as server:
        with pytest.raises(DeliveryError, match=f"{status}; 1 of 3") as caught:
            deliver(EVENTS, event_endpoint(server.url, TOKEN), quick())
        assert caught.value.code == "delivery.refused"
        assert len(server.requests) == 2
        assert other.requests == [], "a token is for the address that was named"


def slowly(handler: Recording) -> None:
    """A byte of the headers now and then, for ever: every read of a socket succeeds in time."""
    drip(handler, b"HTTP/1.1 201 Created\r\nX: ")


def slow_body(handler: Recording) -> None:
    drip(handler, b"HTTP/1.1 200 OK\r\n\r\n")


def drip(handler: Recording, head: bytes) -> None:
    try:
        handler.wfile.write(head)
        while True:
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def silent(handler: Recording) -> None:
    time.sleep(1.5)
    handler.close_connection = True


def hangs_up(handler: Recording) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def rubbish(handler: Recording) -> None:
    handler.wfile.write(b"\x16\x03\x01 not http\r\n\r\n")
    handler.close_connection = True


@pytest.mark.parametrize("trouble", [slowly, slow_body, silent, hangs_up, rubbish])
def test_a_slow_or_lost_answer_is_bounded_and_sent_again(trouble):
    with recorder(trouble) as server:
        done = deliver(EVENTS, event_endpoint(server.url), quick(timeout=0.5, attempts=20))
        assert done.sent == 3
        assert done.retries >= 1  # more on a busy machine
        assert server.bodies[:2] == [EVENTS[0], EVENTS[0]]
        assert list({body["number"]: body for body in server.bodies}.values()) == EVENTS


def test_the_deadline_bounds_a_server_that_never_answers():
    with recorder(*[slowly] * 9) as server:
        policy = DeliveryPolicy(timeout=5, deadline=0.6, sleep=lambda _: None)
        with pytest.raises(DeliveryError) as caught:
            deliver(EVENTS, event_endpoint(server.url), policy)
        assert caught.value.code == "delivery.deadline"


def test_an_idle_connection_that_was_closed_is_opened_again():
    def closes(handler: Recording) -> None:
        handler.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        handler.close_connection = True

    with recorder(closes, closes) as server:
        done = deliver(EVENTS, event_endpoint(server.url), quick())
        assert (done.sent, server.bodies) == (3, EVENTS)


def test_an_endless_answer_is_not_read():
    with recorder((201, "x" * 5_000_000, {})) as server:
        assert deliver(EVENTS, event_endpoint(server.url), quick()).sent == 3
        assert len(server.connections) == 2


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(DeliveryError, match=r"refused, 6 times; 0 of 3") as caught:
        deliver(EVENTS, event_endpoint(url), quick())
    assert caught.value.code == "delivery.unreachable"


def test_plain_http_where_tls_is_spoken_to():
    with recorder() as server, pytest.raises(DeliveryError, match=r"TLS|reset|closed|not HTTP"):
        deliver(EVENTS, event_endpoint(server.url.replace("http", "https")), quick(attempts=2, timeout=1))


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:5000", "ftp://host/x", "http://", "file:///etc/passwd", "http://host:99999999"),
        *("http://user:pw@host/", "http://host/?token=x", "http://host/#f", "http://host/a b", "http://h/\r\nX: y"),
        "http://[::1",
    ],
)
def test_an_address_that_is_none(url):
    with pytest.raises(UsageError) as caught:
        event_endpoint(url)
    assert caught.value.code == "usage.address"
    assert "pw" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Other: 1", "ä", "\0"])
def test_a_token_that_no_header_holds_is_refused_and_not_shown(token):
    with pytest.raises(UsageError) as caught:
        event_endpoint("http://h", token)
    assert (caught.value.code, token in str(caught.value)) == ("usage.token", False)


# ---- the command ---------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENLINEAGE_API_KEY", raising=False)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sql").write_text("create table a (id int); create view b as select id from a;")
    assert main(["init"]) == 0
    assert main(["ingest", "sql", "a.sql"]) == 0
    capsys.readouterr()
    return tmp_path


def echo(handler: Recording) -> str:
    """An answer that repeats the request's headers, as debugging proxies do."""
    return f"no such thing: {dict(handler.headers)}"


def test_the_command_sends_what_it_would_write(store, capsys):
    with recorder() as server:
        assert main(["export", "openlineage", "--to", server.url, "-o", "copy.jsonl"]) == 0
        shown = capsys.readouterr()
        written = [json.loads(line) for line in (store / "copy.jsonl").read_text().splitlines()]
        assert server.bodies == written
        assert f"{len(written)} events delivered to {server.url}/api/v1/lineage" in shown.out
        assert "wrote a copy to copy.jsonl" in shown.err.splitlines()


def test_the_token_is_never_shown(store, capsys, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", TOKEN)
    for status, code in ((201, 0), (401, 4), (422, 4), (503, 4), (302, 4)):
        with recorder(*[(status, echo, {"Retry-After": "999"})] * 9) as server:
            assert main(["export", "openlineage", "--to", server.url, "--debug"]) == code
            shown = capsys.readouterr()
            assert TOKEN not in shown.out + shown.err
            assert server.requests[0][1]["Authorization"] == f"Bearer {TOKEN}"


def test_a_token_file_comes_before_the_environment(store, capsys, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "other")
    (store / "token").write_text(f"{TOKEN}\n")
    with recorder() as server:
        assert main(["export", "openlineage", "--to", server.url, "--token-file", "token"]) == 0
        assert server.requests[0][1]["Authorization"] == f"Bearer {TOKEN}"
    assert main(["export", "openlineage", "--to", "http://h", "--token-file", "missing"]) == 2
    assert main(["export", "openlineage", "--token-file", "token"]) == 2
    assert main(["export", "openlineage", "--to", "http://h", "-f", "json"]) == 2


def test_rejected_events_are_listed_with_exit_code_4(store, capsys):
    with recorder(422, (400, "no dataset events here", {})) as server:
        assert main(["export", "openlineage", "--to", server.url]) == 4
    shown = capsys.readouterr()
    assert "event 2" in shown.err
    assert "400: no dataset events here" in shown.err
    assert "1 event delivered" in shown.out
