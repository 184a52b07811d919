"""The answer of ``govtool ingest``: what became of each source of govtool.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.answers.diff import commit_key

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult
    from govtool.errors import GovtoolError

STATES = ("committed", "planned", "unchanged", "failed")


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """The outcome of one source: a result or an error."""

    kind: str
    source: str
    """Its name; of one that failed, the name in govtool.toml, or its kind and path."""
    result: IngestResult | None = None
    error: GovtoolError | None = None
    """The reason why the source keeps its last version."""
    kept: bool = False
    """Of one that failed: its last version is in the graph. False: nothing of it is."""

    @property
    def state(self) -> str:
        """One of ``STATES``."""
        if self.result is None:
            return "failed"
        if not self.result.created:
            return "unchanged"
        return "committed" if self.result.plan is None else "planned"

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        result, error = self.result, self.error
        plan = result.plan if result is not None else None
        return {
            "source": self.source,
            "kind": self.kind,
            "state": self.state,
            "commit": commit_key(result.commit) if result is not None and plan is None else None,
            "files": result.files if result is not None else None,
            "coverage": result.coverage.counts() if result is not None else None,
            "plan": None if plan is None else dict(plan.body()),
            "error": None
            if error is None
            else {"code": error.code, "message": error.message, "location": error.location, "hint": error.hint},
        }


@dataclass(frozen=True, slots=True)
class IngestAllAnswer(Answer):
    """The outcomes of all sources, in the order of govtool.toml."""

    schema: ClassVar[str] = "ingest/1"
    fields: ClassVar[tuple[str, ...]] = ("source", "kind", "state", "files", "share", "commit", "error")
    types: ClassVar[Mapping[str, str]] = {"files": "integer", "share": "number"}

    store: str
    """The URI of the store."""
    branch: str
    outcomes: tuple[SourceOutcome, ...]
    unlisted: tuple[str, ...] = ()
    """Live sources that govtool.toml does not list, where all of its sources were read."""

    @property
    def failed(self) -> tuple[SourceOutcome, ...]:
        """Those that keep their last version."""
        return tuple(outcome for outcome in self.outcomes if outcome.error is not None)

    def body(self) -> Mapping[str, object]:
        """Store, branch, outcomes, and their number by state."""
        states = [outcome.state for outcome in self.outcomes]
        return {
            "store": self.store,
            "branch": self.branch,
            "sources": [outcome.to_dict() for outcome in self.outcomes],
            "summary": {state: states.count(state) for state in STATES},
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a source."""
        for each in self.outcomes:
            result = each.result
            yield (
                each.source,
                each.kind,
                each.state,
                None if result is None else result.files,
                None if result is None else result.coverage.share(),
                None if result is None or result.plan is not None else result.commit.id,
                None if each.error is None else f"[{each.error.code}] {each.error.message}",
            )
