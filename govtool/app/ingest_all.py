"""Ingest of all sources of govtool.toml, one commit each.

A source that cannot be read, or of which too little is understood, keeps its last version; the others are committed.
Only what concerns all of them, such as a store that cannot be written, ends the whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from govtool.answers.ingest_all import SourceOutcome
from govtool.config import CONFIG_FILE, load_config
from govtool.errors import EngineError, EvidenceError, SourceError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult
    from govtool.config_sources import SourceSettings


class Ingest(Protocol):
    """The protocol of every kind of ingest: a place, the options of the kind, and those of every ingest."""

    def __call__(self, place: Any, /, *rest: Any, **options: Any) -> IngestResult:
        """Read the place into the graph and commit."""


_OF_ONE_SOURCE = (UsageError, EvidenceError, SourceError, EngineError)
"""Errors that are one source's own."""


def chosen_sources(only: Sequence[str]) -> tuple[SourceSettings, ...]:
    """Return the ``[[sources]]`` of the project: all of them, or those of some names, paths or kinds.

    Raises:
        UsageError: govtool.toml is not valid, or has none (``usage.no-sources``).
        UnknownNameError: There is no such source (``usage.unknown-source``).
    """
    config = load_config(Path.cwd())
    if not config.sources:
        raise UsageError(
            f"{CONFIG_FILE} has no [[sources]]" if config.file else f"there is no {CONFIG_FILE} with [[sources]]",
            code="usage.no-sources",
            location=str(config.file) if config.file else None,
            hint="govtool init --sources writes them; or one source at a time: govtool ingest sql FOLDER",
        )
    names = [_names(source, config.root) for source in config.sources]
    for name in only:
        if not any(name in each for each in names):
            known = sorted({each for several in names for each in several})
            raise UnknownNameError(
                f"no source {name} in {CONFIG_FILE}",
                code="usage.unknown-source",
                nearest=tuple(difflib.get_close_matches(name, known)),
            )
    chosen = zip(config.sources, names, strict=True)
    return tuple(source for source, each in chosen if not only or each & set(only))


def ingest_sources(
    sources: Sequence[SourceSettings],
    ingests: Mapping[str, Ingest],
    shared: Mapping[str, Any],
    starting: Callable[[int, str], None],
) -> Iterator[SourceOutcome]:
    """Ingest sources, one after the other.

    Args:
        sources: The sources.
        ingests: The ingest of each kind.
        shared: Options of all of them; a source's own come before them.
        starting: Called with the number and the name of each source before it is read.

    Raises:
        StoreError: The store cannot be read or written; sources before this one are committed.
    """
    for number, source in enumerate(sources):
        starting(number, source.label)
        place: object = source.paths[0] if source.kind in ("dbt", "catalog") else list(source.paths)
        options = {("log_format" if name == "from" else name): value for name, value in source.options.items()}
        try:
            result = ingests[source.kind](place, **{**shared, "source": source.name or "", **options})
        except _OF_ONE_SOURCE as error:
            yield SourceOutcome(source.kind, source.label, error=error)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            failure = SourceError(reason, code="source.io", location=str(error.filename or "") or None)
            yield SourceOutcome(source.kind, source.label, error=failure)
        else:
            yield SourceOutcome(source.kind, result.source, result)


def _names(source: SourceSettings, root: Path) -> frozenset[str]:
    """All that a source may be named by: its name, kind, paths, and kind and path."""
    paths = {path.removeprefix(f"{root}/") for path in source.paths}
    return frozenset({source.kind, *paths, *(f"{source.kind}:{path}" for path in paths)} | {source.name or source.kind})
