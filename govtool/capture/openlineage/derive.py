"""From merged events to derivations: lineage that several runs repeat is one derivation, with a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from govtool.capture.openlineage import sql as sql_facet
from govtool.capture.openlineage.edges import Resolver
from govtool.capture.openlineage.events import DATASET, RUN, Key
from govtool.capture.openlineage.identity import JOBS, DatasetName, Fields, job_file, normalise
from govtool.capture.openlineage.merge import MergedEvents, Registers, RegisterValue, jobs_of, run_state, span
from govtool.capture.openlineage.sql import SqlText
from govtool.capture.openlineage.targets import StateContext, derivations_of, target_kind
from govtool.model import HIDDEN, ROWS, Derivation, Diagnostic, EdgeKind, OutputColumn, Statement
from govtool.model.copies import copied
from govtool.model.shortfall import Shortfall

ALIAS = "alias"
"""The statement kind of derivations that say that two names are one dataset."""

_ORDERED = frozenset({"replace", "rename", "drop"})


@dataclass(frozen=True, slots=True)
class OpenLineageFindings:
    """The findings of a state."""

    derivations: tuple[Derivation, ...]
    diagnostics: tuple[Diagnostic, ...]
    understood: int = 0
    """Statements: distinct things that jobs were seen to do."""
    partial: int = 0
    opaque: int = 0
    """Pieces of input that were no events."""
    ignored: int = 0
    """Jobs and runs that name no output."""
    runs: Mapping[str, int] = field(default_factory=dict)
    """Runs by how they ended."""
    shortfalls: tuple[Shortfall, ...] = ()
    """Of each statement that was not fully understood, the worst of why; the pieces that are no events."""


@dataclass(slots=True)
class _Seen:
    """A derivation and when it was seen."""

    derivation: Derivation
    first: str
    last: str
    run: str | None
    count: int
    succeeded: bool

    def again(self, times: tuple[str, str], run: str | None, *, succeeded: bool) -> None:
        """Take in one more sighting."""
        first, last = times
        self.first = min(self.first or first, first or self.first)
        if last >= self.last or self.run is None:
            self.last, self.run = max(last, self.last), run or self.run
        self.count += 1
        self.succeeded = self.succeeded or succeeded


class _JobHistory:
    """The distinct derivations of a job's runs, in the order of the runs."""

    def __init__(self) -> None:
        self._seen: list[_Seen] = []
        self._latest: dict[tuple[str, int, str], _Seen] = {}
        self._by_content: dict[Derivation, _Seen] = {}

    def add(self, derivation: Derivation, times: tuple[str, str], run: str | None, *, failed: bool) -> None:
        """Count a derivation of a run: a new one, or one more sighting of one that an earlier run had."""
        place = (derivation.target, derivation.statement.line, derivation.statement.kind)
        known = self._by_content.get(derivation)
        if known is not None and derivation.mode in _ORDERED and self._latest.get(place) is not known:
            known = None  # another one came between: the order counts
        if failed and known is None:
            derivation = _attempted(derivation)
            known = self._by_content.get(derivation)
        if known is None:
            known = _Seen(derivation, *times, run, 0, False)
            self._by_content[derivation] = self._latest[place] = known
            self._seen.append(known)
        known.again(times, run, succeeded=not failed)

    def standing(self) -> list[_Seen]:
        """All but failed attempts at what another run achieved."""
        achieved = {(s.derivation.target, s.derivation.edges) for s in self._seen if s.succeeded}
        return [s for s in self._seen if s.succeeded or (s.derivation.target, s.derivation.edges) not in achieved]


def derive(
    state: MergedEvents, texts: Mapping[str, str], previous: Iterable[Derivation] = (), *, source: str = ""
) -> OpenLineageFindings:
    """The derivations of a state, sorted.

    Args:
        state: Merged events.
        texts: SQL as it came, by the digest of its facet.
        previous: Earlier derivations of the same source: where the state has SQL whose text is not at hand, what it
            said then holds.
        source: The name of the ingest.
    """
    deriver = _Deriver(state, texts, previous)
    found = deriver.run()
    statements = [d._replace(statement=d.statement._replace(source=source)) for d in found]
    return OpenLineageFindings(
        tuple(statements),
        tuple(dict.fromkeys((*state.rejects(), *deriver.notes, *sql_facet.diagnostics_of(found)))),
        deriver.outcomes["understood"],
        deriver.outcomes["partial"],
        len(state.rejects()),
        deriver.outcomes["ignored"],
        dict(sorted(deriver.runs.items())),
        (*deriver.shortfalls, *(Shortfall("opaque", note, 1, "", "") for note in state.rejects())),
    )


class _Deriver:
    def __init__(self, state: MergedEvents, texts: Mapping[str, str], previous: Iterable[Derivation]) -> None:
        self.state = state
        self.texts = texts
        self.notes: list[Diagnostic] = []
        self.outcomes: Counter[str] = Counter()
        self.shortfalls: list[Shortfall] = []
        self.runs: Counter[str] = Counter()
        self._sql: dict[tuple[str, str], list[Derivation] | None] = {}
        self._previous: dict[tuple[str, str], list[Derivation]] = {}
        for derivation in previous:
            statement = derivation.statement
            if statement.session and statement.how == "sql":
                self._previous.setdefault((statement.file, statement.session), []).append(derivation)
        self.names: dict[str, DatasetName] = {}
        self.declared: dict[str, RegisterValue] = {}
        self.symlinks: dict[tuple[str, str, str], str] = {}
        self._collect()

    def _collect(self) -> None:
        """Names, schemas, kinds and symlinks of datasets, from all facets that have them."""
        schemas: dict[str, RegisterValue] = {}
        kinds: dict[str, tuple[RegisterValue, str]] = {}
        for key, registers in sorted(self.state.entities.items()):
            for (part, facet), value in registers.items():
                if key.kind == DATASET:
                    name = DatasetName(key.namespace, key.name)
                elif part.role in ("in", "out"):
                    name = part.dataset
                else:
                    continue
                identity = name.id
                self.names[identity] = name
                if facet == "schema":
                    schemas[identity] = max(schemas.get(identity, value), value)
                    if part.role != "out":
                        self.declared[identity] = max(self.declared.get(identity, value), value)
                elif facet == "datasetType":
                    kind = target_kind(name, value.load())
                    if kind:
                        kinds[identity] = max(kinds.get(identity, (value, kind)), (value, kind))
                elif facet == "symlinks":
                    self._links(name, value.load())
        self.fields = {identity: _fields(value) for identity, value in schemas.items()}
        self.kinds = {identity: kind for identity, (_, kind) in kinds.items()}
        self.context = StateContext(Resolver(self.fields), self.fields, self.kinds, self._sql_of)

    def _links(self, name: DatasetName, facet: object) -> None:
        listed = facet.get("identifiers") if isinstance(facet, Mapping) else None
        for item in listed if isinstance(listed, list) else ():
            if not isinstance(item, Mapping):
                continue
            namespace, other, kind = item.get("namespace"), item.get("name"), item.get("type")
            if not isinstance(namespace, str) or not isinstance(other, str) or not other.strip():
                continue
            alias = normalise(namespace, other)
            if alias != name:
                self.names[alias.id] = alias
                self.symlinks[name.id, alias.id, kind if isinstance(kind, str) else ""] = name.id

    def run(self) -> list[Derivation]:
        found: list[Derivation] = []
        for job, items in jobs_of(self.state):
            found += self._job(job, items)
        for key in sorted(k for k in self.state.entities if k.kind == DATASET):
            registers = self.state.entities[key]
            first, last = _dataset_span(registers)
            derivations = derivations_of(key, registers, self.context)
            found += [_finish(_Seen(d, first, last, None, 1, True)) for d in derivations]
            self._count(derivations)
        columns = _columns(found)
        found = [self._renamed(d, columns) if d.mode == "rename" else d for d in found]
        found += self._aliases(columns)
        found += self._declarations(found)
        return sorted(found, key=_order)

    def _job(self, job: tuple[str, str], items: list[tuple[Key, Registers]]) -> list[Derivation]:
        seen = _JobHistory()
        unfinished = 0
        for key, registers in items:
            outcome = run_state(registers)
            if key.kind == RUN:
                self.runs[outcome] += 1
                unfinished += outcome in ("START", "RUNNING", "OTHER")
            derivations = derivations_of(key, registers, self.context)
            if not derivations:
                self.outcomes["ignored"] += 1
            times = span(registers)
            for derivation in derivations:
                seen.add(derivation, times, key.run or None, failed=outcome in ("FAIL", "ABORT"))
        found = [_finish(s) for s in seen.standing() if s.derivation.mode != "drop" or s.succeeded]
        self._count(found)
        if unfinished:
            message = f"{unfinished} run{'s' if unfinished > 1 else ''} whose end no event reports"
            self.notes.append(Diagnostic("unfinished-run", "info", message, job_file(*job), 1))
        return found

    def _count(self, derivations: list[Derivation]) -> None:
        statements: dict[tuple[str, str | None, int, str], Diagnostic | None] = {}
        for derivation in derivations:
            statement = derivation.statement
            place = (statement.file, statement.first_seen, statement.line, statement.fingerprint)
            why = _why(derivation) if derivation.status != "understood" else None
            statements[place] = statements.get(place) or why
        notes = [note for note in statements.values() if note is not None]
        self.outcomes.update({"understood": len(statements) - len(notes), "partial": len(notes)})
        self.shortfalls += (Shortfall("partial", note, 1, "", "") for note in notes)

    def _sql_of(
        self, sql: SqlText, file: str, inputs: list[DatasetName], outputs: list[DatasetName]
    ) -> list[Derivation] | None:
        key = (file, sql.digest)
        if key not in self._sql:
            text = self.texts.get(sql.digest)
            if text is None:
                self._sql[key] = list(dict.fromkeys(_unseen(d) for d in self._previous.get(key, ()))) or None
            else:
                found, notes = sql_facet.derivations(sql, text, file, inputs, outputs, self.fields)
                self._sql[key] = found
                self.notes += [n for n in notes if not any(n in d.diagnostics for d in found)]
        return self._sql[key]

    def _renamed(self, derivation: Derivation, columns: Mapping[str, set[str]]) -> Derivation:
        """A renaming, with the columns that its dataset is known to have had."""
        old = next(edge.source.dataset for edge in derivation.edges if edge.kind is EdgeKind.READ)
        paths = sorted(columns.get(old, set()) | {column.path for column in derivation.columns})
        complete = derivation.columns_complete or bool(self.fields.get(old, Fields()).columns)
        edges = copied(old, paths, complete=complete)
        return derivation._replace(edges=edges, status="understood" if complete else "partial")

    def _aliases(self, columns: Mapping[str, set[str]]) -> list[Derivation]:
        """Two names of one dataset: each is a copy of the other, column by column."""
        made: list[Derivation] = []
        for name, alias, kind in sorted(self.symlinks):
            known = {path for one in (name, alias) for path, _ in self.fields.get(one, Fields()).columns}
            complete = bool(known)
            known |= {path for one in (name, alias) for path in columns.get(one, ())}
            paths = sorted(known)
            for target, of, text in ((alias, name, f"symlink {kind}".strip()), (name, alias, "")):
                statement = Statement(
                    fingerprint="alias", kind=ALIAS, dialect="", file=name, how="openlineage", text=text
                )
                made.append(
                    Derivation(
                        target,
                        self._kind(target),
                        "update",
                        statement,
                        edges=copied(of, paths, complete=complete),
                        columns_complete=False,
                        namespace=self.names[target].namespace,
                    )
                )
        return made

    def _declarations(self, found: list[Derivation]) -> list[Derivation]:
        """Every dataset that is named, with its columns where an event declares them: its namespace is not lost."""
        self.names |= self.context.resolver.names
        mentioned = {d.target for d in found} | {e.source.dataset for d in found for e in d.edges} | self.names.keys()
        made: list[Derivation] = []
        for identity in sorted(mentioned):
            name = self.names.get(identity)
            if name is None or identity.startswith((JOBS, "query:")):
                continue
            declared = self.declared.get(identity)
            fields = _fields(declared) if declared is not None else Fields()
            statement = Statement("dataset", "dataset", "", identity, how="openlineage")
            columns = tuple(OutputColumn(*column) for column in fields.columns)
            made.append(
                Derivation(
                    identity,
                    self._kind(identity),
                    "declare",
                    statement,
                    columns,
                    bool(columns),
                    namespace=name.namespace,
                )
            )
        return made

    def _kind(self, identity: str) -> str:
        name = self.names.get(identity)
        return self.kinds.get(identity, "file" if name is not None and name.is_path else "table")


def _columns(found: Iterable[Derivation]) -> dict[str, set[str]]:
    """The columns of datasets that derivations speak of."""
    columns: dict[str, set[str]] = {}
    for derivation in found:
        own = columns.setdefault(derivation.target, set())
        own.update(column.path for column in derivation.columns)
        for edge in derivation.edges:
            columns.setdefault(edge.source.dataset, set()).add(edge.source.path)
            own.add(edge.target_path)
    return {dataset: paths - {ROWS, HIDDEN} for dataset, paths in columns.items()}


def _fields(value: RegisterValue) -> Fields:
    facet = value.load()
    return Fields(facet.get("fields") if isinstance(facet, Mapping) else None)


def _dataset_span(registers: Registers) -> tuple[str, str]:
    times = [value.time for value in registers.values()]
    return min(times, default=""), max(times, default="")


def _attempted(derivation: Derivation) -> Derivation:
    """The intended writes of a run that failed: it may have added to its target, and replaced or removed nothing."""
    note = Diagnostic("failed-run", "warning", "no run with this lineage succeeded", derivation.statement.file, 1)
    return derivation._replace(
        mode="append" if derivation.mode == "replace" else derivation.mode,
        status="partial",
        diagnostics=(*derivation.diagnostics, replace(note, target=derivation.target)),
    )


def _unseen(derivation: Derivation) -> Derivation:
    """A derivation without its times, as it was when it was made."""
    statement = derivation.statement._replace(source="", run=None, first_seen=None, last_seen=None, count=1)
    return derivation._replace(statement=statement)


def _finish(seen: _Seen) -> Derivation:
    statement = seen.derivation.statement._replace(
        run=seen.run,
        first_seen=seen.first or None,
        last_seen=seen.last or None,
        count=max(1, seen.count),
    )
    return seen.derivation._replace(statement=statement)


def _order(derivation: Derivation) -> tuple[str, ...]:
    statement = derivation.statement
    return (
        statement.file,
        statement.first_seen or "",
        f"{statement.line:09d}",
        derivation.target,
        statement.kind,
        derivation.mode,
        statement.run or "",
        repr(derivation.edges),
    )


def _why(derivation: Derivation) -> Diagnostic:
    """The first of what is said of a derivation that was not fully understood."""
    message = "the event does not name all columns"
    unnamed = Diagnostic("no-column-lineage", "info", message, derivation.statement.file, derivation.statement.line)
    return next(iter(derivation.diagnostics), unnamed)
