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
from govtool.capture.sql.templates.properties import DescribedColumn, Description, Properties, SourceTable

MAX_VALUES = 1_000_000
"""Values in one property file, those counted that an alias of YAML repeats; one with more says nothing."""

SUFFIXES = (".yml", ".yaml")
_NODES = ("models", "seeds", "snapshots")
_NAME = re.compile(r"([^\W\d][\w$]*)(?:\.[^\W\d][\w$]*)*\Z")
_QUOTED = re.compile(r"""(["`'])(.+)\1\Z""")


class PropertyReader:
    """Reads property files, each of them once: projects may share folders."""

    def __init__(self) -> None:
        """Begin with none."""
        self._read: dict[Path, Properties] = {}

    def read(self, folders: Iterable[Path]) -> Properties:
        """Read all property files below these folders; of two descriptions of one thing the first counts."""
        found = [self._file(file) for folder in dict.fromkeys(folders) for file in files.files(folder, *SUFFIXES)]
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
        return Properties(sources, described, frozenset(contracts), versions)

    def _file(self, file: Path) -> Properties:
        found = self._read.get(file)
        if found is None:
            text = files.text(file)
            has_properties = any(word in text for word in ("sources", "columns", "versions"))
            found = self._read[file] = properties_in(files.yaml_mapping(text)) if has_properties else Properties()
        return found


def properties_in(data: Mapping[str, Any]) -> Properties:
    """Read one property file; what is not in dbt's form is passed over."""
    if files.size(data, MAX_VALUES) > MAX_VALUES:
        return Properties()
    sources: dict[tuple[str, str], SourceTable] = {}
    for source in _mappings(data.get("sources")):
        for table in _mappings(source.get("tables")):
            if _text(source, "name") and _text(table, "name"):
                found = SourceTable(
                    _text(table, "identifier"), _text(source, "schema"), _text(source, "database"), _columns(table)
                )
                sources.setdefault((_text(source, "name"), _text(table, "name")), found)
    described: dict[str, Description] = {}
    contracts: set[str] = set()
    versions: dict[tuple[str, str], str] = {}
    for kind in _NODES:
        for node in _mappings(data.get(kind)):
            name = _text(node, "name")
            columns = _columns(node)
            for version, file, own in _versions(node):
                versions.setdefault((name, version), file)
                if version:
                    described.setdefault(file, own or columns)
            if not name or not columns or name in described:
                continue
            described[name] = columns
            if kind == "models" and _is_enforced(node) and "versions" not in node and len(columns) == _written(node):
                contracts.add(name)
    described = {name: columns for name, columns in described.items() if columns}
    return Properties(sources, described, frozenset(contracts), versions)


def _columns(node: Mapping[str, Any]) -> Description:
    """The columns that a node describes: those whose names can be told from slips and prose."""
    found: dict[str, DescribedColumn] = {}
    for column in _mappings(node.get("columns")):
        name = _text(column, "name")
        bare = _QUOTED.match(name)
        if bare is not None or column.get("quote") is True:
            name, quoted = bare.group(2) if bare is not None else name, True
        else:
            plain = _NAME.match(name)  # ``address.zip`` describes a field of the column ``address``
            if plain is None:
                continue
            if plain.group(1) != name:
                found.setdefault(plain.group(1), DescribedColumn(plain.group(1)))
                continue
            quoted = False
        if name:
            found[name] = DescribedColumn(name, quoted, _text(column, "data_type") or None)
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
    for version in _mappings(node.get("versions")):
        number = str(version.get("v"))
        found[number] = (_text(version, "defined_in") or f"{_text(node, 'name')}_v{number}", _columns(version))
    for number, (file, columns) in found.items():
        yield number, file, columns
    latest = str(node.get("latest_version"))
    if found:
        greatest = max(found, key=lambda number: (number.isdecimal(), int(number) if number.isdecimal() else 0, number))
        yield "", *found.get(latest, found[greatest])


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def _text(mapping: Mapping[str, Any], key: str) -> str:
    """A text without the space around it; empty where there is none."""
    value = mapping.get(key)
    return value.strip() if isinstance(value, str) else ""
