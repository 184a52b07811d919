"""What a trace costs: back from 1, 100 and 10,000 results, forward, raw rows by id, the cold command, and its rivals.

Recorded runs of L6 and L7 are made once and kept. Warm traces run in a process of their own, whose memory is measured:
first with an empty cache, then with the key sidecars that ``govtool index RUN --records`` built. CPU is that of the
process and of the JVM below it: where it is less than a goal in seconds, a machine with nothing else to do meets it.
The rivals give the same rows: a naive join, as in Titian's Figure 15, makes every association of results and rows
before it chooses; the re-execution filters the input in a warm Spark session, as a user without records would.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from bench.records.cpu import become_subreaper, cost_of, tree_cpu
from bench.records.data import made
from bench.records.job import WARM
from bench.records.overhead import GOVTOOL, recorded_job
from bench.records.overhead import environment as clean_environment
from bench.records.results import Results
from bench.records.workloads import WORKLOADS

if TYPE_CHECKING:
    from govtool.records.lineage import Lineage
    from govtool.records.plan.nodes import Relation
    from govtool.records.recordset import RecordSet

NAMES = ("L6", "L7")
SIZES = (1, 100, 10_000)
WARM_FIGURES = (*(f"back {size}" for size in SIZES), "forward", "raw 100")
PARTS = (
    *(("warm", figure) for figure in WARM_FIGURES),
    ("cold", "command"),
    ("index", "sidecars"),
    *(("warm with sidecars", figure) for figure in WARM_FIGURES),
    ("replay", "replay"),
    ("naive", "naive"),
    *(("bare", figure) for figure in (*(f"back {size}" for size in SIZES), "raw 100")),
    ("spark", "spark"),
)
"""Groups of figures, and the figures: each is measured in a process of its own."""
PLAIN, INDEXED = "cache-plain", "cache-indexed"
MAX_LISTED = 500
"""Up to so many users are constants of the bare scan."""
REPEATS = 5
COLD = 5
KEYS = {"L6": ("user", "query_term", "ip_addr", "timestamp"), "L7": ("user",)}


def measure(rows: int, folder: Path, results: Results) -> None:
    """Measure what is missing of each part of each workload."""
    become_subreaper()
    for name in NAMES:
        entry = results.entry(f"trace/{name}/{rows}")
        place = _run(name, rows, folder)
        entry["input bytes"] = made(folder / "data", WORKLOADS[name].reads, rows)
        write_choices(name, place)
        for group, figure in PARTS:
            found = entry.setdefault(group, {})
            if figure not in found:
                print(f"trace/{name}/{rows}: {group}, {figure} …", file=sys.stderr)
                found[figure] = _figure(group, figure, name, rows, place)
                results.save()


def _figure(group: str, figure: str, name: str, rows: int, place: Path) -> Any:
    """Measure one figure; traces without sidecars have a cache of their own, which stays empty."""
    if group == "cold":
        return _cold(name, place)
    if group == "index":
        return _indexed(rows, place)
    cache = INDEXED if group == "warm with sidecars" else PLAIN
    called = f"bare {figure}" if group == "bare" else figure
    command = [sys.executable, "-m", "bench.records.traces", called, name, str(rows), str(place)]
    done = subprocess.run(command, env=_with_cache(place, cache), cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{figure} of {name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _run(name: str, rows: int, folder: Path) -> Path:
    """The folder of a recorded run; whole when its mark is there."""
    place = folder / f"run-{name}-{rows}"
    if not (place / "done").exists():
        made(folder / "data", WORKLOADS[name].reads, rows)
        made(folder / "data", WORKLOADS[name].reads, WARM)
        recorded_job(name, folder / "data", rows, place, 1)
        (place / "done").touch()
    return place


def _with_cache(place: Path, cache: str) -> dict[str, str]:
    return {**clean_environment(), "GOVTOOL_CACHE": str(place / cache), "GOVTOOL_CACHE_SIZE": "8GB"}


def _cold(name: str, place: Path) -> dict[str, float]:
    """``govtool trace back`` of one result, as a new process each time, which leaves no sidecars."""
    costs = []
    for condition, _ in choices(place, 1)[:COLD]:
        command = [*GOVTOOL, "trace", "back", "out0", "--no-sidecars", "--where", condition]
        costs.append(cost_of(command, _with_cache(place, PLAIN), place))
    return {"seconds": statistics.median(c.wall for c in costs), "cpu": statistics.median(c.cpu for c in costs)}


def _indexed(rows: int, place: Path) -> dict[str, float]:
    """Build the key sidecars of the run: their cost, and their bytes for each row and set of keys.

    Those of the group's keys by ``govtool index``, those of the column that conditions name by a first trace.
    """
    cache = place / INDEXED
    shutil.rmtree(cache, ignore_errors=True)
    run = _output(place).lineage.run
    cost = cost_of([*GOVTOOL, "index", run, "--records"], _with_cache(place, INDEXED), place)
    condition, _ = choices(place, 1)[0]
    first = [*GOVTOOL, "trace", "back", "out0", "--where", condition]
    subprocess.run(first, env=_with_cache(place, INDEXED), cwd=place, check=True, capture_output=True)
    files = list((cache / "sidecars").rglob("*.keys"))
    inputs = list((place.parent / "data" / f"page_views-{rows}").glob("*.parquet"))
    size, read = (sum(file.stat().st_size for file in each) for each in (files, inputs))
    sets = len(files) / len(inputs)
    found = {"bytes": size, "input bytes": read, "key sets": sets, "bytes a row": size / sets / rows}
    return {"seconds": cost.wall, "cpu": cost.cpu, **found}


# ---- chosen results -------------------------------------------------------------------------------------------------


def write_choices(name: str, place: Path) -> None:
    """Draw results of a run, by their users: users are drawn, not rows, so that few frequent ones are not all.

    Of each size there are some conditions, each with the users that it names.
    """
    file = place / "choices.json"
    if file.exists():
        return
    table = ds.dataset(place / "out0").to_table(columns=["user"])
    counted = table.group_by("user").aggregate([([], "count_all")])
    counts = dict(zip(counted["user"].to_pylist(), counted["count_all"].to_pylist(), strict=True))
    counts.pop(None, None)
    draw, users = random.Random(name), sorted(counts)
    drawn = {size: [_drawn(draw, users, counts, size) for _ in range(REPEATS + 1)] for size in SIZES}
    file.write_text(json.dumps(drawn))


def _drawn(draw: random.Random, users: list[str], counts: dict[str, int], size: int) -> tuple[str, list[str]]:
    """Users who have so many results together."""
    found, left = [], size
    for user in draw.sample(users, min(len(users), 20 * size)):
        if counts[user] <= left:
            found.append(user)
            left -= counts[user]
        if not left:
            break
    return f"user IN ({', '.join(map(repr, found))})", found


def choices(place: Path, size: int) -> list[tuple[str, list[str]]]:
    """The drawn conditions of a size."""
    drawn = json.loads((place / "choices.json").read_text())[str(size)]
    return [(condition, users) for condition, users in drawn]


# ---- within the processes -------------------------------------------------------------------------------------------


def _median(take: Callable[[Any], Any], given: list[Any]) -> dict[str, float]:
    """Median seconds and CPU, the first of them not counted, and the rows of all."""
    seconds, spent, rows = [], [], 0
    for each in given:
        start, before = time.perf_counter(), tree_cpu(os.getpid())
        rows += take(each)
        seconds.append(time.perf_counter() - start)
        spent.append(tree_cpu(os.getpid()) - before)
    return {"seconds": statistics.median(seconds[1:]), "cpu": statistics.median(spent[1:]), "rows": rows}


def back(size: int, place: Path) -> dict[str, Any]:
    """Traces back by ``graph.records``, with 20 rows of each answer."""
    lineage = _output(place)

    def take(condition: str) -> int:
        return sum(rows.count for rows in lineage.where(condition).go_back_all().answer(20).inputs)

    return {**_median(take, [condition for condition, _ in choices(place, size)]), "memory": _memory()}


def forward(name: str, rows: int, place: Path) -> dict[str, Any]:
    """Traces forward from all rows of one user."""
    source, views = _input(place)
    users = [named[0] for _, named in choices(place, 1)]
    found = _median(lambda user: source.input(views.dataset, f"user = '{user}'").go_next_all().count(), users)
    return {**found, "memory": _memory()}


def raw(name: str, rows: int, place: Path) -> dict[str, Any]:
    """Rows of the input with all their columns, by 100 ids that are drawn from all files."""
    source, views = _input(place)
    every = source.input(views.dataset)
    ids = _ids(rows, len(views.files))
    return {**_median(lambda each: every.rows(each).arrow().num_rows, ids), "memory": _memory()}


def _ids(rows: int, files: int) -> list[list[tuple[int, int]]]:
    """Ids of 100 rows each: ordinal of the file, and row."""
    draw = random.Random(1)
    return [[(draw.randrange(files), draw.randrange(rows // files)) for _ in range(100)] for _ in range(REPEATS + 1)]


def bare(figure: str, rows: int, place: Path) -> dict[str, Any]:
    """The floor of a figure: DuckDB alone reads the column that chooses the rows, or all columns of rows by place."""
    import duckdb

    files = sorted((place.parent / "data" / f"page_views-{rows}").glob("*.parquet"))
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")

    def found(users: list[str]) -> int:
        connection.execute("CREATE OR REPLACE TEMP TABLE chosen AS SELECT unnest(?) AS name", [users])
        few = f"WHERE user IN ({', '.join(map(repr, users))})"
        among = few if len(users) <= MAX_LISTED else "SEMI JOIN chosen ON chosen.name = views.user"
        read = f"read_parquet('{files[0].parent}/*.parquet', file_row_number = true) AS views"
        return len(connection.execute(f"SELECT file_row_number FROM {read} {among}").fetchall())

    def read(ids: list[tuple[int, int]]) -> int:
        parts = [
            f"(SELECT * FROM read_parquet('{file}', file_row_number = true) WHERE file_row_number IN ({listed}))"
            for number, file in enumerate(files)
            if (listed := ", ".join(str(row) for other, row in ids if other == number))
        ]
        return int(connection.execute(" UNION ALL ".join(parts)).to_arrow_table().num_rows)

    if figure == "raw 100":
        return {**_median(read, _ids(rows, len(files))), "memory": _memory()}
    users = [named for _, named in choices(place, int(figure.removeprefix("back ")))]
    return {**_median(found, users), "memory": _memory()}


def _output(place: Path) -> RecordSet:
    """The rows that a run wrote."""
    import govtool
    from govtool.records.recordset import RecordSet

    found = govtool.open(str(place / ".govtool")).records(str(place / "out0"))
    assert isinstance(found, RecordSet)
    return found


def _input(place: Path) -> tuple[Lineage, Relation]:
    """The plan of a run, and its only input."""
    from govtool.records.lineage import Lineage
    from govtool.records.plan.nodes import Relation

    source = _output(place).lineage
    assert isinstance(source, Lineage)
    (leaf,) = source.leaves()
    assert isinstance(leaf, Relation)
    return source, leaf


def _memory() -> int:
    """The most bytes of this process; what getrusage gives holds those of the process that started it."""
    text = Path("/proc/self/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def replay(name: str, rows: int, place: Path) -> dict[str, Any]:
    """The replay of one result without the rows behind it: only its group is evaluated."""
    found = _output(place)

    def take(condition: str) -> int:
        chosen = found.where(condition)
        return len(chosen.replay(exclude=chosen.go_back_all()).gone)

    return _median(take, [condition for condition, _ in choices(place, 1)])


def naive(name: str, rows: int, place: Path) -> dict[str, Any]:
    """The join of all results with all rows in DuckDB, from which the chosen results are taken."""
    import duckdb

    views, out = f"{place.parent}/data/page_views-{rows}/*.parquet", f"{place}/out0/*.parquet"
    same = " AND ".join(f"o.{key} IS NOT DISTINCT FROM i.{key}" for key in KEYS[name])
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    source = f"read_parquet('{views}', filename = true, file_row_number = true)"

    def take(condition: str) -> int:
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE every AS SELECT o.user, i.filename, i.file_row_number "
            f"FROM read_parquet('{out}') AS o JOIN {source} AS i ON {same}"
        )
        (count,) = connection.execute(f"SELECT count(*) FROM every WHERE {condition}").fetchone() or (0,)
        return int(count)

    return _median(take, [condition for condition, _ in choices(place, 100)[:3]])


def spark(name: str, rows: int, place: Path) -> dict[str, Any]:
    """The rows of the chosen results by a filter of the input, in a warm Spark session."""
    from pyspark.sql import functions as F

    from bench.records.job import session
    from bench.records.workloads import opener

    made_session = session()
    views = opener(made_session, str(place.parent / "data"), rows)("page_views")

    def take(users: list[str]) -> int:
        return len(views.where(F.col("user").isin(users)).limit(1000).collect())

    found = {f"back {size}": _median(take, [users for _, users in choices(place, size)[:4]]) for size in SIZES}

    def whole(number: int) -> int:
        build = WORKLOADS[name].build(opener(made_session, str(place.parent / "data"), rows))
        build.write.mode("overwrite").parquet(str(place / "again"))
        return number

    found["whole job"] = _median(whole, [0, 1])
    return found


if __name__ == "__main__":
    figure, named, count, where = sys.argv[1:5]
    takes = {"forward": forward, "raw 100": raw, "replay": replay, "naive": naive, "spark": spark}
    if figure in takes:
        print(json.dumps(takes[figure](named, int(count), Path(where))))
    elif figure.startswith("bare "):
        print(json.dumps(bare(figure.removeprefix("bare "), int(count), Path(where))))
    else:
        print(json.dumps(back(int(figure.removeprefix("back ")), Path(where))))
