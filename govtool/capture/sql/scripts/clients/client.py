"""Client commands in scripts: what psql, sqlcmd, SQL*Plus, mysql and bteq read themselves and never send to the server.

They are blanked out in place, so that every offset and line of the text stays what it was (SQL*Plus: every line).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from govtool.capture.sql.scripts.clients.mysql import with_conditional_code, without_modifiers
from govtool.capture.sql.scripts.clients.sqlplus import read_sqlplus

_Replace: TypeAlias = Callable[[re.Match[str]], str]


class Cleaned(NamedTuple):
    """A script without client commands."""

    text: str
    """As long as the original, with line breaks in the same places; of SQL*Plus scripts only the lines are the same, as
    variables have values in it."""
    batches: tuple[int, ...] = ()
    """Offsets at which a batch ends (``GO``, a SQL*Plus slash, a custom delimiter)."""
    databases: tuple[tuple[int, str], ...] = ()
    """``(offset, name)`` where the script connects to another database (psql's ``\\c``)."""
    included: tuple[tuple[int, str], ...] = ()
    """``(offset, path)`` of scripts that it includes (``\\i``, ``@``, ``:r``, ``source``)."""
    executed: tuple[int, ...] = ()
    """Offsets at which what a query returns is run (psql's ``\\gexec``)."""
    unknown: tuple[tuple[int, str], ...] = ()
    """``(offset, name)`` of substitution variables (SQL*Plus's ``&x``) that have no value, where first used."""


_NO_BREAKS = re.compile(r"[^\r\n]+")
_INVISIBLE = {0xFEFF: " ", 0x200B: " ", 0x200C: " ", 0x200D: " ", 0x2060: " ", 0x1A: " ", 0x00: " "}
_COPY = re.compile(r"^[ \t]*COPY\b", re.IGNORECASE | re.MULTILINE)
_FROM_STDIN = re.compile(r"\bFROM\s+STDIN\b", re.IGNORECASE)
_COPY_END = re.compile(r"^\\\.[ \t\r]*$", re.MULTILINE)
_PSQL = re.compile(r"^[ \t]*\\(?P<name>[A-Za-z!?.]+)[ \t]*(?P<rest>[^\n]*)", re.MULTILINE)
_STDIN = re.compile(r"\bp?stdin\b", re.IGNORECASE)
_PSQL_SEND = re.compile(r"\\(?:gx?|gset|gexec|crosstabview|watch|gdesc)\b[^\n;]*+(?P<end>$)?", re.MULTILINE)
_GO = re.compile(r"^[ \t]*GO(?:[ \t]++\d++)?[ \t]*+;?[ \t\r]*+(?:--[^\n]*+)?$", re.IGNORECASE | re.MULTILINE)
# Without a dialect a slash alone on its line may divide; behind a semicolon it cannot.
_SLASH_AFTER_SEMICOLON = re.compile(r"(?<=;)(?P<gap>\s*?\n)[ \t]*/[ \t\r]*$", re.MULTILINE)
# The same without looking at each character for what is before it.
_LINE_OF_SLASH = re.compile(r"\n[ \t]*/[ \t\r]*(?:\n|\Z)")
_DELIMITER = re.compile(r"^[ \t]*DELIMITER[ \t]+(?P<mark>\S+)[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
_SQLCMD = re.compile(
    r"^[ \t]*:(?:r\b[ \t]*(?:\"(?P<quoted>[^\"\n]+)\"|(?P<file>[^\s\"]+))?|(?:setvar|on|connect)\b)[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_DOT = re.compile(r"^[ \t]*\.[a-zA-Z][^\n]*", re.MULTILINE)
_BANG = re.compile(r"^[ \t]*![a-zA-Z][^\n]*", re.MULTILINE)
_SOURCE = re.compile(r"^[ \t]*source[ \t]+(?P<file>[\w./\\-]+)[ \t\r]*;?$", re.IGNORECASE | re.MULTILINE)

_MYSQL = re.compile(
    r"^(?:warnings|nowarning|notee|tee[ \t]++[^\n;=()]++)[ \t]*+;?[ \t\r]*+$", re.IGNORECASE | re.MULTILINE
)

_PSQL_DIALECTS = frozenset({"", "postgres", "redshift", "materialize", "risingwave"})
_GO_DIALECTS = frozenset({"", "tsql", "fabric"})
_MYSQL_DIALECTS = frozenset({"mysql", "singlestore", "doris", "starrocks"})
_DOT_DIALECTS = frozenset({"sqlite", "duckdb", "teradata"})
_MYSQL_COMMANDS = ("\nwarnings", "\nnowarning", "\ntee", "\nnotee")
_SQLCMD_COMMANDS = (":r", ":setvar", ":on", ":connect")
_DELIMITER_DIALECTS = frozenset({"", "mysql", "doris", "starrocks", "singlestore", "sqlite"})


def clean(text: str, dialect: str) -> Cleaned:
    """Blank out the client commands of a script.

    Args:
        text: The script.
        dialect: A sqlglot dialect name: which clients may have been meant. Empty allows all that cannot be mistaken.
    """
    text = _visible(text)
    if dialect == "oracle":
        script = read_sqlplus(text)
        return Cleaned(script.text, script.batches, (), script.included, (), script.unknown)
    commands = _Commands()
    lower = text.lower()
    # Substrings first: a search for lines that may begin with any of these costs half a parse. And before these, single
    # characters, which are found ten times as fast.
    if dialect in _PSQL_DIALECTS and ("\\" in text or "stdin" in lower):
        text = _psql(text, commands)
    if dialect in _MYSQL_DIALECTS:
        text = _mysql(text, lower)
    if dialect in _DELIMITER_DIALECTS and "delimiter" in lower:
        text = _delimiters(text, commands.batches)
    if dialect and dialect in _DELIMITER_DIALECTS and "source " in lower:
        text = _SOURCE.sub(_including(commands.included), text)
    if dialect in _GO_DIALECTS:
        text = _sqlcmd(text, lower, dialect, commands)
    if not dialect and _may_end_in_slash(text) and _LINE_OF_SLASH.search(text):
        text = _SLASH_AFTER_SEMICOLON.sub(_blank, text)
    if dialect == "snowflake" and "!" in text:
        text = _BANG.sub(_blank, text)
    elif dialect in _DOT_DIALECTS:
        text = _DOT.sub(_blank, text)
    return commands.cleaned(text)


def _visible(text: str) -> str:
    """Turn characters without a width into spaces."""
    plain = text.isascii() and "\0" not in text and "\x1a" not in text
    return text if plain else text.translate(_INVISIBLE)


class _Commands:
    """The client commands of a script that decide how it is read; as in ``Cleaned``."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.databases: list[tuple[int, str]] = []
        self.included: list[tuple[int, str]] = []
        self.executed: tuple[int, ...] = ()

    def cleaned(self, text: str) -> Cleaned:
        """Return the script without its commands."""
        batches, databases, included = tuple(sorted(self.batches)), tuple(self.databases), tuple(self.included)
        return Cleaned(text, batches, databases, included, self.executed)


def _mysql(text: str, lower: str) -> str:
    """MySQL's conditional comments, modifiers of DELETE, and commands of its client."""
    if "/*" in text and ("/*!" in text or "/*M!" in text):
        text = with_conditional_code(text)
    if "delete" in lower and ("quick" in lower or "low_priority" in lower or "ignore" in lower):
        text = without_modifiers(text)
    if any(command in lower for command in _MYSQL_COMMANDS):
        text = _MYSQL.sub(_blank, text)
    return text


def _sqlcmd(text: str, lower: str, dialect: str, commands: _Commands) -> str:
    """Commands of sqlcmd, and ``GO``."""
    if ":" in text and any(command in lower for command in _SQLCMD_COMMANDS):
        text = _SQLCMD.sub(_including(commands.included), text)
    if dialect or "\ngo" in lower or lower.startswith("go"):
        text = _GO.sub(_separator(commands.batches), text)
    return text


def _may_end_in_slash(text: str) -> bool:
    return "/" in text and ("/\n" in text or "/\r" in text or text.endswith("/"))


def _spaces(text: str) -> str:
    return _NO_BREAKS.sub(lambda match: " " * (match.end() - match.start()), text)


def _blank(match: re.Match[str]) -> str:
    return _spaces(match.group())


def _including(included: list[tuple[int, str]]) -> _Replace:
    def replace(match: re.Match[str]) -> str:
        name = match.groupdict().get("quoted") or match["file"]
        if name:
            included.append((match.start(), name))
        return _spaces(match.group())

    return replace


def _separator(batches: list[int]) -> _Replace:
    def replace(match: re.Match[str]) -> str:
        batches.append(match.start())
        blank = _spaces(match.group())
        # The separator ends a statement even where no semicolon does.
        return ";" + blank[1:] if blank and blank[0] not in "\r\n" else blank

    return replace


def _without_rows(text: str) -> str:
    """Blank out the rows that follow ``COPY t FROM STDIN;``, up to the line that ends them."""
    position = 0  # before it, nothing is left to find
    copied = 0
    parts: list[str] = []
    for match in _COPY.finditer(text):
        if match.start() < position:
            continue
        semicolon = text.find(";", match.end())
        line_end = text.find("\n", semicolon)
        if semicolon < 0 or line_end < 0:
            break
        if _FROM_STDIN.search(text, match.end(), semicolon) is None:
            position = semicolon
            continue
        end = _COPY_END.search(text, line_end + 1)
        if end is None:
            break
        parts.append(text[copied : line_end + 1])
        parts.append(_spaces(text[line_end + 1 : end.end()]))
        position = copied = end.end()
    return "".join(parts) + text[copied:]


def _psql(text: str, commands: _Commands) -> str:
    commands.executed = tuple(
        [m.start() for m in _PSQL_SEND.finditer(text) if m["end"] is not None and m.group().startswith("\\gexec")]
    )
    text = _without_rows(text)

    def command(match: re.Match[str]) -> str:
        name, rest = match["name"], match["rest"].split()
        if name in ("c", "connect") and rest and rest[0] != "-":
            commands.databases.append((match.start(), rest[0].strip('"')))
        elif name in ("i", "ir", "include", "include_relative") and rest:
            commands.included.append((match.start(), rest[0].strip("'")))
        elif name == "copy" and not _STDIN.search(match["rest"]):  # COPY of a file beside the client
            # Its end is that of the line: a semicolon takes the place of the backslash, so that offsets stay.
            return match.group().replace("\\", "", 1) + ";"
        return _spaces(match.group())

    if "\\" not in text:
        return text
    text = _PSQL.sub(command, text)
    return _PSQL_SEND.sub(lambda m: m.group() if m["end"] is None else ";" + " " * (len(m.group()) - 1), text)


def _delimiters(text: str, batches: list[int]) -> str:
    """Turn a custom delimiter into semicolons; the bodies in between keep theirs and are read as blocks."""
    marks = list(_DELIMITER.finditer(text))
    if not marks:
        return text
    parts = [text[: marks[0].start()]]
    for index, mark in enumerate(marks):
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        body = text[mark.end() : end]
        delimiter = mark["mark"]
        if delimiter != ";":
            offset = mark.end()
            pattern = re.compile(re.escape(delimiter) + r"(?=[ \t\r]*(?:--[^\n]*|#[^\n]*)?$)", re.MULTILINE)
            for found in pattern.finditer(body):
                batches.append(offset + found.start())
            body = pattern.sub(lambda m: ";" + " " * (len(m.group()) - 1), body)
        parts.append(_spaces(mark.group()))
        parts.append(body)
    return "".join(parts)
