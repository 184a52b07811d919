"""The result of one action: a run, and the lineage of the dataset that it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b

from govtool.capture.spark.identity import DatasetPlace, job_name
from govtool.clock import iso
from govtool.model import Derivation, Diagnostic, EdgeKind
from govtool.model.run import Run
from govtool.names import former_text

PLAN = "plan"
"""The kind of evidence that a live session's analyzed plan is."""
PLAN_TEXT = "plan-text"
"""The kind of evidence that a plan's text is."""
MAX_TEXT = 4000
"""Characters of a plan that its statement keeps."""
_END_OF_TIME = 253_402_300_800
"""Seconds, from 1970 to 10000."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One action: what it did."""

    run: Run
    """Its job is not named yet: the log may tell the script later."""
    target: str
    derivation: Derivation | None
    outcome: str
    """``understood``, ``partial``, ``opaque`` or ``ignored``."""
    places: dict[str, DatasetPlace] = field(default_factory=dict)
    columns: dict[str, dict[str, str | None]] = field(default_factory=dict)
    views: tuple[Derivation, ...] = ()
    """The sources of views of the catalog that were read."""


def named(executed: Executed, script: str, source: str) -> Executed:
    """An action under the name of its job, which the log may have told only at its end."""
    target = executed.target
    made = executed.derivation
    if made is not None:
        notes = tuple(replace(note, file=note.file or script, line=note.line or 1) for note in made.diagnostics)
        made = _from(made, script, source)._replace(diagnostics=notes)
    breaks = tuple(
        replace(note, file=note.file or script, target=note.target or target or None) for note in executed.run.breaks
    )
    job = job_name(script, "" if target.startswith("query:") else target)
    return replace(
        executed,
        run=replace(executed.run, job=job, source=source, breaks=breaks),
        derivation=made,
        views=tuple(_from(view, script, source) for view in executed.views),
    )


def _from(made: Derivation, script: str, source: str) -> Derivation:
    return made._replace(statement=made.statement._replace(file=script, source=source))


def attempted(made: Derivation, status: str) -> Derivation:
    """The intended writes of a run that did not succeed: it may have added to its target, and replaced nothing.

    A run is one action: that it failed says nothing of the application, which may have caught the error.
    """
    what = "a query" if made.target_kind == "query" else "a write"
    reasons = {"failed": f"{what} failed", "aborted": f"the application ended before {what} did"}
    code = "failed-run" if status in reasons else "unfinished-run"
    text = reasons.get(status, f"no event reports how {what} ended")
    note = Diagnostic(code, "warning", text, target=made.target)
    return made._replace(
        mode="append" if made.mode == "replace" and made.target_kind != "query" else made.mode,
        status="partial",
        diagnostics=(*made.diagnostics, note),
    )


def outcome_of(made: Derivation | None, *, ignored: bool) -> str:
    """Return how far an action was understood, as in `Executed`."""
    if ignored:
        return "ignored"
    if made is None or (made.edges and all(edge.kind is EdgeKind.OPAQUE for edge in made.edges)):
        return "opaque"
    return made.status


def fingerprint(text: str) -> str:
    """Return the fingerprint of a plan: one plan has one, whichever version wrote the names in it."""
    return blake2b(former_text(text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def moment(seconds: object) -> str | None:
    """A time as ISO 8601; None if it is none."""
    if not isinstance(seconds, int | float) or not 0 <= seconds < _END_OF_TIME:
        return None
    return iso(datetime.fromtimestamp(seconds, UTC))
