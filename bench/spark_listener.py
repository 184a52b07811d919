"""The official OpenLineage listener for Spark beside our own capture: the programs of the hard set, run once in one
session that both hear.

A query is written to a folder of its own, as events have the lineage of outputs only. Of each program it is asked
whether every output column has exactly the edges that were written down by hand: by source and kind, and by source
alone.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench import programs
from bench.page import table
from govtool.model import ColumnRef, Derivation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from govtool.capture.spark.executed import Executed

TITLE = "## The OpenLineage listener"

LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
RESULTS = "results"
"""The folder in which each query has one, named by its number."""

_TABLE = re.compile(rf"(?:.*/{programs.DATABASE}\.db/|.*[/:.]{programs.DATABASE}\.)([^/.]+)\Z")
_RESULT = re.compile(rf".*/{RESULTS}/(\d+)\Z")


def settings(jar: Path, events: Path) -> dict[str, str]:
    """The settings of a session whose events go to a file, a line each."""
    return {
        "spark.jars": str(jar),
        "spark.extraListeners": LISTENER,
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(events),
        "spark.openlineage.namespace": "govtool",
    }


def events_of(path: Path) -> list[Derivation]:
    """What a file of events says, as ``govtool ingest openlineage`` reads it."""
    from govtool.app.ingest.openlineage import read_events
    from govtool.capture.openlineage.derive import derive

    read = read_events([str(path)])
    return list(derive(read.state, read.texts).derivations)


def renamed(derivations: Iterable[Derivation]) -> list[Derivation]:
    """Derivations in which datasets have the names that the programs give them; without aliases and declarations."""
    return [
        each._replace(
            target=_name(each.target),
            target_kind="query" if _RESULT.match(each.target) else each.target_kind,
            edges=tuple(e._replace(source=ColumnRef(_name(e.source.dataset), e.source.path)) for e in each.edges),
        )
        for each in derivations
        if each.statement.kind not in ("alias", "dataset")
    ]


def _name(dataset: str) -> str:
    found = _TABLE.match(dataset)
    return f"{programs.DATABASE}.{found[1]}" if found is not None else dataset


@dataclass(frozen=True, slots=True)
class Judged:
    """Of one program: the output columns that a side has wrong, a line each."""

    program: programs.Program
    kinds: tuple[str, ...]
    """By source and kind."""
    sources: tuple[str, ...]
    """By source alone; paths below columns are cut."""


def judged(program: programs.Program, number: int, derivations: Iterable[Derivation]) -> Judged:
    """What of a program's columns is other than expected, in whatever derivation of a target is the best.

    Args:
        program: What ran.
        number: Of its results.
        derivations: Of all programs, `renamed`.
    """
    kinds: list[str] = []
    sources: list[str] = []
    listed = list(derivations)
    for expected in program.expected:
        table_ = f"{programs.DATABASE}.{expected.target}"
        stated = [d for d in listed if (d.target == table_ if expected.target else _number(d.target) == number)]
        nothing = [f"nothing is said of {expected.target or 'the query'}"]
        found = [_wrong(program, expected, each) for each in stated] or [(nothing, nothing)]
        kinds += sorted((wrong[0] for wrong in found), key=len)[0]
        sources += sorted((wrong[1] for wrong in found), key=len)[0]
    return Judged(program, tuple(kinds), tuple(sources))


def _number(target: str) -> int | None:
    found = _RESULT.match(target)
    return int(found[1]) if found is not None else None


def _wrong(program: programs.Program, expected: programs.Expected, found: Derivation) -> tuple[list[str], list[str]]:
    full = program.headers.get("paths") == "full"
    kinds, sources = [], []
    for position, (name, wanted) in enumerate(expected.columns):
        path = name if expected.target else f"c{position}"
        own = {
            programs.source_text(edge.source.dataset, edge.source.path, edge.kind.label, full=full)
            for edge in found.edges
            if edge.target_path == path
        }
        # Who does not know what a function does may as well call it a transformation.
        inside = {source.rpartition(" ")[0] for source in wanted if source.endswith(" opaque")}
        stated = {source for source in own if source.rpartition(" ")[0] not in inside} | {
            f"{source.rpartition(' ')[0]} opaque" for source in own if source.rpartition(" ")[0] in inside
        }
        if stated != set(wanted):
            kinds.append(f"{name} <- {', '.join(sorted(own))}")
        if _columns(own) != _columns(wanted):
            sources.append(f"{name} <- {', '.join(sorted(own))}")
    return kinds, sources


def _columns(sources: Iterable[str]) -> set[str]:
    """Tables and columns, without kinds and without what is below a column."""
    found = set()
    for source in sources:
        table_, _, path = source.rpartition(" ")[0].partition(".")
        found.add(f"{table_}.{re.split(r'[.[]', path, maxsplit=1)[0]}")
    return found


def run_all(folder: Path, jar: Path) -> tuple[str, dict[str, list[Judged]]]:
    """Run all programs in one session that both hear: the version of Spark, and what each side has wrong."""
    from bench.spark import session_in
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    (folder / "spool").mkdir()
    session = session_in(folder, settings(jar, folder / "events.jsonl"))
    recorder = Recorder(Spool(str(folder / "spool")))
    programs.prepare(session)
    recorder.attach(session)
    listed = programs.load()
    for number, program in enumerate(listed):

        def sink(frame: DataFrame, place: str = str(folder / RESULTS / str(number))) -> None:
            frame.toDF(*(f"c{i}" for i in range(len(frame.columns)))).write.parquet(place)

        programs.run(session, program, sink)
        recorder.drain(60)
    recorder.finish(60)
    version = session.version
    session.stop()
    stated = {
        "OpenLineage listener": renamed(events_of(folder / "events.jsonl")),
        "govtool, live": renamed(_made(programs.live(folder / "spool"))),
        "govtool, event log": renamed(_made(programs.logged(folder / "events"))),
    }
    return version, {
        side: [judged(program, number, found) for number, program in enumerate(listed)]
        for side, found in stated.items()
    }


def _made(executed: Iterable[Executed]) -> list[Derivation]:
    return [d for each in executed for d in (each.derivation, *each.views) if d is not None]


def section(jar: Path) -> str:
    """Run, and return the section of the page."""
    with tempfile.TemporaryDirectory() as name:
        version, sides = run_all(Path(name), jar)
    rows = []
    for side, found in sides.items():
        count = len(found)
        both = [sum(not each.kinds for each in found), sum(not each.sources for each in found)]
        rows.append([side, *(f"{right} ({right / count:.1%})" for right in both)])
    wrong = [f"{each.program.title}: {each.sources[0]}" for each in sides["OpenLineage listener"] if each.sources]
    listed = "\n".join(f"* {text}" for text in wrong)
    return f"""{TITLE}

The official listener ({jar.stem}) beside our own capture, in one session of Spark {version}: the {count} programs of
`fixtures/spark/programs`, whose lineage is written by hand. A program is right if every output column has exactly the
sources, and the kinds, that were expected. A query is written to a folder, as events have lineage of outputs only; an
argument of a Python function may have any kind.

{table(["", "programs: sources and kinds right", "sources right"], rows)}

What the listener has wrong by source, the first column of each program:

{listed}
"""
