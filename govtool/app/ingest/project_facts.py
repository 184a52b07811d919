"""Facts that dbt projects state in their property files, with the datasets of the graph that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from govtool.model.fact import Fact
from govtool.names import dataset_id, fold, join_name, split_name

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.templates.macros import DbtProject
    from govtool.capture.sql.templates.properties import DescribedColumn, StatedFact

_HOW = "dbt"


def project_facts(settings: Options) -> Iterator[Fact]:
    """Yield the facts of all projects: of each node its dbt id first, and the owners of its group as its own."""
    for project in settings.projects:
        yield from _facts_of(project, settings)


def _facts_of(project: DbtProject, settings: Options) -> Iterator[Fact]:
    relations = _relations(project, settings)
    owners = _group_owners(project.properties.facts)
    versions: dict[tuple[str, ...], tuple[str, ...]] = {
        (file,): (name, f"v{number}") for (name, number), file in project.properties.versions.items() if number
    }
    for stated in project.properties.facts:
        dataset = relations.get((stated.kind == "source", stated.name))
        if dataset is None:
            continue
        column = None if stated.column is None else _column(stated.column, settings.dialect)

        def fact(
            name: str, value: str, dataset: str = dataset, column: str | None = column, file: str = stated.file
        ) -> Fact:
            return Fact(dataset, column, name, value, _HOW, file, settings.source)

        if not stated.fact:
            name = versions.get(stated.name, stated.name) if stated.kind == "model" else stated.name
            package = stated.value or (project.package(project.package_of(stated.file)) or project.own).name
            yield fact("dbt.id", ".".join((stated.kind, package, *name)))
            continue
        yield fact(stated.fact, stated.value)
        if stated.fact == "group":
            yield from (fact("owner", owner) for owner in owners.get(stated.value, ()))


def _relations(project: DbtProject, settings: Options) -> dict[tuple[bool, tuple[str, ...]], str]:
    """The datasets of nodes, by whether they are tables of sources, and by name."""
    from govtool.capture.sql.resolve.deferred import relation_named
    from govtool.capture.sql.templates.sources import source_relations

    nodes = {stated.name for stated in project.properties.facts if stated.kind not in ("source", "group")}
    sources = source_relations(project, project.properties.sources.keys(), settings.variables, settings.dialect)
    parts = {(False, name): name for name in nodes} | {(True, key): found for key, found in sources}
    return {key: dataset_id(relation_named(named, settings), settings.namespace) for key, named in parts.items()}


def _group_owners(facts: Iterable[StatedFact]) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for stated in facts:
        if stated.kind == "group":
            owners.setdefault(stated.name[0], []).append(stated.value)
    return owners


def _column(column: DescribedColumn, dialect: str) -> str:
    """The canonical path of a described column; with dots, unless it is quoted, of a field."""
    if column.quoted:
        return fold(column.name, quoted=True, dialect=dialect)
    return join_name([fold(part, dialect=dialect) for part in split_name(column.name)])
