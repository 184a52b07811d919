"""Readers of what others wrote, each as a function of bytes, with sound inputs to begin from.

A reader may refuse an input with a ``GovtoolError``; anything else that it raises is a crash.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench.fuzz.mutate import spoiled_json
from bench.fuzz.programs import ask_program, program_corpus
from bench.fuzz.projects import given, given_corpus, project, project_corpus, sidecar, sidecar_corpus
from bench.fuzz.recorded import ask_spoiled, corpus

FIXTURES = Path(__file__).parents[2] / "fixtures"
_LARGEST = 200_000


@dataclass(frozen=True, slots=True)
class Target:
    """A reader under test."""

    name: str
    run: Callable[[bytes], object]
    corpus: Callable[[], Sequence[bytes]]


def _files(*patterns: str) -> list[bytes]:
    found = []
    for pattern in patterns:
        for path in sorted(FIXTURES.glob(pattern)):
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            found.append(data[:_LARGEST])
    return found


def _file(data: bytes, name: str, read: Callable[[Path], object]) -> object:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        return read(path)


# ---- SQL, the batch protocol, templates ---------------------------------------------------------------------------


def _batch(data: bytes) -> object:
    from govtool.app.lineage.batch import serve

    return list(serve(io.BytesIO(data)))


def _batch_corpus() -> list[bytes]:
    import json

    statements = [text.decode("utf-8", "replace").split("-- =>")[0] for text in _files("lineage/*/*.sql")]
    return [json.dumps({"id": 1, "sql": sql[:2000], "dialect": "postgres"}).encode() + b"\n" for sql in statements]


def _sql(data: bytes) -> object:
    from govtool.api.lineage import lineage

    return _file(data, "script.sql", lambda path: list(lineage(paths=[str(path)]).rows()))


def _template_corpus() -> list[bytes]:
    found = [
        text for text in _files("lineage/*/*.sql", "dbt/**/*.sql", "shop/**/*.sql") if b"{{" in text or b"{%" in text
    ]
    return found or [b"{% for i in range(3) %}select {{ i }} from {{ ref('a') }};{% endfor %}"]


# ---- logs and events ------------------------------------------------------------------------------------------------


def _log(data: bytes) -> object:
    from govtool.capture.logs.read import LogOptions, check_options, read_log

    return list(read_log(io.BytesIO(data), "a.log", check_options(LogOptions())))


def _openlineage(data: bytes) -> object:
    from govtool.app.ingest.openlineage import read_events
    from govtool.capture.openlineage.derive import derive

    def read(path: Path) -> object:
        found = read_events([str(path)])
        return derive(found.state, found.texts, [], source="s")

    return _file(data, "events.jsonl", read)


def _request(data: bytes) -> object:
    from govtool.app.serve.admission import RefusedError
    from govtool.app.serve.endpoint import accepted

    try:
        return accepted(data)
    except RefusedError:
        return None


def _prov(data: bytes) -> object:
    from govtool.app.ingest.prov import ProvRequest, ingest_prov
    from govtool.store import Store

    store = Store.init("memory://")
    return _file(data, "doc.json", lambda path: ingest_prov(store, ProvRequest(paths=(str(path),))))


def _eventlog(data: bytes) -> object:
    from govtool.app.ingest.spark import SparkRequest, find_logs, read
    from govtool.capture.spark.eventlog.gathered import EventLogFindings

    def read_file(path: Path) -> object:
        request = SparkRequest(paths=(str(path),))
        return read(find_logs([str(path)]), EventLogFindings("s"), request)

    return _file(data, "eventlog", read_file)


def _plan(data: bytes) -> object:
    from govtool.capture.spark.plantext.read import read_plan
    from govtool.capture.spark.plantext.tree import PlanTextError

    try:
        return read_plan(data.decode("utf-8", "replace"))
    except PlanTextError:
        return None


def _plan_corpus() -> list[bytes]:
    import json

    plans = []
    for log in _files("spark/logs/*.gz"):
        for line in log.splitlines():
            if b"physicalPlanDescription" in line:
                try:
                    plans.append(json.loads(line)["physicalPlanDescription"].encode())
                except ValueError:
                    continue
    return plans


_ARTIFACTS = ("manifest.json", "catalog.json", "run_results.json", "sources.json")


def _dbt(data: bytes) -> object:
    """Ingest the artifacts of a dbt project, one of which is spoiled."""
    from govtool.app.ingest.dbt import DbtRequest, ingest_dbt
    from govtool.store import Store

    name, _, content = data.partition(b"\0")
    at = name.decode("utf-8", "replace")
    file = at if at in _ARTIFACTS else _ARTIFACTS[len(data) % len(_ARTIFACTS)]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for each in _ARTIFACTS:
            text = (FIXTURES / "dbt" / "shop" / "target" / each).read_text()
            made = spoiled_json(content.decode("utf-8", "replace"), text, data) if each == file else text
            Path(folder, each).write_text(made, encoding="utf-8", errors="surrogateescape")
        return ingest_dbt(Store.init("memory://"), DbtRequest(folder))


def _dbt_corpus() -> list[bytes]:
    folder = FIXTURES / "dbt" / "shop" / "target"
    return [name.encode() + b"\0" + (folder / name).read_bytes()[:_LARGEST] for name in _ARTIFACTS]


# ---- policies -------------------------------------------------------------------------------------------------------


def _policy(data: bytes) -> object:
    from govtool.policy.files.load import load

    return _file(data, "policy.yaml", lambda path: load([(path, path.name)]))


def _policy_corpus() -> list[bytes]:
    packs = Path(__file__).parents[2] / "govtool"
    return [path.read_bytes() for path in [*sorted(packs.glob("**/*.yaml")), *sorted(packs.glob("**/*.yml"))]] or [
        b"rules:\n  - id: a\n    columns: 'mart.**'\n"
    ]


# ---- provenance graphs, plans of erasure ----------------------------------------------------------------------------


def _graph(data: bytes) -> object:
    """Read a graph from a file, write it in every format, and ask it what depends on what."""
    from govtool.api.workflow_graph import provenance_graph
    from govtool.errors import GovtoolError

    name = "graph.graphml" if data.lstrip()[:1] == b"<" else "graph.json"
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        graph = provenance_graph(str(path))
    tokens = [str(graph.fine.label_of(node)) for node in graph.fine.tokens().tolist()[:3]]
    asks: tuple[Callable[[], object], ...] = (
        *(lambda form=form: list(graph.export(form)) for form in ("json", "dot", "graphml", "prov-json")),
        *(lambda token=token: graph.delete(token).to_dict() for token in tokens),
        *(lambda token=token: graph.subgraph(token).to_dict() for token in tokens),
        lambda: graph.depends(tokens[-1], tokens).to_dict() if tokens else None,
        lambda: list(graph.zoom_out(*graph.modules).export("json")),
    )
    for ask in asks:
        try:
            ask()
        except GovtoolError:
            continue
    return None


def _graph_corpus() -> list[bytes]:
    from govtool.api.workflow_graph import provenance_graph

    graphml = "\n".join(provenance_graph(str(FIXTURES / "graphs" / "dealership.json")).export("graphml"))
    return [*_files("graphs/*.json"), graphml.encode(), _ODD_VALUES]


_ODD_VALUES = b"""{"nodes": [
{"id": "r0", "kind": "p", "type": "st", "label": "A:0"},
{"id": "r1", "kind": "p", "type": "st", "label": "A:1"},
{"id": "c0", "kind": "v", "type": "val", "label": "const", "value": "1e99", "value_type": "decimal"},
{"id": "c1", "kind": "v", "type": "val", "label": "const", "value": 1.5},
{"id": "t0", "kind": "v", "type": "val", "label": "\xe2\x8a\x97"},
{"id": "t1", "kind": "v", "type": "val", "label": "\xe2\x8a\x97"},
{"id": "S", "kind": "v", "type": "val", "label": "MAX", "value": "3.10", "value_type": "decimal"},
{"id": "g", "kind": "p", "type": "op", "label": "[<]"}],
"edges": [["r0", "t0"], ["c0", "t0"], ["r1", "t1"], ["c1", "t1"], ["t0", "S"], ["t1", "S"], ["S", "g", "left"],
["c0", "g", "right"]]}
"""


def _erasure(data: bytes) -> object:
    """Check a plan and a certificate of an erasure; what they name is not there."""
    from govtool.app.erasure.apply import check_originals, check_target, read_plan_file
    from govtool.app.erasure.certify import verify_erasure
    from govtool.errors import GovtoolError

    def read(path: Path) -> object:
        with contextlib.suppress(GovtoolError):
            verify_erasure(path)
        given = read_plan_file(path)
        check_target(path.parent / "to", given)
        check_originals(given)
        return None

    return _file(data, "certificate.json", read)


def _erasure_corpus() -> list[bytes]:
    import json

    from govtool.answers.erasure_certificate import SCHEMA as CERTIFICATE
    from govtool.answers.row_erasure import RowErasureAnswer

    uri = "file:///nowhere/users/a.parquet"
    file = {"uri": uri, "size": 3, "modified": 1, "sha256": "0" * 64}
    asked = {"subjects": ["users.id=1"], "keys": [], "no_subject": [], "run": "a/0", "all_runs": False}
    plan = {
        "schema": RowErasureAnswer.schema, "commit": {"seq": 1, "id": "0" * 64}, "request": asked,
        "tokens": {"file:///nowhere/users": ["file:///nowhere/users@0:0/0"]}, "order": ["file:///nowhere/users"],
        "datasets": [{"dataset": "file:///nowhere/users", "delete": [[1]], "unknown": [], "files": [file]}],
        "no_subject": [],
    }  # fmt: skip
    copy = {"path": "users/a.parquet", "bytes": 3, "sha256": "0" * 64, "changed": True}
    numbers = dict.fromkeys(("deleted", "changed", "appeared", "unchanged", "rows_after"), 1)
    key = {"column": "id", "digests": ["0" * 64]}
    dataset = {
        "dataset": "users", "verified": "searched", **numbers, "folder": "users", "files": [copy], "keys": [key]
    }  # fmt: skip
    names = ("subjects", "unchanged", "unknown", "not_written", "not_searched", "not_reached", "beyond")
    lists: dict[str, list[object]] = {name: [] for name in names}
    certificate = {"schema": CERTIFICATE, "ended": "", "salt": "00", **lists, "datasets": [dataset]}
    return [json.dumps(each, indent=0).encode() for each in (plan, certificate)]


# ---- objects of a store ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def sound_store() -> dict[str, bytes]:
    """The objects of a small store with every kind of them."""
    from govtool.app.ingest.sql import ingest_sql
    from govtool.app.ingest.sql_options import SqlRequest
    from govtool.store import Changes, Fragment, Store, branches, tags
    from govtool.store.upkeep.compact import compact
    from govtool.store.upkeep.forget import Removal, forget

    store = Store.init("memory://")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "a.sql")
        path.write_text("create table a (x int);\ncreate view v as select x, y from a, b;\nselect nonsense from;\n")
        ingest_sql(store, SqlRequest(paths=(str(path),), dialect="postgres"))
    for number in range(40):
        fragment = Fragment(f"s{number % 7}", "numbers", b"%d" % number, 1)
        store.commit(Changes((fragment.source,), (fragment,)), message="m", author="a", batch=f"b{number}")
    branches.create_branch(store, "next", store.resolve("12"), author="a")
    tags.create_tag(store, "v1", store.resolve("3"), author="a")
    compact(store, author="a")
    name = next((ref.table, ref.sha256) for ref in store.fragments(store.resolve("HEAD")) if ref.table == "numbers")
    forget(store, Removal({name: None}), "main", author="a", message="m")
    return {info.key: store.objects.get(info.key) or b"" for info in store.objects.scan("")}


def _store_corpus() -> list[bytes]:
    return [key.encode() + b"\0" + data for key, data in sound_store().items()]


def _store(data: bytes) -> object:
    """Put an object into the store, under its name, and ask the store everything."""
    from govtool.app.coverage.sources import read_coverage
    from govtool.app.versions.index import built_index
    from govtool.errors import GovtoolError
    from govtool.store import Store, branches, tags
    from govtool.store.backends.location import open_objects
    from govtool.store.upkeep.fsck import fsck

    key, _, content = data.partition(b"\0")
    name = key.decode("utf-8", "replace")
    sound = sound_store()
    if name not in sound:
        name = sorted(sound)[len(data) % len(sound)]
    objects = open_objects(f"memory://fuzz-{id(data)}")
    for each, text in sound.items():
        objects.put(each, content if each == name else text)
    try:
        store = Store.open_objects(objects)
    except GovtoolError:
        return None
    result = fsck(store)
    for ask in (
        lambda: [store.read(ref) for ref in store.fragments(store.resolve("HEAD"))],
        lambda: built_index(store, store.resolve("HEAD")),
        lambda: read_coverage(store, store.resolve("5"), with_diagnostics=True),
        lambda: list(store.log()),
        lambda: (branches.list_branches(store), tags.list_tags(store)),
    ):
        try:
            ask()
        except GovtoolError:
            continue
    if content != sound[name] and not result.problems and not name.startswith("hint/"):
        raise AssertionError(f"fsck found nothing in {name}")
    return None


def _fragment(data: bytes) -> object:
    """Decode a fragment whose name is right, as one that somebody made: all readers of tables."""
    from govtool.app.coverage.sources import decode_diagnostics, source_rows
    from govtool.errors import GovtoolError
    from govtool.model.columnar import decode, read_table
    from govtool.model.fact import decode_facts
    from govtool.model.positions import decode_cost, decode_positions
    from govtool.model.records import decode_plans, decode_private, decode_record_runs
    from govtool.model.run import decode_runs
    from govtool.model.version import decode_version
    from govtool.model.workflow_run import decode_workflow_runs
    from govtool.store.tombstones import decode_tombstones
    from govtool.workflow.storage.parquet import description, graph_from

    readers: tuple[Callable[[bytes], object], ...] = (
        decode, read_table, decode_facts, decode_runs, decode_plans, decode_private, decode_record_runs, decode_version,
        decode_positions, decode_cost, decode_workflow_runs, description,
        lambda found: graph_from([found], [_graph_parts()[1]]), lambda found: graph_from([_graph_parts()[0]], [found]),
        lambda found: decode_tombstones(found, "x"),
    )  # fmt: skip
    for reader in readers:
        try:
            reader(data)
        except GovtoolError:
            continue
    del decode_diagnostics, source_rows
    return None


def _fragment_corpus() -> list[bytes]:
    recorded = [data for parts in recorded_fragments().values() for data in parts]
    return [*(data for key, data in sound_store().items() if key.startswith("frag/")), *recorded, *_graph_parts()]


@lru_cache(maxsize=1)
def _graph_parts() -> tuple[bytes, bytes]:
    """The nodes and the edges of a graph, as a store holds them."""
    from govtool.workflow.formats.read_json import read_json
    from govtool.workflow.storage.parquet import edge_parts, node_parts

    graph = read_json((FIXTURES / "graphs" / "dealership.json").read_bytes(), "g")
    return next(iter(node_parts(graph)))[0], next(iter(edge_parts(graph)))[0]


@lru_cache(maxsize=1)
def recorded_fragments() -> dict[str, list[bytes]]:
    """The fragments, by table, that a script of SQL leaves which ran with records."""
    from govtool.api.workflow_runs import run_workflow
    from govtool.store import Store

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        place = Path(folder)
        (place / "in").mkdir()
        (place / "in" / "users.csv").write_text("name,land\nann,de\nbob,fr\n")
        (place / "report.sql").write_text(
            "create table r as select land, count(*) n from users where name <> 'x' group by 1"
        )
        store = Store.init(str(place / "store"))
        run_workflow(place / "report.sql", place / "in", state=place / "state", store=place / "store")
        found: dict[str, list[bytes]] = {}
        for ref in store.fragments(store.resolve("HEAD")):
            found.setdefault(ref.table, []).append(store.read(ref))
    return found


def _recorded(data: bytes) -> object:
    """Put a stored plan together with what its listing and its private values say, and its inputs."""
    from govtool.app.records.tables import listed_inputs
    from govtool.model.records import RecordRun
    from govtool.records.split_plans import put_together, relation_of

    body, listings, values, written = (data.decode("utf-8", "replace").split("\0") + [""] * 4)[:4]
    put_together(body, listings, values or None, {0: "a"})
    relation_of(written, "a")
    return listed_inputs(RecordRun("a/0", "p", "a", ((0, "b"),), listings))


def _recorded_corpus() -> list[bytes]:
    from govtool.model.records import decode_plans, decode_private, decode_record_runs

    tables = recorded_fragments()
    (plan,), (run,) = decode_plans(tables["plans"][0]), decode_record_runs(tables["record_runs"][0])
    (values,) = decode_private(tables["private_values"][0])
    return ["\0".join((plan.body, run.listings, values.values, run.written)).encode()]


TARGETS = (
    Target("batch", _batch, _batch_corpus),
    Target("sql", _sql, lambda: _files("lineage/*/*.sql", "logs/script.sql")),
    Target("templates", _sql, _template_corpus),
    Target("logs", _log, lambda: _files("logs/*[!d]")),
    Target("openlineage", _openlineage, lambda: _files("openlineage/*")),
    Target("request", _request, lambda: _files("openlineage/*.json")),
    Target("prov", _prov, lambda: _files("prov/*.json")),
    Target("eventlog", _eventlog, lambda: _files("spark/logs/*.gz")),
    Target("dbt", _dbt, _dbt_corpus),
    Target("plan", _plan, _plan_corpus),
    Target("policy", _policy, _policy_corpus),
    Target("graph", _graph, _graph_corpus),
    Target("erasure", _erasure, _erasure_corpus),
    Target("store", _store, _store_corpus),
    Target("fragment", _fragment, _fragment_corpus),
    Target("recorded", _recorded, _recorded_corpus),
    Target("traces", ask_spoiled, corpus),
    Target("programs", ask_program, program_corpus),
    Target("project", project, project_corpus),
    Target("given", given, given_corpus),
    Target("sidecar", sidecar, sidecar_corpus),
)
"""Everything that is fuzzed."""
