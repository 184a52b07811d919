"""Sources of a graph against the ``[[sources]]`` of govtool.toml: which of them are listed there.

A source of the graph is listed if an entry has its name, or its kind and place. Sources of older stores, whose kind is
not recorded, and those that no ingest of files made, such as runs, are in no list and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.project.sources import place_of, source_counts
from govtool.config import load_config
from govtool.config_sources import KINDS

if TYPE_CHECKING:
    from govtool.answers.coverage import SourceCoverage
    from govtool.config_sources import SourceSettings
    from govtool.store import Commit, Reader


def unlisted_sources(store: Reader, commit: Commit) -> tuple[str, ...]:
    """The live sources of a commit that govtool.toml does not list, by name; none where it lists nothing.

    Raises:
        UsageError: govtool.toml is not valid.
        StoreError: A fragment cannot be read.
    """
    settings = load_config(Path.cwd()).sources
    if not settings:
        return ()
    names, places = _marks(settings, store)
    rows = (row for row in source_counts(store, commit) if row.kind in KINDS)
    return tuple(sorted(row.source for row in rows if row.source not in names and (row.kind, row.place) not in places))


def live_sources(settings: Sequence[SourceSettings], store: Reader, commit: Commit | None) -> tuple[bool, ...]:
    """Of each entry, whether something of it is in the graph; ``commit`` is None of an empty store.

    Raises:
        StoreError: A fragment cannot be read.
    """
    rows = tuple(source_counts(store, commit)) if commit is not None else ()
    return tuple(any(_is_of(row, each, store) for row in rows) for each in settings)


def _is_of(row: SourceCoverage, settings: SourceSettings, store: Reader) -> bool:
    return row.source == settings.name or (row.kind, row.place) == (settings.kind, _place(settings, store))


def _marks(settings: Iterable[SourceSettings], store: Reader) -> tuple[set[str], set[tuple[str, str]]]:
    """The names of entries, and their kinds and places."""
    names = {each.name for each in settings if each.name is not None}
    return names, {(each.kind, _place(each, store)) for each in settings}


def _place(settings: SourceSettings, store: Reader) -> str:
    """The place that the ingest of an entry records."""
    if settings.kind == "catalog":
        from govtool.app.ingest.catalog import address_place

        return address_place(settings.paths[0], store)
    if settings.kind == "dbt":
        from govtool.app.ingest.dbt import project_folder

        return place_of([str(project_folder(Path(settings.paths[0])))], store)
    return place_of(settings.paths, store)
