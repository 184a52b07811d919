"""The final state of a script, statement by statement.

Inside one script (a session) order counts: a definition replaces what came before, INSERTs add up, TRUNCATE empties,
DROP ends, RENAME moves. A table that was created, read and dropped again stays as a temporary one, so that what
passed through it is not lost; so does what a relation was when it was read, where it became something else later
(``versions``). Of what nobody reads, and a later statement empties, replaces or drops, the names stay: without a column
that is named there, the script fails before it comes to that.

Branches of control flow are folded side by side: each arm starts with what stood before the branch, and behind the
branch stands what any of them left; where no arm need be taken, also what stood before. The bodies of routines run at
unknown times: each is folded on its own, and adds up with the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from govtool.capture.sql.folding.versions import (
    Draft,
    KeptVersions,
    RelationVersion,
    Seen,
    added,
    emptied,
    is_view,
    kept_by,
    redefined,
)
from govtool.capture.sql.resolve.relations import session_part
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.control.branches import Arm, Path
from govtool.capture.sql.scripts.control.variables import MYSQL
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.alter import VIEWS_FOLLOW

_Live = dict[str, RelationVersion]

_DEFINING: Final = (nodes.Create, nodes.Drop, nodes.Alter)

_new: Final[Callable[..., Any]] = tuple.__new__
"""Makes a named tuple in a third of the time of its constructor."""


@dataclass(slots=True)
class _Branch:
    """A branch that statements are being folded in."""

    number: int
    arm: int
    before: _Live
    left: list[_Live] = field(default_factory=list)
    """The result of each finished arm."""
    always: bool = False
    """True if one of its arms is taken in any case."""
    loops: bool = False
    reads: list[tuple[int, str]] = field(default_factory=list)
    """Of a loop: which statement reads which name; the next time round it reads what the last one left."""


def fold_script(script: ScriptState, read_names: set[str]) -> list[Draft]:
    """Return what the statements of one script leave behind, in order of text.

    Args:
        script: A script whose statements are walked.
        read_names: Datasets that any statement of the batch reads.
    """
    folds: dict[str | None, _ScriptFold] = {}
    tracked = redefined(script)
    for statement in _in_order(script):
        routine, branch = statement.parsed.routine, statement.parsed.branch
        fold = folds.get(routine)
        if fold is None:
            fold = folds[routine] = _ScriptFold(read_names, tracked, follows=script.dialect in VIEWS_FOLLOW)
        fold.go_to(branch, statement.variant if branch else -1)
        if tracked:
            for write in statement.writes:
                fold.watch(write, statement.parsed.line, statement.variant)
        for write in statement.writes:
            fold.act(_new(Draft, (write, statement, write.target, write.target_kind, write.mode, None, False)))
    numbers: dict[str, int] = {}
    kept: list[Draft] = []
    for fold in folds.values():
        kept += fold.end(script.session, numbers)
    if not script.logged:  # what a log has will not run again for being there
        for fold in folds.values():
            kept += fold.names_of_ended(kept)
    if len(kept) > 1:
        kept.sort(key=_index)
    return kept


def _in_order(script: ScriptState) -> list[StatementState]:
    """The statements in the order in which they may have run.

    MySQL's handlers stand before the statements whose errors they handle: what they make and drop comes behind these.
    """
    if script.dialect not in MYSQL:
        return script.statements
    late = {
        arm.branch
        for statement in script.statements
        for arm in statement.parsed.branch
        if arm.handler and isinstance(statement.tree, _DEFINING)
    }
    if not late:
        return script.statements
    moved = [one for one in script.statements if any(arm.branch in late for arm in one.parsed.branch)]
    numbers = set(map(id, moved))
    return [*(one for one in script.statements if id(one) not in numbers), *moved]


class _ScriptFold:
    """The statements of a script outside routines, or those of one routine."""

    def __init__(self, read_names: set[str], tracked: set[str], *, follows: bool) -> None:
        self.read_names = read_names
        self.follows = follows
        """Views stay with a table that is renamed; elsewhere they read what has its name."""
        self.tracked = tracked
        """Relations with several versions: what reads them is watched."""
        self.live: _Live = {}
        self.kept: list[Draft] = []
        self.gone: dict[str, list[RelationVersion]] = {}
        """Names that were dropped and not made again."""
        self.ended: list[Draft] = []
        """What was emptied or replaced."""
        self.dropped: list[Draft] = []
        """What was dropped and made again."""
        self.bindings: dict[int, Seen] = {}
        self.made_of: dict[int, Seen] = {}
        self.begun: dict[str, list[tuple[int, RelationVersion]]] = {}
        """The versions of a relation with the lines on which they begin."""
        self.now: dict[str, RelationVersion | None] = {}
        """The meanings of names here, as far as they were needed."""
        self.pending: list[str] = []
        self.branches: list[_Branch] = []
        self.variant = -1

    # -- branches -----------------------------------------------------------------------------------------------------

    def go_to(self, path: Path, variant: int) -> None:
        """Go on in a branch; the branches of another variant of a template are others."""
        if not path and not self.branches:
            return
        self.now = {}
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
            self._next_arm(path[same - 1])
        for arm in path[same:]:
            self.branches.append(_Branch(arm.branch, arm.number, _copy(self.live), always=arm.rest, loops=arm.loops))
            if arm.number:  # arms without a statement left things as they were
                self.branches[-1].left.append(_copy(self.live))

    def _next_arm(self, arm: Arm) -> None:
        branch = self.branches[-1]
        branch.left.append(self.live)
        if arm.number > branch.arm + 1:
            branch.left.append(_copy(branch.before))
        branch.arm = arm.number
        branch.always = branch.always or arm.rest
        self.live = _copy(branch.before)

    def _leave(self) -> None:
        branch = self.branches.pop()
        self.now = {}
        for reader, name in branch.reads:
            seen = self.bindings[reader]
            version = self._now(name)
            if version is not None and version not in seen[name]:
                version.mark_read()
                seen[name] = (*seen[name], version)
        self.now = {}
        ways = [*branch.left, self.live]
        if not branch.always:
            ways.insert(0, branch.before)
        self.live = _union(ways)

    # -- reads --------------------------------------------------------------------------------------------------------

    def watch(self, write: Write, line: int, variant: int) -> None:
        """Note which versions a write reads, before it does what it does."""
        seen: Seen = {}
        for name in write.reads:
            if name not in self.tracked:
                continue
            version = self._now(name)
            found = () if version is None else (version,)
            if variant:  # other variants of the template are over: what stood on that line
                before = self._on(name, line - 1)
                if before is not None and before not in found:
                    found = (*found, before)
            if found or name == write.target:
                seen[name] = found
        if is_view(write):
            self.made_of[id(write)] = seen
            return
        for versions in seen.values():
            for version in versions:
                version.mark_read()
        if seen:
            self.bindings[id(write)] = seen
        for branch in self.branches:
            if branch.loops:
                branch.reads += [(id(write), name) for name in seen]

    def _on(self, name: str, line: int) -> RelationVersion | None:
        """The version that stands behind a line, by the lines on which versions begin."""
        found = max([item for item in self.begun.get(name, ()) if item[0] <= line], key=_line, default=None)
        return None if found is None else found[1]

    def _now(self, name: str) -> RelationVersion | None:
        """The version that is read here; of a view, with the versions of what it reads."""
        if name in self.now:
            return self.now[name]
        version = self.live.get(name)
        if version is not None and version.views:
            self.pending.append(name)
            seen: Seen = {}
            for write in version.views:
                for read, versions in self._of_view(write).items():
                    seen[read] = (*seen.get(read, ()), *versions)
            self.pending.pop()
            if seen:
                version = version.visible_form(seen)
        self.now[name] = version
        return version

    def _of_view(self, write: Write) -> Seen:
        """The sources of a view here: the current holders of its names, and earlier ones that were dropped since."""
        then = self.made_of.get(id(write)) or {}
        seen: Seen = {}
        for name in write.reads:
            if name not in self.tracked:
                continue
            before = then.get(name) or ()
            moved = tuple([item for item in before if item.name != name]) if self.follows else ()
            if moved:
                seen[name] = moved
                continue
            now = None if name == write.target or name in self.pending else self._now(name)
            if now is None:
                seen[name] = before
            else:
                seen[name] = (now, *[item for item in before if item.dropped and item is not now])
        return seen

    # -- writes -------------------------------------------------------------------------------------------------------

    def act(self, draft: Draft) -> None:
        """Let one write do what it does."""
        live, target = self.live, draft.target
        if not target:
            if draft.mode == "replace":  # a bare SELECT replaces nothing
                self.kept.append(draft)
            return
        if self.tracked and (target in self.tracked or draft.mode == "rename"):
            self._forget_reads(draft)
        if draft.mode == "rename":
            self._rename(draft)
        elif draft.mode == "drop":
            self._drop(draft)
        elif draft.mode == "truncate":
            self._truncate(draft)
        elif draft.mode == "replace" or target not in live or _makes_anew(draft, live[target]):
            before = live.get(target)
            whole = draft.mode == "replace" or draft.write.defines
            left: list[Draft] = []
            if before is not None:
                left = kept_by(draft, before.drafts)
                self.ended += before.drafts
            self._begin(RelationVersion(target, [*left, draft], whole=whole), draft)
        else:
            live[target].add(draft)

    def _forget_reads(self, draft: Draft) -> None:
        """Forget which versions are read here, as one of them changes."""
        self.now = {}
        if draft.statement.variant and draft.mode not in ("drop", "truncate", "rename"):
            other = self._on(draft.target, draft.statement.parsed.line)
            if other is not None and other is not self.live.get(draft.target):
                other.add(draft)  # it is an alternative to what stood there

    def _truncate(self, draft: Draft) -> None:
        before = self.live.get(draft.target)
        left = [] if before is None else [d for d in before.drafts if d.write.defines]
        if before is not None and before.is_read:
            left = [emptied(d) for d in left]
        if before is not None:
            self.ended += before.drafts
        self._begin(RelationVersion(draft.target, left, whole=True), draft)

    def _begin(self, version: RelationVersion, draft: Draft) -> None:
        name = version.name
        self.live[name] = version
        for gone in self.gone.pop(name, ()):
            self.dropped += gone.drafts
        if name in self.tracked:
            self.begun.setdefault(name, []).append((draft.statement.parsed.line, version))

    def _drop(self, draft: Draft) -> None:
        gone = self.live.pop(draft.target, None)
        if gone is not None and gone.drafts:
            gone.dropped = True
            if gone.latest is not None:
                gone.latest.dropped = True
            self.gone.setdefault(draft.target, []).append(gone)
        else:
            self.kept.append(draft)

    def _rename(self, draft: Draft) -> None:
        old, new = draft.write.target, draft.write.renamed_to or ""
        swaps = draft.write.kind == "swap"
        moved = self.live.pop(old, None)
        displaced = self.live.pop(new, None) if swaps else None
        if moved is not None and moved.drafts:
            moved.rename(new)
            self._begin(moved, draft)
        else:
            self.kept.append(draft)
        if displaced is not None and displaced.drafts:
            displaced.rename(old)
            self._begin(displaced, draft)
        elif swaps:
            self.kept.append(draft._replace(write=_reversed_rename(draft.write), target=old, target_kind="table"))

    def end(self, session: str, numbers: dict[str, int]) -> list[Draft]:
        """All that is left.

        Args:
            session: The session of the script.
            numbers: How many versions the script has kept so far, by relation.
        """
        while self.branches:
            self._leave()
        # What a branch drops may be there all the same.
        kept = [d for d in self.kept if d.mode != "drop" or not d.statement.parsed.branch or d.target not in self.live]
        for version in self.live.values():
            kept += added(version.drafts)
        standing = {d.mark for version in self.live.values() for d in version.drafts} if self.tracked else set()
        self._keep_gone(kept, standing)
        if not self.tracked:
            return kept
        self.now = {}
        views: dict[int, Seen] = {}
        for draft in kept:
            if is_view(draft.write):
                self.pending = [draft.target]
                views[id(draft.write)] = self._of_view(draft.write)
        return KeptVersions(standing, self.bindings, self.made_of, views).keep(kept, session_part(session), numbers)

    def names_of_ended(self, kept: list[Draft]) -> list[Draft]:
        """What was emptied, replaced or dropped and is not kept, for the sake of the columns that it names.

        Args:
            kept: What the script leaves.
        """
        gone = [d for versions in self.gone.values() for version in versions for d in version.drafts] + self.dropped
        if not gone and not self.ended:
            return []
        of_standing = len(self.ended)
        stands = {id(draft.write) for draft in kept}
        found: list[Draft] = []
        for number, draft in enumerate((*self.ended, *gone)):
            if id(draft.write) in stands:
                continue
            stands.add(id(draft.write))
            if number < of_standing and draft.target in self.live:
                found.append(draft._replace(mode="delete", ended=True))
            else:  # the relation is no more: the statement stands for itself
                found.append(draft._replace(target="", target_kind="query", mode="replace", ended=True))
        return found

    def _keep_gone(self, kept: list[Draft], standing: set[tuple[int, str, str]]) -> None:
        """Keep what is dropped at the end though others read it: as temporary."""
        gone = [d for versions in self.gone.values() for version in versions for d in version.drafts]
        stands = {draft.key for draft in kept} if gone else set()
        for draft in gone:
            if draft.target not in self.read_names or draft.target_kind not in ("table", "view", "temporary"):
                continue
            if draft.key not in stands:  # in another branch it was not dropped
                stands.add(draft.key)
                standing.add(draft.mark)
                kept.append(draft._replace(target_kind="temporary"))


def _index(draft: Draft) -> int:
    return draft.statement.index


def _line(item: tuple[int, RelationVersion]) -> int:
    return item[0]


def _makes_anew(draft: Draft, before: RelationVersion) -> bool:
    """Return whether a declaration ends the version that was read before: CREATE OR REPLACE TABLE without a query."""
    tree = draft.statement.tree
    return (
        before.is_read
        and draft.mode == "declare"
        and draft.write.defines
        and isinstance(tree, nodes.Create)
        and bool(tree.args.get("replace"))
    )


def _reversed_rename(write: Write) -> Write:
    """A rename in the other direction: the second half of a swap."""
    return Write(write.renamed_to or "", write.kind, "rename", renamed_to=write.target, defines=False)


def _copy(live: _Live) -> _Live:
    return {target: version.fork() for target, version in live.items()}


def _union(ways: list[_Live]) -> _Live:
    """Return the state after any of several ways, in order of text."""
    found: dict[str, list[RelationVersion]] = {}
    for live in ways:
        for target, version in live.items():
            found.setdefault(target, []).append(version)
    return {target: _united(versions) for target, versions in found.items()}


def _united(versions: list[RelationVersion]) -> RelationVersion:
    drafts: dict[tuple[int, str], Draft] = {}
    for version in versions:
        for draft in version.drafts:
            drafts.setdefault(draft.key, draft)
    last = versions[-1]
    if len(last.drafts) == len(drafts):
        united = last
    else:
        whole = all([version.whole for version in versions])  # noqa: C419
        united = RelationVersion(last.name, sorted(drafts.values(), key=lambda d: d.statement.index), whole=whole)
    united.is_read = any([version.is_read for version in versions])  # noqa: C419
    return united
