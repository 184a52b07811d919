"""dbt projects as programs: a model is a statement over its compiled SQL, in the order of their dependencies.

Seeds are read from the project's files. Ephemeral models are within those that use them, as dbt compiles them. An
incremental model has state: what the last run left, to which the new rows are added, in place of those of its
``unique_key``. Snapshots, Python models and sources are inputs: their tables are given. So is any model that is given.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.workflow_runs.programs.dbt_incremental import IncrementalModel, NotCovered, incremental_model
from govtool.app.workflow_runs.programs.sql import ProgramStatement, SqlProgram
from govtool.errors import UsageError
from govtool.given_files import absolute

if TYPE_CHECKING:
    from govtool.capture.dbt.artifacts import DbtArtifacts, DbtNode

_MATERIALIZED = ("table", "view", "incremental")


def is_project(place: Path) -> bool:
    """Return whether a folder is a dbt project, or its ``target`` folder."""
    return any((folder / "manifest.json").is_file() for folder in (place, place / "target"))


def project_folder(place: Path) -> Path:
    """The folder of a dbt project that is given as itself, or as its ``target``."""
    folder = absolute(place)
    return folder.parent if (place / "manifest.json").is_file() else folder


def dbt_program(
    place: Path, state: Mapping[str, tuple[str, ...]], dialect: str = "", given: Iterable[str] = ()
) -> SqlProgram:
    """The program of a dbt project.

    Args:
        place: Its folder, or its ``target`` folder.
        state: Incremental models that an earlier run has left rows of, with their columns.
        dialect: What the models are written in; empty: as the manifest's adapter says.
        given: Names of inputs; models that are called so are not run.

    Raises:
        UsageError: There is no manifest (``usage.dbt``), or a model cannot be run here (``usage.dbt-model``).
    """
    from govtool.capture.dbt.artifacts import read_project

    project = read_project(place, dialect)
    target = place if (place / "manifest.json").is_file() else place / "target"
    settings = _settings(target / "manifest.json")
    return _Project(project, settings, project_folder(place), state, given).program()


def incremental_state(file: Path) -> dict[str, tuple[str, ...]]:
    """The relations that the last run left, with their columns.

    Raises:
        UsageError: One is gone (``usage.state``).
    """
    import pyarrow.parquet as pq

    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name, path in found.items():
        if not Path(path).exists():
            raise UsageError(f"the state of {name} is gone", code="usage.state", location=path)
    return {name: tuple(pq.read_schema(path).names) for name, path in found.items()}


@dataclass(frozen=True, slots=True)
class _Settings:
    """dbt's adapter, and the settings of each node."""

    adapter: str
    configs: Mapping[str, Mapping[str, Any]]


def _settings(manifest: Path) -> _Settings:
    body = json.loads(manifest.read_bytes())
    found = {name: each.get("config") for name, each in body.get("nodes", {}).items() if isinstance(each, dict)}
    metadata = body.get("metadata")
    adapter = metadata.get("adapter_type") if isinstance(metadata, dict) else None
    configs = {name: config for name, config in found.items() if isinstance(config, dict)}
    return _Settings(adapter if isinstance(adapter, str) else "", configs)


class _Project:
    def __init__(
        self,
        project: DbtArtifacts,
        settings: _Settings,
        root: Path,
        state: Mapping[str, tuple[str, ...]],
        given: Iterable[str],
    ) -> None:
        self._project = project
        self._adapter = settings.adapter
        self._configs = settings.configs
        self._root = root
        self._state = state
        self._given = {name.lower() for name in given}
        self._short = _short_names(project)

    def program(self) -> SqlProgram:
        """The program."""
        nodes = [each for each in self._ordered() if each.kind in ("model", "snapshot")]
        run = [each for each in nodes if self._is_run(each)]
        others = [each for each in nodes if not self._is_run(each) and each.materialized != "ephemeral"]
        seeds = {self._short[each.id]: file for each in self._seeds() if (file := self._seed_file(each)) is not None}
        return SqlProgram(
            self._project.name or "dbt",
            tuple(self._statement(each) for each in run),
            self._project.dialect or "spark",
            seeds,
            {_plain(each): self._short[each.id] for each in self._project.nodes.values() if each.id in self._short},
            tuple(self._short[each.id] for each in run if each.materialized == "incremental"),
            (*(f"{each.id} is not run: {self._why(each)}" for each in others), *self._hooks(run)),
        )

    def _seeds(self) -> Iterator[DbtNode]:
        """Seeds.

        Raises:
            UsageError: The types of a seed's columns are configured: they are not those of its file.
        """
        for each in self._project.nodes.values():
            if each.kind == "seed" and not self._configs.get(each.id, {}).get("column_types"):
                yield each

    def _seed_file(self, seed: DbtNode) -> Path | None:
        """The file of a seed; None where it is not there.

        Raises:
            UsageError: It lies outside of the project, by its path or by a link: a manifest may name any file.
        """
        file = self._root / seed.file
        try:
            if not file.resolve().is_relative_to(self._root.resolve()):
                raise self._refused(seed, "its file lies outside of the project", "put the file into the project")
            return file if file.suffix.lower() == ".csv" and file.is_file() else None
        except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
            return None

    def _is_run(self, node: DbtNode) -> bool:
        is_kind = node.kind == "model" and node.language == "sql" and node.materialized in _MATERIALIZED
        return is_kind and self._short[node.id] not in self._given

    def _hooks(self, nodes: Iterable[DbtNode]) -> Iterator[str]:
        for each in nodes:
            config = self._configs.get(each.id, {})
            if named := [name for name in ("pre-hook", "post-hook") if config.get(name)]:
                yield f"{each.id}: its {' and '.join(named)} is not run"

    def _why(self, node: DbtNode) -> str:
        name = self._short[node.id]
        return "its rows are given" if name in self._given else f"it is an input, {name}.csv or {name}.parquet"

    def _ordered(self) -> list[DbtNode]:
        """All nodes, each behind those that it depends on."""
        from graphlib import CycleError, TopologicalSorter

        nodes = self._project.nodes
        sorter = TopologicalSorter({name: [d for d in each.depends_on if d in nodes] for name, each in nodes.items()})
        try:
            return [nodes[name] for name in sorter.static_order()]
        except CycleError as error:
            raise UsageError(f"models depend on one another: {error.args[1]}", code="usage.dbt") from error

    def _statement(self, node: DbtNode) -> ProgramStatement:
        if not node.sql:
            raise self._refused(node, "it is not compiled", "dbt compile")
        name, text = self._short[node.id], node.sql.rstrip().removesuffix(";")
        if self._is_continued(node):
            return self._continued(node, text)
        if _plain(node) in _tables(text, self._project.dialect):
            raise self._refused(
                node, "it reads itself, and there is no earlier run of it", "dbt compile --full-refresh for the first"
            )
        return ProgramStatement(
            "view" if node.materialized == "view" else "table", name, text, (), node.file, replaces=True
        )

    def _is_continued(self, node: DbtNode) -> bool:
        """Whether a model adds to what the last run left: ``full_refresh: true`` makes it anew each time."""
        is_anew = self._configs.get(node.id, {}).get("full_refresh") is True
        return node.materialized == "incremental" and self._short[node.id] in self._state and not is_anew

    def _continued(self, node: DbtNode, text: str) -> ProgramStatement:
        """The statement of an incremental model that has rows: what it was, and the new rows."""
        from sqlglot import exp

        name, model = self._short[node.id], self._model(node)
        names = self._state[name]
        columns = ", ".join(exp.column(each, quoted=True).sql(self._project.dialect) for each in names)
        query = model.query(name, text, columns)
        new_rows = text if model.is_fixed else ""
        return ProgramStatement("table", name, query, (), node.file, replaces=True, new_rows=new_rows)

    def _model(self, node: DbtNode) -> IncrementalModel:
        try:
            return incremental_model(self._configs.get(node.id, {}), self._adapter, self._project.dialect)
        except NotCovered as error:
            raise self._refused(node, str(error), error.hint) from error

    def _refused(self, node: DbtNode, why: str, hint: str) -> UsageError:
        return UsageError(f"{node.id} cannot be run: {why}", code="usage.dbt-model", location=node.file, hint=hint)


def _tables(text: str, dialect: str) -> set[str]:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        found = parse_one(text, dialect=dialect or "spark").find_all(exp.Table)
        return {".".join(part.name for part in each.parts).lower() for each in found}
    except SqlglotError:
        return set()  # refused with its place when it runs


def _plain(node: DbtNode) -> str:
    """The name of a relation as queries write it, without quotes."""
    from govtool.names import split_name

    return ".".join(split_name(node.relation)).lower()


def _short_names(project: DbtArtifacts) -> dict[str, str]:
    """The name of each relation without its schema, or with it where two have one name."""
    from govtool.names import split_name

    relations = {name: each for name, each in project.nodes.items() if each.kind != "exposure"}
    parts = {name: [part.lower() for part in split_name(each.relation)] for name, each in relations.items()}
    last = Counter(each[-1] for each in parts.values() if each)
    return {name: each[-1] if last[each[-1]] == 1 else "_".join(each[-2:]) for name, each in parts.items() if each}
