"""The log of a program as JSON: traced again in a new process.

The form ``rdd-log/1`` has operators, plain arguments, references to functions, files with their identity, and the
records that the driver held, up to a bound. It holds no code and no pickle.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from govtool.errors import EvidenceError, FormatError
from govtool.spark.rdd import functions, sources
from govtool.spark.rdd.log import RddNode, RecordedResult, ancestors
from govtool.spark.rdd.operators import OPERATORS, Kind, per_record

SCHEMA = "rdd-log/1"
MAX_RECORDS = 10_000
"""Records of the driver that are saved with a program."""
MAX_TEXT = 4 << 20
"""Characters of them."""
_REBUILT = {*OPERATORS, "saveAsTextFile"} - {"pipe", "text lines"}
"""Operators that a log may name: no command of a log is ever run."""
_COUNTS = frozenset({"numPartitions", "numSlices", "minPartitions"})
MAX_PARTITIONS = 100_000
"""Partitions that a log may ask for; Spark makes each of them, however few records there are."""
UNREADABLE = re.compile(r"[][{}*?,\\]")
"""Characters that have a meaning in Hadoop's patterns and lists of paths."""
EAGER = "run the job with --records=eager to keep its records"


class ProgramBuilder(Protocol):
    """The context in which the operators of a saved log are built again."""

    spark_context: Any

    def parallelize(self, c: Any, numSlices: int | None = None) -> Any:
        """Return the records of a collection."""

    def textFile(self, name: str, minPartitions: int | None = None, use_unicode: bool = True) -> Any:
        """Return the lines of text files."""

    def text_files(self, name: str, files: list[str], minimum: int, unicode: bool) -> Any:
        """Return the lines of some of the files of a path."""

    def apply(self, name: str, parents: list[RddNode], arguments: dict[str, Any]) -> RddNode:
        """Return the node of a tracked method on other nodes."""

    def node_of(self, rdd: Any) -> RddNode:
        """Return the node of an RDD."""


def encode(outputs: Mapping[str, RddNode]) -> str:
    """Return the operators behind written files as JSON."""
    return json.dumps(document(outputs), indent=1)


def document(outputs: Mapping[str, RddNode]) -> dict[str, Any]:
    """Return the operators behind some nodes in the types of JSON."""
    nodes = ancestors(tuple(outputs.values()))
    return {
        "schema": SCHEMA,
        "outputs": {path: node.number for path, node in outputs.items()},
        "nodes": [_encoded(node) | _files(node) for node in nodes],
    }


def _files(node: RddNode) -> dict[str, Any]:
    return {key: node.details[key] for key in ("path", "files", "written", "written_files") if key in node.details}


def _encoded(node: RddNode) -> dict[str, Any]:
    """A node without its files; it does not change, so that it is encoded once."""
    if "encoded" not in node.details:
        node.details["encoded"] = _operator(node)
    found: dict[str, Any] = node.details["encoded"]
    return found


def _operator(node: RddNode) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": node.number,
        "name": node.name,
        "label": node.label,
        "parents": [parent.number for parent in node.parents],
    }
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
    if node.name == "textFile":
        return {"partitions": node.details["minimum"], "unicode": node.details.get("unicode", True)}
    if node.name != "parallelize":
        return {"missing": f"the records of {node.label} are not kept"}
    records: str = node.details.get("records", "")
    if not _is_plain_text(records):
        return {"missing": f"the records of {node.label} are too many or no plain data"}
    return {"partitions": node.rdd.getNumPartitions(), "records": records}


def records_text(records: Any) -> str:
    """Return a collection as the text of a list, as it is now; empty if it is too large."""
    few = list(itertools.islice(records, MAX_RECORDS + 1))
    if len(few) > MAX_RECORDS:
        return ""
    try:
        text = repr(few)
    except Exception:  # of the user's own classes
        return ""
    return text if len(text) <= MAX_TEXT else ""


def _is_plain_text(text: str) -> bool:
    try:
        return isinstance(ast.literal_eval(text), list)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


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
        elif functions.is_plain(value):
            found[name] = {"value": repr(value)}
        else:
            raise ValueError(f"its argument {name} is no plain data")
    return found


def _nothing() -> None:
    """Stand for operators that are no method of an RDD."""


def decode(text: str, context: ProgramBuilder, files: Iterable[Path]) -> tuple[dict[str, RddNode], dict[str, str]]:
    """Build the operators of a saved log again, with functions found in the user's files.

    Returns:
        The nodes of written files, and reasons for the files whose program is not whole.

    Raises:
        FormatError: The text is no such log.
    """
    try:
        return rebuilt(json.loads(text), context, files)
    except ValueError as error:
        raise FormatError(f"no log of an RDD program: {error}") from error


def rebuilt(document: Any, context: ProgramBuilder, files: Iterable[Path]) -> tuple[dict[str, RddNode], dict[str, str]]:
    """Build the operators of a ``document`` again, as ``decode`` does.

    Raises:
        FormatError: It is no such log.
    """
    try:
        if document["schema"] != SCHEMA:
            raise FormatError(f"not the form {SCHEMA}: {document['schema']}")
        return _decoded(document, context, tuple(files))
    except (ValueError, LookupError, TypeError, AttributeError, SyntaxError, RecursionError, MemoryError) as error:
        raise FormatError(f"no log of an RDD program: {error}") from error


def _decoded(
    document: Any, context: ProgramBuilder, files: tuple[Path, ...]
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


def _node(entry: dict[str, Any], parents: list[RddNode], context: ProgramBuilder, files: tuple[Path, ...]) -> RddNode:
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
    node.details["entry"] = entry["number"]
    for key in ("files", "written_files"):
        if key in entry:
            node.details[key] = {file: tuple(identity) for file, identity in entry[key].items()}
    if "written" in entry:
        node.details["written"] = entry["written"]
    node.recorded += [RecordedResult(*each) for each in entry.get("results", ())]
    return node


def _source_node(entry: dict[str, Any], context: ProgramBuilder) -> RddNode:
    if "path" not in entry:
        records = ast.literal_eval(entry["records"])
        return context.node_of(context.parallelize(records, _partitions(entry, entry["partitions"])))
    path, partitions, text = entry["path"], _partitions(entry, entry["partitions"]), entry["unicode"]
    if "files" in entry and not entry["files"]:  # it read none, whatever is there now
        return context.node_of(context.text_files(path, [], partitions, text))
    recorded = {file: tuple(identity) for file, identity in entry.get("files", {}).items()}
    now = sources.identities(context.spark_context, path)
    there = [file for file in recorded if now.get(file) == recorded[file]]
    if now.keys() == recorded.keys() or not recorded or any(map(UNREADABLE.search, there)):
        return context.node_of(context.textFile(path, partitions, text))
    # Files have come, or are gone: those that were read, and are as they were.
    return context.node_of(context.text_files(path, there, partitions, text))


def _partitions(entry: dict[str, Any], count: Any) -> int:
    """A number of partitions, if Spark can make them.

    Raises:
        EvidenceError: It cannot.
    """
    if type(count) is not int or not 0 <= count <= MAX_PARTITIONS:
        raise EvidenceError(f"{entry['label']} has {count!r} partitions, more than the {MAX_PARTITIONS:,} of a trace")
    return count


def _argument(entry: dict[str, Any], name: str, encoded: dict[str, Any], files: tuple[Path, ...]) -> Any:
    if "value" in encoded:
        value = ast.literal_eval(encoded["value"])
        return _partitions(entry, value) if name in _COUNTS and value is not None else value
    function = functions.find(encoded["function"], files)
    if function is None:
        where = encoded["function"].get("file", "Python")
        raise EvidenceError(f"the function of {entry['label']} is not in {where} as it was")
    return per_record(function) if encoded["per_record"] else function
