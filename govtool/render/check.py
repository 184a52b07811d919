"""``govtool check`` for people: blocks of lines, Markdown; and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.render.answer import GraphVersion, step_object
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.findings import level, levelled, reason, summary, way
from govtool.render.text import Prose, printable

if TYPE_CHECKING:
    from govtool.app.checkout import Checkout
    from govtool.policy.check import CheckResult
    from govtool.policy.finding import Finding

FORMATS = ("table", "plain", "json", "jsonl", "sarif", "junit", "github", "markdown")
MARKER = "<!-- govtool check -->"
"""First line of the Markdown, by which a sticky comment is found again."""
_SHOWN = ("error", "warning", "note", "unknown")


def render(
    form: str, result: CheckResult, version: GraphVersion, *, strict: bool, where: Checkout, limit: int | None
) -> Prose | Iterable[str]:
    """One of ``FORMATS``.

    Args:
        form: The format.
        result: The outcome.
        version: What was checked.
        strict: Whether what is unknown counts as violated.
        where: The repository, and where in it the files are, for SARIF and GitHub.
        limit: Findings to show in a table at most.

    Raises:
        UsageError: A file of the evidence lies outside the repository.
    """
    if form == "sarif":
        from govtool.render.sarif import sarif

        return json_lines(sarif(result, strict=strict, where=where))
    if form == "junit":
        from govtool.render.junit import junit

        return junit(result, strict=strict)
    if form == "github":
        from govtool.render.github import workflow_commands

        return workflow_commands(result, strict=strict, where=where)
    if form == "markdown":
        return markdown(result, version, strict=strict, limit=limit)
    if form == "jsonl":
        return (compact(finding_object(f)) for f in result.findings)
    if form == "json":
        return json_lines(_body(result, version, strict=strict))
    rendered = lines(result, version, strict=strict, limit=limit)
    return Prose(rendered) if form == "table" else rendered


def lines(result: CheckResult, version: GraphVersion, *, strict: bool, limit: int | None) -> Iterator[str]:
    """A block of lines a finding, then remarks, then the sentence."""
    shown = [(kind, f) for kind, f in levelled(result, strict=strict) if kind in _SHOWN]
    for kind, finding in shown[:limit]:
        yield printable(f"{finding.rule} {kind}  {finding.title}  {finding.place}")
        place = f"  [{finding.evidence.place}]" if finding.evidence else ""
        yield printable(f"  {way(finding)}{place}")
        reason_text = reason(finding)
        if reason_text:
            yield printable(f"  {reason_text}")
        yield ""
    for remark in result.remarks:
        yield printable(f"{remark.severity}[{remark.code}] {remark.message}  {remark.place}")
    if result.remarks:
        yield ""
    left = f" · {len(shown) - limit:,} more (--all)" if limit is not None and len(shown) > limit else ""
    yield version.closing(summary(result, strict=strict) + left)


def markdown(result: CheckResult, version: GraphVersion, *, strict: bool, limit: int | None) -> Iterator[str]:
    """For a sticky comment on a pull request."""
    yield MARKER
    yield f"### govtool check: {_cell(summary(result, strict=strict))}"
    yield ""
    shown = [(kind, f) for kind, f in levelled(result, strict=strict) if kind in _SHOWN]
    if shown:
        yield "| | rule | column | way | why |"
        yield "| --- | --- | --- | --- | --- |"
    for kind, finding in shown[:limit]:
        rule = f"{finding.rule} {finding.title}"
        yield "| " + " | ".join(_cell(c) for c in (kind, rule, finding.column, way(finding), reason(finding))) + " |"
    if shown:
        yield ""
    if limit is not None and len(shown) > limit:
        yield f"{len(shown) - limit:,} more findings are not shown."
        yield ""
    for remark in result.remarks:
        yield f"- {_cell(remark.message)} ({_cell(remark.place)})"
    yield _cell(version.closing())


def _cell(text: str) -> str:
    escaped = printable(text)
    for ch in "\\`*[]<>|":
        escaped = escaped.replace(ch, "\\" + ch)
    return escaped


def _body(result: CheckResult, version: GraphVersion, *, strict: bool) -> dict[str, object]:
    return envelope(
        "check/1",
        {
            **version.header(),
            "findings": [finding_object(f) for f in result.findings],
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
            "summary": {**_counts(result, strict=strict), "known": result.known, "columns": result.columns},
            "coverage": version.coverage.counts(),
        },
    )


def _counts(result: CheckResult, *, strict: bool) -> dict[str, int]:
    found = dict.fromkeys(("error", "warning", "note", "unknown", "waived", "accepted"), 0)
    for finding in result.findings:
        found[level(finding, strict=strict)] += 1
    return {**found, "held": len(result.held()), "skipped": len(result.skipped)}


def _worst(result: CheckResult, rule: str) -> str:
    """The verdict of a rule: its worst finding's; ``skipped`` if it was not judged."""
    if rule in result.skipped:
        return "skipped"
    found = [f.verdict for f in result.findings if f.rule == rule]
    return min(found).label if found else "held"


def finding_object(finding: Finding) -> dict[str, object]:
    """The JSON value of a finding."""
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
        "waiver": finding.waiver,
        "expires": finding.expires and finding.expires.isoformat(),
    }
