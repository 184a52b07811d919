"""SQL*Plus scripts: commands of the client, buffers that end at a slash, and substitution variables.

Source: SQL*Plus User's Guide and Reference (Running Scripts; SQL*Plus Command Reference). A line is a client command
only where a statement may begin: ``CONNECT BY`` and ``START WITH`` in a query are none, nor is a variable ``host`` of a
block. A block ends at a line of its own with a slash, any other statement at a semicolon that ends a line.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from govtool.capture.sql.syntax.lexer import word_set


class SqlPlusScript(NamedTuple):
    """A script without its client commands. Lines are those of the original; offsets are those of ``text``."""

    text: str
    batches: tuple[int, ...]
    """Ends of what was typed: a slash or a dot."""
    included: tuple[tuple[int, str], ...]
    """``(offset, path)`` of scripts that it starts; a path may hold substitution variables."""
    unknown: tuple[tuple[int, str], ...]
    """``(offset, name)`` of substitution variables that nothing gives a value, where they are first used."""


def _abbreviated(text: str) -> frozenset[str]:
    """The commands of ``PRO[MPT] COL[UMN]``, with all their abbreviations."""
    found: set[str] = set()
    for command in text.split():
        short, _, rest = command.rstrip("]").partition("[")
        found.update(short + rest[:size] for size in range(len(rest) + 1))
    return frozenset(found)


_COMMANDS: Final = _abbreviated(
    """ACC[EPT] ARCHIVE ATTRIBUTE BRE[AK] BTI[TLE] CL[EAR] COL[UMN] COMP[UTE] CONN[ECT] DEF[INE] DESC[RIBE]
    DISC[ONNECT] ED[IT] EXIT HELP HIST[ORY] HO[ST] L[IST] ORADEBUG PASSW[ORD] PAU[SE] PRI[NT] PRO[MPT] QUIT RECOVER
    REM[ARK] REPF[OOTER] REPH[EADER] RUN SAV[E] SET SHO[W] SHUTDOWN SPO[OL] STA[RT] STARTUP STORE TIMI[NG] TTI[TLE]
    UNDEF[INE] VAR[IABLE] WHENEVER XQUERY"""
)
_ANYWHERE: Final = _abbreviated("ACC[EPT] PRO[MPT] SPO[OL] REM[ARK] WHENEVER SHO[W]")
"""Commands that also end a statement which nothing else ended, behind an empty line: no line of SQL begins so."""
_SERVER_SETS: Final = word_set("ROLE TRANSACTION CONSTRAINT CONSTRAINTS")
_EXECUTE: Final = _abbreviated("EXEC[UTE]")
_SQL: Final = word_set("SELECT INSERT UPDATE DELETE MERGE")
_BLOCK_WORDS: Final = word_set("CREATE DECLARE BEGIN WITH")
_START: Final = _abbreviated("STA[RT]")
_DEFINE: Final = _abbreviated("DEF[INE]")

_WORD = re.compile(r"[A-Za-z]+(?![\w$#])")
_FIRST = re.compile(r"\s*([A-Za-z]+)")
_NO_COMMAND = re.compile(r"[ \t]*(?::=|[(.%=])")
"""Tokens that follow a name in an assignment, a call or a comparison."""
_BLOCK = re.compile(
    r"(?:DECLARE|BEGIN|WITH\s+(?:FUNCTION|PROCEDURE)"
    r"|CREATE\s+(?:OR\s+REPLACE\s+)?(?:AND\s+(?:RESOLVE|COMPILE)\s+)?(?:NOFORCE\s+|FORCE\s+)?(?:NON)?(?:EDITIONABLE\s+)?"
    r"(?:FUNCTION|PROCEDURE|PACKAGE|TRIGGER|TYPE\s+BODY|LIBRARY|(?P<java>JAVA)))\b|<<",
    re.IGNORECASE,
)
_BLOCK_END = re.compile(r"END\b[^;]*;\s*(?:--.*)?$", re.IGNORECASE)
_STATEMENT_END = re.compile(r";\s*(?:--.*)?$")
_DEFINITION = re.compile(r"\w+[ \t]+(?P<name>\w+)[ \t]*=[ \t]*(?P<value>'[^']*'|\"[^\"]*\"|\S+)")
_SET_DEFINE = re.compile(r"SET[ \t]+(?:DEF(?:INE)?|SCAN)[ \t]+(?P<value>\S+)", re.IGNORECASE)
_PATH = re.compile(r"[^\s;]+")
_VARIABLE = re.compile(r"&&?(?P<name>[A-Za-z_]\w*|\d+)(?P<dot>\.?)")
_NAMED = re.compile(
    r"(?:\b(?:FROM|JOIN|INTO|TABLE|UPDATE|VIEW|INDEX|TABLESPACE|USER|ROLE|SCHEMA|SEQUENCE|SYNONYM|TO|USING|DIRECTORY|TYPE"
    r"|PROCEDURE|FUNCTION|PACKAGE|BODY|TRIGGER|CONSTRAINT|COLUMN|AS|EDITION|LINK|MERGE|IDENTIFIED[ \t]+BY"
    r"|REFERENCES)[ \t]*"
    r"|CURRENT_SCHEMA[ \t]*=[ \t]*|^[ \t]*(?:GRANT|CREATE|REVOKE)\b.*\bON[ \t]*|[\w$#.\"@&])$",
    re.IGNORECASE,
)
"""Tokens before a variable that holds a name or a part of one."""
_DIRECTIVE = re.compile(
    r"\$(?:(?:IF|ELSIF)\b(?P<test>.*?)(?P<then>\$THEN\b|$)|ELSE\b|END\b|ERROR\b.*?\$END\b)", re.IGNORECASE
)
_INQUIRY = re.compile(r"\$\$(?=[A-Za-z])")
_ITEM = re.compile(r",[ \t]*$")
_CLAUSES = re.compile(r"\b(?:SELECT|FROM|WHERE|BY|HAVING|VALUES|SET|ON|AND|OR|WHEN)\b|\(", re.IGNORECASE)
_LINES_ABOVE: Final = 12
_LONGEST_VALUE: Final = 2_000
"""Characters of a value (240 in SQL*Plus)."""
_ROOM: Final = 10_000_000
_ENOUGH: Final = 400
"""Characters before a variable that may tell what it is."""
_NAME_GOES_ON = re.compile(r"[\w$#.\"@&]")


def read_sqlplus(text: str) -> SqlPlusScript:
    """Blank out the commands of the client, and put values for substitution variables.

    Args:
        text: The script.
    """
    if _is_plain(text):
        return SqlPlusScript(text, (), (), ())
    reader = _Reader()
    lines = text.split("\n")
    for index, line in enumerate(lines):
        reader.line(line, lines, index)
    return SqlPlusScript(
        "\n".join(reader.lines), tuple(reader.batches), tuple(reader.included), tuple(reader.unknown.values())
    )


def _last_clause(text: str) -> str:
    """The clause that an item at the end of a text is in."""
    found = _CLAUSES.findall(text)
    return found[-1].upper() if found else ""


def _plain(name: str) -> str:
    """A variable's name as an identifier."""
    return f"arg{name}" if name[0].isdigit() else name.lstrip("_") or "name"


def _is_plain(text: str) -> bool:
    """Return whether a text is one statement, as logs hold them: nothing in it can be the client's."""
    for mark in (";", "&", "$", "\n/", "\n.", "\n\n", "\n\r"):
        if mark in text:
            return False
    first = _FIRST.match(text)
    return first is not None and (first.group(1).upper() in _SQL or first.group(1).upper() == "WITH")


class _Reader:
    """The reader's state in a script: between statements, in one, in a block, in a comment."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.offset = 0
        self.batches: list[int] = []
        self.included: list[tuple[int, str]] = []
        self.unknown: dict[str, tuple[int, str]] = {}
        self.values: dict[str, str] = {}
        self.room = _ROOM
        """Characters of values that may still be put into the script."""
        self.prefix = "&"
        self.state = ""
        """Nothing between statements; ``sql``, ``block`` or ``java`` within one."""
        self.comment = False
        self.continued = False
        """The line before was a command that a hyphen continues."""
        self.testing = False
        """In the condition of a ``$IF`` whose ``$THEN`` is yet to come."""
        self.ended = False
        """The line before ended a block without a slash, or is empty."""

    def line(self, line: str, lines: list[str], index: int) -> None:
        """Read one line."""
        bare = line.strip()
        if self.continued:
            self.continued = bare.endswith("-")
            self._add("")
        elif self.comment:
            self.comment = "*/" not in bare
            self._add(line)
        elif not bare:
            self.ended = self.ended or self.state == "sql"
            self._add(line)
        elif bare in ("/", "."):
            self.batches.append(self.offset)
            self.state, self.ended = "", False
            self._add(";")
        elif self.state == "execute":
            self._execute(line, bare)
        elif not self.state or self.ended:
            self._first(line, bare, lines, index)
        else:
            self._next(line, bare)

    def _first(self, line: str, bare: str, lines: list[str], index: int) -> None:
        """A line at which a statement may begin."""
        if bare[:2] == "--":
            self._add(line)
            return
        if bare[:2] == "/*" and bare[:3] != "/*+":
            self._comment_line(line, bare, lines, index)
            return
        found = _WORD.match(bare)
        word = found.group().upper() if found is not None and found.end() < 12 else ""
        if not self.state and word in _SQL:
            self.state, self.ended = "sql", False
            self._next(line, bare)
        elif self.state and not (bare[0] == "@" or word in _ANYWHERE or (self.state == "block" and word == "CREATE")):
            self.ended = False
            self._next(line, bare)
        elif _is_command(bare, word):
            self._command(line, bare, word)
        elif word in _EXECUTE and bare[len(word) :].lstrip()[:9].upper() != "IMMEDIATE":
            self.state = "execute"
            self._execute(line, bare)
        else:
            self._begin(bare, lines, index)
            if self.state == "java":  # the rest is in another language
                self._add(line)
            else:
                self._next(line, bare)

    def _comment_line(self, line: str, bare: str, lines: list[str], index: int) -> None:
        """A line that begins with a comment, behind which a statement may begin."""
        rest = bare.partition("*/")[2].strip()
        self.comment = "*/" not in bare
        if rest and not self.state:
            self._begin(rest, lines, index)
            self._closes(rest)
        self._add(self._substituted(line))

    def _begin(self, bare: str, lines: list[str], index: int) -> None:
        self.ended = False
        found = _WORD.match(bare)
        block = None
        if bare[0] == "<" or (found is not None and found.group().upper() in _BLOCK_WORDS):
            block = _BLOCK.match("\n".join([bare, *lines[index + 1 : index + 4]]))
        self.state = "sql" if block is None else "block"
        if block is not None and block["java"]:
            self.state = "java"

    def _execute(self, line: str, bare: str) -> None:
        """``EXECUTE statement``: a call, which ends with its line."""
        if bare[-1] == "-":
            self._add(self._substituted(line.rstrip()[:-1]))
            return
        self.state = ""
        self._add(self._substituted(line if bare[-1] == ";" else f"{line.rstrip()};"))

    def _command(self, line: str, bare: str, word: str) -> None:
        """A command of the client, or one that goes to the server (``SET ROLE``)."""
        if word == "SET":
            second = _WORD.match(bare[3:].lstrip())
            if second is not None and second.group().upper() in _SERVER_SETS:
                self.state = "sql"
                self._next(line, bare)
                return
            setting = _SET_DEFINE.match(bare)
            if setting is not None:
                self.prefix = "" if setting["value"].upper().rstrip(";") == "OFF" else "&"
        elif word in _DEFINE and (given := _DEFINITION.match(bare)) is not None:
            value = self._value_of(given["value"])
            if len(value) <= _LONGEST_VALUE:
                self.values[given["name"].lower()] = value[1:-1] if value[0] in "'\"" else value
        elif bare[0] == "@" or word in _START:
            path = _PATH.match(bare.lstrip("@ \t") if bare[0] == "@" else bare[len(word) :].lstrip())
            if path is not None:
                self.included.append((self.offset, self._value_of(path.group())))
        self.continued = bare.endswith("-") and bare[:2] != "--"
        closes = ";" if self.state else ""  # it ends what nothing else ended
        self.state, self.ended = "", False
        self._add(f"*/{closes}" if "*/" in bare and "/*" not in bare else closes)

    def _next(self, line: str, bare: str) -> None:
        """A line of a statement."""
        if self.state == "java":
            self._add("")
            return
        opened = bare.rfind("/*")
        if opened >= 0 and "*/" not in bare[opened:] and "--" not in bare[:opened]:
            self.comment = bare.count("'", 0, opened) % 2 == 0
        self._add(self._substituted(self._compiled(line) if "$" in line or self.testing else line))
        self._closes(bare)
        if self.state == "block" and bare[-1] == ";" and not line[0].isspace():
            self.ended = _BLOCK_END.match(line) is not None

    def _closes(self, bare: str) -> None:
        """A semicolon that ends a line ends a statement which is no block."""
        if self.state != "sql" or ";" not in bare or bare[:2] == "--":
            return
        if bare[-1] == ";" or _STATEMENT_END.search(bare) is not None:
            self.state = ""

    def _compiled(self, line: str) -> str:
        """A line without the directives of conditional compilation: what any version would compile is read."""
        if self.testing:
            behind = line.upper().find("$THEN")
            self.testing = behind < 0
            line = "" if self.testing else " " * (behind + 5) + line[behind + 5 :]

        def blank(match: re.Match[str]) -> str:
            self.testing = self.testing or (match["test"] is not None and not match["then"])
            return " " * len(match.group())

        return _INQUIRY.sub(" :", _DIRECTIVE.sub(blank, line))

    # -- substitution variables ------------------------------------------------------------------------------------

    def _value_of(self, text: str) -> str:
        """A command's word with the values of its variables that have one."""
        return _VARIABLE.sub(lambda m: self.values.get(m["name"].lower(), m.group()), text)

    def _substituted(self, line: str) -> str:
        """A line of SQL with values for its variables: what was defined, or a harmless name or parameter."""
        if "&" not in line or not self.prefix:
            return line
        parts: list[str] = []
        position = quotes = written = 0
        commented = False
        preceding = ""  # what stands before, as far as it tells what a variable is
        for match in _VARIABLE.finditer(line):
            name = match["name"]
            between = line[position : match.start()]
            parts.append(between)
            quotes += between.count("'")
            commented = commented or "--" in between
            position = match.end()
            written += len(between)
            preceding = (preceding + between)[-_ENOUGH:]
            value = self.values.get(name.lower())
            if value is not None and (whole := _VARIABLE.fullmatch(value)) is not None:
                name, value = whole["name"], None
            if value is not None and len(value) <= self.room:
                self.room -= len(value)
                parts.append(_VARIABLE.sub(lambda m: _plain(m["name"]), value) if "&" in value else value)
            elif match["dot"] and quotes % 2:
                parts.append(_plain(name))
            elif quotes % 2 or commented:
                parts.append(match.group())
            else:
                parts.append(self._placeholder(name, preceding, written, line[position : position + 1]))
            written += len(parts[-1])
            preceding += parts[-1]
        if not position:
            return line
        parts.append(line[position:])
        return "".join(parts)

    def _placeholder(self, name: str, before: str, column: int, after: str) -> str:
        """A name where one must stand, else a parameter."""
        plain = _plain(name)
        self.unknown.setdefault(name.lower(), (self.offset + column, name))
        if after and _NAME_GOES_ON.match(after) is not None:
            return plain
        if not before.strip() or before.rstrip()[-1] == ",":
            before = self._text_before(before)
        if _NAMED.search(before) is not None or (_ITEM.search(before) is not None and _last_clause(before) == "FROM"):
            return plain
        return f":{plain}"

    def _text_before(self, before: str) -> str:
        """Return the text before a variable, with the lines above it."""
        lines = [line.partition("--")[0].rstrip() for line in self.lines[-_LINES_ABOVE:]]
        return " ".join([*[line for line in lines if line], before.strip()]).rstrip() + " "

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self.offset += len(line) + 1


def _is_command(bare: str, word: str) -> bool:
    """Return whether a line is a command of the client."""
    if bare[0] in "@$!#0123456789" or word in _ANYWHERE:
        return True
    return word in _COMMANDS and _NO_COMMAND.match(bare, len(word)) is None
