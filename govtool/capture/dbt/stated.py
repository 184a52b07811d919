"""Facts in dbt's property files: descriptions, tags, tests, owners and ``meta`` of nodes and their columns.

What is looked at is documented at https://docs.getdbt.com: "Model properties", "Source properties", "data_tests",
"groups", "meta". A test is named with what it relates to; its other arguments are left out, as they may be values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from govtool.capture.dbt import files
from govtool.capture.dbt.artifacts import fact_text, owner_texts
from govtool.capture.sql.templates.properties import DescribedColumn, StatedFact
from govtool.linear import last_end

_KINDS = {"models": "model", "seeds": "seed", "snapshots": "snapshot"}
_QUOTED = re.compile(r"""(["`'])(.+)\1\Z""")
_DOC = re.compile(r"""\{\{\s*doc\(\s*(?:["'][^"']*["']\s*,\s*)?["']([^"']*)["']\s*\)\s*\}\}""")
_BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
_BLOCK_END = re.compile(r"\{%-?\s*enddocs\s*-?%\}")

_Pairs = Iterator[tuple[str, str]]


def stated_facts(data: Mapping[str, Any], file: str) -> Iterator[StatedFact]:
    """The facts of one property file; parts that are not in dbt's form are skipped.

    Args:
        data: Its content.
        file: Its name.
    """
    for section, kind in _KINDS.items():
        for node in mappings(data.get(section)):
            for name in _names(node):
                yield from _of_node(node, kind, (name,), file, {})
    for source in mappings(data.get("sources")):
        for table in mappings(source.get("tables")):
            if text(source, "name") and text(table, "name"):
                yield from _of_node(table, "source", (text(source, "name"), text(table, "name")), file, source)
    for group in mappings(data.get("groups")):
        for owner in owner_texts(group.get("owner")):
            yield StatedFact("group", (text(group, "name"),), None, "owner", owner, file)


def _of_node(
    node: Mapping[str, Any], kind: str, name: tuple[str, ...], file: str, above: Mapping[str, Any]
) -> Iterator[StatedFact]:
    """The facts of a node and its columns; ``above`` is the source of a table, whose tags and ``meta`` hold as well."""
    yield StatedFact(kind, name, None, "", "", file)
    for fact, value in _facts(node, above):
        yield StatedFact(kind, name, None, fact, value, file)
    for column in mappings(node.get("columns")):
        written, quoted = written_name(column)
        for fact, value in _facts(column, {}) if written else ():
            yield StatedFact(kind, name, DescribedColumn(written, quoted), fact, value, file)


def _facts(about: Mapping[str, Any], above: Mapping[str, Any]) -> _Pairs:
    """The facts that a node or column has by its own properties, ``config``, and those of what it belongs to."""
    places = [place for place in (above, above.get("config"), about, about.get("config")) if isinstance(place, dict)]
    if text(about, "description"):
        yield "description", text(about, "description")
    for test in dict.fromkeys(t for key in ("tests", "data_tests") for t in _tests(about.get(key))):
        yield "test", test
    yield from configured_facts(places)


def configured_facts(places: Sequence[Mapping[str, Any]]) -> _Pairs:
    """Yield the tags, ``meta``, group and owners that several places give to one thing, the outermost first."""
    for tag in dict.fromkeys(tag for place in places for tag in files.texts(place.get("tags"), ())):
        yield "tag", tag
    meta = {str(k): v for place in places for k, v in _mapping(place.get("meta")).items()}
    for key, value in meta.items():
        yield f"meta.{key}", fact_text(_as_json(value))
    for group in dict.fromkeys(text(place, "group") for place in places if text(place, "group")):
        yield "group", group
    yield from (("owner", owner) for owner in dict.fromkeys(o for given in _owners(places, meta) for o in given))


def _owners(places: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> Iterator[list[str]]:
    yield from (owner_texts(place.get("owner")) for place in places)
    yield owner_texts(meta.get("owner"))


def _tests(value: object) -> Iterator[str]:
    """The names of tests; ``relationships`` with the column that it looks into."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict) and item:
            name, given = next(iter(item.items()))
            options = _mapping(_mapping(given).get("arguments")) or _mapping(given)
            other = ", ".join(f"{key}: {options[key]}" for key in ("to", "field") if isinstance(options.get(key), str))
            yield f"{name}({other})" if other else text(item, "test_name") or str(name)


def with_docs(facts: Iterable[StatedFact], folders: Iterable[files.Folder]) -> Iterator[StatedFact]:
    """Facts with the texts of their ``doc`` blocks, from Markdown files in folders; an unknown block stays a call."""
    stated = list(facts)
    blocks: dict[str, str] = {}
    if any(_DOC.search(fact.value) for fact in stated):
        for file in (file for folder in folders for file in files.files(folder, ".md")):
            markdown = files.text(file)
            for name, content in _BLOCK.findall(markdown, 0, last_end(_BLOCK_END, markdown)):
                blocks.setdefault(name, " ".join(content.split()))
    for fact in stated:
        value = _DOC.sub(lambda found: blocks.get(found[1], found[0]), fact.value) if blocks else fact.value
        yield replace(fact, value=value)


def _names(node: Mapping[str, Any]) -> Iterator[str]:
    """The names of the relations of a node: its own, or those of the files of its versions."""
    name = text(node, "name")
    versions = list(mappings(node.get("versions")))
    if not name:
        return
    yield from (text(version, "defined_in") or f"{name}_v{version.get('v')}" for version in versions)
    if not versions:
        yield name


def written_name(column: Mapping[str, Any]) -> tuple[str, bool]:
    """The name of a described column without its quotes, and whether its case counts."""
    name = text(column, "name")
    bare = _QUOTED.match(name)
    return bare.group(2) if bare is not None else name, bare is not None or column.get("quote") is True


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """The mappings of a list."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def text(mapping: Mapping[str, Any], key: str) -> str:
    """A text without surrounding space; empty if there is none."""
    value = mapping.get(key)
    return value.strip() if isinstance(value, str) else ""


def _as_json(value: Any) -> Any:
    """A value of YAML, which has dates and other keys than texts, as one of JSON."""
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
