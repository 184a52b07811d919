"""Query parameters that SQL parsers choke on, such as ``${name}``, ``$(name)``, ``{name}``, ``:'name'``."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

_SKIP = r"(?<!\\)'(?:[^'\\\n]|''|\\.)*+'|--[^\n]*|/\*[\s\S]*?\*/"
_PARAMETERS = re.compile(
    rf"(?P<skip>{_SKIP})"
    r"|\$\{(?:hiveconf:|hivevar:|env:|system:|spark\.)?(?P<dollar>[A-Za-z_][\w.:-]*)\}"
    r"|\$\((?P<sqlcmd>[A-Za-z_][\w-]*)\)"
    r"|%\((?P<percent>\w+)\)s"
    r"|(?<![\w{$}])\{(?P<brace>[A-Za-z_]\w*)\}(?!\})"
    r"|(?<=\w[._])\{(?P<inner>[A-Za-z_]\w*)\}(?!\})"
    r"|(?<![\w:)\]\"'])(?P<psql>:(?:'(?P<literal>\w+)'|\"(?P<name>\w+)\"))"
)
_SQLPLUS = re.compile(r"&&?(?P<name>[A-Za-z_]\w*|\d+)\.?")
_SCHEMA = re.compile(r"@(?<![\w@]@)(?P<name>[A-Za-z_]\w*)(?=\.(?!nodes\s*\()[A-Za-z_\"\[@])", re.IGNORECASE)
"""It begins with a character, which the engine finds thirty times as fast as it looks behind itself at each place."""
_NAMES: Final = ("dollar", "sqlcmd", "brace", "inner", "name")
"""Groups of parameters that may stand for a name."""
_BEFORE_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|UPDATE|EXISTS|VIEW|REFERENCES|USING)\s+\Z", re.IGNORECASE)
_NO_SCHEMAS = frozenset({"snowflake", "mysql", "singlestore", "doris", "starrocks"})
"""Dialects in which ``@a.b`` is a stage or a variable."""
_IN_TEXT = re.compile(
    r"\$\{(?:hiveconf:|hivevar:|env:)?(?P<dollar>[A-Za-z_][\w.-]*)\}|\$\((?P<sqlcmd>[A-Za-z_][\w-]*)\)"
)
_RUN = re.compile(r"(?:\bEXEC(?:UTE)?\s*\(?|\bsp_executesql\s|\bIMMEDIATE\s|[=+|])\s*N?\Z", re.IGNORECASE)
"""Before a text that may be run as SQL."""
_SETVAR = re.compile(
    r"^[ \t]*:setvar[ \t]+(?P<name>[A-Za-z_][\w-]*)(?:[ \t]+(?:\"(?P<quoted>[^\"\n]*)\"|(?P<plain>\S+)))?",
    re.IGNORECASE | re.MULTILINE,
)
_SQLCMD: Final = frozenset({"", "tsql", "fabric"})
"""Dialects whose client has variables, ``$(name)``."""


_MOST_UNCLOSED: Final = 1_000
"""Beginnings of block comments behind the end of the last one: a text with more is no SQL."""


def fill(text: str, variables: Mapping[str, object] | None = None, dialect: str = "") -> str:
    """The text with such parameters replaced by their value, or by a harmless name of the same meaning. Lines stay.

    ``?``, ``:name``, ``@name`` and ``$1`` are left to the parser, except in ``FROM @name.t``, as
    OHDSI's SqlRender writes schemas; ``&name`` without a value to the reader of SQL*Plus's scripts.
    """
    if dialect == "oracle" and variables and "&" in text:
        text = _substituted(text, variables)
    if "@" in text and dialect not in _NO_SCHEMAS:
        text = _with_schemas(text, variables or {})
    if not _has_parameters(text, dialect):
        return text
    return _PARAMETERS.sub(partial(_replaced, ParameterValues(text, variables, dialect)), text)


def _has_parameters(text: str, dialect: str) -> bool:
    """Return whether a text may have parameters, and is SQL: without a search for each of them."""
    # A single character is found ten times as fast as two.
    found = (
        "{" in text
        or ("%" in text and "%(" in text)
        or (":" in text and (":'" in text or ':"' in text))
        or (dialect in _SQLCMD and "$" in text and "$(" in text)
    )
    # Each unclosed comment would be followed to the end.
    return found and text.count("/*", text.rfind("*/") + 1) <= _MOST_UNCLOSED


class ParameterValues:
    """What the parameters of a text stand for: as given, or as the script sets them (sqlcmd's ``:setvar``)."""

    def __init__(self, text: str, variables: Mapping[str, object] | None, dialect: str) -> None:
        """Find what the script sets."""
        self.given = variables or {}
        self.has_sqlcmd = dialect in _SQLCMD
        self.set: dict[str, list[tuple[int, str | None]]] = {}
        """By lower-case name, the places where a value begins to count, in order."""
        if self.has_sqlcmd and ":" in text and ":setvar" in text.lower():
            for match in _SETVAR.finditer(text):
                value = match["plain"] if match["quoted"] is None else match["quoted"]
                self.set.setdefault(match["name"].lower(), []).append((match.start(), value))

    def of_sqlcmd(self, name: str, at: int) -> object:
        """Return the value of a variable of sqlcmd at a place; None if it has none."""
        values = self.set.get(name.lower(), ())
        before = bisect_left(values, at, key=lambda item: item[0])
        return values[before - 1][1] if before else self.given.get(name)

    def of(self, match: re.Match[str], at: int) -> object:
        """Return the value of a parameter in the place of a name; None if nobody gave it one."""
        name = name_of(match)
        return self.of_sqlcmd(name, at) if match["sqlcmd"] is not None else self.given.get(name)


def name_of(match: re.Match[str]) -> str:
    """Return the name of a parameter that may stand for a name; empty for others."""
    found = match.groupdict()
    return next((found[group] for group in _NAMES if found.get(group)), "")


def parameters(text: str, values: ParameterValues) -> Iterator[re.Match[str]]:
    """Yield the parameters of a text that may stand for names, and have no value; those in a text that is run, too."""
    if not _has_parameters(text, "" if values.has_sqlcmd else "-"):
        return
    for match in _PARAMETERS.finditer(text):
        skipped = match["skip"]
        if skipped is None:
            if values.has_sqlcmd or match["sqlcmd"] is None:
                yield match
        elif skipped[0] == "'" and "$" in skipped and _RUN.search(text, max(match.start() - 40, 0), match.start()):
            for inner in _IN_TEXT.finditer(text, match.start(), match.end()):
                if values.has_sqlcmd or inner["sqlcmd"] is None:
                    yield inner


def schemas(text: str, values: ParameterValues, dialect: str) -> Iterator[str]:
    """Yield the names of ``@schema`` in front of a table's name that have no value."""
    if "@" in text and dialect not in _NO_SCHEMAS:
        for match in _SCHEMA.finditer(text):
            if match["name"] not in values.given and _is_before_table(match):
                yield match["name"]


def plain_name(name: str) -> str:
    """The name that stands for a parameter without a value."""
    return re.sub(r"\W", "_", name)


def _replaced(known: ParameterValues, match: re.Match[str]) -> str:
    """What stands in the place of a parameter."""
    values = known.given
    if match["skip"] is not None:
        return _in_text(known, match)
    if match["dollar"] is not None:
        return _value(match["dollar"], values)
    if match["sqlcmd"] is not None:
        name = match["sqlcmd"]
        return _value(name, {name: known.of_sqlcmd(name, match.start())}) if known.has_sqlcmd else match.group()
    if match["percent"] is not None:
        name = match["percent"]
        return _value(name, values) if name in values else f":{name}"
    if match["literal"] is not None:
        return f"'{match['literal']}'"
    if match["name"] is not None:
        # Snowflake writes paths into semi-structured columns like this (src:"key"); psql puts a blank before it.
        before = match.string[match.start() - 1 : match.start()]
        return f'"{_value(match["name"], values)}"' if before.isspace() else match.group()
    return _value(match["brace"] or match["inner"], values)


def _in_text(known: ParameterValues, match: re.Match[str]) -> str:
    """A comment, or a text with the values of the parameters in it."""
    skipped = match.group()
    if skipped[0] != "'" or "$" not in skipped:
        return skipped

    def replace(inner: re.Match[str]) -> str:
        name = inner["dollar"]
        if name is not None:
            return str(known.given.get(name, name))
        if not known.has_sqlcmd:
            return inner.group()
        value = known.of_sqlcmd(inner["sqlcmd"], match.start())
        return inner["sqlcmd"] if value is None else str(value)

    return _IN_TEXT.sub(replace, skipped)


def _substituted(text: str, variables: Mapping[str, object]) -> str:
    """The text with the values of SQL*Plus's variables, in literals, too; their names know no case."""
    values = {name.lower(): value for name, value in variables.items()}

    def replace(match: re.Match[str]) -> str:
        value = values.get(match["name"].lower())
        return match.group() if value is None or "\n" in str(value) else str(value)

    return _SQLPLUS.sub(replace, text)


def _with_schemas(text: str, values: Mapping[str, object]) -> str:
    """The text with names for ``@schema`` in front of a table's name; T-SQL's ``@xml.nodes()`` is none."""

    def replace(match: re.Match[str]) -> str:
        return _value(match["name"], values) if _is_before_table(match) else match.group()

    return _SCHEMA.sub(replace, text)


def _is_before_table(match: re.Match[str]) -> bool:
    return _BEFORE_TABLE.search(match.string[max(match.start() - 40, 0) : match.start()]) is not None


def _value(name: str, values: Mapping[str, object]) -> str:
    value = values.get(name)
    if isinstance(value, (str, int, float)) and not isinstance(value, bool) and len(str(value)) < 10_000:
        return str(value)
    return plain_name(name)
