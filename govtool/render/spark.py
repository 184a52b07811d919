"""Summary of an ingest of Spark executions, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from govtool.answers.coverage import sentence
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult


def spark_summary(result: IngestResult) -> str:
    """``prod: commit 3 (ab12cd3) · 2 applications, 40 executions (1 failed) · 9 datasets, 120 edges · …``."""
    if not result.created:
        return result.place
    summary = result.commit.summary
    counts = result.counts
    sizes = ", ".join(
        count(number, noun)
        for noun, number in (("dataset", summary.get("datasets")), ("edge", summary.get("edges")))
        if isinstance(number, int)
    )
    parts = [
        f"{count(counts['applications'], 'application')}, {count(counts['executions'], 'execution')}"
        f"{_ended(counts['runs'])}",
        sizes,
        sentence(result.coverage),
    ]
    breaks = sum(counts["breaks"].values())
    if breaks:
        kinds = ", ".join(f"{number:,} {code.removeprefix('break.')}" for code, number in counts["breaks"].items())
        parts.append(f"{count(breaks, 'break')} ({kinds})")
    return f"{result.place} · {' · '.join(parts)}"


def _ended(runs: Mapping[str, Any]) -> str:
    text = ", ".join(f"{number:,} {status}" for status, number in runs.items() if status != "complete")
    return f" ({text})" if text else ""
