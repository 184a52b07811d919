"""The HTML report in Chromium beside pyvis on the same graph: time to open, to light a path, size of the file.

python -m bench report            writes the section into docs/benchmarks.md
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.chromium import Browser, Page, PageError
from bench.page import table
from bench.peers import ensure

TITLE = "## The HTML report in Chromium"
SIZES = (100, 1_000, 10_000)
WIDE = 10
"""Columns a table."""
SCHEMAS = ("raw", "stg", "core", "mart", "bi", "ml")
ROUNDS = 5
FRAMES = 120
"""Steps of panning."""
COLUMNS = 40
"""Columns that are lit one after another."""

_LIGHT = """(() => {
  const start = performance.now();
  govtool.page.light(%d);
  document.body.offsetHeight;
  return performance.now() - start;
})()"""
_FRAMES = """new Promise((done) => {
  const { picture } = govtool.page, gaps = [];
  let last = performance.now(), number = 0;
  const step = (now) => {
    gaps.push(now - last);
    last = now;
    picture.pan(number < 60 ? -9 : 9, number % 2 ? 4 : -3);
    if (++number < FRAMES) requestAnimationFrame(step); else done(gaps.slice(2));
  };
  requestAnimationFrame(step);
})""".replace("FRAMES", str(FRAMES))
_PYVIS = """
import json, sys
from pyvis.network import Network
job = json.load(sys.stdin)
net = Network(directed=True, cdn_resources="in_line", height="900px")
net.add_nodes(job["nodes"])
net.add_edges(job["edges"])
open(job["file"], "w").write(net.generate_html())
"""
_PYVIS_READY = "typeof network !== 'undefined' && network.physics.stabilized === true"
_PYVIS_LIGHT = """(() => {
  const ids = network.body.data.nodes.getIds().slice(0, 40);
  return ids.map((id) => {
    const start = performance.now();
    network.selectNodes([id, ...network.getConnectedNodes(id)], true);
    network.redraw();
    return performance.now() - start;
  });
})()"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one page: bytes, seconds to open, milliseconds to light a path and between two frames while panning."""

    size: int
    opened: float
    lit: float
    worst_lit: float
    frame: float | None = None
    late: float | None = None
    """The 95th percentile of the time between two frames."""
    cpu: float | None = None
    """Milliseconds of CPU time of the whole browser for a frame."""
    worst_lit_cpu: float | None = None
    """The most milliseconds of CPU time to light a path."""


def warehouse(folder: Path, columns: int) -> None:
    """Write SQL of tables of ten columns; each view reads one to three of those before it."""
    tables = columns // WIDE
    chance = random.Random(7)
    names = [f"{SCHEMAS[min(5, number * 6 // tables)]}_{number % 7}.t{number}" for number in range(tables)]
    for number, name in enumerate(names):
        if number < max(1, tables // 6):
            text = f"create table {name} ({', '.join(f'c{j} int' for j in range(WIDE))})"
        else:
            near = range(max(0, number - max(3, tables // 4)), number)
            read = [names[at] for at in chance.sample(near, min(len(near), chance.randint(1, 3)))]
            outputs = (f"coalesce(a{chance.randrange(len(read))}.c{j}) as c{j}" for j in range(WIDE))
            joins = "".join(f" join {other} a{at} on a{at}.c0 = a0.c0" for at, other in enumerate(read) if at)
            text = f"create view {name} as select {', '.join(outputs)} from {read[0]} a0{joins} where a0.c1 > 5"
        (folder / f"{number}.sql").write_text(text)


def section() -> str:
    """Measure, and write the section."""
    python, rows = ensure("pyvis"), []
    with tempfile.TemporaryDirectory() as work, Browser() as browser:
        for columns in SIZES:
            own, graph = _own(browser, Path(work), columns)
            rows.append(_row(columns, own, _peer(browser, Path(work), python, graph)))
    head = [
        "columns",
        "file",
        "opens in",
        "a path lit in",
        "at most",
        "CPU at most",
        "frame, panning",
        "95%",
        "CPU a frame",
    ]
    return f"""{TITLE}

Tables of ten columns, views that join one to three of them. A real headless Chromium without a graphics processor
opens the file from disk: median of {ROUNDS}. Lit are both directions of {COLUMNS} columns one after another, while all
datasets are open, layout of the page included. Frames are those of {FRAMES} steps of panning over all datasets. CPU
time is that of the page's thread, and for frames that of all processes of the browser; the load of the machine changes
it little. pyvis ({_version(python)}, vis-network in the file) gets the same nodes and edges; it opens when its layout
stands still, and lights a column with its neighbours only. Goals at 10,000 columns: open within 2 s, 50 ms a path,
16 ms a frame, 3 MB.

{table([*head, "pyvis: file", "opens in", "lit in"], rows)}
"""


def _row(columns: int, own: Figures, peer: Figures | None) -> list[str]:
    found = [
        f"{columns:,}",
        f"{own.size / 1e6:.2f} MB",
        f"{own.opened:.2f} s",
        f"{own.lit:.1f} ms",
        f"{own.worst_lit:.1f} ms",
        f"{own.worst_lit_cpu:.1f} ms",
        f"{own.frame:.1f} ms",
        f"{own.late:.1f} ms",
        f"{own.cpu:.1f} ms",
    ]
    if peer is None:
        return [*found, "", "over 60 s", ""]
    return [*found, f"{peer.size / 1e6:.2f} MB", f"{peer.opened:.1f} s", f"{peer.lit:.1f} ms"]


def _own(browser: Browser, work: Path, columns: int) -> tuple[Figures, dict[str, Any]]:
    import govtool

    sql, store = work / f"sql{columns}", str(work / f"store{columns}")
    sql.mkdir()
    warehouse(sql, columns)
    os.environ["GOVTOOL_CACHE"] = str(work / "cache")
    govtool.init(store)
    govtool.ingest_sql(sql, store=store, dialect="postgres")
    report = govtool.open(store).report()
    file = work / f"report{columns}.html"
    file.write_text(report.to_html(), encoding="utf-8")
    with browser.page() as page:
        opened = statistics.median(page.open(f"{file.as_uri()}?{number}") for number in range(ROUNDS))
        page.run("govtool.page.setLevel('datasets')")
        before = browser.cpu_seconds()
        gaps = sorted(page.run(_FRAMES))
        spent = browser.cpu_seconds() - before
        page.run("govtool.page.setLevel('columns')")
        lit, lit_cpu = _lit(page)
    figures = Figures(
        file.stat().st_size,
        opened,
        statistics.median(lit),
        lit[-1],
        statistics.median(gaps),
        gaps[int(len(gaps) * 0.95)],
        spent * 1000 / FRAMES,
        lit_cpu[-1],
    )
    return figures, report.graph.body()


def _lit(page: Page) -> tuple[list[float], list[float]]:
    """Milliseconds to light each of some columns of the whole graph, sorted: elapsed, and of CPU time of the page."""
    page.send("Performance.enable", timeDomain="threadTicks")
    chance, count = random.Random(4), page.run("govtool.page.graph.count")
    wall, cpu = [], []
    for _ in range(COLUMNS):
        before = page.metric("TaskDuration")
        wall.append(page.run(_LIGHT % chance.randrange(count)))
        cpu.append((page.metric("TaskDuration") - before) * 1000)
    return sorted(wall), sorted(cpu)


def _peer(browser: Browser, work: Path, python: str, graph: dict[str, Any]) -> Figures | None:
    """The figures of pyvis; None where it does not come to rest in a minute."""
    count = sum(1 + len(dataset["columns"]) for dataset in graph["datasets"])
    file = work / "pyvis.html"
    edges = sorted({(edge[0], edge[1]) for edge in graph["edges"]})
    job = {"nodes": list(range(count)), "edges": edges, "file": str(file)}
    subprocess.run([python, "-c", _PYVIS], input=json.dumps(job), text=True, check=True)
    with browser.page() as page:
        try:
            opened = page.open(file.as_uri(), _PYVIS_READY)
        except (PageError, TimeoutError):
            return None
        lit = sorted(page.run(_PYVIS_LIGHT))
    return Figures(file.stat().st_size, opened, statistics.median(lit), lit[-1])


def _version(python: str) -> str:
    script = "from importlib.metadata import version; print(version('pyvis'))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
