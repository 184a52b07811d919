"""Memos of scripts: what an extraction looked at and found, by script, to be used again while nothing of it changed.

A memo is JSON values all through, so that it can lie in a file that anybody may have written to: loading it runs
nothing, and a memo of another shape is no memo. It holds

* what other scripts may see of the script: which relations its statements define and fill, the columns that these
  have, the functions that it makes, the names that it reads;
* per walk of a statement the looks at other scripts (``walk.usage``), with their answers;
* what came of it: notes, counts, and the outline of its derivations. These themselves lie in the store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from sqlglot import exp

from govtool.capture.sql.folding.results import PartMaker, ScriptPart, Shortfall
from govtool.capture.sql.memos.looks import depends_by_looks
from govtool.capture.sql.resolve.inclusions import includes
from govtool.capture.sql.resolve.routine_calls import calls_unknown, defined_routines, needed_routines
from govtool.capture.sql.resolve.states import ScriptState, StatementState, TableKeys, WalkOutcome
from govtool.capture.sql.resolve.surroundings import signature
from govtool.capture.sql.resolve.table_keys import table_keys
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput, TableInfo
from govtool.capture.sql.walk.writes import Write
from govtool.model import Derivation, Diagnostic

Value = Any
"""A JSON value."""
_OPEN: Final = [OpenStar(TableInfo("", None, complete=False))]
"""Of an output some of whose columns are not known."""


class DerivationOutline(NamedTuple):
    """The figures of a derivation that lies in the store."""

    target: str
    target_kind: str
    columns: tuple[str, ...]
    edges: int


@dataclass(frozen=True, slots=True)
class ScriptMemo:
    """What is known of a script from an earlier extraction."""

    mark: str
    """A digest of its text and of how it was read."""
    statements: tuple[Value, ...]
    temporary: tuple[str, ...]
    """Names of its temporary tables."""
    dropped: Mapping[str, bool]
    """Relations of a script that drops or renames some, and whether any statement of the batch reads them."""
    routines: tuple[str, ...]
    """Names of the routines that it defines."""
    needs: tuple[str, ...]
    """Names of the routines that it calls, which somebody has to define."""
    hints: Mapping[str, str]
    """What its notes add about names in the supplied schema, by name."""
    requested: tuple[Value, ...] | None
    """Of a template that waits for columns, what it wants and digests of the answers; None: it waits for none."""
    part: Value
    outlined: Value
    """The figures of its derivations."""
    text: str = ""
    """As ``of_text`` read it; empty where it was made now."""

    @property
    def shows_text(self) -> bool:
        """Whether the text of one of its statements is shown where somebody asks why nothing of it was understood.

        Raises:
            ValueError, TypeError, KeyError, IndexError: The memo is of another shape.
        """
        return any(status != "partial" for status, *_ in self.part[4])

    @property
    def outlines(self) -> list[DerivationOutline]:
        """The figures of its derivations.

        Raises:
            ValueError, TypeError: They are something else.
        """
        return [
            DerivationOutline(target, kind, tuple(columns), int(edges))
            for target, kind, columns, edges in self.outlined
        ]

    def as_text(self) -> ScriptMemo:
        """The same as text alone, in a fifth of the memory: for ``to_text``, and nothing else."""
        return replace(self, statements=(), part=None, outlined=None, text=self.to_text())

    def to_text(self) -> str:
        """As one line of JSON, in ASCII."""
        if self.text:
            return self.text
        names = [list(self.temporary), dict(self.dropped), list(self.routines), list(self.needs), dict(self.hints)]
        how = [self.mark, *names, self.requested]
        return json.dumps([*how, list(self.statements), self.part, self.outlined], separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> ScriptMemo:
        """Load the result of ``to_text``.

        Raises:
            ValueError, TypeError, KeyError, IndexError: It is something else.
        """
        mark, temporary, dropped, routines, needs, hints, requested, *found = json.loads(text)
        statements, part, outlined = found
        return cls(
            str(mark),
            tuple(statements),
            tuple(temporary),
            dict(dropped),
            tuple(routines),
            tuple(map(str, needs)),
            dict(hints),
            None if requested is None else tuple([(list(map(str, parts)), str(digest)) for parts, digest in requested]),
            part,
            outlined,
            text,
        )


def outline_of(derivation: Derivation) -> DerivationOutline:
    """The figures of a derivation."""
    columns = tuple([column.path for column in derivation.columns])
    return DerivationOutline(derivation.target, derivation.target_kind, columns, len(derivation.edges))


def sizes_of(outlines: Iterable[list[DerivationOutline]]) -> dict[str, int]:
    """The numbers of datasets, columns and edges of derivations."""
    columns: dict[str, set[str]] = {}
    datasets: set[str] = set()
    edges = 0
    for found in outlines:
        for outline in found:
            columns.setdefault(outline.target, set()).update(outline.columns)
            if outline.target_kind not in ("query", "temporary"):
                datasets.add(outline.target)
            edges += outline.edges
    return {"datasets": len(datasets), "columns": sum(map(len, columns.values())), "edges": edges}


# ---- making memos ----------------------------------------------------------------------------------------------


def has_memo(script: ScriptState, part: ScriptPart) -> bool:
    """Return whether a memo can stand for a script, of which a part came.

    It cannot where the words of a statement of which nothing was understood bound what it reaches: memos keep no texts,
    and the words of a table that is renamed are more. Nor where it calls what nobody defines, as somebody may. Nor
    where statements depend on each other in more ways than by the tables that they define: script variables,
    branches, search paths; nor where other scripts need trees of it. Nor where it includes another, which may come and
    go.
    """
    if any(shortfall.words for shortfall in part.shortfalls):
        return False
    return all(
        _has_memo(statement) and not calls_unknown(statement) and not includes(statement)
        for statement in script.statements
    )


def _has_memo(statement: StatementState) -> bool:
    if not depends_by_looks(statement):
        return False
    if statement.tree is None:
        return True
    outcomes = statement.outcomes
    return bool(outcomes) and not any(outcome.tape.spoiled for outcome in outcomes or ())


def memo_of(script: ScriptState, part: ScriptPart, maker: PartMaker) -> ScriptMemo:
    """Return the memo of a script that was walked and put together."""
    return ScriptMemo(
        script.mark,
        tuple([_statement_value(s) for s in script.statements if s.tree is not None]),
        tuple(sorted(script.temporary)),
        dropped_names(script, maker.read_names),
        tuple(sorted(defined_routines([script]))),
        tuple(sorted(needed_routines(script))),
        dict(part.hints),
        None if script.requested is None else tuple(script.requested),
        _part_value(part),
        [[d.target, d.target_kind, [c.path for c in d.columns], len(d.edges)] for d in part.derivations],
    )


def dropped_names(script: ScriptState, read_names: set[str]) -> dict[str, bool]:
    """The relations of a script that drops or renames some, and whether any statement of the batch reads them."""
    writes = [write for statement in script.statements for write in statement.writes]
    if not any(write.mode in ("drop", "rename") for write in writes):
        return {}
    names = {name for write in writes for name in (write.target, write.renamed_to) if name}
    return {name: name in read_names for name in sorted(names)}


def _statement_value(statement: StatementState) -> Value:
    return [
        statement.index,
        statement.parsed.routine,
        list(statement.defines),
        list(statement.fills),
        _insert_value(statement),
        [list(statement.functions), statement.function_mark],
        table_keys(statement) if any(table_keys(statement)) else None,
        _outcome_values(statement.outcomes or (), statement.fills),
    ]


def _insert_value(statement: StatementState) -> Value:
    """The columns that an INSERT lists, None where it lists none; of another statement an empty text."""
    tree = statement.tree
    if not isinstance(tree, nodes.Insert) or not statement.fills:
        return ""
    if not isinstance(tree.this, nodes.Schema):
        return None
    return [_identifier_value(item) for item in tree.this.expressions]


def _identifier_value(node: exp.Expr) -> Value:
    identifier = node.this if isinstance(node, (nodes.Column, nodes.ColumnDef)) else node
    return [identifier.name, bool(identifier.args.get("quoted"))]


def _outcome_values(outcomes: Sequence[WalkOutcome], fills: tuple[str, ...]) -> Value:
    """Walks; what a walk has as the one before has it is None."""
    values: list[list[Value]] = []
    found: list[list[Value]] = []
    for outcome in outcomes:
        value = _outcome_value(outcome, fills)
        before = values[-1] if values else [None] * len(value)
        found.append([None if one == other else one for one, other in zip(value, before, strict=True)])
        values.append(value)
    return found


def walks_of(values: Value) -> list[list[Value]]:
    """The walks that ``_outcome_values`` made these of, each with all that it has."""
    walks = [list(value) for value in values]
    for number in range(1, len(walks)):
        before = walks[number - 1]
        walks[number] = [other if one is None else one for one, other in zip(walks[number], before, strict=True)]
    return walks


def _info_value(name: str, info: TableInfo) -> Value:
    """A table that a statement defines: its columns, their types unless all are unknown, and its signature."""
    types = list(info.columns.values()) if any(info.columns.values()) else None
    mark = "" if info.described else signature(info)
    return [name, info.id, info.used.name, list(info.columns), types, info.complete, info.view, mark]


def _outcome_value(outcome: WalkOutcome, fills: tuple[str, ...]) -> Value:
    infos = [_info_value(name, info) for name, info in outcome.infos.items()]
    writes = [
        [
            write.target,
            write.mode,
            list(write.output.names) if write.target in fills else [],
            bool(write.output.open),
            list(write.reads),
            write.renamed_to,
        ]
        for write in outcome.writes
    ]
    tape = outcome.tape
    return [list(map(list, tape.looks)), tape.deepest, outcome.unsettled, infos, writes]


def _placed(note: Diagnostic, places: Mapping[Diagnostic, int]) -> Value:
    """The number of a note that is kept already, or else the note."""
    place = places.get(note)
    return _note_value(note) if place is None else place


def _part_value(part: ScriptPart) -> Value:
    notes = [list(map(_note_value, notes)) for notes in (part.read, part.apart, part.noted)]
    places = {note: number for number, note in enumerate([*part.read, *part.apart, *part.noted])}
    shortfalls = [[one.status, _placed(one.diagnostic, places), one.runs, one.dialect] for one in part.shortfalls]
    return [part.counts, part.runs, list(map(list, part.defined)), notes, shortfalls]


def _note_value(note: Diagnostic) -> Value:
    place = [note.file, note.line, note.column, note.target]
    return [note.code, note.severity, note.message, *place, list(note.candidates)]


# ---- from memos to parts ------------------------------------------------------------------------------------------


def part_of(file: str, memo: ScriptMemo) -> ScriptPart:
    """The part of an extraction that a memo holds; its derivations are in the store.

    Raises:
        ValueError, TypeError, KeyError, IndexError: The memo is of another shape.
    """
    part = ScriptPart(file)
    counts, runs, defined, notes, shortfalls = memo.part
    part.counts.update({str(outcome): int(number) for outcome, number in counts.items()})
    part.runs = {str(outcome): int(number) for outcome, number in runs.items()}
    part.defined = [(str(target), int(line)) for target, line in defined]
    part.read, part.apart, part.noted = ([Diagnostic.of(value) for value in values] for values in notes)
    if shortfalls:
        known = [*part.read, *part.apart, *part.noted]
        part.shortfalls = [
            Shortfall(
                str(status), known[note] if type(note) is int else Diagnostic.of(note), int(times), "", str(dialect)
            )
            for status, note, times, dialect in shortfalls
        ]
    return part


def script_of(file: str, session: str, dialect: str, memo: ScriptMemo) -> ScriptState:
    """A script as its memo has it: its statements have no trees, but what they define and fill.

    Raises:
        ValueError, TypeError, KeyError, IndexError: The memo is of another shape.
    """
    script = ScriptState(file, session, dialect)
    script.mark = memo.mark
    script.requested = None if memo.requested is None else list(memo.requested)
    script.temporary = set(memo.temporary)
    script.routines = frozenset(memo.routines)
    for index, routine, defines, fills, insert, functions, keys, _ in memo.statements:
        parsed = ParsedStatement(None, "", 1, 1, "parsed", "", routine=routine)
        tree = _insert(insert) if insert != "" else None
        statement = StatementState(parsed, script, int(index), None, None, (), tree=tree)
        statement.defines, statement.fills = tuple(defines), tuple(fills)
        names, mark = functions
        statement.functions, statement.function_mark = tuple(names), str(mark)
        statement.keys = TableKeys((), ()) if keys is None else TableKeys(*map(tuple, keys))
        script.statements.append(statement)
    return script


def _insert(columns: list[tuple[str, bool]] | None) -> exp.Expr:
    table = nodes.Table()
    if columns is None:
        return nodes.Insert(this=table)
    listed = [nodes.Identifier(this=str(name), quoted=bool(quoted)) for name, quoted in columns]
    return nodes.Insert(this=nodes.Schema(this=table, expressions=listed))


def write_of(
    target: str, mode: str, names: list[str], is_open: bool, reads: list[str], renamed_to: str | None
) -> Write:
    """Return what other statements see of a write."""
    output = QueryOutput()
    for name in names:
        output.add(name, ())
    if is_open:
        output.open = _OPEN
    write = Write(target, "", mode, output=output, renamed_to=renamed_to)
    write.reads = dict.fromkeys(reads, (0,))
    return write
