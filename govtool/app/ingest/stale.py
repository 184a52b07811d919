"""Lineage that is kept although its file cannot be read, or is not understood any more.

A file that is gone from the folder takes its lineage along. One that is there and cannot be read, or of which fewer
statements are understood than before, keeps what it said: else a disk error or a half-written file would take lineage
out of the head. What is kept is marked by a diagnostic ``stale`` with the reason, until the file is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from govtool.errors import GovtoolError
from govtool.model import Derivation, Diagnostic
from govtool.model.fact import FACTS, Fact, decode_facts
from govtool.names import split_name

if TYPE_CHECKING:
    from govtool.capture.sql.schemas.supplied import Schema
    from govtool.store import Commit, FragmentRef, Reader

STALE = "stale"
"""The code of the diagnostic that marks a file whose earlier lineage is kept."""
UNREAD = frozenset({"unreadable", "not-sql"})
"""Codes, with severity ``error``, of files that could not be read at all."""
_FAILURES = UNREAD | {"parse-error", "nesting", "template", "opaque"}
"""Codes of what was not understood at all."""
_NOT_PARSED = frozenset({"parse-error", "nesting", "opaque"})


@dataclass(frozen=True, slots=True)
class KeptLineage:
    """Earlier lineage of files that cannot be read or understood now."""

    derivations: tuple[Derivation, ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    """A diagnostic ``stale`` a file, with the reason."""

    def __bool__(self) -> bool:
        """Return whether anything is kept."""
        return bool(self.derivations or self.facts)

    def schema(self) -> Schema:
        """The columns of the datasets that the kept derivations define: other files may read them."""
        from govtool.capture.sql.schemas.supplied import Schema

        whole = (d for d in self.derivations if d.status == "understood" and d.columns_complete and d.columns)
        return Schema({d.target: {c.path: c.type for c in d.columns if _is_top(c.path)} for d in whole})


def has_failures(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether something was not understood at all, so that earlier lineage may have to be kept."""
    return any(map(_is_failure, diagnostics))


def kept_lineage(
    store: Reader,
    head: Commit,
    source: str,
    diagnostics: Sequence[Diagnostic],
    derivations: Sequence[Derivation],
    facts: Sequence[Fact] = (),
) -> KeptLineage:
    """Find the earlier lineage of files that can no longer be read or understood.

    Args:
        store: The store.
        head: The version before this ingest.
        source: The source that is ingested.
        diagnostics: What was not understood now, as the commit would keep it.
        derivations: What was understood now.
        facts: The facts that are stated now.

    Raises:
        StoreError: A fragment cannot be read.
    """
    refs = store.fragments_of(head, source)
    if _as_before(refs, source, diagnostics):
        return KeptLineage()
    reasons = _reasons(diagnostics, _earlier_diagnostics(store, refs))
    if not reasons:
        return KeptLineage()
    before = [d for d in _earlier_derivations(store, refs) if _reason(d.statement.file, reasons) is not None]
    unread = {file for file, note in reasons.items() if note.code in UNREAD}
    lineage = _lost(before, derivations, unread)
    stated = {(fact.dataset, fact.column, fact.name) for fact in facts}
    earlier = [f for f in _earlier_facts(store, refs) if _reason(f.file, reasons) is not None]
    lost = tuple(fact for fact in earlier if (fact.dataset, fact.column, fact.name) not in stated)
    files = sorted({d.statement.file for d in lineage} | {fact.file for fact in lost})
    return KeptLineage(lineage, lost, tuple(_note(file, reasons) for file in files))


def _as_before(refs: Iterable[FragmentRef], source: str, diagnostics: Sequence[Diagnostic]) -> bool:
    """True if all files were read and the same statements were not understood before. It reads nothing."""
    from govtool.app.coverage.sources import DIAGNOSTICS_TABLE, encode_diagnostics

    if any(note.code in UNREAD and note.severity == "error" for note in diagnostics):
        return False
    digest = hashlib.sha256(encode_diagnostics(source, diagnostics)).hexdigest()
    return any(ref.table == DIAGNOSTICS_TABLE and ref.sha256 == digest for ref in refs)


def _is_failure(note: Diagnostic) -> bool:
    return note.file is not None and note.code in _FAILURES and note.severity != "info"


def _is_top(path: str) -> bool:
    return len(split_name(path)) == 1 and "[" not in path


def _reasons(now: Sequence[Diagnostic], before: Sequence[Diagnostic]) -> dict[str, Diagnostic]:
    """Return why files, or folders that cannot be read, keep their earlier lineage: the first failure of each."""
    failures = Counter(note.file for note in now if _is_failure(note))
    earlier = Counter(note.file for note in before if _is_failure(note))
    marked = {note.file for note in before if note.code == STALE}
    reasons: dict[str, Diagnostic] = {}
    for note in sorted(filter(_is_failure, now), key=lambda note: (note.code not in UNREAD, note.sort_key())):
        unread = note.code in UNREAD and note.severity == "error"
        # A statement that never was understood says nothing of the others: they may be gone on purpose.
        if note.file and (unread or note.file in marked or failures[note.file] > earlier[note.file]):
            reasons.setdefault(note.file, note)
    return reasons


def _reason(file: str, reasons: Mapping[str, Diagnostic]) -> Diagnostic | None:
    """Return why a file keeps its earlier lineage: its own failure, or that of a folder above it."""
    if file in reasons:
        return reasons[file]
    above = (reasons.get(str(folder)) for folder in PurePosixPath(file).parents)
    return next((note for note in above if note is not None and note.code in UNREAD), None)


def _lost(before: Sequence[Derivation], now: Iterable[Derivation], unread: Collection[str]) -> tuple[Derivation, ...]:
    """The derivations of files that failed whose statements are not there any more.

    Of a file that was read, a statement counts as lost where fewer statements make its dataset than before.
    """
    present: dict[tuple[str, str], set[str]] = {}
    for derivation in now:
        if not _is_unread(derivation):
            present.setdefault(_maker(derivation), set()).add(derivation.statement.fingerprint)
    known: dict[tuple[str, str], set[str]] = {}
    sound = [d for d in before if d.status != "opaque" or d.statement.file in unread]
    for derivation in sound:
        known.setdefault(_maker(derivation), set()).add(derivation.statement.fingerprint)
    return tuple(
        d
        for d in sound
        if len(present.get(_maker(d), ())) < len(known[_maker(d)])
        and d.statement.fingerprint not in present.get(_maker(d), ())
    )


def _is_unread(derivation: Derivation) -> bool:
    """Return whether a statement was not understood, so that at most the names of its inputs and outputs are known."""
    unread = any(note.code in _NOT_PARSED for note in derivation.diagnostics)
    return derivation.status == "opaque" or (unread and not derivation.columns)


def _maker(derivation: Derivation) -> tuple[str, str]:
    return derivation.statement.file, derivation.target


def _note(file: str, reasons: Mapping[str, Diagnostic]) -> Diagnostic:
    reason = _reason(file, reasons)
    assert reason is not None
    text = f"the earlier lineage of this file is kept: {reason.message}"
    return Diagnostic(STALE, "warning", text, file, reason.line if reason.file == file else None)


def _earlier_diagnostics(store: Reader, refs: Iterable[FragmentRef]) -> list[Diagnostic]:
    from govtool.app.coverage.sources import DIAGNOSTICS_TABLE, decode_diagnostics

    found = store.read_many([ref for ref in refs if ref.table == DIAGNOSTICS_TABLE])
    return [note for data in found for _, note in decode_diagnostics(data)]


def _earlier_derivations(store: Reader, refs: Iterable[FragmentRef]) -> list[Derivation]:
    from govtool.model.columnar import DERIVATIONS, decode

    found = store.read_many([ref for ref in refs if ref.table == DERIVATIONS])
    return [derivation for data in found for derivation in decode(data)]


def _earlier_facts(store: Reader, refs: Iterable[FragmentRef]) -> list[Fact]:
    found = store.read_many([ref for ref in refs if ref.table == FACTS])
    return [fact for data in found for fact in decode_facts(data)]


def stale_files(diagnostics: Iterable[Diagnostic]) -> int:
    """The number of files whose earlier lineage is kept."""
    return len({note.file for note in diagnostics if note.code == STALE})


def files_kept_stale(store: Reader, commit: Commit) -> frozenset[str]:
    """The files whose earlier lineage a version holds, as they cannot be read or understood any more.

    They are kept in the local cache: queries mark them in every answer.

    Raises:
        StoreError: A fragment cannot be read.
    """
    from govtool.store import cache

    file = cache.cache_dir(store.cache_id, f"{commit.content_id}-stale") / "files.json"
    if cache.lookup(file.parent):
        with contextlib.suppress(OSError, ValueError):  # evicted meanwhile, or damaged: the store knows
            return frozenset(json.loads(file.read_text(encoding="utf-8")))
    found = _read_stale(store, commit)
    text = json.dumps(sorted(found))
    with contextlib.suppress(GovtoolError):  # a cache that cannot be written serves nobody, and harms nobody
        cache.publish(file.parent, lambda folder: _write(folder / file.name, text))
    return found


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _read_stale(store: Reader, commit: Commit) -> frozenset[str]:
    import pyarrow.compute as pc

    from govtool.app.coverage.sources import DIAGNOSTICS_TABLE
    from govtool.model.parquet import read_parquet

    found: set[str] = set()
    for data in store.read_many([ref for ref in store.fragments(commit) if ref.table == DIAGNOSTICS_TABLE]):
        notes = read_parquet(data, columns=("code", "file"))
        found.update(notes.filter(pc.equal(notes["code"], STALE))["file"].drop_null().to_pylist())
    return frozenset(found)
