"""The answer of ``check``: the findings of policies on one version of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer, at_least
from govtool.answers.evidence import step_object
from govtool.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.policy.rules.check import CheckResult
    from govtool.policy.rules.finding import Finding

SEVERITIES = ("error", "warning", "note")
"""The worst first."""


@dataclass(frozen=True, slots=True)
class CheckAnswer(GraphAnswer):
    """Findings, the worst first, with the rules that were judged and remarks on the policies themselves."""

    schema: ClassVar[str] = "check/1"
    fields: ClassVar[tuple[str, ...]] = (
        *("rule", "title", "severity", "verdict", "column", "source", "classes", "path"),
        *("why", "fix", "place", "fingerprint", "accepted", "waiver", "expires"),
    )
    types: ClassVar[Mapping[str, str]] = {"classes": "texts", "path": "texts", "accepted": "boolean"}

    result: CheckResult
    strict: bool = False
    """True if what could not be decided counts as violated."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Violated, unknown and waived, the worst first."""
        return self.result.findings

    def fails(self, fail_on: str = "error") -> bool:
        """Return whether a finding is at or above a severity: ``error``, ``warning``, ``note`` or ``none``.

        Raises:
            UnknownNameError: There is no such severity (``usage.unknown-severity``).
        """
        counted = at_least(fail_on, SEVERITIES, "severity")
        verdicts = ("violated", "unknown") if self.strict else ("violated",)
        return any(f.verdict.label in verdicts and f.severity in counted and not f.accepted for f in self.findings)

    def is_unclear(self) -> bool:
        """Return whether a finding is unknown, or a statement was not understood that could break a rule."""
        unknown = any(f.verdict.label == "unknown" and not f.accepted for f in self.findings)
        return unknown or self.version.unclear > 0

    def check_strict(self) -> None:
        """Refuse an answer as `GraphAnswer.check_strict` does, and one in which no rule had anything to judge.

        Raises:
            EvidenceError: There is something unknown (``evidence.unclear``), or nothing was judged
                (``evidence.nothing-judged``).
        """
        GraphAnswer.check_strict(self)
        result = self.result
        if result.rules and len(result.not_applicable) == len(result.rules):
            raise EvidenceError(
                "no rule had anything to judge: no column is of a class that the rules speak of, or no dataset in "
                "their zones",
                code="evidence.nothing-judged",
                hint="govtool policy lint; govtool classify --suggest",
            )

    def baseline(self) -> dict[str, object]:
        """The JSON value of a baseline that accepts these findings; see docs/policies.md."""
        from govtool.policy.rules.baseline import baseline_object

        return baseline_object(self.findings)

    def with_baseline(self) -> CheckAnswer:
        """The answer with everything accepted that its own ``baseline`` holds; a rule that failed is not."""
        from govtool.policy.rules.baseline import accepted
        from govtool.policy.rules.finding import Accepted

        known = {entry.fingerprint: Accepted() for entry in self.findings if entry.verdict.label != "waived"}
        return replace(self, result=replace(self.result, findings=accepted(self.findings, known)))

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/check-1.json has them."""
        result = self.result
        return {
            "findings": list(self.items()),
            "rules": [
                {
                    "rule": r.value.id,
                    "title": r.value.title,
                    "severity": r.value.severity,
                    "form": r.value.form,
                    "place": r.place,
                    "verdict": _worst(result, r.value.id),
                }
                for r in result.rules
            ],
            "remarks": [
                {"code": r.code, "severity": r.severity, "message": r.message, "place": r.place} for r in result.remarks
            ],
            **({"measured": [one.to_dict() for one in result.measured]} if result.measured else {}),
            "summary": {**self._counts(), "known": result.known, "columns": result.columns},
            "coverage": self.version.coverage.counts(),
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each finding."""
        return (_finding_object(finding) for finding in self.findings)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a finding."""
        for f in self.findings:
            expires = f.expires.isoformat() if f.expires else None
            about = (f.rule, f.title, f.severity, f.verdict.label, f.column, f.source or None, f.classes, f.path)
            yield *about, f.why, f.fix or None, f.place, f.fingerprint, f.accepted, f.waiver, expires

    def _counts(self) -> dict[str, int]:
        found = dict.fromkeys((*SEVERITIES, "unknown", "waived", "accepted"), 0)
        for finding in self.findings:
            found[level(finding, strict=self.strict)] += 1
        result = self.result
        return {
            **found,
            "held": len(result.held()),
            "skipped": len(result.skipped),
            "not_applicable": len(result.not_applicable),
        }


def level(finding: Finding, *, strict: bool) -> str:
    """``error``, ``warning`` or ``note`` for what counts as violated; else the verdict, or ``accepted``."""
    if finding.accepted:
        return "accepted"
    if finding.verdict.label == "violated" or (strict and finding.verdict.label == "unknown"):
        return finding.severity
    return finding.verdict.label


def _worst(result: CheckResult, rule: str) -> str:
    """The verdict of a rule: its worst finding's; ``skipped`` or ``not_applicable`` if it judged nothing."""
    if rule in result.skipped:
        return "skipped"
    if rule in result.not_applicable:
        return "not_applicable"
    found = [f.verdict for f in result.findings if f.rule == rule]
    return min(found).label if found else "held"


def _finding_object(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "title": finding.title,
        "severity": finding.severity,
        "verdict": finding.verdict.label,
        "column": finding.column,
        "source": finding.source or None,
        "classes": list(finding.classes),
        "state": finding.state,
        "path": list(finding.path),
        "paths": [list(path) for path in finding.paths],
        "steps": [step_object(step) for step in finding.steps],
        "why": finding.why,
        "fix": finding.fix or None,
        "place": finding.place,
        "fingerprint": finding.fingerprint,
        "accepted": finding.accepted,
        "strength": finding.strength or None,
        "worse_than": finding.worse_than or None,
        "measured": finding.measured,
        "waiver": finding.waiver,
        "expires": finding.expires and finding.expires.isoformat(),
    }
