"""Findings of rules: verdicts, fingerprints, waivers in policies and in SQL comments."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import get_close_matches
from enum import IntEnum
from typing import NamedTuple

from govtool.model.fact import WAIVER
from govtool.names import former_id, split_name
from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.classes.masking import is_worse
from govtool.policy.files.model import Waiver
from govtool.policy.files.policy_set import PlacedPart, PolicySet
from govtool.policy.files.terms import Strength
from govtool.query.evidence import Evidence, WayStep
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


SEVERITIES = ("error", "warning", "note")
"""The worst first."""
SOON = timedelta(days=30)
"""A waiver that expires within this is worth a note."""


FAILED = "error"
"""The state of a finding that says that its rule, which is Python, failed: nothing else has it."""


class RuleVerdict(IntEnum):
    """The verdicts of a rule on columns, the worst first."""

    VIOLATED = 0
    UNKNOWN = 1
    WAIVED = 2
    HELD = 3

    @property
    def label(self) -> str:
        """The name as it is written in answers: ``violated``."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule is violated, or may be, at one column."""

    rule: str
    title: str
    severity: str
    """``error``, ``warning`` or ``note``."""
    verdict: RuleVerdict
    source: str
    """The column that the data comes from; two, joined by `` + ``, for joins; empty where there is none."""
    column: str
    """The place of the verdict: a column, ``dataset.*`` for its rows, or a dataset."""
    classes: tuple[str, ...]
    state: str
    """The state of the data on arrival: ``value``, ``influence``, ``unknown``, with the declassifiers it has passed."""
    steps: tuple[WayStep, ...] = ()
    """The way edge by edge, temporary datasets included; of a join two ways, one after the other."""
    starts: tuple[tuple[str, int], ...] = ()
    """Of two ways the column that each begins at, and which of the steps is its first."""
    why: str = ""
    """The reason: what did and did not declassify, or what is missing."""
    fix: str = ""
    place: str = ""
    """``file:line`` of the rule."""
    waiver: str | None = None
    """``file:line`` of the waiver that matched."""
    expires: date | None = None
    """The expiry date of that waiver."""
    because: str = ""
    """The reason that it states."""
    accepted: bool = False
    """In the baseline."""
    strength: str = ""
    """How much of a value gets through, of ``govtool.policy.classes.masking.STRENGTHS``; empty where no value flows."""
    worse_than: str = ""
    """What a baseline, a waiver or the base accepts at most, where this is more: a strength, ``unknown``, a group's
    size, a severity, or classes."""
    measured: int | None = None
    """Members of the smallest measured group on the way, at the most; None: none was measured."""

    @property
    def failed(self) -> bool:
        """True if its rule failed; no waiver, baseline or base hides it."""
        return self.state == FAILED

    @property
    def evidence(self) -> Evidence | None:
        """The statement that makes the offending edge: the last of the way."""
        return self.steps[-1].evidence if self.steps else None

    @property
    def fingerprint(self) -> str:
        """A digest of rule, source, sink and state; the lines and the text of the SQL do not count."""
        key = json.dumps([self.rule, former_id(self.source), former_id(self.column), self.state])
        return hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:32]

    @property
    def ways(self) -> tuple[tuple[str, tuple[WayStep, ...]], ...]:
        """The start of each way, and its edges: one way, of a join two, or none."""
        if not self.starts:
            return ((self.source or self.steps[0].source, self.steps),) if self.steps else ()
        ends = (*(first for _, first in self.starts[1:]), len(self.steps))
        return tuple((name, self.steps[first:end]) for (name, first), end in zip(self.starts, ends, strict=True))

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The columns on each way, temporary ones left out."""
        if not self.ways:
            return ((self.column,) if not self.source or self.source == self.column else (self.source, self.column),)
        return tuple(
            tuple(dict.fromkeys([start, *(s.target for s in steps if not s.elided)])) for start, steps in self.ways
        )

    @property
    def path(self) -> tuple[str, ...]:
        """The columns on the way, of a join on the first of its two."""
        return self.paths[0]


@dataclass(frozen=True, slots=True)
class PolicyRemark:
    """A warning or a note about the policies themselves."""

    code: str
    severity: str
    message: str
    place: str


class Accepted(NamedTuple):
    """What is accepted of a finding; None where that is not known."""

    verdict: str | None = None
    strength: str | None = None
    measured: int | None = None
    """Members of the smallest measured group; None: it was not measured."""
    classes: tuple[str, ...] | None = None
    severity: str | None = None


def accepted_as(finding: Finding) -> Accepted:
    """The finding as something that is accepted as it is now."""
    verdict, strength = finding.verdict.label, finding.strength or None
    return Accepted(verdict, strength, finding.measured, finding.classes, finding.severity)


def exceeds(finding: Finding, limit: Accepted) -> str:
    """Return the accepted strength, class, severity, size or ``unknown`` that a finding exceeds; else an empty text."""
    if limit.verdict == RuleVerdict.UNKNOWN.label and finding.verdict is RuleVerdict.VIOLATED:
        return limit.verdict
    if is_worse(finding.strength, limit.strength):
        return limit.strength or ""
    if is_smaller(finding, limit.measured):
        return groups_of(limit.measured)
    if limit.severity in SEVERITIES and SEVERITIES.index(finding.severity) < SEVERITIES.index(limit.severity):
        return limit.severity
    if limit.classes is not None and any(not _is_among(name, limit.classes) for name in finding.classes):
        return ", ".join(limit.classes) or "no class"
    return ""


def _is_among(name: str, classes: Iterable[str]) -> bool:
    """Return whether a class is one of some, or a more general one."""
    return any(name == known or known.startswith(f"{name}.") for known in classes)


def is_smaller(finding: Finding, least: int | None) -> bool:
    """Return whether a measured group is smaller than an accepted one; False where either is not known."""
    return least is not None and finding.measured is not None and finding.measured < least


def groups_of(least: int | None) -> str:
    """The size of a group in words."""
    return f"groups of {least}"


def zone_notes(policies: PolicySet) -> Iterable[PolicyRemark]:
    """A zone of a pack that gave way to another of its name."""
    for name, place in sorted(policies.replaced_zones.items()):
        yield PolicyRemark(
            "zone-replaced", "note", f"the zone {name} counts here, not the one at {place}", policies.zones[name].place
        )


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
    if is_worse(finding.strength, waiver.at_most):
        return replace(finding, worse_than=waiver.at_most or "")
    if is_smaller(finding, waiver.min_group):
        return replace(finding, worse_than=groups_of(waiver.min_group))
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
