"""A recorded run of which a part is spoiled, asked everything: plans, listings and private values come with a store.

A store may be another's. So what it holds about rows is not trusted either: it may be refused, or answered, but no
question may end in another error.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from bench.fuzz.mutate import spoiled_json

if TYPE_CHECKING:
    from govtool.store import FragmentRef, Store

PARTS = ("body", "listings", "values", "written")
"""What is spoiled of a run: its plan, the files that it read, its literals, the files that it wrote."""
_SQL = """create table r as select land, count(*) n, max(name) m from users where name <> 'x' group by land;
create table s as select u.name, r.n, row_number() over (order by u.name) k from users u join r on u.land = r.land"""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A script of SQL that ran with records.

    Attributes:
        store: Where it was committed.
        fragments: What that holds, by table.
        run: The id of the write whose parts are spoiled.
        output: What that wrote.
        source: What it read.
        version: The version of that.
    """

    store: Store
    fragments: dict[str, list[tuple[FragmentRef, bytes]]]
    run: str
    output: str
    source: str
    version: str

    def parts(self) -> tuple[str, ...]:
        """The texts of `PARTS`."""
        from govtool.model.records import PLANS, PRIVATE_VALUES, RECORD_RUNS, decode_plans, decode_private
        from govtool.model.records import decode_record_runs as decode_runs

        (run,) = [one for _, data in self.fragments[RECORD_RUNS] for one in decode_runs(data) if one.run == self.run]
        plans = [one for _, data in self.fragments[PLANS] for one in decode_plans(data)]
        (plan,) = [one for one in plans if one.digest == run.plan]
        private = [one for _, data in self.fragments[PRIVATE_VALUES] for one in decode_private(data)]
        (values,) = [one for one in private if one.run == self.run]
        return plan.body, run.listings, values.values, run.written


@lru_cache(maxsize=1)
def recorded_run() -> RecordedRun:
    """The run; its files stay until the process ends."""
    from govtool.api.workflow_runs import run_workflow
    from govtool.model.records import RECORD_RUNS, decode_record_runs
    from govtool.records.execute.inputs import relations
    from govtool.records.plan.codec import loads
    from govtool.records.split_plans import listing_version
    from govtool.store import Store

    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "in").mkdir()
    (place / "in" / "users.csv").write_text("name,land\nann,de\nbob,fr\nzoe,de\n")
    (place / "report.sql").write_text(_SQL)
    store = Store.init(str(place / "store"))
    run_workflow(place / "report.sql", place / "in", state=place / "state", store=place / "store")
    found: dict[str, list[tuple[FragmentRef, bytes]]] = {}
    for ref in store.fragments(store.resolve("HEAD")):
        found.setdefault(ref.table, []).append((ref, store.read(ref)))
    runs = [one for _, data in found[RECORD_RUNS] for one in decode_record_runs(data)]
    first = min(runs, key=lambda one: one.run)
    listed = relations(loads(first.listings).root)[0]
    return RecordedRun(store, found, first.run, first.output, first.inputs[0][1], listing_version(listed.files))


def corpus() -> list[bytes]:
    """The sound parts of the run; an input is a part's name, NUL, and its text."""
    return [f"{name}\0{text}".encode() for name, text in zip(PARTS, recorded_run().parts(), strict=True)]


def ask_spoiled(data: bytes) -> object:
    """Put a part into the store in the place of the sound one, and ask everything about the run and its rows.

    Text that is no JSON says where the sound part is changed: most spoiled text would be refused at once.
    """
    name, _, content = data.partition(b"\0")
    sound = dict(zip(PARTS, recorded_run().parts(), strict=True))
    at = name.decode("utf-8", "replace")
    part = at if at in sound else PARTS[len(data) % len(PARTS)]
    text = content.decode("utf-8", "replace")
    text = spoiled_json(text, sound[part], data)
    _ask(_with_part(part, text))
    return None


def _with_part(part: str, text: str) -> Store:
    """A store in memory with another text of a part of the run."""
    from govtool.model.records import (
        PLANS,
        PRIVATE_VALUES,
        RECORD_RUNS,
        PrivateValues,
        StoredPlan,
        decode_plans,
        decode_private,
        decode_record_runs,
        encode_plans,
        encode_private,
        encode_record_runs,
    )
    from govtool.store import Changes, Fragment, Store

    made = recorded_run()
    text = text.encode("utf-8", "replace").decode()
    digest = hashlib.sha256(text.encode()).hexdigest()
    (old,) = [one for _, data in made.fragments[RECORD_RUNS] for one in decode_record_runs(data) if one.run == made.run]
    add = []
    for table, parts in made.fragments.items():
        for ref, data in parts:
            new = data
            if table == RECORD_RUNS:
                fields: dict[str, Any] = {
                    "body": {"plan": digest},
                    "listings": {"listings": text},
                    "written": {"written": text},
                }
                runs = [
                    replace(one, **fields.get(part, {})) if one.run == made.run else one
                    for one in decode_record_runs(data)
                ]
                new = encode_record_runs(runs)
            elif table == PLANS and part == "body" and decode_plans(data)[0].digest == old.plan:
                new = encode_plans([StoredPlan(digest, text)])
            elif table == PRIVATE_VALUES and part == "values":
                private = {one.run: one.values for one in decode_private(data)} | {made.run: text}
                new = encode_private(PrivateValues(run, values) for run, values in private.items())
            add.append(Fragment(ref.source, table, new, ref.rows))
    store = Store.init(f"memory://fuzz-{digest}-{part}")
    store.commit(Changes(add=tuple(add)), message="m", author="a", batch="b")
    return store


def _ask(store: Store) -> None:
    from govtool.api.graph import Graph
    from govtool.app.workflow_graphs.graphs import graph_in
    from govtool.errors import GovtoolError

    made, commit = recorded_run(), store.resolve("HEAD")
    graph = Graph(store, commit)
    program = made.run.rpartition("/")[0]
    asks: tuple[Callable[[], object], ...] = (
        lambda: graph.trace_back(made.output, "true", run=made.run, verify=True).to_dict(),
        lambda: graph.trace_back(made.output, "n > 0", all_runs=True).to_dict(),
        lambda: graph.trace_forward(made.source, "name = 'ann'", run=made.run, all_runs=True).to_dict(),
        lambda: graph.replay(made.run, without=[made.source], where=["land = 'de'"]).to_dict(),
        lambda: graph.erase_plan([f"{made.source}.name=ann"], run=program).to_dict(),
        lambda: graph.workflow_why(program, "r").to_dict(),
        lambda: graph.workflow_delete(program, [f"{made.source}@{made.version}:0/0"]).to_dict(),
        lambda: graph_in(store, commit, f"run:{program}"),
        lambda: graph.show(made.run).to_dict(),
        lambda: graph.runs().to_dict(),
        lambda: graph.workflow_runs().to_dict(),
        lambda: graph.workflow_run(program).to_dict(),
    )
    with mock.patch.dict(sys.modules, {"pyspark.sql": None}):  # a JVM would take all of the time
        for ask in asks:
            try:
                ask()
            except GovtoolError:
                continue
