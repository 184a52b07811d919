"""The words that tables about the graph share: heading, closing sentence, places, ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from govtool.answers.coverage import sentence
from govtool.render.layout.text import short, when
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.version import GraphVersion
    from govtool.query.evidence import Evidence


def heading(version: GraphVersion, subject: str, *more: str) -> str:
    """``crm.users.email · 7f3a1c0 (2026-11-20 22:10) · change: drop``."""
    return " · ".join((subject, f"{short(version.commit.id)} ({when(version.commit.time)})", *more))


def closing(version: GraphVersion, *parts: str) -> str:
    """The parts and the coverage as one sentence."""
    return " · ".join([part for part in parts if part] + [sentence(version.coverage)])


def unclear(version: GraphVersion) -> str:
    """Count what is not known and could matter: ``3 statements not understood could read it: …``."""
    if not version.unclear:
        return ""
    return f"{version.unclear_text()} could read it: govtool coverage --details"


def places(evidence: Iterable[Evidence]) -> str:
    """The first place, and how many more there are: ``etl/a.sql:4 (+2)``."""
    found = list(dict.fromkeys(item.position for item in evidence))
    return "" if not found else found[0] + (f" (+{len(found) - 1})" if len(found) > 1 else "")


def way(labels: Sequence[str]) -> str:
    """A way hop by hop, with runs of the same word written once: ``lower() → copy ×3``."""
    runs = [(label, len(list(same))) for label, same in groupby(labels)]
    return " → ".join(label if number == 1 else f"{label} ×{number}" for label, number in runs)


def already(unchanged: Iterable[str], type_: str) -> str:
    """Of which columns a new type is the old one; empty of none."""
    names = list(unchanged)
    if not names:
        return ""
    return f"no change: {few(names)} {'is' if len(names) == 1 else 'are'} {type_} already"


def tally(counts: Mapping[str, int]) -> str:
    """``17 break, 1 unknown``, without what does not occur."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
