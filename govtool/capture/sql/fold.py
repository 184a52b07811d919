"""What the statements of a script leave behind.

Inside one script (a session) order counts: a definition replaces what came before, INSERTs add up, TRUNCATE empties,
DROP ends, RENAME moves. A table that was created, read and dropped again stays as a temporary one, so that what
passed through it is not lost.

Branches of control flow are played side by side: each arm starts with what stood before the branch, and behind the
branch stands what any of them left; where no arm need be taken, also what stood before. The bodies of routines run who
knows when: each is played on its own, and adds up with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from govtool.capture.sql.scripts.branches import Arm, Path
from govtool.capture.sql.states import ScriptState, StatementState
from govtool.capture.sql.walk.writes import Write


class Draft(NamedTuple):
    """A write with the statement that made it, and what the fold of its script made of it."""

    write: Write
    statement: StatementState
    target: str
    target_kind: str
    mode: str
    """That of the write; ``append`` for a definition that does not end an earlier one, as it is in another branch."""

    @property
    def key(self) -> tuple[int, str]:
        """Equal for what is the same after different branches."""
        return id(self.write), self.target


_Live = dict[str, list[Draft]]


@dataclass(slots=True)
class _Branch:
    """A branch that is being played."""

    number: int
    arm: int
    before: _Live
    left: list[_Live] = field(default_factory=list)
    """What each arm left that is over."""
    always: bool = False
    """Whether one of its arms is taken in any case."""


def fold_script(script: ScriptState, read_names: set[str]) -> list[Draft]:
    """Return what the statements of one script leave behind, in order of text.

    Args:
        script: A script whose statements are walked.
        read_names: Datasets that any statement of the batch reads.
    """
    plays: dict[str | None, _Play] = {}
    for statement in script.statements:
        routine, branch = statement.parsed.routine, statement.parsed.branch
        play = plays.get(routine)
        if play is None:
            play = plays[routine] = _Play(read_names)
        play.go_to(branch, statement.variant if branch else -1)
        for write in statement.writes:
            play.act(Draft(write, statement, write.target, write.target_kind, write.mode))
    kept = [draft for play in plays.values() for draft in play.end()]
    kept.sort(key=lambda draft: draft.statement.index)
    return kept


class _Play:
    """The statements of a script outside routines, or those of one routine."""

    def __init__(self, read_names: set[str]) -> None:
        self.read_names = read_names
        self.live: _Live = {}
        self.kept: list[Draft] = []
        self.gone: list[Draft] = []
        self.branches: list[_Branch] = []
        self.variant = -1

    # -- branches -----------------------------------------------------------------------------------------------------

    def go_to(self, path: Path, variant: int) -> None:
        """Go on in a branch; the branches of another variant of a template are others."""
        if not path and not self.branches:
            return
        same = 0
        if variant == self.variant:
            for branch, arm in zip(self.branches, path, strict=False):
                if branch.number != arm.branch:
                    break
                same += 1
                if branch.arm != arm.number:
                    break
        self.variant = variant
        while len(self.branches) > same:
            self._leave()
        if same and self.branches[-1].arm != path[same - 1].number:
            self._turn(path[same - 1])
        for arm in path[same:]:
            self.branches.append(_Branch(arm.branch, arm.number, _copy(self.live), always=arm.rest))
            if arm.number:  # arms without a statement left things as they were
                self.branches[-1].left.append(_copy(self.live))

    def _turn(self, arm: Arm) -> None:
        branch = self.branches[-1]
        branch.left.append(self.live)
        if arm.number > branch.arm + 1:
            branch.left.append(_copy(branch.before))
        branch.arm = arm.number
        branch.always = branch.always or arm.rest
        self.live = _copy(branch.before)

    def _leave(self) -> None:
        branch = self.branches.pop()
        ways = [*branch.left, self.live]
        if not branch.always:
            ways.insert(0, branch.before)
        self.live = _union(ways)

    # -- writes -------------------------------------------------------------------------------------------------------

    def act(self, draft: Draft) -> None:
        """Let one write do what it does."""
        live, target = self.live, draft.target
        if not target:
            if draft.mode == "replace":  # a bare SELECT replaces nothing
                self.kept.append(draft)
        elif draft.mode == "rename":
            self._rename(draft)
        elif draft.mode == "drop":
            self._drop(draft)
        elif draft.mode == "truncate":
            live[target] = [d for d in live.get(target, []) if d.write.defines]
        elif draft.mode == "replace":
            live[target] = [*_kept_by(draft, live.get(target, [])), draft]
        else:
            live.setdefault(target, []).append(draft)

    def _drop(self, draft: Draft) -> None:
        gone = self.live.pop(draft.target, [])
        self.gone.extend(
            d for d in gone if d.target in self.read_names and d.target_kind in ("table", "view", "temporary")
        )
        if not gone:
            self.kept.append(draft)

    def _rename(self, draft: Draft) -> None:
        old, new = draft.write.target, draft.write.renamed_to or ""
        swaps = draft.write.kind == "swap"
        moved = self.live.pop(old, [])
        displaced = self.live.pop(new, []) if swaps else []
        if moved:
            self.live[new] = [item._replace(target=new) for item in moved]
        else:
            self.kept.append(draft)
        if displaced:
            self.live[old] = [item._replace(target=old) for item in displaced]
        elif swaps:
            self.kept.append(draft._replace(write=_turned(draft.write), target=old, target_kind="table"))

    def end(self) -> list[Draft]:
        """All that is left."""
        while self.branches:
            self._leave()
        # What a branch drops may be there all the same.
        kept = [d for d in self.kept if d.mode != "drop" or not d.statement.parsed.branch or d.target not in self.live]
        kept = [*kept, *(draft for drafts in self.live.values() for draft in _added(drafts))]
        stands = {draft.key for draft in kept}
        for draft in self.gone:
            if draft.key not in stands:  # in another branch it was not dropped
                stands.add(draft.key)
                kept.append(draft._replace(target_kind="temporary"))
        return kept


def _added(drafts: list[Draft]) -> list[Draft]:
    """A definition that stands beside an earlier one of another branch adds to it: in text it would replace it."""
    found: list[Draft] = []
    for draft in drafts:
        if draft.mode == "replace" and any(_would_end(draft, before) for before in found):
            draft = draft._replace(mode="append")
        found.append(draft)
    return found


def _would_end(draft: Draft, before: Draft) -> bool:
    if (
        before.statement.variant != draft.statement.variant
        or before.statement.parsed.line >= draft.statement.parsed.line
    ):
        return False
    return draft.write.defines or before.mode != "declare"


def _kept_by(draft: Draft, before: list[Draft]) -> list[Draft]:
    """What of a dataset outlives a replacement: its declaration, and what another variant of the template says."""
    statement = draft.statement
    declared = [d for d in before if d.mode == "declare"] if not draft.write.defines else []
    variants = [d for d in before if d.statement.variant != statement.variant]
    return [*declared, *(d for d in variants if d not in declared)]


def _turned(write: Write) -> Write:
    """A rename in the other direction: the second half of a swap."""
    return Write(write.renamed_to or "", write.kind, "rename", renamed_to=write.target, defines=False)


def _copy(live: _Live) -> _Live:
    return {target: list(drafts) for target, drafts in live.items()}


def _union(ways: list[_Live]) -> _Live:
    """What stands after any of several ways, in order of text."""
    found: dict[str, dict[tuple[int, str], Draft]] = {}
    for live in ways:
        for target, drafts in live.items():
            known = found.setdefault(target, {})
            for draft in drafts:
                known.setdefault(draft.key, draft)
    return {target: sorted(drafts.values(), key=lambda d: d.statement.index) for target, drafts in found.items()}
