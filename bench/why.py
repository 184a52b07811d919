"""Row-level provenance of TPC-H Q1, where ProvSQL's users report hours: ``python -m bench.why [scale factor]``.

Data are generated after the TPC-H specification (4.2.3): the distributions of ``lineitem`` that Q1 reads. Money is a
DECIMAL(15, 2), as the specification has it. Each arm is a process of its own: CPU seconds and peak memory are its.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.page import ROOT, add_conditions, check_conditions, put, table

Q1 = """
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
  sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
  avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem WHERE l_shipdate <= CAST('1998-09-02' AS DATE) GROUP BY l_returnflag, l_linestatus
"""
_ORDERS = 1_500_000
ARMS = ("which,count,polynomial capped", "which,count,polynomial whole", "delete 1% of the orders")


def generate(folder: Path, scale: float) -> int:
    """Write ``lineitem``; return its rows."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SELECT setseed(0.17)")
    connection.execute(f"""
        COPY (
          WITH orders AS (
            SELECT range AS n, (n // 8) * 32 + n % 8 + 1 AS l_orderkey,
              DATE '1992-01-01' + CAST(floor(random() * 2406) AS INTEGER) AS odate,
              1 + CAST(floor(random() * 7) AS INTEGER) AS lines FROM range({int(_ORDERS * scale)})),
          items AS (
            SELECT l_orderkey, CAST(unnest(range(lines)) + 1 AS INTEGER) AS l_linenumber, odate,
              CAST(1 + floor(random() * 50) AS DOUBLE) AS l_quantity, floor(random() * 11) / 100 AS l_discount,
              floor(random() * 9) / 100 AS l_tax, 900 + floor(random() * 104950) / 100 AS price,
              odate + 1 + CAST(floor(random() * 121) AS INTEGER) AS l_shipdate, random() < 0.5 AS coin,
              1 + CAST(floor(random() * 30) AS INTEGER) AS days FROM orders)
          SELECT l_orderkey, l_linenumber, CAST(l_quantity AS DECIMAL(15, 2)) AS l_quantity,
            CAST(l_quantity * price AS DECIMAL(15, 2)) AS l_extendedprice,
            CAST(l_discount AS DECIMAL(15, 2)) AS l_discount, CAST(l_tax AS DECIMAL(15, 2)) AS l_tax, l_shipdate,
            CASE WHEN l_shipdate + days > DATE '1995-06-17' THEN 'N' WHEN coin THEN 'R' ELSE 'A' END AS l_returnflag,
            CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus FROM items
        ) TO '{folder / "lineitem.parquet"}' (FORMAT parquet)""")
    (rows,) = connection.execute(f"SELECT count(*) FROM '{folder / 'lineitem.parquet'}'").fetchone() or (0,)
    tokens = connection.execute(
        f"SELECT 'lineitem:' || file_row_number FROM read_parquet('{folder / 'lineitem.parquet'}', "
        "file_row_number = true) WHERE hash(l_orderkey) % 100 = 0"
    ).fetchall()
    (folder / "gone.json").write_text(json.dumps([token for (token,) in tokens]), encoding="utf-8")
    return int(rows)


def arm(name: str, folder: Path) -> None:
    """Do one arm, and print what it cost as JSON."""
    from govtool.api.why import whatif_delete, why
    from govtool.cli.shared.ui import Ui
    from govtool.render.why import render

    if name.startswith("delete"):
        tokens = json.loads((folder / "gone.json").read_text(encoding="utf-8"))
        answer = whatif_delete(Q1, folder, tokens, mode="propagate")
        counts = ", ".join(f"{count} {status}" for status, count in answer.counts.items())
        note = f"{len(tokens):,} records, rows: {counts}"
    else:
        found = why(Q1, folder, semirings=name.split()[0].split(","), capped="capped" in name)
        size = 0
        if "whole" in name:
            Ui().show(render("json", found, is_whole=True), folder / "answer.json")
            size = (folder / "answer.json").stat().st_size
        note = f"{len(found.tuples)} rows" + (f", {size / 1e6:,.0f} MB of JSON" if size else "")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1e6, "note": note}))


def measured(scale: float, runs: int) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Every arm so many times in turn, on the same rows; their number, and what each arm cost."""
    with tempfile.TemporaryDirectory() as scratch:
        rows = generate(Path(scratch), scale)
        costs: dict[str, list[dict[str, Any]]] = {name: [] for name in ARMS}
        for _ in range(runs):
            for name in ARMS:
                start = time.perf_counter()
                command = [sys.executable, "-m", "bench.why", "arm", name, scratch]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found = json.loads(done.stdout.splitlines()[-1])
                costs[name].append({**found, "wall": time.perf_counter() - start})
                print(f"{name}: {costs[name][-1]}", file=sys.stderr, flush=True)
    return rows, costs


def section(scale: float, rows: int, costs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The table of the page."""
    runs = len(costs[ARMS[0]])
    cells = [
        [
            name.replace("which,count,polynomial", "`which,count,polynomial`"),
            *(f"{statistics.median(each[key] for each in own):.1f}" for key in ("cpu", "wall", "peak")),
            own[0]["note"],
        ]
        for name, own in costs.items()
    ]
    return f"""TPC-H Q1 at scale factor {scale:g}, {rows:,} rows of `lineitem`: generated data, money as decimals
(`python -m bench.why {scale:g} --runs {runs} --page`). Each arm is a process; medians of runs in turn: {runs}.
Goal: 60 s and 8 GB each.

{table(["", "CPU s", "wall s", "peak GB", ""], cells)}"""


def main(arguments: list[str]) -> None:
    """Measure, and print or write the table."""
    if arguments[:1] == ["arm"]:
        arm(arguments[1], Path(arguments[2]))
        return
    parser = argparse.ArgumentParser(prog="python -m bench.why", description=__doc__)
    parser.add_argument("scale", type=float, nargs="?", default=1.0, help="scale factor (default: 1)")
    parser.add_argument("--runs", type=int, default=1, help="of each arm (default: 1)")
    parser.add_argument("--page", action="store_true", help="write the section of docs/why.md")
    add_conditions(parser)
    options = parser.parse_args(arguments)
    if options.page:
        check_conditions(allow_dirty=options.allow_dirty, allow_load=options.allow_load)
    body = section(options.scale, *measured(options.scale, options.runs))
    if options.page:
        put(ROOT / "docs" / "why.md", "tpch-q1", body)
    else:
        print(body)


if __name__ == "__main__":
    main(sys.argv[1:])
