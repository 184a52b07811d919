"""All rules on one version of the graph; with a base, only what has come since, and the rules about changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from govtool.graph.index import Index
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
from govtool.query.versions.diff import unlike


def judge_changes(
    before: Propagation,
    after: Propagation,
    places: tuple[DatasetFacts, DatasetFacts],
    rule: PlacedPart[Rule],
    today: date,
) -> list[Finding]:
    """Find the columns that a rule protects and that a change drops, adds, retypes or makes otherwise.

    Args:
        before: The classes before the change.
        after: The classes after it.
        places: What is known of the datasets, before and after.
        rule: A rule of the form ``change``.
        today: For approvals.
    """
    body: ColumnChange = rule.value.body
    old, new = before.index, after.index
    approved = Approvals(rule.value, today, new.paths_root)
    guarded = {True: _guarded(before, places[0], rule.value, body), False: _guarded(after, places[1], rule.value, body)}
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


def _guarded(spread: Propagation, places: DatasetFacts, rule: Rule, body: ColumnChange) -> set[int]:
    """The columns that a rule speaks of in one version."""
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


def column_changes(old: Index, new: Index) -> Iterator[tuple[str, str, int, str]]:
    """Kind of change, name, node (of the old version; for ``add`` of the new), and a detail; sorted by name.

    Only datasets that the two versions tell differently are looked at.
    """
    differ = sorted(unlike(old, new))
    for dataset in _shown(old, differ):
        for node in old.columns(dataset):
            if old.is_unknown(node):
                continue
            here = new.find(old.ref(node))
            if here is None or new.is_hidden(new.node_dataset[here]):
                yield "drop", old.name(node), node, ""
                continue
            was, is_ = old.type(node), new.type(here)
            if was and is_ and was.lower() != is_.lower():
                yield "retype", old.name(node), node, f"{was} to {is_}"
            if _made(old, node) != _made(new, here):
                yield "logic", old.name(node), node, ""
    for dataset in _shown(new, differ):
        for node in new.columns(dataset):
            if not new.is_unknown(node) and old.find(new.ref(node)) is None:
                yield "add", new.name(node), node, ""


def _shown(index: Index, names: Iterable[str]) -> Iterator[int]:
    """The visible datasets of some names."""
    for name in names:
        dataset = index.find_dataset(name)
        if dataset is not None and not index.is_hidden(dataset):
            yield dataset


def _made(index: Index, node: int) -> set[tuple[str, int, tuple[str, ...]]]:
    """Return the sources of a column, and how they reach it."""
    return {(index.name(index.edge_source[e]), index.kind(e), index.functions(e)) for e in index.in_edges(node)}


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
    columns = len({int(n) for m in (Mode.VALUE,) for n in spread.having(m, spread.taints)})
    found = {f.rule for f in findings} | set(skipped)
    idle = tuple(r.value.id for r in policies.rules if r.value.id not in found and _judges_nothing(governed, r))
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


def _judges_nothing(governed: Governed, rule: PlacedPart[Rule]) -> bool:
    """Return whether a rule has nothing to speak of: no column of its class, or no dataset at its place."""
    form, body = rule.value.form, rule.value.body
    if form in ("python", "change"):  # they say themselves what they look at
        return False
    if form == "join":
        return not all(_occurs(governed, rule, (name,), (0,)) for name in body.classes)
    if form in ("purpose", "metadata"):
        return not _occurs(governed, rule, body.class_, (0,))
    return not governed.places.where(body.to) or not _occurs(governed, rule, body.class_, governed.groups(body.from_))


def _occurs(governed: Governed, rule: PlacedPart[Rule], classes: Iterable[str], groups: Iterable[int]) -> bool:
    """Return whether any column is of one of the classes, or may be."""
    spread = governed.spread
    taints = taints_of(spread, rule.value, classes, groups)
    return any(len(spread.having(mode, taints)) for mode in (Mode.VALUE, Mode.UNKNOWN))


def _order(finding: Finding) -> tuple[int, int, str, str, str]:
    return finding.verdict, SEVERITIES.index(finding.severity), finding.rule, finding.column, finding.source


def _all(governed: Governed, today: date, base: Governed | None) -> list[Finding]:
    found: list[Finding] = []
    for rule in governed.policies.rules:
        form, body = rule.value.form, rule.value.body
        if form == "join":
            found += judge_joins(governed.spread, rule, today)
        elif form == "python":
            found += judge_python(governed, rule, today, base)
        elif form == "metadata":
            found += _metadata(governed, rule, body, today)
        elif form == "change":
            if base is not None:
                found += judge_changes(base.spread, governed.spread, (base.places, governed.places), rule, today)
        else:
            found += judge(governed.spread, _question(governed, rule), governed.seeds, governed.possible, today)
    return found


_BAD, _OPEN = RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN
_MODES: Mapping[str, Mapping[Mode, RuleVerdict]] = {
    "direct": {Mode.VALUE: _BAD, Mode.UNKNOWN: _OPEN},
    "indirect": {Mode.INFLUENCE: _BAD, Mode.UNKNOWN: _OPEN},
    "any": {Mode.VALUE: _BAD, Mode.INFLUENCE: _BAD, Mode.UNKNOWN: _OPEN},
}


def _question(governed: Governed, rule: PlacedPart[Rule]) -> Question:
    form, body = rule.value.form, rule.value.body
    if form == "purpose":
        return Question(
            rule,
            body.class_,
            _purposes(governed, body),
            _MODES["direct"],
            {0: Truth.YES},
            "the purposes of the dataset are not known",
            _PURPOSES,
            "" if governed.places.states("purposes") else "no dataset is in a zone with purposes",
        )
    sinks = governed.places.where(body.to)
    modes = {Mode.UNKNOWN: _BAD} if form == "opaque" else _MODES[body.via]
    asks = body.to.region or (body.from_ is not None and body.from_.region)
    return Question(
        rule,
        body.class_,
        sinks,
        modes,
        governed.groups(body.from_),
        "the region of the source or of the dataset is not known",
        _REGION,
        "no dataset is in a zone with a region" if asks and not governed.places.states("regions") else "",
    )


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


def _metadata(governed: Governed, rule: PlacedPart[Rule], body: Described, today: date) -> list[Finding]:
    """Datasets with data of a class that lack a fact."""
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
