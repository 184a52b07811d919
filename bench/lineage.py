"""Parsing and extraction together against the same compiled parser alone: what lineage costs on top of the parse."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import sqlglot

from bench.compiled import compiled
from bench.corpora import ROOT, Corpus, bigquery_etl, shop, tpc_ds, tpc_h
from bench.page import table
from govtool.build_form import COMPILED, PURE, form
from govtool.capture.sql.collector import uncollected
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.syntax.lexer import STRING_TYPES, lexer

TITLE = "## What lineage costs on top of the parse"

ROUNDS = 9
SMALL = 60
"""Corpora of fewer texts are measured in five times as many rounds: one of them takes milliseconds."""
LONG = 0.05
"""Seconds of parsing in a run that reads the texts over and over."""


def section(checkout: Path | None = None, rounds: int = ROUNDS) -> str:
    """Measure, and write the section.

    Args:
        checkout: Of mozilla/bigquery-etl, whose queries are read, too.
        rounds: Of each measurement.
    """
    measured: dict[str, list[_Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        compiled(Path(folder))
        for wanted, path in ((COMPILED, f"{folder}{os.pathsep}{ROOT}"), (PURE, str(ROOT))):
            command = [sys.executable, "-P", "-m", "bench.lineage", str(rounds)]
            command += [] if checkout is None else [str(checkout)]
            environment = {**os.environ, "PYTHONPATH": path}
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            ran, measured[wanted] = json.loads(done.stdout)
            if ran != wanted:
                raise RuntimeError(f"measured {ran}, not {wanted}")
    rows = [[name, *row] for name, found in measured.items() for row in found]
    head = ["extractor", "texts", "statements", "understood", "parse", "parse + lineage", "ratio, as users run it"]
    head += ["ratio, collector off", "over and over", "bodies too", "with evidence"]
    return f"""{TITLE}

`sqlglot.parse` (compiled by sqlglotc) of every text, against `extract()` of the same texts, in one process; medians of
{rounds} rounds in turn, five times as many for small corpora, CPU time. The first ratio is what `govtool lineage` does
as users run it. Goal: at most 1.3. TPC-DS and TPC-H are read with their schemas, the others with none but their own
DDL; "whole" is the sum of the shop's two dialects. "compiled" is what a wheel holds, "pure Python" an editable install
or one without a C compiler. The other columns are ratios, too:

* "collector off": the same while Python's cyclic collector is off on both sides. Goals, compiled: at most 1.2, of
  bigquery-etl 1.5.
* "over and over": runs that read the texts as often as the parser alone takes {LONG * 1000:.0f} ms for. Trees are freed
  by Python's cyclic collector; the parser alone is interrupted by it all the time, `extract()` puts it off to its end.
* "bodies too": bodies of procedures are strings to the parser alone, but read by govtool; here the parser alone is
  given every text and, besides, every statement that govtool found inside of a string, each of them a text of its own.
* "with evidence": the fingerprint and the redacted text of each statement, too, as `govtool ingest sql` makes them.

{table(head, rows)}
"""


_Row = list[str]


def measure(rounds: int, checkout: Path | None = None) -> list[_Row]:
    """Measure the form of the extractor that this process runs."""
    shops = shop()
    measured = [_measured(corpus, rounds) for corpus in (tpc_ds(), tpc_h(), *shops)]
    measured.append(_together("shop (whole)", measured[-len(shops) :]))
    if checkout is not None:
        measured.append(_measured(bigquery_etl(checkout), rounds))
    return [found.row() for found in measured]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What reading a corpus took; seconds are medians of all its texts."""

    name: str
    found: int
    statements: int
    read: int
    seconds: dict[str, float]

    def row(self) -> _Row:
        seconds, parse = self.seconds, self.seconds["parse"]
        return [
            self.name,
            str(self.found),
            f"{self.read}/{self.statements}",
            f"{parse * 1000:.1f} ms",
            f"{seconds['lineage'] * 1000:.1f} ms",
            f"**{seconds['lineage'] / parse:.2f}**",
            f"**{seconds['lineage, off'] / seconds['parse, off']:.2f}**",
            f"{seconds['lineage, over'] / seconds['parse, over']:.2f}",
            f"{seconds['lineage'] / seconds['bodies']:.2f}",
            f"{seconds['ingest'] / parse:.2f}",
        ]


def _measured(corpus: Corpus, rounds: int) -> _Measured:
    runs = _runs(corpus)
    many = rounds if len(corpus.texts) >= SMALL else 5 * rounds
    seconds = interleaved(runs, many)
    with uncollected():
        off = interleaved({name: runs[name] for name in ("parse", "lineage")}, many)
    seconds |= {f"{name}, off": taken for name, taken in off.items()}
    passes = max(2, round(LONG / seconds["parse"]))
    over = interleaved({name: partial(_several, runs[name], passes) for name in ("parse", "lineage")}, rounds)
    seconds |= {f"{name}, over": taken / passes for name, taken in over.items()}
    done = _extract(corpus, evidence=True)
    read = done.understood + done.partial
    return _Measured(corpus.name, done.statements + done.ignored, done.statements, read, seconds)


def _several(run: Callable[[], object], times: int) -> None:
    for _ in range(times):
        run()


def _together(name: str, parts: Sequence[_Measured]) -> _Measured:
    return _Measured(
        name,
        sum(part.found for part in parts),
        sum(part.statements for part in parts),
        sum(part.read for part in parts),
        {run: sum(part.seconds[run] for part in parts) for run in parts[0].seconds},
    )


def _runs(corpus: Corpus) -> dict[str, Callable[[], object]]:
    everything = (*corpus.texts, *inside_strings(corpus))
    return {
        "parse": lambda: [sqlglot.parse(text, read=corpus.dialect) for text in corpus.texts],
        "bodies": lambda: [sqlglot.parse(text, read=corpus.dialect) for text in everything],
        "lineage": lambda: _extract(corpus, evidence=False),
        "ingest": lambda: _extract(corpus, evidence=True),
    }


def inside_strings(corpus: Corpus) -> list[str]:
    """The statements inside of strings, such as bodies of procedures: parsed by govtool, not by the parser alone."""
    found = []
    for text in corpus.texts:
        strings = [t.text for t in lexer(corpus.dialect).tokenize(text) if t.token_type in STRING_TYPES]
        parsed = [s.text for s in parse_script(text, corpus.dialect) if s.tree is not None]
        found += [statement for statement in parsed if any(statement in string for string in strings)]
    return found


def _extract(corpus: Corpus, *, evidence: bool) -> Extraction:
    schema = schema_from_mapping(corpus.schema, corpus.dialect) if corpus.schema else None
    scripts = [Script(f"{number}.sql", text) for number, text in enumerate(corpus.texts)]
    return extract(scripts, Options(dialect=corpus.dialect, schema=schema, evidence=evidence))


def interleaved(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of several functions called in turn, after one call of each to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            gc.collect()
            start = time.process_time()
            run()
            if number:
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


if __name__ == "__main__":
    print(json.dumps([form(), measure(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)]))
