"""What an index costs after commits that change one file of a large graph."""

from __future__ import annotations

import json
import statistics
import sys
import textwrap
from typing import Any

import pyarrow as pa

from bench.processes import Cost, run
from govtool.model.columnar import DERIVATIONS, write_table

COMMITS = 10
"""Commits one behind the other."""


def change_one_file(uri: str, number: int, *, first: bool) -> None:
    """Commit again what the first commit says, or the newest, but for one derivation: its first two edges go, a column
    and an edge come.
    """
    from govtool.model.columnar import read_table
    from govtool.store import Changes, Fragment, Store
    from govtool.store.resolve import resolve

    store = Store.open(uri)
    head = store.head()
    assert head is not None
    base = resolve(store.objects, "1", head.branch) if first else head
    refs = [ref for ref in store.fragments(base) if ref.table == DERIVATIONS]
    changed = sorted(refs, key=lambda ref: ref.sha256)[number % len(refs)]
    old = read_table(next(iter(store.read_many([changed]))), dictionary=False)
    place = 17 * number % old.num_rows
    row = old.slice(place, 1).to_pylist()[0]
    path = f"fresh_{number}"
    row["fingerprint"] = f"{number:016x}"
    row["columns"] = [*row["columns"], {**row["columns"][0], "path": path}]
    row["edges"] = [*row["edges"][2:], {**row["edges"][0], "target_path": path}]
    new = pa.concat_tables([old.slice(0, place), pa.Table.from_pylist([row], old.schema), old.slice(place + 1)])
    stays = tuple(ref for ref in refs if ref != changed)
    add = Fragment("bench", DERIVATIONS, write_table(new.combine_chunks()), new.num_rows)
    changes = Changes(retract=("bench",), add=(add,), uploaded=stays)
    store.commit(changes, message="one file", author="bench", batch=f"{head.batch}-{number}", summary={})


OPEN = textwrap.dedent(
    """
    import json, resource, sys, time

    from govtool.app.versions.index import open_index
    from govtool.store import Store

    store = Store.open(sys.argv[1])
    head = store.head()
    wall, cpu = time.perf_counter(), time.process_time()
    index = open_index(store, head)
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**spent, "MB": peak, "kind": type(index).__name__}))
    """
)
"""Opens the index of the head in a process of its own, what it imports for that included."""


def after_commits(uri: str, environment: dict[str, str], rounds: int) -> dict[str, Any]:
    """Medians of what the first opening after a commit of one file costs, and of the whole command; and what it costs
    when several such commits are one behind the other.
    """
    opened = [sys.executable, "-c", OPEN, uri]
    spent: list[dict[str, Any]] = []
    commands: list[Cost] = []
    for number in range(rounds):
        change_one_file(uri, 2 * number, first=True)
        spent.append(json.loads(run(opened, environment)[1]))
        change_one_file(uri, 2 * number + 1, first=True)
        command = [sys.executable, "-c", "from govtool.cli.main import main; main()", "index"]
        commands.append(run(command, environment)[0])
    for number in range(COMMITS):
        change_one_file(uri, 100 + number, first=False)
    several = json.loads(run(opened, environment)[1])
    return {
        "kind": ", ".join(sorted({one["kind"] for one in spent})),
        **{name: statistics.median(one[name] for one in spent) for name in ("wall", "cpu", "MB")},
        "several wall": several["wall"],
        "several cpu": several["cpu"],
        "command wall": statistics.median(cost.wall for cost in commands),
        "command cpu": statistics.median(cost.cpu for cost in commands),
    }
