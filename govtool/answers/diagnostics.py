"""Diagnostics as JSON values, and without those that differ in their target alone."""

from __future__ import annotations

from collections.abc import Iterable

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


def distinct(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The first diagnostic of each place, code and message.

    A doubtful column that reaches several outputs is one mistake for people. The records keep a diagnostic an output:
    ``target`` says which column is doubtful.
    """
    found: dict[tuple[object, ...], Diagnostic] = {}
    for one in diagnostics:
        found.setdefault((*one.sort_key(), one.severity, one.candidates), one)
    return list(found.values())
