"""Findings of rules: verdicts, fingerprints, how much of a finding was accepted before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import NamedTuple

from govtool.names import former_id
from govtool.policy.classes.masking import is_worse
from govtool.policy.files.policy_set import PolicySet
from govtool.query.evidence import Evidence, WayStep

SEVERITIES = ("error", "warning", "note")
"""The worst first."""
FAILED = "error"
"""The state of a finding that says that its rule, which is Python, failed: nothing else has it."""

ANYWHERE = "any dataset"
"""The column of a finding that says of all datasets that its rule could not judge them."""


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


class Excess(NamedTuple):
    """Of a finding that is worse than what was accepted: a strength, verdict, group's size, severity, or classes."""

    now: str
    accepted: str


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
    """The place of the verdict: a column, ``dataset.*`` for its rows, a dataset, or ``ANYWHERE``."""
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
    excess: Excess | None = None
    """How it is more than a baseline, a waiver or the base accepts; None: it is not."""
    measured: int | None = None
    """Members of the smallest measured group on the way, at the most; None: none was measured."""

    @property
    def worse_than(self) -> str:
        """What is accepted at most, where this is more; empty if it is not."""
        return "" if self.excess is None else self.excess.accepted

    @property
    def failed(self) -> bool:
        """True if its rule failed; no waiver, baseline or base hides it."""
        return self.state == FAILED

    @property
    def of_no_dataset(self) -> bool:
        """True if it speaks of its rule as a whole: the rule failed, or could not judge any dataset."""
        return self.failed or self.column == ANYWHERE

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


def excess_over(limit: Accepted, finding: Finding) -> Excess | None:
    """Return how a finding is more than what is accepted; None if it is not."""
    if limit.verdict == RuleVerdict.UNKNOWN.label and finding.verdict is RuleVerdict.VIOLATED:
        return Excess(finding.verdict.label, limit.verdict)
    if limit.strength and is_worse(finding.strength, limit.strength):
        return Excess(finding.strength, limit.strength)
    if limit.measured is not None and finding.measured is not None and finding.measured < limit.measured:
        return Excess(f"groups of {finding.measured}", f"groups of {limit.measured}")
    if limit.severity in SEVERITIES and SEVERITIES.index(finding.severity) < SEVERITIES.index(limit.severity):
        return Excess(finding.severity, limit.severity)
    if limit.classes is not None and any(not _is_among(name, limit.classes) for name in finding.classes):
        return Excess(", ".join(finding.classes), ", ".join(limit.classes) or "no class")
    return None


def _is_among(name: str, classes: Iterable[str]) -> bool:
    """Return whether a class is one of some, or a more general one."""
    return any(name == known or known.startswith(f"{name}.") for known in classes)


def zone_notes(policies: PolicySet) -> Iterable[PolicyRemark]:
    """A zone of a pack that gave way to another of its name."""
    for name, place in sorted(policies.replaced_zones.items()):
        yield PolicyRemark(
            "zone-replaced", "note", f"the zone {name} counts here, not the one at {place}", policies.zones[name].place
        )
