"""Holes of templates: which statements lack SQL, as a macro is not known or a value was not given."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from sqlglot.errors import TokenError

from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.syntax.lexer import lexer, word
from govtool.capture.sql.templates.template import Hole, Rendered
from govtool.model import Diagnostic

_WORD: Final = re.compile(r"\w+")


def note_holes(rendered: Rendered, script: ScriptState) -> Iterator[Diagnostic]:
    """Give each statement of a script the notes of the holes that it has.

    Args:
        rendered: What the template gave.
        script: Its statements; with them the notes of their holes.

    Yields:
        The notes of the template that are about no statement.
    """
    holes = {hole.note: hole for hole in rendered.holes}
    places = _Places(script.statements, script.dialect)
    for hole in rendered.holes:
        if hole.is_value:
            _note(hole, places)
    for note in rendered.diagnostics:
        if (
            note.code != "template"
            or note.severity != "warning"
            or note.line is None
            or not _note(holes.get(note) or Hole(note, "", (note.line,)), places)
        ):
            yield note


def _note(hole: Hole, places: _Places) -> bool:
    """Note of each statement that has a hole what is missing there; False where it is in none."""
    noted: set[int] = set()
    for line in hole.lines:
        for statement in places.at(line, hole.text):
            if id(statement) in noted or (hole.is_value and hole.text not in places.names_in(statement)):
                continue
            noted.add(id(statement))
            statement.diagnostics.append(replace(hole.note, line=line))
    return bool(noted)


class _Places:
    """Where in a template the statements of a script begin."""

    def __init__(self, statements: Iterable[StatementState], dialect: str) -> None:
        self.dialect = dialect
        self.statements: dict[int, list[StatementState]] = {}
        """Those that were parsed, by the line at which they begin."""
        for statement in statements:
            if statement.tree is not None:
                self.statements.setdefault(statement.parsed.line, []).append(statement)
        self.lines = sorted(self.statements)
        self.words: dict[int, dict[str, list[StatementState]]] = {}
        """By line, the statements that may be on it, by their words: those that begin there, and the one before."""
        self.names: dict[int, frozenset[str]] = {}

    def at(self, line: int, text: str) -> list[StatementState]:
        """The statements that a line may be in: of several, those with a word."""
        number = bisect_right(self.lines, line)
        if not number:
            return []
        begins = self.lines[number - 1]
        found = self.statements[begins]
        before = self.statements[self.lines[number - 2]][-1:] if begins == line and number > 1 else []
        before = [one for one in before if one.line_of_text(one.parsed.text.count("\n")) >= line]
        if not text or len(found) + len(before) == 1:
            return found
        if begins not in self.words:
            words = self.words[begins] = {}
            for statement in (*before, *found):
                for one in dict.fromkeys(_WORD.findall(statement.parsed.text)):
                    words.setdefault(one, []).append(statement)
        return self.words[begins].get(text, found)

    def names_in(self, statement: StatementState) -> frozenset[str]:
        """The plain names of a statement, outside of texts, other than aliases behind AS."""
        found = self.names.get(id(statement))
        if found is None:
            found = self.names[id(statement)] = _plain_names(statement.parsed.text, self.dialect)
        return found


def _plain_names(text: str, dialect: str) -> frozenset[str]:
    try:
        tokens = lexer(dialect).tokenize(text)
    except TokenError:
        return frozenset(_WORD.findall(text))
    before = ["", *map(word, tokens)]
    return frozenset([token.text for token, last in zip(tokens, before, strict=False) if word(token) and last != "AS"])
