"""Waivers that stand in SQL as comments: ``-- govtool: allow GDPR-001 until 2027-03-31 because legal approved it``.

A comment belongs to the statement that it stands in, to that which ends before it on its line, or else to the next.
Where several statements share the line, it belongs to none of them. Its meaning is read by
``govtool.policy.rules.finding``: a comment that is mistaken is kept, so that it can be reported.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from govtool.capture.sql.files import Script
from govtool.model.derivation import Derivation
from govtool.model.fact import WAIVER, Fact

_BACKSLASH: Final = frozenset({"bigquery", "clickhouse", "databricks", "doris", "hive", "mysql", "snowflake", "spark"})
"""Dialects in whose strings a backslash escapes the next character."""
_HASH: Final = frozenset({"bigquery", "mysql"})
"""Dialects with comments that begin with ``#``."""
_BATCHES: Final = frozenset({"tsql", "fabric"})
"""Dialects whose scripts have lines with GO between batches."""
_WAIVER = re.compile(r"(?:--|#|/\*)\s*govtool\s*:\s*(allow\b.*)\Z", re.DOTALL | re.IGNORECASE)
_BEFORE_CODE = re.compile(r"(?:\s|--[^\n]*|(?>/\*.*?\*/))*+", re.DOTALL)
_OPENED: Final = {"block": "/*", "single": "'", "double": '"', "back": "`", "singles": "'''", "doubles": '"""'}
"""What opens a comment or a quoted text, by the group of those that are not closed."""
_BLANKS = re.compile(r"\s*+")
_HOW = "sql"


@dataclass(frozen=True, slots=True)
class _Comment:
    """A comment that begins like a waiver."""

    line: int
    value: str
    first: int
    """The first line of the text between separators in which it stands."""
    last: int
    next_line: int
    """The line of the next code, if nothing stands before the comment on its own line; else 0."""


def waivers_in(
    scripts: Iterable[Script], of_file: Callable[[str], Iterable[Derivation]], source: str
) -> Iterator[Fact]:
    """Yield the waivers of scripts as facts about the datasets that their statements write.

    Args:
        scripts: The scripts; those without such a comment cost one search of their text.
        of_file: What the statements of a file make; looked up for files with a waiver.
        source: The ingest's source.
    """
    for script in scripts:
        if "govtool" not in script.text:
            continue
        made: dict[int, list[Derivation]] = {}
        dialect = ""
        for derivation in of_file(script.file):
            dialect = dialect if made else derivation.statement.dialect
            made.setdefault(derivation.statement.line, []).append(derivation)
        lines = sorted(made)
        for comment in _comments(script.text, dialect):
            line = _owner(comment, lines)
            written = [d for d in made.get(line, ()) if line and d.mode != "drop"]
            value = comment.value
            if len({d.statement.fingerprint for d in written}) > 1:
                value, written = f"several statements of line {written[0].statement.line}: {value}", written[:1]
            for target in dict.fromkeys(d.target for d in written):
                yield Fact(target, None, WAIVER, value, _HOW, f"{script.file}:{comment.line}", source)


def waivers_of(text: str, dialect: str, place: str, targets: Iterable[str], source: str) -> Iterator[Fact]:
    """Yield the waivers of a text that is one statement, such as a compiled model of dbt.

    Args:
        text: The statement.
        dialect: Its dialect.
        place: Its file; the lines are those of the text.
        targets: The datasets that it writes.
        source: The ingest's source.
    """
    written = dict.fromkeys(targets)
    for comment in _comments(text, dialect) if "govtool" in text else ():
        for target in written:
            yield Fact(target, None, WAIVER, comment.value, _HOW, f"{place}:{comment.line}", source)


def _owner(comment: _Comment, lines: Sequence[int]) -> int:
    """The line of the statement that a comment belongs to; 0 if it belongs to none.

    Args:
        comment: The comment.
        lines: The lines on which statements begin, in order.
    """
    low, high = bisect_left(lines, comment.first), bisect_right(lines, comment.last)
    if low == high:
        return 0
    # Without separators the text holds several statements: each begins on a line of its own.
    following = bisect_left(lines, comment.next_line, low, high)
    if following < high and lines[following] == comment.next_line:
        return comment.next_line
    return lines[max(bisect_right(lines, comment.line, low, high) - 1, low)]


def _comments(text: str, dialect: str) -> Iterator[_Comment]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    pieces = list(_scanned(text, dialect))
    ends = [piece.end() for piece in pieces if piece["end"]]

    def line_of(offset: int) -> int:
        return bisect_right(starts, offset)

    behind = (-1, -1)
    """A place behind a comment, and where the next code is from there on."""
    for piece in pieces:
        found = _WAIVER.match(piece[0])
        if found is None:
            continue
        number = bisect_right(ends, piece.start())
        if number and text.find("\n", ends[number - 1], piece.start()) < 0:
            number -= 1  # behind the end of a statement, on its line
        end = ends[number] if number < len(ends) else len(text)
        first, last = line_of(_code_begins(text, ends[number - 1] if number else 0)), line_of(end - 1)
        if end < len(text) and first < last == line_of(_code_begins(text, end)):
            last -= 1  # the next statement begins there
        line = line_of(piece.start())
        alone = not text[starts[line - 1] : piece.start()].strip()
        if not behind[0] <= piece.end() <= behind[1]:
            behind = (piece.end(), _end_of(_BEFORE_CODE, text, piece.end()))
        next_line = line_of(behind[1]) if alone else 0
        yield _Comment(line, " ".join(found[1].removesuffix("*/").split()), first, last, next_line)


def _scanned(text: str, dialect: str) -> Iterator[re.Match[str]]:
    """The comments, quoted texts and separators of a text.

    What is opened and not closed is none, and neither is what is opened in the same way behind it: each such place
    would be followed to the end of the text.
    """
    unclosed: frozenset[str] = frozenset()
    at = 0
    while at >= 0:
        start, at = at, -1
        for piece in _pieces(dialect, unclosed).finditer(text, start):
            opened = piece.lastgroup or ""
            if opened in _OPENED:
                unclosed |= {opened}
                at = piece.start() + 1
                break
            yield piece


@cache
def _pieces(dialect: str, unclosed: frozenset[str]) -> re.Pattern[str]:
    """Comments, quoted texts and separators of a dialect, without those that are opened in some ways."""
    backslash = dialect in _BACKSLASH
    escape = r"\\.|" if backslash else ""
    parts = {"": r"--[^\n]*", "block": r"/\*.*?(?:\*/|(?P<block>\Z))"}
    if dialect in _HASH:
        parts["hash"] = r"#[^\n]*"
    for group in ("singles", "doubles") if dialect == "bigquery" else ():
        quotes = _OPENED[group]
        parts[group] = rf"{quotes}(?:{escape}.)*?(?:{quotes}|(?P<{group}>\Z))"
    for group in ("single", "double", "back"):
        quote = _OPENED[group]
        plain = rf"[^{quote}\\]" if backslash else f"[^{quote}]"
        parts[group] = rf"{quote}(?:{escape}{quote}{quote}|{plain})*+(?:{quote}|(?P<{group}>\\?\Z))"
    separators = r";|^[ \t]*GO[ \t]*(?:\d+[ \t]*)?$" if dialect in _BATCHES else ";"
    kinds = [part for group, part in parts.items() if group not in unclosed]
    return re.compile("|".join([*kinds, f"(?P<end>{separators})"]), re.DOTALL | re.IGNORECASE | re.MULTILINE)


def _code_begins(text: str, at: int) -> int:
    """The place behind the blanks that follow the end of a statement."""
    return _end_of(_BLANKS, text, at)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
