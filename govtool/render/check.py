"""``govtool check`` for people: blocks of lines, Markdown; and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from govtool.render.answer import closing
from govtool.render.findings import levelled, reason, summary, way
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.text import Prose, markdown_text, printable
from govtool.render.pictures.answers import check_drawing, fenced
from govtool.wording import count

if TYPE_CHECKING:
    from govtool.answers.check import CheckAnswer
    from govtool.app.project.checkout import Checkout
    from govtool.policy.rules.finding import Finding

FORMATS = ("table", "plain", "json", "jsonl", "sarif", "junit", "github", "markdown")
MARKER = "<!-- govtool check -->"
"""First line of the Markdown, by which a sticky comment is found again."""
_SHOWN = ("error", "warning", "note", "unknown")
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan", "unknown": "magenta"}
_HEADING = re.compile(r"\S+ (?P<level>error|warning|note|unknown)  ")


def render(form: str, answer: CheckAnswer, *, where: Checkout, limit: int | None) -> Prose | Iterable[str]:
    """One of ``FORMATS``.

    Args:
        form: The format.
        answer: The outcome.
        where: The repository, and where in it the files are, for SARIF and GitHub.
        limit: Findings to show in a table at most; rules share it.

    Raises:
        UsageError: A file of the evidence lies outside the repository.
    """
    result, strict = answer.result, answer.strict
    if form == "sarif":
        from govtool.render.formats.sarif import sarif

        return json_lines(sarif(result, strict=strict, where=where))
    if form == "junit":
        from govtool.render.formats.junit import junit

        return junit(result, strict=strict)
    if form == "github":
        from govtool.render.formats.github import workflow_commands

        return workflow_commands(result, strict=strict, where=where)
    if form == "markdown":
        return markdown(answer, limit=limit)
    if form == "jsonl":
        return (compact(item) for item in answer.items())
    if form == "json":
        return json_lines(answer.to_dict())
    blocks = lines(answer, limit=limit)
    return Prose(blocks, _style) if form == "table" else blocks


def _style(line: str) -> str:
    """The style of a heading, by its level."""
    found = _HEADING.match(line)
    return _STYLES[found["level"]] if found is not None else ""


def lines(answer: CheckAnswer, *, limit: int | None) -> Iterator[str]:
    """A block of lines for the findings of each rule, then remarks, then the sentence."""
    result, strict = answer.result, answer.strict
    sections = _sections(answer, limit)
    for section in sections:
        yield printable(section.heading)
        for reason_text, alike in groupby(section.shown, key=reason):
            for finding in alike:
                place = f"  [{finding.evidence.position}]" if finding.evidence else ""
                yield printable(f"  {way(finding)}{place}")
            if reason_text:
                yield printable(f"    {reason_text}")
        if section.hidden:
            yield f"  … {section.hidden:,} more"
        yield ""
    for remark in result.remarks:
        yield printable(f"{remark.severity}[{remark.code}] {remark.message}  {remark.place}")
    if result.remarks:
        yield ""
    for one in result.measured:
        yield printable(f"{one.declassifier} at {one.group.dataset}: {one.group.text(one.k)}")
    if result.measured:
        yield ""
    hidden = sum(section.hidden for section in sections)
    left = f" · {hidden:,} more (--all)" if hidden else ""
    yield closing(answer.version, summary(result, strict=strict) + left)


class _Section(NamedTuple):
    """The findings of one rule and level."""

    kind: str
    heading: str
    shown: list[Finding]
    hidden: int


def _sections(answer: CheckAnswer, limit: int | None) -> list[_Section]:
    """The worst first; where not all findings are shown, a rule with many does not push out the others."""
    found = [(kind, f) for kind, f in levelled(answer.result, strict=answer.strict) if kind in _SHOWN]
    groups = [(kind, heading, [f for _, f in group]) for (kind, heading), group in groupby(found, key=_heading)]
    shares = _shares([len(group) for _, _, group in groups], limit)
    return [
        _Section(kind, heading, group[:share], len(group) - share)
        for (kind, heading, group), share in zip(groups, shares, strict=True)
    ]


def _shares(sizes: list[int], limit: int | None) -> list[int]:
    """How many of each of some groups are shown, at most ``limit`` together; all have a like share."""
    shares = [0] * len(sizes)
    left = sum(sizes) if limit is None else min(limit, sum(sizes))
    while left:
        wanting = [i for i, size in enumerate(sizes) if shares[i] < size]
        each = max(1, left // len(wanting))
        for i in wanting[:left]:
            more = min(each, sizes[i] - shares[i])
            shares[i] += more
            left -= more
    return shares


def _heading(levelled_finding: tuple[str, Finding]) -> tuple[str, str]:
    kind, finding = levelled_finding
    return kind, f"{finding.rule} {kind}  {finding.title}  {finding.place}"


def markdown(answer: CheckAnswer, *, limit: int | None) -> Iterator[str]:
    """For a sticky comment on a pull request."""
    result, strict = answer.result, answer.strict
    yield MARKER
    yield f"### govtool check: {markdown_text(summary(result, strict=strict))}"
    yield ""
    sections = _sections(answer, limit)
    if sections:
        yield "| | rule | column | way | why |"
        yield "| --- | --- | --- | --- | --- |"
    for kind, finding in ((section.kind, finding) for section in sections for finding in section.shown):
        rule = f"{finding.rule} {finding.title}"
        yield (
            "| "
            + " | ".join(markdown_text(c) for c in (kind, rule, finding.column, way(finding), reason(finding)))
            + " |"
        )
    if sections:
        yield ""
    hidden = sum(section.hidden for section in sections)
    if hidden:
        yield f"{count(hidden, 'more finding')} not shown."
        yield ""
    yield from fenced(check_drawing([f for kind, f in levelled(result, strict=strict) if kind in _SHOWN]))
    for remark in result.remarks:
        yield f"- {markdown_text(remark.message)} ({markdown_text(remark.place)})"
    yield markdown_text(closing(answer.version))
