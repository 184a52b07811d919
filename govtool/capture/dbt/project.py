"""Reads dbt projects as files: macros of the project and of the packages on disk, variables, seeds, properties.

Nothing is run: no ``dbt deps``, no ``dbt compile``. What is looked at is documented at https://docs.getdbt.com:
``dbt_project.yml`` (``model-paths``, ``macro-paths``, ``seed-paths``, ``packages-install-path``, ``dispatch``,
``vars``), ``packages.yml``, ``dependencies.yml`` and ``package-lock.yml`` (which packages there should be, and where
local ones are).
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from govtool.capture.dbt import files
from govtool.capture.dbt.configured import (
    by_precedence,
    existence_of,
    facts_of_calls,
    facts_of_project_file,
    nodes_of_files,
)
from govtool.capture.dbt.folders import PROJECT_FILE, folders_around, is_project, sorted_folders
from govtool.capture.dbt.hooks import hook_sql
from govtool.capture.dbt.properties import SUFFIXES, PropertyReader
from govtool.capture.sql.files import folder_out, link_out
from govtool.capture.sql.templates.macros import DbtProject, Package, ProjectNode, macros_in
from govtool.capture.sql.templates.properties import StatedFact
from govtool.model import Diagnostic

PACKAGE_FILES = ("packages.yml", "dependencies.yml", "package-lock.yml")

MAX_VARIABLES = 100_000
"""Values in ``vars``, those counted that an alias of YAML repeats."""
MAX_PACKAGES = 500
_NAME_SETTINGS = ("schema", "database", "alias")
"""Settings of models that decide what their relations are called."""
_NAME_KEYS = frozenset(f"+{name}" for name in _NAME_SETTINGS)
_NAMING_CALL = re.compile(rf"\bconfig\s*\((?:[^()]|\([^()]*\))*?\b(?:{'|'.join(_NAME_SETTINGS)})\s*=")
_MAX_HEADER = 1 << 20
_READ = (".sql", ".py", ".csv", ".yml", ".yaml", ".md")
"""Kinds of files that are read, or looked for."""


def read_projects(
    paths: Sequence[str | Path],
    root: Path,
    *,
    follow_links: bool = False,
    folders: Mapping[Path, Path] | None = None,
) -> tuple[DbtProject, ...]:
    """The dbt projects that hold what is read, and those below it.

    Args:
        paths: Files and folders that are read; ``-`` is none.
        root: What the folders of projects are relative to.
        follow_links: Follow links also where they lead out of a project and of what is read.
        folders: The ``project_folders`` of the paths, where they are known.

    Returns:
        The projects, in order of their folders. What cannot be read of them is as if it were not there.
    """
    found = sorted_folders(paths, folders)
    own = {folder: _package(folder, None if follow_links else top) for folder, top in found}
    installed = {place for read in own.values() for place in _install_places(read)}
    properties = PropertyReader(root.absolute())
    return tuple(
        _project(read, root.absolute(), properties)
        for folder, read in own.items()
        if installed.isdisjoint(folder.parents)
    )


def links_out(
    paths: Sequence[str | Path], root: Path, folders: Mapping[Path, Path] | None = None
) -> Iterator[Diagnostic]:
    """Yield a note for each link that leads out of a project and that reading it would follow, and for each folder
    outside of its checkout that settings name. ``folders`` are the ``project_folders`` of the paths, where they are
    known.
    """
    noted: set[str] = set()
    for folder, top in sorted_folders(paths, folders):
        own = _settings(folder, top)
        reads = (own, *(_settings(place, own_top) for place, own_top in _package_places(own)[0].items()))
        looked = [folder / name for name in (PROJECT_FILE, *PACKAGE_FILES)]
        looked += [entry for place in _install_places(own) for entry in (place, *_subfolders(place))]
        for read in reads:
            looked += [place for path in _places(read) for place in (path, *_files_below(path))]
        for path in looked:
            if os.path.islink(path) and os.path.exists(path) and files.leaves(path, own.top):  # noqa: PTH110, PTH114
                name = _shown(path, root)
                if name not in noted:
                    noted.add(name)
                    yield link_out(name)
        for read in reads:
            for file, place in _named_out(read, own):
                name = f"{_shown(file, root)} {place}"
                if name not in noted:
                    noted.add(name)
                    yield folder_out(_shown(file, root), os.path.relpath(place, read.folder))


def unread_settings(
    paths: Sequence[str | Path], root: Path, folders: Mapping[Path, Path] | None = None
) -> Iterator[Diagnostic]:
    """Yield a note for each file of settings or properties that is no YAML: what it states is not known. ``folders``
    are the ``project_folders`` of the paths, where they are known.
    """
    for folder, top in sorted_folders(paths, folders):
        own = _settings(folder, top)
        found = [folder / name for name in (PROJECT_FILE, *PACKAGE_FILES)]
        found += [file for place in _described(own) for file in files.files(place, *SUFFIXES)]
        for file in dict.fromkeys(found):
            problem = files.yaml_problem(_text(file, top))
            if problem:
                yield Diagnostic("unreadable", "warning", f"is no YAML ({problem})", _shown(file, root))


def _shown(path: Path, root: Path) -> str:
    """The name of a path in notes, relative to the root where it is below it."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return name.encode("utf-8", "backslashreplace").decode()


def _named_out(read: _ProjectFiles, own: _ProjectFiles) -> Iterator[tuple[Path, Path]]:
    """Files of settings, each with a folder that it names and that is not read, as it is outside of the checkout."""
    places = (*_places(read), *(_install_places(own) if read is own else ()))
    named = [(read.folder / PROJECT_FILE, place) for place in places]
    for name in PACKAGE_FILES:
        for entry in _declared_in(read.folder / name, read.top):
            local = _local_place(read.folder, entry)
            named += [(read.folder / name, local)] if local is not None else []
    for file, place in named:
        is_there = os.path.isdir(place)  # noqa: PTH112 - ``Path.is_dir`` raises without rights
        if is_there and not place.is_relative_to(read.folder) and not files.may_name(place, own.top):
            yield file, place


def _places(read: _ProjectFiles) -> list[Path]:
    """The folders of a project whose files are read."""
    folders = (_macro_folders(read), *_node_folders(read).values())
    return [folder.path for of_kind in folders for folder in of_kind]


def _files_below(folder: Path) -> Iterator[Path]:
    """The files at any depth of a folder, of the kinds that are read."""
    if os.path.islink(folder):  # noqa: PTH114 - ``Path.is_symlink`` raises for names that are too long
        return
    for place, folders, names in itertools.islice(os.walk(folder), files.MAX_FOLDERS):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(names) if name.lower().endswith(_READ))


def model_folders(paths: Iterable[str | Path], *, follow_links: bool = False) -> Iterator[files.Folder]:
    """Yield the folders of models of the projects that hold some files or folders, and of their packages on disk."""
    for folder in dict.fromkeys(folder for path in paths for folder in folders_around(path)):
        own = _package(folder, None if follow_links else folder.resolve())
        for read in (own, *_packages(own)[0]):
            yield from _node_folders(read)["models"]


@dataclass(slots=True)
class _ProjectFiles:
    """One project or package: its package, and settings that count only in the root project."""

    package: Package
    settings: Mapping[str, Any]
    folder: Path
    top: Path | None
    """The folder that links do not leave; None: they lead anywhere."""

    def at(self, path: Path) -> files.Folder:
        """One of its folders. What its settings name elsewhere in its checkout is the top of its own links; outside of
        that, nothing is read.
        """
        elsewhere = not path.is_relative_to(self.folder.absolute()) and files.leaves(path, self.top)
        named = elsewhere and files.may_name(path, self.top)
        return files.Folder(path, Path(os.path.realpath(path)) if named else self.top)


def _project(own: _ProjectFiles, root: Path, properties: PropertyReader) -> DbtProject:
    installed, missing = _packages(own)
    packages = {read.package.name: read.package for read in installed}
    seeds: dict[str, tuple[str, ...]] = {}
    described = properties.read(_described(own))
    for read in (*installed, own):
        seeds.update(_seeds(read))
    for read in installed:
        described = described.filled(properties.read(_described(read)))
    nodes = {id(read): _nodes(read) for read in (own, *installed)}
    described = replace(described, facts=tuple(_all_facts(own, installed, nodes, described.facts, root)))
    relative = _relative(own.folder, root)
    places = {_relative(read.folder, root): read.package.name for read in installed}
    return DbtProject(
        "" if relative is None else relative,
        own.package,
        packages,
        {place: name for place, name in sorted(places.items(), key=str) if place},
        frozenset(missing - {*packages, own.package.name}),
        _dispatch(own.settings, own.package.name),
        seeds,
        tuple(dict.fromkeys(place for read in (own, *installed) for place in _model_folder_names(read, root))),
        described,
        tuple(node for read in (own, *installed) for node in nodes[id(read)]),
        _sets_relation_names(own.settings.get("models")),
        hook_sql(own.settings, _text(own.folder / PROJECT_FILE, own.top)),
    )


def configures_name(text: str) -> bool:
    """Return whether the file of a model states where it is in the warehouse: ``config(alias=…)``."""
    return _NAMING_CALL.search(text) is not None


def _sets_relation_names(tree: object) -> bool:
    """Return whether settings of models, at any depth of folders, state where these are in the warehouse."""
    pending = [tree]
    for _ in range(MAX_VARIABLES):
        if not pending:
            break
        at = pending.pop()
        if isinstance(at, dict):
            if not _NAME_KEYS.isdisjoint(at):
                return True
            pending.extend(at.values())
    return False


def _relative(folder: Path, root: Path) -> str | None:
    """A folder below the root; None where it is not: the root itself or above it."""
    try:
        relative = folder.relative_to(root).as_posix()
    except ValueError:
        return None
    return None if relative == "." else relative


def _settings(folder: Path, top: Path | None) -> _ProjectFiles:
    """A project or package without its macros."""
    return _ProjectFiles(Package("", {}), files.yaml_mapping(_text(folder / PROJECT_FILE, top)), folder, top)


def _macro_folders(read: _ProjectFiles) -> list[files.Folder]:
    paths = files.texts(read.settings.get("macro-paths"), ("macros",))
    return [read.at(Path(os.path.normpath(read.folder.absolute() / path))) for path in paths]


def _package(folder: Path, top: Path | None) -> _ProjectFiles:
    read = _settings(folder, top)
    settings = read.settings
    macros: dict[str, str] = {}
    for place in _macro_folders(read):
        for file in files.files(place, ".sql"):
            for name, source in macros_in(files.text(file)).items():
                macros.setdefault(name, source)
    variables = settings.get("vars")
    named = settings.get("name")
    package = Package(
        named if isinstance(named, str) and named else folder.name,
        macros,
        variables if isinstance(variables, dict) and files.size(variables, MAX_VARIABLES) <= MAX_VARIABLES else {},
    )
    return replace(read, package=package)


def _text(file: Path, top: Path | None) -> str:
    return "" if files.leaves(file, top) else files.text(file)


def _packages(own: _ProjectFiles) -> tuple[list[_ProjectFiles], set[str]]:
    """The packages on disk, and the names of those that are declared."""
    found: dict[str, _ProjectFiles] = {}
    places, declared = _package_places(own)
    for place, top in places.items():
        read = _package(place, top)
        found.setdefault(read.package.name, read)
    return list(found.values()), declared


def _package_places(own: _ProjectFiles) -> tuple[dict[Path, Path | None], set[str]]:
    """The folders of the packages on disk, with the folder that links do not leave, and the names of those declared."""
    found: dict[Path, Path | None] = {}
    declared: set[str] = set()
    places: list[Path] = []
    for place in _install_places(own):
        top = own.at(place).top
        places += [folder for folder in _subfolders(place) if not files.leaves(folder, top)]
    waiting = [own.folder]
    seen: set[Path] = set()
    while waiting and len(seen) < MAX_PACKAGES:
        folder = waiting.pop(0)
        if folder in seen:
            continue
        seen.add(folder)
        for entry in _declared(folder, own.top if folder == own.folder else None):
            local = _local_place(folder, entry)
            if local is None:
                declared.update(_name(entry))
            elif is_project(local) and files.may_name(local, own.top):
                places.append(local)
                waiting.append(local)
    for place in dict.fromkeys(places[:MAX_PACKAGES]):
        if place != own.folder and is_project(place):
            found[place] = own.top if not files.leaves(place, own.top) else Path(os.path.realpath(place))
    return found, declared


def _local_place(folder: Path, entry: Mapping[str, Any]) -> Path | None:
    """The folder of a package that is declared as a local one."""
    local = entry.get("local")
    return Path(os.path.normpath(folder / local)) if isinstance(local, str) else None


def _install_places(read: _ProjectFiles) -> list[Path]:
    """Return the folders of a project's installed packages."""
    paths = files.texts(read.settings.get("packages-install-path"), ("dbt_packages", "dbt_modules"))
    return [Path(os.path.normpath(read.folder / path)) for path in paths]


def _declared(folder: Path, top: Path | None) -> Iterator[Mapping[str, Any]]:
    for file in PACKAGE_FILES:
        yield from _declared_in(folder / file, top)


def _declared_in(file: Path, top: Path | None) -> Iterator[Mapping[str, Any]]:
    entries = files.yaml_mapping(_text(file, top)).get("packages")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield entry


def _name(entry: Mapping[str, Any]) -> list[str]:
    """The name of a declared package: that of the lock file, else the last part of the hub's or of the repository's."""
    named = entry.get("name")
    if isinstance(named, str) and named:
        return [named]
    for key in ("package", "git", "tarball", "private"):
        place = entry.get(key)
        if isinstance(place, str) and place:
            last = place.rstrip("/").rpartition("/")[2].removesuffix(".git")
            return [last, last.replace("-", "_")] if key != "package" else [last]
    return []


def _dispatch(settings: Mapping[str, Any], own: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    entries = settings.get("dispatch")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("macro_namespace"), str):
            order = files.texts(entry.get("search_order"), ())
            if order:
                found[entry["macro_namespace"]] = tuple(order)
    return found


def _model_paths(read: _ProjectFiles) -> list[str]:
    return files.texts(read.settings.get("model-paths") or read.settings.get("source-paths"), ("models",))


def _seed_paths(read: _ProjectFiles) -> list[str]:
    return files.texts(read.settings.get("seed-paths") or read.settings.get("data-paths"), ("seeds", "data"))


def _snapshot_paths(read: _ProjectFiles) -> list[str]:
    return files.texts(read.settings.get("snapshot-paths"), ("snapshots",))


def _described(read: _ProjectFiles) -> Iterator[files.Folder]:
    """Folders with property files."""
    for folders in _node_folders(read).values():
        yield from folders


def _all_facts(
    own: _ProjectFiles,
    installed: Sequence[_ProjectFiles],
    nodes: Mapping[int, Sequence[ProjectNode]],
    described: Iterable[StatedFact],
    root: Path,
) -> Iterator[StatedFact]:
    """Facts of files of nodes, of property files and of dbt_project.yml, as dbt lets one hide the other."""
    folders = {id(read): _node_folders(read) for read in (own, *installed)}
    there = (_existing(nodes[id(read)], read, root) for read in (own, *installed))
    calls = (fact for found in folders.values() for fact in facts_of_calls(found["models"], root))
    of_files = (
        [
            fact
            for read in readers
            for fact in facts_of_project_file(
                at.settings, read.package.name, folders[id(read)], _relative(at.folder / PROJECT_FILE, root) or ""
            )
        ]
        for at, readers in ((own, (own, *installed)), *((read, (read,)) for read in installed))
    )
    yield from by_precedence((calls, described, *of_files, *there))


def _existing(nodes: Iterable[ProjectNode], read: _ProjectFiles, root: Path) -> list[StatedFact]:
    return [existence_of(node, read.folder.absolute(), root) for node in nodes]


def _nodes(read: _ProjectFiles) -> list[ProjectNode]:
    """Its models, seeds and snapshots."""
    return list(nodes_of_files(read.package.name, read.folder.absolute(), _node_folders(read)))


def _node_folders(read: _ProjectFiles) -> dict[str, list[files.Folder]]:
    base = read.folder.absolute()
    paths = {"models": _model_paths(read), "seeds": _seed_paths(read), "snapshots": _snapshot_paths(read)}
    return {kind: [read.at(Path(os.path.normpath(base / path))) for path in named] for kind, named in paths.items()}


def _model_folder_names(read: _ProjectFiles, root: Path) -> Iterator[str]:
    """Folders of models, relative to the root; empty where the root is one or lies in one."""
    for path in _model_paths(read):
        folder = Path(os.path.normpath(read.folder.absolute() / path))
        if root.is_relative_to(folder):
            yield ""
        elif (relative := _relative(folder, root)) is not None:
            yield relative


def _seeds(read: _ProjectFiles) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for folder in _node_folders(read)["seeds"]:
        for file in files.files(folder, ".csv"):
            header = _header(file)
            if header:
                found.setdefault(file.stem, header)
    return found


def _header(file: Path) -> tuple[str, ...]:
    """The columns that a CSV file begins with; empty where that is no header."""
    try:
        if not file.is_file():  # a pipe would never end
            return ()
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as opened:
            line = opened.readline(_MAX_HEADER)
        row = next(csv.reader([line]), [])
    except (OSError, csv.Error):
        return ()
    names = tuple(name.strip() for name in row)
    return names if names and all(names) and len(set(names)) == len(names) else ()


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return []
