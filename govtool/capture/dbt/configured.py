"""Facts of dbt nodes that no property file states: that they are there, tags of dbt_project.yml, ``config`` in SQL.

What is looked at is documented at https://docs.getdbt.com: "dbt_project.yml", "Model configurations", "tags", "meta",
"group". Tags add up over the folders of a node, ``meta`` is merged key by key, a group replaces that above it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from govtool.capture.dbt import files
from govtool.capture.dbt.stated import configured_facts
from govtool.capture.sql.templates.macros import ProjectNode
from govtool.capture.sql.templates.properties import StatedFact
from govtool.linear import last_end

_SUFFIXES = {"models": (".sql", ".py"), "seeds": (".csv",)}
_KINDS = {"models": "model", "seeds": "seed"}
_MARKED = ("+tags", "+meta", "+group")
_SNAPSHOT = re.compile(r"\{%-?\s*snapshot\s+(\w+)")
_CALL = re.compile(r"\{\{-?\s*config\s*\((.*?)\)\s*-?\}\}", re.DOTALL)
_CALL_END = re.compile(r"\)\s*-?\}\}")
_CONSTANTS = {"true": True, "false": False, "none": None}
_WANTED = ("tags", "meta", "group")
MAX_CALL = 20_000
"""Characters of a call of ``config`` that is read."""


def facts_of_project_file(
    settings: Mapping[str, Any], package: str, folders: Mapping[str, Sequence[files.Folder]], file: str
) -> Iterator[StatedFact]:
    """Yield the facts that dbt_project.yml gives to the nodes of a package.

    Args:
        settings: The content of dbt_project.yml.
        package: The package whose nodes these are: the project's own, or an installed one.
        folders: Its folders of ``models`` and ``seeds``.
        file: The name of dbt_project.yml in the facts.
    """
    for section, suffixes in _SUFFIXES.items():
        tree = settings.get(section)
        if not isinstance(tree, dict):
            continue
        for folder in folders.get(section, ()):
            for node in files.files(folder, *suffixes):
                way = (package, *node.relative_to(folder.path).with_suffix("").parts)
                for fact, value in configured_facts(list(_along(tree, way))):
                    yield StatedFact(_KINDS[section], (node.stem,), None, fact, value, file)


def nodes_of_files(package: str, base: Path, folders: Mapping[str, Sequence[files.Folder]]) -> Iterator[ProjectNode]:
    """Yield the models, seeds and snapshots of a package, which need no property file.

    Args:
        package: Its name.
        base: Its folder.
        folders: Its folders of ``models``, ``seeds`` and ``snapshots``.
    """
    for section, suffixes in _SUFFIXES.items():
        for folder in folders.get(section, ()):
            for file in files.files(folder, *suffixes):
                yield ProjectNode(_KINDS[section], file.stem, package, *_place(file, folder.path, base))
    for folder in folders.get("snapshots", ()):
        for file in files.files(folder, ".sql"):
            for block in _SNAPSHOT.finditer(files.text(file)):
                yield ProjectNode("snapshot", block[1], package, *_place(file, folder.path, base))


def _place(file: Path, folder: Path, base: Path) -> tuple[str, str]:
    return Path(os.path.relpath(folder, base)).as_posix(), file.relative_to(folder).as_posix()


def existence_of(node: ProjectNode, base: Path, root: Path) -> StatedFact:
    """That a node is there; its file is named from the root.

    Args:
        node: The node.
        base: The folder of its package.
        root: What files are named from.
    """
    file = Path(os.path.normpath(base / node.folder / node.path))
    return StatedFact(node.kind, (node.name,), None, "", node.package, _named(file, root))


def _named(file: Path, root: Path) -> str:
    return (file.relative_to(root) if file.is_relative_to(root) else Path(file.name)).as_posix()


def facts_of_calls(folders: Iterable[files.Folder], root: Path) -> Iterator[StatedFact]:
    """Yield the facts in calls of ``config`` in the models of folders; files are named from the root."""
    for node in (node for folder in folders for node in files.files(folder, ".sql")):
        for fact, value in configured_facts(list(_calls(files.text(node)))):
            yield StatedFact("model", (node.stem,), None, fact, value, _named(node, root))


def by_precedence(levels: Iterable[Iterable[StatedFact]]) -> Iterator[StatedFact]:
    """Yield the facts of several levels, the most specific first: it hides the same of the others; tags add up."""
    seen: set[tuple[object, ...]] = set()
    for level in levels:
        found = [fact for fact in dict.fromkeys(level) if _key(fact) not in seen]
        yield from found
        seen.update(map(_key, found))


def _key(fact: StatedFact) -> tuple[object, ...]:
    return fact.kind, fact.name, fact.column, fact.fact, fact.value if fact.fact == "tag" else ""


def _along(tree: Mapping[str, Any], way: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The settings on the way to a node, the outermost first."""
    at: object = tree
    for name in (None, *way):
        at = at if name is None else at.get(name) if isinstance(at, dict) else None
        if not isinstance(at, dict):
            return
        found = {key.removeprefix("+"): at[key] for key in _MARKED if key in at}
        if isinstance(at.get("tags"), (str, list)):  # without the +, unless it is a folder
            found.setdefault("tags", at["tags"])
        yield found


def _calls(source: str) -> Iterator[dict[str, Any]]:
    """The literal settings of each call of ``config``; settings that only a run of the template knows are skipped."""
    for call in _CALL.finditer(source, 0, last_end(_CALL_END, source)) if "config" in source else ():
        body = call[1]
        if len(body) > MAX_CALL or not any(name in body for name in _WANTED):
            continue
        try:
            found = ast.parse(f"f({body})", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        given = found.keywords if isinstance(found, ast.Call) else []
        literals = ((each.arg, _literal(each.value)) for each in given if each.arg in _WANTED)
        yield {name: value for name, value in literals if name is not None and value is not None}


def _literal(node: ast.expr) -> object:
    """The value of a literal, with the constants of Jinja; None of anything else."""
    for each in ast.walk(node):
        for name, inner in ast.iter_fields(each):
            items = inner if isinstance(inner, list) else [inner]
            known = [_constant(item) for item in items]
            setattr(each, name, known if isinstance(inner, list) else known[0])
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value


def _constant(item: object) -> object:
    known = isinstance(item, ast.Name) and item.id in _CONSTANTS
    return ast.Constant(_CONSTANTS[item.id]) if known and isinstance(item, ast.Name) else item
