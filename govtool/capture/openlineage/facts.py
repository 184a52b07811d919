"""Facts of datasets and columns beside lineage: owners, tags, descriptions, versions, figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from govtool.capture.openlineage.events import DATASET, FIELDWISE, EntityPart
from govtool.capture.openlineage.facets import keep_newest
from govtool.capture.openlineage.identity import DatasetName, Fields
from govtool.capture.openlineage.merge import MergedEvents, RegisterValue, parts
from govtool.model.fact import Fact

_PREFIXES = {"dataQualityMetrics": "quality", "outputStatistics": "written", "inputStatistics": "read"}


def facts_of(state: MergedEvents, source: str) -> list[Fact]:
    """The facts of a state, sorted; of what several events say, the newest."""
    found: dict[DatasetName, dict[str, RegisterValue]] = {}
    for key, registers in state.entities.items():
        if key.kind == DATASET:
            name = DatasetName(key.namespace, key.name)
            keep_newest(found.setdefault(name, {}), parts(registers, "self").get(EntityPart("self"), {}))
        else:
            for role in ("in", "out"):
                for part, facets in parts(registers, role).items():
                    keep_newest(found.setdefault(part.dataset, {}), facets)
    facts: set[Fact] = set()
    for name, facets in found.items():
        for column, key_, value in _stated_values({facet: value.load() for facet, value in facets.items()}):
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            facts.add(Fact(name.id, column, key_, text, "openlineage", name.id, source))
    return sorted(facts, key=lambda fact: tuple(part or "" for part in fact))


def _stated_values(facets: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
    """Column or None, name, value."""
    schema = facets.get("schema")
    listed = schema.get("fields") if isinstance(schema, Mapping) else None
    fields = Fields(listed)
    yield from _column_descriptions(listed, fields)
    for owner in _objects(_get(facets, "ownership", "owners")):
        if isinstance(owner.get("name"), str):
            yield None, "owner", owner["name"]
    yield from _tags(facets, fields)
    for facet, key, name in _DATASET_TEXTS:
        text = _get(facets, facet, key)
        if isinstance(text, str) and text:
            yield None, name, text
    for name, entry in facets.items():
        stem, _, figure = name.partition("/")
        if stem in FIELDWISE and figure:
            yield from _figures(_PREFIXES[stem], figure, entry, fields)


_DATASET_TEXTS = (
    ("documentation", "description", "description"),
    ("version", "datasetVersion", "version"),
    ("storage", "fileFormat", "format"),
)
"""Texts about a dataset as a whole: facet, its key, name of the fact."""


def _column_descriptions(listed: object, fields: Fields) -> Iterator[tuple[str | None, str, Any]]:
    for field in _objects(listed):
        name, description = field.get("name"), field.get("description")
        if isinstance(description, str) and isinstance(name, str) and description:
            yield fields.path(name), "description", description


def _tags(facets: Mapping[str, Any], fields: Fields) -> Iterator[tuple[str | None, str, Any]]:
    for tag in _objects(_get(facets, "tags", "tags")):
        key, value, of = tag.get("key"), tag.get("value"), tag.get("field")
        if not isinstance(key, str) or not key:
            continue
        column = fields.path(of) if isinstance(of, str) and of else None
        plain = value in (None, "") or str(value).lower() == "true"
        yield column, "tag", key if plain else f"{key}:{value}"


def _figures(prefix: str, figure: str, entry: Any, fields: Fields) -> Iterator[tuple[str | None, str, Any]]:
    """Statistics and quality metrics: a number of the dataset, or numbers by column."""
    if _is_number(entry):
        yield None, f"{prefix}.{figure}", entry
    if figure != "columnMetrics" or not isinstance(entry, Mapping):
        return
    for column, figures in entry.items():
        for name, number in figures.items() if isinstance(figures, Mapping) else ():
            if _is_number(number):
                yield fields.path(str(column)), f"{prefix}.{name}", number


def _get(facets: Mapping[str, Any], facet: str, key: str) -> Any:
    value = facets.get(facet)
    return value.get(key) if isinstance(value, Mapping) else None


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
