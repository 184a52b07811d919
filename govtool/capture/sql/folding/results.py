"""From walked scripts to an extraction: what comes of each script, and the whole.

A part of an extraction holds all that comes of one script. The whole is put together from parts alone, so that a part
that is known from an earlier extraction takes the place of its script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from govtool.capture.sql.folding.emit import HOLES, Emitter
from govtool.capture.sql.folding.fold import fold_script
from govtool.capture.sql.options import Options
from govtool.capture.sql.resolve.batch import Batch
from govtool.capture.sql.resolve.reach import bounding_words, loses_a_part, reads_anything, renamed_tables
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.syntax.fingerprint import script_identity
from govtool.capture.sql.syntax.redact import identified
from govtool.capture.sql.templates.missing_values import is_unbounded
from govtool.capture.sql.walk.writes import Write
from govtool.model import Derivation, Diagnostic, Statement
from govtool.model.shortfall import Shortfall as Shortfall
from govtool.names import split_name

MAX_TEXT = 4000
"""Characters of a statement that are kept as evidence."""

_new: Final[Callable[..., Any]] = tuple.__new__
"""Makes a named tuple in a third of the time of its constructor."""

_OUTCOMES: Final = ("understood", "partial", "opaque", "ignored")


@dataclass(frozen=True, slots=True)
class Extraction:
    """The lineage of a batch of scripts."""

    derivations: tuple[Derivation, ...]
    diagnostics: tuple[Diagnostic, ...]
    """All diagnostics, those of derivations included, in order of file and line."""
    statements: int
    """Statements that could carry lineage: ``understood + partial + opaque``."""
    understood: int
    partial: int
    opaque: int
    ignored: int
    """Statements without lineage by their nature: SET, GRANT, COMMIT …"""
    runs: Mapping[str, int] = field(default_factory=dict)
    """The same counts (``understood`` …) by how often the statements were run, according to a log; of a file, once."""
    shortfalls: tuple[Shortfall, ...] = ()
    """Statements that were not fully understood."""


class ScriptPart:
    """All that comes of one script.

    Attributes:
        file: The script's file.
        logged: Whether it comes from a query log.
        derivations: In order of text; none where they are known by what the store has of them.
        defined: The relations that it defines, and the lines on which it does.
        read: Notes of rendering and parsing.
        apart: Notes of statements of which no derivation came.
        noted: Notes of derivations.
        counts: Statements by outcome.
        runs: Their runs.
        shortfalls: Statements that were not fully understood.
        hints: What notes add about names in the supplied schema, by name.
    """

    def __init__(self, file: str, logged: bool = False) -> None:
        self.file = file
        self.logged = logged
        self.derivations: list[Derivation] = []
        self.defined: list[tuple[str, int]] = []
        self.left_open: frozenset[str] = frozenset()
        """Datasets whose schema a template leaves open."""
        self.read: list[Diagnostic] = []
        self.apart: list[Diagnostic] = []
        self.noted: list[Diagnostic] = []
        self.counts: dict[str, int] = dict.fromkeys(_OUTCOMES, 0)
        self.runs: dict[str, int] = {}
        self.shortfalls: list[Shortfall] = []
        self.hints: dict[str, str] = {}


class PartMaker:
    """Makes the parts of scripts, once all statements of the batch are walked."""

    def __init__(self, batch: Batch, options: Options) -> None:
        scripts = batch.scripts
        self.read_names = {name for script in scripts for s in script.statements for w in s.writes for name in w.reads}
        self._batch = batch
        self.renamed = renamed_tables(scripts)
        """The tables that scripts of the batch rename."""
        self._emitter = Emitter(batch, options.namespace, lambda statement, write: _evidence(statement, write, options))

    def hint(self, name: str) -> str:
        """Return what notes add about a name in the supplied schema."""
        return self._emitter.hint(name)

    def part(self, script: ScriptState) -> ScriptPart:
        """Return all that comes of a script."""
        part = ScriptPart(script.file, script.logged)
        self._emitter.hinted = part.hints
        status: dict[int, str] = {}
        for draft in fold_script(script, self.read_names):
            derivation = self._emitter.derivation(draft)
            if draft.ended and not derivation.references:
                continue
            part.derivations.append(derivation)
            number = id(draft.statement)
            if derivation.status == "partial" or number not in status:
                status[number] = derivation.status
        notes = _notes_by_place(part.derivations) if any(s == "partial" for s in status.values()) else {}
        for statement in script.statements:
            outcome = _outcome(statement, status.get(id(statement)))
            part.counts[outcome] += statement.parsed.stands_for
            times = statement.times
            part.runs[outcome] = part.runs.get(outcome, 0) + times
            if outcome in ("partial", "opaque"):
                part.shortfalls.append(_shortfall(statement, outcome, times, notes, self.renamed))
            if id(statement) not in status:
                part.apart += [statement.placed(note) for note in statement.diagnostics]
        part.noted = [note for derivation in part.derivations for note in derivation.diagnostics]
        part.defined = [(d.target, d.statement.line) for d in part.derivations if _defines(d)]
        if script.qualifiers:
            _note_open(part, script)
        return part


def _note_open(part: ScriptPart, script: ScriptState) -> None:
    """Note the datasets whose schema a template leaves open: two tables of one name may be two."""
    of_open = [d for d in part.derivations if not script.qualifiers.isdisjoint(split_name(d.target)[:-1])]
    part.left_open = frozenset([d.target for d in of_open])
    made = [(d.target, d.statement.line) for d in of_open if d.statement.kind == "create_table"]
    part.defined += [item for item in made if item not in part.defined]


def joined(parts: Sequence[ScriptPart], unread: Iterable[Diagnostic]) -> Extraction:
    """Put an extraction together.

    Args:
        parts: Of all scripts, in their order.
        unread: Notes of files that could not be read.
    """
    diagnostics = list(unread)
    for part in parts:
        diagnostics += part.read
    for part in parts:
        diagnostics += part.apart
    for part in parts:
        diagnostics += part.noted
    diagnostics += _duplicates(parts)
    unique = sorted(
        dict.fromkeys(diagnostics), key=lambda d: (d.file or "", d.line or 0, d.column or 0, d.code, d.message)
    )
    counts = {outcome: sum([part.counts[outcome] for part in parts]) for outcome in _OUTCOMES}
    runs = {
        outcome: sum([part.runs.get(outcome, 0) for part in parts])
        for outcome in dict.fromkeys([outcome for part in parts for outcome in part.runs])
    }
    return Extraction(
        tuple([derivation for part in parts for derivation in part.derivations]),
        tuple(unique),
        statements=counts["understood"] + counts["partial"] + counts["opaque"],
        understood=counts["understood"],
        partial=counts["partial"],
        opaque=counts["opaque"],
        ignored=counts["ignored"],
        runs=runs,
        shortfalls=tuple([shortfall for part in parts for shortfall in part.shortfalls]),
    )


_Place = tuple[str, str | None, int]


def _notes_by_place(derivations: list[Derivation]) -> dict[_Place, dict[str, Diagnostic]]:
    """Return the notes of statements as their derivations were written, by session, file and line: the first of each
    severity, as a line may have thousands of statements.
    """
    notes: dict[_Place, dict[str, Diagnostic]] = {}
    for derivation in derivations:
        if derivation.diagnostics:
            evidence = derivation.statement
            of_line = notes.setdefault((evidence.file, evidence.session, evidence.line), {})
            for note in derivation.diagnostics:
                of_line.setdefault(note.severity, note)
    return notes


def _shortfall(
    statement: StatementState,
    outcome: str,
    times: int,
    noted: Mapping[_Place, Mapping[str, Diagnostic]],
    renamed: Mapping[str, str],
) -> Shortfall:
    notes = [statement.placed(note) for note in statement.diagnostics]
    notes += noted.get((statement.file, _session(statement), statement.parsed.line), {}).values()
    severities = ("error", "warning", "info")
    worst = min(notes, key=lambda note: severities.index(note.severity), default=None)
    if worst is None:
        worst = Diagnostic("opaque", "warning", "not understood", statement.file, statement.parsed.line)
    words = bounding_words(statement, renamed) if outcome == "opaque" else ()
    return Shortfall(outcome, worst, times, statement.parsed.text, statement.script.dialect, words)


def _outcome(statement: StatementState, status: str | None) -> str:
    if statement.parsed.status in ("opaque", "failed"):
        return "opaque"
    if statement.parsed.status == "ignored" or (not statement.writes and not statement.diagnostics):
        return "ignored"
    if any(note.severity == "error" for note in statement.diagnostics):
        return "opaque"
    if any(map(is_unbounded, statement.diagnostics)) or loses_a_part(statement):
        return "opaque"
    if reads_anything(statement) or (status != "understood" and _reads_are_lost(statement)):
        return "opaque"
    if status is None:
        return "partial" if any(n.severity == "warning" for n in statement.diagnostics) else "understood"
    return status


def _reads_are_lost(statement: StatementState) -> bool:
    """Return whether a part of the text is missing, and what is left reads nothing or writes nothing: what the part
    reads may be anything, and what is read may go anywhere.
    """
    holes = any(note.code in HOLES for note in statement.diagnostics)
    return holes and not any(
        (write.target or write.kind == "select") and (write.reads or write.dataset_reads) for write in statement.writes
    )


def _evidence(statement: StatementState, write: Write, options: Options) -> Statement:
    if statement.identity is None:  # several writes of a statement have one
        statement.identity = _identity(statement, options)
    identity, literals, text = statement.identity
    seen = statement.logged
    evidence: Statement = _new(
        Statement,
        (
            identity,
            write.kind,
            statement.script.dialect,
            statement.file,
            statement.parsed.line,
            options.source,
            "sql",
            _session(statement),
            text[:MAX_TEXT],
            None,
            None if seen is None else seen.principal,
            None if seen is None else seen.first_seen,
            None if seen is None else seen.last_seen,
            statement.times,
            max([bound[0] for bound in write.bounds]) if write.bounds else None,
            (),
            write.places,
            literals,
        ),
    )
    return evidence


def _identity(statement: StatementState, options: Options) -> tuple[str, str | None, str]:
    """The fingerprint of a statement, the digest of its literals unless it was logged, and the text that is kept."""
    text, dialect = statement.parsed.text, statement.script.dialect
    if not options.evidence:  # the name of a bare SELECT has to be its own, and no more
        return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest(), None, ""
    if options.keep_literals:
        identity, literals = script_identity(text, dialect)
        shown = text
    else:
        identity, literals, shown = identified(text, dialect)
    return identity, literals if statement.logged is None else None, shown


def _session(statement: StatementState) -> str:
    """The session of a statement; variants of a template are alternatives: their order means nothing."""
    return statement.script.session + (f"#{statement.variant}" if statement.variant else "")


def _defines(derivation: Derivation) -> bool:
    """Return whether a derivation defines a relation, as several files must not."""
    defines = derivation.mode == "replace" and derivation.statement.kind != "insert"
    return defines and derivation.target_kind not in ("query", "temporary", "file")


def _duplicates(parts: Sequence[ScriptPart]) -> list[Diagnostic]:
    """Note relations that several files define; all definitions are kept."""
    files: dict[str, dict[str, int]] = {}
    logs = {part.file for part in parts if part.logged}
    for part in parts:
        if part.file not in logs:
            for target, line in part.defined:
                files.setdefault(target, {}).setdefault(part.file, line)
    left_open = {target for part in parts for target in part.left_open}
    notes = []
    for target, definers in sorted(files.items()):
        if len(definers) > 1:
            where = ", ".join(sorted(definers))
            unset = "; its schema has no value and may be another one in each: give --var NAME=VALUE"
            hint = unset if target in left_open else ""
            for file, line in sorted(definers.items()):
                text = f"{target} is defined by {len(definers)} files, and all are kept: {where}{hint}"
                notes.append(Diagnostic("duplicate-definition", "info", text, file, line, None, target))
    return notes
