"""SQL text to derivations: the public face of the extractor.

    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script

    extraction = extract([Script("q.sql", "CREATE VIEW v AS SELECT a FROM t")], Options(dialect="postgres"))

The steps: templates are rendered, scripts split and parsed (``script``), definitions found and statements walked in the
order in which they need each other (``batch``), ambiguous ones once more when usage has shown more columns, and the
writes of each script folded and written out (``emit``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from govtool.capture.sql.batch import Batch
from govtool.capture.sql.collector import Uncollected, deep_recursion
from govtool.capture.sql.deferred import Deferred, described_tables, known_tables
from govtool.capture.sql.emit import HOLES, Emitter
from govtool.capture.sql.files import Script
from govtool.capture.sql.fingerprint import fingerprint, redact
from govtool.capture.sql.fold import fold_script
from govtool.capture.sql.knowledge import Knowledge, Usage
from govtool.capture.sql.logged import LoggedScript
from govtool.capture.sql.options import Options as Options
from govtool.capture.sql.options import defaults, relation_of
from govtool.capture.sql.parameters import routine_of
from govtool.capture.sql.reach import bounding_words, reads_anything, renamed_tables
from govtool.capture.sql.replay import logged_state, redact_notes
from govtool.capture.sql.routine_calls import mark_unknown_calls
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import TreeCache
from govtool.capture.sql.states import ScriptState, StatementState
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.run import ColumnsOf
from govtool.capture.sql.templates.template import UNNAMED_RELATION, Rendered, Variant, render
from govtool.capture.sql.walk.writes import Write
from govtool.errors import GovtoolError
from govtool.model import Derivation, Diagnostic, Statement

MAX_TEXT = 4000
"""Characters of a statement that are kept as evidence."""

USAGE_ROUNDS = 3
"""Number of further walks after usage has shown more columns."""

_new: Final[Callable[..., Any]] = tuple.__new__
"""Makes a named tuple in a third of the time of its constructor."""


class Shortfall(NamedTuple):
    """A statement that was not fully understood, and the worst of why."""

    status: str
    """``partial`` or ``opaque``."""
    diagnostic: Diagnostic
    runs: int
    text: str
    """As written."""
    dialect: str
    words: tuple[str, ...] = ()
    """Of a statement that was not understood at all: its words, if it can reach nothing but what it names."""


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
    """The same counts (``understood`` …) by how often a log says the statements were run; of a file, once."""
    shortfalls: tuple[Shortfall, ...] = ()
    """Statements that were not fully understood."""


def extract(
    scripts: Iterable[Script | Diagnostic], options: Options, progress: Callable[[int, int], None] | None = None
) -> Extraction:
    """Extract column lineage from a batch of scripts, whose statements may come in any order.

    Args:
        scripts: Scripts, and diagnostics of files that could not be read (passed through).
        options: Dialect, schema, defaults, naming.
        progress: Called with (statements done, statements in all) now and then.

    Returns:
        Derivations in order of script and text, and everything that was not understood.

    Raises:
        UnknownNameError: The dialect does not exist.
    """
    return next(extract_in_turn([scripts], options, progress))


def extract_in_turn(
    groups: Iterable[Iterable[Script | LoggedScript | Diagnostic]],
    options: Options,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Extraction]:
    """Extract group by group, with the memory of one group at a time.

    A group is resolved like a batch of its own, and with all that earlier groups define. So definitions come first, and
    the many queries of a log, which define nothing, in as many groups as memory asks for.
    """
    batch = Batch(known_tables(options), described_tables(options))
    for group in groups:
        batch.scripts = []
        yield _extract_group(batch, group, options, progress)


def extract_definitions(
    scripts: Iterable[LoggedScript], options: Options, progress: Callable[[int, int], None] | None = None
) -> tuple[Extraction, Knowledge]:
    """Extract all that a log makes and fills, and what that says to its queries."""
    batch = Batch(options.schema.tables if options.schema is not None else None)
    extraction = _extract_group(batch, scripts, options, progress)
    return extraction, batch.knowledge()


class Queries(NamedTuple):
    """The lineage of a group of queries."""

    extraction: Extraction
    usage: Usage
    """Columns that the group shows, and those that were known."""
    unsettled: tuple[int, ...]
    """Scripts that knowing more columns from usage could change, by their place in the group: not extracted."""


def extract_queries(
    scripts: Iterable[LoggedScript], options: Options, knowledge: Knowledge, *, final: bool = True
) -> Queries:
    """Extract a group of queries with what the definitions, and perhaps other queries, say.

    Args:
        scripts: They define nothing.
        options: As for the definitions.
        knowledge: What is known of tables.
        final: Whether nothing more will be known; otherwise scripts that it could change are left out.
    """
    batch = Batch(options.schema.tables if options.schema is not None else None, knowledge)
    left: list[int] = []
    extraction = _extract_group(batch, scripts, options, None, None if final else left)
    return Queries(extraction, batch.usage(), tuple(left))


def _extract_group(
    batch: Batch,
    group: Iterable[Script | LoggedScript | Diagnostic],
    options: Options,
    progress: Callable[[int, int], None] | None,
    unsettled: list[int] | None = None,
) -> Extraction:
    diagnostics: list[Diagnostic] = []
    batch.keeps_places = options.evidence
    with Uncollected() as trees:
        read = list(group)
        texts = [item.text for item in read if isinstance(item, Script) and "{" in item.text and "macro" in item.text]
        macros = MacroLibrary(texts, options.projects)
        deferred = Deferred(batch, options)
        for item in read:
            if isinstance(item, Diagnostic):
                diagnostics.append(item)
            elif isinstance(item, LoggedScript):
                catalog, schema = defaults(options)
                batch.add(logged_state(item, options.dialect, catalog, schema, batch.tree_cache))
            else:
                state = _ScriptMaker(item, options, macros, diagnostics, batch.tree_cache)
                rendered = state.render(None)
                if rendered.wanted:
                    deferred.defer(relation_of(item.file, options), state)
                else:
                    batch.add(state.parse(rendered))
        with deep_recursion():
            deferred.settle()
            _walk_all(batch, progress)
            for script in batch.scripts:
                if script.logged and not options.keep_literals:
                    redact_notes(script)
            trees.statements = sum([len(script.statements) for script in batch.scripts])
            if unsettled is not None:
                open_ = [any(s.unsettled for s in script.statements) for script in batch.scripts]
                unsettled.extend(number for number, is_open in enumerate(open_) if is_open)
                batch.scripts = [s for s, is_open in zip(batch.scripts, open_, strict=True) if not is_open]
            return _emit(batch, options, diagnostics)


class _ScriptMaker:
    """Renders and parses one script, with what tells columns or without."""

    def __init__(
        self,
        script: Script,
        options: Options,
        macros: MacroLibrary,
        diagnostics: list[Diagnostic],
        tree_cache: TreeCache,
    ) -> None:
        self.script = script
        self.options = options
        self.macros = macros
        self.diagnostics = diagnostics
        self.tree_cache = tree_cache

    def __call__(self, columns: ColumnsOf) -> ScriptState:
        return self.parse(self.render(columns))

    def render(self, columns: ColumnsOf | None) -> Rendered:
        script, options = self.script, self.options
        try:
            return render(
                script.text,
                options.variables,
                script.file,
                macros=self.macros,
                dialect=options.dialect,
                columns=columns,
            )
        except GovtoolError:
            raise
        except Exception as error:  # whatever a file holds, it must not cost the files around it
            note = Diagnostic(
                "template", "error", f"this template could not be rendered ({_error_text(error)})", script.file
            )
            return Rendered((Variant(script.text),), (note,))

    def parse(self, rendered: Rendered) -> ScriptState:
        script, options = self.script, self.options
        try:
            return _script_state(script, rendered, options, self.diagnostics, self.tree_cache)
        except GovtoolError:
            raise
        except Exception as error:
            what = f"this script could not be read ({_error_text(error)})"
            self.diagnostics.append(Diagnostic("unreadable", "error", what, script.file))
            return ScriptState(script.file, script.session or script.file, options.dialect)


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:120]}"


def _script_state(
    script: Script, rendered: Rendered, options: Options, diagnostics: list[Diagnostic], tree_cache: TreeCache
) -> ScriptState:
    """Parse one script."""
    state = ScriptState(script.file, script.session or script.file, options.dialect)
    relation = relation_of(script.file, options)
    seen: set[tuple[int, str]] = set()
    failed: set[int] = set()
    several = len(rendered.variants) > 1
    for number, variant in enumerate(rendered.variants):
        catalog, schema = defaults(options)
        path: tuple[str, ...] = ()
        noted: set[tuple[int, str]] = set()
        line_of = variant.line_of if variant.lines else None
        if variant.lines and state.template is None:
            state.template = script.text.split("\n")
        found = parse_script(variant.text, options.dialect, file=script.file, line_of=line_of, tree_cache=tree_cache)
        for parsed in found:
            if parsed.session is not None:
                change = parsed.session
                catalog = change.catalog if change.catalog is not None else catalog
                schema = change.schema if change.schema is not None else schema
                path = change.search_path or (() if change.schema is not None else path)
            if parsed.head.startswith("create ") and parsed.status == "ignored":
                routine = routine_of(parsed.text, options.dialect)
                if routine is not None:
                    state.variables.setdefault(routine[0], set()).update(routine[1])
            if several:
                key = (parsed.line, parsed.text)
                if key in seen:
                    continue
                noted.add(key)
            if parsed.status == "failed":
                if number and parsed.line in failed:  # other branches of a place that no branch makes SQL of
                    continue
                failed.add(parsed.line)
            statement = StatementState(
                parsed, state, len(state.statements), catalog, schema, path, variant=number, tree=parsed.tree
            )
            statement.relation = relation if parsed.routine is None else None
            statement.line_map = variant.line_of
            statement.diagnostics.extend(parsed.diagnostics)
            state.statements.append(statement)
        seen |= noted
    diagnostics.extend(note for note in rendered.diagnostics if not _missing(note, state.statements))
    return state


def _missing(note: Diagnostic, statements: list[StatementState]) -> bool:
    """Note of a statement that SQL is missing from it, as a macro is not known; False where it is in none."""
    if note.code != "template" or note.severity != "warning" or note.line is None:
        return False
    lines = [s.parsed.line for s in statements if s.tree is not None and s.parsed.line <= note.line]
    owners = [s for s in statements if s.tree is not None and lines and s.parsed.line == max(lines)]
    for statement in owners:
        statement.diagnostics.append(note)
    return bool(owners)


def _walk_all(batch: Batch, progress: Callable[[int, int], None] | None) -> None:
    total = sum(len(script.statements) for script in batch.scripts)
    done = 0
    for script in batch.scripts:
        for statement in script.statements:
            batch.settle(statement)
            done += 1
            if progress is not None and done % 64 == 0:
                progress(done, total)
    if batch.circular:
        batch.settle_loops()
    for _ in range(USAGE_ROUNDS):
        unsettled = [s for script in batch.scripts for s in script.statements if s.unsettled]
        shown = batch.usage_size()
        if not unsettled or shown == batch.usage_seen:
            break
        batch.usage_seen = shown
        for statement in unsettled:
            batch.walk_again(statement)
    if progress is not None:
        progress(total, total)


def _emit(batch: Batch, options: Options, diagnostics: list[Diagnostic]) -> Extraction:
    mark_unknown_calls(batch.scripts, batch.routines)
    read_names = {name for script in batch.scripts for s in script.statements for w in s.writes for name in w.reads}
    emitter = Emitter(batch, options.namespace, lambda statement, write: _evidence(statement, write, options))
    derivations: list[Derivation] = []
    status: dict[int, str] = {}
    for script in batch.scripts:
        for draft in fold_script(script, read_names):
            derivation = emitter.derivation(draft)
            derivations.append(derivation)
            number = id(draft.statement)
            if derivation.status == "partial" or number not in status:
                status[number] = derivation.status
    logs = {script.file for script in batch.scripts if script.logged}
    duplicates = _duplicates([d for d in derivations if d.statement.file not in logs] if logs else derivations)
    counts = dict.fromkeys(("understood", "partial", "opaque", "ignored"), 0)
    runs: dict[str, int] = {}
    shortfalls: list[Shortfall] = []
    renamed: Mapping[str, str] | None = None
    notes = _notes_by_place(derivations) if any(s == "partial" for s in status.values()) else {}
    for script in batch.scripts:
        for statement in script.statements:
            outcome = _outcome(statement, status.get(id(statement)))
            counts[outcome] += statement.parsed.stands_for
            times = statement.times
            runs[outcome] = runs.get(outcome, 0) + times
            if outcome in ("partial", "opaque"):
                if renamed is None:
                    renamed = renamed_tables(batch.scripts)
                shortfalls.append(_shortfall(statement, outcome, times, notes, renamed))
            if id(statement) not in status:
                diagnostics.extend(statement.placed(note) for note in statement.diagnostics)
    diagnostics.extend(note for derivation in derivations for note in derivation.diagnostics)
    diagnostics.extend(duplicates)
    unique = sorted(
        dict.fromkeys(diagnostics), key=lambda d: (d.file or "", d.line or 0, d.column or 0, d.code, d.message)
    )
    return Extraction(
        tuple(derivations),
        tuple(unique),
        statements=counts["understood"] + counts["partial"] + counts["opaque"],
        understood=counts["understood"],
        partial=counts["partial"],
        opaque=counts["opaque"],
        ignored=counts["ignored"],
        runs=runs,
        shortfalls=tuple(shortfalls),
    )


_Place = tuple[str, str | None, int]


def _notes_by_place(derivations: list[Derivation]) -> dict[_Place, list[Diagnostic]]:
    """Return the notes of statements as their derivations were written, by session, file and line."""
    notes: dict[_Place, list[Diagnostic]] = {}
    for derivation in derivations:
        if derivation.diagnostics:
            evidence = derivation.statement
            notes.setdefault((evidence.file, evidence.session, evidence.line), []).extend(derivation.diagnostics)
    return notes


def _shortfall(
    statement: StatementState,
    outcome: str,
    times: int,
    noted: Mapping[_Place, list[Diagnostic]],
    renamed: Mapping[str, str],
) -> Shortfall:
    notes = [statement.placed(note) for note in statement.diagnostics]
    notes += noted.get((statement.file, _session(statement), statement.parsed.line), [])
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
    if any(note.code == "template" and note.message.endswith(UNNAMED_RELATION) for note in statement.diagnostics):
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
    parsed: ParsedStatement = statement.parsed
    dialect = statement.script.dialect
    if options.evidence:
        identity = fingerprint(parsed.text, dialect)
    else:  # the name of a bare SELECT has to be its own, and no more
        identity = blake2b(parsed.text.encode("utf-8", "replace"), digest_size=16).hexdigest()
    text = ""
    if options.evidence:
        text = parsed.text if options.keep_literals else redact(parsed.text, dialect)
    seen = statement.logged
    evidence: Statement = _new(
        Statement,
        (
            identity,
            write.kind,
            dialect,
            statement.file,
            parsed.line,
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
        ),
    )
    return evidence


def _session(statement: StatementState) -> str:
    """The session of a statement; variants of a template are alternatives: their order says nothing."""
    return statement.script.session + (f"#{statement.variant}" if statement.variant else "")


def _duplicates(derivations: list[Derivation]) -> list[Diagnostic]:
    """Note relations that several files define; all definitions are kept."""
    files: dict[str, dict[str, Derivation]] = {}
    for derivation in derivations:
        defines = derivation.mode == "replace" and derivation.statement.kind != "insert"
        if defines and derivation.target_kind not in ("query", "temporary", "file"):
            files.setdefault(derivation.target, {}).setdefault(derivation.statement.file, derivation)
    notes = []
    for target, definers in sorted(files.items()):
        if len(definers) > 1:
            where = ", ".join(sorted(definers))
            for file, derivation in sorted(definers.items()):
                text = f"{target} is defined by {len(definers)} files, and all are kept: {where}"
                notes.append(
                    Diagnostic("duplicate-definition", "info", text, file, derivation.statement.line, None, target)
                )
    return notes
