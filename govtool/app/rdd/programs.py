"""RDD programs of a job's spool as tables of a store: the log, the files, and private values apart from each other.

The log names operators, functions by digest, and holes where values of the program were. No code and no pickle enters
a store, and none is taken from one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.rdd.log_checks import place_in, require_log
from govtool.app.records.writes import ProcessActions, process_id
from govtool.errors import FormatError, UsageError
from govtool.model.records import RDD, PrivateValues, RecordRun, StoredPlan
from govtool.redaction import failure_of

if TYPE_CHECKING:
    from govtool.app.records.tables import RecordTables
    from govtool.model.positions import StoredPositions
    from govtool.records.plan.nodes import File, Relation, Session

_HOLE = "$"
"""The key of a value that lies with the private ones."""
_EAGER = "--records=eager keeps the positions of records"
Json = dict[str, Any]


@dataclass(slots=True)
class ProgramNotes:
    """Remarks on the programs of a job.

    Attributes:
        problems: Why rows cannot be traced.
        costs: What it cost to keep positions.
    """

    problems: list[str] = field(default_factory=list)
    costs: list[str] = field(default_factory=list)


def add_programs(tables: RecordTables, spool: Path, processes: Sequence[ProcessActions], notes: ProgramNotes) -> None:
    """Add the actions of RDDs that a job's private spool holds.

    Args:
        tables: Takes them.
        spool: The private folder of a job's spool.
        processes: Its actions.
        notes: Takes remarks.
    """
    lines: dict[str, list[Json]] = {}
    for file in sorted(spool.glob("*.jsonl")):
        lines.setdefault(process_id(file.stem), []).extend(_lines(file))
    for process in processes:
        complete = {action.run.id: action for action in process.executed if action.run.status == "complete"}
        for line in lines.get(process_id(process.process), ()):
            for name in process.runs.get(int(line.get("n", -1)), ()):
                if name in complete:
                    output = complete[name].target if complete[name].run.outputs else ""
                    _add(tables, name, line, output, spool, notes)


def _lines(file: Path) -> Iterator[Json]:
    with file.open(encoding="utf-8", errors="replace") as found:
        for text in found:
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and line.get("e") == "rdd":
                yield line


def _add(tables: RecordTables, name: str, line: Json, output: str, spool: Path, notes: ProgramNotes) -> None:
    if "log" not in line:
        reason = str(line.get("reason") or line.get("break") or "its log is missing")
        notes.problems.append(f"rows of {name} cannot be traced: {reason}")
        return
    try:
        run, plan, private = stored_program(name, line, output)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        notes.problems.append(f"rows of {name} cannot be traced: its log cannot be read: {type(error).__name__}")
        return
    tables.plans[plan.digest], tables.runs[name], tables.private[name] = plan, run, private
    if not _add_positions(tables, name, line, spool, notes):
        notes.problems += [f"rows of {name} cannot be traced: {reason} ({_EAGER})" for reason in run.breaks]


def stored_program(name: str, line: Json, output: str) -> tuple[RecordRun, StoredPlan, PrivateValues]:
    """Take the line of an action apart.

    Args:
        name: The id of its run.
        line: As ``govtool.spark.rdd.recording`` writes it.
        output: The dataset that it wrote; empty: none.
    """
    from govtool.records.plan import codec
    from govtool.records.plan.nodes import Plan, Session, Union
    from govtool.records.split_plans import relation_text

    log, session = line["log"], Session(str(line.get("spark", "")), True, "UTC")
    numbers = {entry["number"]: place for place, entry in enumerate(log["nodes"])}
    values: list[Any] = []
    leaves = [_relation(numbers[entry["number"]], entry) for entry in log["nodes"] if "dataset" in entry]
    body = {
        "schema": log["schema"],
        "nodes": [_bare(entry, numbers, values) for entry in log["nodes"]],
        "output": numbers[log["outputs"][""]],
        "taken": log.get("taken"),
        "result": _hole(log["result"], values) if "result" in log else None,
    }
    text = _text(body)
    run = RecordRun(
        run=name,
        plan=hashlib.sha256(text.encode()).hexdigest(),
        output=output,
        inputs=tuple((leaf.leaf, leaf.dataset) for leaf in leaves),
        listings=codec.dumps(Plan(Union(tuple(leaves), ()), session)),
        written=relation_text(_written(line, output), session) if output and "written" in line else "",
        boundaries=tuple(dict.fromkeys(entry["label"] for entry in log["nodes"] if entry["parents"])),
        breaks=tuple(dict.fromkeys(entry["missing"] for entry in log["nodes"] if "missing" in entry)),
        program=RDD,
    )
    return run, StoredPlan(run.plan, text), PrivateValues(name, _text(values))


def _bare(entry: Json, numbers: Mapping[int, int], values: list[Any]) -> Json:
    """A node without its files, with holes for its values."""
    found = {key: value for key, value in entry.items() if key in ("name", "label", "missing", "path", "unicode")}
    found |= {"number": numbers[entry["number"]], "parents": [numbers[parent] for parent in entry["parents"]]}
    found |= {"partitions": entry["partitions"]} if "partitions" in entry else {}
    if "records" in entry:
        found["records"] = _hole(entry["records"], values)
    if "arguments" in entry:
        found["arguments"] = {name: _argument(each, values) for name, each in entry["arguments"].items()}
    return found


def _argument(encoded: Json, values: list[Any]) -> Json:
    return {"value": _hole(encoded["value"], values)} if "value" in encoded else encoded


def _hole(value: Any, values: list[Any]) -> Json:
    values.append(value)
    return {_HOLE: len(values) - 1}


def _relation(leaf: int, entry: Json) -> Relation:
    from govtool.capture.spark.analyzed.place_names import common_path
    from govtool.capture.spark.identity import path_name
    from govtool.records.plan.nodes import Relation
    from govtool.records.plan.types import Struct

    dataset = path_name(common_path(entry["dataset"])).id
    return Relation(leaf, dataset, "text", _files(entry.get("files", {})), (), Struct(()))


def _written(line: Json, output: str) -> Relation:
    from govtool.records.plan import types as t
    from govtool.records.plan.expressions import Attribute
    from govtool.records.plan.nodes import Relation

    schema = t.Struct((t.Field("value", t.STRING),))
    return Relation(0, output, "text", _files(line["written"]), (Attribute(0, "value", t.STRING),), schema)


def _files(identities: Mapping[str, Sequence[int]]) -> tuple[File, ...]:
    from govtool.records.plan.nodes import File

    found = sorted((_uri(path), int(size), int(modified)) for path, (size, modified) in identities.items())
    return tuple(File(number, *each) for number, each in enumerate(found))


def _uri(path: str) -> str:
    return Path(path).as_uri() if path.startswith("/") else path


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


# ---- read again -----------------------------------------------------------------------------------------------------


def log_of(run: RecordRun, body: str, values: str | None) -> Json:
    """Put the log of a program together, in the form that ``govtool.spark.rdd.saved`` reads.

    Args:
        run: The write.
        body: As ``StoredPlan`` has it.
        values: As ``PrivateValues`` has it; None if they were removed from the store.

    Raises:
        UsageError: The private values were removed (``usage.forgotten``).
        FormatError: A part is not what was written.
    """
    if values is None:
        raise UsageError(
            "the private values of this run were removed from the store: its rows cannot be traced",
            code="usage.forgotten",
        )
    try:
        known = json.loads(values)
        log = _filled(json.loads(body), known)
        leaves = leaves_of(run)
        require_log(log, {leaf.leaf for leaf in leaves})
        for leaf in leaves:
            files = {_path(file.uri): (file.size, file.modified) for file in leaf.files}
            place_in(log["nodes"], leaf.leaf)["files"] = files
        output = log["nodes"][log["output"]]
        if log["result"] is not None and log["taken"] is None:
            output["results"] = [log["result"]]
        log["outputs"] = {"": log["output"]}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise FormatError("a stored program cannot be read: a part is missing", code="store.format-plan") from error
    return dict(log)


def _filled(value: Any, known: Sequence[Any]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_HOLE}:
            return place_in(known, value[_HOLE])
        return {key: _filled(each, known) for key, each in value.items()}
    return [_filled(each, known) for each in value] if isinstance(value, list) else value


def leaves_of(run: RecordRun) -> list[Relation]:
    """The text files behind a program, as they were read, under the names of the graph."""
    from govtool.records.execute.inputs import relations
    from govtool.records.plan import codec
    from govtool.records.split_plans import listing_version

    names = dict(run.inputs)
    return [
        replace(leaf, dataset=names.get(leaf.leaf, leaf.dataset), version=listing_version(leaf.files))
        for leaf in relations(codec.loads(run.listings).root)
    ]


def session_of(run: RecordRun) -> Session:
    """The session of a program."""
    from govtool.records.plan import codec

    return codec.loads(run.listings).session


def _path(uri: str) -> str:
    """The name of a file as ``govtool.spark.rdd.sources`` has it."""
    from govtool.records.execute.inputs import local_path

    path = local_path(uri)
    return str(path) if path is not None else uri


# ---- positions ------------------------------------------------------------------------------------------------------


def _add_positions(tables: RecordTables, name: str, line: Json, spool: Path, notes: ProgramNotes) -> bool:
    """Add the positions of an action's records; False where the job kept none."""
    from govtool.model.positions import encode_positions

    facts = line.get("positions")
    if not isinstance(facts, dict):
        return False
    try:
        found = _read_positions(facts, line["log"], spool)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        notes.problems.append(f"positions of {name} are not kept: {failure_of(error)}")
        return False
    if found is None:
        notes.problems.append(f"positions of {name} are not kept: {facts['missing']}")
        return False
    data = encode_positions(found)
    tables.positions[name] = data
    tables.runs[name] = replace(tables.runs[name], positions=hashlib.sha256(data).hexdigest())
    pairs = sum(map(len, found.pairs))
    notes.costs.append(
        f"positions of {name}: {pairs:,} pairs in {len(data):,} bytes; the job took {facts['seconds']} s longer"
    )
    return True


def _read_positions(facts: Json, log: Json, spool: Path) -> StoredPositions | None:
    from govtool.model.positions import from_packed

    if "missing" in facts:
        return None
    data = (spool / Path(facts["file"]).name).read_bytes()
    if hashlib.sha256(data).hexdigest() != facts["sha256"]:
        raise ValueError("the file is not what was written")
    numbers = {entry["number"]: place for place, entry in enumerate(log["nodes"])} | {-1: -1}
    packed, begin, tables = [], 0, []
    for node, stop, size, exactness, reason in facts["tables"]:
        packed.append(data[begin : begin + size])
        begin += size
        tables.append([numbers[node], numbers[stop], exactness, reason])
    stored = {
        "tables": tables,
        "coarse": [[numbers[node], [numbers[each] for each in stops], why] for node, stops, why in facts["coarse"]],
        "texts": [[numbers[node], own] for node, own in facts["texts"]],
        "seconds": facts["seconds"],
    }
    return from_packed(stored, packed)
