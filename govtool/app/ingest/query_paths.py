"""Files of one query each, whose result gets its name elsewhere: which pattern of ``relation_from`` names it.

Schedulers keep the query that fills ``mart.orders`` in ``mart/orders/query.sql`` or ``mart/orders.sql``. Its text does
not name the table, so without a pattern its lineage ends in the query. The names in the paths are looked for among what
other files read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from govtool.capture.sql.options import Options, relation_of
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


def unnamed_queries(queries: Sequence[str], scripts: Sequence[Script], dialect: str = "") -> tuple[Diagnostic, ...]:
    """A warning with the pattern, if others read what the paths of queries name.

    Args:
        queries: Files with a query whose result has no name.
        scripts: All scripts.
        dialect: What they are written in.
    """
    if len(queries) < _FOUND:
        return ()
    texts = [(script.file, _plain(script.text)) for script in scripts]
    best: tuple[str, set[str]] | None = None  # a shorter name is always found as often: only much more counts
    for pattern, files in _patterns(queries):
        options = Options(dialect, relation_from=pattern)
        sample = files[:: max(1, len(files) // _SAMPLE)][:_SAMPLE]
        named = [(_plain(name), file) for file in sample if (name := relation_of(file, options)) is not None]
        read = {name for name, file in named if _is_read(name, file, texts)}
        if len(read) >= max(_FOUND, len(named) / 4) and (best is None or len(read) > 2 * len(best[1])):
            best = pattern, read
    return () if best is None else (_note(len(queries), best[0], min(best[1])),)


def _plain(text: str) -> str:
    """A text without quotes around names, in lower case."""
    return _QUOTES.sub("", text).lower()


def _note(count: int, pattern: str, example: str) -> Diagnostic:
    message = (
        f"{count:,} files hold a query whose result has no name; others read what the paths name, such as {example}: "
        f"give --relation-from '{pattern}' (relation_from in govtool.toml)"
    )
    return Diagnostic("relation-from", "warning", message)


def _patterns(files: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Patterns with the files that may fit; of those of one kind, what says more comes first."""
    common = Counter(file.rpartition("/")[2] for file in files).most_common(_FILE_NAMES)
    for end in [*(f"/{base}" for base, count in common if count >= _FOUND), ".sql"]:
        among = [file for file in files if f"/{file}".endswith(end)]
        for head in ("{catalog}/{schema}/{table}", "{schema}/{table}", "{table}"):
            yield head + end, among


def _is_read(name: str, file: str, texts: Sequence[tuple[str, str]]) -> bool:
    """Return whether another file reads from a table of this name."""
    expression = re.compile(rf"\b(?:from|join)\s+(?:[\w$-]+\.)*{re.escape(name)}(?![\w$.-])")
    return any(name in text and other != file and expression.search(text) is not None for other, text in texts)
