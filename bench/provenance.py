"""Tables 2 and 3 of "Making a Cloud Provenance-Aware" (TaPP 2009) on a generated workload, with govtool beside."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from unittest import mock

from bench import servers
from bench.page import table
from bench.passlike import Answers, Stored, Version, answer, architectures, batches, generate, query_costs
from bench.proxy import Proxy
from bench.store import running_server

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.model import Derivation

TITLE = "## Provenance on cloud storage"

BATCH = 4096
SAMPLE = 200


def section() -> str:
    """Measure, and write the section."""
    versions = generate()
    expected = answer(versions)
    with running_server() as server, Proxy((server.host, server.port)) as proxy, tempfile.TemporaryDirectory() as cache:
        environment = {**servers.environment(proxy.url), "GOVTOOL_CACHE": cache}
        with mock.patch.dict(os.environ, environment):
            uri = f"s3://{servers.BUCKET}/{uuid.uuid4().hex}"
            batched, commits = _store(proxy, uri, versions, BATCH)
            cold = _ask(proxy, uri, expected)
            warm = _ask(proxy, uri, expected)
            single, _ = _store(proxy, f"s3://{servers.BUCKET}/{uuid.uuid4().hex}", versions[-SAMPLE:], 1)
    each = single.operations / SAMPLE
    one_by_one = Stored(round(single.size / SAMPLE * len(versions)), round(each * len(versions)))
    return _page(versions, expected, batched, commits, cold, warm, one_by_one, each)


def derivation(version: Version) -> Derivation:
    """What govtool keeps of an object version: a derivation that reads its inputs; records go with the statement."""
    from govtool.model import ROWS, ColumnRef, Derivation, Edge, EdgeKind, Statement
    from govtool.names import quote

    records = dict(version.records)
    statement = Statement(
        fingerprint="",
        kind=version.kind,
        dialect="",
        file=records.get("NAME", ""),
        source="pass",
        how="declared",
        text=json.dumps(version.records),
    )
    edges = tuple(Edge(ColumnRef(quote(name), ROWS), ROWS, EdgeKind.READ) for name in version.inputs)
    return Derivation(quote(version.name), "file", "replace", statement, edges=edges)


def _store(proxy: Proxy, uri: str, versions: list[Version], size: int) -> tuple[Stored, int]:
    """Commit versions in batches, and count: bytes of the bodies sent, and requests."""
    from govtool.model.columnar import DERIVATIONS, encode
    from govtool.store import Changes, Fragment, Store

    Store.init(uri)
    proxy.reset()
    commits = 0
    for n, part in enumerate(batches(versions, size)):
        fragment = Fragment("pass", DERIVATIONS, encode(map(derivation, part)), len(part))
        store = Store.open(uri)
        commits += store.commit(Changes(add=(fragment,)), message="", author="pass", batch=str(n)).created
    return Stored(sum(e.sent for e in proxy.exchanges), len(proxy.exchanges)), commits


def _ask(proxy: Proxy, uri: str, expected: Answers) -> Stored:
    """Open the graph, answer the three questions, check the answers, and say what that cost."""
    from govtool.app.versions.index import open_index
    from govtool.store import Store

    proxy.reset()
    store = Store.open(uri)
    index = open_index(store, store.head())
    _check("Q1", expected.provenance, dict(_provenance(index)))
    outputs = frozenset(_outputs_of(index, "/usr/bin/blast"))
    _check("Q2", expected.outputs, outputs)
    _check("Q3", expected.descendants, frozenset(_descendants(index, outputs)))
    return Stored(sum(e.received for e in proxy.exchanges), len(proxy.exchanges))


def _provenance(index: Index) -> Iterable[tuple[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]]:
    for dataset in range(index.dataset_count):
        (maker,) = index.makers(dataset)
        records = tuple((key, value) for key, value in json.loads(index.statement(maker).text))
        sources = [index.edge_source[edge] for edge in index.in_edges(index.rows(dataset))]
        inputs = tuple(sorted(_bare(index.dataset_name(index.node_dataset[node])) for node in sources))
        yield _bare(index.dataset_name(dataset)), (inputs, records)


def _outputs_of(index: Index, program: str) -> Iterable[str]:
    for dataset in range(index.dataset_count):
        if any(index.field(maker, "file") == program for maker in index.makers(dataset)):
            for edge in index.out_edges(index.rows(dataset)):
                made = index.node_dataset[index.edge_target[edge]]
                if all(index.field(maker, "kind") == "file" for maker in index.makers(made)):
                    yield _bare(index.dataset_name(made))


def _descendants(index: Index, names: Iterable[str]) -> Iterable[str]:
    from govtool.names import quote
    from govtool.query.changes.impact import impact

    for name in names:
        for entry in impact(index, quote(name)).columns:
            yield _bare(entry.dataset)


def _bare(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name


def _check(question: str, expected: Any, found: Any) -> None:
    if question == "Q1":
        expected = {name: (tuple(sorted(inputs)), records) for name, (inputs, records) in expected.items()}
    if expected != found:
        raise RuntimeError(f"{question} is not what brute force gives: {len(expected)} against {len(found)}")


def _page(
    versions: list[Version],
    expected: Answers,
    batched: Stored,
    commits: int,
    cold: Stored,
    warm: Stored,
    one_by_one: Stored,
    each: float,
) -> str:
    data = sum(version.data for version in versions)
    files = sum(version.kind == "file" for version in versions)
    costs = query_costs(versions, expected)
    computed = architectures(versions)

    def stored(name: str, found: Stored) -> list[str]:
        times = found.operations / batched.operations
        share = f"{100 * found.size / data:.2f}%"
        return [name, f"{found.size / 1e6:,.1f} MB", share, f"{found.operations:,}", f"{times:,.1f}"]

    storage = [
        ["data alone", f"{data / 1e6:,.1f} MB", "", f"{files:,}", ""],
        *(stored(f"{name}, by its formula", figures) for name, figures in computed.items()),
        stored(f"**govtool**, {BATCH:,} versions a commit, counted", batched),
        stored(f"govtool, one commit a version, {SAMPLE} counted and scaled", one_by_one),
    ]

    def cell(found: Stored) -> str:
        size = f"{found.size / 1e6:,.1f} MB" if found.size > 100_000 else f"{found.size / 1000:,.1f} kB"
        return f"{size} / {found.operations:,}"

    questions = {
        "Q1": "Q1 provenance of every version",
        "Q2": f"Q2 files that blast wrote ({len(expected.outputs):,})",
        "Q3": f"Q3 all descendants of those ({len(expected.descendants):,})",
    }
    rows = [[text, cell(costs["A"][q]), cell(costs["B"][q]), cell(cold), cell(warm)] for q, text in questions.items()]
    return f"""{TITLE}

Tables 2 and 3 of Muniswamy-Reddy, Macko and Seltzer (TaPP 2009) re-created: {len(versions):,} object versions of a
compile, a Blast run and the Provenance Challenge workflow (`bench/passlike.py`), for the paper's architectures by its
formulas, for govtool as counted at a proxy before a server ({commits} commits; bytes are bodies sent, or received for
questions).
The answers to all three questions are compared with brute force. Goals: bytes at most 2% of the data; 100 times fewer
operations than each of the three.

{table(["storing", "bytes", "of the data", "operations", "times govtool's"], storage)}

One commit a version takes {each:.1f} requests each: batches are what makes the difference. Questions, as bytes /
operations; govtool's first column has no local index yet (one such opening serves all three questions), the last one
has:

{table(["asking", "A", "B", "govtool, cold", "govtool, indexed"], rows)}
"""
