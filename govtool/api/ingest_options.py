"""Options that ingests share, declared once, and the step that all ingests end with.

A function takes them as ``**options: Unpack[IngestOptions]``: type checkers see each keyword with its type, and
``checked`` converts the values and puts the names into the function's signature.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from typing import Unpack

    from govtool.answers.ingest import CoverageDemand, IngestResult
    from govtool.api.arguments import Texts
    from govtool.app.project.requests import PathArgument
    from govtool.store import Store


class CommitOptions(TypedDict, total=False):
    """Keywords of every function that commits."""

    message: str | None
    """The commit's message."""
    author: str | None
    """The commit's author; by default the user's name."""
    branch: str | None
    """The branch to commit to; by default ``main``."""
    store: PathArgument | None
    """A path or URI; by default that of the settings."""


class IngestOptions(CommitOptions, total=False):
    """Keywords of every ingest."""

    source: str | None
    """The name of what this ingest replaces; by default its kind and path."""
    replace: bool
    """Replace the source also where it was read from another place or by another kind of ingest."""
    strict: bool
    """Commit only if everything was understood."""
    min_coverage: float | None
    """Commit only if this share of the statements and of their runs was understood, in percent."""
    explain_failures: bool
    """Return ``shortfalls`` also where nothing is new: all is read again."""
    dry_run: bool
    """Change nothing: the result's ``plan`` has what would change."""
    policy: Texts | None
    """Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``."""
    publish: bool | None
    """Publish the index of the commit in a remote store; by default as ``[store] publish`` says."""


def demand_of(options: IngestOptions, *, errors: bool = True) -> CoverageDemand:
    """Return what has to be understood for a commit; ``errors``: diagnostics of severity ``error`` count as a lack."""
    from govtool.answers.ingest import CoverageDemand

    return CoverageDemand(
        options.get("strict", False),
        options.get("min_coverage"),
        errors=errors,
        shortfalls=options.get("explain_failures", False),
    )


def ingest_with(
    ingest: Callable[..., IngestResult],
    request: object,
    *,
    errors: bool = True,
    more: dict[str, Any],
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Ingest, or plan it, as the options demand.

    Args:
        ingest: One of ``govtool.app``: takes the store, the request, and what a commit needs.
        request: The place, and the options of its kind.
        more: Further keywords for ``ingest``: streams and callbacks.
        errors: Diagnostics of severity ``error`` count as a lack of evidence.
        **options: Those of every ingest.
    """
    from govtool.app.ingest.dry_run import ingest_or_plan
    from govtool.app.project.project import existing_branch
    from govtool.app.project.requests import texts

    store = opened(options)
    branch = existing_branch(store, options.get("branch"))

    def run(target: Store) -> IngestResult:
        return ingest(
            target,
            request,
            message=options.get("message"),
            author=options.get("author"),
            branch=branch,
            demand=demand_of(options, errors=errors),
            **more,
        )

    policy = texts(options.get("policy")) or None
    publish = publishes(options.get("publish"))
    return ingest_or_plan(store, run, dry_run=options.get("dry_run", False), policy=policy, publish=publish)


def publishes(chosen: bool | None) -> bool:
    """Return whether ingests publish the index of their commit: as chosen, else as ``[store] publish`` says."""
    from govtool.config import load_config

    return load_config(Path.cwd()).publish if chosen is None else chosen


def opened(options: CommitOptions) -> Store:
    """Open the store that the options name."""
    from govtool.app.project.project import open_store

    store = options.get("store")
    return open_store(None if store is None else os.fspath(store))
