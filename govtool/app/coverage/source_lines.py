"""The source lines of stored diagnostics, where the files are at hand and still say what was read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.answers.coverage import CoverageReport
    from govtool.app.ingest.sql_options import SourceText
    from govtool.model import Diagnostic

_NEAR = re.compile(r" near '(.+)'\Z", re.DOTALL)
"""The word at which a parser gave up, as messages end."""


def with_source_lines(report: CoverageReport, limit: int | None) -> Iterator[tuple[Diagnostic, str]]:
    """Yield diagnostics that name the word at their place, each with the line of its file.

    A store holds no text of what was not understood. A file that is gone, or that has another word at the place by now,
    has no line here.

    Args:
        report: The diagnostics, and where their sources were read.
        limit: The diagnostics that are looked at; None: all.
    """
    texts = {s.source: _text(s.place) for s in report.sources if s.kind == "sql" and s.place}
    for source, diagnostic in report.diagnostics[:limit]:
        near = _NEAR.search(diagnostic.message)
        if near is None or source not in texts or not diagnostic.column:
            continue
        line = texts[source].line(diagnostic)
        if line is not None and line[diagnostic.column - 1 :].lower().startswith(near[1].lower()):
            yield diagnostic, line


def _text(place: str) -> SourceText:
    from govtool.app.ingest.sql_options import SourceText, root_of
    from govtool.app.project.sources import project_root

    paths: Sequence[str] = [str(project_root() / part) for part in place.split("+")]
    return SourceText(root_of(paths))
