"""Runs and derivations of datasets from PROV documents.

An entity is a fixed state of something (PROV-DM 2.1.1): a version. The dataset is what it is a version of: its
``prov:location``, the entity that it specializes, the first of its revisions, else itself. Lineage is of whole
datasets: ``wasDerivedFrom`` where it is stated, else from all that the generating activity used, which PROV allows to
be too much. Columns are not told, so the way through is opaque.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from govtool.capture.openlineage.identity import DatasetName, normalise, scheme_of
from govtool.capture.prov.document import Element, Name, ProvContent, ProvRelation
from govtool.model import ROWS, ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, Statement
from govtool.model.fact import Fact
from govtool.model.run import Run, RunInput, RunOutput, Software
from govtool.model.shortfall import Shortfall
from govtool.model.version import ContentIdentity

HOW = "prov"
NO_COLUMNS = "no-column-lineage"
_PEOPLE = frozenset({"Person", "Organization"})
_IGNORED = {
    "wasStartedBy": "which entity started an activity is not kept",
    "wasEndedBy": "which entity ended an activity is not kept",
}


@dataclass(frozen=True, slots=True)
class ProvFindings:
    """The findings of documents."""

    derivations: tuple[Derivation, ...]
    runs: tuple[Run, ...]
    facts: tuple[Fact, ...]
    diagnostics: tuple[Diagnostic, ...]
    understood: int = 0
    """Versions, aliases and collections of which all is told that is asked."""
    partial: int = 0
    """Those that were made of others, in a way that is not told."""
    shortfalls: tuple[Shortfall, ...] = ()
    """One for each of these."""


def derive(document: ProvContent, source: str) -> ProvFindings:
    """The derivations, runs and facts of what was read, sorted."""
    return _Deriver(document, source).derived()


class _Deriver:
    def __init__(self, document: ProvContent, source: str) -> None:
        self.document, self.source = document, source
        self.notes = list(document.notes)
        self.by_kind: dict[str, list[ProvRelation]] = {}
        for relation in dict.fromkeys(map(_frozen, document.relations)):
            kind, ends, time, types = relation
            self.by_kind.setdefault(kind, []).append(ProvRelation(kind, dict(ends), time, types))
        self.general = self._generals()
        self.names: dict[str, DatasetName] = {}

    def derived(self) -> ProvFindings:
        runs = self._runs()
        derivations = [*self._made(), *self._aliases(), *self._members()]
        self._silent()
        unclear = tuple(_shortfall(d) for d in derivations if d.status == "partial")
        partial = len(unclear)
        declared = [self._declared(identity, name) for identity, name in sorted(self.names.items())]
        made = sorted(derivations, key=lambda d: (d.statement.file, d.target, d.statement.kind, repr(d.edges)))
        notes = tuple(dict.fromkeys([*self.notes, *(note for run in runs for note in run.breaks)]))
        return ProvFindings(
            (*made, *declared), tuple(runs), self._facts(), notes, len(made) - partial, partial, unclear
        )

    # Entities to datasets.

    def _generals(self) -> dict[Name, Name]:
        """Each entity's more general one: by specialization, mention, or as a revision of an earlier one."""
        found: dict[Name, Name] = {}
        for kind in ("specializationOf", "mentionOf"):
            for relation in self.by_kind.get(kind, ()):
                one, other = relation.ends.get("specificEntity"), relation.ends.get("generalEntity")
                if one is not None and other is not None and one != other:
                    found.setdefault(one, other)
        for relation in self.by_kind.get("wasDerivedFrom", ()):
            one, other = relation.ends.get("generatedEntity"), relation.ends.get("usedEntity")
            if "Revision" in relation.types and one is not None and other is not None and one != other:
                found.setdefault(one, other)
        return found

    def dataset(self, entity: Name) -> str:
        """The dataset that an entity is a version of."""
        seen = {entity}
        while True:
            known = self.document.entities.get(entity)
            if known is not None and known.location:
                break
            above = self.general.get(entity)
            if above is None or above in seen:
                break
            seen.add(above)
            entity = above
        name = _placed(known.location) if known is not None and known.location else _named(entity)
        self.names[name.id] = name
        return name.id

    # Activities to runs.

    def _runs(self) -> list[Run]:
        used = _by_end(self.by_kind.get("used", ()), "activity")
        made = _by_end(self.by_kind.get("wasGeneratedBy", ()), "activity")
        ended = _by_end(self.by_kind.get("wasInvalidatedBy", ()), "activity")
        agents = _by_end(self.by_kind.get("wasAssociatedWith", ()), "activity")
        informed = _by_end(self.by_kind.get("wasInformedBy", ()), "informed")
        names = {*self.document.activities, *used, *made, *ended}
        runs = []
        for name in sorted(names):
            activity = self.document.activities.get(name, Element(name))
            times = [r.time for r in (*used.get(name, ()), *made.get(name, ())) if r.time]
            associations = agents.get(name, ())
            inputs = {r.ends["entity"] for r in used.get(name, ()) if "entity" in r.ends}
            outputs = {r.ends["entity"] for r in made.get(name, ()) if "entity" in r.ends}
            gone = {r.ends["entity"] for r in ended.get(name, ()) if "entity" in r.ends}
            # PROV need not state times of an activity: those of what it used and made bound it.
            finished = activity.ended or max(times, default=None)
            runs.append(
                Run(
                    id=name.uri,
                    job=self._job(activity, associations),
                    status="complete" if outputs or activity.ended else "unknown",
                    how=HOW,
                    source=self.source,
                    user=", ".join(self._users(associations)),
                    started=activity.started or min(times, default=None),
                    ended=finished,
                    software=tuple(sorted(set(self._software(associations)))),
                    inputs=tuple(sorted((self._input(e) for e in inputs), key=lambda read: read.dataset)),
                    outputs=tuple(
                        sorted(
                            [
                                *(self._output(e, "overwrite") for e in outputs),
                                *(self._output(e, "drop") for e in gone),
                            ],
                            key=lambda written: (written.dataset, written.mode),
                        )
                    ),
                    breaks=tuple(self._breaks(name, informed.get(name, ()), inputs)),
                )
            )
        return sorted(runs, key=lambda run: (run.started or "", run.id))

    def _input(self, entity: Name) -> RunInput:
        return RunInput(self.dataset(entity), identity=_identity(entity))

    def _output(self, entity: Name, mode: str) -> RunOutput:
        return RunOutput(self.dataset(entity), mode=mode, identity=_identity(entity) if mode != "drop" else None)

    def _job(self, activity: Element, associations: Iterable[ProvRelation]) -> str:
        """Return what is the same over the runs: the plan, the type, the label, else the activity itself."""
        plans = sorted(r.ends["plan"].local for r in associations if "plan" in r.ends)
        return next((name for name in (*plans, *activity.types, activity.label) if name), activity.name.local)

    def _agents(self, associations: Iterable[ProvRelation]) -> list[Element]:
        names = [r.ends["agent"] for r in associations if "agent" in r.ends]
        for name in names:  # on whose behalf they acted, and so on
            for relation in self.by_kind.get("actedOnBehalfOf", ()):
                other = relation.ends.get("responsible")
                if relation.ends.get("delegate") == name and other is not None and other not in names:
                    names.append(other)
        return [self.document.agents.get(name, Element(name)) for name in dict.fromkeys(names)]

    def _users(self, associations: Iterable[ProvRelation]) -> list[str]:
        people = [a for a in self._agents(associations) if _PEOPLE & {*a.types}]
        return sorted(agent.label or agent.name.local for agent in people)

    def _software(self, associations: Iterable[ProvRelation]) -> Iterable[Software]:
        for agent in self._agents(associations):
            if not _PEOPLE & {*agent.types}:
                yield Software((agent.label or agent.name.local).lower(), agent.version or "unknown")
        for relation in associations:
            plan = relation.ends.get("plan")
            if plan is not None:
                known = self.document.entities.get(plan)
                yield Software(f"script:{plan.local}", (known.version if known else "") or plan.uri)

    def _breaks(self, name: Name, informed: Iterable[ProvRelation], inputs: set[Name]) -> Iterable[Diagnostic]:
        """Activities that informed this one through something that no document names."""
        made = _by_end(self.by_kind.get("wasGeneratedBy", ()), "activity")
        for relation in informed:
            other = relation.ends.get("informant")
            given = {r.ends.get("entity") for r in made.get(other, ())} if other is not None else set()
            if other is not None and not given & inputs:
                yield Diagnostic(
                    "break.communication",
                    "warning",
                    f"{other.uri} informed it, and no entity between them is named",
                    target=name.uri,
                )

    # Lineage.

    def _made(self) -> Iterable[Derivation]:
        """A derivation for each entity that was generated or derived."""
        stated: dict[Name, set[Name]] = {}
        for kind, target, origin in (
            ("wasDerivedFrom", "generatedEntity", "usedEntity"),
            ("wasInfluencedBy", "influencee", "influencer"),
        ):
            for relation in self.by_kind.get(kind, ()):
                one, other = relation.ends.get(target), relation.ends.get(origin)
                entities = self.document.entities
                if one is not None and other is not None and (kind == "wasDerivedFrom" or {one, other} <= {*entities}):
                    stated.setdefault(one, set()).add(other)
        used = _by_end(self.by_kind.get("used", ()), "activity")
        makers: dict[Name, ProvRelation] = {}
        for relation in self.by_kind.get("wasGeneratedBy", ()):
            if "entity" in relation.ends:
                makers.setdefault(relation.ends["entity"], relation)
        for entity in sorted({*stated, *makers}):
            generation = makers.get(entity)
            activity = generation.ends.get("activity") if generation is not None else None
            origins = stated.get(entity)
            # Without a stated derivation, whatever the activity used may be in what it made.
            if origins is None:
                origins = (
                    {r.ends["entity"] for r in used.get(activity, ()) if "entity" in r.ends} if activity else set()
                )
            target = self.dataset(entity)
            reads = sorted({self.dataset(origin) for origin in origins} - {target})
            run = self.document.activities.get(activity, Element(activity)) if activity is not None else None
            yield self._derivation(entity, target, reads, run, generation.time if generation is not None else None)

    def _derivation(
        self, entity: Name, target: str, reads: list[str], run: Element | None, time: str | None
    ) -> Derivation:
        seen = time or (run.ended or run.started if run is not None else None)
        statement = Statement(
            fingerprint=_digest("generation", entity.uri),
            kind="generation",
            dialect="",
            file=run.name.uri if run is not None else entity.uri,
            source=self.source,
            how=HOW,
            run=run.name.uri if run is not None else None,
            first_seen=seen,
            last_seen=seen,
        )
        return Derivation(
            target,
            self._kind(target),
            "append",
            statement,
            columns_complete=False,
            edges=tuple(_whole(reads)),
            status="partial" if reads else "understood",
            namespace=self.names[target].namespace,
        )

    def _aliases(self) -> Iterable[Derivation]:
        """Two entities that are states of one thing under different names."""
        for relation in self.by_kind.get("alternateOf", ()):
            one, other = relation.ends.get("alternate1"), relation.ends.get("alternate2")
            if one is None or other is None or self.dataset(one) == self.dataset(other):
                continue
            for target, origin in ((one, other), (other, one)):
                yield self._about("alias", self.dataset(target), [self.dataset(origin)])

    def _members(self) -> Iterable[Derivation]:
        """A collection consists of its members."""
        members: dict[str, set[str]] = {}
        for relation in self.by_kind.get("hadMember", ()):
            one, other = relation.ends.get("collection"), relation.ends.get("entity")
            if one is not None and other is not None:
                members.setdefault(self.dataset(one), set()).add(self.dataset(other))
        for collection in sorted(members):
            yield self._about("collection", collection, sorted(members[collection] - {collection}))

    def _about(self, kind: str, target: str, reads: list[str]) -> Derivation:
        digest = _digest(kind, target, *reads)
        statement = Statement(digest, kind, "", target, source=self.source, how=HOW)
        return Derivation(
            target,
            self._kind(target),
            "update",
            statement,
            columns_complete=False,
            edges=tuple(_whole(reads)),
            status="partial",
            namespace=self.names[target].namespace,
        )

    def _declared(self, identity: str, name: DatasetName) -> Derivation:
        statement = Statement("dataset", "dataset", "", identity, source=self.source, how=HOW)
        return Derivation(
            identity, self._kind(identity), "declare", statement, columns_complete=False, namespace=name.namespace
        )

    def _kind(self, identity: str) -> str:
        return "file" if self.names[identity].is_path else "table"

    # The rest.

    def _facts(self) -> tuple[Fact, ...]:
        facts = set()
        for name, entity in self.document.entities.items():
            if entity.label:
                identity = self.dataset(name)
                facts.add(Fact(identity, None, "description", entity.label, HOW, name.uri, self.source))
        for relation in self.by_kind.get("wasAttributedTo", ()):
            one, agent = relation.ends.get("entity"), relation.ends.get("agent")
            if one is not None and agent is not None:
                known = self.document.agents.get(agent, Element(agent))
                if _PEOPLE & {*known.types}:
                    owner = known.label or agent.local
                    facts.add(Fact(self.dataset(one), None, "owner", owner, HOW, one.uri, self.source))
        return tuple(sorted(facts, key=lambda fact: tuple(part or "" for part in fact)))

    def _silent(self) -> None:
        """Say what is not kept."""
        for kind, why in _IGNORED.items():
            number = len(self.by_kind.get(kind, ()))
            if number:
                self.notes.append(Diagnostic("prov", "info", f"{number} {kind}: {why}"))


def _whole(reads: Iterable[str]) -> Iterable[Edge]:
    """Edges between whole datasets, whose columns nobody tells."""
    for dataset in reads:
        yield Edge(ColumnRef(dataset, ROWS), ROWS, EdgeKind.READ)
        yield Edge(ColumnRef(dataset, ROWS), ROWS, EdgeKind.OPAQUE, reason=NO_COLUMNS)


def _placed(location: str) -> DatasetName:
    """A dataset by its place: a URI, or a path."""
    if "://" in location:
        scheme, _, rest = location.partition("://")
        host, _, path = rest.partition("/")
        return normalise("file" if scheme_of(location) == "file" else f"{scheme}://{host}", path)
    return normalise("file", location)


def _named(entity: Name) -> DatasetName:
    return normalise(entity.namespace.rstrip("/#:") or "default", entity.local or entity.namespace)


def _identity(entity: Name) -> ContentIdentity:
    return ContentIdentity("stated", None, entity.uri, 0, 0)


def _by_end(relations: Iterable[ProvRelation], end: str) -> dict[Name, list[ProvRelation]]:
    found: dict[Name, list[ProvRelation]] = {}
    for relation in relations:
        name = relation.ends.get(end)
        if name is not None:
            found.setdefault(name, []).append(relation)
    return found


def _shortfall(derivation: Derivation) -> Shortfall:
    """PROV has no columns, so there is no lineage of columns."""
    place = derivation.statement.file or derivation.target
    note = Diagnostic(NO_COLUMNS, "info", "the document names datasets and no columns", place, 1)
    return Shortfall("partial", note, 1, "", "")


def _frozen(relation: ProvRelation) -> tuple[str, tuple[tuple[str, Name], ...], str | None, tuple[str, ...]]:
    return relation.kind, tuple(sorted(relation.ends.items())), relation.time, relation.types


def _digest(*texts: str) -> str:
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
