"""``--strict`` and ``--min-coverage``: when the evidence does not suffice."""

from __future__ import annotations

from collections.abc import Sequence

from govtool.errors import EvidenceError
from govtool.model import Diagnostic
from govtool.render.coverage import StatementCounts, shortfall


def check_coverage(
    coverage: StatementCounts, *, strict: bool, min_coverage: float | None, diagnostics: Sequence[Diagnostic] = ()
) -> None:
    """Raise EvidenceError (exit 3) where too little was understood.

    That is: nothing at all; with ``strict`` anything less than everything; or less than ``min_coverage`` percent.
    """
    errors = sum(d.severity == "error" for d in diagnostics)
    problem = shortfall(coverage, strict=strict, min_coverage=min_coverage, errors=errors)
    if problem:
        raise EvidenceError(
            problem, code="evidence.coverage", hint="see the diagnostics above; is the --dialect right?"
        )
