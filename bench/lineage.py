"""Parsing and extraction together against the same compiled parser alone: what lineage costs on top of the parse."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

import sqlglot

from bench.corpora import Corpus, shop, tpc_ds
from bench.page import table
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schema import schema_from_mapping

TITLE = "## What lineage costs on top of the parse"

ROUNDS = 9


def section(rounds: int = ROUNDS) -> str:
    """Measure, and write the section."""
    rows = []
    for corpus in [tpc_ds(), *shop()]:
        runs = _runs(corpus)
        seconds = interleaved(runs, rounds)
        parse = seconds["parse"]
        extraction = _extract(corpus, evidence=True)
        read = extraction.understood + extraction.partial
        rows.append(
            [
                corpus.name,
                extraction.statements + extraction.ignored,
                f"{read}/{extraction.statements}",
                f"{parse * 1000:.0f} ms",
                f"{seconds['lineage'] * 1000:.0f} ms",
                f"**{seconds['lineage'] / parse:.2f}**",
                f"{seconds['ingest'] / parse:.2f}",
            ]
        )
    head = ["texts", "statements", "understood", "parse", "parse + lineage", "ratio", "with evidence"]
    return f"""{TITLE}

`sqlglot.parse` (compiled by sqlglotc) of every text, against `extract()` of the same texts, in one process; {rounds}
rounds in turn. The ratio is what `govtool lineage` does; "with evidence" also makes the fingerprint and the redacted
text of each statement, as `govtool ingest sql` does. Goal: at most 1.3. TPC-DS is read with its schema, the shop with
none but its own DDL.

{table(head, rows)}
"""


def _runs(corpus: Corpus) -> dict[str, Callable[[], object]]:
    return {
        "parse": lambda: [sqlglot.parse(text, read=corpus.dialect) for text in corpus.texts],
        "lineage": lambda: _extract(corpus, evidence=False),
        "ingest": lambda: _extract(corpus, evidence=True),
    }


def _extract(corpus: Corpus, *, evidence: bool) -> Extraction:
    schema = schema_from_mapping(corpus.schema, corpus.dialect) if corpus.schema else None
    scripts = [Script(f"{number}.sql", text) for number, text in enumerate(corpus.texts)]
    return extract(scripts, Options(dialect=corpus.dialect, schema=schema, evidence=evidence))


def interleaved(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of several functions called in turn, after one call of each to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            gc.collect()
            start = time.perf_counter()
            run()
            if number:
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in taken.items()}
