"""Compares what the graph knows from texts with what it knows from runs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from govtool.app.versions.index import Progress, open_index
from govtool.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
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
