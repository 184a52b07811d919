"""Files of provenance graphs: JSON and GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.workflow.graph import ProvenanceGraph

SUFFIXES = {".json": "json", ".graphml": "graphml", ".xml": "graphml"}
"""Formats that are read, by the end of a file's name."""
_DRAWINGS = frozenset({".dot", ".gv"})
"""Ends of names of files that are written only: they hold what is drawn, and leave out the rest."""


def is_graph_file(text: str) -> bool:
    """Return whether a text is a path: it looks like one, or there is such a file."""
    return "/" in text or Path(text).suffix.lower() in SUFFIXES or Path(text).is_file()


def read_graph(path: str) -> ProvenanceGraph:
    """Read a graph from a file: JSON, or GraphML by its name.

    Raises:
        UsageError: It cannot be read, is no graph, or mistaken (``usage.graph``), with the line and the reason.
    """
    from govtool.given_files import read_given
    from govtool.workflow.formats.read_graphml import read_graphml
    from govtool.workflow.formats.read_json import MAX_BYTES, read_json, refuse_large

    file = Path(path)
    if file.suffix.lower() in _DRAWINGS:
        raise UsageError(
            "DOT is written and not read: it has what is drawn, and not all of a graph",
            code="usage.graph",
            location=path,
            hint="govtool graph export NAME --format json, or graphml",
        )
    try:
        refuse_large(file.stat().st_size, path)
        data = read_given(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot be read: {reason.lower()}", code="usage.graph", location=path) from error
    reader = read_graphml if SUFFIXES.get(file.suffix.lower()) == "graphml" else read_json
    return reader(data, path)
