"""All rules on one version of the graph; with a base, only what has come since, and the rules about changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple

from govtool.policy.classes.dataset_facts import DatasetFacts, Truth
from govtool.policy.classes.governed import Governed
from govtool.policy.classes.measured import Measurement
from govtool.policy.classes.propagate import Propagation
from govtool.policy.classes.taints import Mode, Taint
from govtool.policy.files.model import ColumnChange, Described, Purpose, Rule
from govtool.policy.files.policy_set import PlacedPart
from govtool.policy.files.terms import days
from govtool.policy.rules.finding import (
    SEVERITIES,
    Finding,
    PolicyRemark,
    RuleVerdict,
    accepted_as,
    excess_over,
    zone_notes,
)
from govtool.policy.rules.joins import judge_joins
from govtool.policy.rules.judge import Approvals, Question, judge, taints_of
from govtool.policy.rules.python import judge_python
from govtool.policy.rules.waivers import Excused, inline_waivers, waived
from govtool.query.evidence import step
from govtool.query.selection.patterns import Patterns
from govtool.query.versions.columns import column_changes


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of a check; findings are sorted, the worst first."""

    rules: tuple[PlacedPart[Rule], ...]
    findings: tuple[Finding, ...]
    """Violated, unknown and waived; without those of the base."""
    remarks: tuple[PolicyRemark, ...]
    known: int = 0
    """Findings that the base has too, left out."""
    columns: int = 0
    """Columns with a class."""
    skipped: tuple[str, ...] = field(default=())
    """Rules that need a base and had none."""
    not_applicable: tuple[str, ...] = field(default=())
    """Rules that judged nothing: no dataset is in their zone, or no column in their class."""
    measured: tuple[Measurement, ...] = field(default=())
    """Groups of recorded outputs that were measured, by output."""

    def counts(self) -> Counter[str]:
        """Findings by severity for what is violated, by verdict for the rest; ``held`` counts rules."""
        found: Counter[str] = Counter()
        for finding in self.findings:
            if finding.accepted:
                found["accepted"] += 1
            elif finding.verdict is RuleVerdict.VIOLATED:
                found[finding.severity] += 1
            else:
                found[finding.verdict.label] += 1
        found["held"] = len(self.held())
        return found

    def held(self) -> tuple[str, ...]:
        """Ids of the rules that judged something and have no finding."""
        named = {f.rule for f in self.findings} | set(self.skipped) | set(self.not_applicable)
        return tuple(r.value.id for r in self.rules if r.value.id not in named)


def check(governed: Governed, today: date, base: Governed | None = None) -> CheckResult:
    """Judge every rule.

    Args:
        governed: The version to check.
        today: For waivers and approvals.
        base: The version before the change: findings that it has too are counted, not listed.
    """
    policies = governed.policies
    findings = _all(governed, today, base)
    skipped = tuple(r.value.id for r in policies.rules if r.value.form == "change" and base is None)
    known = 0
    before: list[Finding] = []
    if base is not None:
        # A rule that failed before the change, too, has told nothing of either.
        before = [f for f in _all(base, today, None) if not f.failed]
        fresh = list(_fresh(findings, {f.fingerprint: f for f in before}))
        known = len(findings) - len(fresh)
        findings = fresh
    waived_findings, remarks = _waived(governed, findings, today)
    if base is not None:  # what the base has may well be what a waiver is for
        remarks = tuple(r for r in remarks if r.code != "waiver-unused")
        stated = [tuple(inline_waivers(one.places.waivers)) for one in (governed, base)]
        excused = Excused(policies, before, _waived(base, before, today)[0], *stated)
        waived_findings, widened = excused.limited(findings, waived_findings)
        remarks = (*remarks, *widened)
    remarks = (*remarks, *zone_notes(policies))
    spread = governed.spread
    columns = len(spread.having(Mode.VALUE, spread.taints))
    found = {f.rule for f in findings} | set(skipped)
    idle = tuple(
        r.value.id for r in policies.rules if r.value.id not in found and _FORMS[r.value.form].is_idle(governed, r)
    )
    measured = sorted(set(spread.transfers.measured.values()), key=lambda one: (one.group.dataset, one.declassifier))
    return CheckResult(
        policies.rules,
        tuple(sorted(waived_findings, key=_order)),
        remarks,
        known,
        columns,
        skipped,
        idle,
        tuple(measured),
    )


def _waived(
    governed: Governed, findings: Iterable[Finding], today: date
) -> tuple[tuple[Finding, ...], tuple[PolicyRemark, ...]]:
    """Apply the waivers of the policies and of SQL comments to findings about one version."""
    stated = tuple(inline_waivers(governed.places.waivers))
    index = governed.spread.index
    names = [index.dataset_name(number) for number in index.datasets()] if stated else ()
    return waived(findings, governed.policies, today, stated, names, index.paths_root)


def _fresh(findings: Iterable[Finding], before: Mapping[str, Finding]) -> Iterable[Finding]:
    """The findings that a base has not, or has with less getting through."""
    for finding in findings:
        known = before.get(finding.fingerprint)
        excess = None if known is None else excess_over(accepted_as(known), finding)
        if known is None or excess is not None:
            yield replace(finding, excess=excess)


def _all(governed: Governed, today: date, base: Governed | None) -> list[Finding]:
    rules = governed.policies.rules
    return [each for rule in rules for each in _FORMS[rule.value.form].judge(governed, rule, today, base)]


def _order(finding: Finding) -> tuple[int, int, str, str, str]:
    return finding.verdict, SEVERITIES.index(finding.severity), finding.rule, finding.column, finding.source


def _occurs(governed: Governed, rule: PlacedPart[Rule], classes: Iterable[str], groups: Iterable[int]) -> bool:
    """Return whether any column is of one of the classes, or may be."""
    spread = governed.spread
    taints = taints_of(spread, rule.value, classes, groups)
    return any(len(spread.having(mode, taints)) for mode in (Mode.VALUE, Mode.UNKNOWN))


# ---- where data gets to: flow, opaque, purpose ----------------------------------------------------------------------

_BAD, _OPEN = RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN
_MODES: Mapping[str, Mapping[Mode, RuleVerdict]] = {
    "direct": {Mode.VALUE: _BAD, Mode.UNKNOWN: _OPEN},
    "indirect": {Mode.INFLUENCE: _BAD, Mode.UNKNOWN: _OPEN},
    "any": {Mode.VALUE: _BAD, Mode.INFLUENCE: _BAD, Mode.UNKNOWN: _OPEN},
}


def _flows(governed: Governed, rule: PlacedPart[Rule], today: date, base: Governed | None) -> list[Finding]:
    """Data of a class that reaches a place, or, of the form ``opaque``, that may through a step nobody understood."""
    body = rule.value.body
    modes = {Mode.UNKNOWN: _BAD} if rule.value.form == "opaque" else _MODES[body.via]
    sinks, groups = governed.places.where(body.to), governed.groups(body.from_)
    by_region = body.to.region or (body.from_ is not None and body.from_.region)
    unstated = "no dataset is in a zone with a region" if by_region and not governed.places.states("regions") else ""
    lacking = "the region of the source or of the dataset is not known"
    question = Question(rule, body.class_, sinks, modes, groups, lacking, _REGION, unstated)
    return judge(governed.spread, question, governed.seeds, governed.possible, today)


def _has_no_flow(governed: Governed, rule: PlacedPart[Rule]) -> bool:
    body = rule.value.body
    return not governed.places.where(body.to) or not _occurs(governed, rule, body.class_, governed.groups(body.from_))


def _other_purposes(governed: Governed, rule: PlacedPart[Rule], today: date, base: Governed | None) -> list[Finding]:
    """Data of a class where none of its purposes is pursued."""
    body: Purpose = rule.value.body
    lacking = "the purposes of the dataset are not known"
    sinks, groups = _purposes(governed, body), {0: Truth.YES}
    unstated = "" if governed.places.states("purposes") else "no dataset is in a zone with purposes"
    question = Question(rule, body.class_, sinks, _MODES["direct"], groups, lacking, _PURPOSES, unstated)
    return judge(governed.spread, question, governed.seeds, governed.possible, today)


def _has_no_class(governed: Governed, rule: PlacedPart[Rule]) -> bool:
    return not _occurs(governed, rule, rule.value.body.class_, (0,))


_REGION = "put them into zones with a region: (zones: in a policy)"
_PURPOSES = "put it into a zone with purposes: (zones: in a policy)"


def _purposes(governed: Governed, body: Purpose) -> dict[int, Truth]:
    """Datasets whose zones have none of the purposes, and those of which that is not known."""
    allowed = set(body.any_of)
    found = {}
    for dataset in governed.places.index.datasets():
        purposes = governed.places.about(dataset).purposes
        if not purposes & allowed:
            found[dataset] = Truth.YES if purposes else Truth.UNKNOWN
    return found


# ---- facts of datasets: metadata ------------------------------------------------------------------------------------


def _undescribed(governed: Governed, rule: PlacedPart[Rule], today: date, base: Governed | None) -> list[Finding]:
    """Datasets with data of a class that lack a fact."""
    body: Described = rule.value.body
    index, spread = governed.spread.index, governed.spread
    approved = Approvals(rule.value, today, index.paths_root)
    taints = taints_of(spread, rule.value, body.class_, (0,))
    certain = {index.node_dataset[n] for n in spread.having(Mode.VALUE, taints).tolist()}
    unsure = {index.node_dataset[n] for n in spread.having(Mode.UNKNOWN, taints).tolist()} - certain
    unsure -= spread.possible.opaque  # a procedure has no owner in the graph, and of a view only its name is known
    found = []
    for dataset in sorted(certain | unsure):
        name = index.dataset_name(dataset)
        lacking = _lacking(governed.places, dataset, body)
        if not lacking or index.is_hidden(dataset) or index.dataset_kind(dataset) == "query" or approved.cover(name):
            continue
        finding = Finding(
            rule=rule.value.id,
            title=rule.value.title,
            severity=rule.value.severity,
            verdict=RuleVerdict.VIOLATED if dataset in certain else RuleVerdict.UNKNOWN,
            source="",
            column=name,
            classes=tuple(sorted({t.name for t in taints if _holds(spread, dataset, t)})),
            state="value" if dataset in certain else "unknown",
            why="; ".join(lacking),
            fix=rule.value.fix or "add it to the policy's metadata: or to a zone that holds the dataset",
            place=rule.place,
        )
        found.append(finding if finding.classes else replace(finding, classes=body.class_))
    return found


def _holds(spread: Propagation, dataset: int, taint: Taint) -> bool:
    return any(spread.has(n, Mode.VALUE, taint) for n in spread.index.columns(dataset))


def _lacking(places: DatasetFacts, dataset: int, body: Described) -> list[str]:
    about = places.about(dataset)
    missing = [key for key in body.keys if not getattr(about, key)]
    found = [f"no {' and no '.join(missing)}"] if missing else []
    if body.retention_max and about.retention and days(about.retention) > days(body.retention_max):
        found.append(f"a retention of {about.retention}, more than {body.retention_max}")
    return found


# ---- joins ----------------------------------------------------------------------------------------------------------


def _joins(governed: Governed, rule: PlacedPart[Rule], today: date, base: Governed | None) -> list[Finding]:
    return judge_joins(governed.spread, rule, today)


def _has_no_pair(governed: Governed, rule: PlacedPart[Rule]) -> bool:
    return not all(_occurs(governed, rule, (name,), (0,)) for name in rule.value.body.classes)


# ---- columns that change against a base ------------------------------------------------------------------------------


def _changed(governed: Governed, rule: PlacedPart[Rule], today: date, base: Governed | None) -> list[Finding]:
    """The columns that a rule protects and that a change drops, adds, retypes or makes otherwise."""
    if base is None:
        return []
    body: ColumnChange = rule.value.body
    old, new = base.spread.index, governed.spread.index
    approved = Approvals(rule.value, today, new.paths_root)
    guarded = {True: _guarded(base, rule.value, body), False: _guarded(governed, rule.value, body)}
    found = []
    for kind, name, node, detail in column_changes(old, new):
        if kind not in body.kinds or node not in guarded[kind != "add"] or approved.cover(name):
            continue
        here = new.find(old.ref(node)) if kind in ("retype", "logic") else node if kind == "add" else None
        edges = new.in_edges(here)[:1] if here is not None else []
        found.append(
            Finding(
                rule=rule.value.id,
                title=rule.value.title,
                severity=rule.value.severity,
                verdict=RuleVerdict.VIOLATED,
                source="",
                column=name,
                classes=tuple(body.class_),
                state=f"{kind} {detail}".strip(),
                steps=tuple(step(new, e) for e in edges),
                why=_WORDS[kind] + (f": {detail}" if detail else ""),
                fix=rule.value.fix,
                place=rule.place,
            )
        )
    return found


_WORDS = {
    "drop": "the column is gone",
    "add": "the column is new",
    "retype": "its type changed",
    "logic": "it is made otherwise",
}


def _guarded(governed: Governed, rule: Rule, body: ColumnChange) -> set[int]:
    """The columns that a rule speaks of in one version."""
    spread, places = governed.spread, governed.places
    index = spread.index
    found: set[int] | None = None
    if body.class_:
        found = set(spread.having(Mode.VALUE, taints_of(spread, rule, body.class_, (0,))).tolist())
    if body.columns:
        named = Patterns(body.columns, index.paths_root).columns(index, places.paths)
        found = named if found is None else found & named
    if body.to is not None:
        where = places.where(body.to)
        there = {n for d, t in where.items() if t is Truth.YES for n in index.columns(d)}
        found = there if found is None else found & there
    return found or set()


# ---- all forms ------------------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How rules of one form are judged."""

    judge: Callable[[Governed, PlacedPart[Rule], date, Governed | None], list[Finding]]
    """The findings in a version, on a day; None: there is no base."""
    is_idle: Callable[[Governed, PlacedPart[Rule]], bool]
    """True if a rule has nothing to speak of: no column of its class, or no dataset at its place."""


def _never_idle(governed: Governed, rule: PlacedPart[Rule]) -> bool:
    """Rules that may look at anything always have something to speak of."""
    return False


_FORMS: Mapping[str, _Form] = {
    "flow": _Form(_flows, _has_no_flow),
    "opaque": _Form(_flows, _has_no_flow),
    "purpose": _Form(_other_purposes, _has_no_class),
    "metadata": _Form(_undescribed, _has_no_class),
    "join": _Form(_joins, _has_no_pair),
    "change": _Form(_changed, _never_idle),
    "python": _Form(judge_python, _never_idle),
}
"""By ``Rule.form``."""
