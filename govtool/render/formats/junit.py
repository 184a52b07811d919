"""JUnit XML: a case a rule; a failure if it is violated, skipped if nothing could be told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from govtool.answers.check import level
from govtool.render.findings import sentence, way
from govtool.wording import xml_text

if TYPE_CHECKING:
    from govtool.policy.rules.check import CheckResult


def junit(result: CheckResult, *, strict: bool) -> Iterator[str]:
    """The lines of the report."""
    cases = [list(_case(result, rule.value.id, rule.value.title, rule.place, strict)) for rule in result.rules]
    failed = sum(any(line.startswith("    <failure") for line in case) for case in cases)
    skipped = sum(any(line.startswith("    <skipped") for line in case) for case in cases)
    numbers = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="{skipped}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="govtool check" {numbers}>'
    yield f' <testsuite name="govtool check" {numbers}>'
    for case in cases:
        yield from case
    yield " </testsuite>"
    yield "</testsuites>"


def _case(result: CheckResult, rule: str, title: str, place: str, strict: bool) -> Iterator[str]:
    levelled = [(level(f, strict=strict), f) for f in result.findings if f.rule == rule]
    bad = [f for kind, f in levelled if kind in ("error", "warning", "note")]
    doubt = [f for kind, f in levelled if kind == "unknown"]
    yield f"  <testcase classname={_attribute(place)} name={_attribute(f'{rule} {title}')}>"
    if bad:
        body = "\n".join(f"{sentence(f)}\n  {way(f)}\n  {f.evidence.position if f.evidence else f.place}" for f in bad)
        message = f"{len(bad)} at {', '.join(f.column for f in bad[:5])}"
        yield f"    <failure type={_attribute(bad[0].severity)} message={_attribute(message)}>{_text(body)}</failure>"
    elif doubt:
        message = f"{len(doubt)} could not be decided: {doubt[0].column}: {doubt[0].why}"
        yield f"    <skipped message={_attribute(message)}/>"
    elif rule in result.skipped:
        yield '    <skipped message="needs --base"/>'
    elif rule in result.not_applicable:
        yield '    <skipped message="not applicable: no dataset in its zone, or no column in its class"/>'
    yield "  </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(xml_text(text))


def _text(text: str) -> str:
    return escape("\n".join(map(xml_text, text.split("\n"))))
