"""SQL scripts, taken apart into the statements that a run executes. What is not run is refused before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from govtool.errors import UsageError

StatementKind = Literal["table", "view", "append", "overwrite", "query", "drop"]
_QUERY = frozenset({"SELECT", "WITH", "VALUES"})
_SELECT_ALL = "SELECT * FROM "


@dataclass(frozen=True, slots=True)
class ProgramStatement:
    """A statement of a script.

    Attributes:
        kind: ``table`` and ``view`` create; ``append`` and ``overwrite`` insert; ``query`` gives rows; ``drop``.
        target: The relation, in lower case; empty for a query.
        query: The query, at its place in the script: what is before it is blank. Empty for ``drop``.
        columns: Names of columns, where the statement lists them.
        location: ``file:line:column``.
        replaces: CREATE OR REPLACE.
        is_optional: IF NOT EXISTS, IF EXISTS.
        new_rows: Of an incremental model that must keep its columns, the query of the rows that are added.
    """

    kind: StatementKind
    target: str
    query: str
    columns: tuple[str, ...] = ()
    location: str = ""
    replaces: bool = False
    is_optional: bool = False
    new_rows: str = ""


@dataclass(frozen=True, slots=True)
class SqlProgram:
    """Statements over named inputs.

    Attributes:
        name: What the program is called.
        statements: In the order in which they run.
        dialect: What they are written in; they mean what Spark SQL means by it.
        inputs: Files of the program's own, such as seeds, by relation.
        names: Other names of relations, which queries may use.
        state: Relations that the next run starts from.
        notes: What is not run, and why.
        digest: SHA-256 of the script; empty: the program is no single file.
    """

    name: str
    statements: tuple[ProgramStatement, ...]
    dialect: str = "spark"
    inputs: Mapping[str, Path] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    state: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str = ""


def read_script(text: str, dialect: str, file: str = "") -> tuple[ProgramStatement, ...]:
    """The statements of a script, located in a file.

    Raises:
        UsageError: The script does not parse, or has a statement that is not run here (``usage.sql-unsupported``).
    """
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import TokenError

    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except TokenError as error:
        raise UsageError(
            f"the script does not parse: {str(error)[:200]}", code="usage.sql-syntax", location=file or None
        ) from error
    found = tuple(_Header(text, own, file).statement() for own in _statements(tokens))
    if not found:
        raise UsageError("the script has no statements", code="usage.sql-syntax", location=file or None)
    return found


def _statements(tokens: Sequence[Any]) -> Iterator[Sequence[Any]]:
    own: list[Any] = []
    for token in tokens:
        if token.token_type.name == "SEMICOLON":
            if own:
                yield own
            own = []
        else:
            own.append(token)
    if own:
        yield own


class _Header:
    """Reads what stands before a statement's query."""

    def __init__(self, text: str, tokens: Sequence[Any], file: str) -> None:
        self._text = text
        self._file = file
        self._tokens = tokens
        self._at = 0

    def statement(self) -> ProgramStatement:
        """The statement.

        Raises:
            UsageError: It is not run here.
        """
        first = self._word()
        if first in _QUERY or first == "(":
            self._refuse_insert_below()
            return ProgramStatement("query", "", self._query(), (), self._location())
        readers = {"CREATE": self._create, "INSERT": self._insert, "DROP": self._drop}
        if first not in readers:
            raise self._refused(first)
        return readers[first]()

    def _create(self) -> ProgramStatement:
        self._at += 1
        replaces = self._taken("OR", "REPLACE")
        while self._word() in ("TEMP", "TEMPORARY", "GLOBAL"):
            self._at += 1
        kind = self._word()
        if kind not in ("TABLE", "VIEW"):
            raise self._refused(f"CREATE {kind}")
        self._at += 1
        is_optional = self._taken("IF", "NOT", "EXISTS")
        target, columns = self._name(), self._names()
        while self._word() and not (self._word() == "AS" and self._word(1) in (*_QUERY, "(")):
            self._skip()
        if not self._word():
            raise self._refused(f"CREATE {kind} without AS and a query")
        self._at += 1
        made: StatementKind = "table" if kind == "TABLE" else "view"
        return ProgramStatement(made, target, self._query(), columns, self._location(), replaces, is_optional)

    def _insert(self) -> ProgramStatement:
        self._at += 1
        verb = self._word()
        if verb not in ("INTO", "OVERWRITE"):
            raise self._refused(f"INSERT {verb}")
        self._at += 1
        self._taken("TABLE")
        target, columns = self._name(), self._names()
        if self._word() not in (*_QUERY, "("):
            raise self._refused(f"INSERT … {self._word()}")
        kind: StatementKind = "append" if verb == "INTO" else "overwrite"
        return ProgramStatement(kind, target, self._query(), columns, self._location())

    def _drop(self) -> ProgramStatement:
        self._at += 1
        kind = self._word()
        if kind not in ("TABLE", "VIEW"):
            raise self._refused(f"DROP {kind}")
        self._at += 1
        is_optional = self._taken("IF", "EXISTS")
        target = self._name()
        if self._word():
            raise self._refused(f"DROP … {self._word()}")
        return ProgramStatement("drop", target, "", (), self._location(), is_optional=is_optional)

    # ---- tokens -----------------------------------------------------------------------------------------------------

    def _word(self, ahead: int = 0) -> str:
        at = self._at + ahead
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        return "" if token.token_type.name == "STRING" else str(token.text).upper()

    def _taken(self, *words: str) -> bool:
        """Step over words if they come next."""
        if all(self._word(number) == word for number, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def _skip(self) -> None:
        """Step over a word, or over all that is in parentheses."""
        depth = 0
        while self._at < len(self._tokens):
            depth += {"(": 1, ")": -1}.get(self._word(), 0)
            self._at += 1
            if depth <= 0:
                return

    def _name(self) -> str:
        parts = [self._part()]
        while self._word() == ".":
            self._at += 1
            parts.append(self._part())
        return ".".join(parts).lower()

    def _part(self) -> str:
        if self._at >= len(self._tokens) or self._word() in ("", "(", ")", "."):
            raise UsageError("the name of a relation is expected", code="usage.sql-syntax", location=self._location())
        self._at += 1
        return str(self._tokens[self._at - 1].text)

    def _names(self) -> tuple[str, ...]:
        """Names of columns in parentheses; none where a query stands there."""
        if self._word() != "(" or self._word(1) in (*_QUERY, "("):
            return ()
        names = []
        while self._word() not in (")", ""):
            self._at += 1
            names.append(self._part())
            if self._word() not in (",", ")"):
                raise self._refused("a column with a type or a comment")
        self._at += 1
        return tuple(names)

    def _query(self) -> str:
        start, end = self._tokens[self._at].start, self._tokens[-1].end + 1
        before = re.sub(r"[^\n]", " ", self._text[:start])
        if self._word() == "VALUES":
            before = before[: max(0, len(before) - len(_SELECT_ALL))] + _SELECT_ALL
        return before + self._text[start:end]

    def _refuse_insert_below(self) -> None:
        """Refuse ``WITH … INSERT``."""
        depth = 0
        for at in range(self._at, len(self._tokens)):
            word = self._word(at - self._at)
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth == 0 and word in ("INSERT", "UPDATE", "DELETE", "MERGE") and at > self._at:
                raise self._refused(f"WITH … {word}")

    def _refused(self, what: str) -> UsageError:
        return UsageError(
            f"{what} is not run here",
            code="usage.sql-unsupported",
            location=self._location(),
            hint="CREATE TABLE or VIEW … AS, INSERT INTO or OVERWRITE, DROP, and queries are",
        )

    def _location(self) -> str:
        start = self._tokens[0].start
        line, column = self._text.count("\n", 0, start) + 1, start - self._text.rfind("\n", 0, start)
        return f"{self._file}:{line}:{column}" if self._file else f"{line}:{column}"
