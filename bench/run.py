"""Regenerates docs/benchmarks.md, all of it or one section.

    python -m bench                                     everything that needs no checkout
    python -m bench lineage peers                       two sections; the others stay as they are; lineage takes
                                                        --bigquery-etl PATH, too
    python -m bench earlier --earlier PATH              extraction beside that of an earlier checkout
    python -m bench warehouses --bigquery-etl PATH --warehouse NAME=FOLDER:DIALECT      extraction of real warehouses
    python -m bench incremental --bigquery-etl PATH     ingesting again after a change
    python -m bench spark-listener --listener JAR       beside OpenLineage's listener for Spark (docs/spark.md)
    python -m bench spark-cost --state DIR              CPU of recording, from rounds of python -m bench.spark_cost
    python -m bench accuracy                            docs/accuracy.md: against PostgreSQL and DuckDB
    python -m bench records --help                      capture and traces of records: resumable, in docs/records.md
    python -m bench.workflowgen figures --help          WorkflowGen, tracked and not: resumable, own section
    python -m bench changes --warehouses 2000           docs/verdicts.md: changes against what fails in DuckDB

Peers and texts are downloaded into ``bench/.peers`` and ``bench/data`` once. A tree with changes that are not committed
and a busy machine are refused; ``--allow-dirty`` and ``--allow-load`` measure all the same, and the page says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench.page import add_conditions, check_conditions, merge, table

WORKFLOW_SECTION = "workflowgen"
"""Written by ``python -m bench.workflowgen figures``."""
GRAPH_TITLE = "## Questions on large graphs"


def main() -> None:
    """The command line."""
    if sys.argv[1:2] == ["records"]:  # long, resumable, with options of its own
        from bench.records.command import main as records

        records(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--bigquery-etl", type=Path, help="a checkout of mozilla/bigquery-etl")
    parser.add_argument(
        "--warehouse",
        action="append",
        metavar="NAME=FOLDER:DIALECT",
        help="a checkout of another warehouse; repeatable",
    )
    parser.add_argument("--earlier", type=Path, metavar="PATH", help="a checkout of an earlier version of govtool")
    parser.add_argument("--listener", type=Path, metavar="JAR", help="the jar of OpenLineage's listener for Spark")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the rounds of python -m bench.spark_cost run")
    parser.add_argument("--edges", type=int, action="append", help="sizes of the graphs (default: 1M and 10M)")
    parser.add_argument("--nodes", type=int, action="append", help="sizes of the graphs of arrays (default: 1M)")
    parser.add_argument("--records", type=int, default=1_000_000, help="size of the query log (default: 1M)")
    parser.add_argument("--queries", type=int, default=5000, help="accuracy: how many are generated (default: 5000)")
    parser.add_argument("--warehouses", type=int, default=2000, help="changes: how many are drawn (default: 2000)")
    parser.add_argument("--print", action="store_true", help="print the sections too")
    add_conditions(parser)
    arguments = parser.parse_args()
    check_conditions(allow_dirty=arguments.allow_dirty, allow_load=arguments.allow_load)
    if "accuracy" in arguments.sections:  # a page of its own
        from bench.accuracy import write

        write(arguments.queries)
        arguments.sections.remove("accuracy")
        if not arguments.sections:
            return
    if "changes" in arguments.sections:
        from bench.oracles.changes import run, write_section

        write_section(run(range(arguments.warehouses)))
        arguments.sections.remove("changes")
        if not arguments.sections:
            return
    unknown = [name for name in arguments.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    for name in arguments.sections or SECTIONS:
        if name == "warehouses" and arguments.bigquery_etl is None and not arguments.warehouse:
            if arguments.sections:
                parser.error("warehouses needs --bigquery-etl PATH or --warehouse NAME=FOLDER:DIALECT")
            continue
        if name == "incremental" and arguments.bigquery_etl is None:
            if arguments.sections:
                parser.error("incremental needs --bigquery-etl PATH")
            continue
        if name == "earlier" and arguments.earlier is None:
            if arguments.sections:
                parser.error("earlier needs --earlier PATH: git worktree add --detach PATH COMMIT")
            continue
        if name == "spark-listener" and arguments.listener is None:
            if arguments.sections:
                parser.error("spark-listener needs --listener JAR")
            continue
        if name == "spark-cost" and arguments.state is None:
            if arguments.sections:
                parser.error("spark-cost needs --state DIR: python -m bench.spark_cost run --state DIR")
            continue
        if name == "large-log" and not arguments.sections:  # takes long
            continue
        print(f"{name} …", file=sys.stderr)
        body = SECTIONS[name](arguments)
        merge(name, body, SECTIONS)
        if arguments.print:
            print(body)


def _lineage(arguments: argparse.Namespace) -> str:
    from bench.lineage import section

    return section(arguments.bigquery_etl)


def _earlier(arguments: argparse.Namespace) -> str:
    from bench.earlier import section

    return section(arguments.earlier, arguments.bigquery_etl)


def _incremental(arguments: argparse.Namespace) -> str:
    from bench.incremental.cost import section

    return section(arguments.bigquery_etl)


def _peers(_: argparse.Namespace) -> str:
    from bench.peers import section

    return section()


def _report(_: argparse.Namespace) -> str:
    from bench.report import section

    return section()


def _startup(_: argparse.Namespace) -> str:
    from bench.startup import section

    return section()


def _graph(arguments: argparse.Namespace) -> str:
    from bench.graph import PER_FRAGMENT, measure

    figures = measure(arguments.edges or [1_000_000, 10_000_000], rounds=5)
    rows, builds = [], []
    for figure in figures.values():
        builds.append(
            [
                f"{figure['edges']:,}",
                f"{figure['columns']:,}",
                f"{figure['index build']['wall']:.1f} s ({figure['index build']['cpu']:.1f})",
                f"{figure['index build']['MB']:,.0f} MB",
                f"{figure['index MB']:.0f} MB",
                f"{figure['after commits']['wall']:.2f} s ({figure['after commits']['cpu']:.2f})",
                f"{figure['after commits']['several wall']:.2f} s ({figure['after commits']['several cpu']:.2f})",
                f"{figure['after commits']['command wall']:.2f} s ({figure['after commits']['command cpu']:.2f})",
                f"{figure['impact after commits']:.2f}",
            ]
        )
        for size in ("small", "large"):
            if size in figure:
                cost = figure[size]
                rows.append(
                    [
                        f"{figure['edges']:,}",
                        f"{cost['closure']:,}",
                        f"{cost['bare wall'] * 1000:.0f} ms",
                        f"{cost['logic wall'] * 1000:.0f} ms",
                        f"**{cost['ratio to bare']:.2f}**",
                        f"{cost['logic cpu'] * 1000:.0f} ms",
                        f"{cost['drop cpu'] * 1000:.0f} ms",
                    ]
                )
    built = ["edges", "columns", "time", "memory", "size", "a commit", "ten commits", "`govtool index`", "`impact`"]
    head = ["edges", "columns reached", "bare", "impact", "ratio", "CPU", "CPU, `--change drop`"]
    return f"""{GRAPH_TITLE}

Generated warehouses of ten layers (`bench/graph.py`). Whole processes of `govtool impact COLUMN --limit 20`, index
built, against a bare typer program that prints a table. Goals: at 1M edges at most 1.5 times the bare program; at 10M
edges a closure of hundreds of thousands of columns below 500 ms of CPU.

{table(head, rows)}

Building the index from all fragments, in a process of its own: time (CPU) and memory at most. After that, commits that
change one file each, in fragments of {PER_FRAGMENT:,} files: the first opening of the index in a process, after one and
after ten of them; the whole command `govtool index` after one; and `impact` against the bare program at the end. Goals
at 10M edges: 20 s and 1.5 GB; 0.5 s after a commit.

{table(built, builds)}
"""


def _workflow_graphs(arguments: argparse.Namespace) -> str:
    from bench.workflow_graphs import section

    return section(arguments.nodes or [1_000_000])


def _arrays(arguments: argparse.Namespace) -> str:
    from bench.arrays import section

    return section(arguments.nodes or [1_000_000])


def _store(_: argparse.Namespace) -> str:
    from bench.store import section

    return section()


def _cold(arguments: argparse.Namespace) -> str:
    from bench.cold import section

    return section(arguments.edges or [1_000_000, 10_000_000])


def _provenance(_: argparse.Namespace) -> str:
    from bench.provenance import section

    return section()


def _warehouses(arguments: argparse.Namespace) -> str:
    from bench.warehouses import Warehouse, section

    return section(arguments.bigquery_etl, [Warehouse.parse(text) for text in arguments.warehouse or ()])


def _logs(arguments: argparse.Namespace) -> str:
    from bench.logs import section

    return section(arguments.records)


def _spark_listener(arguments: argparse.Namespace) -> str:
    from bench.spark_listener import section

    return section(arguments.listener)


def _spark_logs(_: argparse.Namespace) -> str:
    from bench.spark_logs import section

    return section()


def _sources(_: argparse.Namespace) -> str:
    from bench.sources import section

    return section()


def _governance(_: argparse.Namespace) -> str:
    from bench.governance import section

    return section()


def _spark(_: argparse.Namespace) -> str:
    from bench.spark import section

    return section()


def _spark_cost(arguments: argparse.Namespace) -> str:
    from bench.spark_cost import section

    return section(arguments.state)


def _rdd(_: argparse.Namespace) -> str:
    from bench.rdd import measured

    return measured()


def _large_log(arguments: argparse.Namespace) -> str:
    from bench.logs import large

    return large(max(arguments.records, 10_000_000))


SECTIONS: dict[str, Callable[[argparse.Namespace], str]] = {
    "lineage": _lineage,
    "peers": _peers,
    "earlier": _earlier,
    "logs": _logs,
    "large-log": _large_log,
    "spark": _spark,
    "spark-cost": _spark_cost,
    "rdd": _rdd,
    "spark-listener": _spark_listener,
    "spark-logs": _spark_logs,
    "startup": _startup,
    "graph": _graph,
    "sources": _sources,
    "arrays": _arrays,
    "workflow-graphs": _workflow_graphs,
    "governance": _governance,
    "store": _store,
    "cold": _cold,
    "provenance": _provenance,
    "incremental": _incremental,
    "warehouses": _warehouses,
    "report": _report,
}
"""In the order of the page."""
