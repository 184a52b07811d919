"""Diagnostics: what could not be understood, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that was not understood, was assumed, or deserves a look.

    Codes in use: ``parse-error``, ``nesting``, ``ambiguous``, ``unresolved``, ``star-unresolved``, ``cycle``,
    ``opaque``, ``duplicate-definition``, ``arity``, ``template``, ``unreadable``, ``not-sql``, ``unused-cte``,
    ``dropped``, ``view-write``.
    """

    code: str
    severity: str
    """``error`` (nothing understood), ``warning`` (partly), ``info``."""
    message: str
    file: str | None = None
    line: int | None = None
    """1-based, in the original file."""
    column: int | None = None
    """1-based."""
    target: str | None = None
    """The column or dataset that is affected, in canonical text."""
    candidates: tuple[str, ...] = ()
    """For ``ambiguous``: the columns that it may be, sorted."""

    @classmethod
    def of(cls, values: Sequence[Any]) -> Diagnostic:
        """The diagnostic of its fields in their order, as files of the cache hold them."""
        code, severity, message, file, line, column, target, candidates = values
        return cls(code, severity, message, file, line, column, target, tuple(candidates))

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order by place, then by code and message."""
        return self.file or "", self.line or 0, self.column or 0, self.code, self.message
