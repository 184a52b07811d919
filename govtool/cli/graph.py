"""What the commands that ask the graph have in common: opening a version of it, and its arguments."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.complete import complete_kind, complete_selector
from govtool.cli.ui import Ui
from govtool.errors import UnknownNameError
from govtool.model import KIND_BY_LABEL, EdgeKind

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.render.answer import GraphVersion
    from govtool.store import Commit, Reader

SHOWN = 100
"""Entries of a table when neither ``--limit`` nor ``--all`` says otherwise."""

ColumnArgument = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN",
        autocompletion=complete_selector,
        help="A column or dataset; the shortest unambiguous end of its name will do. Or several, by a selector: "
        "'mart.**', class:personal … See govtool ls --help.",
    ),
]
KindOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        autocompletion=complete_kind,
        help="Follow only edges of this kind: identity, transformation, aggregation, conditional, join … Repeatable.",
    ),
]
DepthOption = Annotated[int | None, typer.Option("--depth", metavar="N", min=0, help="Go at most N hops.")]
EvidenceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="HOW",
        help="Only what is known so: sql, catalog, declared, plan, plan-text, openlineage, prov; static or runtime for "
        "all of texts or of runs. Repeatable.",
    ),
]
SemanticsOption = Annotated[
    str, typer.Option("--semantics", metavar="precise|lineagex", help="Whether UNION ALL arms count as references.")
]


@dataclass(frozen=True, slots=True)
class Opened:
    """A version of the graph."""

    index: Index
    version: GraphVersion
    store: Reader
    commit: Commit


def open_graph(
    ui: Ui, store: str | None, at: str | None, branch: str | None = None, evidence: list[str] | None = None
) -> Opened:
    """Open the graph of a commit, or what is known of it in some ways; its index is built if the cache has none.

    Raises:
        UnknownNameError: nothing is known in one of these ways (``usage.unknown-evidence``).
    """
    from govtool.app.compare import chosen_evidence
    from govtool.app.coverage import total_coverage
    from govtool.app.index import open_index
    from govtool.app.project import commit_at, read_store
    from govtool.render.answer import GraphVersion

    opened = read_store(store)
    commit = commit_at(opened, at, branch)
    ui.mark("open the store")
    with ui.progressing("building the index") as progress:
        known = chosen_evidence(opened, commit, evidence) if evidence else ()
        index = open_index(opened, commit, progress, evidence=known)
    version = GraphVersion(opened.uri, commit, total_coverage(opened, commit))
    ui.mark("open the index")
    return Opened(index, version, opened, commit)


def edge_kinds(labels: Iterable[str] | None) -> list[EdgeKind] | None:
    """Kinds by their labels; None for all.

    Raises:
        UnknownNameError: there is no such kind (``usage.unknown-kind``).
    """
    if not labels:
        return None
    found = []
    for label in labels:
        if label not in KIND_BY_LABEL:
            raise UnknownNameError(
                f"no kind {label}",
                code="usage.unknown-kind",
                nearest=tuple(difflib.get_close_matches(label, KIND_BY_LABEL)),
                hint=f"one of {', '.join(KIND_BY_LABEL)}",
            )
        found.append(KIND_BY_LABEL[label])
    return found


def bound(limit: int | None, all: bool, form: str) -> int | None:
    """How many entries to ask for: tables are short by default, machines get everything."""
    if all or (limit is None and form not in ("table", "plain", "markdown")):
        return None
    return SHOWN if limit is None else limit
