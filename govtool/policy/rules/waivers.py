"""Waivers, in policies and in SQL comments: which findings they accept, and with a base, how much of each.

A waiver accepts in each column no more than it accepted there in the base. One that was given with the change (a new
comment in SQL), or that states its limit (``at_most``, ``min_group``), is taken at its word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import get_close_matches

from govtool.model.fact import WAIVER
from govtool.names import split_name
from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.files.model import Waiver
from govtool.policy.files.policy_set import PlacedPart, PolicySet
from govtool.policy.files.terms import Strength
from govtool.policy.rules.finding import (
    Accepted,
    Finding,
    PolicyRemark,
    RuleVerdict,
    accepted_as,
    excess_over,
)
from govtool.query.selection.patterns import Patterns

_FORM = re.compile(
    r"allow\s+(?P<rules>[\w.-]+(?:\s*,\s*[\w.-]+)*)\s+until\s+(?P<day>\d{4}-\d\d-\d\d)\s+because\s+(?P<reason>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
FORM = "govtool: allow RULE until YYYY-MM-DD because REASON"


@dataclass(frozen=True, slots=True)
class InlineWaiver:
    """Findings of a rule about one dataset that are accepted until a day."""

    rule: str
    dataset: str
    expires: date
    place: str
    """``file:line`` of the comment."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MistakenComment:
    """A comment that begins like a waiver but is malformed."""

    text: str
    place: str


def inline_waivers(facts: Iterable[ToolFact]) -> Iterator[InlineWaiver | MistakenComment]:
    """Yield the waivers among the facts of a graph, a comment of several rules once for each of them."""
    for fact in facts:
        if fact.name != WAIVER:
            continue
        found = _FORM.match(fact.value)
        expires = _day(found["day"]) if found is not None else None
        if found is None or expires is None:
            yield MistakenComment(fact.value, fact.file)
            continue
        for rule in found["rules"].split(","):
            yield InlineWaiver(rule.strip(), fact.dataset, expires, fact.file, " ".join(found["reason"].split()))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


SOON = timedelta(days=30)
"""A waiver that expires within this is worth a note."""


def waived(
    findings: Iterable[Finding],
    policies: PolicySet,
    today: date,
    stated: Iterable[InlineWaiver | MistakenComment] = (),
    datasets: Collection[str] = (),
    root: str = "",
) -> tuple[tuple[Finding, ...], tuple[PolicyRemark, ...]]:
    """Apply the waivers that have not expired; each finding is looked at by itself.

    Args:
        findings: The findings.
        policies: Policies with waivers.
        today: The day on which these are judged.
        stated: Waivers that stand in SQL.
        datasets: All datasets of the graph: whose column a finding is about is known by the longest name that fits.
        root: The folder to which names of local files are relative; see ``Index.paths_root``.

    Returns:
        The findings, and what is to be said of the waivers: unused ones, expired ones, those that soon will be.
    """
    inline = [item for item in stated if isinstance(item, InlineWaiver)]
    found = tuple(findings)
    all_waivers = [
        *(_of_policy(one, root) for one in policies.waivers),
        *(_of_sql(one, datasets, found) for one in inline),
    ]
    live = [waiver for waiver in all_waivers if waiver.expires >= today]
    used: set[tuple[str, str]] = set()
    out = []
    for finding in found:
        match = next((one for one in live if one.rule == finding.rule and one.covers(finding)), None)
        # A rule that failed has judged nothing, so there is nothing to accept.
        if match is None or finding.failed or finding.verdict not in (RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN):
            out.append(finding)
            continue
        used.add((match.rule, match.place))
        out.append(_excused(finding, match))
    mistaken = [item for item in stated if isinstance(item, MistakenComment)]
    rules = tuple(dict.fromkeys(rule.value.id for rule in policies.rules))
    return tuple(out), (*_remarks(all_waivers, used, today, rules), *map(_not_a_waiver, mistaken))


@dataclass(frozen=True, slots=True)
class _AppliedWaiver:
    """A waiver, wherever it stands."""

    rule: str
    about: str
    place: str
    expires: date
    reason: str
    covers: Callable[[Finding], bool]
    at_most: Strength | None = None
    min_group: int | None = None


def _of_policy(waiver: PlacedPart[Waiver], root: str) -> _AppliedWaiver:
    one, names = waiver.value, Patterns(waiver.value.columns, root)
    return _AppliedWaiver(
        one.rule,
        ", ".join(one.columns),
        waiver.place,
        one.expires,
        one.reason,
        lambda finding: _covers(names, finding),
        one.at_most,
        one.min_group,
    )


def _of_sql(waiver: InlineWaiver, datasets: Collection[str], findings: Iterable[Finding]) -> _AppliedWaiver:
    """A comment on the line of an expression is about the findings of this; one elsewhere is about the statement."""
    name = waiver.dataset
    below = tuple(other for other in datasets if other.startswith(f"{name}."))

    def is_about(finding: Finding) -> bool:
        place = finding.column
        if any(place == other or place.startswith(f"{other}.") for other in below):
            return False  # another dataset, whose name begins with this one's
        return place == name or place.startswith(f"{name}.")

    def is_beside(finding: Finding) -> bool:
        return is_about(finding) and _line(finding) == waiver.place

    beside = any(one.rule == waiver.rule and is_beside(one) for one in findings)
    covers = is_beside if beside else is_about
    return _AppliedWaiver(waiver.rule, name, waiver.place, waiver.expires, waiver.reason, covers)


def _line(finding: Finding) -> str:
    """``file:line`` of the expression of the last step; empty where it is not known."""
    evidence = finding.steps[-1].evidence if finding.steps else None
    return f"{evidence.file}:{evidence.expression.line}" if evidence is not None and evidence.expression else ""


def _excused(finding: Finding, waiver: _AppliedWaiver) -> Finding:
    """The finding as waived; if it exceeds what the waiver accepts, the finding with that limit."""
    excess = excess_over(Accepted(strength=waiver.at_most, measured=waiver.min_group), finding)
    if excess is not None:
        return replace(finding, excess=excess)
    return replace(
        finding, verdict=RuleVerdict.WAIVED, waiver=waiver.place, expires=waiver.expires, because=waiver.reason
    )


def _not_a_waiver(comment: MistakenComment) -> PolicyRemark:
    return PolicyRemark(
        "waiver-mistaken", "warning", f"{comment.text[:80]!r} waives nothing: write {FORM}", comment.place
    )


def _covers(names: Patterns, finding: Finding) -> bool:
    parts = split_name(finding.column)
    return any(p.matches(finding.column) or (p.is_regex and p.matches(parts[-1])) for p in names.items)


def _unknown_rule(waiver: _AppliedWaiver, rules: Sequence[str]) -> PolicyRemark:
    near = get_close_matches(waiver.rule, rules)
    proposal = f"; did you mean {', '.join(near)}" if near else ""
    text = f"the waiver for {waiver.about} names no rule of these policies: {waiver.rule}{proposal}"
    return PolicyRemark("waiver-unknown-rule", "warning", text, waiver.place)


def _remarks(
    waivers: Sequence[_AppliedWaiver], used: set[tuple[str, str]], today: date, rules: Sequence[str]
) -> Iterable[PolicyRemark]:
    for one in waivers:
        if one.rule not in rules:
            yield _unknown_rule(one, rules)
            continue
        about = f"the waiver of {one.rule} for {one.about}"
        if one.expires < today:
            yield PolicyRemark("waiver-expired", "warning", f"{about} expired on {one.expires}", one.place)
        elif (one.rule, one.place) not in used:
            yield PolicyRemark("waiver-unused", "warning", f"{about} matches nothing", one.place)
        elif one.expires - today <= SOON:
            left = (one.expires - today).days
            yield PolicyRemark("waiver-expires", "note", f"{about} expires on {one.expires}, in {left} days", one.place)


_Comments = Iterable[InlineWaiver | MistakenComment]


class Excused:
    """The findings that waivers accept in a base.

    Args:
        policies: With their waivers.
        before: The findings of the base.
        waived: The same, once waivers are applied.
        stated: The waivers in the SQL of the change.
        stated_before: Those in the SQL of the base.
    """

    def __init__(
        self,
        policies: PolicySet,
        before: Iterable[Finding],
        waived: Iterable[Finding],
        stated: _Comments,
        stated_before: _Comments,
    ) -> None:
        self._accepted: dict[tuple[str, str], list[Accepted]] = {}
        """What is accepted in each column, by rule and column."""
        self._reasons: set[str] = set()
        for finding, one in zip(before, waived, strict=True):
            if one.verdict is RuleVerdict.WAIVED:
                self._accepted.setdefault((one.rule, one.column), []).append(accepted_as(finding))
                self._reasons.add(one.because)
        known = {_content(one) for one in stated_before if isinstance(one, InlineWaiver)}
        comments = [one for one in stated if isinstance(one, InlineWaiver)]
        limits = {one.place for one in policies.waivers if one.value.at_most or one.value.min_group is not None}
        self._at_their_word = limits | {one.place for one in comments if _content(one) not in known}

    def limited(
        self, findings: Iterable[Finding], waived: Iterable[Finding]
    ) -> tuple[tuple[Finding, ...], tuple[PolicyRemark, ...]]:
        """Bring back the findings that are worse than what their waiver accepted in the same column of the base.

        Args:
            findings: Those that the base has not, or has milder.
            waived: The same, once waivers are applied.

        Returns:
            The findings, and a warning for each waiver that covers a column that it did not cover in the base.
        """
        found: list[Finding] = []
        widened: list[PolicyRemark] = []
        for finding, one in zip(findings, waived, strict=True):
            if one.verdict is not RuleVerdict.WAIVED or one.waiver in self._at_their_word:
                found.append(one)
                continue
            before = self._accepted.get((one.rule, one.column), ())
            excesses = [excess_over(each, finding) for each in before]
            found.append(replace(finding, excess=excesses[0]) if excesses and all(excesses) else one)
            if not before and one.because in self._reasons:
                text = f"the waiver of {one.rule} also covers {one.column} now, which it did not in the base"
                widened.append(PolicyRemark("waiver-widened", "warning", text, one.waiver or ""))
        return tuple(found), tuple(dict.fromkeys(widened))


def _content(waiver: InlineWaiver) -> tuple[object, ...]:
    return waiver.rule, waiver.dataset, waiver.expires, waiver.reason
