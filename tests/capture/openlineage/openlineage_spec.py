"""The OpenLineage spec as JSON Schemas, and a validator for whole events.

The schemas are made of the classes that the OpenLineage project generates from its own schemas and publishes as
``openlineage-python``: names, types, what is required, enumerations, one definition a class. With OPENLINEAGE_SPEC set
to a checkout's ``spec`` folder, the project's own files are used instead.
"""

from __future__ import annotations

import enum
import importlib
import json
import os
import pkgutil
import re
import types
import typing
from functools import lru_cache
from pathlib import Path

import attr
import openlineage.client.generated as generated
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

_FORMATS = {"eventTime": "date-time", "runId": "uuid"}
_BASE = {"producer", "schemaURL", "_producer", "_schemaURL"}
CORE = "https://openlineage.io/spec/2-0-2/OpenLineage.json"

checker = FormatChecker()


@checker.checks("date-time")
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or bool(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value)
    )


@checker.checks("uri")
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or bool(re.match(r"[a-z][a-z0-9+.-]*:\S+$", value))


@lru_cache(maxsize=1)
def schemas() -> dict[str, dict]:
    """Every definition by its address, ``…/OpenLineage.json#/$defs/RunEvent``."""
    folder = os.environ.get("OPENLINEAGE_SPEC")
    return _of_files(Path(folder)) if folder else _of_classes()


def _of_files(folder: Path) -> dict[str, dict]:
    found = {}
    for file in (folder / "OpenLineage.json", *sorted(folder.glob("facets/*.json"))):
        document = json.loads(file.read_text())
        for name in document["$defs"]:
            found[f"{document['$id']}#/$defs/{name}"] = {"document": document}
    return found


def _of_classes() -> dict[str, dict]:
    documents: dict[str, dict] = {}
    found = {}
    for info in pkgutil.iter_modules(generated.__path__):
        module = importlib.import_module(f"{generated.__name__}.{info.name}")
        for thing in vars(module).values():
            if attr.has(thing) and isinstance(thing, type) and thing.__module__ == module.__name__:
                document = documents.setdefault(info.name, {"$id": f"urn:{info.name}", "$defs": {}})
                document["$defs"][thing.__name__] = _definition(thing)
                if "_get_schema" in vars(thing):
                    address = thing._get_schema()
                    document["$id"] = address.partition("#")[0]
                    found[address] = {"document": document}
    return found


def _definition(cls: type) -> dict:
    hints = typing.get_type_hints(cls)
    properties, required = {}, []
    for item in attr.fields(cls):
        properties[item.name] = _type(hints[item.name], cls)
        if item.name in _FORMATS:
            properties[item.name] = {"type": "string", "format": _FORMATS[item.name]}
        if item.name in _BASE:
            properties[item.name] = {"type": "string", "format": "uri"}
        if item.default is attr.NOTHING or item.name in _BASE:
            required.append(item.name)
    return {"type": "object", "properties": properties, "required": required}


def _type(hint: object, cls: type) -> dict:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type(a, cls) for a in arguments if a is not type(None)]}
    if origin is list:
        return {"type": "array", "items": _type(arguments[0], cls)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], cls)}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if attr.has(hint) and isinstance(hint, type):
        if hint.__module__ == cls.__module__:
            return {"$ref": f"#/$defs/{hint.__name__}"}
        return {"$ref": hint._get_schema()}
    return {
        str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"},
    }.get(hint, {})  # fmt: skip


@lru_cache(maxsize=256)
def _validator(address: str) -> Draft202012Validator:
    documents = {known.partition("#")[0]: entry["document"] for known, entry in schemas().items()}
    registry = Registry().with_resources(
        (name, Resource.from_contents({"$schema": "https://json-schema.org/draft/2020-12/schema", **document}))
        for name, document in documents.items()
    )
    return Draft202012Validator({"$ref": address}, registry=registry, format_checker=checker)


def problems(event: dict) -> list[str]:
    """What is wrong with an event: as an event of its kind, and every facet as its ``_schemaURL`` defines it."""
    found = _check(event["schemaURL"], event)
    holders = [event.get("dataset"), event.get("job"), event.get("run"), *event.get("inputs", [])]
    for holder in (*holders, *event.get("outputs", [])):
        for name in ("facets", "inputFacets", "outputFacets"):
            for facet in ((holder or {}).get(name) or {}).values():
                found += _check(facet["_schemaURL"], facet)
    return found


def _check(address: str, value: dict) -> list[str]:
    if address not in schemas():
        return [f"{address} is not defined"]
    return [f"{address}: {error.message}" for error in _validator(address).iter_errors(value)]
