"""Changes, verdicts, and what each kind of edge does to them.

    logic       what value flow reaches ``changes``, what only row sets reach is ``rows``
    drop        every output of a statement that names the column ``breaks``, and so does whatever reads those; a column
                reached only through ``*`` breaks alone
    rename      the first statement to name the column ``breaks``, beyond it ``passes``: the new name is taken along.
                A ``*`` hands the new name on by itself, so the column behind it is as good as renamed: it breaks, and
                so does the first statement that names *it*
                Where a ``*`` hands columns on by position, a drop breaks the statement and a new name passes; see
                ``govtool.query.positions``
    retype      ``breaks`` only where provably incompatible, else ``changes``

Through an opaque step everything is ``unknown``. A struct that loses, renames or retypes a field ``changes``.
The worst verdict wins, in the order of ``Verdict``. After docs/architecture.md, "Command line".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from govtool.errors import UsageError
from govtool.graph.codes import KIND_MASK, STAR_BIT, TAGS
from govtool.graph.rules import CHECK, STATEMENT, Relation, Rules
from govtool.model.kinds import CONTRIBUTED, EdgeKind

CHANGES = ("logic", "drop", "rename", "retype")
SEMANTICS = ("precise", "lineagex")


class Verdict(IntEnum):
    """What a change does to a column, the worst first."""

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
    """What is to happen to the subject."""

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
            raise UsageError(
                f"{text[:80]!r} is not a change",
                code="usage.change",
                nearest=("logic", "drop", "rename:NEW", "retype:TYPE"),
                hint="--change drop",
            )
        return cls(kind, to or None)


class State(IntEnum):
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
    Verdict.BREAKS, Verdict.UNKNOWN, Verdict.CHANGES, Verdict.ROWS, Verdict.PASSES, Verdict.BREAKS, Verdict.CHANGES
)  # fmt: skip
"""The verdict of each state."""

_Goal = tuple[State, bool] | None
"""The target's state, and whether it holds for every output of the statement."""


def seed_states(change: Change) -> tuple[State, State]:
    """The states of a subject's columns and of its row set."""
    return {
        "logic": (State.CHANGES, State.ROWS),
        "drop": (State.BREAKS, State.BREAKS),
        "rename": (State.RENAMED, State.RENAMED),
        "retype": (State.RETYPED, State.RETYPED),
    }[change.kind]


def rules(
    change: Change,
    *,
    kinds: Iterable[EdgeKind] | None = None,
    semantics: str = "precise",
    check: Callable[[int], int] | None = None,
) -> Rules:
    """The rules of a walk for a change.

    Args:
        change: What happens to the subject.
        kinds: Follow only edges of these kinds.
        semantics: ``precise`` ignores ``union_all``, ``lineagex`` counts it.
        check: The action for an edge that the changed column's values take: for ``retype`` any, for ``drop`` and
            ``rename`` one through a ``*``.
    """
    follow = followed(kinds, semantics)
    return Rules(
        actions=_actions(change.kind, follow),
        rank=tuple(int(v) for v in VERDICT_OF),
        rows_state=int(State.PASSES if change.kind == "rename" else State.ROWS),
        check=check,
        others_state=int(State.UNKNOWN),
    )


def upstream_rules(*, kinds: Iterable[EdgeKind] | None = None, semantics: str = "precise") -> Rules:
    """The rules of a walk against the edges: no verdicts, only which edges to follow."""
    follow = followed(kinds, semantics)
    table = bytes(tag & KIND_MASK in follow for tag in range(TAGS))
    return Rules(actions=((table,),), rank=(0, 0))


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
        tuple(bytes(_action(change, state, relation, tag, follow) for tag in range(TAGS)) for relation in Relation)
        for state in State
    )


def _action(change: str, state: State, relation: Relation, tag: int, follow: frozenset[int]) -> int:
    if tag & KIND_MASK not in follow:
        return 0
    kind = EdgeKind(tag & KIND_MASK)
    if state is State.RETYPED and relation is Relation.SELF and kind in CONTRIBUTED:
        return CHECK | (1 + State.CHANGES)
    found = goal(change, state, relation, kind, star=bool(tag & STAR_BIT))
    if found is None:
        return 0
    asked = _by_star(change, state, relation, kind, tag)
    return (1 + found[0]) | (STATEMENT if found[1] else 0) | (CHECK if asked else 0)


def _by_star(change: str, state: State, relation: Relation, kind: EdgeKind, tag: int) -> bool:
    """Whether a column that is gone or renamed is handed on by a ``*``, by name or by position."""
    unfolding = {"drop": State.BREAKS, "rename": State.RENAMED}.get(change)
    return state is unfolding and relation is Relation.SELF and kind in CONTRIBUTED and bool(tag & STAR_BIT)


def goal(change: str, state: State, relation: Relation, kind: EdgeKind, *, star: bool) -> _Goal:
    """In which state an edge's target is reached; a statement that breaks breaks in all its outputs."""
    if kind is EdgeKind.OPAQUE:
        return State.UNKNOWN, False
    if relation is Relation.ANY_COLUMN:
        return None if kind is EdgeKind.READ else (State.UNKNOWN, False)
    if state in (State.UNKNOWN, State.ROWS, State.PASSES):
        return state, False
    if relation is Relation.ROWS:
        return _from_rows(change, state, kind)
    flows = kind in CONTRIBUTED
    rows = State.PASSES if change == "rename" else State.ROWS
    if state is State.BREAKS and change == "rename":
        return State.PASSES, False
    if state in (State.BREAKS, State.RENAMED) and relation is not Relation.WHOLE:
        if not star:
            return State.BREAKS, True
        return (state if flows else rows), False
    return (State.CHANGES if flows else rows), False


def _from_rows(change: str, state: State, kind: EdgeKind) -> _Goal:
    """Edges out of a row set that is gone, renamed, or changed in a column that nobody can name."""
    if state is State.RENAMED:
        return State.BREAKS, True
    if state is State.BREAKS:
        return (State.PASSES, False) if change == "rename" else (State.BREAKS, True)
    return State.UNKNOWN, False
