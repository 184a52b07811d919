"""SQL text to derivations: the public face of the extractor.

    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script

    extraction = extract([Script("q.sql", "CREATE VIEW v AS SELECT a FROM t")], Options(dialect="postgres"))

The steps: templates are rendered, scripts split and parsed (``script``), definitions found and statements walked in the
order in which they need each other (``batch``), ambiguous ones once more when usage has shown more columns, and the
writes of each script folded and written out (``emit``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from govtool.capture.sql.collector import Uncollected, deep_recursion
from govtool.capture.sql.files import Script
from govtool.capture.sql.folding.results import Extraction as Extraction
from govtool.capture.sql.folding.results import PartMaker, ScriptPart, joined
from govtool.capture.sql.folding.results import Shortfall as Shortfall
from govtool.capture.sql.options import Options as Options
from govtool.capture.sql.options import defaults, relation_of
from govtool.capture.sql.resolve import template_holes
from govtool.capture.sql.resolve.batch import Batch
from govtool.capture.sql.resolve.deferred import Deferred, described_tables, known_tables
from govtool.capture.sql.resolve.inclusions import mark_missing_scripts
from govtool.capture.sql.resolve.knowledge import Knowledge, Usage
from govtool.capture.sql.resolve.logged import LoggedScript
from govtool.capture.sql.resolve.logged_statements import logged_state, redact_notes
from govtool.capture.sql.resolve.parameters import routine_of
from govtool.capture.sql.resolve.routine_calls import mark_unknown_calls
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.scripts.session import SessionChange
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import TreeCache
from govtool.capture.sql.stages import RESOLVING, Report, Stages
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.missing_values import is_unbounded
from govtool.capture.sql.templates.run import ColumnsOf
from govtool.capture.sql.templates.template import Rendered, Variant, render
from govtool.errors import GovtoolError
from govtool.model import Diagnostic

USAGE_ROUNDS = 3
"""Number of further walks after usage has shown more columns."""


def extract(scripts: Iterable[Script | Diagnostic], options: Options, report: Report | None = None) -> Extraction:
    """Extract column lineage from a batch of scripts, whose statements may come in any order.

    Args:
        scripts: Scripts, and diagnostics of files that could not be read (passed through).
        options: Dialect, schema, defaults, naming.
        report: Called with the stage now and then.

    Returns:
        Derivations in order of script and text, and everything that was not understood.

    Raises:
        UnknownNameError: The dialect does not exist.
    """
    batch = Batch(known_tables(options), described_tables(options))
    return _extract_group(batch, scripts, options, Stages(report))


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
        yield _extract_group(batch, group, options, _walking(progress))


def extract_definitions(
    scripts: Iterable[LoggedScript], options: Options, report: Report | None = None
) -> tuple[Extraction, Knowledge]:
    """Extract all that a log makes and fills, and what queries need of it."""
    batch = Batch(options.schema.tables if options.schema is not None else None)
    extraction = _extract_group(batch, scripts, options, Stages(report))
    return extraction, batch.knowledge()


class Queries(NamedTuple):
    """The lineage of a group of queries."""

    extraction: Extraction
    usage: Usage
    """Columns that the group shows, and those that were known."""
    unsettled: tuple[int, ...]
    """Scripts that knowing more columns from usage could change, by their place in the group: not extracted."""


def extract_queries(
    scripts: Iterable[LoggedScript],
    options: Options,
    knowledge: Knowledge,
    *,
    final: bool = True,
    report: Report | None = None,
) -> Queries:
    """Extract a group of queries with the definitions, and perhaps with what other queries show.

    Args:
        scripts: They define nothing.
        options: As for the definitions.
        knowledge: What is known of tables.
        final: Whether nothing more will be known; otherwise scripts that it could change are left out.
        report: Takes the stages.
    """
    batch = Batch(options.schema.tables if options.schema is not None else None, knowledge)
    left: list[int] = []
    extraction = _extract_group(batch, scripts, options, Stages(report), None if final else left)
    return Queries(extraction, batch.usage(), tuple(left))


def _extract_group(
    batch: Batch,
    group: Iterable[Script | LoggedScript | Diagnostic],
    options: Options,
    stages: Stages,
    unsettled: list[int] | None = None,
) -> Extraction:
    diagnostics: list[Diagnostic] = []
    batch.keeps_places = options.evidence
    with Uncollected() as trees:
        read = list(group)
        macros = macros_of(read, options)
        deferred = Deferred(batch, options)
        for done, item in enumerate(read, 1):
            script: ScriptState | None = None
            if isinstance(item, Diagnostic):
                diagnostics.append(item)
            elif isinstance(item, LoggedScript):
                catalog, schema = defaults(options)
                script = logged_state(item, options.dialect, catalog, schema, batch.tree_cache)
            else:
                state = ScriptMaker(item, options, macros, diagnostics, batch.tree_cache)
                rendered = state.render(None)
                if rendered.wanted:
                    deferred.defer(relation_of(item.file, options), state)
                else:
                    script = state.parse(rendered)
            if script is not None:
                batch.add(script)
            stages.parsed(done, len(read), script)
        with deep_recursion():
            deferred.settle()
            walk_all(batch, stages.resolved)
            for each in batch.scripts:
                if each.logged and not options.keep_literals:
                    redact_notes(each)
            trees.statements = sum([len(script.statements) for script in batch.scripts])
            # The caller resolves these once more, with the columns that other groups have shown.
            if unsettled is not None:
                open_ = [any(s.unsettled for s in script.statements) for script in batch.scripts]
                unsettled.extend(number for number, is_open in enumerate(open_) if is_open)
                batch.scripts = [s for s, is_open in zip(batch.scripts, open_, strict=True) if not is_open]
            mark_unknown_calls(batch.scripts, batch.routines)
            mark_missing_scripts(batch.scripts)
            maker = PartMaker(batch, options)
            parts: list[ScriptPart] = []
            for each in batch.scripts:
                parts.append(maker.part(each))
                stages.described(len(parts), len(batch.scripts), parts[-1].counts["opaque"])
            return joined(parts, diagnostics)


def _walking(progress: Callable[[int, int], None] | None) -> Stages:
    """Stages of which the walk alone is reported."""
    if progress is None:
        return Stages(None)
    return Stages(lambda stage: progress(stage.done, stage.total) if stage.name == RESOLVING else None)


def macros_of(read: Iterable[Script | LoggedScript | Diagnostic], options: Options) -> MacroLibrary:
    """Return the macros that scripts and dbt projects define."""
    texts = [item.text for item in read if isinstance(item, Script) and "{" in item.text and "macro" in item.text]
    return MacroLibrary(texts, options.projects)


class ScriptMaker:
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
        """Return the script with what tells columns."""
        return self.parse(self.render(columns))

    def render(self, columns: ColumnsOf | None) -> Rendered:
        """Return the script's text with its templates rendered."""
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
        """Return its statements, parsed."""
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
    state.qualifiers = frozenset(rendered.qualifiers)
    relation = relation_of(script.file, options)
    seen: set[tuple[int, str]] = set()
    failed: set[int] = set()
    several = len(rendered.variants) > 1
    for number, variant in enumerate(rendered.variants):
        names = _Names(*defaults(options))
        noted: set[tuple[int, str]] = set()
        line_of = variant.line_of if variant.lines else None
        if variant.lines and state.template is None:
            state.template = script.text.split("\n")
        found = parse_script(variant.text, options.dialect, file=script.file, line_of=line_of, tree_cache=tree_cache)
        for parsed in found:
            if parsed.session is not None:
                names.change(parsed.session)
            _note_parameters(state, parsed)
            if several:
                key = (parsed.line, parsed.text)
                if key in seen:
                    continue
                noted.add(key)
            if parsed.status == "failed":
                if number and parsed.line in failed:  # other branches of a place that no branch makes SQL of
                    continue
                failed.add(parsed.line)
            here = names.within(parsed.within)
            statement = StatementState(
                parsed,
                state,
                len(state.statements),
                here.catalog,
                here.schema,
                here.path,
                variant=number,
                tree=parsed.tree,
            )
            statement.relation = relation if parsed.routine is None else None
            statement.line_map = variant.line_of
            statement.diagnostics.extend(parsed.diagnostics)
            state.statements.append(statement)
        seen |= noted
    faulty = any(note.severity != "info" for each in state.statements for note in each.diagnostics)
    for note in template_holes.note_holes(rendered, state):
        if is_unbounded(note):
            state.statements.append(_unread(state, note, options))
        elif faulty and note.severity == "info":  # a warning of a macro may say why its SQL is none
            diagnostics.append(Diagnostic(note.code, "warning", note.message, note.file, note.line))
        else:
            diagnostics.append(note)
    return state


def _unread(state: ScriptState, note: Diagnostic, options: Options) -> StatementState:
    """The statement that SQL would be that is missing from a template, and in no other statement."""
    parsed = ParsedStatement(None, "", note.line or 1, 1, "opaque", "", diagnostics=(note,))
    statement = StatementState(parsed, state, len(state.statements), *defaults(options), ())
    statement.diagnostics.append(note)
    return statement


class _Names:
    """What completes names at a statement: the catalog, the schema and the search path of the session."""

    def __init__(self, catalog: str | None, schema: str | None) -> None:
        self.catalog = catalog
        self.schema = schema
        self.path: tuple[str, ...] = ()

    def change(self, change: SessionChange) -> None:
        """Apply USE, SET search_path and the like."""
        self.catalog = change.catalog if change.catalog is not None else self.catalog
        self.schema = change.schema if change.schema is not None else self.schema
        self.path = change.search_path or (() if change.schema is not None else self.path)

    def within(self, change: SessionChange | None) -> _Names:
        """The names of one statement, whose routine has settings of its own."""
        if change is None:
            return self
        found = _Names(self.catalog, self.schema)
        found.path = self.path
        found.change(change)
        return found


def _note_parameters(state: ScriptState, parsed: ParsedStatement) -> None:
    """Note the parameters of a routine whose body is read as statements: they are no columns."""
    if parsed.head.startswith("create ") and parsed.status == "ignored":
        routine = routine_of(parsed.text, state.dialect)
        if routine is not None:
            state.variables.setdefault(routine[0], set()).update(routine[1])


def walk_all(batch: Batch, progress: Callable[[int, int], None]) -> None:
    """Walk all statements of a batch, and those again that usage has shown more columns for."""
    total = sum(len(script.statements) for script in batch.scripts)
    done = 0
    for script in batch.scripts:
        for statement in script.statements:
            batch.settle(statement)
            done += 1
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
    if batch.tree_cache.holds_many:
        for script in batch.scripts:
            for statement in script.statements:
                batch.let_go(statement)
