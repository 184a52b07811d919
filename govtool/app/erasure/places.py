"""Identities of recorded files: equal where two runs mean the same file, however its URI was written."""

from __future__ import annotations

from urllib.parse import unquote, urlparse

from govtool.app.trace_runs import Place
from govtool.records.plan.nodes import File


def place_of(file: File) -> Place:
    """The recorded identity of a file.

    Spark writes ``file:/a/day=1`` or ``file:///a/day=1``; what was listed after a write is ``file:///a/day%3D1``.
    """
    parts = urlparse(file.uri)
    uri = f"file://{unquote(parts.path)}" if parts.scheme in ("", "file") else file.uri
    return (uri, file.size, file.modified)
