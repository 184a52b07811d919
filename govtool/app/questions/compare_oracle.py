"""Compares a version of the graph with exports of what a warehouse recorded itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.answers.compare_oracle import OracleAnswer
from govtool.errors import EvidenceError, UnknownNameError
from govtool.query.agreement import compare

if TYPE_CHECKING:
    from govtool.answers.version import GraphVersion
    from govtool.graph.index import Index


def compare_oracle(
    index: Index, version: GraphVersion, files: Sequence[Path], form: str = "auto", *, differences: bool = False
) -> OracleAnswer:
    """Read exports and compare.

    Raises:
        UsageError: a file is no export that is known, or cannot be read; no such format.
        EvidenceError: the exports and the graph have nothing in common.
    """
    from govtool.capture.warehouse_lineage import FORMATS, read_exports

    if form not in ("auto", *FORMATS):
        raise UnknownNameError(
            f"no export of {form}", code="usage.unknown-format", hint=f"one of auto, {', '.join(FORMATS)}"
        )
    export = read_exports(files, form)
    agreement = compare(index, export.edges, export.written)
    if not agreement.edges:
        known = ", ".join(agreement.unknown[:3]) or "no dataset with columns"
        raise EvidenceError(
            "no dataset is written in both the exports and the graph",
            code="evidence.nothing-common",
            hint=f"the exports write {known}; does the graph name them otherwise? govtool ls",
        )
    return OracleAnswer(version, export, agreement, differences)
