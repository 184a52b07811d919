"""Files of one query each, whose result gets its name elsewhere: which pattern of ``relation_from`` names it.

Schedulers keep the query that fills ``mart.orders`` in ``mart/orders/query.sql`` or ``mart/orders.sql``. Its text does
not name the table, so without a pattern its lineage ends in the query. The names in the paths are looked for among what
other files read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from govtool.model import Diagnostic

if TYPE_CHECKING:
    from govtool.capture.sql.files import Script

_SAMPLE: Final = 20
"""Files of a pattern that are looked for; spread evenly."""
_FOUND: Final = 3
"""Those that have to be read elsewhere, at least, and a quarter of those that were looked for."""
_FILE_NAMES: Final = 3
"""The commonest names of files, such as ``query.sql``, that are tried as the last part of a pattern."""
_QUOTES: Final = re.compile(r"[`\"\[\]]")


class _Pattern(NamedTuple):
    text: str
    """As of ``relation_from``."""
    names: tuple[tuple[str, str], ...]
    """Files that it fits, and the name that others would read, in lower case."""


def unnamed_queries(queries: Sequence[str], scripts: Sequence[Script]) -> tuple[Diagnostic, ...]:
    """A warning with the pattern, if others read what the paths of queries name.

    Args:
        queries: Files with a query whose result has no name.
        scripts: All scripts.
    """
    if len(queries) < _FOUND:
        return ()
    texts = [(script.file, _QUOTES.sub("", script.text).lower()) for script in scripts]
    best: tuple[_Pattern, set[str]] | None = None  # a shorter name is always found as often: only much more counts
    for pattern in _patterns(queries):
        step = max(1, len(pattern.names) // _SAMPLE)
        sample = pattern.names[::step][:_SAMPLE]
        read = {name for file, name in sample if _is_read(name, file, texts)}
        if len(read) >= max(_FOUND, len(sample) / 4) and (best is None or len(read) > 2 * len(best[1])):
            best = pattern, read
    return () if best is None else (_note(len(queries), best[0], min(best[1])),)


def _note(count: int, pattern: _Pattern, example: str) -> Diagnostic:
    message = (
        f"{count:,} files hold a query whose result has no name; others read what the paths name, such as {example}: "
        f"give --relation-from '{pattern.text}' (relation_from in govtool.toml)"
    )
    return Diagnostic("relation-from", "warning", message)


def _patterns(files: Sequence[str]) -> Iterator[_Pattern]:
    """Patterns that fit enough of the files; of those of one kind, what says more comes first."""
    common = Counter(file.rpartition("/")[2] for file in files).most_common(_FILE_NAMES)
    for base in [base for base, count in common if count >= _FOUND]:
        parted = [(file, file.lower().split("/")) for file in files if file.rpartition("/")[2] == base]
        yield from _with_folders(parted, 1, f"/{base}")
    parted = [(file, file.lower().removesuffix(".sql").split("/")) for file in files if file.lower().endswith(".sql")]
    yield from _with_folders(parted, 0, ".sql")


def _with_folders(parted: Sequence[tuple[str, list[str]]], behind: int, end: str) -> Iterator[_Pattern]:
    """Patterns of catalog, schema and table, or fewer; ``behind`` parts of a path come after these."""
    for head, count in (("{catalog}/{schema}/{table}", 3), ("{schema}/{table}", 2), ("{table}", 1)):
        names = [
            (file, ".".join(parts[len(parts) - behind - count : len(parts) - behind]))
            for file, parts in parted
            if len(parts) >= behind + count
        ]
        if len(names) >= _FOUND:
            yield _Pattern(head + end, tuple(names))


def _is_read(name: str, file: str, texts: Sequence[tuple[str, str]]) -> bool:
    """Return whether another file reads from a table of this name."""
    expression = re.compile(rf"\b(?:from|join)\s+(?:[\w$-]+\.)*{re.escape(name)}(?![\w$.-])")
    return any(name in text and other != file and expression.search(text) is not None for other, text in texts)
