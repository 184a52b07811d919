"""Compares what the graph knows from texts with what runs show, or with what a warehouse recorded itself."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.versions.index import Progress, open_index
from govtool.errors import EvidenceError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.answers.compare_oracle import OracleAnswer
    from govtool.answers.version import GraphVersion
    from govtool.graph.index import Index
    from govtool.query.compare import EvidenceComparison
    from govtool.store import Commit, Reader

GROUPS = ("static", "runtime")
"""Names for all evidence of texts and declarations, and all of runs."""


def evidence_of(store: Reader, commit: Commit) -> tuple[str, ...]:
    """Return the kinds of evidence in a commit, sorted.

    Raises:
        StoreError: a fragment cannot be read.
    """
    import pyarrow.compute as pc

    from govtool.model.columnar import DERIVATIONS, read_table

    found: set[str] = set()
    for ref in store.fragments(commit):
        if ref.table == DERIVATIONS:
            found.update(pc.unique(read_table(store.read(ref)).column("how")).to_pylist())
    return tuple(sorted(how for how in found if how))


def chosen_evidence(store: Reader, commit: Commit, wanted: Sequence[str]) -> tuple[str, ...]:
    """The kinds of evidence that ``--evidence`` names.

    Raises:
        UnknownNameError: the commit has no such evidence (``usage.unknown-evidence``).
        StoreError: a fragment cannot be read.
    """
    from govtool.query.evidence import RUNTIME

    known = evidence_of(store, commit)
    groups = {
        "static": [how for how in known if how not in RUNTIME],
        "runtime": [how for how in known if how in RUNTIME],
    }
    found: set[str] = set()
    for name in wanted:
        chosen = groups[name] if name in groups else [how for how in known if how == name]
        if not chosen:
            raise UnknownNameError(
                f"nothing is known by {name[:40]!r} here",
                code="usage.unknown-evidence",
                nearest=tuple(difflib.get_close_matches(name, [*known, *groups])),
                hint=f"one of {', '.join((*known, *GROUPS))}",
            )
        found.update(chosen)
    return tuple(sorted(found))


def compare_static_runtime(store: Reader, commit: Commit, progress: Progress | None = None) -> EvidenceComparison:
    """The edges that only texts or only runs know.

    Raises:
        UsageError: the commit has only one of them (``usage.no-evidence``).
        StoreError: a fragment cannot be read.
    """
    from govtool.query.compare import compare
    from govtool.query.evidence import RUNTIME

    known = evidence_of(store, commit)
    runtime = [how for how in known if how in RUNTIME]
    static = [how for how in known if how not in RUNTIME]
    if not runtime or not static:
        raise UsageError(
            f"nothing of what is known is from {'runs' if not runtime else 'texts'}",
            code="usage.no-evidence",
            hint="govtool ingest spark|openlineage PATH" if not runtime else "govtool ingest sql FOLDER",
        )
    return compare(
        open_index(store, commit, progress, evidence=static), open_index(store, commit, progress, evidence=runtime)
    )


def compare_oracle(
    index: Index, version: GraphVersion, files: Sequence[Path], form: str = "auto", *, differences: bool = False
) -> OracleAnswer:
    """Read exports and compare.

    Raises:
        UsageError: a file is no export that is known, or cannot be read; no such format.
        EvidenceError: the exports and the graph have nothing in common.
    """
    from govtool.answers.compare_oracle import OracleAnswer
    from govtool.capture.warehouse_lineage import FORMATS, read_exports
    from govtool.query.agreement import compare

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
