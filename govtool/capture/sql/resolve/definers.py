"""The definition of a table that counts where a statement stands: its script's last one before it, else the nearest."""

from __future__ import annotations

from bisect import bisect_left

from govtool.capture.sql.resolve.states import StatementState
from govtool.capture.sql.scripts.control.branches import exclusive


def _index(statement: StatementState) -> int:
    return statement.index


def definer_of(
    definers: list[StatementState], statement: StatementState
) -> tuple[StatementState | None, list[StatementState]]:
    """Return the definition that counts where a statement stands, and those before it in branches of its script."""
    if len(definers) == 1 and definers[0].script is not statement.script:
        return definers[0], []
    branch = statement.parsed.branch
    if definers[0].script is statement.script is definers[-1].script and not branch:
        place = bisect_left(definers, statement.index, key=_index)
        if not place:
            return next((d for d in definers if d is not statement), None), []
        chosen = definers[place - 1]
        return chosen, definers[:place] if chosen.parsed.branch else []
    own = _own(definers, statement)
    before = [d for d in own if d.index < statement.index]
    if own:
        return (before[-1] if before else own[0]), before
    return _nearest([d for d in definers if d.script is not statement.script], statement.script.file), []


def _own(definers: list[StatementState], statement: StatementState) -> list[StatementState]:
    """The other definitions of a statement's script; what another arm of its branch defines is not there."""
    branch = statement.parsed.branch
    own = [d for d in definers if d.script is statement.script and d is not statement]
    return [d for d in own if not exclusive(branch, d.parsed.branch)] if branch else own


def _nearest(definers: list[StatementState], file: str) -> StatementState | None:
    """The first of the definitions whose file shares most folders with ``file``; none if there are none.

    Folders of unlike projects define tables of the same name.
    """
    folders = file.split("/")[:-1]
    best: StatementState | None = None
    most = -1
    for definer in definers:
        shared = 0
        for ours, theirs in zip(folders, definer.script.file.split("/")[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        if shared > most:
            best, most = definer, shared
    return best
