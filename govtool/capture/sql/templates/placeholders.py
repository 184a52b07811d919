"""Query parameters that SQL parsers choke on: ``${name}``, ``%(name)s``, ``{name}``, ``:'name'``, ``&name``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

_SKIP = r"(?<!\\)'(?:[^'\\\n]|''|\\.)*+'|--[^\n]*|/\*[\s\S]*?\*/"
_PARAMETERS = re.compile(
    rf"(?P<skip>{_SKIP})"
    r"|\$\{(?:hiveconf:|hivevar:|env:|system:|spark\.)?(?P<dollar>[A-Za-z_][\w.:-]*)\}"
    r"|%\((?P<percent>\w+)\)s"
    r"|(?<![\w{$}])\{(?P<brace>[A-Za-z_]\w*)\}(?!\})"
    r"|(?<=\w[._])\{(?P<inner>[A-Za-z_]\w*)\}(?!\})"
    r"|(?<![\w:)\]\"'])(?P<psql>:(?:'(?P<literal>\w+)'|\"(?P<name>\w+)\"))"
)
_SQLPLUS = re.compile(r"&&?(?P<name>[A-Za-z_]\w*|\d+)\.?")
_SCHEMA = re.compile(r"@(?<![\w@]@)(?P<name>[A-Za-z_]\w*)(?=\.(?!nodes\s*\()[A-Za-z_\"\[@])", re.IGNORECASE)
"""It begins with a character, which the engine finds thirty times as fast as it looks behind itself at each place."""
_BEFORE_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|UPDATE|EXISTS|VIEW|REFERENCES|USING)\s+\Z", re.IGNORECASE)
_NO_SCHEMAS = frozenset({"snowflake", "mysql", "singlestore", "doris", "starrocks"})
"""Dialects in which ``@a.b`` is a stage or a variable."""
_IN_TEXT = re.compile(r"\$\{(?:hiveconf:|hivevar:|env:)?([A-Za-z_][\w.-]*)\}")


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
    # A single character is found ten times as fast as two.
    percent, colon = "%" in text and "%(" in text, ":" in text and (":'" in text or ':"' in text)
    if not percent and not colon and "{" not in text:
        return text
    if text.count("/*", text.rfind("*/") + 1) > _MOST_UNCLOSED:
        return text  # each would be followed to the end
    return _PARAMETERS.sub(partial(_replaced, variables or {}), text)


def parameters(text: str) -> Iterator[re.Match[str]]:
    """Yield the parameters of a text, with their names in the groups ``dollar``, ``percent``, ``brace`` and others."""
    if "{" not in text or text.count("/*", text.rfind("*/") + 1) > _MOST_UNCLOSED:
        return
    for match in _PARAMETERS.finditer(text):
        if match["skip"] is None:
            yield match


def plain_name(name: str) -> str:
    """The name that stands for a parameter without a value."""
    return re.sub(r"\W", "_", name)


def _replaced(values: Mapping[str, object], match: re.Match[str]) -> str:
    """What stands in the place of a parameter."""
    if match["skip"] is not None:
        skipped = match.group()
        if "${" in skipped and skipped[0] == "'":
            return _IN_TEXT.sub(lambda m: str(values.get(m[1], m[1])), skipped)
        return skipped
    if match["dollar"] is not None:
        return _value(match["dollar"], values)
    if match["percent"] is not None:
        name = match["percent"]
        return _value(name, values) if name in values else f":{name}"
    if match["literal"] is not None:
        return f"'{match['literal']}'"
    if match["name"] is not None:
        # Snowflake writes paths into semi-structured columns like this (src:"key"); psql puts a blank before it.
        before = match.string[match.start() - 1 : match.start()]
        return f'"{match["name"]}"' if before.isspace() else match.group()
    return _value(match["brace"] or match["inner"], values)


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
        before = match.string[max(match.start() - 40, 0) : match.start()]
        return _value(match["name"], values) if _BEFORE_TABLE.search(before) is not None else match.group()

    return _SCHEMA.sub(replace, text)


def _value(name: str, values: Mapping[str, object]) -> str:
    value = values.get(name)
    if isinstance(value, (str, int, float)) and not isinstance(value, bool) and len(str(value)) < 10_000:
        return str(value)
    return plain_name(name)
