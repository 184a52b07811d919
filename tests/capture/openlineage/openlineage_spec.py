"""The OpenLineage spec as JSON Schemas, and a validator for whole events.

The schemas are those that the OpenLineage project publishes, copied into ``fixtures/openlineage_spec`` (its README says
from where). OPENLINEAGE_SPEC names another folder with the same files, such as the ``spec`` of a newer checkout.
"""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

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
    folder = Path(os.environ.get("OPENLINEAGE_SPEC") or Path(__file__).parents[3] / "fixtures" / "openlineage_spec")
    found = {}
    for file in (folder / "OpenLineage.json", *sorted(folder.glob("facets/*.json"))):
        document = json.loads(file.read_text(encoding="utf-8"))
        for name in document["$defs"]:
            found[f"{document['$id']}#/$defs/{name}"] = {"document": document}
    return found


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
