"""Small pieces of text: what is safe to print, how wide it is, where it may be broken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from govtool.wording import count as count
from govtool.wording import percent as percent
from govtool.wording import printable as printable

_BREAK_AFTER = frozenset(" ./,:→")
_BREAK_WITHIN_NAMES = frozenset("_-")
"""Only where nothing else will do: a name is to stay whole."""
_PARTS = re.compile(r"(?<=[ ./,:→])")


def width(text: str) -> int:
    """The number of terminal cells that printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(ch) for ch in text)


def _cells(ch: str) -> int:
    if unicodedata.combining(ch):
        return 0
    return 2 if unicodedata.east_asian_width(ch) in "WF" else 1


def fold(text: str, limit: int) -> list[str]:
    """Break text into lines of at most ``limit`` cells, after a separator where there is one; nothing is cut.

    >>> fold("mart_marketing.audience.email", 16)
    ['mart_marketing.', 'audience.email']
    """
    if width(text) <= limit:
        return [text]
    lines: list[str] = []
    line = ""
    used = 0
    for ch in text:
        cells = _cells(ch)
        while line and used + cells > limit:
            cut = _break_at(line, limit // 3)
            lines.append(line[:cut].rstrip(" "))
            line = line[cut:]
            used = width(line)
        line += ch
        used += cells
    lines.append(line)
    return lines


_LEAD = re.compile(r"[ │]*(?:[├└]─ )?")
"""The blanks that a line begins with, and the branches of a tree."""


@dataclass(frozen=True, slots=True)
class Prose:
    """Lines for people: folded on a terminal, whole in a pipe and in a file."""

    lines: Iterable[str]
    style: Callable[[str], str] | None = None
    """The style of a line, a ``rich`` style name or empty; None: of all empty."""

    def __iter__(self) -> Iterator[str]:
        """The lines as they are."""
        return iter(self.lines)

    def folded(self, limit: int) -> Iterator[str]:
        """Lines of at most ``limit`` cells; what goes on stands a little further in than where it began.

        >>> list(Prose(["  crm.users.email ──copy──▶ stg.users.email"]).folded(32))
        ['  crm.users.email ──copy──▶', '    stg.users.email']
        """
        return (part for part, _ in self.styled(limit))

    def styled(self, limit: int | None) -> Iterator[tuple[str, str]]:
        """Lines as ``folded`` has them, or whole, each with its style."""
        for line in self.lines:
            style = self.style(line) if self.style is not None else ""
            for part in [line] if limit is None or width(line) <= limit else _folded_line(line, limit):
                yield part, style


def _folded_line(line: str, limit: int) -> Iterator[str]:
    found = _LEAD.match(line)
    lead = found[0] if found is not None else ""
    below = lead.replace("├─", "│ ").replace("└─", "  ") + "  "
    for number, part in enumerate(wrapped(line[len(lead) :], max(limit - len(below), limit // 2))):
        yield (below if number else lead) + part.rstrip(" ")


def _break_at(line: str, least: int) -> int:
    """The place to break a full line: after its last separator outside brackets, else inside them, else at its end."""
    places: list[int] = []
    enclosed: list[int] = []
    within: list[int] = []
    depth = 0
    for i, ch in enumerate(line):
        depth += (ch == "(") - (ch == ")")
        if ch in _BREAK_AFTER and i >= least:
            (enclosed if depth > 0 else places).append(i + 1)
        elif ch in _BREAK_WITHIN_NAMES and i >= least:
            within.append(i + 1)
    return (places or enclosed or within or [len(line)])[-1]


def longest_part(text: str) -> int:
    """The cells of the longest part of a text that a line break should leave whole."""
    return max(width(part) for part in _PARTS.split(text))


def size(number: int) -> str:
    """Bytes for people: ``12,345 bytes``, ``1.2 MB``."""
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number:,} bytes"


def when(iso: str) -> str:
    """An ISO time to the minute: ``2026-11-20 22:10``."""
    return iso[:16].replace("T", " ")


def short(commit_id: str) -> str:
    """The short form of a commit id."""
    return commit_id[:7]


_MARKS = re.compile(r"[\\`*\[\]<>|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINKED = re.compile(
    r"[@#](?=\w)|(?<=http)(?=s?://)|(?<=ftp)(?=://)|(?<=www)(?=\.)|:(?=[\w+-]+:)|(?<=\bGH)(?=-\d)", re.IGNORECASE
)
_NOTHING = "<!-- -->"
"""A comment of HTML: no mark of its own, and what stands on either side of it is no mention, number, link or emoji."""


def markdown_text(text: str) -> str:
    r"""A text that GitHub's Markdown shows as it is: no emphasis, no table, no link, no ``@mention``, no ``#12``.

    >>> print(markdown_text("a|b @team #12 _x_ a_b"))
    a\|b @<!-- -->team #<!-- -->12 \_x\_ a_b
    """
    marked = _ENTITY.sub("&amp;", _MARKS.sub(r"\\\g<0>", printable(text)))
    return _LINKED.sub(lambda found: found[0] + _NOTHING, marked)


def wrapped(text: str, limit: int) -> list[str]:
    """Lines broken between words; a word is folded only where it is longer than a line."""
    found = [""]
    for word in text.split(" "):
        joined = f"{found[-1]} {word}" if found[-1] else word
        if width(joined) <= limit:
            found[-1] = joined
        else:
            found[-1:] = [*([found[-1]] if found[-1] else []), *fold(word, limit)]
    return found
