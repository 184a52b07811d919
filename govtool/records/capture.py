"""Record-level provenance of a job's actions."""

from __future__ import annotations

from dataclasses import dataclass

from govtool.records.plan.nodes import Plan, Relation


@dataclass(frozen=True, slots=True)
class RecordedWrite:
    """One action of a job, with the exact plan of its rows.

    Attributes:
        run_id: The id of its run in the graph.
        plan: What it evaluated; its root may be a ``Write``.
        output: The dataset that it wrote; None where rows went to the driver.
        output_files: The files of this write, with ordinals and schema; None: not known.
        breaks: Why parts of the plan cannot be evaluated again.
    """

    run_id: str
    plan: Plan
    output: str | None
    output_files: Relation | None = None
    breaks: tuple[str, ...] = ()
