"""Waivers in SQL comments: ``allow RULE until DATE because REASON``, for what the statement there writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from govtool.model.fact import WAIVER
from govtool.policy.dataset_facts import ToolFact

_FORM = re.compile(
    r"allow\s+(?P<rules>[\w.-]+(?:\s*,\s*[\w.-]+)*)\s+until\s+(?P<day>\d{4}-\d\d-\d\d)\s+because\s+\S", re.IGNORECASE
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


@dataclass(frozen=True, slots=True)
class MistakenComment:
    """A comment that begins like a waiver and is none."""

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
            yield InlineWaiver(rule.strip(), fact.dataset, expires, fact.file)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
