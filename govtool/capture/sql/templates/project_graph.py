"""dbt's ``graph``: the nodes and sources of a project, as templates may look through them.

Documented at https://docs.getdbt.com/reference/dbt-jinja-functions/graph. What files tell is there: names, packages,
paths, columns, descriptions, tags and texts of ``meta``. Anything else of a node is unknown, and so are exposures,
metrics and groups. Tests, analyses and operations are no nodes here, and models that are switched off are: whether
``enabled`` holds may depend on a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from govtool.capture.sql.templates.dbt_relation import DbtRelation
from govtool.capture.sql.templates.macros import DbtProject, ProjectNode
from govtool.capture.sql.templates.properties import DescribedColumn, StatedFact
from govtool.capture.sql.templates.run import MacroRun
from govtool.capture.sql.templates.unknown import Unknown, plain

_PARTS = ("nodes", "sources", "exposures", "metrics", "groups")
_Name = tuple[str, tuple[str, ...]]
"""The kind and the name of a node."""
_Facts = dict[str | None, list[StatedFact]]
"""The facts of a node by column; those of itself under None."""


class Known(Mapping[str, Any]):
    """What is known of a thing by name, also as attributes; anything else is unknown. It cannot be changed."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep the values.

        Args:
            name: Begins the names of what is unknown.
            values: What is known.
        """
        self._name = name
        self._values = values

    def __getitem__(self, name: object) -> Any:
        if isinstance(name, str) and name in self._values:
            return self._values[name]
        return Unknown(f"{self._name}_{plain(name)}", call=True)  # where it is written, SQL is missing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, name: str, default: Any = None) -> Any:
        """What is known; of anything else it is unknown whether it is there."""
        return self[name]


class Things(Known):
    """Things by their ids, all of them."""

    def get(self, name: str, default: Any = None) -> Any:
        """The thing of an id, else the default."""
        return self._values.get(name, default)


class ProjectGraph(Mapping[str, Any]):
    """``graph``. What a template does not look at is not made."""

    def __init__(self, run: MacroRun) -> None:
        """The graph of the project whose template is rendered."""
        self._run = run

    def __getitem__(self, name: object) -> Any:
        if name in ("nodes", "sources"):
            self._run.reasons[f"graph_{name}"] = f"graph.{name}: the files do not tell all that dbt knows"
        if name == "nodes":
            return _nodes(self._run.project)
        if name == "sources":
            return Things("graph_sources", {source["unique_id"]: source for source in _sources(self._run)})
        part = plain(name)
        why = f"graph.{part}: what dbt knows of the project's {part} is not known here"
        return self._run.missing(f"graph_{part}", why)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PARTS)

    def __len__(self) -> int:
        return len(_PARTS)


@lru_cache(maxsize=4)
def _nodes(project: DbtProject) -> Things:
    """The nodes by their ids."""
    facts = _facts_by_node(project)
    files = {file: key for key, file in project.properties.versions.items() if key[1]}
    found = (_node(each, project, files, facts) for each in project.nodes)
    return Things("graph_nodes", {node["unique_id"]: node for node in found})


@lru_cache(maxsize=4)
def _facts_by_node(project: DbtProject) -> Mapping[_Name, _Facts]:
    found: dict[_Name, _Facts] = {}
    for fact in project.properties.facts:
        column = None if fact.column is None else fact.column.name
        found.setdefault((fact.kind, fact.name), {}).setdefault(column, []).append(fact)
    return found


def _node(
    node: ProjectNode, project: DbtProject, versions: Mapping[str, tuple[str, str]], facts: Mapping[_Name, _Facts]
) -> Known:
    name, version = versions.get(node.name, (node.name, "")) if node.kind == "model" else (node.name, "")
    own = facts.get((node.kind, (node.name,)), {})
    about = {
        "name": name,
        "alias": node.name,  # so ``ref`` calls it here
        "relation_name": str(DbtRelation(node.name)),
        "resource_type": node.kind,
        "package_name": node.package,
        "unique_id": ".".join((node.kind, node.package, name, *([f"v{version}"] if version else ()))),
        "path": node.path,
        "original_file_path": f"{node.folder}/{node.path}",
        "fqn": (node.package, *node.path.rpartition(".")[0].split("/")),
        "columns": _columns(project.properties.described.get(node.name, ()), own),
        "version": version or None,
    }
    return Known("graph_nodes_item", {**about, **_stated("graph_nodes_item", own.get(None, ()))})


def _sources(run: MacroRun) -> Iterator[Known]:
    project = run.project
    for (source, table), declared in project.properties.sources.items():
        own = _facts_by_node(project).get(("source", (source, table)), {})
        file = next((fact.file for fact in own.get(None, ())), "")
        package = (project.package(project.package_of(file)) or project.own).name
        relation = run.source_table(source, table)
        about = {
            "name": table,
            "source_name": source,
            "identifier": relation.identifier,
            "resource_type": "source",
            "package_name": package,
            "unique_id": f"source.{package}.{source}.{table}",
            "relation_name": str(relation),
            "schema": relation.schema,
            "columns": _columns(declared.columns, own),
        }
        if relation.database:
            about["database"] = relation.database
        yield Known("graph_sources_item", {**about, **_stated("graph_sources_item", own.get(None, ()))})


def _columns(described: Iterable[DescribedColumn], facts: _Facts) -> Mapping[str, Known]:
    return MappingProxyType({column.name: _column(column, facts.get(column.name, ())) for column in described})


def _column(column: DescribedColumn, facts: Iterable[StatedFact]) -> Known:
    about = {"name": column.name, "data_type": column.type, "quote": column.quoted or None}
    return Known("graph_nodes_item_columns_item", {**about, **_stated("graph_nodes_item_columns_item", facts)})


def _stated(name: str, facts: Iterable[StatedFact]) -> dict[str, Any]:
    """Description, group, tags and ``meta``; the latter two also stand in ``config``, where dbt puts them."""
    found = list(facts)
    about = {
        "tags": tuple(fact.value for fact in found if fact.fact == "tag"),
        "meta": MappingProxyType(dict(_meta(name, found))),
    }
    description = next((fact.value for fact in found if fact.fact == "description"), "")
    group = next((fact.value for fact in found if fact.fact == "group"), None)
    return {**about, "description": description, "group": group, "config": Known(f"{name}_config", about)}


def _meta(name: str, facts: Iterable[StatedFact]) -> Iterator[tuple[str, object]]:
    """The texts of ``meta``; of what could be JSON the type was not kept, so that its value is unknown."""
    for fact in facts:
        key = fact.fact.removeprefix("meta.")
        if key == fact.fact:
            continue
        try:
            json.loads(fact.value)
        except ValueError:
            yield key, fact.value
        else:
            yield key, Unknown(f"{name}_meta_{plain(key)}", call=True)
