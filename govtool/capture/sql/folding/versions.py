"""The versions of a relation in the course of one script.

A version lasts from one reset (a definition, TRUNCATE, DROP, RENAME) to the next; INSERTs add to it. A statement reads
the version that stands where it stands. A view holds no rows: who reads it reads what it is made of at that moment,
so that it has a version of its own for each of these.

A version that is read and does not stand at the end is kept as a temporary dataset, ``temp.<session>."<name>@<n>"``;
one that stands is the relation itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.writes import Write
from govtool.names import fold, join_name

RESETS = frozenset({"replace", "truncate", "drop", "rename"})
_VIEWS = frozenset({"create_view", "create_materialized_view"})
_HISTORYLESS = "temp."


class Draft(NamedTuple):
    """A write with the statement that made it, and what the fold of its script made of it."""

    write: Write
    statement: StatementState
    target: str
    target_kind: str
    mode: str
    """That of the write; ``append`` for a definition that does not end an earlier one, as it is in another branch."""
    bound: Mapping[str, tuple[str, ...]] | None = None
    """Relations of the names that it reads, where they are not the final ones."""
    ended: bool = False
    """True if nothing is left of what it wrote: it counts for the columns that it names alone, without which the script
    fails."""

    @property
    def key(self) -> tuple[int, str]:
        """Equal for what is the same after different branches."""
        return id(self.write), self.target

    @property
    def mark(self) -> tuple[int, str, str]:
        """Equal for what means the same."""
        return id(self.write), self.target, self.mode


class RelationVersion:
    """A relation from one reset to the next."""

    def __init__(self, name: str, drafts: list[Draft], *, whole: bool) -> None:
        self.name = name
        self.drafts: list[Draft] = []
        self.views: list[Write] = []
        """Those of its definitions that hold no rows."""
        self.whole = whole or name.startswith(_HISTORYLESS)
        """True if nothing is in it that was there before the script."""
        self.is_read = False
        self.dropped = False
        self.seen: Seen | None = None
        """Of a view, at a moment: the versions of what it reads."""
        self.latest: RelationVersion | None = None
        """Of a view: it, as last read."""
        for draft in drafts:
            self.add(draft)

    def add(self, draft: Draft) -> None:
        """Add an INSERT or another definition."""
        self.drafts.append(draft)
        if is_view(draft.write):
            self.views.append(draft.write)

    def fork(self) -> RelationVersion:
        """The same at the begin of another way."""
        found = RelationVersion(self.name, self.drafts, whole=self.whole)
        found.is_read = self.is_read
        return found

    def rename(self, name: str) -> None:
        """Give it, and what is in it, another name."""
        self.name = name
        self.drafts[:] = [draft._replace(target=name) for draft in self.drafts]
        if self.latest is not None:
            self.latest.name = name

    def visible_form(self, seen: Seen) -> RelationVersion:
        """The view with the versions of what it reads."""
        last = self.latest
        if last is None or last.seen != seen:
            last = self.latest = RelationVersion(self.name, [], whole=True)
            last.drafts = self.drafts
            last.views = self.views
            last.seen = seen
        return last

    def mark_read(self) -> None:
        """Note that a statement reads it."""
        todo = [self]
        while todo:
            version = todo.pop()
            if not version.is_read:
                version.is_read = True
                todo += [item for items in (version.seen or {}).values() for item in items]


Seen = dict[str, tuple[RelationVersion, ...]]
"""Versions by the name under which they are read; none where the name means what was there before the script."""


def is_view(write: Write) -> bool:
    """Return whether the write defines what is worked out each time it is read."""
    return write.kind in _VIEWS


def redefined(script: ScriptState) -> set[str]:
    """The relations of a script that have more than one version, and the views over them."""
    found: set[str] = set()
    if len(script.statements) < 2:
        return found
    made: set[str] = set()
    for statement in script.statements:
        for write in statement.writes:
            target, mode = write.target, write.mode
            if not target:
                continue
            if target in made:
                if mode in RESETS or write.kind == "create_table":
                    found.add(target)
            elif mode not in ("drop", "truncate", "rename"):
                made.add(target)
            if write.renamed_to:
                if write.renamed_to in made:
                    found.add(write.renamed_to)
                made.add(write.renamed_to)
    if found:
        _with_views(found, script)
    return found


def _with_views(found: set[str], script: ScriptState) -> None:
    over: dict[str, list[str]] = {}
    for statement in script.statements:
        for write in statement.writes:
            if is_view(write):
                for name in write.reads:
                    over.setdefault(name, []).append(write.target)
    todo = list(found) if over else []
    while todo:
        for view in over.get(todo.pop(), ()):
            if view not in found:
                found.add(view)
                todo.append(view)


def emptied(draft: Draft) -> Draft:
    """A definition whose rows are gone: its columns stay."""
    write = draft.write
    if draft.mode != "replace" or is_view(write) or write.output.open:
        return draft
    output = QueryOutput()
    for name in write.output.names:
        output.add(name, ())
    output.types = dict(write.output.types)
    return draft._replace(write=Write(write.target, write.kind, "declare", write.target_kind, output), mode="declare")


class KeptVersions:
    """Finds which versions stay, what they are called, and what each draft reads."""

    def __init__(
        self,
        standing: set[tuple[int, str, str]],
        bindings: dict[int, Seen],
        made_of: dict[int, Seen],
        views: dict[int, Seen],
    ) -> None:
        """Begin with what stands at the end.

        Args:
            standing: The marks of its drafts.
            bindings: What statements read, by their writes.
            made_of: What views read when they were made.
            views: What the views that are left read in the end.
        """
        self._standing = standing
        self._bindings = bindings
        self._made_of = made_of
        self._views = views
        self._stands: dict[RelationVersion, bool] = {}
        self._names: dict[RelationVersion, str] = {}

    def keep(self, drafts: list[Draft], session: str, numbers: dict[str, int]) -> list[Draft]:
        """Return drafts, bound to what they read, with those of ended versions that something reads.

        Args:
            drafts: What is left.
            session: The session's part of names.
            numbers: How many versions have been kept so far, by relation.
        """
        reading = [self._views[id(d.write)] if id(d.write) in self._views else self._read_by(d, None) for d in drafts]
        kept = self._needed(reading)
        for version in kept:
            number = numbers[version.name] = numbers.get(version.name, 0) + 1
            self._names[version] = _version_name(version.name, number, session)
        found = [self._bound(d, seen, "", "") for d, seen in zip(drafts, reading, strict=True)]
        for version in kept:
            name = self._names[version]
            for draft in version.drafts:
                moved = draft._replace(target=name, target_kind="temporary")
                found.append(self._bound(moved, self._read_by(draft, version), draft.target, name))
        return found

    def _read_by(self, draft: Draft, version: RelationVersion | None) -> Seen:
        if is_view(draft.write):
            if version is not None and version.seen is not None:
                return version.seen
            return self._made_of.get(id(draft.write)) or {}
        return self._bindings.get(id(draft.write)) or {}

    def _needed(self, reading: list[Seen]) -> list[RelationVersion]:
        """The ended versions that something reads which stays, in order of text."""
        found: dict[RelationVersion, int] = {}
        todo = list(reading)
        while todo:
            for versions in todo.pop().values():
                for version in versions:
                    if version not in found and not self._still(version):
                        found[version] = version.drafts[0].statement.index
                        todo += [self._read_by(draft, version) for draft in version.drafts]
        return sorted(found, key=lambda version: found[version])

    def _still(self, version: RelationVersion) -> bool:
        """Return whether the relation is, at the end, all of this version."""
        known = self._stands.get(version)
        if known is None:
            self._stands[version] = True  # of a circle
            known = all([draft.mark in self._standing for draft in version.drafts])  # noqa: C419
            for name, versions in (version.seen or {}).items():
                final = {item for write in version.views for item in self._views.get(id(write), {}).get(name, ())}
                known = known and all([item in final or self._still(item) for item in versions])  # noqa: C419
            self._stands[version] = known
        return known

    def _bound(self, draft: Draft, seen: Seen, old: str, new: str) -> Draft:
        """Bind a draft; ``old`` and ``new`` name the version that it is kept in."""
        bound: dict[str, tuple[str, ...]] = {}
        for name, versions in seen.items():
            bound_names: dict[str, None] = {}
            for version in versions:
                kept = self._names.get(version)
                if kept is not None:
                    bound_names[kept] = None
                if kept is None or not version.whole:
                    bound_names[version.name] = None
            found = tuple(bound_names) or (name,)
            if found != (name,):
                bound[name] = found
        if new and old not in seen:
            bound[old] = (new,)
        return draft._replace(bound=bound) if bound else draft


def _version_name(name: str, number: int, session: str) -> str:
    prefix = f"{_HISTORYLESS}{session}."
    text = name[len(prefix) :] if name.startswith(prefix) else name
    return join_name(["temp", session, fold(f"{text}@{number}", quoted=True)])


def added(drafts: list[Draft]) -> list[Draft]:
    """A definition that stands beside an earlier one of another branch adds to it: in text it would replace it."""
    if len(drafts) < 2:
        return drafts
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


def kept_by(draft: Draft, before: list[Draft]) -> list[Draft]:
    """What outlives a replacement of a dataset: its declaration, and the lineage of another variant of the template."""
    statement = draft.statement
    declared = [d for d in before if d.mode == "declare"] if not draft.write.defines else []
    variants = [d for d in before if d.statement.variant != statement.variant]
    return [*declared, *(d for d in variants if d not in declared)]
