"""Rules in Python (entry points of ``govtool.policy.files.load``), run on a view.

A rule never fails a check: what it raises is a finding of the verdict unknown, which no base hides.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

from govtool.policy.classes.governed import Governed
from govtool.policy.files.load import offers
from govtool.policy.files.model import PythonRule, Rule
from govtool.policy.files.policy_set import PlacedPart
from govtool.policy.rules.finding import FAILED, Finding, RuleVerdict
from govtool.policy.rules.judge import Approvals
from govtool.policy.view import Found, View

LONGEST = 500
"""Characters of what an error says that are kept."""

_VERDICTS = {"violated": RuleVerdict.VIOLATED, "unknown": RuleVerdict.UNKNOWN}


class RuleError(Exception):
    """A rule does not keep to the protocol."""


def judge_python(governed: Governed, rule: PlacedPart[Rule], today: date, base: Governed | None) -> list[Finding]:
    """Run a rule, and make what it yields findings like all others.

    Args:
        governed: The version to check.
        rule: A rule of the form ``python``.
        today: For approvals, and for the rule.
        base: The version before the change.
    """
    body: PythonRule = rule.value.body
    view = View(governed, today, None if base is None else View(base, today))
    approved = Approvals(rule.value, today, governed.places.index.paths_root)
    found: dict[str, Finding] = {}
    try:
        for item in _run(body, view):
            finding = _finding(item, view, rule)
            known = found.get(finding.fingerprint)
            if not approved.cover(finding.column) and (known is None or finding.verdict < known.verdict):
                found[finding.fingerprint] = finding
    except (Exception, SystemExit) as error:  # whatever it is, the other rules are judged
        finding = Finding(
            rule=rule.value.id,
            title=rule.value.title,
            severity=rule.value.severity,
            verdict=RuleVerdict.UNKNOWN,
            source="",
            column=f"python:{body.name}",
            classes=(),
            state=FAILED,
            why=f"the rule failed: {_error_text(error)}",
            fix=f"mend the rule of {_package(body.name)}",
            place=rule.place,
        )
        found[finding.fingerprint] = finding
    return list(found.values())


def failure(name: str) -> str | None:
    """Return why a rule cannot be loaded; None if it can."""
    try:
        _load(name)
    except (Exception, SystemExit) as error:  # an import may raise anything
        return _error_text(error)
    return None


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:LONGEST] or 'no message'}"


def _package(name: str) -> str:
    return ", ".join(str(offer) for offer in offers().get(name, ())) or name


def _load(name: str) -> Any:
    offered = offers().get(name, ())
    if len(offered) != 1:
        raise RuleError(f"{len(offered)} packages offer {name}")
    function = offered[0].point.load()
    if not callable(function):
        raise RuleError(f"{offered[0].point.value} cannot be called")
    return function


def _run(body: PythonRule, view: View) -> Iterator[Any]:
    yielded = _load(body.name)(view, copy.deepcopy(body.options))
    if not isinstance(yielded, Iterable):
        raise RuleError(f"it gives {type(yielded).__name__}, not findings")
    yield from yielded


def _finding(item: Any, view: View, rule: PlacedPart[Rule]) -> Finding:
    if not isinstance(item, Found):
        raise RuleError(f"it yields {type(item).__name__}, not Found")
    texts = (item.column, item.source, item.state, item.why, item.fix, *item.classes)
    if not all(isinstance(text, str) for text in texts) or item.verdict not in _VERDICTS or item.state == FAILED:
        raise RuleError(f"{item!r:.300} has a part that is not allowed")
    for name in (item.column, *([item.source] if item.source else [])):
        if not view.has(name):
            raise RuleError(f"it names {name!r}, which is not in the graph")
    finding = Finding(
        rule=rule.value.id,
        title=rule.value.title,
        severity=rule.value.severity,
        verdict=_VERDICTS[item.verdict],
        source=item.source,
        column=item.column,
        classes=tuple(item.classes),
        state=item.state,
        why=item.why,
        fix=item.fix or rule.value.fix,
        place=rule.place,
    )
    return replace(finding, steps=view.steps(item.source, item.column))
