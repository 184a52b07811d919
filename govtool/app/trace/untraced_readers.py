"""Recorded runs that read a dataset, and through which none of its rows can be followed: a trace forward names them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from govtool.answers.trace import HopEnd
from govtool.app.records.dataset_names import inputs_of
from govtool.app.records.tables import read_runs_beside_damage
from govtool.app.records.unreadable import each_name
from govtool.app.runs.lookup import read_history
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.model.run import Run
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class UntracedRead:
    """A run that read a dataset, and why its rows cannot be followed."""

    run: Run
    dataset: str
    reason: str

    def is_of(self, name: str) -> bool:
        """Return whether it read a dataset: by its name, or with the folder that it is in."""
        return name == self.dataset or ("/" in self.dataset and name.startswith(f"{self.dataset.rstrip('/')}/"))

    def is_before(self, modified: int) -> bool:
        """Return whether it had ended before files were written, in milliseconds since 1970."""
        if self.run.ended is None or not modified:
            return False
        return datetime.fromisoformat(self.run.ended).astimezone(UTC).timestamp() * 1000 < modified


def untraced_reads(store: Reader, commit: Commit) -> list[UntracedRead]:
    """What runs of recorded jobs read, and have no positions for: a stream with a state, an action without a plan.

    Statements that change a table in place are left out: what reads the table afterwards is traced.
    """
    history = {name: run for run in read_history(store, commit).runs for name in run.ids}
    found = []
    for each in read_runs_beside_damage(store, commit)[0]:
        run = history.get(each.run)
        if run is None or run.status == "failed" or not each.breaks or each.program:
            continue
        known, wrote = each_name(inputs_of(each)), {output.dataset for output in run.outputs}
        names = {one.dataset for one in run.inputs}
        if len(known) < len(names):
            reason = each.breaks[0].partition(": ")[0]
            found += [UntracedRead(run, name, reason) for name in sorted(names - known - wrote)]
    return found


def named_ends(
    reads: Iterable[UntracedRead], starts: Iterable[tuple[str, int]], ends: Iterable[HopEnd]
) -> tuple[HopEnd, ...]:
    """The ends of a trace, with those at runs that cannot be traced.

    Args:
        reads: Reads of such runs.
        starts: The names that the trace began with, and when the first of their files was written.
        ends: The ends as they are known.
    """
    reads, names, made = list(reads), dict(starts), list(ends)
    for name, modified in names.items():
        if not any(name.startswith(f"{other}/") for other in names):  # else a file of what is named, too
            made += _lost(name, [each for each in reads if each.is_of(name) and not each.is_before(modified)])
    found: list[HopEnd] = []
    for end in made:
        own = [] if end.broken else [each for each in reads if each.is_of(end.dataset)]
        lost = _lost(end.dataset, own)
        found += [replace(each, run=end.run, files=end.files, rows=end.rows) for each in lost] or [end]
    return tuple(found)


def _lost(name: str, reads: Iterable[UntracedRead]) -> list[HopEnd]:
    by_reason: dict[str, dict[str, str]] = {}
    for each in reads:
        by_reason.setdefault(each.reason, {})[each.run.id] = ", ".join(one.dataset for one in each.run.outputs)
    found = []
    for reason, runs in by_reason.items():
        who = few([_line(*run) for run in runs.items()], 1)
        found.append(HopEnd(next(iter(runs)), name, (), 0, f"{who} read it: {reason}", True))
    return found


def _line(run: str, output: str) -> str:
    return f"{run} → {output}" if output else run
