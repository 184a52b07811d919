"""GitHub Actions: workflow commands that annotate the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from govtool.render.findings import levelled, reason, summary, way
from govtool.render.layout.text import printable

if TYPE_CHECKING:
    from govtool.app.project.checkout import Checkout
    from govtool.policy.rules.check import CheckResult
    from govtool.policy.rules.finding import Finding

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice", "unknown": "notice"}


def workflow_commands(result: CheckResult, *, strict: bool, where: Checkout) -> Iterator[str]:
    """An annotation a finding, and one a remark; then the sentence.

    Raises:
        UsageError: A file lies outside the repository.
    """
    for kind, finding in levelled(result, strict=strict):
        if kind in _COMMANDS:
            title = f"{finding.rule} {finding.title}" + (" (unknown)" if kind == "unknown" else "")
            place = _place(finding, where)
            text = "\n".join(printable(part) for part in (way(finding), reason(finding)) if part)
            yield f"::{_COMMANDS[kind]} {place}title={_property(printable(title))}::{_data(text)}"
    for remark in result.remarks:
        kind = "warning" if remark.severity == "warning" else "notice"
        place = _policy(remark.place, where)
        yield f"::{kind} {place}title={remark.code}::{_data(printable(remark.message))}"
    yield summary(result, strict=strict)


def _place(finding: Finding, where: Checkout) -> str:
    if finding.evidence is None:
        return _policy(finding.place, where)
    file = where.evidence(finding.evidence.file, finding.evidence.place)
    place = finding.evidence.expression
    if place is None:
        return f"file={_property(file)},line={finding.evidence.line},"
    found = f"file={_property(file)},line={place.line},endLine={place.end_line},"
    if place.column is not None and place.end_column is not None and place.line == place.end_line:
        found += f"col={place.column},endColumn={place.end_column},"
    return found


def _policy(place: str, where: Checkout) -> str:
    name, _, line = place.rpartition(":")
    file = where.written(name)
    return f"file={_property(file)},line={line}," if file is not None else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
