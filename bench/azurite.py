"""Azurite, the emulator of Azure Blob Storage, on loopback: from the path, or installed by npm where there is one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.servers import BUCKET, Server, free_ports, running, wait

_VERSION = "3"
_PROGRAM = "azurite-blob"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and key that every emulator has; Azure documents them."""
_API = "2021-08-06"
_INSTALL_SECONDS = 240


def environment(endpoint: str) -> dict[str, str]:
    """The variables that make obstore talk to the emulator."""
    return {
        "AZURE_STORAGE_USE_EMULATOR": "true",
        "AZURITE_BLOB_STORAGE_URL": endpoint,
        "AZURE_ALLOW_HTTP": "true",
    }


def program(folder: Path) -> str:
    """The emulator's program: on the path, in ``folder`` from last time, or installed there.

    Raises:
        FileNotFoundError: there is none, and it cannot be installed; the message says why.
    """
    if found := shutil.which(_PROGRAM):
        return found
    own = folder / "node_modules" / ".bin" / _PROGRAM
    if own.exists():
        return str(own)
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("neither azurite-blob nor npm is installed")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"azurite@{_VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise FileNotFoundError("npm install azurite takes too long") from error
    if done.returncode or not own.exists():
        raise FileNotFoundError(f"npm install azurite failed: {done.stderr.strip()[-200:]}")
    return str(own)


@contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    """A running emulator with the container `BUCKET`.

    Args:
        folder: Where to install it, if need be.

    Raises:
        FileNotFoundError: see `program`.
    """
    (port,) = free_ports(1)
    command = [program(folder), "--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with running(command, Path(os.devnull)) as process:
        server = Server("azurite", "127.0.0.1", port)
        wait(f"{server.url}/", process)
        _make_container(server)
        yield server


def _make_container(server: Server) -> None:
    """Create the container: "Create Container" of the REST API, authorised by shared key."""
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    path = f"/{_ACCOUNT}/{BUCKET}"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_API}\n/{_ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": _API,
        "Authorization": f"SharedKey {_ACCOUNT}:{signature}",
        "Content-Length": "0",
    }
    request = urllib.request.Request(f"{server.url}{path}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=30).close()
