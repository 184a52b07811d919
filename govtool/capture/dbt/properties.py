"""Reads the property files of dbt projects: YAML beside models, seeds and snapshots.

What is looked at is documented at https://docs.getdbt.com: "Source properties", "Model properties", "columns",
"contract", "Model versions".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from govtool.capture.dbt import files
from govtool.capture.dbt.stated import mappings, stated_facts, text, with_docs, written_name
from govtool.capture.sql.templates.properties import DescribedColumn, Description, Properties, SourceTable

MAX_VALUES = 1_000_000
"""Values in one property file, those counted that an alias of YAML repeats; one with more says nothing."""

SUFFIXES = (".yml", ".yaml")
_NODES = ("models", "seeds", "snapshots")
_WORDS = ("sources", "columns", "versions", "groups", *_NODES)
_NAME = re.compile(r"([^\W\d][\w$]*)(?:\.[^\W\d][\w$]*)*\Z")


class PropertyReader:
    """Reads property files, each of them once: projects may share folders."""

    def __init__(self, root: Path) -> None:
        """Begin with none; files are named from the root."""
        self._root = root
        self._read: dict[Path, Properties] = {}

    def read(self, folders: Iterable[files.Folder]) -> Properties:
        """Read all property files below these folders; of two descriptions of one thing the first counts."""
        folders = list(dict.fromkeys(folders))
        found = [self._file(file) for folder in folders for file in files.files(folder, *SUFFIXES)]
        sources: dict[tuple[str, str], SourceTable] = {}
        described: dict[str, Description] = {}
        contracts: set[str] = set()
        versions: dict[tuple[str, str], str] = {}
        for part in found:
            versions = {**part.versions, **versions}
            for key, source in part.sources.items():
                sources.setdefault(key, source)
            for name, columns in part.described.items():
                if name not in described:
                    described[name] = columns
                    contracts |= part.contracts & {name}
        facts = tuple(with_docs(dict.fromkeys(fact for part in found for fact in part.facts), folders))
        return Properties(sources, described, frozenset(contracts), versions, facts)

    def _file(self, file: Path) -> Properties:
        found = self._read.get(file)
        if found is None:
            content = files.text(file)
            data = files.yaml_mapping(content) if any(word in content for word in _WORDS) else {}
            found = self._read[file] = properties_in(data, self._name(file)) if data else Properties()
        return found

    def _name(self, file: Path) -> str:
        return (file.relative_to(self._root) if file.is_relative_to(self._root) else Path(file.name)).as_posix()


def properties_in(data: Mapping[str, Any], file: str = "") -> Properties:
    """Read one property file; parts that are not in dbt's form are skipped.

    Args:
        data: Its content.
        file: Its name in the facts that it states.
    """
    if files.size(data, MAX_VALUES) > MAX_VALUES:
        return Properties()
    sources: dict[tuple[str, str], SourceTable] = {}
    for source in mappings(data.get("sources")):
        for table in mappings(source.get("tables")):
            if text(source, "name") and text(table, "name"):
                found = SourceTable(
                    text(table, "identifier"), text(source, "schema"), text(source, "database"), _columns(table)
                )
                sources.setdefault((text(source, "name"), text(table, "name")), found)
    described: dict[str, Description] = {}
    contracts: set[str] = set()
    versions: dict[tuple[str, str], str] = {}
    for kind in _NODES:
        for node in mappings(data.get(kind)):
            name = text(node, "name")
            columns = _columns(node)
            for version, defined_in, own in _versions(node):
                versions.setdefault((name, version), defined_in)
                if version:
                    described.setdefault(defined_in, own or columns)
            if not name or not columns or name in described:
                continue
            described[name] = columns
            # Only a contract that was read whole tells all columns, and one list cannot be that of several versions.
            if kind == "models" and _is_enforced(node) and "versions" not in node and len(columns) == _written(node):
                contracts.add(name)
    described = {name: columns for name, columns in described.items() if columns}
    return Properties(sources, described, frozenset(contracts), versions, tuple(stated_facts(data, file)))


def _columns(node: Mapping[str, Any]) -> Description:
    """The columns that a node describes, without names that are slips or prose."""
    found: dict[str, DescribedColumn] = {}
    for column in mappings(node.get("columns")):
        name, quoted = written_name(column)
        if not quoted:
            plain = _NAME.match(name)  # ``address.zip`` describes a field of the column ``address``
            if plain is None:
                continue
            if plain.group(1) != name:
                found.setdefault(plain.group(1), DescribedColumn(plain.group(1)))
                continue
        if name:
            found[name] = DescribedColumn(name, quoted, text(column, "data_type") or None)
    return tuple(found.values())


def _written(node: Mapping[str, Any]) -> int:
    columns = node.get("columns")
    return len(columns) if isinstance(columns, list) else 0


def _is_enforced(node: Mapping[str, Any]) -> bool:
    config = node.get("config")
    for place in (config, node):
        contract = place.get("contract") if isinstance(place, dict) else None
        if isinstance(contract, dict) and contract.get("enforced") is True:
            return True
    return False


def _versions(node: Mapping[str, Any]) -> Iterator[tuple[str, str, Description]]:
    """Versions of a model, each with its file and the columns that it describes itself; then, as ``""``, the latest:
    ``latest_version``, else the greatest.
    """
    found: dict[str, tuple[str, Description]] = {}
    for version in mappings(node.get("versions")):
        number = str(version.get("v"))
        found[number] = (text(version, "defined_in") or f"{text(node, 'name')}_v{number}", _columns(version))
    for number, (file, columns) in found.items():
        yield number, file, columns
    latest = str(node.get("latest_version"))
    if found:
        greatest = max(found, key=lambda number: (number.isdecimal(), int(number) if number.isdecimal() else 0, number))
        yield "", *found.get(latest, found[greatest])
