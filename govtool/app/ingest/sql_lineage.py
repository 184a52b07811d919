"""The lineage of a SQL source: of its scripts as they are now, with what is still right of its last ingest.

Two forms answer alike. ``extracted_lineage`` extracts every script. ``lineage_with_memos`` extracts those that changed,
or whose looks at others have other answers now; the derivations of the rest stay where they are, in fragments of the
store: a fragment none of whose files changed is neither read nor written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

from govtool.app.ingest.payload import DERIVATIONS_PER_FRAGMENT, IngestPayload
from govtool.app.ingest.sql_memo_files import EarlierIngest, load_earlier, memo_file, save_earlier
from govtool.app.ingest.sql_options import extract_scripts, facts_beside, statement_facts
from govtool.model import Derivation, Diagnostic
from govtool.model.fact import Fact
from govtool.model.spread import buckets_for, number_of
from govtool.store import Fragment, FragmentRef

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.capture.sql.extract import Extraction, Options
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.memos.reuse import MemoExtraction
    from govtool.capture.sql.memos.script_memos import DerivationOutline, ScriptMemo
    from govtool.capture.sql.stages import StageProgress
    from govtool.model.stored_rows import RowSpan, StoredRows
    from govtool.store import Store


QUERY: Final = "query"
"""The kind of the target of a query whose result has no name."""
_MIXED: Final = "\0mixed "
"""Begins what stands for the derivations in a fragment that are of no file as it is now; no file has such a name."""


@dataclass(frozen=True, slots=True)
class EncodedLineage:
    """Derivations as a commit takes them."""

    fragments: tuple[Fragment, ...] = ()
    """To be written."""
    kept: tuple[FragmentRef, ...] = ()
    """In the store, and just as they would be written."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Datasets, columns and edges."""
    places: Mapping[str, str] = field(default_factory=dict)
    """By file the digest of its fragment."""


class SourceLineage:
    """The lineage of a source, with what is needed to ingest it faster the next time."""

    def __init__(
        self, store: Store, source: str, found: MemoExtraction, earlier: _Earlier, file: Path, how: str
    ) -> None:
        self.extraction: Extraction = found.extraction
        self._store = store
        self._source = source
        self._found = found
        self._earlier = earlier
        self._file = file
        self._how = how
        self._stated: Mapping[str, Sequence[Fact]] = {}
        self._stored: dict[str, StoredRows] = {}

    @property
    def files(self) -> int:
        """The number of scripts."""
        return len(self._found.parts)

    @property
    def extracted(self) -> int:
        """The number of scripts that were extracted now."""
        return self.files - sum(1 for file in self._found.kept if file not in self._earlier.fresh)

    @cached_property
    def derivations(self) -> Sequence[Derivation]:
        """All derivations, in order; those that lie in the store are read when they are looked at."""
        return _Lazy(self)

    def of_file(self, file: str) -> list[Derivation]:
        """The derivations of a file.

        Raises:
            StoreError: Its fragment cannot be read.
            IntegrityError: It is not what was written.
        """
        if file not in self._found.kept:
            return self._made[file]
        rows = self._rows_of(file)
        return rows.derivations(file) if rows is not None else []

    @cached_property
    def _made(self) -> dict[str, list[Derivation]]:
        return {part.file: part.derivations for part in self._found.parts}

    def _rows_of(self, file: str) -> StoredRows | None:
        """The rows that hold the derivations of a file with a memo; None if it has none."""
        fresh = self._earlier.fresh.get(file)
        return fresh if fresh is not None else self._stored_rows(file)

    def _stored_rows(self, file: str) -> StoredRows | None:
        """The rows of the fragment that holds what a file said at the last ingest; None if it said nothing."""
        place = self._earlier.places.get(file, "")
        if place and place not in self._stored:
            from govtool.model.stored_rows import StoredRows

            self._stored[place] = StoredRows.of(self._store.read(self._earlier.refs[place]))
        return self._stored.get(place)

    def facts(self, found: Sequence[Script | Diagnostic], settings: Options) -> tuple[Fact, ...]:
        """Return the facts that scripts state; those of scripts with memos as they stated them before."""
        targets = {outline.target for outlines in self._outlines.values() for outline in outlines}
        changed = [part.file for part in self._found.parts if not self._is_kept(part.file)]
        stated: dict[str, list[Fact]] = {}
        for fact in statement_facts(found, settings, targets, only=set(changed)):
            stated.setdefault(fact.file, []).append(fact)
        every = {part.file: stated.get(part.file) or self._earlier_facts(part.file) for part in self._found.parts}
        memos = self._found.memos.scripts
        self._stated = {file: facts for file, facts in every.items() if facts and file in memos}
        beside = facts_beside(found, settings, self.of_file)
        return tuple(dict.fromkeys([*(fact for facts in every.values() for fact in facts), *beside]))

    def _earlier_facts(self, file: str) -> Sequence[Fact]:
        return self._earlier.facts.get(file, ()) if self._is_kept(file) else ()

    def _is_kept(self, file: str) -> bool:
        """Return whether a memo of the last ingest is valid for a file."""
        return file in self._found.kept and file not in self._earlier.fresh

    def queries(self) -> list[str]:
        """The files with a query whose result has no name."""
        return [file for file, outlines in self._outlines.items() if any(o.target_kind == QUERY for o in outlines)]

    # ---- encoding ------------------------------------------------------------------------------------------

    def encoded(
        self, more: Sequence[Derivation] = (), wrote: Callable[[int, int], None] | None = None
    ) -> EncodedLineage:
        """The derivations as fragments, by a hash of their file.

        Args:
            more: Derivations that come after these, of files that say something else now.
            wrote: Called with fragments done and in all.

        Raises:
            StoreError: A fragment cannot be read.
            IntegrityError: It is not what was written.
        """
        outlines = self._outlines
        buckets = buckets_for(sum(map(len, outlines.values())) + len(more), DERIVATIONS_PER_FRAGMENT)
        split: dict[int, list[str]] = {}
        for file, outlined in outlines.items():
            if outlined:
                split.setdefault(number_of(file) % buckets, []).append(file)
        extra: dict[int, list[Derivation]] = {}
        for derivation in more:
            bucket = number_of(derivation.statement.file) % buckets
            split.setdefault(bucket, [])
            extra.setdefault(bucket, []).append(derivation)
        fragments: list[Fragment] = []
        kept: list[FragmentRef] = []
        places: dict[str, str] = {}
        mixed: dict[str, str] = {}
        for number, (bucket, files) in enumerate(sorted(split.items())):
            if wrote is not None:
                wrote(number, len(split))
            found = (self._unchanged(files) if bucket not in extra else None) or self._encode(files, extra.get(bucket))
            if isinstance(found, FragmentRef):
                kept.append(found)
                places.update(dict.fromkeys(files, found.sha256))
                continue
            fragments.append(found)
            place = hashlib.sha256(found.data).hexdigest()
            more_of = {derivation.statement.file for derivation in extra.get(bucket, ())}
            # Of these files it holds more than they say now: they are extracted again, and it is never kept as it is.
            places.update({file: place for file in files if file not in more_of})
            if more_of:
                mixed[f"{_MIXED}{bucket}"] = place
        in_order = {file: places[file] for file in outlines if file in places} | mixed
        from govtool.capture.sql.memos.script_memos import sizes_of

        sizes = sizes_of([*outlines.values(), _outlined(more)])
        return EncodedLineage(tuple(fragments), tuple(kept), sizes, in_order)

    @cached_property
    def _outlines(self) -> dict[str, list[DerivationOutline]]:
        """The figures of derivations by file, in order of files."""
        scripts = self._found.memos.scripts
        kept = self._found.kept
        return {
            part.file: scripts[part.file].outlines if part.file in kept else _outlined(part.derivations)
            for part in self._found.parts
        }

    def _unchanged(self, files: list[str]) -> FragmentRef | None:
        """The fragment that already holds just these files, as they are now."""
        ref = self._earlier.of_files(files)
        return ref if all(self._is_kept(file) or self._yields_the_same(file) for file in files) else None

    def _yields_the_same(self, file: str) -> bool:
        """Return whether a file without a memo has the same derivations as before."""
        return self._yields.get(file) == self._earlier.yields.get(file, "")

    @cached_property
    def _yields(self) -> dict[str, str]:
        """By file without a memo a digest of its derivations."""
        from govtool.model.columnar import to_table

        made = {file: found for file, found in self._made.items() if found and file not in self._found.memos.scripts}
        return {file: _table_digest(to_table(found)) for file, found in made.items()}

    def _encode(self, files: list[str], more: Sequence[Derivation] | None) -> Fragment | FragmentRef:
        """The fragment of files; the one that is stored where all of them say what they said."""
        from govtool.model.columnar import DERIVATIONS
        from govtool.model.stored_rows import encode_spans, spans_of

        made = [file for file in files if file not in self._found.kept]
        *fresh, last = spans_of([*(self._made[file] for file in made), more or ()])
        spans: dict[str, Sequence[RowSpan]] = {file: [span] for file, span in zip(made, fresh, strict=True)}
        for file in files:
            if file not in spans and (rows := self._rows_of(file)) is not None:
                spans[file] = rows.of_file(file)
        ref = self._earlier.of_files(files) if more is None else None
        if ref is not None and all(self._is_kept(file) or self._is_stored(file, spans[file]) for file in files):
            return ref
        data, count = encode_spans([*(span for file in files for span in spans.get(file, ())), last])
        return Fragment(self._source, DERIVATIONS, data, count)

    def _is_stored(self, file: str, spans: Sequence[RowSpan]) -> bool:
        """Return whether the last ingest stored just these rows of a file."""
        from govtool.model.stored_rows import same_rows

        stored = self._stored_rows(file)
        return stored is not None and same_rows(stored.of_file(file), spans)

    def payload(self, base: IngestPayload, wrote: Callable[[int, int], None] | None = None) -> IngestPayload:
        """The payload of an ingest with these derivations.

        Args:
            base: All else; its derivations come after these.
            wrote: Called with fragments done and in all.

        Raises:
            StoreError: A fragment cannot be read.
        """
        encoded = self.encoded(base.derivations, wrote)
        memos = EarlierIngest(self._found.memos, encoded.places, self._stated, self._yields, self._how)
        return replace(
            base,
            derivations=(),
            more=(*encoded.fragments, *base.more),
            kept=(*encoded.kept, *base.kept),
            sizes=encoded.sizes,
            committed=lambda: save_earlier(self._file, memos),
        )


def _table_digest(table: Any) -> str:
    """A digest of an Arrow table, as it lies in memory: an eighth of the work of writing it as Parquet."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


class _Lazy(Sequence[Derivation]):
    """All derivations of a lineage."""

    def __init__(self, lineage: SourceLineage) -> None:
        self._lineage = lineage

    @cached_property
    def _all(self) -> list[Derivation]:
        lineage = self._lineage
        return [d for part in lineage._found.parts for d in lineage.of_file(part.file)]

    @overload
    def __getitem__(self, index: int) -> Derivation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Derivation]: ...
    def __getitem__(self, index: int | slice) -> Derivation | Sequence[Derivation]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Derivation]:
        return iter(self._all)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What is usable of the last ingest of a source."""

    places: Mapping[str, str]
    files: Mapping[str, list[str]]
    """By fragment the files that it holds, in order."""
    refs: Mapping[str, FragmentRef]
    """The fragments of derivations that the head of the branch has of the source, by digest."""
    facts: Mapping[str, Sequence[Fact]]
    yields: Mapping[str, str]
    fresh: Mapping[str, StoredRows] = field(default_factory=dict)
    """By file with a memo that was made now, by another process, the rows that hold its derivations."""

    def of_files(self, files: list[str]) -> FragmentRef | None:
        """Return the fragment that holds what just these files said; None if there is none."""
        place = self.places.get(files[0], "")
        return self.refs.get(place) if self.files.get(place) == files else None


def extracted_lineage(
    found: Sequence[Script | Diagnostic], settings: Options, report: Callable[[StageProgress], None] | None = None
) -> Extraction:
    """Extract every script."""
    return extract_scripts(found, settings, report)


def lineage_with_memos(
    store: Store,
    branch: str,
    found: Sequence[Script | Diagnostic],
    settings: Options,
    how: str,
    report: Callable[[StageProgress], None] | None = None,
    *,
    with_texts: bool = False,
    workers: int | None = None,
) -> SourceLineage | None:
    """Extract the scripts that the last ingest of a source does not answer for; None where no memos can be made.

    Args:
        store: The store with the last ingest.
        branch: Its branch.
        found: Scripts, and notes of what could not be read.
        settings: The extractor's options.
        how: A digest of all but the scripts that decides how they are read.
        report: As for ``extract_scripts``.
        with_texts: Whether the texts of statements are wanted of which nothing was understood.
        workers: Processes; None: one.

    Raises:
        StoreError: The store cannot be read.
    """
    from govtool.app.ingest.sql_workers import extracted_by_workers
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.memos.reuse import Memos, NotReusable, extract_with_memos, marks_of

    source = settings.source
    file = memo_file(store, source, branch)
    earlier = load_earlier(file)
    usable = _Earlier({}, {}, {}, {}, {})
    memos: Memos | None = None
    if earlier is not None and earlier.how == how:
        usable = _usable(store, branch, source, earlier)
        memos = Memos(earlier.memos.guard, dict(_placed(earlier, usable)))
    marks = marks_of(found, settings, how)
    known = {} if memos is None else memos.scripts
    scripts = [item for item in found if isinstance(item, Script)]
    changed = [each for each in scripts if each.file not in known or known[each.file].mark != marks[each.file]]
    made = extracted_by_workers(changed, settings, how, workers, report)
    if made is not None and (memos is None or memos.guard == made.guard):
        memos = Memos(made.guard, {**known, **made.memos})
        usable = replace(usable, fresh=made.rows)
    try:
        extraction = extract_with_memos(found, settings, how, memos, report, with_texts=with_texts, marks=marks)
    except NotReusable:
        return None
    return SourceLineage(store, source, extraction, usable, file, how)


def _placed(earlier: EarlierIngest, usable: _Earlier) -> Iterator[tuple[str, ScriptMemo]]:
    """The memos of scripts whose derivations, if there are any, the store has."""
    for file, memo in earlier.memos.scripts.items():
        if not memo.outlined or earlier.places.get(file) in usable.refs:
            yield file, memo


def _outlined(derivations: Sequence[Derivation]) -> list[DerivationOutline]:
    from govtool.capture.sql.memos.script_memos import outline_of

    return list(map(outline_of, derivations))


def _usable(store: Store, branch: str, source: str, earlier: EarlierIngest) -> _Earlier:
    from govtool.model.columnar import DERIVATIONS

    head = store.seen(branch)
    live = store.fragments_of(head, source) if head is not None else ()
    refs = {ref.sha256: ref for ref in live if ref.table == DERIVATIONS}
    files: dict[str, list[str]] = {}
    for file, place in earlier.places.items():
        files.setdefault(place, []).append(file)
    return _Earlier(earlier.places, files, refs, earlier.facts, earlier.yields)


def digest_of(how: Sequence[object]) -> str:
    """A digest of all but the scripts that decides an ingest's result, the encoder included."""
    import pyarrow as pa

    from govtool.capture.sql.templates.budget import allowed_seconds

    return hashlib.sha256(json.dumps([*how, pa.__version__, allowed_seconds()]).encode()).hexdigest()
