"""Extraction from memos: scripts that did not change take the outcome of their earlier walks, as far as it holds.

A full extraction is a program: statements are walked in order, or earlier where another needs what they define. Here
the same program runs, with one difference. Where an unchanged statement would be walked, the looks that its walk took
at other scripts are taken again, in their order. They settle the same statements in the same order as the walk would
have; where every answer is the recorded one, so is the outcome. The first answer that differs ends that: the script is
parsed, and the statement walked. So the result is that of a full extraction, to the byte, whatever memos there are of
scripts that are still the same; a memo that is not of the script's text and options is not looked at.

What holds for all scripts at once is compared as a whole: scripts with triggers, synonyms, partitions, table types and
blocks that return rows are always parsed, and a change of one of them drops all memos (``guard``). A template that asks
for columns is given again what it wants: with the same answers, in the same order, it renders to the same text.
Files of one name end the reuse altogether (``NotReusable``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from govtool.capture.sql.collector import Uncollected, deep_recursion
from govtool.capture.sql.extract import Options, ScriptMaker, macros_of, walk_all
from govtool.capture.sql.files import Script
from govtool.capture.sql.folding.results import Extraction, PartMaker, ScriptPart, joined
from govtool.capture.sql.memos.looks import looks_hold
from govtool.capture.sql.memos.script_memos import (
    ScriptMemo,
    dropped_names,
    has_memo,
    memo_of,
    part_of,
    script_of,
    walks_of,
    write_of,
)
from govtool.capture.sql.options import relation_of
from govtool.capture.sql.resolve.batch import Batch
from govtool.capture.sql.resolve.deferred import Answers, Deferred, described_tables, known_tables
from govtool.capture.sql.resolve.inclusions import mark_missing_scripts
from govtool.capture.sql.resolve.inline import inline_function
from govtool.capture.sql.resolve.routine_calls import defined_routines, mark_unknown_calls, missing_routines
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.resolve.temporary_tables import note_later
from govtool.capture.sql.stages import Report, Stages
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.run import ColumnsOf
from govtool.capture.sql.templates.template import Rendered
from govtool.capture.sql.walk.relation import ViewBase
from govtool.capture.sql.walk.state import Inline
from govtool.model import Diagnostic

ROUNDS: Final = 4
"""Extractions from memos before the memos of all scripts that were ever opened are given up at once."""

_BROKEN: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError)
"""Exceptions of a memo that is of another shape."""


class NotReusable(Exception):
    """The batch holds something of which no memos are made; it is extracted without any."""


@dataclass(frozen=True, slots=True)
class Memos:
    """The memos of a batch."""

    guard: str
    """A digest of the scripts that apply to all."""
    scripts: Mapping[str, ScriptMemo]
    """By file."""


@dataclass(frozen=True, slots=True)
class MemoExtraction:
    """An extraction, and the memos for the next."""

    extraction: Extraction
    """Its derivations are those of the scripts that were walked."""
    parts: Sequence[ScriptPart]
    """Of all scripts, in their order."""
    kept: frozenset[str]
    """The files of which the memos stood for the scripts."""
    memos: Memos
    """Those that were made now as text alone."""


def extract_with_memos(
    scripts: Sequence[Script | Diagnostic],
    options: Options,
    settings_digest: str,
    earlier: Memos | None = None,
    report: Report | None = None,
    *,
    with_texts: bool = False,
    marks: Mapping[str, str] | None = None,
) -> MemoExtraction:
    """Extract a batch with the memos of an earlier extraction, and make those of this one.

    Args:
        scripts: As for ``extract``.
        options: As for ``extract``.
        settings_digest: A digest of the options, the extractor, and all else but the scripts that decides the result.
        earlier: The memos of an earlier extraction.
        report: Called with the stage now and then.
        with_texts: Whether the texts of statements are wanted of which nothing was understood.
        marks: The ``marks_of`` the scripts, where they are known.

    Raises:
        NotReusable: The batch holds something of which no memos are made.
        UnknownNameError: The dialect does not exist.
    """
    read = list(scripts)
    files = [item.file for item in read if isinstance(item, Script)]
    if len(set(files)) < len(files):
        raise NotReusable
    macros = macros_of(read, options)
    marks = marks_of(read, options, settings_digest) if marks is None else marks
    usable = (
        {}
        if earlier is None
        else {file: memo for file, memo in earlier.scripts.items() if marks.get(file) == memo.mark}
    )
    if with_texts:
        usable = {file: memo for file, memo in usable.items() if not memo.shows_text}
    for number in range(ROUNDS + 2):
        attempt = _Attempt(read, options, macros, marks, usable)
        found = attempt.run(Stages(report), None if earlier is None else earlier.guard)
        if found is not None:
            return found
        dropped = attempt.unusable
        usable = {} if number >= ROUNDS else {file: memo for file, memo in usable.items() if file not in dropped}
    raise NotReusable


def marks_of(read: Iterable[Script | Diagnostic], options: Options, settings_digest: str) -> dict[str, str]:
    """By file a digest of all that decides how its text is parsed."""
    scripts = [item for item in read if isinstance(item, Script)]
    templated = _digest([settings_digest, macros_of(scripts, options).loose.digest])
    graph = _digest([project.graph_digest for project in options.projects])
    found = {}
    for script in scripts:
        how = templated if "{" in script.text else settings_digest
        parts = [how, script.digest, script.session or "", script.file]
        if "{" in script.text and "graph" in script.text:
            parts.append(graph)
        found[script.file] = _digest(parts)
    return found


class _Attempt:
    """One extraction from memos."""

    def __init__(
        self,
        read: Sequence[Script | Diagnostic],
        options: Options,
        macros: MacroLibrary,
        marks: Mapping[str, str],
        usable: Mapping[str, ScriptMemo],
    ) -> None:
        self.unusable: set[str] = set()
        """Files whose memos must not be used in the next attempt."""
        self._read = read
        self._options = options
        self._marks = marks
        self._usable = usable
        self._macros = macros
        self._batch = Batch(known_tables(options), described_tables(options))
        self._batch.keeps_places = options.evidence
        self._batch.taping = True
        self._batch.replay = self._replay
        self._deferred = Deferred(self._batch, options, self._add)
        self._waiting: set[str] = set()
        """Files whose templates ask for columns."""
        self._answers: dict[str, Answers] = {}
        """By file what its template was given of columns."""
        self._failure: Exception | None = None
        self._notes: dict[str, list[Diagnostic]] = {}
        self._scripts: dict[str, Script] = {}
        self._parsed: dict[str, ScriptState] = {}
        """Scripts that were parsed for the sake of their functions."""
        self._memos: dict[ScriptState, ScriptMemo] = {}
        """Scripts that their memos stand for."""
        self._parts: dict[str, ScriptPart] = {}
        """By file the parts that memos hold."""
        self._skipped: dict[StatementState, int] = {}
        """How often the walk of a statement was passed over."""
        self._taken: dict[StatementState, Any] = {}
        """The earlier walk whose outcome a statement has."""
        self._earlier_walks: dict[StatementState, list[Any]] = {}
        """The earlier walks of a statement."""

    def run(self, stages: Stages, guard: str | None) -> MemoExtraction | None:
        """Return the extraction; None if memos turned out unusable after some had been used."""
        with Uncollected() as trees:
            unread = self._parse(stages)
            with deep_recursion():
                self._deferred.settle()
                now = self._guard()
                if self._earlier_walks and now != guard:
                    self.unusable.update(self._usable)
                    return None
                walk_all(self._batch, stages.resolved)
                if self._failure is not None:
                    raise NotReusable from self._failure
                trees.statements = sum([len(script.statements) for script in self._batch.scripts])
                mark_unknown_calls(self._batch.scripts, self._batch.routines)
                mark_missing_scripts(self._batch.scripts)
                maker = PartMaker(self._batch, self._options)
                self._check(maker)
                if self.unusable:
                    return None
                return self._result(maker, now, unread, stages)

    # ---- before the walk -----------------------------------------------------------------------------

    def _parse(self, stages: Stages) -> list[Diagnostic]:
        unread = []
        for done, item in enumerate(self._read, 1):
            if isinstance(item, Diagnostic):
                unread.append(item)
                stages.parsed(done, len(self._read), None)
                continue
            self._scripts[item.file] = item
            memo = self._usable.get(item.file)
            if memo is None or not self._add_earlier(item, memo):
                self._add_anew(item)
            waits = item.file in self._waiting
            stages.parsed(done, len(self._read), None if waits else self._batch.scripts[-1])
        return unread

    def _add_anew(self, item: Script) -> None:
        """Parse a script; one whose template asks for columns waits until they are known."""
        maker = self._maker(item)
        rendered = maker.render(None)
        if not rendered.wanted:
            self._batch.add(self._state(maker, rendered))
            return
        self._defer(item, lambda answers: self._state(maker, maker.render(answers)))

    def _defer(self, item: Script, make: Callable[[Answers], ScriptState]) -> None:
        """Let a template wait; what it is given of columns is kept."""

        def answered(columns: ColumnsOf) -> ScriptState:
            answers = self._answers[item.file] = Answers(columns)
            state = make(answers)
            state.requested = answers.requested()
            return state

        self._waiting.add(item.file)
        self._deferred.defer(relation_of(item.file, self._options), answered)

    def _add_earlier(self, item: Script, memo: ScriptMemo) -> bool:
        try:
            script = script_of(item.file, item.session or item.file, self._options.dialect, memo)
            walks = {s: walks_of(earlier) for s, (*_, earlier) in zip(script.statements, memo.statements, strict=True)}
            self._parts[item.file] = part_of(item.file, memo)
            _ = memo.outlines
        except _BROKEN:
            return False

        def stand_in() -> ScriptState:
            self._stand_in(script, memo)
            self._earlier_walks.update(walks)
            return script

        def as_answered(answers: Answers) -> ScriptState:
            if answers.hold(memo.requested or ()):
                return stand_in()
            maker = self._maker(item)
            return self._state(maker, maker.render(answers.again()))

        if memo.requested is None:
            self._add(stand_in())
        else:
            self._defer(item, as_answered)
        return True

    def _stand_in(self, script: ScriptState, memo: ScriptMemo) -> None:
        """Let a memo stand for a script."""
        for statement in script.statements:
            statement.replayable = True
        self._memos[script] = memo

    def _add(self, script: ScriptState) -> None:
        """Add a script to the batch, parsed or as its memo has it."""
        if script in self._memos:
            self._batch.add_earlier(script, self._function)
        else:
            self._batch.add(script)

    def _parse_script(self, item: Script) -> ScriptState:
        """Parse a script that its memo stands for, with the columns that its template was given."""
        maker = self._maker(item)
        answers = self._answers.get(item.file)
        rendered = maker.render(None if answers is None else answers.again())
        if rendered.wanted and answers is None:
            raise NotReusable
        return self._state(maker, rendered)

    def _maker(self, item: Script) -> ScriptMaker:
        self._notes[item.file] = []
        return ScriptMaker(item, self._options, self._macros, self._notes[item.file], self._batch.tree_cache)

    def _state(self, maker: ScriptMaker, rendered: Rendered) -> ScriptState:
        state = maker.parse(rendered)
        state.mark = self._marks[maker.script.file]
        return state

    def _guard(self) -> str:
        return _digest([[script.mark, script.requested] for script in self._batch.scripts if script.special])

    def _function(self, statement: StatementState, name: str) -> Inline | None:
        """A SQL function of a script that is not parsed."""
        file = statement.script.file
        parsed = self._parsed.get(file)
        if parsed is None:
            parsed = self._parsed[file] = self._parse_script(self._scripts[file])
        tree = next((s.tree for s in parsed.statements if s.index == statement.index), None)
        return None if tree is None else inline_function(tree, parsed.dialect)

    # ---- the walk --------------------------------------------------------------------------------------

    def _replay(self, statement: StatementState) -> bool:
        """Take the outcome of an earlier walk of a statement that is still right; if there is none, open its script.

        That of the walk at the same time comes first, then that of the last: a walk that looks at the same is the same
        whenever it is made.
        """
        values = self._earlier_walks[statement]
        last = len(values) - 1
        skipped = self._skipped.get(statement, 0)
        try:
            for number in (skipped, last) if skipped < last else (last,):
                value = values[number]
                if looks_hold(self._batch, statement, value[0], value[1]):
                    self._take(statement, value)
                    self._skipped[statement] = skipped + 1
                    self._taken[statement] = value
                    return True
                if not statement.replayable:
                    break
        except (*_BROKEN, RecursionError):
            pass
        try:
            if statement.replayable:  # else the script was opened on the way, for the sake of another statement
                self._open(statement.script)
        except Exception as error:  # a walk would take it for its own
            self._failure = error
            statement.replayable = False
        return False

    def _take(self, statement: StatementState, value: Any) -> None:
        _, _, unsettled, infos, writes = value
        statement.unsettled = bool(unsettled)
        before = self._taken.get(statement)
        if before is not None and before[3] is infos and before[4] is writes:
            return
        for name, id_, used, columns, types, complete, view, mark in infos:
            shape = dict.fromkeys(columns) if types is None else dict(zip(columns, types, strict=True))
            info = self._batch.shape(id_, shape, complete=bool(complete))
            info.used = self._batch.used(used)
            info.mark = "" if info.described else str(mark)
            info.view = None if view is None else _view(*view)
            statement.infos[name] = info
        statement.writes = [write_of(*fields) for fields in writes]

    def _open(self, script: ScriptState) -> None:
        """Parse a script after all; its statements become what they are in a full extraction."""
        if any(self._skipped.get(statement) for statement in script.statements):
            self.unusable.add(script.file)  # walks that were passed over cannot be made up for at their time
        known = {statement.index: statement for statement in script.statements}
        parsed = self._parse_script(self._scripts[script.file])
        del self._memos[script]
        script.variables, script.template = parsed.variables, parsed.template
        script.statements = [_become(known.get(s.index, s), s, script) for s in parsed.statements]
        if script.temporary:
            note_later(script, frozenset())

    # ---- after the walk ----------------------------------------------------------------------------------

    def _check(self, maker: PartMaker) -> None:
        """Find scripts whose memos do not hold for what is decided in the end."""
        needed = {name for memo in self._memos.values() for name in memo.needs}
        known = self._batch.routines | defined_routines(self._batch.scripts) if needed else frozenset()
        missing = missing_routines(needed, known)
        for script, memo in self._memos.items():
            whole = all(self._taken.get(s) == self._earlier_walks[s][-1] for s in script.statements)
            dropped = dropped_names(script, maker.read_names) == memo.dropped
            hinted = all(maker.hint(name) == text for name, text in memo.hints.items())
            defined = missing.isdisjoint(memo.needs)
            if not (whole and dropped and hinted and defined):
                self.unusable.add(script.file)

    def _result(self, maker: PartMaker, guard: str, unread: list[Diagnostic], stages: Stages) -> MemoExtraction:
        parts: list[ScriptPart] = []
        kept: set[str] = set()
        memos: dict[str, ScriptMemo] = {}
        for script in self._batch.scripts:
            memo = self._memos.get(script)
            if memo is not None:
                kept.add(script.file)
                memos[script.file] = memo
                part = self._parts[script.file]
            else:
                part = maker.part(script)
                part.read = self._notes.get(script.file, [])
                if has_memo(script, part):
                    memos[script.file] = memo_of(script, part, maker).as_text()
                _forget_walks(script)
            parts.append(part)
            stages.described(len(parts), len(self._batch.scripts), part.counts["opaque"])
        return MemoExtraction(joined(parts, unread), parts, frozenset(kept), Memos(guard, memos))


def _view(base: str, columns: list[list[str]], is_open: bool, reads: list[str], selects: bool) -> ViewBase:
    pairs = [(str(name), str(column)) for name, column in columns]
    return ViewBase(str(base), tuple(pairs), bool(is_open), tuple(reads), bool(selects))


def _forget_walks(script: ScriptState) -> None:
    """Free what the walks of a script found: it is in its part and its memo, and these of all scripts are much."""
    for statement in script.statements:
        statement.writes, statement.infos, statement.outcomes, statement.ambiguous = [], {}, None, {}


def _become(statement: StatementState, parsed: StatementState, script: ScriptState) -> StatementState:
    """Make a statement of a memo the one that was parsed; what others know of it stays."""
    statement.script = script
    statement.replayable = False
    if statement is not parsed:
        statement.parsed, statement.tree, statement.relation = parsed.parsed, parsed.tree, parsed.relation
        statement.catalog, statement.schema, statement.path = parsed.catalog, parsed.schema, parsed.path
        statement.variant, statement.line_map = parsed.variant, parsed.line_map
        statement.diagnostics = parsed.diagnostics
        statement.infos, statement.writes, statement.outcomes = {}, [], None
    return statement


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
