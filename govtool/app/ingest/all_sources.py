"""Ingest of all sources of govtool.toml, one commit each.

A source that cannot be read, or of which too little is understood, keeps its last version; the others are committed.
Only what concerns all of them, such as a store that cannot be written, ends the whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from govtool.answers.ingest_all import SourceOutcome
from govtool.app.project.source_trust import require_source_trust
from govtool.config import CONFIG_FILE, Config, load_config
from govtool.errors import AmbiguousNameError, EngineError, EvidenceError, SourceError, UnknownNameError, UsageError
from govtool.redaction import clean_location

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
        UsageError: govtool.toml is not valid, has none (``usage.no-sources``), or names one outside of its folder to
            which the user has not agreed (``usage.untrusted-source``).
        UnknownNameError: There is no such source (``usage.unknown-source``), or no such dialect.
        AmbiguousNameError: Several sources end alike (``usage.ambiguous-source``).
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
    chosen = {number for name in only for number in _named(name, names)} if only else range(len(names))
    found = tuple(source for number, source in enumerate(config.sources) if number in chosen)
    require_source_trust(found, config)
    for source in found:
        _check_dialect(source, config)
    return found


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


def _named(name: str, names: Sequence[frozenset[str]]) -> list[int]:
    """The numbers of the sources that a name means: those with exactly this name, else the one that ends in it."""
    exact = [number for number, each in enumerate(names) if name in each]
    if exact:
        return exact
    ends = {number: sorted(one for one in each if _ends(one, name)) for number, each in enumerate(names)}
    found = [number for number, each in ends.items() if each]
    if not found:
        known = sorted({each for several in names for each in several})
        raise UnknownNameError(
            f"no source {name} in {CONFIG_FILE}",
            code="usage.unknown-source",
            nearest=tuple(difflib.get_close_matches(name, known)),
        )
    if len(found) > 1:
        raise AmbiguousNameError(
            f"{name} may be {len(found)} sources of {CONFIG_FILE}",
            code="usage.ambiguous-source",
            nearest=tuple(ends[number][-1] for number in found),
        )
    return found


def _ends(whole: str, end: str) -> bool:
    """True if a name or path ends in these parts, with its suffix or without."""
    stem = whole.rpartition("/")[0] + "/" + PurePosixPath(whole).stem
    return bool(end) and any(text.endswith((f"/{end}", f":{end}")) for text in (f"/{whole}", f"/{stem}"))


def _check_dialect(source: SourceSettings, config: Config) -> None:
    """Check the dialect of an entry before anything is read.

    Raises:
        UnknownNameError: There is none of this name (``usage.unknown-dialect``).
    """
    from govtool.app.ingest.sql_options import check_dialect

    dialect = source.options.get("dialect")
    if not isinstance(dialect, str):
        return
    try:
        check_dialect(dialect)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{source.label}: {error.message}",
            code=error.code,
            location=str(config.file),
            nearest=error.nearest,
            hint=error.hint,
        ) from error


def _names(source: SourceSettings, root: Path) -> frozenset[str]:
    """All that a source may be named by: its name, kind, paths, and kind and path."""
    paths = {path.removeprefix(f"{root}/") for path in source.paths} | {clean_location(path) for path in source.written}
    if source.kind == "catalog":
        paths |= {PurePosixPath(path).stem for path in source.written}
    return frozenset({source.kind, *paths, *(f"{source.kind}:{path}" for path in paths)} | {source.name or source.kind})
