"""The reach of statements that were not understood: the words of those that can only read and write what they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from govtool.capture.sql.resolve.live_variables import live
from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.syntax.lexer import word_set
from govtool.capture.sql.syntax.redact import MAX_REDACTED, redact
from govtool.names import split_name

MAX_WORDS: Final = 2000
"""A statement of more distinct words is taken to reach anything."""

_WORD: Final = re.compile(r"\w+")
_HEADS: Final = frozenset(
    {"select", "with", "insert", "update", "delete", "merge", "create", "replace", "alter", "truncate", "drop", "from"}
)
"""First words of statements that do nothing but what is written."""
UNKNOWN_DATA: Final = (
    "what it returns is not known",
    "what it reads and writes is not known",
    "that is not known here",
    "a table is named by an expression or parameter",
    "the target is named by an expression or parameter",
)
"""The ends of diagnostics about data that a statement reads or writes and does not name."""
_LOST_PARTS: Final = (
    "is not understood",
    "is not understood as a query",
    "is not a table",
    "is no table",
    "is no column of the table behind it",
    "is to no column of a table",
    "is not a regular expression",
    "is not followed",
    "without a constant uri",
    "not those of one table",
)
"""The ends of diagnostics about a part of a statement that is left out, with the tables and columns that it names."""
UNKNOWN_VALUE: Final = " is not known: it comes from "
"""A part of diagnostics about variables."""
_INDIRECT: Final = word_set(
    """EXECUTE EXEC IDENTIFIER CALL PROCEDURE PROC FUNCTION TRIGGER TASK EVENT PACKAGE LANGUAGE RULE RESULT_SCAN DBLINK
    OPENQUERY OPENROWSET QUERY_TO_XML TABLE_TO_XML DICTGET REMOTE CLUSTER MERGE_TABLES COPY UNLOAD LOCATION EXTERNAL
    FOREIGN SERVER VIRTUAL ENGINE READ_CSV READ_PARQUET READ_JSON IMPORT CLONE SYNONYM PARTITION INHERITS ATTACH"""
)
"""Words by which a statement may reach what it does not name: other code, files, and tables by pattern."""
_RECORDS: Final = frozenset({"new", "old"})
"""The variables of triggers and rules, whose statements may also name sets of rows as their heads call them."""
_TABLES_OF_TRIGGERS: Final = frozenset({"inserted", "deleted"})
_PATTERN: Final = re.compile(r"(\S*\*\S*) is named by .* which has no value: ")
"""How the note begins of a relation a part of whose name has no value: it is one of those that fit the pattern."""
_PLACE: Final = re.compile(r"'[^']*[/.@][^']*'|\w\*|@\w")
"""A location of a file, a stage or variable, or a name with a wildcard."""


def renamed_tables(scripts: Iterable[ScriptState]) -> dict[str, str]:
    """The tables that scripts rename: the last part of the old name, and of the new one."""
    return {
        split_name(write.target)[-1]: split_name(write.renamed_to)[-1]
        for script in scripts
        for statement in script.statements
        for write in statement.writes
        if write.mode == "rename" and write.target and write.renamed_to
    }


def reads_anything(statement: StatementState) -> bool:
    """Return whether a statement reads or writes data that it does not name: of a function, of a server, of a table by
    an expression, of a variable that something unknown sets.
    """
    notes = [note.message for note in statement.diagnostics if note.code == "opaque"]
    return any(note.endswith(UNKNOWN_DATA) or UNKNOWN_VALUE in note for note in notes)


def loses_a_part(statement: StatementState) -> bool:
    """Return whether a part of a statement is left out that may read or write what it names."""
    return any(note.code == "opaque" and note.message.endswith(_LOST_PARTS) for note in statement.diagnostics)


def bounding_words(statement: StatementState, renamed: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a statement in lower case, sorted; none if it may reach what it does not name.

    Of a relation a part of whose name has no value, the word is a pattern with an asterisk in that place.

    Literals are no words: they are data of people. A name that another statement changes is a word with its new name.

    Args:
        statement: One that was not understood.
        renamed: Of each table that is renamed its new name.
    """
    parsed = statement.parsed
    if not parsed.text or len(parsed.text) > MAX_REDACTED or parsed.head.split(" ")[0] not in _HEADS:
        return ()
    if reads_anything(statement):
        return ()
    patterns = _patterns(statement)
    if patterns is None or (patterns and renamed) or _PLACE.search(parsed.text):
        return ()
    words = frozenset(_WORD.findall(redact(parsed.text, statement.script.dialect).lower()))
    if not _INDIRECT.isdisjoint(map(str.upper, words)) or len(words) > MAX_WORDS:
        return ()
    variables = _variables(statement)
    if not words.isdisjoint(variables) or not variables.isdisjoint(_RECORDS):
        return ()
    for _ in renamed:
        more = {word for old, new in renamed.items() if _words(old) <= words for word in _words(new)}
        if more <= words:
            break
        words |= more
    return tuple(sorted(words.union(patterns)))


def _patterns(statement: StatementState) -> list[str] | None:
    """The patterns of relations a part of whose name has no value; None where more than these is not known."""
    if any(note.message.endswith("is not closed") for note in statement.diagnostics):  # where a literal ends
        return None
    found = []
    for note in statement.diagnostics:
        if note.code == "template":
            match = _PATTERN.match(note.message)
            if match is None:
                return None
            found.append(match[1].lower())
    return found


def _variables(statement: StatementState) -> frozenset[str]:
    """The variables, parameters and tables of a trigger in sight of a statement, in lower case: they hold any data."""
    variables, routine = statement.script.variables, statement.parsed.routine
    names = {*live(statement), *variables.get(None, ()), *variables.get(routine, ())}
    triggered = _TABLES_OF_TRIGGERS if routine is not None else frozenset()
    return triggered | {name.lstrip("@$").lower() for name in names}


def _words(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(name.lower()))
