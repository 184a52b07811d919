"""Changes, verdicts, and the effect of each kind of edge.

    logic       what value flow reaches ``changes``, what only row sets reach is ``rows``
    drop        every output of a statement that names the column ``breaks``, and so does whatever reads those; a column
                reached only through ``*`` breaks alone
    rename      the first statement to name the column ``breaks``, beyond it ``passes``: the new name is taken along.
                A ``*`` hands the new name on by itself, so the column behind it is as good as renamed: it breaks, and
                so does the first statement that names *it*
                A NATURAL JOIN no longer compares the column: the ``rows`` are others
                Where a ``*`` hands columns on by position, a drop breaks the statement and a new name passes; see
                ``govtool.query.changes.positions``
    retype      ``breaks`` only where provably incompatible, else ``changes``

Through an opaque step everything is ``unknown``; where a name may be gone, so are all outputs of a statement that names
it. A struct that loses, renames or retypes a field ``changes``.
The worst verdict wins, in the order of ``ChangeVerdict``. See docs/primer.md, "Verdicts".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from govtool.errors import UsageError
from govtool.graph.codes import KIND_MASK, STAR_BIT, TAGS
from govtool.graph.walks.rules import CHECK, STATEMENT, Rules, SourceRelation
from govtool.model.kinds import CONTRIBUTED, EdgeKind

CHANGES = ("logic", "drop", "rename", "retype")
SEMANTICS = ("precise", "lineagex")


class ChangeVerdict(IntEnum):
    """The verdicts of a change on columns, the worst first."""

    BREAKS = 0
    UNKNOWN = 1
    CHANGES = 2
    ROWS = 3
    PASSES = 4

    @property
    def label(self) -> str:
        """The name as it is written in answers: ``breaks``."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the subject."""

    kind: str = "logic"
    """One of ``CHANGES``."""
    to: str | None = None
    """The new name or type."""

    @property
    def text(self) -> str:
        """As it is written on the command line: ``rename:mail``."""
        return self.kind if self.to is None else f"{self.kind}:{self.to}"

    @classmethod
    def parse(cls, text: str) -> Change:
        """Read ``logic``, ``drop``, ``rename:NEW`` or ``retype:TYPE``.

        Raises:
            UsageError: ``usage.change``.
        """
        kind, colon, to = text.partition(":")
        kind, to = kind.strip().lower(), to.strip()
        needs = kind in ("rename", "retype")
        if kind not in CHANGES or needs != bool(to) or (colon and not needs):
            raise _no_change(text[:80], kind, needs=needs)
        return cls(kind, to or None)


OF_WHATIF = ("delete", "mask")
"""Changes that only ``whatif`` knows."""


def require_none(given: Mapping[str, object], change: str) -> None:
    """Refuse options of a walk for a change that is answered without one.

    Raises:
        UsageError: ``usage.arguments``.
    """
    for name in (name for name, value in given.items() if value):
        raise UsageError(f"{name} is not for the change {change}", code="usage.arguments", hint=f"leave out {name}")


def _no_change(text: str, kind: str, *, needs: bool) -> UsageError:
    """The error about a text that is no change, with what to write instead."""
    if needs:
        what = "type" if kind == "retype" else "name"
        return UsageError(f"{text!r} lacks the new {what}", code="usage.change", hint=f"--change {kind}:NEW")
    if kind in OF_WHATIF:
        return UsageError(
            f"{text!r} is not a change of one column", code="usage.change", hint=f"govtool whatif {kind} SELECTOR"
        )
    if kind in CHANGES:
        return UsageError(f"{kind} has no new name or type: {text!r}", code="usage.change", hint=f"--change {kind}")
    return UsageError(
        f"{text!r} is not a change",
        code="usage.change",
        nearest=("logic", "drop", "rename:NEW", "retype:TYPE", "delete", "mask"),
        hint="--change drop",
    )


class ReachState(IntEnum):
    """In which way a node is reached. The first five are verdicts, the others what is still unfolding."""

    BREAKS = 0
    UNKNOWN = 1
    CHANGES = 2
    ROWS = 3
    PASSES = 4
    RENAMED = 5
    """Goes by another name; as a verdict it breaks."""
    RETYPED = 6
    """Has the new type; as a verdict it changes."""


VERDICT_OF = (
    ChangeVerdict.BREAKS, ChangeVerdict.UNKNOWN, ChangeVerdict.CHANGES, ChangeVerdict.ROWS,
    ChangeVerdict.PASSES, ChangeVerdict.BREAKS, ChangeVerdict.CHANGES,
)  # fmt: skip
"""The verdict of each state."""

_Goal = tuple[ReachState, bool] | None
"""The target's state, and whether it holds for every output of the statement."""


def seed_states(change: Change) -> tuple[ReachState, ReachState]:
    """The states of a subject's columns and of its row set."""
    return {
        "logic": (ReachState.CHANGES, ReachState.ROWS),
        "drop": (ReachState.BREAKS, ReachState.BREAKS),
        "rename": (ReachState.RENAMED, ReachState.RENAMED),
        "retype": (ReachState.RETYPED, ReachState.RETYPED),
    }[change.kind]


def rules(
    change: Change,
    *,
    kinds: Iterable[EdgeKind] | None = None,
    semantics: str = "precise",
    check: Callable[[int], int] | None = None,
    moved: Callable[[int], Sequence[tuple[int, int]]] | None = None,
) -> Rules:
    """The rules of a walk for a change.

    Args:
        change: What happens to the subject.
        kinds: Follow only edges of these kinds.
        semantics: ``precise`` ignores ``union_all``, ``lineagex`` counts it.
        check: The action for an edge that the changed column's values take: for ``retype`` any, for ``drop`` and
            ``rename`` one through a ``*``.
        moved: The other outputs that an edge through a ``*`` reaches, with their states; see ``Rules.moved``.
    """
    follow = followed(kinds, semantics)
    return Rules(
        actions=_actions(change.kind, follow),
        rank=tuple(int(v) for v in VERDICT_OF),
        rows_state=int(ReachState.PASSES if change.kind == "rename" else ReachState.ROWS),
        rows_only_state=int(ReachState.ROWS),
        check=check,
        others_state=int(ReachState.UNKNOWN),
        moved=moved,
        references=_reference_actions(change.kind) if kinds is None else (),
        by_name=change.kind == "rename",
        inherited=_inherited(change.kind) if kinds is None else (),
    )


@lru_cache(maxsize=4)
def _reference_actions(change: str) -> tuple[tuple[int, ...], ...]:
    """The effect on statements that name a column and hand nothing of it on: they fail where the name is gone."""
    if change == "logic":
        return ()
    relations = (SourceRelation.SELF, SourceRelation.PART, SourceRelation.WHOLE)
    return tuple(
        (*(_reference_action(change, state, relation) for relation in relations), _position_action(change, state))
        for state in ReachState
    )


def _inherited(change: str) -> tuple[int, ...]:
    """The states of the columns of tables that inherit a column: they are dropped and renamed with it."""
    if change == "logic":
        return ()
    shared = {s: s for s in (ReachState.BREAKS, ReachState.RENAMED)}
    if change == "retype":
        shared = dict.fromkeys((ReachState.RETYPED, ReachState.CHANGES), ReachState.CHANGES)
    return tuple(shared.get(state, -1) for state in ReachState)


def _position_action(change: str, state: ReachState) -> int:
    """The effect where columns count by their position, in an INSERT that lists none, or behind a list of names.

    The statement fails where one is gone, may where one is of another type, and minds no name.
    """
    if change == "retype" and state is ReachState.RETYPED:
        return _reference_action(change, state, SourceRelation.SELF)
    goes = change == "drop" and state in (ReachState.BREAKS, ReachState.UNKNOWN)
    return (1 + state) | STATEMENT if goes else 0


def _reference_action(change: str, state: ReachState, relation: SourceRelation) -> int:
    """That of a filter on the column, as far as the name or the type is concerned: values are not."""
    followed_states = {
        "drop": (ReachState.BREAKS, ReachState.UNKNOWN),
        "rename": (ReachState.RENAMED, ReachState.UNKNOWN),
        "retype": (ReachState.RETYPED,),
    }
    if state not in followed_states[change]:
        return 0
    found = goal(change, state, relation, EdgeKind.FILTER, star=False)
    return 0 if found is None else (1 + found[0]) | (STATEMENT if found[1] else 0)


class SourceState(IntEnum):
    """In which way a node reaches the subject: that of a change of ``logic``, turned round."""

    VALUE = 0
    """Its values flow into the subject, or steer its values."""
    ANY_COLUMN = 1
    """Row set: any of its columns may reach the subject."""
    UNKNOWN = 2
    """By way of what is not known."""
    ROWS = 3
    """It decides over the rows of the subject. A row set does so alone, whatever the values of its columns."""


def upstream_rules(*, kinds: Iterable[EdgeKind] | None = None, semantics: str = "precise") -> Rules:
    """The rules of a walk against the edges: no verdicts, but what flows as a value comes first, and rows come last."""
    follow = followed(kinds, semantics)
    return Rules(actions=_source_actions(follow), rank=(0, 1, 1, 2), any_column=int(SourceState.ANY_COLUMN))


@lru_cache(maxsize=8)
def _source_actions(follow: frozenset[int]) -> tuple[tuple[bytes, ...], ...]:
    return tuple(
        tuple(bytes(_source_action(state, relation, tag, follow) for tag in range(TAGS)) for relation in SourceRelation)
        for state in SourceState
    )


def _source_action(state: SourceState, relation: SourceRelation, tag: int, follow: frozenset[int]) -> int:
    """The action for an edge into a node; the relation is ``ANY_COLUMN`` for one that leaves a row set."""
    if tag & KIND_MASK not in follow:
        return 0
    kind = EdgeKind(tag & KIND_MASK)
    if relation is SourceRelation.ANY_COLUMN and kind is not EdgeKind.READ:
        return 1 + SourceState.ANY_COLUMN
    if kind is EdgeKind.OPAQUE or state is SourceState.ANY_COLUMN:
        return 1 + SourceState.UNKNOWN
    if state is SourceState.VALUE and kind not in CONTRIBUTED:
        return 1 + SourceState.ROWS
    return 1 + state


def followed(kinds: Iterable[EdgeKind] | None, semantics: str) -> frozenset[int]:
    """The kinds that a walk follows.

    Raises:
        UsageError: Unknown semantics.
    """
    if semantics not in SEMANTICS:
        raise UsageError(f"{semantics[:40]!r} is not a semantics", code="usage.semantics", nearest=SEMANTICS)
    chosen = {int(k) for k in (EdgeKind if kinds is None else kinds)}
    if semantics == "precise":
        chosen.discard(int(EdgeKind.UNION_ALL))
    return frozenset(chosen)


@lru_cache(maxsize=32)
def _actions(change: str, follow: frozenset[int]) -> tuple[tuple[bytes, ...], ...]:
    return tuple(
        tuple(
            bytes(_action(change, state, relation, tag, follow) for tag in range(TAGS)) for relation in SourceRelation
        )
        for state in ReachState
    )


def _action(change: str, state: ReachState, relation: SourceRelation, tag: int, follow: frozenset[int]) -> int:
    if tag & KIND_MASK not in follow:
        return 0
    kind = EdgeKind(tag & KIND_MASK)
    if state is ReachState.RETYPED and relation is SourceRelation.SELF and kind in CONTRIBUTED:
        return CHECK | (1 + ReachState.CHANGES)
    found = goal(change, state, relation, kind, star=bool(tag & STAR_BIT))
    if found is None:
        return 0
    by_star = _by_star(change, state, relation, kind, tag)
    return (1 + found[0]) | (STATEMENT if found[1] else 0) | (CHECK if by_star else 0)


def _by_star(change: str, state: ReachState, relation: SourceRelation, kind: EdgeKind, tag: int) -> bool:
    """Return whether a column that is gone or renamed is handed on by a ``*``, by name or by position."""
    unfolding = {"drop": ReachState.BREAKS, "rename": ReachState.RENAMED}.get(change)
    if state is not unfolding or relation is not SourceRelation.SELF or not tag & STAR_BIT:
        return False
    return kind in CONTRIBUTED or (change == "rename" and kind is EdgeKind.JOIN)


def goal(change: str, state: ReachState, relation: SourceRelation, kind: EdgeKind, *, star: bool) -> _Goal:
    """In which state an edge's target is reached; a statement that breaks breaks in all its outputs."""
    if kind is EdgeKind.OPAQUE:
        return ReachState.UNKNOWN, False
    if relation is SourceRelation.ANY_COLUMN:
        return None if kind is EdgeKind.READ else (ReachState.UNKNOWN, False)
    if state is ReachState.UNKNOWN:
        # The column may be gone: then the statement that names it fails in all its outputs.
        named = relation in (SourceRelation.SELF, SourceRelation.PART) and not star
        return state, named and change in ("drop", "rename")
    if state in (ReachState.ROWS, ReachState.PASSES):
        return state, False
    if relation is SourceRelation.ROWS:
        return _from_rows(change, state, kind)
    flows = kind in CONTRIBUTED
    unjoined = star and kind is EdgeKind.JOIN  # NATURAL: without the name the two are joined by less
    rows = ReachState.PASSES if change == "rename" and not unjoined else ReachState.ROWS
    if state is ReachState.BREAKS and change == "rename":
        return ReachState.PASSES, False
    if state in (ReachState.BREAKS, ReachState.RENAMED) and relation is not SourceRelation.WHOLE:
        if not star:
            return ReachState.BREAKS, True
        return (state if flows else rows), False
    return (ReachState.CHANGES if flows else rows), False


def _from_rows(change: str, state: ReachState, kind: EdgeKind) -> _Goal:
    """Edges out of a row set that is gone, renamed, or changed in a column that nobody can name."""
    if state is ReachState.RENAMED:
        return ReachState.BREAKS, True
    if state is ReachState.BREAKS:
        return (ReachState.PASSES, False) if change == "rename" else (ReachState.BREAKS, True)
    return ReachState.UNKNOWN, False
