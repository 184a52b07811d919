"""SARIF 2.1.0 (OASIS), as GitHub code scanning and others read it.

A result lies at the SQL line that makes the offending edge; the other hops are related locations and a code flow.
What could not be told is of kind ``open`` and level ``none``; what is waived is suppressed, not left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from govtool.answers.check import level
from govtool.release import __version__
from govtool.render.findings import sentence, way

if TYPE_CHECKING:
    from govtool.app.project.checkout import Checkout
    from govtool.model.places import Place
    from govtool.policy.rules.check import CheckResult
    from govtool.policy.rules.finding import Finding
    from govtool.query.evidence import WayStep

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_BASE = "%SRCROOT%"


def sarif(result: CheckResult, *, strict: bool, where: Checkout) -> dict[str, object]:
    """The log of a check.

    Args:
        result: The outcome.
        strict: Whether what is unknown counts as violated.
        where: The repository, and where in it the files are.

    Raises:
        UsageError: A file lies outside the repository.
    """
    number = {rule.value.id: i for i, rule in enumerate(result.rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "govtool",
                        "version": __version__,
                        "rules": [
                            {
                                "id": rule.value.id,
                                "shortDescription": {"text": rule.value.title},
                                "fullDescription": {"text": rule.value.description or rule.value.title},
                                "help": {"text": rule.value.fix or rule.value.title},
                                "defaultConfiguration": {"level": rule.value.severity},
                                "properties": {"form": rule.value.form, "place": rule.place},
                            }
                            for rule in result.rules
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_BASE: {"uri": f"{where.top.as_uri().rstrip('/')}/"}},
                "results": [_result(f, number[f.rule], strict, where) for f in result.findings],
            }
        ],
    }


def _result(finding: Finding, number: int, strict: bool, where: Checkout) -> dict[str, object]:
    open_ = finding.verdict.label == "unknown" and not strict
    last = finding.steps[-1] if finding.steps else None
    found: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": number,
        "kind": "open" if open_ else "fail",
        "level": "none" if open_ else finding.severity,
        "message": {"text": f"{sentence(finding)}\n{way(finding)}"},
        "locations": [{**_physical(finding, last, where), **_logical(finding.column)}],
        "partialFingerprints": {"govtoolFinding/v1": finding.fingerprint},
        "properties": {"verdict": finding.verdict.label, "classes": list(finding.classes), "state": finding.state},
    }
    if len(finding.steps) > 1:
        hops = [_hop(finding, step, where) for step in finding.steps]
        found["relatedLocations"] = [{"id": i, **hop} for i, hop in enumerate(hops[:-1], 1)]
        flows = [[_hop(finding, step, where) for step in steps] for _, steps in finding.ways if steps]
        found["codeFlows"] = [{"threadFlows": [{"locations": [{"location": hop} for hop in flow]} for flow in flows]}]
    if finding.verdict.label == "waived":
        found["suppressions"] = [
            {
                "kind": "external",
                "status": "accepted",
                "justification": f"{finding.because} ({finding.waiver}, until {finding.expires})",
            }
        ]
    elif level(finding, strict=strict) == "accepted":
        found["baselineState"] = "unchanged"
    return found


def _physical(finding: Finding, step: WayStep | None, where: Checkout) -> dict[str, object]:
    """Return the place of a step; that of the rule itself where it has none."""
    region: dict[str, object] = {}
    if step is not None:
        file, line = where.evidence(step.evidence.file, step.evidence.place), step.evidence.line
        region = _region(step.evidence.expression)
    else:
        name, _, text = finding.place.rpartition(":")
        # GitHub refuses a whole log for one result without a place; of a pack, where its copy would lie.
        file = (
            where.written(name) or f"policies/{name.removeprefix('pack:').rpartition('/')[2].removesuffix('.yml')}.yml"
        )
        line = int(text) if text.isdigit() else 1
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file), "uriBaseId": _BASE},
            "region": region or {"startLine": max(1, line)},
        }
    }


def _region(place: Place | None) -> dict[str, object]:
    """Return the region of an expression; SARIF counts columns from 1, and the end is behind its last character."""
    if place is None:
        return {}
    if place.column is None or place.end_column is None:
        return {"startLine": place.line}
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column + 1,
    }


def _logical(name: str) -> dict[str, object]:
    return {"logicalLocations": [{"fullyQualifiedName": name, "kind": "member"}]}


def _hop(finding: Finding, step: WayStep, where: Checkout) -> dict[str, object]:
    return {
        **_physical(finding, step, where),
        **_logical(step.target),
        "message": {"text": f"{step.source} → {step.target}: {step.label}"},
    }
