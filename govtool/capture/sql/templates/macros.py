"""Resolution of macro names: macros by package, as dbt finds them.

A project's files hold its macros (``Package``); ``DbtProject`` puts a dbt project and its packages together.
``MacroLibrary`` answers what a name means in a file: dbt looks in the package of the file, then in the project itself,
then for a package of that name (docs.getdbt.com, "Macro properties" and "dispatch").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from govtool.capture.sql.templates.properties import Properties
from govtool.linear import last_end

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_MACRO = re.compile(r"\{%[-+]?\s*macro\s+(?P<name>\w+)\s*\(.*?\{%[-+]?\s*endmacro\s*[-+]?%\}", re.DOTALL)
_MACRO_END = re.compile(r"\{%[-+]?\s*endmacro\s*[-+]?%\}")

PARENTS: Mapping[str, tuple[str, ...]] = {
    "redshift": ("postgres",),
    "materialize": ("postgres",),
    "risingwave": ("postgres",),
    "databricks": ("spark",),
    "fabric": ("sqlserver",),
    "tsql": ("sqlserver",),
}
"""Adapters whose macros an adapter has, too, by dialect; dbt-fabric and dbt-synapse stand on dbt-sqlserver."""

_ADAPTERS: Mapping[str, str] = {"tsql": "sqlserver", "spark2": "spark", "presto": "trino", "dune": "trino"}
"""Adapters of dbt that are not called as the dialect is."""

ROOT_PACKAGE = ""
"""Stands for the package of the project itself."""


def adapter_of(dialect: str) -> str:
    """The name that dbt's adapter for a dialect has (``target.type``); empty for no dialect."""
    return _ADAPTERS.get(dialect, dialect)


def prefixes(dialect: str) -> tuple[str, ...]:
    """Return the prefixes of the implementations of a dispatched macro, the nearest first."""
    return tuple(dict.fromkeys(name for name in (adapter_of(dialect), *PARENTS.get(dialect, ()), "default") if name))


def macros_in(text: str) -> dict[str, str]:
    """The macros that a text defines, each with its source; of two of one name the first."""
    if "macro" not in text:
        return {}
    found: dict[str, str] = {}
    commented = text.rfind("#}") + 2 if "#}" in text else 0
    text = _COMMENT.sub(" ", text[:commented]) + text[commented:]
    for match in _MACRO.finditer(text, 0, last_end(_MACRO_END, text)):
        found.setdefault(match.group("name"), match.group())
    return found


@dataclass(frozen=True, slots=True)
class Package:
    """The files of one dbt project or package."""

    name: str
    macros: Mapping[str, str] = field(default_factory=dict)
    """Name to source."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """``vars`` of its dbt_project.yml."""


@dataclass(frozen=True, slots=True)
class ProjectNode:
    """A file of a project or package that makes a relation."""

    kind: str
    """``model``, ``seed`` or ``snapshot``."""
    name: str
    """The relation as ``ref`` calls it: the file's name; that of a snapshot's block."""
    package: str
    folder: str
    """The folder of models, seeds or snapshots, from the package's own, with forward slashes."""
    path: str
    """The file, from that folder."""


@dataclass(frozen=True, slots=True, eq=False)
class DbtProject:
    """A dbt project and the packages that are on disk."""

    folder: str
    """Its folder below the root of what is read, with forward slashes; empty: all that is read belongs to it."""
    own: Package
    packages: Mapping[str, Package] = field(default_factory=dict)
    """By name, the project itself not among them."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Folders below the root that hold a package: which one."""
    missing: frozenset[str] = frozenset()
    """Packages that packages.yml, dependencies.yml or package-lock.yml name and that are not on disk."""
    dispatch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Search orders of ``dispatch:`` in dbt_project.yml by namespace."""
    seeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Seeds by name: the columns that their files begin with, as written."""
    models: tuple[str, ...] = ()
    """Folders below the root whose files are models, called as their file; an empty one: all that is read."""
    properties: Properties = field(default_factory=Properties)
    """Properties of sources, models, seeds and snapshots."""
    nodes: tuple[ProjectNode, ...] = ()
    """Its models, seeds and snapshots, and those of its packages."""
    renames: bool = False
    """Its ``dbt_project.yml`` gives models another schema, database or alias, which is not applied here."""
    hooks: str = ""
    """The SQL that its ``dbt_project.yml`` runs beside the models, at the lines of that file."""

    @property
    def digest(self) -> str:
        """The digest of all of it."""
        return _digest(*_digests(self))

    @property
    def rendering_digest(self) -> str:
        """The digest of what decides how statements are read; of what ``graph`` shows, if a macro may look at it."""
        packages = (self.own, *self.packages.values())
        is_seen = any("graph" in source for package in packages for source in package.macros.values())
        return self.digest if is_seen else _digests(self)[0]

    @property
    def graph_digest(self) -> str:
        """The digest of what templates see as ``graph``."""
        return _digests(self)[1]

    def package(self, name: str) -> Package | None:
        """A package by its name; ``ROOT_PACKAGE`` and the project's own name mean the project."""
        return self.own if name in (ROOT_PACKAGE, self.own.name) else self.packages.get(name)

    def is_model(self, file: str) -> bool:
        """Return whether a file is a model: a relation that other models ``ref`` by the name of the file."""
        return any(not folder or file.startswith(folder + "/") for folder in self.models)

    def package_of(self, file: str) -> str:
        """The package that a file belongs to."""
        found = [folder for folder in self.folders if file.startswith(folder + "/")]
        return self.folders[max(found, key=len)] if found else ROOT_PACKAGE


class MacroLibrary:
    """The macros of what is read: those of dbt projects, and for files of no project those of all scripts."""

    def __init__(self, texts: Iterable[str] = (), projects: Iterable[DbtProject] = ()) -> None:
        """Collect the macros of these texts; ``projects`` have theirs already."""
        self.projects = tuple(projects)
        loose: dict[str, str] = {}
        for text in texts:
            for name, source in macros_in(text).items():
                loose.setdefault(name, source)
        self.loose = DbtProject("", Package("", loose))

    def project_of(self, file: str) -> DbtProject:
        """The project of a file, the innermost; the one of all other files if it is in none."""
        found = [p for p in self.projects if not p.folder or file.startswith(p.folder + "/")]
        return max(found, key=lambda project: len(project.folder)) if found else self.loose


def find(project: DbtProject, name: str, package: str) -> tuple[str, str, str] | None:
    """Resolve an unqualified name in a file of ``package``: (package, name, source); None if it is no macro."""
    for candidate in dict.fromkeys((package, ROOT_PACKAGE)):
        owner = project.package(candidate)
        if owner is not None and name in owner.macros:
            return candidate, name, owner.macros[name]
    return None


def dispatched(
    project: DbtProject, name: str, namespace: str, package: str, dialect: str
) -> tuple[str, str, str] | None:
    """Resolve ``adapter.dispatch(name, namespace)`` in a file of ``package``; None if no package on disk has it.

    Packages are searched in the order of ``dispatch:`` for the namespace, else the project before the namespace's own
    package; in each the adapter's implementation goes before those of its parents, and they before the default.
    """
    if namespace:
        order = project.dispatch.get(namespace, (ROOT_PACKAGE, namespace))
    else:
        order = (package, ROOT_PACKAGE)
    for candidate in dict.fromkeys(order):
        owner = project.package(candidate)
        if owner is None:
            continue
        for prefix in prefixes(dialect):
            full = f"{prefix}__{name}"
            if full in owner.macros:
                return (ROOT_PACKAGE if owner is project.own else candidate), full, owner.macros[full]
    return None


@lru_cache(maxsize=8)
def _digests(project: DbtProject) -> tuple[str, str]:
    """The digests of what decides how statements are read, and of what ``graph`` shows: over all texts of a project."""
    stated = project.properties
    packages = (project.own, *(project.packages[name] for name in sorted(project.packages)))
    rendering = _digest(
        project.folder,
        sorted(project.missing),
        sorted(project.dispatch.items()),
        sorted(project.seeds.items()),
        sorted(project.folders.items()),
        sorted(project.models),
        sorted(stated.sources.items(), key=str),
        sorted(stated.described.items()),
        sorted(stated.contracts),
        sorted(stated.versions.items()),
        project.renames,
        project.hooks,
        *([package.name, sorted(package.macros.items()), repr(package.variables)] for package in packages),
    )
    return rendering, _digest(stated.facts, project.nodes)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
