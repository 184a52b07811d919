"""Distinct statements that were not understood at all, with the place at which the parser stopped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.model import Diagnostic

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Shortfall


@dataclass(frozen=True, slots=True)
class Failure:
    """A statement, and why it was not understood; ``at`` is a place in ``text``, ``diagnostic`` one in the file."""

    text: str
    diagnostic: Diagnostic
    line: int | None
    """1-based, in ``text``; None where the reason has no place in it."""
    column: int | None
    runs: int


def failures(shortfalls: Iterable[Shortfall], *, keep_literals: bool = False) -> list[Failure]:
    """Return the distinct statements that were not understood at all, those with the most runs first.

    Their literals are redacted unless ``keep_literals``; what is redacted is parsed once more, so that the place fits.
    """
    from govtool.capture.sql.scripts.script import parse_script
    from govtool.capture.sql.syntax.fingerprint import fingerprint
    from govtool.capture.sql.syntax.redact import redact

    found: dict[tuple[str, str], Failure] = {}
    for shortfall in shortfalls:
        if shortfall.status != "opaque":
            continue
        note, dialect = shortfall.diagnostic, shortfall.dialect
        key = (fingerprint(shortfall.text, dialect) if shortfall.text else f"{note.file}:{note.line}", note.code)
        known = found.get(key)
        if known is not None:
            found[key] = Failure(known.text, known.diagnostic, known.line, known.column, known.runs + shortfall.runs)
            continue
        text = shortfall.text if keep_literals else redact(shortfall.text, dialect)
        here = next((d for s in parse_script(text, dialect) for d in s.diagnostics if d.code == note.code), None)
        place = (here.line, here.column) if here is not None else (None, None)
        found[key] = Failure(text, note, *place, shortfall.runs)
    return sorted(found.values(), key=lambda f: (-f.runs, f.diagnostic.file or "", f.diagnostic.line or 0))
