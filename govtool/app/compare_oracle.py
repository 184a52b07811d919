"""Compares a version of the graph with exports of what a warehouse recorded itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.errors import EvidenceError, UnknownNameError
from govtool.query.agreement import Agreement, compare

if TYPE_CHECKING:
    from govtool.capture.oracle import Export
    from govtool.graph.index import Index


@dataclass(frozen=True, slots=True)
class OracleComparison:
    """What the exports hold, and how far the graph agrees."""

    export: Export
    agreement: Agreement


def compare_oracle(index: Index, files: Sequence[Path], form: str = "auto") -> OracleComparison:
    """Read exports and compare.

    Raises:
        UsageError: a file is no export that is known, or cannot be read; no such format.
        EvidenceError: the exports and the graph have nothing in common.
    """
    from govtool.capture.oracle import FORMATS, read_exports

    if form not in ("auto", *FORMATS):
        raise UnknownNameError(
            f"no export of {form}", code="usage.unknown-format", hint=f"one of auto, {', '.join(FORMATS)}"
        )
    export = read_exports(files, form)
    agreement = compare(index, export.edges, export.written)
    if not agreement.edges:
        known = ", ".join(agreement.unknown[:3]) or "no dataset with columns"
        raise EvidenceError(
            "the exports and the graph have no written dataset in common",
            code="evidence.nothing-common",
            hint=f"the exports write {known}; does the graph name them otherwise? govtool ls",
        )
    return OracleComparison(export, agreement)
