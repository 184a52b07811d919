"""The programs of ``fixtures/spark/programs`` run in a live session, and what its plans and event log say of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.model import ROWS, Derivation
from govtool.spark.live.numbers import last_execution

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from govtool.capture.spark.executed import Executed
    from govtool.spark.live.listener import Recorder

FOLDER = Path(__file__).parents[1] / "fixtures" / "spark" / "programs"
DATABASE = "hard"
_LINE = "-" * 40
_COLUMN = re.compile(r"(.*?) <-(?: (.*))?\Z")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a program is expected to say of one target."""

    target: str
    """Its table, without the database; empty: a query."""
    mode: str
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """Names with their sources (``users.id identity``), in order."""
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """One program."""

    file: str
    title: str
    headers: dict[str, str]
    code: str
    expected: tuple[Expected, ...]

    @property
    def name(self) -> str:
        """Unique, for people."""
        return f"{self.file}: {self.title}"


def load() -> list[Program]:
    """All programs, in order."""
    found = []
    for file in sorted(FOLDER.glob("*.txt")):
        for text in file.read_text(encoding="utf-8").split(f"\n{_LINE}\n"):
            head, _, stated = text.partition("\n# =>\n")
            headers: dict[str, str] = {}
            lines = head.strip().split("\n")
            while lines and (header := re.match(r"# (\w+): (.*)\Z", lines[0])):
                headers[header[1]] = header[2]
                lines.pop(0)
            found.append(Program(file.stem, headers["title"], headers, "\n".join(lines), _expected(stated)))
    return found


def _expected(text: str) -> tuple[Expected, ...]:
    found: list[Expected] = []
    target, mode = "", "replace"
    columns: list[tuple[str, tuple[str, ...]]] = []
    rows: tuple[str, ...] = ()
    started = False
    for line in [*text.strip().split("\n"), "@"]:
        if line.startswith("@"):
            if started:
                found.append(Expected(target, mode, tuple(columns), rows))
            _, _, words = line.partition(" ")
            target, _, mode = words.partition(" ")
            columns, rows = [], ()
            started = True
            continue
        column = _COLUMN.match(line)
        if column is None:
            raise ValueError(f"not a line of lineage: {line!r}")
        sources = tuple(column[2].split(", ")) if column[2] else ()
        started = True
        if column[1] == ROWS:
            rows = sources
        else:
            columns.append((column[1], sources))
    return tuple(found)


def prepare(spark: SparkSession, database: str = DATABASE) -> None:
    """Make the tables that programs read, in a database of their own."""
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    spark.sql(f"USE {database}")
    text = (FOLDER / "tables.sql").read_text(encoding="utf-8")
    for statement in text.split(";\n"):
        if statement.strip():
            spark.sql(statement.strip().rstrip(";"))


def run(spark: SparkSession, program: Program, sink: Callable[[DataFrame], object] | None = None) -> None:
    """Run a program: its last expression, if it is a DataFrame, is collected, or handed to ``sink``."""
    from pyspark.sql import DataFrame, Window, functions, types

    scope: dict[str, Any] = {"spark": spark, "F": functions, "W": Window, "T": types}
    scope.update({name: spark.table(name) for name in ("users", "orders", "events", "months")})
    tree = ast.parse(program.code)
    last = tree.body[-1]
    value: object = None
    if isinstance(last, ast.Expr):
        tree.body.pop()
        exec(compile(tree, program.name, "exec"), scope)
        value = eval(compile(ast.Expression(last.value), program.name, "eval"), scope)
    else:
        exec(compile(tree, program.name, "exec"), scope)
    if isinstance(value, DataFrame) and not any(each.target for each in program.expected):
        (sink or DataFrame.collect)(value)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a session said while a program ran."""

    program: Program
    numbers: frozenset[int]
    """Its executions."""


def run_all(spark: SparkSession, recorder: Recorder, programs: Sequence[Program]) -> list[Heard]:
    """Run programs one after the other, each with its executions apart.

    Args:
        spark: A session that the recorder is attached to.
        recorder: Drained after each program.
        programs: What to run.
    """
    heard = []
    store = spark._jsparkSession.sharedState().statusStore()
    before = last_execution(store)
    for program in programs:
        run(spark, program)
        recorder.drain(60)
        after = last_execution(store)
        heard.append(Heard(program, numbers_between(before, after)))
        before = after
    return heard


def numbers_between(before: int | None, after: int | None) -> frozenset[int]:
    """The executions behind one, up to another: their numbers, as Spark keeps only the latest thousand of them."""
    return frozenset(range(0 if before is None else before + 1, 0 if after is None else after + 1))


def live(spool: Path) -> list[Executed]:
    """What a spool says of executions; views are seen through, as physical plans do."""
    from govtool.capture.spark.live.executions import LiveInterpreter
    from govtool.capture.spark.live.spool import read_spool

    return [
        each for process in read_spool(spool) for each in LiveInterpreter(process, "live", expand_views=True).actions()
    ]


def logged(folder: Path) -> list[Executed]:
    """What the event logs of a folder say of executions."""
    from govtool.capture.spark.eventlog.files import find
    from govtool.capture.spark.eventlog.gathered import EventLogFindings
    from govtool.capture.spark.eventlog.read import read_log

    class Collected(EventLogFindings):
        """Keeps every action as it is."""

        def take(self, executed: Executed) -> None:
            """Keep an action."""
            kept.append(executed)

    kept: list[Executed] = []
    collected = Collected("log")
    for log in find(folder):
        read_log(log, log.name, collected)
    return kept


def stated(executed: Sequence[Executed], numbers: frozenset[int]) -> list[Derivation]:
    """The derivations of the runs of a program, in order."""
    return [
        each.derivation
        for each in executed
        if each.derivation is not None and int(each.run.id.rsplit("/", 1)[-1].partition(".")[0]) in numbers
    ]


def differences(program: Program, derivations: Sequence[Derivation], *, rows: bool = True) -> list[str]:
    """What is other than expected, a line each.

    Args:
        program: What ran.
        derivations: What was said of it.
        rows: Whether the row set is compared too.
    """
    return [line for expected in program.expected for line in _differences(program, expected, derivations, rows)]


def _differences(program: Program, expected: Expected, derivations: Sequence[Derivation], rows: bool) -> Iterator[str]:
    if expected.target:
        target = f"{DATABASE}.{expected.target}"
        candidates = [d for d in derivations if d.target == target]
    else:
        candidates = [d for d in derivations if d.target_kind == "query"]
    if not candidates:
        yield f"nothing is said of {expected.target or 'the query'}"
        return
    found = candidates[-1]
    if expected.target and found.mode != expected.mode:
        yield f"@ {expected.target} {found.mode}, not {expected.mode}"
    if len(found.columns) != len(expected.columns):
        yield f"{len(found.columns)} columns, not {len(expected.columns)}: {[c.path for c in found.columns]}"
        return
    full = program.headers.get("paths") == "full"
    for column, (name, sources) in zip(found.columns, expected.columns, strict=True):
        own = {source_text(edge.source.dataset, edge.source.path, edge.kind.label, full=full) for edge in found.edges
               if edge.target_path == column.path}  # fmt: skip
        if own != set(sources):
            yield f"{name} <- {', '.join(sorted(own))}"
    if rows:
        own = {source_text(edge.source.dataset, edge.source.path, edge.kind.label, full=full) for edge in found.edges
               if edge.target_path == ROWS}  # fmt: skip
        if own != set(expected.rows):
            yield f"* <- {', '.join(sorted(own))}"


def source_text(dataset: str, path: str, kind: str, *, full: bool) -> str:
    """A source as programs write it; with ``full``, with the path below its column."""
    name = dataset.removeprefix(f"{DATABASE}.")
    if kind == "read":
        return f"{name} read"
    return f"{name}.{path if full else re.split(r'[.[]', path, maxsplit=1)[0]} {kind}"
