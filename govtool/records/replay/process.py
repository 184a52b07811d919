"""A script's process: the traced rows of the inputs as Parquet files, and what the script wrote in place of an output.

Everything lies in one temporary folder, which only the user may read. It is removed at the end, whatever happens: by
this process, or by the script's own where this one was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.capture.openlineage.identity import normalise
from govtool.errors import EngineError, UnknownNameError, UsageError
from govtool.names import place_of_id
from govtool.records.execute.inputs import relations
from govtool.records.execute.written_types import as_written
from govtool.records.plan import types as t
from govtool.records.plan.expressions import passed
from govtool.records.plan.nodes import Project, Relation
from govtool.records.plan.tree import Node
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    import pyarrow as pa

    from govtool.records.trace.traced_plan import TracedPlan

_SETTINGS = ("spark.sql.storeAssignmentPolicy", "spark.sql.timestampType", "spark.sql.mapKeyDedupPolicy")
_KEPT_OUT = frozenset({"GOVTOOL_SPARK_RECORDS", "GOVTOOL_SPARK_SPOOL", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"})
"""Variables that would record the script's run, or run it elsewhere."""


@dataclass(frozen=True, slots=True)
class EditedScript:
    """A PySpark script on this machine, named by the user.

    Attributes:
        path: The file.
        arguments: Its command line.
    """

    path: Path
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenByScript:
    """What a script wrote to an output.

    Attributes:
        rows: Its rows.
        plans: Those of its writes; None: of one that cannot be read.
    """

    rows: pa.Table
    plans: tuple[Node | None, ...]


def run_script(
    lineage: TracedPlan, script: EditedScript, part: Callable[[Relation], Node], keys: Callable[[Relation], object]
) -> WrittenByScript:
    """Run a script over a part of a plan's inputs; return what it wrote to the plan's output.

    Args:
        lineage: The recorded plan.
        script: The script.
        part: The rows of an input that the script gets.
        keys: The identity of an input: those with the same are written once.

    Raises:
        UsageError: The script fails, reads what the run did not read, or does not write the output (``usage.script``).
        EngineError: pyspark is missing, or the process ended before the script did.
    """
    import importlib.util

    if importlib.util.find_spec("pyspark") is None:
        raise EngineError("a script needs pyspark", code="engine.spark", hint="pip install 'govtool[spark]'")
    with tempfile.TemporaryDirectory(prefix="govtool-replay-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        request = {
            "script": str(script.path), "arguments": list(script.arguments), "run": lineage.run, "folder": str(folder),
            "settings": _settings(lineage), "inputs": list(_inputs(lineage, part, keys, folder)),
            "output": _output_facts(lineage),
        }  # fmt: skip
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        result = _ended_well(script, folder)
        name = _place(lineage, result["writes"])
        return WrittenByScript(_output(lineage, result["writes"][name]), _plans(result, name))


def _plans(result: dict[str, Any], name: str) -> tuple[Node | None, ...]:
    """The plans by which a script made what it wrote to a place."""
    from govtool.records.spooled_plans import read_alone

    found = []
    for text in result["plans"].get(name, ()):
        plan = read_alone(text, result["spark"], result["functions"]).plan
        found.append(None if plan is None else plan.root)
    return tuple(found)


def _ended_well(script: EditedScript, folder: Path) -> dict[str, Any]:
    """Run the request of a folder; return what the script wrote, by the place that it was for."""
    last = _ended(folder)
    try:
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EngineError(f"the script's process ended: {clean_failure(last)[:300]}", code="engine.script") from error
    for problem in (result["refused"], result["failed"] and f"the script failed: {clean_failure(result['failed'])}"):
        if problem:
            raise UsageError(problem, code="usage.script", location=str(script.path))
    return result


def _ended(folder: Path) -> str:
    """Wait for the process of a request; return the last line of its messages.

    Its standard input is a pipe that closes with this process: then it ends, too, and removes the folder.
    """
    (folder / "spark.conf").touch()
    own = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # defaults of this machine may name catalogs, whose tables are real ones
        "PYSPARK_SUBMIT_ARGS": f"--properties-file {shlex.quote(str(folder / 'spark.conf'))} pyspark-shell",
    }
    environment = {**{k: v for k, v in os.environ.items() if k not in _KEPT_OUT}, **own}
    command = [sys.executable, "-P", "-m", "govtool.spark.live.replay.scripted", str(folder / "request.json")]
    messages = folder / "messages"
    with messages.open("wb") as file:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=file, stderr=file, start_new_session=True
        )
        try:
            process.wait()
        finally:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # Spark's own process, where it is still there
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
    return (messages.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no message"])[-1]


def _settings(lineage: TracedPlan) -> dict[str, str]:
    session = lineage.session
    if session is None:
        return {}
    kept = {name: value for name, value in session.settings if name in _SETTINGS}
    return {**kept, "spark.sql.ansi.enabled": str(session.ansi).lower(), "spark.sql.session.timeZone": session.zone}


def _output_facts(lineage: TracedPlan) -> dict[str, Any]:
    columns = lineage.stage.segment.visible
    fields = tuple(t.Field(column.name, column.type) for column in columns)
    return {
        "name": lineage.output,
        "columns": [column.name for column in columns],
        "schema": t.to_json(t.Struct(fields)),
    }


def _inputs(
    lineage: TracedPlan, part: Callable[[Relation], Node], keys: Callable[[Relation], object], folder: Path
) -> Iterator[dict[str, Any]]:
    """Write the rows of each input as Parquet; yield how a script names it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert lineage.plan is not None
    distinct = {keys(leaf): leaf for leaf in reversed(relations(lineage.plan))}
    tables = Counter(leaf.dataset for leaf in distinct.values() if _is_table(leaf.dataset))
    for name, times in tables.items():
        if times > 1:
            raise UsageError(f"the run read {name} in {times} states: that is not replayed", code="usage.script")
    for number, leaf in enumerate(distinct.values()):
        marks = dict(leaf.metadata)
        columns = [column for column in leaf.columns if column.id not in marks]
        schema = t.Struct(tuple(t.Field(column.name, column.type) for column in columns))
        rows = lineage.executor.arrow(Project(part(leaf), tuple(map(passed, columns))))
        place = folder / f"input-{number}"
        place.mkdir()
        try:
            cells = [cell.cast(as_written(cell.type, c.type)) for cell, c in zip(rows.columns, columns, strict=True)]
            pq.write_table(pa.table(cells, names=[column.name for column in columns]), place / "part-0.parquet")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise EngineError(
                f"rows of {leaf.dataset} are not written as Parquet: {clean_failure(error)}", code="engine.script"
            ) from error
        yield {
            "name": leaf.dataset, "table": _is_table(leaf.dataset), "files": [file.uri for file in leaf.files],
            "folder": str(place), "schema": t.to_json(schema),
        }  # fmt: skip


def _is_table(dataset: str) -> bool:
    return "/" not in dataset and ":" not in dataset


def _place(lineage: TracedPlan, written: Mapping[str, list[str]]) -> str:
    """The place that a script wrote to, of those that are the run's output.

    Raises:
        UnknownNameError: It wrote nothing there (``usage.script``).
    """
    named = sorted((name for name in written if is_output(name, lineage.output)), key=len)
    if not named or not any(Path(folder).glob("*.parquet") for folder in written[named[-1]]):
        raise UnknownNameError(
            f"the script wrote nothing to {lineage.output}", code="usage.script", nearest=tuple(sorted(written)[:3])
        )
    return named[-1]


def _output(lineage: TracedPlan, folders: Sequence[str]) -> pa.Table:
    """What the script wrote in place of the run's output."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = [file for folder in folders for file in sorted(Path(folder).glob("*.parquet"))]
    tables = [pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read() for file in files]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UsageError(
            f"the script's writes to {lineage.output} differ in columns: {error}", code="usage.script"
        ) from error


def is_output(name: str, output: str) -> bool:
    """Return whether a place that a script wrote to is a dataset of the graph."""
    if "/" not in name:
        return output.lower() == name or output.lower().endswith(f".{name}") or f"default.{output}".lower() == name
    scheme, separator, rest = name.partition("://")
    if not separator:
        found = normalise("file", name)
        place = place_of_id(output)
        if place is not None and not place[1].startswith("/"):  # ``[paths] root`` makes names relative
            return found.name.endswith(f"/{place[1]}")
        return found.id == output
    host, _, key = rest.partition("/")
    return normalise(f"{scheme}://{host}", key).id == output
