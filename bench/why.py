"""Row-level provenance of TPC-H Q1, where ProvSQL's users report hours: ``python -m bench.why [scale factor]``.

Data are generated after the TPC-H specification (4.2.3): the distributions of ``lineitem`` that Q1 reads. Money is a
double, as ``inferSchema`` types dbgen's text. Each arm is a process of its own: CPU seconds and peak memory are its.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
          SELECT l_orderkey, l_linenumber, l_quantity, l_quantity * price AS l_extendedprice, l_discount, l_tax,
            l_shipdate,
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
    from govtool.cli.ui import Ui
    from govtool.render.why import render

    if name.startswith("delete"):
        tokens = json.loads((folder / "gone.json").read_text(encoding="utf-8"))
        answer = whatif_delete(Q1, folder, tokens, mode="propagate")
        note = f"{len(tokens):,} records: {answer.counts}"
    else:
        found = why(Q1, folder, semirings=name.split()[0].split(","), capped="capped" in name)
        size = 0
        if "whole" in name:
            Ui().show(render("json", found, is_whole=True), folder / "answer.json")
            size = (folder / "answer.json").stat().st_size
        note = f"{len(found.tuples)} rows" + (f", {size / 1e6:,.0f} MB of JSON" if size else "")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1e6, "note": note}))


def main(arguments: list[str]) -> None:
    """Measure every arm once and print a table."""
    if arguments[:1] == ["arm"]:
        arm(arguments[1], Path(arguments[2]))
        return
    scale = float(arguments[0]) if arguments else 1.0
    with tempfile.TemporaryDirectory() as scratch:
        rows = generate(Path(scratch), scale)
        print(f"TPC-H Q1, scale factor {scale:g}: {rows:,} rows\n")
        print("| | CPU s | wall s | peak GB | |\n|---|--:|--:|--:|---|")
        for name in ARMS:
            start = time.perf_counter()
            command = [sys.executable, "-m", "bench.why", "arm", name, scratch]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            wall = time.perf_counter() - start
            print(f"| {name} | {found['cpu']:.1f} | {wall:.1f} | {found['peak']:.2f} | {found['note']} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
