"""A generated query log of a warehouse, read by ``govtool ingest log``, and a sample of it by other lineage tools."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.corpora import ROOT
from bench.page import table
from bench.peers import ensure, run

TITLE = "## Query logs"

RECORDS = 1_000_000
REPEATED = 0.95
TABLES = 400
COLUMNS = 16
SESSION = 60
"""Statements of a session."""
SAMPLE = {"govtool": 2_000, "sqlglot-prepared": 2_000, "sqlglot": 1_000, "lineagex": 400, "sqllineage": 60}
"""Statements of the log that each tool is given: what it reads in about ten seconds."""
LABELS = {
    "govtool": "govtool, one statement at a time",
    "sqlglot-prepared": "sqlglot.lineage, parsed and qualified once a statement",
    "sqlglot": "sqlglot.lineage, all columns",
}

SCHEMA = {
    f"s{number % 8}.t{number}": {"id": "int", "ref": "int", "day": "date"}
    | {f"c{number}_{column}": "text" for column in range(COLUMNS)}
    for number in range(TABLES)
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one whole process."""

    wall: float
    cpu: float
    peak: float
    """MB."""
    stated: str


def statement(number: int) -> str:
    """A statement of its own kind for each number, with ``{n}`` and ``{s}`` where its literals go."""
    pick = random.Random(number)
    names = list(SCHEMA)
    one, two, three = (pick.choice(names) for _ in range(3))

    def column(name: str) -> str:
        return pick.choice(list(SCHEMA[name])[3:])

    a, b, c, d = column(one), column(two), column(three), column(one)
    shape = number % 6
    where = f"x.day >= DATE '{{d}}' AND x.{d} <> '{{s}}'"
    if shape == 0:
        return (
            f"SELECT x.id, x.{a}, upper(y.{b}) AS label_{number} FROM {one} x JOIN {two} y ON x.ref = y.id "
            f"WHERE {where} AND y.id IN ({{n}}, {{m}}) ORDER BY x.id LIMIT {{n}}"
        )
    if shape == 1:
        return (
            f"WITH recent AS (SELECT x.id, x.ref, x.{a} FROM {one} x WHERE {where}), ranked AS (SELECT r.*, "
            f"row_number() OVER (PARTITION BY r.ref ORDER BY r.id) AS rank_{number} FROM recent r) "
            f"SELECT k.id, k.{a}, z.{c} FROM ranked k LEFT JOIN {three} z ON z.id = k.ref WHERE k.rank_{number} = {{n}}"
        )
    if shape == 2:
        return (
            f"SELECT x.{a}, count(*) AS n_{number}, sum(CASE WHEN y.{b} = '{{s}}' THEN y.id ELSE 0 END) AS total "
            f"FROM {one} x, {two} y WHERE x.id = y.ref AND {where} GROUP BY x.{a} HAVING count(*) > 3"
        )
    if shape == 3:
        return (
            f"SELECT q.v, max(q.id) AS last_{number} FROM (SELECT x.id, x.{a} AS v FROM {one} x WHERE {where} "
            f"UNION ALL SELECT y.id, y.{b} FROM {two} y WHERE y.id > {{n}}) q "
            f"WHERE EXISTS (SELECT 1 FROM {three} z WHERE z.id = q.id AND z.{c} = '{{s}}') GROUP BY q.v"
        )
    if shape == 4:
        return (
            f"INSERT INTO mart.m{number % 300} (id, v, w) SELECT x.id, coalesce(x.{a}, y.{b}), lower(x.{d}) "
            f"FROM {one} x LEFT JOIN {two} y ON y.id = x.ref WHERE {where}"
        )
    return f"SELECT x.id, x.{a}, x.{d} AS out_{number} FROM {one} x WHERE {where} AND x.id = {{n}}"


def records(count: int, seed: int = 1) -> Iterator[dict[str, str]]:
    """A log: sessions of many users, some with a search path, temporary tables or transactions; seeded."""
    pick = random.Random(seed)
    kinds = max(1, int(count * (1 - REPEATED)))
    shapes: dict[int, str] = {}
    fresh = 0
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    made = 0
    session = 0
    while made < count:
        session += 1
        user = f"user{pick.randrange(200)}@example.org"
        texts: list[str] = []
        kind = pick.random()
        if kind < 0.3:
            texts.append("SET search_path = s1, public")
        for _ in range(SESSION):
            if fresh < kinds and pick.random() > REPEATED:
                number, fresh = fresh, fresh + 1
            else:
                number = int(kinds * pick.random() ** 3) if fresh == kinds else pick.randrange(fresh or 1)
            text = shapes.get(number)
            if text is None:
                text = shapes[number] = statement(number)
            texts.append(_filled(text, pick))
        if kind > 0.95:
            at = pick.randrange(100)
            one = f"s{at % 8}.t{at}"
            texts += [
                f"CREATE TEMP TABLE work AS SELECT id, c{at}_1 AS v FROM {one} WHERE id > {pick.randrange(9999)}",
                f"INSERT INTO mart.w{at} (id, v) SELECT id, v FROM work",
                "DROP TABLE work",
            ]
        elif kind > 0.93:
            texts += [
                "BEGIN",
                f"UPDATE mart.m1 SET v = 'x{pick.randrange(99)}' WHERE id = {pick.randrange(9999)}",
                "ROLLBACK",
            ]
        for text in texts[: count - made]:
            moment += timedelta(milliseconds=pick.randrange(1, 80))
            yield {"ts": moment.isoformat(), "session": f"s{session}", "user": user, "sql": text}
            made += 1


def _filled(text: str, pick: random.Random) -> str:
    day = f"2026-{pick.randrange(1, 13):02}-{pick.randrange(1, 29):02}"
    name = f"name {pick.randrange(10**6)}"
    return (
        text.replace("{d}", day)
        .replace("{s}", name)
        .replace("{n}", str(pick.randrange(1, 10**6)))
        .replace("{m}", str(pick.randrange(1, 10**6)))
    )


def write(path: Path, count: int) -> None:
    """Write a log as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for record in records(count):
            file.write(json.dumps(record) + "\n")


def ingest(log: Path, schema: Path, folder: Path, *engine: str) -> Cost:
    """``govtool ingest log`` as a process of its own, with those that it starts, into a new store."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GOVTOOL_CACHE": str(folder / "cache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles all of Python's modules again
    store = str(folder / f"store-{time.monotonic_ns()}")
    command = [sys.executable, "-m", "govtool"]
    subprocess.run([*command, "init", "--store", store], env=environment, check=True, capture_output=True)
    given = ["--dialect", "postgres", "--schema", str(schema), "--store", store, "--no-progress", *engine]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, "ingest", "log", str(log), *given],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with _Watch(process.pid) as watch:
        stated, problem = process.communicate()
    wall = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(problem[-2000:])
    cpu = max(watch.cpu, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime)
    shutil.rmtree(store)
    return Cost(wall, cpu, watch.peak / 1e6, stated.strip().splitlines()[-1])


class _Watch:
    """The memory and the CPU of a process and of all that it has started, looked at four times a second."""

    def __init__(self, pid: int) -> None:
        self.peak = 0
        """Bytes."""
        self._pid = pid
        self._cpu: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    @property
    def cpu(self) -> float:
        """Seconds, of those that nobody waits for, too, such as Spark's JVM."""
        return sum(self._cpu.values())

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.25):
            memory = 0
            for pid in descendants(self._pid):
                try:
                    memory += resident(pid)
                    self._cpu[pid] = seconds(pid)
                except OSError:
                    continue
            self.peak = max(self.peak, memory)


def descendants(pid: int) -> Iterator[int]:
    """A process and all that it has started."""
    waiting = [pid]
    while waiting:
        yield (one := waiting.pop())
        try:
            for task in Path("/proc", str(one), "task").iterdir():
                waiting.extend(map(int, (task / "children").read_text().split()))
        except OSError:
            continue


def resident(pid: int) -> int:
    """Bytes in memory of a process; of what it shares with others its share (PSS)."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path("/proc", str(pid), "smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found is not None else 0


def seconds(pid: int) -> float:
    """CPU of a process until now."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peers(log: Path) -> dict[str, dict[str, Any]]:
    """Each tool over the first queries of the log that it has the time for, in turn."""
    texts: list[str] = []
    with log.open(encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["sql"]
            if text.startswith(("SELECT", "WITH")):
                texts.append(text)
            if len(texts) == max(SAMPLE.values()):
                break
    interpreters = {name: ensure(name) if name in ("lineagex", "sqllineage") else sys.executable for name in SAMPLE}
    schema = {name: dict(columns) for name, columns in SCHEMA.items()}
    nested: dict[str, dict[str, dict[str, str]]] = {}
    for name, columns in SCHEMA.items():
        database, _, plain = name.partition(".")
        nested.setdefault(database, {})[plain] = columns
    answers = {}
    for name, python in interpreters.items():
        given = nested if name.startswith("sqlglot") else schema
        job = {"statements": texts[: SAMPLE[name]], "dialect": "postgres", "schema": given}
        answers[name] = run(python, name, job)
    return answers


ENGINES = {
    "one process": ["--workers", "1"],
    "all cores": [],
    "Spark, local[*]": ["--engine", "spark", "--master", "local[*]"],
}
"""How the log is read."""


def section(count: int = RECORDS, rounds: int = 3) -> str:
    """Measure, and write the section."""
    with tempfile.TemporaryDirectory(prefix="bench-logs-") as name:
        folder = Path(name)
        log, schema = _made(folder, count)
        size = log.stat().st_size / 1e6
        costs: dict[str, list[Cost]] = {}
        rates: dict[str, list[float]] = {}
        answers: dict[str, dict[str, Any]] = {}
        for _ in range(rounds):
            for engine, arguments in ENGINES.items():
                costs.setdefault(engine, []).append(ingest(log, schema, folder, *arguments))
            answers = peers(log)
            for tool, answer in answers.items():
                rates.setdefault(tool, []).append(len(answer["seconds"]) / sum(answer["seconds"]))
    middle = {engine: sorted(several, key=lambda c: c.wall)[len(several) // 2] for engine, several in costs.items()}
    stated = {cost.stated.partition(" · ")[2] for several in costs.values() for cost in several}
    if len(stated) > 1:
        raise RuntimeError(f"engines differ: {sorted(stated)}")
    own = count / middle["all cores"].wall
    rows = [
        [f"**govtool ingest log**, {engine}", "this", f"{count / cost.wall:,.0f}", "", f"{count:,}", 0]
        for engine, cost in middle.items()
    ]
    for tool, given in sorted(rates.items(), key=lambda item: -statistics.median(item[1])):
        rate = statistics.median(given)
        answer = answers[tool]
        faster = f"**{own / rate:,.0f}**"
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        rows.append(
            [LABELS.get(tool, tool), answer["version"], shown, faster, f"{SAMPLE[tool]:,}", len(answer["failures"])]
        )
    head = ["tool", "version", "statements/s", "all cores are faster by", "statements", "failed"]
    return f"""{TITLE}

A generated log of {count:,} statements ({size:,.0f} MB of JSON lines, {TABLES} tables, {REPEATED:.0%} repeats with
other literals; sessions with search paths, temporary tables and transactions; seeded). govtool reads all of it, from
the start of Python to the commit: fingerprints, sessions, extraction with evidence, the store. The graph is the same
however it is read. The others are given the first queries of the same log, one at a time, with its schema, imports not
counted. Goal: 10 times sqlglot.lineage.

{table(head, rows)}

{_cost_table(middle)}

Memory is that of all processes together; median of {rounds}. It says: `{stated.pop()}`
"""


LARGE_TITLE = "## A large query log"


def large(count: int = 10_000_000) -> str:
    """Read a large log once, and write what it took."""
    with tempfile.TemporaryDirectory(prefix="bench-logs-") as name:
        folder = Path(name)
        log, schema = _made(folder, count)
        size = log.stat().st_size
        cost = ingest(log, schema, folder)
    return large_text(count, size, cost)


def large_text(count: int, size: int, cost: Cost) -> str:
    """The section on a large log."""
    return f"""{LARGE_TITLE}

A log as above of {count:,} statements ({size / 1e9:,.1f} GB), read once by all cores.

{_cost_table({"all cores": cost}, count)}

It says: `{cost.stated.partition(" · ")[2]}`
"""


def _made(folder: Path, count: int) -> tuple[Path, Path]:
    log, schema = folder / "log.jsonl", folder / "schema.json"
    write(log, count)
    schema.write_text(json.dumps({table: list(columns) for table, columns in SCHEMA.items()}))
    return log, schema


def _cost_table(costs: dict[str, Cost], count: int = 0) -> str:
    rows = [
        [
            engine,
            f"{c.wall:,.1f} s",
            f"{c.cpu:,.1f} s",
            f"{c.peak:,.0f} MB",
            *([f"{count / c.wall:,.0f}"] if count else []),
        ]
        for engine, c in costs.items()
    ]
    return table(["govtool ingest log", "wall", "CPU", "memory at most", *(["statements/s"] if count else [])], rows)
