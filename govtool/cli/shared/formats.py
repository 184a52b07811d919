"""``-f FORMAT`` and ``-o FILE``: which renderings go where."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from govtool.errors import UnknownNameError, UsageError

_BY_SUFFIX = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "markdown",
    ".sarif": "sarif",
    ".xml": "junit",
    ".dot": "dot",
    ".gv": "dot",
    ".graphml": "graphml",
    ".mmd": "mermaid",
    ".parquet": "parquet",
    ".provjson": "prov-json",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".txt": "plain",
    ".yaml": "yaml",
    ".yml": "yaml",
}


_TEXT = frozenset({".log", ".out"})
"""Suffixes of text, which a table is."""
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class OutputFile(NamedTuple):
    """One rendering and its place; None is stdout."""

    format: str
    file: Path | None


def chosen(
    formats: Sequence[str] | None,
    files: Sequence[Path] | None,
    supported: Sequence[str],
    others: Sequence[str] = (),
) -> list[OutputFile]:
    """Pair formats with files, the last with the last; the first of ``supported`` is the default.

    ``-f table -f json -o answer.json`` shows the table and writes the JSON; ``-o answer.csv`` alone writes CSV.
    ``others`` are suffixes of files that the command writes without a format of that name.

    Raises:
        UnknownNameError: the command has no such format, or a file's suffix names none.
        UsageError: more files than formats, several formats for stdout, or a format that goes to the file of another.
    """
    names = list(formats or [])
    places = list(files or [])
    if not names:
        names = [_of_suffix(place, supported, others) for place in places] or [supported[0]]
    for number, name in enumerate(names):
        if name not in supported:
            other = name in _BY_SUFFIX.values()  # a format of another command is no slip of the pen
            raise UnknownNameError(
                f"no format {name if formats else places[number].suffix} here",
                code="usage.unknown-format",
                nearest=() if other else tuple(difflib.get_close_matches(name, supported)),
                hint=f"one of {', '.join(supported)}",
            )
    if len(places) > len(names):
        raise UsageError("more -o than -f", code="usage.output", hint="give each -o its -f")
    if len(names) - len(places) > 1:
        raise UsageError("several formats for stdout", code="usage.output", hint="give all but one of them a -o FILE")
    shown, written = names[: len(names) - len(places)], names[len(names) - len(places) :]
    for name, place in zip(written, places, strict=True):
        named = _BY_SUFFIX.get(place.suffix.lower(), name)
        if shown and named != name and named in names:
            raise UsageError(
                f"{place} would hold {name}, not {named}: the first -f is shown, the others are written in their order",
                code="usage.output",
                hint=f"-f {names[-1]} first",
            )
    return [OutputFile(name, None) for name in shown] + [
        OutputFile(name, None if str(place) in _STDOUT else place) for name, place in zip(written, places, strict=True)
    ]


def _of_suffix(place: Path, supported: Sequence[str], others: Sequence[str]) -> str:
    """The format that a file's suffix names; the default of a file without one, and a table for text.

    Any other suffix promises a format that would not be in the file: ``answer.xlsx``.
    """
    suffix = place.suffix.lower()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if not suffix or str(place) in _STDOUT or (suffix in _TEXT and supported[0] == "table"):
        return supported[0]
    known = [*(each for each, name in _BY_SUFFIX.items() if name in supported), *others]
    raise UnknownNameError(
        f"no format is known by the suffix {suffix}",
        code="usage.unknown-format",
        nearest=tuple(difflib.get_close_matches(suffix, known)),
        hint=f"one of {', '.join(known)}; or -f FORMAT",
    )
