"""Waivers that stand in SQL as comments: ``-- govtool: allow GDPR-001 until 2027-03-31 because legal approved it``.

A comment belongs to the statement that it stands in, to that which ends before it on its line, or else to the next.
What it means is read by ``govtool.policy.inline``: a comment that is mistaken is kept, so that it can be reported.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from govtool.capture.sql.files import Script
from govtool.model.derivation import Derivation
from govtool.model.fact import WAIVER, Fact

_PIECE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|;", re.DOTALL)
_WAIVER = re.compile(r"(?:--|/\*)\s*govtool\s*:\s*(allow\b.*?)\s*(?:\*/)?\Z", re.DOTALL | re.IGNORECASE)
_HOW = "sql"


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
        comments = list(_comments(script.text)) if "govtool" in script.text else []
        if not comments:
            continue
        written = [(d.statement.line, d.target) for d in of_file(script.file) if d.mode != "drop"]
        for line, value, first, last in comments:
            targets = dict.fromkeys(target for at, target in written if first <= at <= last)
            yield from (Fact(target, None, WAIVER, value, _HOW, f"{script.file}:{line}", source) for target in targets)


def waivers_of(text: str, place: str, targets: Iterable[str], source: str) -> Iterator[Fact]:
    """Yield the waivers of a text that is one statement, such as a compiled model of dbt.

    Args:
        text: The statement.
        place: Its file; the lines are those of the text.
        targets: The datasets that it writes.
        source: The ingest's source.
    """
    written = dict.fromkeys(targets)
    for line, value, _, _ in _comments(text) if "govtool" in text else ():
        yield from (Fact(target, None, WAIVER, value, _HOW, f"{place}:{line}", source) for target in written)


def _comments(text: str) -> Iterator[tuple[int, str, int, int]]:
    """Yield each comment with its line, its text, and the first and last line of its statement."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    pieces = list(_PIECE.finditer(text))
    ends = [piece.end() for piece in pieces if piece[0] == ";"]

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
        following = _code_begins(text, end)
        if following < len(text) and first < last == line_of(following):
            last -= 1  # the next statement begins there
        yield line_of(piece.start()), " ".join(found[1].split()), first, last


def _code_begins(text: str, at: int) -> int:
    """The place behind the blanks that follow the end of a statement."""
    return at + len(text[at:]) - len(text[at:].lstrip())
