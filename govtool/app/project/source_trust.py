"""Trust in the sources of a checkout's settings: what ``[[sources]]`` and ``[sql] schema`` name outside of the folder.

Reading a file of the user's, or connecting to a database with the user's credentials, is no choice of the repository's
author. So such a place needs the same agreement as a store: see ``trust``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence

from govtool.app.project.agreements import SOURCE, agreement, is_outside, trusted
from govtool.config import Config
from govtool.config_sources import KINDS, PATHS, SourceSettings
from govtool.errors import UsageError
from govtool.redaction import clean_location
from govtool.wording import few


def outside_sources(config: Config) -> tuple[str, ...]:
    """Return what the settings name outside of their folder: paths, addresses, and links that are to be followed."""
    found = [place for source in config.sources for place in _places(source, config)]
    return tuple(dict.fromkeys([*found, *_schema(config)]))


def require_source_trust(
    sources: Sequence[SourceSettings], config: Config, environ: Mapping[str, str] = os.environ
) -> None:
    """Refuse sources of places that the user has not agreed to.

    Raises:
        UsageError: ``usage.untrusted-source``; the hint holds both commands that allow it.
    """
    found: dict[str, SourceSettings] = {}
    for source in sources:
        schema = _schema(config) if source.kind in ("sql", "log") and not source.options.get("schema") else []
        found |= dict.fromkeys(_not_agreed([*_places(source, config), *schema], config, environ), source)
    if found:
        source = next(iter(found.values()))
        place = clean_location(source.written[0] if source.kind == "catalog" else source.paths[0])
        raise _refused(list(found), config, f"govtool ingest {source.kind} {shlex.quote(place)}")


def require_schema_trust(config: Config, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse files of ``[sql] schema`` that the user has not agreed to.

    Raises:
        UsageError: ``usage.untrusted-source``; the hint holds both commands that allow it.
    """
    lost = _not_agreed(_schema(config), config, environ)
    if lost:
        raise _refused(lost, config, f"--schema {shlex.quote(lost[0])}")


def _refused(places: Sequence[str], config: Config, command: str) -> UsageError:
    return UsageError(
        f"{config.file} names {'a source' if len(places) == 1 else 'sources'} outside of its folder: {few(places)}",
        code="usage.untrusted-source",
        location=str(config.file),
        hint=f"if you trust it: govtool trust, once; or name it yourself: {command}",
    )


def _not_agreed(places: Sequence[str], config: Config, environ: Mapping[str, str]) -> list[str]:
    """The places, as they may be shown, to which the user has not agreed."""
    agreed = set(trusted(environ)) if places else set()
    return [clean_location(place) for place in places if agreement(place, config, SOURCE) not in agreed]


def _schema(config: Config) -> list[str]:
    return [str(file) for file in config.sql.schema if is_outside(file, config.root)]


def _places(source: SourceSettings, config: Config) -> Iterator[str]:
    """What a source names outside of the folder."""
    of_database = source.kind == "catalog"
    for path in source.paths:
        if _is_elsewhere(path, config) if of_database else is_outside(path, config.root):
            yield path
        elif source.options.get("follow_links") is True:
            yield f"what links in {path} lead to"
    for name, kind in KINDS[source.kind].items():
        if kind == PATHS:
            files = source.options.get(name)
            yield from (each for each in files if is_outside(each, config.root)) if isinstance(files, list) else ()
    database, master = source.options.get("catalog"), source.options.get("master")
    if isinstance(database, str) and _is_elsewhere(database, config):
        yield database
    if isinstance(master, str) and not master.startswith("local"):
        yield master


def _is_elsewhere(address: str, config: Config) -> bool:
    """Return whether a database lies outside of the folder, or on a server."""
    from govtool.capture.catalog.address import parse_address

    try:
        found = parse_address(address)
    except UsageError:
        return True  # that is said when it is read
    if found.kind in ("duckdb", "sqlite") or found.scheme == "spark":
        return bool(found.host) or (found.path != ":memory:" and is_outside(found.path, config.root))
    return True
