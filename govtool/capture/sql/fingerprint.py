"""Fingerprints of statements, and their text without the literals of people.

A fingerprint is the same for statements that differ only in literals which cannot change the lineage. The rule errs
to one
side: a literal goes only where it is known to decide rows and nothing else (behind a comparison in WHERE, ON, QUALIFY
or a
CASE condition; in IN and VALUES lists; after LIMIT). All other literals stay: ordinals, JSON paths, file names,
intervals,
PIVOT values, names given as strings, options. Redaction errs to the other side: a literal stays only if it is known
to be
part of the structure.

    >>> fingerprint("SELECT a FROM t WHERE b = 1") == fingerprint("select a  from t where b = 2 -- x")
    True
    >>> redact("SELECT a FROM t WHERE email = 'ann@example.org' /* ann */ ORDER BY 1")
    "SELECT a FROM t WHERE email = '?' ORDER BY 1"
"""

from __future__ import annotations

import hashlib
import re

from govtool.capture.sql.lexer import word_set
from govtool.capture.sql.literals import NUMBER, PREDICATES, clause, scanner
from govtool.redaction import clean_location, clean_message, without_users

MAX_REDACTED = 4_000
"""Characters of redacted text that are kept as evidence."""

LITERAL_DIGITS = 6
_CASE_MATTERS = frozenset({"bigquery", "clickhouse"})
_HEADS = re.compile(r"\s*(?:\(\s*)*(?:SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|FROM|CREATE|REPLACE)\b", re.IGNORECASE)

_OPERATOR_CHARS = frozenset("-=#@<>!|?&~:*^%+/")
_BLANKS = frozenset(" \t\r\n")
_MATCHING = frozenset({"LIKE", "ILIKE", "RLIKE"})
_TEMPORAL = frozenset({"DATE", "TIMESTAMP", "DATETIME", "TIME"})
_LIMITS = frozenset({"LIMIT", "OFFSET"})
_LISTS = re.compile(r"\((?:(?<=\b[Ii\u0130\u0131][Nn]\()|(?<=\b[Ii\u0130\u0131][Nn] \())( ?)\?(?: ?, ?\?)+( ?\))")
"""A list behind ``IN``: the engine finds brackets much faster than words in any case."""
_ROWS = re.compile(r"(\( ?\?(?: ?, ?\?)* ?\))(?: ?, ?\1)+")
_SPACE = re.compile(r"\s")


def fingerprint(text: str, dialect: str = "") -> str:
    """The fingerprint of one statement: 32 hexadecimal digits.

    Args:
        text: The statement, as written.
        dialect: A sqlglot dialect name.
    """
    return hashlib.blake2b(normalize(text, dialect).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def script_identity(text: str, dialect: str = "") -> tuple[str, str]:
    """The fingerprint of a statement, and a digest of the literals that the fingerprint leaves out.

    The digest has `LITERAL_DIGITS` hexadecimal digits: enough to see that a literal changed, too few to find one of
    billions of values. It has no key, so that one of few values can be guessed.
    """
    replace = _Normalizer(text)
    plain = _normalized(text, dialect, replace).encode("utf-8", "surrogatepass")
    literals = "\0".join(replace.removed).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(plain, digest_size=16).hexdigest(), hashlib.blake2b(literals).hexdigest()[:LITERAL_DIGITS]


def normalize(text: str, dialect: str = "") -> str:
    """The text that is hashed: no comments, single spaces, ``?`` for literals that cannot change the lineage."""
    return _normalized(text, dialect, _Normalizer(text))


def _normalized(text: str, dialect: str, replace: _Normalizer) -> str:
    plain = " ".join(scanner(dialect).sub(replace, text).split())
    if replace.several:
        plain = _ROWS.sub(r"\1", _LISTS.sub(r"(\1?\2", plain))
    if dialect not in _CASE_MATTERS and not replace.kept and plain.isascii() and ":" not in plain.replace("::", ""):
        return plain.lower()
    return plain


class _Normalizer:
    """Decides, literal by literal in order of text, which ones go."""

    __slots__ = ("active", "between", "depth", "gaps", "kept", "last", "listing", "mode", "place", "removed", "several")

    def __init__(self, text: str) -> None:
        self.active: bool | None = None if text.lstrip()[:2] in ("--", "/*") else bool(_HEADS.match(text))
        self.mode = ""
        self.place = 0
        self.depth = 0
        self.gaps: list[tuple[int, int]] = []
        self.last = -1
        self.listing = False
        self.between = False
        self.kept = False
        self.several = False
        self.removed: list[str] = []

    def __call__(self, match: re.Match[str]) -> str:
        group = match.lastgroup
        start, end = match.span()
        if start > self.place:
            self.gaps.append((self.place, start))
        self.place = end
        if group == "comment":
            return " "
        if group != "name" and self._removable(match.string, start, end, group == "number"):
            self.last = end
            self.removed.append(match.group())
            return "?"
        self.last = -1
        text = match.group()
        if group == "number":
            return text
        self.kept = True
        return _SPACE.sub(_encode, text) if not text.isalnum() else text

    def _clause(self, source: str) -> str:
        """The clause that the place is in: the last clause word before it."""
        for index in range(len(self.gaps) - 1, -1, -1):
            gap = source[slice(*self.gaps[index])]
            found = clause(gap)
            if found:
                self.mode = found
                tail = gap[gap.upper().rfind(found) :]
                self.depth = tail.count("(") - tail.count(")")
                del self.gaps[: index + 1]
                break
        for start, end in self.gaps:
            self.depth += source.count("(", start, end) - source.count(")", start, end)
        self.gaps = []
        return self.mode

    def _is_active(self, source: str) -> bool:
        """Return whether literals of this statement may go."""
        if self.active is None:
            # The statement begins with a comment: its first word decides, now that it has been passed.
            head = "".join(source[a:b] for a, b in self.gaps)
            if not head.strip():
                return False
            self.active = bool(_HEADS.match(head))
        return self.active

    def _removable(self, source: str, start: int, end: int, number: bool) -> bool:
        if not self._is_active(source):
            return False
        if number and not NUMBER.match(source[start:end]):
            return False
        if self.last >= 0 and self._follows(source, start, end):
            return True
        at = _before(source, start)
        if at >= 0 and source[at] == "-":
            # A sign, if an operator or a bracket stands before it.
            at = _before(source, at)
        word = _word_ending(source, at)
        if word in _TEMPORAL and not number:
            at = _before(source, at - len(word) + 1)
            word = _word_ending(source, at)
        if at < 0:
            return False
        if number and word in _LIMITS:
            return True
        char = source[at]
        if word == "BETWEEN" or word in _MATCHING or (char in "=<>" and _compares(source, at)):
            if self._clause(source) not in PREDICATES:
                return False
            self.listing = False
            self.between = word == "BETWEEN"
            return True
        return char in "(," and _cell_ends(source, end) and self._in_list(source, at)

    def _in_list(self, source: str, at: int) -> bool:
        """Return whether the bracket or comma at ``at`` is of a row of VALUES, or begins an IN list."""
        here = self._clause(source)
        if here == "VALUES":
            # A cell of a row; an argument of a function in one may be a path.
            self.several = self.several or self.depth == 1
            return self.depth == 1
        if here in PREDICATES and source[at] == "(" and _word_at(source, _before(source, at)) == "IN":
            self.between = False
            self.listing = True
            return True
        return False

    def _follows(self, source: str, start: int, end: int) -> bool:
        """Return whether the literal continues an IN list or ends a BETWEEN, right behind one that went."""
        gap = source[self.last : start].split()
        if self.listing and gap and gap[0][0] == "," and "".join(gap) in (",", ",-"):
            self.several = True
            return _cell_ends(source, end)
        if (
            self.between
            and gap
            and gap[0].upper() == "AND"
            and (len(gap) == 1 or gap[1].upper() in _TEMPORAL or gap[1] == "-")
        ):
            self.between = self.listing = False
            return len(gap) < 3
        return False


def _before(source: str, start: int) -> int:
    """The index of the last character before ``start`` that is not blank; -1 if there is none."""
    at = start - 1
    while at >= 0 and source[at] in _BLANKS:
        at -= 1
    return at


def _word_at(source: str, at: int) -> str:
    """The word that ends at an index, in upper case; empty if it is part of a longer name (``t.like``, ``@limit``)."""
    ends = source[max(0, at - 15) : at + 1].split()
    if at > 15 and len(ends) > 1 and ends[-1].isalpha():
        return ends[-1].upper()
    first = at
    while first >= 0 and (source[first].isalnum() or source[first] == "_"):
        first -= 1
    if first >= 0 and source[first] in '.@$:`"]':
        return ""
    return source[first + 1 : at + 1].upper()


def _compares(source: str, at: int) -> bool:
    """Return whether the operator that ends at an index is a comparison (and not ``=>``, ``->``, ``@>``, ``:=`` …)."""
    first = at
    while first > 0 and source[first - 1] in _OPERATOR_CHARS:
        first -= 1
    return source[first : at + 1] in ("=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>")


def _cell_ends(source: str, end: int) -> bool:
    """Return whether a comma or a closing parenthesis follows."""
    size = len(source)
    while end < size and source[end] in _BLANKS:
        end += 1
    return end < size and source[end] in ",)"


def _encode(match: re.Match[str]) -> str:
    return f"\\x{ord(match.group()):x};"


# -- redaction --------------------------------------------------------------------------------------------------------

_STRUCTURAL_WORDS = frozenset({"INTERVAL", "ZONE", "ESCAPE", "DELIMITER", "DELIMITERS", "AS", "FORMAT", "LANGUAGE"})
_JSON_PATH = re.compile(r"'?(?:lax |strict )?\$(?:[.\[][\w.$\[\]*'\"@-]*)?\Z", re.IGNORECASE)
_LOCATION = re.compile(
    r"(?:(?:s3[an]?|gs|gcs|abfss?|wasbs?|hdfs|file|azure|adl|dbfs|viewfs|oss|cos)://[^\s?@;]*(?:@[^\s?;]*)?|@[\w./~%-]+)\Z",
    re.IGNORECASE,
)
_PATH_BEFORE = re.compile(
    r"\b(?:LOCATION|FROM|INTO|TO|INPATH|PATH|DIRECTORY|BULK|URI|URIS)\s*(?:=\s*)?[\[(]?\s*\Z", re.IGNORECASE
)
_PATH = re.compile(
    r"[\w./*{}%+-]+\.(?:csv|tsv|json|jsonl|ndjson|parquet|orc|avro|txt|gz|zst|xlsx?|delta)(?:\.\w+)?\Z|/[\w./*{}%+-]+\Z",
    re.IGNORECASE,
)
_UNITS = word_set(
    """microsecond millisecond nanosecond second minute hour day week month quarter year decade century epoch
    dow doy isodow isoyear isoweek yyyy mm dd"""
)
_DATE_PARTS = _UNITS | {f"{unit}s" for unit in _UNITS}
_TYPE_BEFORE = re.compile(
    r"\b(?:(?:N?VAR)?CHAR2?|NCHAR|CHARACTER|VARYING|NUMERIC|DECIMAL|NUMBER|DEC|FLOAT|TIMESTAMP\w*|TIME|DATETIME\d*|(?:VAR)?BINARY|BIT|VARBYTE"
    r"|STRING|TEXT|BIGNUMERIC)\s*\(\s*(?:\d+\s*,\s*)?\Z",
    re.IGNORECASE,
)
_ORDINALS = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_ORDINAL_END = re.compile(
    r"\s*(?:[,);…]|\Z|ASC\b|DESC\b|NULLS\b|LIMIT\b|HAVING\b|ORDER\b|WITH\b|UNION\b|QUALIFY\b|OFFSET\b)", re.IGNORECASE
)
_COMPARED = re.compile(r"(?:[<>=]|\b(?:LIKE|ILIKE|IN\s*\(|BETWEEN|AND|,))\s*\Z", re.IGNORECASE)
_SUBSCRIPT = re.compile(r"\[\s*(?:(?:SAFE_)?(?:OFFSET|ORDINAL)\s*\(\s*)?\Z", re.IGNORECASE)


_ACCOUNTS = re.compile(
    r"(?:SET|GRANT|(?:CREATE|ALTER)\s+(?:USER|ROLE|LOGIN|DATABASE\s+LINK|SECRET|CONNECTION|SERVER|CREDENTIAL|STAGE))\b",
    re.IGNORECASE,
)
"""Statements about access, which hold secrets in forms of their own."""
_DOLLAR_TAG = re.compile(r"(?=(\$\w*\$))")


def redact(text: str, dialect: str = "") -> str:
    """The statement without the literals of people and without comments, at most ``MAX_REDACTED`` characters.

    What stays: ordinals and LIMIT, JSON paths and subscripts, intervals and date parts, lengths of types, locations of
    files (without query strings and credentials), names given as strings, PIVOT values.
    """
    place = 0
    mode = ""

    def replace(match: re.Match[str]) -> str:
        nonlocal mode, place
        group = match.lastgroup
        found = match.group()
        start = match.start()
        mode = clause(match.string[place:start]) or mode
        place = match.end()
        if group == "comment":
            return " "
        if group == "name":
            return _name(found, match.string[:start], dialect)
        before = match.string[max(0, start - 80) : start]
        if group == "string":
            return found if _structural(found, before, mode) else "'?'"
        if mode in ("LIMIT", "OFFSET", "FETCH"):
            return found
        if mode in _ORDINALS:
            ordinal = (
                len(found) < 4
                and before.rstrip()[-1:].lower() in ("y", ",")
                and _ORDINAL_END.match(match.string, match.end())
            )
            return found if ordinal else "?"
        last = before.rstrip()[-1:]
        return found if last in "[(," and (_SUBSCRIPT.search(before) or _TYPE_BEFORE.search(before)) else "?"

    if not dialect and "$" in text:  # whose literals have dollars is not known
        text = _without_dollars(text)
    redacted = without_users(" ".join(scanner(dialect).sub(replace, text).split()))
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
    if not dialect and quoted[0] == '"' and "@" in quoted and _COMPARED.search(before[-40:]):
        return "'?'"
    return quoted


def _structural(literal: str, before: str, mode: str) -> bool:
    value = literal.strip("'\"")
    if len(value) > 300 or not value:
        return not value
    if value[0] == "$" and _JSON_PATH.match(value):
        return True
    if ("://" in value or value[0] == "@") and _LOCATION.match(value):
        return value[0] == "@" or clean_location(value) == value
    if "@" in value:
        return False
    if mode == "FOR" or (mode in ("PIVOT", "UNPIVOT") and " IN" in before.upper()) or value.lower() in _DATE_PARTS:
        return True
    at = _before(before, len(before))
    if at < 0:
        return False
    if _addresses(before, at) or _word_ending(before, at) in _STRUCTURAL_WORDS:
        return True
    return bool(("/" in value or "." in value) and _PATH_BEFORE.search(before) and _PATH.match(value))


def _addresses(before: str, at: int) -> bool:
    """Return whether a text ends in ``[``, ``->``, ``->>``, ``#>`` or ``a:``: what follows names a part of a value."""
    char, last = before[at], before[at - 1 : at]
    if char == ":":
        return last not in ("", ":", " ")
    return char == "[" or (char == ">" and last in ("-", ">", "#"))


def _word_ending(source: str, at: int) -> str:
    """Return the word that ends at ``at``; empty if none does."""
    return _word_at(source, at) if at >= 0 and source[at].isalpha() else ""
