"""The answer of ``whatif``: the effects of changes to columns or datasets, several at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from govtool.answers.answer import Cell, GraphAnswer, at_least
from govtool.answers.evidence import evidence_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.policy.rules.finding import Finding
    from govtool.query.changes.whatif import Affected, WhatIf


class PolicyEffect(NamedTuple):
    """Findings that a change ends, and the number of those that it leaves."""

    ended: tuple[Finding, ...]
    left: int

    def to_dict(self) -> dict[str, object]:
        """Its JSON value."""
        ended = [{"rule": f.rule, "column": f.column, "source": f.source or None} for f in self.ended]
        return {"ended": ended, "left": self.left, "rules": list(self.rules)}

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of which findings end."""
        return tuple(dict.fromkeys(f.rule for f in self.ended))


@dataclass(frozen=True, slots=True)
class WhatIfAnswer(GraphAnswer):
    """The effects of a change, the worst first, and the policy findings that it ends."""

    schema: ClassVar[str] = "whatif/1"
    fields: ClassVar[tuple[str, ...]] = ("verdict", "column", "dataset", "hops", "via", "cause", "evidence")
    types: ClassVar[Mapping[str, str]] = {"hops": "integer", "via": "texts", "evidence": "texts"}

    result: WhatIf
    effect: PolicyEffect | None
    """None without policies, and for changes that leave the data as it is."""
    limit: int | None = None
    """Entries to give at most; the summary is of all."""

    @property
    def entries(self) -> tuple[Affected, ...]:
        """The effects, up to the limit."""
        return self.result.affected[: self.limit]

    @property
    def truncated(self) -> int:
        """Number of entries left out by the limit."""
        return len(self.result.affected) - len(self.entries)

    def head(self, limit: int | None) -> WhatIfAnswer:
        """The answer with the first so many entries; None: with all."""
        return replace(self, limit=limit)

    def fails(self, fail_on: str) -> bool:
        """Return whether anything is as bad as a verdict, or worse.

        Raises:
            UnknownNameError: There is no such verdict (``usage.unknown-verdict``).
        """
        from govtool.query.changes.whatif import VERDICTS

        counted = at_least(fail_on, VERDICTS, "verdict")
        return any(entry.verdict in counted for entry in self.result.affected)

    def is_unclear(self) -> bool:
        """True if a verdict is ``unknown``, or a statement was not understood that could read what is changed."""
        return any(entry.verdict == "unknown" for entry in self.result.affected) or self.version.unclear > 0

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/whatif-1.json has them."""
        result = self.result
        return {
            "action": result.action,
            "to": result.to,
            "subjects": list(result.subjects),
            **({"changes": [_change_object(part) for part in result.parts]} if result.parts else {}),
            "columns": list(self.items()),
            **({"truncated": self.truncated} if self.truncated else {}),
            "datasets": list(result.datasets),
            "jobs": list(result.jobs),
            "reports": list(result.reports),
            "unused": list(result.unused),
            **({"unchanged": list(result.unchanged)} if result.unchanged else {}),
            **({"not_compared": "; ".join(result.not_compared)} if result.not_compared else {}),
            "policies": self.effect and self.effect.to_dict(),
            "summary": {**result.counts, "not_understood": self.version.unclear},
            "coverage": self.version.coverage.counts(),
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each entry."""
        return (_entry_object(entry) for entry in self.entries)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row an entry."""
        for one in self.entries:
            evidence = tuple(item.place for item in one.evidence)
            yield one.verdict, one.column, one.dataset, one.hops, one.via, one.cause or None, evidence


def _change_object(part: WhatIf) -> dict[str, object]:
    return {"action": part.action, "to": part.to, "subjects": list(part.subjects), "summary": part.counts}


def _entry_object(entry: Affected) -> dict[str, object]:
    return {
        "column": entry.column,
        "dataset": entry.dataset,
        "dataset_kind": entry.dataset_kind,
        "verdict": entry.verdict,
        "cause": entry.cause or None,
        "hops": entry.hops,
        "path": list(entry.path),
        "via": list(entry.via),
        **({"survives": list(entry.survives)} if entry.survives else {}),
        "evidence": [evidence_object(e) for e in entry.evidence],
    }
