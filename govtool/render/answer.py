"""What the answers about the graph have in common: their header, their evidence, their closing sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from govtool.render.coverage import StatementCounts, sentence
from govtool.render.text import short, when

if TYPE_CHECKING:
    from govtool.app.coverage import Coverage
    from govtool.query.evidence import Evidence, WayStep
    from govtool.store import Commit


@dataclass(frozen=True, slots=True)
class GraphVersion:
    """Which version of which store an answer is about, and how much of its evidence was understood."""

    store: str
    commit: Commit
    coverage: Coverage

    def header(self) -> dict[str, object]:
        """The keys of a JSON answer that say so."""
        return {
            "store": self.store,
            "commit": {"seq": self.commit.seq, "id": self.commit.id, "time": self.commit.time},
        }

    def heading(self, subject: str, *more: str) -> str:
        """``crm.users.email · 7f3a1c0 (2026-11-20 22:10) · change: drop``."""
        return " · ".join((subject, f"{short(self.commit.id)} ({when(self.commit.time)})", *more))

    def closing(self, *parts: str) -> str:
        """The parts and the coverage as one sentence."""
        counts: StatementCounts = self.coverage
        return " · ".join([part for part in parts if part] + [sentence(counts)])


def evidence_object(evidence: Evidence) -> dict[str, object]:
    """The JSON value of a statement as evidence."""
    return {
        "kind": evidence.kind,
        "how": evidence.how,
        "file": evidence.file,
        "line": evidence.line,
        "fingerprint": evidence.fingerprint,
        "run": evidence.run,
        "first_seen": evidence.first_seen,
        "last_seen": evidence.last_seen,
        "count": evidence.count,
    }


def step_object(step: WayStep) -> dict[str, object]:
    """The JSON value of one edge of a way."""
    return {
        "source": step.source,
        "target": step.target,
        "kind": step.kind.label,
        "functions": list(step.functions),
        "star": step.star,
        "masking": step.masking,
        "reason": step.reason,
        "temporary": step.elided,
        "evidence": evidence_object(step.evidence),
    }


def places(evidence: Iterable[Evidence]) -> str:
    """The first place, and how many more there are: ``etl/a.sql:4 (+2)``."""
    found = list(dict.fromkeys(item.place for item in evidence))
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
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"no change: {listed} {'is' if len(names) == 1 else 'are'} {type_} already"


def tally(counts: Mapping[str, int]) -> str:
    """``17 break, 1 unknown``, without what does not occur."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
