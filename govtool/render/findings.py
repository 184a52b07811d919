"""Shared parts of the renderings of a check: places, ways, sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.answers.check import level
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.policy.rules.check import CheckResult
    from govtool.policy.rules.finding import Finding
    from govtool.query.evidence import WayStep


def way(finding: Finding) -> str:
    """``crm.users.email ──copy──▶ stg.users.email ──lower()──▶ mart.audience.email``; two ways with ``+`` between."""
    if not finding.ways:
        return " ──▶ ".join(finding.path)
    return " + ".join(_way(start, steps) for start, steps in finding.ways)


def _way(start: str, steps: Iterable[WayStep]) -> str:
    text = start
    passing: list[str] = []
    for step in steps:
        passing.append(step.label)
        if step.elided:
            continue
        labels = [label for label in passing if label != "copy"] or ["copy"]
        text += f" ──{' → '.join(dict.fromkeys(labels))}──▶ {step.target}"
        passing = []
    return text


def reason(finding: Finding) -> str:
    """Why, and what to do: ``not declassified: lower() keeps the value · fix: keyed-hash``."""
    parts = [_worsened(finding), finding.why]
    if finding.verdict.label == "waived" and finding.expires:
        parts.append(f"waived until {finding.expires} ({finding.waiver})")
    elif finding.fix:
        parts.append(f"fix: {finding.fix}")
    return " · ".join(part for part in parts if part)


def _worsened(finding: Finding) -> str:
    """``worse than what was accepted: whole, not part``; empty if nothing was."""
    if finding.excess is None:
        return ""
    return f"worse than what was accepted: {finding.excess.now}, not {finding.excess.accepted}"


def sentence(finding: Finding) -> str:
    """One finding in one sentence."""
    about = f" ({', '.join(finding.classes)})" if finding.classes else ""
    source = f" from {finding.source}" if finding.source and finding.source != finding.column else ""
    doubt = "could not be decided: " if finding.verdict.label == "unknown" else ""
    worsened = f"{_worsened(finding)}; " if finding.excess else ""
    return f"{finding.title}: {doubt}{finding.column}{about}{source}. {worsened}{finding.why}".rstrip(". ") + "."


def summary(result: CheckResult, *, strict: bool) -> str:
    """``1 error, 0 warnings, 1 policy warning, 1 waived (expires 2027-03-31), 1 unknown, 5 rules held``."""
    found = Counter(level(f, strict=strict) for f in result.findings)
    parts = [count(found["error"], "error"), count(found["warning"], "warning")]
    if found["note"]:
        parts.append(count(found["note"], "note"))
    remarks = sum(remark.severity == "warning" for remark in result.remarks)
    if remarks:
        parts.append(count(remarks, "policy warning"))
    waived = [f.expires for f in result.findings if level(f, strict=strict) == "waived" and f.expires]
    if waived:
        parts.append(f"{found['waived']:,} waived (expires {min(waived)})")
    if found["accepted"]:
        parts.append(f"{found['accepted']:,} in the baseline")
    if found["unknown"]:
        parts.append(f"{found['unknown']:,} unknown")
    if result.known:
        parts.append(f"{result.known:,} known before")
    if result.skipped:
        parts.append(f"{count(len(result.skipped), 'rule')} skipped (no --base)")
    parts.append(f"{count(len(result.held()), 'rule')} held")
    if result.not_applicable:
        parts.append(f"{len(result.not_applicable):,} not applicable")
    return ", ".join(parts)


def levelled(result: CheckResult, *, strict: bool) -> Iterator[tuple[str, Finding]]:
    """Findings with their levels, in order."""
    return ((level(f, strict=strict), f) for f in result.findings)
