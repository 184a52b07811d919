"""The programs of ``fixtures/spark/writes``: every write of a job, with what it writes, how, and how many rows.

A program's truth lists all of its writes, in the order in which they end where that is certain: more writes, fewer or
others are differences. See the README there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.programs import numbers_between
from govtool.capture.spark.executed import Executed
from govtool.model import ROWS
from govtool.spark.live.numbers import last_execution

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from govtool.spark.live.listener import Recorder

FOLDER = Path(__file__).parents[1] / "fixtures" / "spark" / "writes"
DATABASE = "written"
_LINE = "-" * 40
_COLUMN = re.compile(r"(.*?) <-(?: (.*))?\Z")
_SALES = (((1, 1, 9.5), (2, 1, 2.5)), ((3, 2, 3.0), (4, 1, 4.0)), ((5, 1, 1.0), (6, 3, 8.0)))


@dataclass(frozen=True, slots=True)
class Expected:
    """A write that a program makes, once or in every batch."""

    target: str
    mode: str
    rows: int | None
    """Of all batches together; None: no source measures them."""
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """Names with their sources, in order."""
    row_set: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A part of a job that writes."""

    file: str
    title: str
    code: str
    breaks: dict[str, str]
    """The break that a source (``live``, ``log``) states instead of the truth."""
    semi: bool
    """The optimizer makes semi joins of the filters: to the log they are joins."""
    sink: bool
    """A stream's own sink is written: a live session has one run of all batches."""
    batches: int
    """How many batches a stream of it has."""
    expected: tuple[Expected, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A write that a source says was made."""

    number: int
    target: str
    mode: str
    rows: int | None
    columns: tuple[tuple[str, frozenset[str]], ...]
    row_set: frozenset[str]
    breaks: frozenset[str]
    executed: Executed


def load() -> list[Program]:
    """All programs, in order."""
    found = []
    for file in ("batch", "streams"):
        for text in (FOLDER / f"{file}.txt").read_text(encoding="utf-8").split(f"\n{_LINE}\n"):
            head, _, truth = text.rstrip("\n").partition("\n# =>")
            headers = dict(re.findall(r"^# (\w+): (.*)$", head, re.MULTILINE))
            breaks = {name: headers[name].split()[0] for name in ("live", "log") if name in headers}
            batches = int(headers.get("batches", 1))
            found.append(
                Program(
                    file,
                    headers["title"],
                    head,
                    breaks,
                    "semi" in headers,
                    "sink" in headers,
                    batches,
                    tuple(_expected(truth)),
                )
            )
    return found


def _expected(text: str) -> Iterator[Expected]:
    for block in re.split(r"^@ ", text, flags=re.MULTILINE)[1:]:
        first, *lines = block.strip().split("\n")
        target, mode, *rows = first.split()
        columns = []
        row_set: tuple[str, ...] = ()
        for line in lines:
            column = _COLUMN.match(line)
            if column is None:
                raise ValueError(f"not a line of lineage: {line!r}")
            sources = tuple(column[2].split(", ")) if column[2] else ()
            if column[1] == ROWS:
                row_set = sources
            else:
                columns.append((column[1], sources))
        yield Expected(target, mode, int(rows[0]) if rows else None, tuple(columns), row_set)


def inputs(folder: Path) -> None:
    """Make the files that the programs read: two streams, and two static sides of one folder."""
    for name in ("sales", "returns"):
        (folder / "in" / name).mkdir(parents=True)
    (folder / "in" / "customers.csv").write_text("cust,name,country\n1,Ann,de\n2,Bob,fr\n")
    (folder / "in" / "regions.csv").write_text("country,region\nde,north\n")
    for number, rows in enumerate(_SALES):
        file = folder / "in" / "sales" / f"{number}.json"
        lines = [{"id": id_, "cust": cust, "amount": amount, "day": "mon"} for id_, cust, amount in rows]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(file, (1_700_000_000 + 60 * number,) * 2)  # streams read files in the order of their time
    (folder / "in" / "returns" / "0.json").write_text('{"id":1,"cust":1,"amount":1.0,"day":"tue"}\n')


def run_all(spark: SparkSession, recorder: Recorder, folder: Path) -> list[tuple[Program, frozenset[int]]]:
    """Run all programs, one after the other, each with the numbers of its executions.

    Args:
        spark: A session that the recorder is attached to, in which `programs.prepare` made the tables.
        recorder: Drained after each program.
        folder: With the `inputs`; what is written goes to ``out`` below it.
    """
    from pyspark.sql import Window, functions

    store = spark._jsparkSession.sharedState().statusStore()
    ran = []
    before = last_execution(store)
    for program in load():
        scope: dict[str, Any] = {"spark": spark, "F": functions, "W": Window, "folder": folder, "out": folder / "out"}
        scope.update({name: spark.table(name) for name in ("users", "orders", "events")})
        exec(compile(program.code, program.title, "exec"), scope)
        recorder.drain(60)
        after = last_execution(store)
        ran.append((program, numbers_between(before, after)))
        before = after
    return ran


def of(executed: Sequence[Executed], program: Program, numbers: frozenset[int], folder: Path) -> list[Found]:
    """The writes among the actions of a program, in order.

    Args:
        executed: The actions of an application.
        program: With the targets by which runs of whole streaming queries, which have no number, are known.
        numbers: The executions of the program.
        folder: Of the data: what is below it is named from there.
    """
    found = []
    for each in executed:
        made = each.derivation
        number = each.run.id.rsplit("/", 1)[-1].partition(".")[0]
        if made is None or made.target_kind == "query" or made.statement.kind in ("drop", "create_table", "alter"):
            continue
        if number.isdigit() and int(number) in numbers:
            found.append(_found(each, int(number), folder))
        elif not number.isdigit() and _short(made.target, folder) in [each.target for each in program.expected]:
            found.append(_found(each, -1, folder))
    return sorted(found, key=lambda write: write.number)


def _found(each: Executed, number: int, folder: Path) -> Found:
    made = each.derivation
    assert made is not None
    edges: dict[str, set[str]] = {column.path: set() for column in made.columns}
    for edge in made.edges:
        source = f"{_short(edge.source.dataset, folder)}.{re.split(r'[.[]', edge.source.path, maxsplit=1)[0]}"
        text = f"{source.removesuffix('.*')} read" if edge.kind.label == "read" else f"{source} {edge.kind.label}"
        edges.setdefault(edge.target_path, set()).add(text)
    row_set = frozenset(edges.pop(ROWS, ()))
    columns = tuple((path, frozenset(sources)) for path, sources in edges.items())
    rows = next((output.rows for output in each.run.outputs), None)
    breaks = frozenset(note.code for note in each.run.breaks)
    return Found(number, _short(made.target, folder), made.mode, rows, columns, row_set, breaks, each)


def _short(dataset: str, folder: Path) -> str:
    return dataset.removeprefix(f"file://{folder}/").removeprefix(f"{DATABASE}.")


def differences(program: Program, found: Sequence[Found], source: str) -> list[str]:
    """What a source says other than the truth, a line each; where it states the expected break, only targets count.

    Args:
        program: With its truth.
        found: The writes that the source says were made.
        source: ``live`` or ``log``.
    """
    lines = []
    left = list(found)
    stated, semi = program.breaks.get(source), program.semi and source == "log"
    times = 1 if program.sink and source == "live" else program.batches
    for expected in program.expected:
        matching = [write for write in left if write.target in expected.target.split("|")][:times]
        if len(matching) < times:
            lines.append(f"@ {expected.target}: {len(matching)} writes, not {times}")
        left = [write for write in left if write not in matching]
        lines += [line for write in matching for line in _differences(expected, write, stated, semi=semi)]
        rows = [write.rows for write in matching]
        if expected.rows is not None and sum(n or 0 for n in rows) != expected.rows:
            lines.append(f"@ {expected.target}: {rows} rows, not {expected.rows}")
    lines += [f"@ {write.target} {write.mode} is no write of the program" for write in left]
    return lines


def _joins(row_set: Iterable[str]) -> set[str]:
    return {re.sub(r" (?:join|filter)\Z", " join", text) for text in row_set}


def _differences(expected: Expected, write: Found, stated: str | None, *, semi: bool) -> Iterator[str]:
    if write.mode != expected.mode:
        yield f"@ {write.target} {write.mode}, not {expected.mode}"
    names = [path for path, _ in write.columns]
    if names != [name for name, _ in expected.columns]:
        yield f"@ {write.target} has columns {names}"
        return
    if stated is not None and stated in write.breaks:
        return
    for (name, sources), (_, own) in zip(expected.columns, write.columns, strict=True):
        if own != set(sources):
            yield f"@ {write.target} {name} <- {', '.join(sorted(own))}"
    if write.row_set != set(expected.row_set) and not (semi and _joins(write.row_set) == _joins(expected.row_set)):
        yield f"@ {write.target} * <- {', '.join(sorted(write.row_set))}"
