"""``govtool policy``: tests, lint, explain."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from govtool.answers.envelope import envelope
from govtool.render.formats.envelope import json_lines
from govtool.render.layout.rows import laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import Prose, count, printable

if TYPE_CHECKING:
    from govtool.app.questions.policy import Outcome
    from govtool.policy.files.model import Rule
    from govtool.policy.files.policy_set import PlacedPart, PolicySet
    from govtool.policy.rules.finding import PolicyRemark

FORMATS = ("table", "plain", "json", "markdown")


def tests(form: str, outcomes: Sequence[Outcome]) -> Prose | Iterable[str]:
    """The outcome of ``policy test``; ``json`` or lines."""
    if form == "json":
        return json_lines(
            envelope(
                "policy-test/1",
                {
                    "tests": [{**o._asdict(), "passed": o.passed} for o in outcomes],
                    "summary": {"passed": sum(o.passed for o in outcomes), "tests": len(outcomes)},
                },
            )
        )
    return Prose(_test_lines(outcomes))


def _test_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        yield printable(f"{'pass' if outcome.passed else 'FAIL'}  {outcome.name}  {outcome.place}")
        for text in outcome.missing:
            yield printable(f"      expected, not found: {text}")
        for text in outcome.surplus:
            yield printable(f"      found, not expected: {text}")
        if outcome.problem:
            yield printable(f"      {outcome.problem}")
    failed = sum(not outcome.passed for outcome in outcomes)
    yield f"{count(len(outcomes) - failed, 'test')} passed, {failed} failed"


def remarks(form: str, found: Sequence[PolicyRemark], rules: int) -> Table | Iterable[str]:
    """The outcome of ``policy lint``."""
    if form == "json":
        return json_lines(
            envelope(
                "policy-lint/1",
                {
                    "remarks": [
                        {"code": r.code, "severity": r.severity, "message": r.message, "place": r.place} for r in found
                    ]
                },
            )
        )
    kinds = Counter(r.severity for r in found)
    table = Table(
        columns=(
            TableColumn("severity"),
            TableColumn("code"),
            TableColumn("message"),
            TableColumn("place", style="dim"),
        ),
        rows=[(r.severity, r.code, r.message, r.place) for r in found],
        summary=", ".join(
            (
                count(rules, "rule"),
                *([count(kinds["error"], "error")] if kinds["error"] else []),
                count(kinds["warning"], "warning"),
                count(kinds["note"], "note"),
            )
        ),
    )
    return laid_out(form, table)


def explanation(policies: PolicySet, rules: Sequence[PlacedPart[Rule]]) -> Prose:
    """Rules in words."""
    return Prose(_explained(policies, rules))


def _explained(policies: PolicySet, rules: Sequence[PlacedPart[Rule]]) -> Iterator[str]:
    for placed in rules:
        rule = placed.value
        yield printable(f"{rule.id}  {rule.severity}  {rule.title}  {placed.place}")
        if rule.description:
            yield printable(f"  {rule.description}")
        yield printable(f"  {rule_sentence(policies, rule)}")
        for name in sorted(rule.accepted):
            one = next(d.value for d in policies.declassify if d.value.name == name)
            least = f" over groups of {one.min_group_size} or more" if one.min_group_size else ""
            yield printable(f"  unless declassified by {name}: {one.kind} {', '.join(one.means)}{least}, to {one.to}")
            if one.entity:
                yield printable(f"    groups are counted by: {', '.join(one.entity)}")
        for unless in rule.unless:
            for approval in unless.approved:
                until = f" until {approval.expires}" if approval.expires else ""
                yield printable(f"  unless approved by {approval.by}{until}: {', '.join(approval.columns)}")
        for waiver in policies.waivers:
            if waiver.value.rule == rule.id:
                one_ = waiver.value
                yield printable(
                    f"  waived until {one_.expires} by {one_.approved_by}: {', '.join(one_.columns)} ({one_.reason})"
                )
        if rule.fix:
            yield printable(f"  fix: {rule.fix}")
        yield ""


def rule_sentence(policies: PolicySet, rule: Rule) -> str:
    """Describe a rule in one sentence."""
    body = rule.body
    if rule.form == "python":
        from govtool.policy.files.load import offers

        options = f", with {json.dumps(body.options, ensure_ascii=False, default=str)}" if body.options else ""
        return f"Judged by {body.name} of {', '.join(map(str, offers().get(body.name, ())))}{options}."
    if rule.form == "join":
        return f"Data of {' and '.join(body.classes)} must not come together in {', '.join(body.in_)}."
    classes = ", ".join(f"{name} ({_covers(policies, name)})" for name in body.class_) or "columns"
    if rule.form in ("flow", "opaque"):
        start = f" from {_place(body.from_)}" if body.from_ else ""
        how = {"direct": "as a value", "indirect": "as an influence", "any": "as a value or an influence"}
        verb = "reach" if rule.form == "flow" else "pass through an opaque step on the way to"
        via = f" {how[body.via]}" if rule.form == "flow" else ""
        return f"Data of {classes}{start} must not {verb} {_place(body.to)}{via}."
    if rule.form == "change":
        where = f" in {_place(body.to)}" if body.to else ""
        named = f" named {', '.join(body.columns)}" if body.columns else ""
        return f"No {' or '.join(body.kinds)} of {classes}{named}{where}, against --base."
    if rule.form == "purpose":
        return f"Data of {classes} lies only where one of these purposes is pursued: {', '.join(body.any_of)}."
    most = f"; retention at most {body.retention_max}" if body.retention_max else ""
    return f"Datasets with data of {classes} have {', '.join(body.keys)}{most}."


def _covers(policies: PolicySet, name: str) -> str:
    below = sorted(policies.lattice.below(name) - {name})
    return f"with {', '.join(below)}" if below else "nothing below it"


def _place(place: object) -> str:
    parts = [f"{key} {value}" for key in ("zone", "region") if (value := getattr(place, key))]
    datasets = getattr(place, "datasets", ())
    return " and ".join([*parts, *([", ".join(datasets)] if datasets else [])])
