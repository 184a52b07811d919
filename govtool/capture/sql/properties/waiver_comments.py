"""Waivers that stand in SQL as comments: ``-- govtool: allow GDPR-001 until 2027-03-31 because legal approved it``.

A comment belongs to the statement that it stands in, to that which ends before it on its line, or else to the next.
Where several statements share the line, it belongs to none of them. Its meaning is read by
``govtool.policy.rules.finding``: a comment that is mistaken is kept, so that it can be reported.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
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
        made = list(of_file(script.file))
        dialect = made[0].statement.dialect if made else ""
        for comment in _comments(script.text, dialect):
            written = [d for d in _owners(comment, made) if d.mode != "drop"]
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


def _owners(comment: _Comment, made: Iterable[Derivation]) -> list[Derivation]:
    """The derivations of the statement that a comment belongs to, or of all that begin on its line."""
    inside = [d for d in made if comment.first <= d.statement.line <= comment.last]
    lines = sorted({d.statement.line for d in inside})
    if not lines:
        return []
    # Without separators the text holds several statements: each begins on a line of its own.
    line = comment.next_line if comment.next_line in lines else lines[max(bisect_right(lines, comment.line) - 1, 0)]
    return [d for d in inside if d.statement.line == line]


def _comments(text: str, dialect: str) -> Iterator[_Comment]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    pieces = list(_pieces(dialect).finditer(text))
    ends = [piece.end() for piece in pieces if piece["end"]]

    def line_of(offset: int) -> int:
        return bisect_right(starts, offset)

    for piece in pieces:
        found = _WAIVER.match(piece[0])
        if found is None:
            continue
        number = bisect_right(ends, piece.start())
        if number and "\n" not in text[ends[number - 1] : piece.start()]:
            number -= 1  # behind the end of a statement, on its line
        end = ends[number] if number < len(ends) else len(text)
        first, last = line_of(_code_begins(text, ends[number - 1] if number else 0)), line_of(end - 1)
        if end < len(text) and first < last == line_of(_code_begins(text, end)):
            last -= 1  # the next statement begins there
        line = line_of(piece.start())
        alone = not text[starts[line - 1] : piece.start()].strip()
        following = _BEFORE_CODE.match(text, piece.end())
        next_line = line_of(following.end()) if alone and following is not None else 0
        yield _Comment(line, " ".join(found[1].removesuffix("*/").split()), first, last, next_line)


@cache
def _pieces(dialect: str) -> re.Pattern[str]:
    """Comments, quoted texts and separators of a dialect."""
    escape = r"\\." if dialect in _BACKSLASH else r"(?!)"
    parts = [r"--[^\n]*", r"/\*.*?\*/"]
    if dialect in _HASH:
        parts.append(r"#[^\n]*")
    if dialect == "bigquery":
        parts += [rf"{quote * 3}(?:{escape}|.)*?{quote * 3}" for quote in "'\""]
    parts += [rf"{quote}(?:{escape}|{quote}{quote}|[^{quote}])*{quote}" for quote in "'\"`"]
    separators = r";|^[ \t]*GO[ \t]*(?:\d+[ \t]*)?$" if dialect in _BATCHES else ";"
    return re.compile("|".join([*parts, f"(?P<end>{separators})"]), re.DOTALL | re.IGNORECASE | re.MULTILINE)


def _code_begins(text: str, at: int) -> int:
    """The place behind the blanks that follow the end of a statement."""
    return at + len(text[at:]) - len(text[at:].lstrip())
