"""The text of statements without the literals of people.

Redaction errs to the side of caution: a literal stays only if it is known to be part of the structure. Fingerprints err
to the other side (``fingerprint``).

    >>> redact("SELECT a FROM t WHERE email = 'ann@example.org' /* ann */ ORDER BY 1")
    "SELECT a FROM t WHERE email = '?' ORDER BY 1"
"""

from __future__ import annotations

import re
from typing import Final

from govtool.capture.sql.syntax.fingerprint import Normalizer, digest_of, last_before, word_ending
from govtool.capture.sql.syntax.lexer import word_set
from govtool.capture.sql.syntax.literals import clause, scanner
from govtool.names import OBJECT_STORES, ROOTED
from govtool.redaction import clean_location, clean_message, without_users

MAX_REDACTED: Final = 4_000
"""Characters of redacted text that are kept as evidence."""

_STRUCTURAL_WORDS: Final = frozenset(
    {"INTERVAL", "ZONE", "ESCAPE", "DELIMITER", "DELIMITERS", "AS", "FORMAT", "LANGUAGE"}
)
_JSON_PATH: Final = re.compile(r"'?(?:lax |strict )?\$(?:[.\[][\w.$\[\]*'\"@-]*)?\Z", re.IGNORECASE)
_LOCATION: Final = re.compile(
    rf"(?:(?:{'|'.join(ROOTED | OBJECT_STORES)}|s3[an]|gcs|azure)://[^\s?@;]*(?:@[^\s?;]*)?|@[\w./~%-]+)\Z",
    re.IGNORECASE,
)
_PATH_BEFORE: Final = re.compile(
    r"\b(?:LOCATION|FROM|INTO|TO|INPATH|PATH|DIRECTORY|BULK|URI|URIS)\s*(?:=\s*)?[\[(]?\s*\Z", re.IGNORECASE
)
_PATH: Final = re.compile(
    r"[\w./*{}%+-]+\.(?:csv|tsv|json|jsonl|ndjson|parquet|orc|avro|txt|gz|zst|xlsx?|delta)(?:\.\w+)?\Z|/[\w./*{}%+-]+\Z",
    re.IGNORECASE,
)
_QUERIED: Final = re.compile(r"(?<![\w+.-])[A-Za-z][\w+.-]*+://[^\s'\"`?]*+\?[^\s'\"`]*")
"""An address with a query, also where its quotes are none of the dialect's."""
_UNITS: Final = word_set(
    """microsecond millisecond nanosecond second minute hour day week month quarter year decade century epoch
    dow doy isodow isoyear isoweek yyyy mm dd"""
)
_DATE_PARTS: Final = _UNITS | {f"{unit}s" for unit in _UNITS}
_TYPE_BEFORE: Final = re.compile(
    r"\b(?:(?:N?VAR)?CHAR2?|NCHAR|CHARACTER|VARYING|NUMERIC|DECIMAL|NUMBER|DEC|FLOAT|TIMESTAMP\w*|TIME|DATETIME\d*|(?:VAR)?BINARY|BIT|VARBYTE"
    r"|STRING|TEXT|BIGNUMERIC)\s*\(\s*(?:\d+\s*,\s*)?\Z",
    re.IGNORECASE,
)
_ARGUMENTS: Final = re.compile(r"\(\s*(?:\d+\s*,\s*)?\Z")
"""How ``_TYPE_BEFORE`` ends: to look for that at the last bracket costs next to nothing."""
_ORDINALS: Final = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_ORDINAL_END: Final = re.compile(
    r"\s*(?:[,);…]|\Z|ASC\b|DESC\b|NULLS\b|LIMIT\b|HAVING\b|ORDER\b|WITH\b|UNION\b|QUALIFY\b|OFFSET\b)", re.IGNORECASE
)
_BEFORE_LIST: Final = word_set("ARRAY SELECT IN THEN ELSE WHEN VALUES AND OR LIKE BETWEEN RETURN DEFAULT DISTINCT ALL")
_JSON_ARROW: Final = frozenset({"postgres", "mysql", "duckdb", "sqlite", "redshift", "materialize", "risingwave"})
"""Dialects in which ``x -> 'text'`` names a part of a JSON value; in others it is a function."""
_COMPARED: Final = re.compile(r"(?:[<>=]|\b(?:LIKE|ILIKE|IN\s*\(|BETWEEN|AND|,))\s*\Z", re.IGNORECASE)
_SUBSCRIPT: Final = re.compile(r"\[\s*(?:(?:SAFE_)?(?:OFFSET|ORDINAL)\s*\(\s*)?\Z", re.IGNORECASE)


_ACCOUNTS: Final = re.compile(
    r"(?:SET|GRANT|(?:CREATE|ALTER)\s+(?:USER|ROLE|LOGIN|DATABASE\s+LINK|SECRET|CONNECTION|SERVER|CREDENTIAL|STAGE))\b",
    re.IGNORECASE,
)
"""Statements about access, which hold secrets in forms of their own."""
_DOLLAR_TAG: Final = re.compile(r"(?=(\$\w*\$))")


def redact(text: str, dialect: str = "") -> str:
    """The statement without the literals of people and without comments, at most ``MAX_REDACTED`` characters.

    What stays: ordinals and LIMIT, JSON paths and subscripts, intervals and date parts, lengths of types, locations of
    files (without query strings and credentials), names given as strings, PIVOT values.
    """
    if not dialect and "$" in text:  # whose literals have dollars is not known
        text = _without_dollars(text)
    return _finished(scanner(dialect).sub(_Redactor(dialect), text), dialect)


def identified(text: str, dialect: str = "") -> tuple[str, str, str]:
    """The fingerprint of a statement, the digest of the literals that it leaves out, and the redacted statement.

    They are what ``script_identity`` and ``redact`` return. The text is scanned once for both.
    """
    normalizer, redactor = Normalizer(text), _Redactor(dialect)
    plain: list[str] = []
    redacted: list[str] = []
    place = 0
    for match in scanner(dialect).finditer(text):
        gap = text[place : match.start()]
        word = clause(gap)
        plain += (gap, normalizer.replaced(match, word))
        redacted += (gap, redactor.replaced(match, word))
        place = match.end()
    rest = text[place:]
    normalized = normalizer.finished("".join((*plain, rest)), dialect)
    if not dialect and "$" in text:
        shown = redact(text, dialect)
    else:
        shown = _finished("".join((*redacted, rest)), dialect)
    return digest_of(normalized), normalizer.literals(), shown


class _Redactor:
    """Decides, literal by literal in order of text, which ones stay."""

    __slots__ = ("dialect", "mode", "place")

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.mode = ""
        self.place = 0

    def __call__(self, match: re.Match[str]) -> str:
        return self.replaced(match, clause(match.string[self.place : match.start()]))

    def replaced(self, match: re.Match[str], word: str) -> str:
        """Return what stands for a literal, given the clause of the text between it and the last one."""
        group = match.lastgroup
        if word:
            self.mode = word
        start, self.place = match.span()
        if group == "comment":
            return " "
        found, source = match.group(), match.string
        if group == "name":
            return _name(found, source[max(0, start - 40) : start], self.dialect)
        before = source[max(0, start - 80) : start]
        mode = self.mode
        if group == "string":
            return found if _structural(found, before, mode, self.dialect) else "'?'"
        if mode in ("LIMIT", "OFFSET", "FETCH"):
            return found
        last = before.rstrip()[-1:]
        if mode in _ORDINALS:
            ordinal = len(found) < 4 and last.lower() in ("y", ",") and _ORDINAL_END.match(source, self.place)
            return found if ordinal else "?"
        if last not in "[(,":
            return "?"
        kept = "[" in before and _SUBSCRIPT.search(before)
        if not kept and _ARGUMENTS.match(before, before.rfind("(")):
            kept = _TYPE_BEFORE.search(before)
        return found if kept else "?"


def _finished(text: str, dialect: str) -> str:
    """The redacted statement, given the text in which all is replaced."""
    redacted = without_users(" ".join(text.split()))
    if "://" in redacted and "?" in redacted:
        redacted = _QUERIED.sub(lambda found: clean_location(found.group()), redacted)
    if _ACCOUNTS.match(redacted):
        redacted = clean_message(redacted)
    return redacted if len(redacted) <= MAX_REDACTED else _cut(redacted, dialect)


def _cut(text: str, dialect: str) -> str:
    """The beginning of a text, not ending within a string or a quoted name: read again, it is the same."""
    end = MAX_REDACTED - 1
    within = (m.start() for m in scanner(dialect).finditer(text) if m.start() < end < m.end())
    return text[: next(within, end)] + "…"


def _without_dollars(text: str) -> str:
    """The text with ``'?'`` for what lies between two equal tags of dollars."""
    tags = [(found.start(), found.group(1)) for found in _DOLLAR_TAG.finditer(text)]
    last = {tag: start for start, tag in tags}
    parts, at = [], 0
    for start, tag in tags:
        within = start + len(tag)
        if start < at or last[tag] < within:
            continue
        parts += [text[at:start], "'?'"]
        at = text.index(tag, within) + len(tag)
    return "".join((*parts, text[at:]))


def _name(quoted: str, before: str, dialect: str) -> str:
    """A quoted name without secrets. Without a dialect it may be a literal of somebody's: where one is compared."""
    if "://" in quoted:
        return quoted[0] + clean_location(quoted[1:-1]) + quoted[-1]
    if not dialect and quoted[0] == '"' and "@" in quoted and _COMPARED.search(before):
        return "'?'"
    return quoted


def _structural(literal: str, before: str, mode: str, dialect: str) -> bool:
    value = literal.strip("'\"")
    if len(value) > 300 or not value:
        return not value
    if value[0] == "$" and _JSON_PATH.match(value):
        return True
    if ("://" in value or value[0] == "@") and _LOCATION.match(value):
        return value[0] == "@" or clean_location(value) == value
    if "@" in value:
        return False
    return value.lower() in _DATE_PARTS or _is_named_before(value, before, mode, dialect)


def _is_named_before(value: str, before: str, mode: str, dialect: str) -> bool:
    """Return whether the text before a literal says that it is a name, a path or a part of a value."""
    at = last_before(before, len(before))
    word = word_ending(before, at)
    if (mode == "FOR" and word != "FOR") or (mode in ("PIVOT", "UNPIVOT") and " IN" in before.upper()):
        return True
    if at < 0:
        return False
    if _addresses(before, at, dialect) or (word in _STRUCTURAL_WORDS and "'" not in value):
        return True
    return bool(("/" in value or "." in value) and _PATH_BEFORE.search(before) and _PATH.match(value))


def _addresses(before: str, at: int, dialect: str) -> bool:
    """Return whether a text ends in ``a[``, ``->``, ``->>`` or ``#>``: what follows names a part of a value."""
    char, last = before[at], before[at - 1 : at]
    if char == "[":  # behind a value; else it begins a list of literals
        return (last.isalnum() or last in ("_", ")", "]", '"', "`")) and word_ending(before, at - 1) not in _BEFORE_LIST
    return char == ">" and (last in (">", "#") or (last == "-" and dialect in _JSON_ARROW))
