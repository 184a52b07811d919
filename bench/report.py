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

_HOVER = """(() => {
  const { page } = govtool, rows = [...document.querySelectorAll('.row[data-node]')].slice(0, 40);
  const times = rows.map((row) => {
    const start = performance.now();
    page.hover(row);
    document.body.offsetHeight;
    return performance.now() - start;
  });
  page.hover(null);
  return times;
})()"""
_FRAMES = """new Promise((done) => {
  const { picture } = govtool.page, gaps = [];
  let last = performance.now(), number = 0;
  const step = (now) => {
    gaps.push(now - last);
    last = now;
    picture.pan(number < 60 ? -9 : 9, number % 2 ? 4 : -3);
    if (++number < 120) requestAnimationFrame(step); else done(gaps.slice(2));
  };
  requestAnimationFrame(step);
})"""
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
    head = ["columns", "file", "opens in", "a path lit in", "at most", "frame, panning", "95%"]
    return f"""{TITLE}

Tables of ten columns, views that join one to three of them. A real headless Chromium without a graphics processor
opens the file from disk: median of {ROUNDS}. Lit are both directions of 40 columns one after another, layout of the
page included. Frames are those of 120 steps of panning over all datasets. pyvis ({_version(python)}, vis-network in
the file) gets the same nodes and edges; it opens when its layout stands still, and lights a column with its neighbours
only. Goals at 10,000 columns: open within 2 s, 50 ms a path, 16 ms a frame, 3 MB.

{table([*head, "pyvis: file", "opens in", "lit in"], rows)}
"""


def _row(columns: int, own: Figures, peer: Figures | None) -> list[str]:
    found = [
        f"{columns:,}",
        f"{own.size / 1e6:.2f} MB",
        f"{own.opened:.2f} s",
        f"{own.lit:.1f} ms",
        f"{own.worst_lit:.1f} ms",
        f"{own.frame:.1f} ms",
        f"{own.late:.1f} ms",
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
        gaps = sorted(page.run(_FRAMES))
        page.run("govtool.page.setLevel('columns')")
        page.run("govtool.page.picture.zoom(1 / govtool.page.picture.view.k, 500, 450)")
        lit = sorted(page.run(_HOVER) or _focused(page))
    figures = Figures(
        file.stat().st_size,
        opened,
        statistics.median(lit),
        lit[-1],
        statistics.median(gaps),
        gaps[int(len(gaps) * 0.95)],
    )
    return figures, report.graph.body()


def _focused(page: Page) -> list[float]:
    """The same where the window shows no row: of a table in the middle of the graph."""
    page.run("govtool.page.focus(Math.floor(govtool.page.visible.length / 2))")
    found: list[float] = page.run(_HOVER)
    return found


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
