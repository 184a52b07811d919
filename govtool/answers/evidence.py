"""Evidence and steps as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.model.places import Place
    from govtool.query.evidence import Evidence, WayStep


def evidence_object(evidence: Evidence) -> dict[str, object]:
    """The JSON value of a statement as evidence."""
    return {
        "kind": evidence.kind,
        "how": evidence.how,
        "file": evidence.file,
        "line": evidence.line,
        "fingerprint": evidence.fingerprint,
        "run": evidence.run,
        "first_seen": evidence.first_seen,
        "last_seen": evidence.last_seen,
        "count": evidence.count,
        **_expression(evidence.expression),
    }


def step_object(step: WayStep) -> dict[str, object]:
    """The JSON value of one edge of a way."""
    return {
        "source": step.source,
        "target": step.target,
        "kind": step.kind.label if step.kind is not None else step.label,
        "functions": list(step.functions),
        "star": step.star,
        "masking": step.masking,
        "reason": step.reason,
        "temporary": step.elided,
        "evidence": evidence_object(step.evidence),
        **({"more_evidence": [evidence_object(one) for one in step.more]} if step.more else {}),
    }


def _expression(place: Place | None) -> dict[str, object]:
    """The place of an expression, under ``expression``; nothing where it is not known."""
    if place is None:
        return {}
    end = {} if place.end_column is None else {"end_line": place.end_line, "end_column": place.end_column}
    return {"expression": {"line": place.line, "column": place.column, **end}}
