"""Suspicious parts of policies that are not errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from datetime import date

from govtool.functions.facts import key_of, unread_of
from govtool.functions.names import known_names
from govtool.graph.index import Index
from govtool.model.columnar import split_functions
from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.classes.governed import govern
from govtool.policy.classes.masking import SETS, is_hash, keeps_a_value, named
from govtool.policy.classes.taints import Mode
from govtool.policy.files.load import offers
from govtool.policy.files.policy_set import PolicySet
from govtool.policy.files.terms import NONE
from govtool.policy.rules.finding import PolicyRemark, zone_notes
from govtool.policy.rules.judge import taints_of
from govtool.policy.rules.python import failure
from govtool.policy.rules.waivers import SOON
from govtool.query.selection.patterns import Patterns


def in_itself(policies: PolicySet, today: date) -> Iterator[PolicyRemark]:
    """Return the findings that need no graph."""
    yield from zone_notes(policies)
    yield from _classes(policies)
    yield from _declassifiers(policies)
    yield from _python(policies)
    tested = {e.rule for t in policies.tests for e in t.value.expect}
    for rule in policies.rules:
        if rule.value.id not in tested:
            yield PolicyRemark("rule-untested", "note", f"no test expects {rule.value.id}", rule.place)
    for waiver in policies.waivers:
        about = f"the waiver of {waiver.value.rule} for {', '.join(waiver.value.columns)}"
        if waiver.value.expires < today:
            yield PolicyRemark("waiver-expired", "warning", f"{about} expired on {waiver.value.expires}", waiver.place)
        elif waiver.value.expires - today <= SOON:
            yield PolicyRemark("waiver-expires", "note", f"{about} expires on {waiver.value.expires}", waiver.place)


def _classes(policies: PolicySet) -> Iterator[PolicyRemark]:
    """Classes that no rule speaks of, and rules on classes that nothing has."""
    lattice = policies.lattice
    ruled = {name for rule in policies.rules for name in rule.value.classes}
    open_ = any(rule.value.python is not None for rule in policies.rules)
    given = {c.value.class_ for c in policies.classify} | {d.value.to for d in policies.declassify} - {NONE}
    for file in policies.files:
        for name in file.policy.classes:
            if (
                ruled
                and not open_
                and not lattice.is_a(name, ruled)
                and not any(lattice.is_a(r, [name]) for r in ruled)
            ):
                yield PolicyRemark("class-unused", "note", f"no rule speaks of {name}", file.place("classes", name))
    for rule in policies.rules:
        for name in rule.value.classes:
            if not any(lattice.is_a(g, [name]) for g in given):
                message = f"{rule.value.id} speaks of {name}, and nothing is classified so"
                yield PolicyRemark("rule-idle", "warning", message, rule.place)


def _python(policies: PolicySet) -> Iterator[PolicyRemark]:
    """Load the rules in Python; return their origins, and those that cannot be loaded."""
    for rule in policies.rules:
        name = rule.value.python
        if name is None:
            continue
        origin = ", ".join(map(str, offers().get(name, ())))
        yield PolicyRemark("rule-python", "note", f"{rule.value.id} is Python code of {origin}", rule.place)
        wrong = failure(name)
        if wrong is not None:
            message = f"{rule.value.id} cannot be loaded from {origin}: {wrong}"
            yield PolicyRemark("rule-broken", "warning", message, rule.place)


def _declassifiers(policies: PolicySet) -> Iterator[PolicyRemark]:
    """Functions that do not hide values although a declassifier lists them."""
    for item in policies.declassify:
        one = item.value
        for function in one.functions:
            if keeps_a_value(function):
                message = f"{one.name}: {function}() hands on a real value and hides nobody"
                yield PolicyRemark("declassifier-weak", "warning", message, item.place)
            if one.kind == "mask" and is_hash(function):
                low = [c for c in sorted(policies.lattice.names) if policies.lattice.is_low_entropy(c)]
                hit = [c for c in low if policies.lattice.is_a(c, one.from_)]
                if hit and one.low_entropy:
                    message = f"{one.name}: {function} has no key, and values of {', '.join(hit)} can be guessed"
                    yield PolicyRemark("declassifier-weak", "warning", message, item.place)
        if one.kind == "aggregate" and not one.entity and "having" in one.evidence:
            message = f"{one.name}: k counts rows; name the entity to count people"
            yield PolicyRemark("declassifier-rows", "note", message, item.place)
        if "measured" in one.evidence and len(one.evidence) == 1:
            message = f"{one.name}: only measured runs are evidence; without check --measure it declassifies nothing"
            yield PolicyRemark("declassifier-idle", "note", message, item.place)


def _functions(policies: PolicySet, index: Index) -> Iterator[PolicyRemark]:
    """Functions that no statement calls and that are not known either: misspelt, it may be."""
    listed = [(item, name) for item in policies.declassify for name in item.value.functions if name not in SETS]
    if not listed:
        return
    labels = {int(label) for label in index.arrays["label_functions"]}
    functions = {name for label in labels for name in split_functions(index.string(label))}
    called = {unread_of(name) or name for name in functions if key_of(name) is None}
    known = sorted({*called, *known_names(), *(name for members in SETS.values() for name in members)})
    for item, name in listed:
        if any(named([name], one) for one in known):
            continue
        near = difflib.get_close_matches(name.lower(), known, n=3)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        message = f"{item.value.name}: nothing calls {name}() in this graph, and it is not a known function{hint}"
        yield PolicyRemark("function-unknown", "warning", message, item.place)


def in_graph(
    policies: PolicySet, index: Index, today: date, tool_facts: Iterable[ToolFact] = ()
) -> Iterator[PolicyRemark]:
    """Return selectors that match nothing in a graph."""
    governed = govern(index, policies, today, tool_facts=tool_facts)
    places = governed.places
    for name in places.empty_zones:
        yield PolicyRemark("zone-empty", "error", f"the zone {name} matches no dataset", policies.zones[name].place)
    for item in policies.classify:
        nodes = Patterns(item.value.columns, index.paths_root).columns(index, places.paths) | places.tagged(
            item.value.tags
        )
        if not nodes:
            yield PolicyRemark(
                "classify-idle", "warning", f"no column is classified {item.value.class_} by this", item.place
            )
    yield from _functions(policies, index)
    for rule in policies.rules:
        if rule.value.form in ("change", "python"):
            continue
        groups = governed.groups(getattr(rule.value.body, "from_", None))
        taints = taints_of(governed.spread, rule.value, rule.value.classes, groups)
        if not taints or not any(len(governed.spread.having(mode, taints)) for mode in Mode):
            message = f"{rule.value.id} matches no data of this graph"
            yield PolicyRemark("rule-idle", "warning", message, rule.place)
