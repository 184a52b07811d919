"""``serve openlineage``: a real server in a process of its own, and its parts."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import govtool as package
from govtool.app.serve.event_spool import EventSpool
from govtool.errors import StoreError
from govtool.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "openlineage"
LINES = (FIXTURES / "spark_orders.jsonl").read_bytes().splitlines()
RUN = "0193400a-0000-7000-8000-00000000abcd"


class Server:
    """A running server; its commits are told on stderr."""

    def __init__(self, folder: Path, every: str = "0.1", more: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "govtool",
                "serve",
                "openlineage",
                "--port",
                "0",
                "--every",
                every,
                "--spool",
                "spool",
                *more,
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        url = self.process.stdout.readline().decode().strip()
        assert url.endswith("/api/v1/lineage"), self.process.stderr.read() if self.process.poll() else url
        self.port = urlsplit(url).port

    def post(self, body: bytes, path: str = "/api/v1/lineage", **headers: str) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        stated = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection.request("POST", path, body, stated)
        answer = connection.getresponse()
        stated = json.loads(answer.read() or b"{}")
        connection.close()
        return answer.status, stated

    def raw(self, data: bytes) -> bytes:
        common = b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as plug:
            plug.sendall(data.replace(b" HTTP/1.1\r\n", common, 1))
            plug.shutdown(socket.SHUT_WR)
            found = b""
            with suppress(OSError):  # what the server did not read
                while piece := plug.recv(65536):
                    found += piece
            return found

    def stop(self, how: int = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(how)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()


@pytest.fixture
def start(govtool, project):
    govtool("init")
    running: list[Server] = []

    def make(**arguments) -> Server:
        running.append(Server(project, **arguments))
        return running[-1]

    yield make
    for server in running:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The one server of tests that only send: it goes on whatever they send, and ends well."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOVTOOL_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))
        patch.delenv("GOVTOOL_STORE", raising=False)
        Store.init(str(folder / ".govtool"))
        server = Server(folder, every="3600")
    yield server
    code, err = server.stop()
    assert code == 0
    assert "Traceback" not in err
    assert "commit 1" in err


def send_with_the_client_of_openlineage(server: Server) -> None:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import Dataset, Job, Run, RunEvent, RunState
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    transport = HttpTransport(HttpConfig(url=f"http://127.0.0.1:{server.port}"))
    client = OpenLineageClient(transport=transport)
    run = Run(runId=RUN)
    for state in (RunState.START, RunState.COMPLETE):
        client.emit(
            RunEvent(
                eventType=state,
                eventTime="2026-11-20T00:00:00Z",
                run=run,
                job=Job(namespace="n", name="j"),
                inputs=[Dataset(namespace="file", name="/in")],
                outputs=[Dataset(namespace="file", name="/out")],
            )
        )
    client.close()


def test_bad_requests_are_refused_and_survived(served):
    server = served
    many = json.dumps([{}] * 1001).encode()
    cases = [
        (b"rubbish", {}, 400),
        (b"", {}, 400),
        (b"[1]", {}, 400),
        (b'{"job": 1}', {}, 400),
        (b'{"a":' * 100_000, {}, 400),
        (many, {}, 413),
        (b"\xff\xfe", {}, 400),
        (b'{"eventTime": "not a time", "job": {"name": "j"}}', {}, 400),
        (b'{"job": {"name": "j"}, "inputs": {}}', {}, 400),
        (b'{"job": {"name": "j"}, "outputs": [{"name": "o", "facets": {"columnLineage": {"fields": [1]}}}]}', {}, 400),
        (b"not gzip", {"Content_Encoding": "gzip"}, 400),
        (gzip.compress(LINES[0])[:-9], {"Content_Encoding": "gzip"}, 400),
        (gzip.compress(b" " * (17 << 20)), {"Content_Encoding": "gzip"}, 413),
        (LINES[0], {"Content_Encoding": "br"}, 415),
    ]
    for body, headers, expected in cases:
        status, stated = server.post(body, **headers)
        assert (status, "error" in stated) == (expected, True), body[:40]
    assert server.post(LINES[0], path="/elsewhere")[0] == 404
    assert b" 413 " in server.raw(b"POST /api/v1/lineage HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
    assert b" 400 " in server.raw(b"POST /api/v1/lineage HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
    assert b" 411 " in server.raw(b"POST /api/v1/lineage HTTP/1.1\r\n\r\n")
    assert b" 400 " in server.raw(b"POST /api/v1/lineage HTTP/1.1\r\nContent-Length: 50\r\n\r\n{half")
    assert b" 400 " in server.raw(b"POST /api/v1/lineage HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    server.raw(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(LINES[0]), LINES[0])
    assert b" 201 " in server.raw(b"POST /api/v1/lineage HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)
    for more in (b"Content-Length: 9", b"Transfer-Encoding: chunked"):  # a proxy may go by the other one
        head = b"POST /api/v1/lineage HTTP/1.1\r\nContent-Length: 4\r\n" + more
        assert b" 400 " in server.raw(head + b"\r\n\r\n2\r\n[]\r\n0\r\n\r\n")
    head = b"POST /api/v1/lineage HTTP/1.1\r\nTransfer-Encoding: gzip, chunked"
    assert b" 501 " in server.raw(head + b"\r\n\r\n2\r\n[]\r\n0\r\n\r\n")
    post = b"POST /api/v1/lineage HTTP/1.1\r\nContent-Type: application/json\r\n"
    for bad in (
        b"0x%x\r\n%s\r\n0\r\n\r\n",
        b"+%x\r\n%s\r\n0\r\n\r\n",
        b"%x\r\n%s..\r\n0\r\n\r\n",
        b"%x\r\n%s\r\n0\r\n",
    ):
        body = bad % (len(LINES[0]), LINES[0])
        assert b" 400 " in server.raw(post + b"Transfer-Encoding: chunked\r\n\r\n" + body), bad
    assert b" 400 " in server.raw(post + b"Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n[]")
    hidden = post + b"Host: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(LINES[0]), LINES[0])
    only = server.raw(b"GET / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(hidden), hidden))
    assert (b" 200 " in only, b" 201 " in only) == (True, False)
    assert server.post(LINES[0])[0] == 201


def test_killed_it_goes_on_with_what_it_had_accepted_and_commits_all_when_it_ends(start, govtool, project):
    server = start(every="3600")
    for line in LINES:
        assert server.post(line)[0] == 201
    server.stop(signal.SIGKILL)
    (spooled,) = (project / "spool").glob("*.jsonl")
    with spooled.open("ab") as file:
        file.write(b'{"half a li')
    again = start(every="3600")
    status, stated = again.post(json.dumps([json.loads(line) for line in LINES]).encode())
    assert (status, stated) == (201, {"accepted": 4})
    assert again.post(gzip.compress(LINES[0]), Content_Encoding="gzip")[0] == 201
    send_with_the_client_of_openlineage(again)
    assert len(govtool("log", "-f", "jsonl").out.splitlines()) == 0
    code, err = again.stop(signal.SIGTERM)
    assert code == 0
    assert "commit 1" in err
    (commit,) = [json.loads(line) for line in govtool("log", "-f", "jsonl").out.splitlines()]
    assert commit["summary"]["runs"] == {"COMPLETE": 2, "START": 1}
    assert govtool("show", RUN).code == 0
    assert govtool("explain", "s3://lake/shop/orders.amount").code == 0
    assert "not-json" not in govtool("coverage", "-v").out
    assert list((project / "spool").glob("*.jsonl")) == []


def test_two_servers_do_not_share_a_spool(served, store):
    done = store("serve", "openlineage", "--port", "0", "--spool", str(served.folder / "spool"))
    assert done.code == 4
    assert "store.spool" in done.err


def test_a_port_in_use_is_said(served, store):
    done = store("serve", "openlineage", "--port", str(served.port), "--spool", "other")
    assert done.code == 2
    assert "usage.address" in done.err


def test_a_full_disk_refuses_and_keeps_nothing_by_halves(tmp_path, monkeypatch):
    spool = EventSpool(tmp_path / "spool")
    spool.put([b"{}"])
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        spool.put([b'{"second": 1}'])
    monkeypatch.undo()
    spool.put([b'{"third": 1}'])
    (file,) = spool.take()
    assert file.read_bytes() == b'{}\n{"third": 1}\n'
    spool.close()


def test_a_spool_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        EventSpool(tmp_path / "file" / "below")


def test_web_pages_and_strangers_are_refused(served):
    """A page cannot choose these headers, or not without a question that this server does not answer."""
    server = served
    for headers, expected in [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": f"evil.example:{server.port}"}, 421),
        ({"Host": "[::1].evil.example"}, 400),
        ({"Host": "[::1"}, 400),
        ({"Host": "localhost:evil.example"}, 400),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": ""}, 415),
        ({"Host": f"127.0.0.1:{server.port}"}, 201),
        ({"Host": "[::1]:5000"}, 201),
        ({"Host": "LOCALHOST."}, 201),
        ({"Content_Type": "application/json; charset=utf-8"}, 201),
        ({"Content_Type": "application/cloudevents+json"}, 201),
    ]:
        assert server.post(LINES[0], **headers)[0] == expected, headers
    assert b" 400 " in server.raw(b"POST /api/v1/lineage HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")  # no Host
    twice = b"POST /api/v1/lineage HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n[]"
    assert b" 400 " in server.raw(twice)  # ``raw`` names localhost
    assert b" 501 " in server.raw(b"OPTIONS /api/v1/lineage HTTP/1.1\r\n\r\n")


def test_a_token_is_asked_for_and_events_stay_in_the_spool_while_the_store_is_gone(start, project):
    (project / "token").write_text("open-sesame\n")
    server = start(every="3600", more=("--token-file", "token", "--allow-host", "lineage"))
    assert server.post(LINES[0])[0] == 401
    assert server.post(LINES[0], Authorization="Bearer open")[0] == 401
    assert server.post(LINES[0], Authorization="Basic open-sesame")[0] == 401
    assert server.post(LINES[0], Authorization="Bearer open-sesame")[0] == 201
    assert server.post(LINES[0], Authorization="bearer open-sesame", Host="lineage:80")[0] == 201
    assert server.post(LINES[0], Authorization="Bearer open-sesame", Origin="http://x")[0] == 403
    (project / ".govtool").rename(project / "moved")
    code, err = server.stop()
    assert code == 4
    assert "store." in err
    assert len(list((project / "spool").glob("*.jsonl"))) == 1


def test_a_bad_token_file_is_a_mistake(govtool, project):
    govtool("init")
    (project / "empty").write_text("\n")
    for name in ("missing", "empty"):
        done = govtool("serve", "openlineage", "--port", "0", "--token-file", name)
        assert (done.code, "usage.token" in done.err) == (2, True)


def send_at_once(server: Server) -> None:
    """Start 40 runs, from eight senders."""
    template = json.loads(LINES[3])

    def send(number: int) -> None:
        for step in range(5):
            event = {**template, "run": {"runId": f"r{number}-{step}"}, "job": {"namespace": "n", "name": f"j{number}"}}
            assert server.post(json.dumps(event).encode())[0] == 201

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_slow_clients_hold_neither_requests_nor_commits_nor_the_end(start, govtool, project, sign):
    """140 connections never finish their header: of what others send at once nothing is lost, and a signal ends it."""
    server = start()
    plugs = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(140)]
    for plug in plugs:
        plug.sendall(b"POST /api/v1/lineage HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    send_at_once(server)
    deadline = time.monotonic() + 30
    while not list(project.glob(".govtool/log/main/*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "ingest openlineage" in govtool("log").out  # it commits now and then
    assert server.post(LINES[0])[0] == 201
    begun = time.monotonic()
    assert server.stop(sign)[0] == 0
    assert time.monotonic() - begun < 30
    for plug in plugs:
        plug.close()
    commits = [json.loads(line) for line in govtool("log", "-f", "jsonl").out.splitlines()]
    assert commits[0]["summary"]["runs"] == {"START": 41}


def test_a_request_that_trickles_ends_at_its_deadline(tmp_path):
    """A byte now and then does not extend the time."""
    from govtool.app.serve.endpoint import LineageServer

    spool = EventSpool(tmp_path / "spool")
    server = LineageServer(("127.0.0.1", 0), spool, lambda: None, deadline=0.5)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with socket.create_connection(server.server_address, timeout=30) as plug:
            head = b"POST /api/v1/lineage HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            plug.sendall(head + b"Content-Length: 1000\r\n\r\n")
            ended = 600
            for sent in range(600):
                try:
                    plug.sendall(b"{")
                except OSError:
                    ended = sent
                    break
                time.sleep(0.05)
            assert ended < 600
    finally:
        server.stop()
        thread.join()
        spool.close()


def test_many_small_values_are_refused_before_they_are_objects(served):
    server = served
    assert server.post(b"[" + b"{}," * 2_500_000 + b"{}]")[0] == 413
    assert server.post(b'{"a":[' + b"1," * 3_000_000 + b"1]}")[0] == 413
    status = Path(f"/proc/{server.process.pid}/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 250_000
