"""From what a script's statements leave behind (``fold``) to derivations: packed dependencies become edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from govtool.capture.sql.folding.versions import Draft
from govtool.capture.sql.resolve.batch import Batch
from govtool.capture.sql.resolve.states import StatementState
from govtool.capture.sql.walk.dependencies import (
    ARM_MASK,
    ARM_SHIFT,
    CHAIN_MASK,
    CHAIN_SHIFT,
    KIND_MASK,
    LISTED,
    OPAQUE,
    REF_SHIFT,
    STAR,
    Interner,
)
from govtool.capture.sql.walk.relation import ArrayElements, FunctionRows
from govtool.capture.sql.walk.state import EVERYWHERE, OPTIONAL
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION, Write
from govtool.functions.facts import is_masking
from govtool.model import (
    HIDDEN,
    ROWS,
    ColumnRef,
    Counted,
    Derivation,
    Diagnostic,
    Edge,
    EdgeKind,
    OutputColumn,
    Statement,
)
from govtool.model.copies import copied
from govtool.names import DEFAULT_NAMESPACE, OBJECT_STORES, ROOTED, dataset_id, split_name

# Compiled, a constant of a module is read without looking anything up.
_KINDS: Final = tuple(EdgeKind)
_READ: Final = EdgeKind.READ
_UNION_ALL: Final = EdgeKind.UNION_ALL
_EDGE: Final = Edge
_COLUMN: Final = OutputColumn
_REF: Final = ColumnRef
_ROWS: Final = ROWS
_URI: Final = re.compile(rf"(?:{'|'.join(ROOTED | OBJECT_STORES)}|s3[an]|maprfs):/", re.IGNORECASE)
HOLES: Final = frozenset({"template", "dropped", "parse-error", "nesting"})
"""Reasons that leave a statement without a part of its text."""
_READ_WHOLE: Final = frozenset({"parsed", "ignored"})
"""States of statements whose text shows which rows flow."""
_COPIES: Final = frozenset({"create_synonym", "partition"})
"""Kinds of statements by which all columns are those of another table, whatever they are called."""
_new: Final[Callable[..., Any]] = tuple.__new__
"""Makes a named tuple in a third of the time of its constructor; for what there is much of."""


PLACED: Final = frozenset({"spark", "databricks", "hive"})
"""Dialects whose engines call a path by its URI when they run."""


def with_places(derivation: Derivation) -> Derivation:
    """A derivation of Spark's SQL, with absolute paths and URIs named as runs name them.

    A path without a scheme is one of the local file system, as everywhere; a relative one stays as it is written.
    """
    if derivation.target[:1] != '"' and all(edge.source.dataset[:1] != '"' for edge in derivation.edges):
        return derivation

    def placed(ref: ColumnRef) -> ColumnRef:
        return ColumnRef(place_id(ref.dataset), ref.path) if ref.dataset[:1] == '"' else ref

    target = derivation.target
    return derivation._replace(
        target=place_id(target) if target[:1] == '"' else target,
        edges=tuple([edge._replace(source=placed(edge.source)) for edge in derivation.edges]),
        references=tuple([placed(ref) for ref in derivation.references]),
    )


def place_id(name: str) -> str:
    """The id of a quoted name that is an absolute path or a URI; any other name as it is."""
    from govtool.capture.spark.identity import path_name

    text = name[1:-1].replace('""', '"')
    is_whole = name.endswith('"') and len(split_name(name)) == 1
    return path_name(text).id if is_whole and (text.startswith("/") or _URI.match(text)) else name


class Emitter:
    """Turns drafts into derivations."""

    def __init__(self, batch: Batch, namespace: str, evidence: Callable[[StatementState, Write], Statement]) -> None:
        self.batch = batch
        self.interner: Interner = batch.interner
        self.namespace = namespace
        self.is_default = namespace == DEFAULT_NAMESPACE
        """True if datasets are called in the graph as they are here."""
        self.evidence = evidence
        self._refs: dict[int, ColumnRef] = {}
        """Columns as the graph calls them, where that is another name."""
        self._masking: dict[int, bool] = {}
        self._named_too: frozenset[str] = frozenset()
        """Of the draft at hand: see ``_mixed``."""
        self._hints: dict[str, str] = {}
        self.hinted: dict[str, str] = {}
        """The hints that notes were given since this was last emptied."""

    def dataset(self, name: str) -> str:
        """Return the graph's id of a dataset name of this ingest."""
        if self.is_default or name.startswith("query:"):
            return name
        return dataset_id(name, self.namespace)

    def hint(self, name: str) -> str:
        """Name the table of the supplied schema that would be meant with a default catalog or schema."""
        known = self._hints.get(name)
        if known is None:
            longer = [one for one in self.batch.schema if one.endswith(f".{name}")]
            parts = split_name(longer[0])[: -len(split_name(name))] if len(longer) == 1 else []
            options = {1: "--default-schema", 2: "--default-catalog and --default-schema"}
            if len(split_name(name)) > 1:
                options = {1: "--default-catalog"}
            option = options.get(len(parts), "")
            known = f"; the schema has {longer[0]}: give {option} {' and '.join(parts)}" if option else ""
            self._hints[name] = known
        self.hinted[name] = known
        return known

    def derivation(self, draft: Draft) -> Derivation:
        """Return the derivation of one draft."""
        write = draft.write
        evidence = self.evidence(draft.statement, write)
        if write.bounds:
            evidence = evidence._replace(min_group_of=self._counted(draft))
        if draft.mode == "rename":
            return self._renamed(draft, evidence)
        target = draft.target
        if not target:
            # The variants that a template makes of one place are one query.
            first = draft.statement.first_variant
            named_by = evidence if first is draft.statement else self.evidence(first, write)
            target = f"query:{named_by.fingerprint}"
        names = write.output.names
        types = write.output.types
        columns: list[OutputColumn] = [
            _new(_COLUMN, (name, types.get(position) if types else None)) for position, name in enumerate(names)
        ]
        diagnostics: list[Diagnostic] = []
        edges = self._edges(draft, target, diagnostics)
        references = self._references(draft, edges) if write.named or write.fills or write.listed else ()
        if draft.ended:
            own = "" if draft.target else self.dataset(write.target)  # of a relation that is no more
            references = tuple([ref for ref in _all_named(references, edges) if ref.dataset != own])
            columns, edges = [], []
        notes = _notes(draft, diagnostics)
        complete = not write.output.open or draft.ended
        partial = (not complete and write.kind not in _COPIES) or any(n.severity != "info" for n in notes)
        derivation: Derivation = _new(
            Derivation,
            (
                self.dataset(target),
                draft.target_kind,
                draft.mode,
                evidence,
                tuple(columns),
                complete,
                tuple(edges),
                "partial" if partial else "understood",
                tuple(notes),
                self.namespace,
                references,
            ),
        )
        return with_places(derivation) if draft.statement.script.dialect in PLACED else derivation

    def _edges(self, draft: Draft, target: str, diagnostics: list[Diagnostic]) -> list[Edge]:
        """Return all edges of a draft, and add notes of those that are opaque."""
        write = draft.write
        names = write.output.names
        self._named_too = self._mixed(write) if write.listed else frozenset()
        edges: list[Edge] = []
        unclear: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            self._add_edges(write.output.deps[position], name, edges, unclear)
        self._add_edges(write.rows, _ROWS, edges, unclear)
        ambiguous = _by_least(draft.statement.ambiguous) if unclear else {}
        for path, opaque in unclear.items():
            edges.extend(self._opaque_edges(opaque, path, target, draft, ambiguous, diagnostics))
        edges.extend(self._open_stars(write, target, draft, diagnostics))
        if draft.statement.parsed.status in _READ_WHOLE:
            for name, arms in write.reads.items():
                self._read(name, arms, edges)
            for name in write.dataset_reads:
                self._read(name, EVERYWHERE, edges)
        hole = _hole(draft.statement)
        if hole:  # something was there that is not: it may have made anything of what is read
            sources = dict.fromkeys((*write.reads, *write.dataset_reads, *write.mentioned))
            for name in sources:
                edges.append(Edge(ColumnRef(self.dataset(name), ROWS), ROWS, EdgeKind.OPAQUE, reason=hole))
        if unclear or write.listed or write.output.open or len(set(names)) < len(names):
            edges = list(dict.fromkeys(edges))
        return self._bound(edges, draft.bound) if draft.bound else edges

    def _add_edges(self, deps: Iterable[int], path: str, edges: list[Edge], unclear: dict[str, list[int]]) -> None:
        """Add an edge for each dependency of a column or of the rows; those of unknown origin are kept apart."""
        for dep in deps:
            if dep & KIND_MASK == OPAQUE:
                unclear.setdefault(path, []).append(dep)
            else:
                edges.append(self._edge(dep, path))

    def _references(self, draft: Draft, edges: list[Edge]) -> tuple[ColumnRef, ...]:
        """The columns that the statement names and that no edge shows to be named, in order."""
        # UNION ALL decides over no row: an edge of that kind only means that an arm has the column.
        shown = {edge.source for edge in edges if not edge.star and edge.kind is not _UNION_ALL}
        listed = {self._ref(number) for number in draft.write.listed}
        refs = {self._ref(number) for number in draft.write.named} | listed
        refs = {ref for ref in refs if ref.path not in (_ROWS, HIDDEN)}
        positions = {ref for ref in listed if ref.dataset not in self._named_too}
        if positions:
            refs |= {ColumnRef(ref.dataset, ROWS) for ref in positions}
            deciding = [edge.source for edge in edges if edge.kind is not _UNION_ALL]
            shown |= positions.intersection(deciding)
        if draft.bound:
            refs = self._bound_refs(refs, draft.bound)
        found = {ref for ref in refs if ref not in shown or ref.path == _ROWS}
        found.update(self._filled(draft))
        if draft.write.fills == BY_POSITION and draft.target:
            found.add(ColumnRef(self.dataset(draft.target), ROWS))
        return tuple(sorted(found))

    def _mixed(self, write: Write) -> frozenset[str]:
        """The datasets of which a list of names has columns, and a plain ``*``, or a name that no edge shows, as well.

        Neither an edge nor a reference shows which of the two it is from; those of these datasets count as named.
        """
        deps = list(chain(write.rows, *write.output.deps))
        shown = {dep >> REF_SHIFT for dep in deps if not dep & (STAR | LISTED) and dep & KIND_MASK != _UNION_ALL}
        numbers = {dep >> REF_SHIFT for dep in deps if dep & (STAR | LISTED) == STAR} | (write.named - shown)
        return frozenset([self._ref(number).dataset for number in numbers])

    def _filled(self, draft: Draft) -> list[ColumnRef]:
        """The columns of its target that a statement names in order to fill them."""
        if draft.write.fills != BY_NAME or not draft.target:
            return []
        target = self.dataset(draft.target)
        return [ColumnRef(target, name) for name in draft.write.output.names]

    def _counted(self, draft: Draft) -> tuple[Counted, ...]:
        """Return the columns that each bound on the size of groups counts."""
        found: list[Counted] = []
        for least, what, deps, joined in draft.write.bounds:
            refs = {self._ref(dep >> REF_SHIFT) for dep in deps}
            if draft.bound:
                refs = self._bound_refs(refs, draft.bound)
            found.append(Counted(least, what, tuple(sorted(refs)), joined))
        return tuple(found)

    def _bound_refs(self, refs: set[ColumnRef], bound: Mapping[str, tuple[str, ...]]) -> set[ColumnRef]:
        names = self._bound_names(bound)
        return {ColumnRef(name, ref.path) for ref in refs for name in names.get(ref.dataset, (ref.dataset,))}

    def _bound_names(self, bound: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {
            self.dataset(name): tuple([self.dataset(item) for item in bound_names])
            for name, bound_names in bound.items()
        }

    def _bound(self, edges: list[Edge], bound: Mapping[str, tuple[str, ...]]) -> list[Edge]:
        """Let edges begin at the versions of relations that the statement reads."""
        bound_names = self._bound_names(bound)
        found: list[Edge] = []
        for edge in edges:
            names = bound_names.get(edge.source.dataset)
            if names is None:
                found.append(edge)
            else:
                found += [edge._replace(source=ColumnRef(name, edge.source.path)) for name in names]
        return list(dict.fromkeys(found))

    def _renamed(self, draft: Draft, evidence: Statement) -> Derivation:
        """A table that another script made and this one renames: a copy under the new name."""
        old, new = draft.write.target, draft.write.renamed_to or ""
        info = draft.statement.infos.get(new)
        names = list(info.columns) if info is not None else []
        complete = info is not None and info.complete
        return Derivation(
            target=self.dataset(new),
            target_kind="table",
            mode="rename",
            statement=evidence,
            columns=tuple(OutputColumn(name) for name in names),
            columns_complete=complete,
            edges=copied(self.dataset(old), names, complete=complete),
            status="understood" if complete else "partial",
            namespace=self.namespace,
        )

    def _edge(self, dep: int, target_path: str) -> Edge:
        number = (dep & CHAIN_MASK) >> CHAIN_SHIFT
        functions: tuple[str, ...] = ()
        masking = False
        if number:
            functions = self.interner.chains[number]
            known = self._masking.get(number)
            if known is None:
                known = self._masking[number] = is_masking(functions)
            masking = known
        ref = self._ref(dep >> REF_SHIFT)
        arm = (dep & ARM_MASK) >> ARM_SHIFT
        kind = _KINDS[dep & KIND_MASK]
        star = (dep & LISTED != 0 and ref.dataset not in self._named_too) or dep & (STAR | LISTED) == STAR
        edge: Edge = _new(_EDGE, (ref, target_path, kind, functions, star, arm, masking, None))
        return edge

    def _read(self, name: str, arms: tuple[int, ...], edges: list[Edge]) -> None:
        """Add an edge for each arm in which the rows of a dataset flow; see ``Edge.star``."""
        source: ColumnRef = _new(_REF, (self.dataset(name), _ROWS))
        for arm in arms:
            edges.append(_new(_EDGE, (source, _ROWS, _READ, (), arm & OPTIONAL != 0, arm >> ARM_SHIFT, False, None)))

    def _ref(self, number: int) -> ColumnRef:
        ref = self.interner.refs[number]
        if self.is_default:
            return ref
        found = self._refs.get(number)
        if found is None:
            dataset = self.dataset(ref.dataset)
            found = self._refs[number] = ref if dataset == ref.dataset else ColumnRef(dataset, ref.path)
        return found

    def _opaque_edges(
        self,
        deps: list[int],
        path: str,
        target: str,
        draft: Draft,
        ambiguous: Mapping[int, Sequence[tuple[int, frozenset[int]]]],
        diagnostics: list[Diagnostic],
    ) -> list[Edge]:
        """Candidates: opaque edges, and a diagnostic that lists them."""
        edges: list[Edge] = []
        remaining = {dep >> REF_SHIFT for dep in deps}
        known = [each for number in remaining for each in ambiguous.get(number, ())]
        for _, candidates in sorted(known):  # no two have one place
            if candidates <= remaining:
                name, line, column = draft.statement.ambiguous[candidates]
                remaining -= candidates
                refs = sorted([self._ref(number) for number in candidates])
                texts = sorted([ref.text for ref in refs])
                note = Diagnostic(
                    "ambiguous",
                    "warning",
                    f"{name} may be any of {len(texts)} columns",
                    None,
                    line,
                    column,
                    f"{self.dataset(target)}.{path}",
                    tuple(texts),
                )
                diagnostics.append(draft.statement.placed(note))
                for ref in refs:  # by name: numbers tell which statement came first
                    edges.append(Edge(ref, path, EdgeKind.OPAQUE, reason="ambiguous"))
        for ref in sorted([self._ref(number) for number in remaining]):
            reason = "unresolved" if ref.path == ROWS else _unknown_columns(draft.statement)
            if path == ROWS and draft.write.reason:
                reason = draft.write.reason
            edges.append(Edge(ref, path, EdgeKind.OPAQUE, reason=reason))
        return edges

    def _open_stars(self, write: Write, target: str, draft: Draft, diagnostics: list[Diagnostic]) -> list[Edge]:
        """Record each ``*`` that could not be expanded; returns its edges."""
        edges: list[Edge] = []
        for star in write.output.open:
            table = star.table
            if isinstance(table, FunctionRows):
                sources = [self._ref(dep >> REF_SHIFT) for dep in table.arguments]
                text = f"the columns of {table.id or 'a function'} are not known"
            elif isinstance(table, ArrayElements):
                sources = [ColumnRef(self.dataset(table.id), table.path)]
                text = f"the fields of {sources[0].text} are not known"
            else:
                sources = [ColumnRef(self.dataset(table.id), HIDDEN)]
                text = f"* over {table.id}: its columns are not all known{self.hint(table.id)}"
            reason = "star-unresolved" + (f": except {', '.join(sorted(star.except_))}" if star.except_ else "")
            for source in sources:
                edges.append(Edge(source, HIDDEN, EdgeKind.OPAQUE, reason=reason))
            if write.kind in _COPIES:
                continue
            note = Diagnostic("star-unresolved", "warning", text, target=f"{self.dataset(target)}.{HIDDEN}")
            diagnostics.append(draft.statement.placed(note))
        return edges


def _notes(draft: Draft, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """What is said of a statement, and of the edges of its draft, each once."""
    notes = [draft.statement.placed(d) for d in draft.statement.diagnostics]
    if diagnostics:
        noted = set(notes)
        notes += [note for note in dict.fromkeys(diagnostics) if note not in noted]
    return notes


def _all_named(references: tuple[ColumnRef, ...], edges: list[Edge]) -> tuple[ColumnRef, ...]:
    """The references of a statement of which nothing is left, with the columns that its edges show to be named."""
    named = [e.source for e in edges if not e.star and e.kind is not _UNION_ALL]
    return tuple(sorted({*references, *[ref for ref in named if ref.path not in (_ROWS, HIDDEN)]}))


def _hole(statement: StatementState) -> str:
    """The code of what may have made anything of what a statement reads; empty if all of it was understood."""
    if statement.parsed.status not in _READ_WHOLE:
        return statement.parsed.diagnostics[0].code if statement.parsed.diagnostics else "opaque"
    holes = [note.code for note in statement.diagnostics if note.code in HOLES and note.severity != "info"]
    return holes[0] if holes else ""


def _unknown_columns(statement: StatementState) -> str:
    """Why any of some columns may be meant: there are others than is known behind a ``*``, or in an arm of a UNION."""
    codes = {each.code for each in statement.diagnostics}
    return "arity" if "arity" in codes and "star-unresolved" not in codes else "star-unresolved"


def _by_least(ambiguous: Mapping[frozenset[int], object]) -> dict[int, list[tuple[int, frozenset[int]]]]:
    """The candidates of ambiguous names, each with its place in their order, by the least number among them."""
    found: dict[int, list[tuple[int, frozenset[int]]]] = {}
    for place, candidates in enumerate(ambiguous):
        found.setdefault(min(candidates, default=-1), []).append((place, candidates))
    return found
