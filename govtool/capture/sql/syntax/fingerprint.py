"""Fingerprints of statements.

A fingerprint is the same for statements that differ only in literals which cannot change the lineage. The rule errs to
one side: a literal goes only where it is known to decide rows and nothing else (behind a comparison in WHERE, ON,
QUALIFY or a CASE condition; in IN and VALUES lists; after LIMIT). All other literals stay: ordinals, JSON paths, file
names, intervals, PIVOT values, names given as strings, options. Redaction errs to the other side (``redact``).

    >>> fingerprint("SELECT a FROM t WHERE b = 1") == fingerprint("select a  from t where b = 2 -- x")
    True
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from govtool.capture.sql.syntax.literals import NUMBER, PREDICATES, clause, scanner

LITERAL_DIGITS: Final = 6
_CASE_MATTERS: Final = frozenset({"bigquery", "clickhouse"})
_HEADS: Final = re.compile(
    r"\s*(?:\(\s*)*(?:SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|FROM|CREATE|REPLACE)\b", re.IGNORECASE
)

_OPERATOR_CHARS: Final = frozenset("-=#@<>!|?&~:*^%+/")
_BLANKS: Final = frozenset(" \t\r\n")
_MATCHING: Final = frozenset({"LIKE", "ILIKE", "RLIKE"})
_TEMPORAL: Final = frozenset({"DATE", "TIMESTAMP", "DATETIME", "TIME"})
_LIMITS: Final = frozenset({"LIMIT", "OFFSET"})
_LISTS: Final = re.compile(
    r"\((?:(?<=\b[Ii\u0130\u0131][Nn]\()|(?<=\b[Ii\u0130\u0131][Nn] \())( ?)\?(?: ?, ?\?)+( ?\))"
)
"""A list behind ``IN``: the engine finds brackets much faster than words in any case."""
_ROWS: Final = re.compile(r"(\( ?\?(?: ?, ?\?)* ?\))(?: ?, ?\1)+")
_SPACE: Final = re.compile(r"\s")


def fingerprint(text: str, dialect: str = "") -> str:
    """The fingerprint of one statement: 32 hexadecimal digits.

    Args:
        text: The statement, as written.
        dialect: A sqlglot dialect name.
    """
    return digest_of(normalize(text, dialect))


def script_identity(text: str, dialect: str = "") -> tuple[str, str]:
    """The fingerprint of a statement, and a digest of the literals that the fingerprint leaves out."""
    replace = Normalizer(text)
    plain = replace.finished(scanner(dialect).sub(replace, text), dialect)
    return digest_of(plain), replace.literals()


def normalize(text: str, dialect: str = "") -> str:
    """The text that is hashed: no comments, single spaces, ``?`` for literals that cannot change the lineage."""
    replace = Normalizer(text)
    return replace.finished(scanner(dialect).sub(replace, text), dialect)


def digest_of(normalized: str) -> str:
    """The fingerprint of a statement whose text is normalised."""
    return hashlib.blake2b(normalized.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Normalizer:
    """Decides, literal by literal in order of text, which ones go."""

    __slots__ = ("active", "between", "depth", "gaps", "kept", "last", "listing", "mode", "place", "removed", "several")

    def __init__(self, text: str) -> None:
        """Take the text that the literals are of."""
        self.active: bool | None = None if text.lstrip()[:2] in ("--", "/*") else bool(_HEADS.match(text))
        self.mode = ""
        self.place = 0
        self.depth = 0
        self.gaps: list[tuple[int, int, str]] = []
        """What stands between literals, since the clause was last asked for: from where to where, and its clause."""
        self.last = -1
        self.listing = False
        self.between = False
        self.kept = False
        self.several = False
        self.removed: list[str] = []

    def __call__(self, match: re.Match[str]) -> str:
        """Return what stands for a literal, a quoted name or a comment."""
        return self.replaced(match, clause(match.string[self.place : match.start()]))

    def replaced(self, match: re.Match[str], word: str) -> str:
        """Return the same, given the clause of the text between it and the last one: see ``literals.clause``."""
        group = match.lastgroup
        start, end = match.span()
        if start > self.place:
            self.gaps.append((self.place, start, word))
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

    def finished(self, text: str, dialect: str) -> str:
        """Return the text that is hashed, given the one in which all is replaced."""
        plain = " ".join(text.split())
        if self.several:
            plain = _ROWS.sub(r"\1", _LISTS.sub(r"(\1?\2", plain))
        if dialect not in _CASE_MATTERS and not self.kept and plain.isascii() and ":" not in plain.replace("::", ""):
            return plain.lower()
        return plain

    def literals(self) -> str:
        """Return a digest of the literals that went.

        It has `LITERAL_DIGITS` hexadecimal digits: enough to see that a literal changed, too few to find one of
        billions of values. It has no key, so that one of few values can be guessed.
        """
        removed = "\0".join(self.removed).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(removed).hexdigest()[:LITERAL_DIGITS]

    def _clause(self, source: str) -> str:
        """The clause that the place is in: the last clause word before it."""
        for index in range(len(self.gaps) - 1, -1, -1):
            start, end, word = self.gaps[index]
            if word:
                self.mode = word
                gap = source[start:end]
                tail = gap[gap.upper().rfind(word) :]
                self.depth = tail.count("(") - tail.count(")")
                del self.gaps[: index + 1]
                break
        for start, end, _ in self.gaps:
            self.depth += source.count("(", start, end) - source.count(")", start, end)
        self.gaps = []
        return self.mode

    def _is_active(self, source: str) -> bool:
        """Return whether literals of this statement may go."""
        if self.active is None:
            # The statement begins with a comment: its first word decides, now that it has been passed.
            head = "".join([source[start:end] for start, end, _ in self.gaps])
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
        at = last_before(source, start)
        if at >= 0 and source[at] == "-":
            # A sign, if an operator or a bracket stands before it.
            at = last_before(source, at)
        word = word_ending(source, at)
        if word in _TEMPORAL and not number:
            at = last_before(source, at - len(word) + 1)
            word = word_ending(source, at)
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
        if here in PREDICATES and source[at] == "(" and _word_at(source, last_before(source, at)) == "IN":
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


def last_before(source: str, start: int) -> int:
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


def word_ending(source: str, at: int) -> str:
    """Return the word that ends at ``at``; empty if none does."""
    return _word_at(source, at) if at >= 0 and source[at].isalpha() else ""
