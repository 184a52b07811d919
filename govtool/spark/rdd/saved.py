"""The log of a program as JSON: traced again in a new process.

The form ``rdd-log/1`` has operators, plain arguments, references to functions, files with their identity, and the
records that the driver held, up to a bound. It holds no code and no pickle.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import EvidenceError, FormatError
from govtool.spark.rdd import functions
from govtool.spark.rdd.log import RddNode, ancestors
from govtool.spark.rdd.operators import OPERATORS, Kind, per_record

if TYPE_CHECKING:
    from govtool.spark.rdd.context import LineageContext

SCHEMA = "rdd-log/1"
MAX_RECORDS = 10_000
"""Records of the driver that are saved with a program."""
_REBUILT = {*OPERATORS, "saveAsTextFile"} - {"pipe", "text lines"}
"""Operators that a log may name: no command of a log is ever run."""
EAGER = "run the job with --records=eager to keep its records"


def encode(outputs: Mapping[str, RddNode]) -> str:
    """Return the operators behind written files as JSON."""
    nodes = ancestors(tuple(outputs.values()))
    document = {
        "schema": SCHEMA,
        "outputs": {path: node.number for path, node in outputs.items()},
        "nodes": [_encoded(node) for node in nodes],
    }
    return json.dumps(document, indent=1)


def _encoded(node: RddNode) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": node.number,
        "name": node.name,
        "label": node.label,
        "parents": [parent.number for parent in node.parents],
    }
    for key in ("path", "files", "written", "written_files"):
        if key in node.details:
            found[key] = node.details[key]
    if node.kind is Kind.SOURCE:
        return found | _source(node)
    if node.kind is Kind.OPAQUE:
        return found | {"missing": f"{node.label} is not known to lineage"}
    try:
        found["arguments"] = _arguments(node)
    except ValueError as error:
        found["missing"] = f"the function of {node.label} cannot be named: {error}"
    return found


def _source(node: RddNode) -> dict[str, Any]:
    partitions = node.rdd.getNumPartitions()
    if node.name == "textFile":
        return {"partitions": partitions, "unicode": node.details.get("unicode", True)}
    if node.name != "parallelize":
        return {"missing": f"the records of {node.label} are not kept"}
    records = node.rdd.take(MAX_RECORDS + 1)
    if len(records) > MAX_RECORDS or not all(map(_is_plain, records)):
        return {"missing": f"the records of {node.label} are too many or no plain data"}
    return {"partitions": partitions, "records": repr(records)}


def _arguments(node: RddNode) -> dict[str, Any]:
    defaults = inspect.signature(getattr(node.rdd, node.name, _nothing)).parameters
    found = {}
    for name, value in node.arguments.items():
        default = defaults[name].default if name in defaults else inspect.Parameter.empty
        if value is default:
            continue
        if callable(value):
            plain = getattr(value, "__govtool_per_record__", None)
            found[name] = {"function": functions.reference(plain or value), "per_record": plain is not None}
        elif _is_plain(value):
            found[name] = {"value": repr(value)}
        else:
            raise ValueError(f"its argument {name} is no plain data")
    return found


def _nothing() -> None:
    """Stand for operators that are no method of an RDD."""


def _is_plain(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def decode(text: str, context: LineageContext, files: Iterable[Path]) -> tuple[dict[str, RddNode], dict[str, str]]:
    """Build the operators of a saved log again, with functions found in the user's files.

    Returns:
        The nodes of written files, and reasons for the files whose program is not whole.

    Raises:
        FormatError: The text is no such log.
    """
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise FormatError(f"not the form {SCHEMA}: {document['schema']}")
        return _decoded(document, context, tuple(files))
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        raise FormatError(f"no log of an RDD program: {error}") from error


def _decoded(
    document: Any, context: LineageContext, files: tuple[Path, ...]
) -> tuple[dict[str, RddNode], dict[str, str]]:
    made: dict[int, RddNode] = {}
    missing: dict[int, str] = {}
    for entry in document["nodes"]:
        number = entry["number"]
        lost = next((missing[parent] for parent in entry["parents"] if parent in missing), None)
        try:
            if lost is None:
                made[number] = _node(entry, [made[parent] for parent in entry["parents"]], context, files)
        except EvidenceError as error:
            lost = error.message
        if lost is not None:
            missing[number] = lost
    outputs = document["outputs"]
    return (
        {path: made[number] for path, number in outputs.items() if number in made},
        {path: missing[number] for path, number in outputs.items() if number in missing},
    )


def _node(entry: dict[str, Any], parents: list[RddNode], context: LineageContext, files: tuple[Path, ...]) -> RddNode:
    if "missing" in entry:
        raise EvidenceError(entry["missing"])
    if not parents:
        node = _source_node(entry, context)
    else:
        if entry["name"] not in _REBUILT:
            raise EvidenceError(f"{entry['label']} is not run from a log")
        arguments = {name: _argument(entry, name, each, files) for name, each in entry["arguments"].items()}
        node = context.apply(entry["name"], parents, arguments)
    node.label = entry["label"]
    for key in ("files", "written_files"):
        if key in entry:
            node.details[key] = {file: tuple(identity) for file, identity in entry[key].items()}
    if "written" in entry:
        node.details["written"] = entry["written"]
    return node


def _source_node(entry: dict[str, Any], context: LineageContext) -> RddNode:
    if "path" in entry:
        return context.node_of(context.textFile(entry["path"], entry["partitions"], entry["unicode"]))
    return context.node_of(context.parallelize(ast.literal_eval(entry["records"]), entry["partitions"]))


def _argument(entry: dict[str, Any], name: str, encoded: dict[str, Any], files: tuple[Path, ...]) -> Any:
    if "value" in encoded:
        return ast.literal_eval(encoded["value"])
    function = functions.find(encoded["function"], files)
    if function is None:
        where = encoded["function"].get("file", "Python")
        raise EvidenceError(f"the function of {entry['label']} is not in {where} as it was")
    return per_record(function) if encoded["per_record"] else function
