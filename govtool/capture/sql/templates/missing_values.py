"""Values that a template or script needs and that nobody gave: where in the SQL each of them stands, what is missing
there, and what is written in its place.

A rendering has them between marks of private characters. What stands before the name says what it is: nothing (a
macro), ``=`` (a value), ``!`` (a note). Here ``=>`` is a relation that is written, ``=~pattern|`` a part of the name of
one, ``?`` a column or a part of its name, ``.`` a part before the last of a relation's name, ``:`` a type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from govtool.capture.sql.syntax.lexer import word_set
from govtool.model.diagnostic import Diagnostic

LINE_MARK = re.compile("\ue000(\\d+)\ue001")
"""The line of the template that what follows is on."""
MISSING = re.compile("\ue002([^\ue002\ue003]*)\ue003")
_OPERAND_WORDS = word_set(
    """SELECT DISTINCT WHERE AND OR NOT ON BY FROM JOIN HAVING WHEN THEN ELSE CASE IN LIKE BETWEEN SET VALUES INTO
    USING LIMIT IS TABLE VIEW UPDATE AS OFFSET QUALIFY INTERVAL ALL"""
)
_LAST_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*\Z")

UNNAMED_RELATION: Final = "which relation is read is not known"
"""How the note ends of a template in which a relation is named by a value that nobody gave."""

UNNAMED_TARGET: Final = "which relation is written is not known"
"""The same of a relation that is written."""
_TARGET_MARK: Final = ">"
"""Behind the ``=`` of such a name."""

_PART_MARK: Final = "~"
"""Behind both, where the value is a part of the name: then comes the name with an asterisk for it, and the end mark."""
_PART_END: Final = "|"

_RELATION_PLACE = re.compile(r"\b(?:FROM|JOIN)\s+(?:[^\s(),]*\.)?[\"`\[]?\Z", re.IGNORECASE)
_TARGET_PLACE = re.compile(
    r"""\b(?:INSERT\s+(?:OVERWRITE\s+|IGNORE\s+|OR\s+REPLACE\s+)?(?:INTO\s+)?(?:TABLE\s+)?|MERGE\s+(?:INTO\s+)?|UPDATE\s+
    |CREATE\s+(?:\w+\s+){0,4}?(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?|INTO\s+(?:TABLE\s+)?|DELETE\s+(?:FROM\s+)?|COPY\s+
    |TRUNCATE\s+(?:TABLE\s+)?|ALTER\s+(?:TABLE|VIEW)\s+(?:IF\s+EXISTS\s+)?)(?:ONLY\s+)?(?:[^\s(),]*\.)?["`\[]?\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_QUALIFIER_PLACE = re.compile(
    r"""\b(?:FROM|JOIN|INTO|UPDATE|TABLE|VIEW|EXISTS|USING)\s+(?:[^\s(),]*\.)?["`\[]?\Z""", re.IGNORECASE
)
_CONDITION_PLACE = re.compile(r"\b(?:WHERE|ON|HAVING|QUALIFY)\s+\Z", re.IGNORECASE)
_AFTER_CONDITION = re.compile(r"\s*(?:\Z|[;)]|(?:AND|OR|GROUP|HAVING|ORDER|LIMIT|UNION|WHERE)\b)", re.IGNORECASE)
_UNBOUNDED = re.compile(
    r"macro \S+ is not known\b|not a valid template\b|cannot be rendered\b|what the JavaScript of "
    r"|the SQL of .* is (?:missing|not read)\b"
)
"""How the notes begin of SQL that is missing and could read anything; what packages' macros read is known."""

_QUERY = "run_query"
"""dbt's macro whose result is rows of the warehouse: a macro that all know, with a value that none knows here."""
_QUALIFIER_MARK = "."
"""Begins the name of a value that nobody gave, and that stands before the dot of a table's name."""
_TYPE_MARK = ":"
"""Begins the name of what stands for a type."""
_VALUE_MARK = "?"
"""Begins the name of a value that nobody gave, and that may stand for a column."""
_ONLY_A_TYPE = " (a type)"


def noted(match: re.Match[str]) -> str:
    """Return the name of a missing value, with the marks of what it is; empty where it is not missed."""
    name = match.group(1)
    if name[:1] == "=":
        place = place_of(match)
        if place is not None:
            return f"{place}{name[1:]}"
        column = _column_of(match, name[1:])
        if column:
            return _VALUE_MARK + column
        return _QUALIFIER_MARK + name[1:] if is_qualifier(match) else ""
    is_type = name[:1] != "!" and _TYPE_PLACE.search(_before(match, 400)) is not None
    return _TYPE_MARK + name if is_type else name


def qualifier(name: str) -> str:
    """Return the name of a value that is a part before the last of a relation's name; empty for others."""
    return name[1:] if name[:1] == _QUALIFIER_MARK else ""


def macro(name: str) -> str:
    """Return the name of what makes SQL that is missing, or a type; empty for others."""
    return "" if name[:1] in ("!", "=", _VALUE_MARK, _QUALIFIER_MARK) else name.removeprefix(_TYPE_MARK)


def relation_or_value(name: str) -> tuple[str, bool]:
    """Return the name that is in the SQL in the place of what is missing, and whether it is a value's."""
    text = "" if name[:1] in (_TYPE_MARK, "!") else name.lstrip(f"=?{_TARGET_MARK}")
    if text[:1] == _PART_MARK:
        place, _, text = text.partition(_PART_END)
        text = filled(f"{place}{_PART_END}", text)
    return text, name[:1] == _VALUE_MARK


def is_unbounded(note: Diagnostic) -> bool:
    """Return whether a note is about missing SQL that could read any table: a macro without a definition may make a
    subquery wherever it stands.
    """
    if note.code != "template" or note.severity != "warning":
        return False
    if note.message.endswith(_ONLY_A_TYPE):
        return False
    return note.message.endswith((UNNAMED_RELATION, UNNAMED_TARGET)) or _UNBOUNDED.match(note.message) is not None


def description(name: str, reasons: Mapping[str, str]) -> str:
    """Describe SQL that is missing: ``name`` stands for it, or for a part of it (``macro_item_0``)."""
    if name[:1] == _TYPE_MARK:
        return description(name[1:], reasons) + _ONLY_A_TYPE
    if name[:1] == "!":
        return name[1:]
    if name[:1] == "=" and _PART_END in name:
        pattern, _, value = name[1:].partition(_PART_END)
        why = UNNAMED_TARGET if pattern[:1] == _TARGET_MARK else UNNAMED_RELATION
        return f"{pattern.lstrip(f'{_TARGET_MARK}{_PART_MARK}')} is named by {value}, which has no value: {why}"
    if name[:2] == f"={_TARGET_MARK}":
        return f"{name[2:]} has no value: {UNNAMED_TARGET}"
    if name[:1] == "=":
        return f"{name[1:]} has no value: {UNNAMED_RELATION}"
    if name[:1] == _VALUE_MARK:
        return f"{name[1:]} has no value, or a part of it: which columns are read is not known"
    known = [key for key in reasons if name == key or name.startswith(f"{key}_")]
    if known:
        return reasons[max(known, key=len)]
    if name == _QUERY or name.startswith(f"{_QUERY}_"):
        return f"the SQL of {_QUERY} is missing: what its query returns is not known here"
    return f"macro {name} is not known: the SQL that it makes is missing"


def _before(match: re.Match[str], size: int) -> str:
    """The text before a place, without the marks of lines."""
    return LINE_MARK.sub("", match.string[max(0, match.start() - size) : match.start()])


def _names_relation(match: re.Match[str]) -> bool:
    """Return whether a value that nobody gave is the whole name of a relation, or the last part of one; or a whole
    query or condition, which may name relations.
    """
    before = _before(match, 200)
    behind = LINE_MARK.sub("", match.string[match.end() : match.end() + 40])
    if _QUERY_PLACE.search(before) and _CLOSING.match(behind):
        return True
    if _CONDITION_PLACE.search(before) and _AFTER_CONDITION.match(behind):
        return True
    behind = behind.lstrip('"`]')
    if behind[:1].isalnum() or behind[:1] in ("_", ".", "("):
        return False
    return _RELATION_PLACE.search(before) is not None or _is_listed(match, before)


def _names_target(match: re.Match[str]) -> bool:
    """Return whether a value that nobody gave is the whole name of a relation that is written, or the last part."""
    behind = LINE_MARK.sub("", match.string[match.end() : match.end() + 40]).lstrip('"`]')
    return _TARGET_PLACE.search(_before(match, 200)) is not None and not (
        behind[:1].isalnum() or behind[:1] in ("_", ".", "\ue002")
    )


def place_of(match: re.Match[str]) -> str | None:
    """Return the marks of a value that nobody gave and that names a relation, or a part of one; None for others."""
    if _names_target(match):
        return f"={_TARGET_MARK}"
    if _names_relation(match):
        return "="
    before, behind = _before(match, 200), LINE_MARK.sub("", match.string[match.end() : match.end() + 80])
    left, right = _PART_BEFORE.search(before), _PART_BEHIND.match(behind)
    prefix, suffix = left.group() if left else "", right.group() if right else ""
    before, behind = before[: len(before) - len(prefix)], behind[len(suffix) :]
    pattern = _HOLES.sub("*", f"{prefix}*{suffix}")
    follows = behind.lstrip('"`]')[:1]
    if pattern.strip("*") == "" or follows == ".":
        return None
    if _TARGET_PLACE.search(before) is not None:
        return f"={_TARGET_MARK}{_PART_MARK}{pattern}{_PART_END}"
    is_read = follows != "(" and (_PART_PLACE.search(before) is not None or _is_listed(match, before))
    return f"={_PART_MARK}{pattern}{_PART_END}" if is_read else None


def filled(place: str, name: str) -> str:
    """Return the name of a relation that a value without a value is in; the empty text where it holds several."""
    pattern = place.rpartition(_PART_MARK)[2].removesuffix(_PART_END)
    if _PART_MARK not in place:
        return name
    return pattern.replace("*", name) if pattern.count("*") == 1 else ""


_HOLE = r"(?:\ue002[^\ue002\ue003]*\ue003|\$?\{[^{}]*\})"
_HOLES = re.compile(_HOLE)
"""Other values in the same name."""
_PART_BEFORE = re.compile(rf"(?:[\w$-]|{_HOLE})+\Z")
_PART_BEHIND = re.compile(rf"(?:[\w$-]|{_HOLE})+")
_PART_PLACE = re.compile(r"\b(?:FROM|JOIN|USING)\s+(?:[^\s(),]*\.)?[\"`\[]?\Z", re.IGNORECASE)


def is_qualifier(match: re.Match[str]) -> bool:
    """Return whether a value that nobody gave is a part before the last of the name of a relation."""
    behind = LINE_MARK.sub("", match.string[match.end() : match.end() + 40])
    if behind.lstrip('"`]')[:1] != ".":
        return _DATABASE_PLACE.search(_before(match, 40)) is not None
    before = _before(match, 200)
    return _QUALIFIER_PLACE.search(before) is not None or _is_listed(match, before)


_DATABASE_PLACE = re.compile(r"""(?:\A|[;\n])\s*USE\s+["`\[]?\Z""", re.IGNORECASE)


def _is_listed(match: re.Match[str], before: str) -> bool:
    """Return whether a value that nobody gave is, or begins, an item behind the first of a FROM clause.

    Args:
        match: The place of the value.
        before: What is before the value, or before the name that it is a part of.
    """
    if _ITEM.search(before) is None:
        return False
    for size in (400, 4_000):
        depth = 0
        for found in reversed([*_CLAUSE.finditer(_before(match, size))]):
            text = found.group()
            depth += (text == ")") - (text == "(")
            if depth < 0 or text == ";":
                return False
            if depth == 0 and text not in ("(", ")") and text[0] != "'":
                return text.upper() in ("FROM", "JOIN", "UPDATE")
    return False


_ITEM = re.compile(r""",\s*(?:(?:LATERAL|ONLY)\s+)?(?:[^\s(),]*\.)?["`\[]?\Z""", re.IGNORECASE)
_CLAUSE = re.compile(
    r"""'[^'\n]*'|[();]|\b(?<!\bDISTINCT\s)(?<!\bKEY\s)(?:FROM|JOIN|UPDATE)\b
    |\b(?:SELECT|WHERE|SET|BY|HAVING|QUALIFY|WINDOW|VALUES|INTO|LIMIT|RETURNING|TABLE|WITH|IN|CALL|EXEC)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""What shows whether a list is that of FROM: ON and USING belong to FROM."""


def _column_of(match: re.Match[str], name: str) -> str:
    """Return the name that a value nobody gave is, or is a part of, where that may be a column's; else nothing."""
    before = _before(match, 80)
    behind = LINE_MARK.sub("", match.string[match.end() : match.end() + 80])
    left, right = _NAME_END.search(before), _NAME_START.match(behind)
    prefix, suffix = left.group() if left else "", right.group() if right else ""
    before, behind = before[: len(before) - len(prefix)], behind[len(suffix) :]
    if not prefix + suffix and _value(match, name) != name:
        return ""
    if before[-1:] in _GLUE or behind[:1] in _GLUE or behind[:1] in (".", "(") or _NAME_PLACE.search(before):
        return ""
    return prefix + name + suffix


_GLUE = frozenset({"'", '"', "`", "$", "@", "\ue002", "\ue003", "/", "-"})
"""What a name beside it is not alone with: a text, a parameter, a path, another value."""
_NAME_END = re.compile(r"\w+\Z")
_NAME_START = re.compile(r"\w+")
_NAME_PLACE = re.compile(
    r"(?:\bAS|\b(?:TABLE|VIEW|INTO|UPDATE|SCHEMA|DATABASE|EXISTS|USE|ROLE|TO))\s+\Z", re.IGNORECASE
)
"""Before an alias, or a name of something that is no column."""


def replacement(match: re.Match[str]) -> str:
    """An unknown macro's call: an expression where one is expected, nothing (a comment) where a clause would be.

    An unknown value is a name, or a literal where it is compared.
    """
    name = match.group(1)
    if name[:1] == "=":
        return _value(match, name[1:])
    if name[:1] == "!":
        return ""
    before = _before(match, 400)
    before = _COMMENTS.sub(" ", before).rstrip()
    if not before:
        return " " if not name else f"/* {name} */"
    # AS ({{ macro() }}), FROM ({{ macro() }}): nothing but a query can stand there.
    if _QUERY_PLACE.search(before) and _CLOSING.match(match.string, match.end()):
        return f"SELECT * FROM {name}()"
    if _TYPE_PLACE.search(before):
        return "UNKNOWN"
    last = before[-1]
    if _NAMED_QUERY.match(match.string, match.end()) or _PART.match(match.string, match.end()):
        return name
    if last in ",(=<>+-*/|.%":
        return f"{name}()"
    if last.isalnum() or last == "_":
        word = _LAST_WORD.search(before)
        if word and word.group().upper() == "AS":
            return name or "x"
        if word and word.group().upper() in _OPERAND_WORDS:
            return f"{name}()"
    return f"/* {name} */"


_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_QUERY_PLACE = re.compile(r"\b(?:AS|FROM|JOIN)\s*\(\Z", re.IGNORECASE)
_CLOSING = re.compile("(?:\\s|\ue000\\d+\ue001)*\\)")
"""``AS ({{ macro() }})``: what the macro makes is a query."""
_PART = re.compile("(?:\ue000\\d+\ue001)?[_\\d]")
"""``{{ macro() }}_raw``: a part of a name."""
_NAMED_QUERY = re.compile("(?:\\s|\ue000\\d+\ue001)+AS(?:\\s|\ue000\\d+\ue001)*\\(", re.IGNORECASE)
"""``{{ macro() }} AS (SELECT …``: the name of a common table expression."""
_TYPE_PLACE = re.compile(r"(?:::|\bCAST\s*\((?:[^()]|\([^()]*\))*\s+AS)\s*\Z", re.IGNORECASE)
"""``CAST(a AS {{ type }})``, ``a::{{ type }}``: a type is expected."""

_COMPARED = re.compile(
    r"(?:(?<![=:<>!@|-])(?:=|<>|!=|<=|>=|<|>)\s*|\s[+-]\s+|\bIN\s*\(\s*|\b(?:LIKE|ILIKE|BETWEEN|LIMIT|OFFSET|INTERVAL)\s+"
    r"|\bBETWEEN\s+\S+\s+AND\s+)\Z",
    re.IGNORECASE,
)


def _value(match: re.Match[str], name: str) -> str:
    """``d >= {{ day }}`` compares with a value; a name there would be taken for a column."""
    source = match.string
    mark = LINE_MARK.match(source, match.end())
    end = mark.end() if mark else match.end()
    following = source[end : end + 1]
    if following.isalnum() or following in ("_", ".", "(", "'", '"', "`", "\ue002"):
        return name
    before = LINE_MARK.sub("", source[max(0, match.start() - 120) : match.start()])
    if _TYPE_PLACE.search(before):
        return "UNKNOWN"
    return f"'{name}'" if _COMPARED.search(before) else name
