"""Diagnostics as JSON values."""

from __future__ import annotations

from govtool.model import Diagnostic


def diagnostic_object(diagnostic: Diagnostic, *, with_file: bool = True) -> dict[str, object]:
    """The JSON value of one diagnostic."""
    place = {"file": diagnostic.file} if with_file else {}
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **place,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "target": diagnostic.target,
        "candidates": list(diagnostic.candidates),
    }
