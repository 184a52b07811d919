"""``--strict`` and ``--min-coverage``: when the evidence does not suffice."""

from __future__ import annotations

from govtool.answers.answer import require_coverage as check_coverage

__all__ = ["check_coverage"]
