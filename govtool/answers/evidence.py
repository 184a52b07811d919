"""Evidence and steps as JSON values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from govtool.query.evidence import RUNTIME
from govtool.wording import count

if TYPE_CHECKING:
    from govtool.model.derivation import Statement
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
        **({"users": users_of(evidence.principal)} if evidence.principal else {}),
        **_expression(evidence.expression),
    }


def users_of(principal: str | None) -> list[str]:
    """Those who ran a statement, by name; the number of those who are not named is left out."""
    return re.sub(r" and \d+ more\Z", "", principal).split(", ") if principal else []


def runs_words(statement: Statement | Evidence) -> str:
    """``4 runs by ann, bob, 2026-11-01 to 2026-11-03`` of a statement of a log; empty where no log says so."""
    if statement.count < 2 and (not statement.principal or statement.how in RUNTIME):
        return ""
    users = f" by {statement.principal}" if statement.principal else ""
    days = dict.fromkeys(moment[:10] for moment in (statement.first_seen, statement.last_seen) if moment)
    return ", ".join([f"{count(statement.count, 'run')}{users}", *([" to ".join(days)] if days else [])])


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
