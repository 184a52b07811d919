"""The changes that an ingest would make, as text and as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.coverage import sentence
from govtool.render.diff import FORMATS, change_table, difference_sentence, render_changes, version_words
from govtool.render.layout.table import Table
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.ingest_plan import IngestPlan

__all__ = ["FORMATS", "render"]


def render(form: str, plan: IngestPlan) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    return render_changes(form, plan, lambda: _table(plan))


def _table(plan: IngestPlan) -> Table:
    base = f"{plan.branch}, no commit yet" if plan.base is None else version_words(plan.base)
    table = change_table(plan.changes, plan.truncated, "-v")
    changes = difference_sentence(plan.difference) or "no difference in the graph"
    return replace(
        table,
        heading=f"{base} → dry run of {plan.source}",
        summary=f"{changes}{table.summary}\n{_outcome(plan)}",
    )


def _outcome(plan: IngestPlan) -> str:
    where = f" in {plan.store}" if "://" in plan.store else ""
    if not plan.commits:
        return f"{plan.source}: nothing new: the ingest would commit nothing{where}"
    others = ", ".join(name for name in plan.replaces if name != plan.source)
    taken = f" · takes over {others}" if others else ""
    before = ""
    if plan.former is not None and plan.former != plan.coverage:
        before = f", before {sentence(plan.former)}"
    files = count(plan.files, "file")
    return f"{plan.source}: nothing was committed{where} · {files} · {sentence(plan.coverage)}{before}{taken}"
