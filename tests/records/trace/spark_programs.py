"""Recorded programs of DataFrames and SQL, traced and replayed by command, against brute force.

Each program runs in a Spark session that records, as a user's job does. Then ``trace back``, ``trace forward`` and
``replay`` answer from the store, and their rows are compared with those of ``program_rows``, which evaluates the
program in Python, with all its input rows and without some.

python tests/records/trace/spark_programs.py 100 [first seed] [--chains] [--generators]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import pyarrow.parquet as pq
from chain_programs import Write, chain, contents
from frame_programs import Programs
from generator_programs import generated
from program_rows import SCHEMA, TABLES, Data, Frame, Session, Tokens, random_data, union
from recorders import own_recorder

import govtool.spark
from govtool.cli.main import main as govtool_command

Values = tuple[Any, ...]


@dataclass
class Report:
    """What some programs came to."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def ends_with(self, what: str, problem: object, about: str) -> None:
        self.wrong.append(f"{what}: {problem}: {about}")


class Recorded:
    """A folder with the inputs of a program, and the store that its runs are recorded in."""

    def __init__(self, folder: Path, spark: Any, data: Data) -> None:
        self.folder, self.data = folder, data
        self.session = Session(spark, str(folder))
        self.runs: list[tuple[str, str]] = []
        folder.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            frame = spark.createDataFrame(data[name], SCHEMA).repartition(3, "k")
            frame.write.parquet(f"{folder}/in/{name}")
        self.store = str(folder / "store")
        assert govtool_command(["init", "--store", self.store, "--no-sources"]) == 0

    def record(self, writes: Iterable[Any]) -> list[Exception | None]:
        """Run some writes; return the error of each that Spark refused."""
        found: list[Exception | None] = []
        with own_recorder():
            capture = govtool.spark.attach(
                self.session.spark, source="run:programs", store=self.store, spool=f"{self.folder}/spool", records=True
            )
            for write in writes:
                try:
                    write(self.session)
                except Exception as error:  # such as a number that is too large for its type
                    found.append(error)
                else:
                    found.append(None)
            assert capture.commit(identify=0) is not None
        code, text = self.command("runs", "--limit", "100000")
        assert code == 0, text
        for run in json.loads(text)["runs"]:
            self.runs += [(output["dataset"].rpartition("/")[2], run["id"]) for output in run["outputs"]]
        return found

    def command(self, *words: str) -> tuple[int, str]:
        """A command's exit code, and what it printed: JSON, or the error."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = govtool_command([*words, "--store", self.store, "--format", "json"])
        return code, out.getvalue() or err.getvalue()

    def input(self, name: str) -> str:
        return f"{self.folder}/in/{name}"

    def output(self, name: str) -> str:
        return f"{self.folder}/out/{name}"


def tokens(groups: Iterable[dict[str, Any]]) -> Tokens:
    """The input rows of an answer."""
    inputs = [group for group in groups if "/in/" in group["dataset"]]
    return frozenset((group["dataset"].rpartition("/")[2], row["id"]) for group in inputs for row in group["rows"])


def condition(values: Values) -> str:
    """The rows of an output that have these values."""
    return " AND ".join(f"o{n} <=> {_literal(value)}" for n, value in enumerate(values))


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def is_exact(groups: Iterable[dict[str, Any]]) -> bool:
    return all(group["exactness"] == "exact" for group in groups)


def values_of(row: dict[str, Any], width: int) -> Values:
    return tuple(row[f"o{n}"] for n in range(width))


def without(data: Data, name: str, ids: Sequence[int]) -> Data:
    return {one: [row for row in rows if one != name or row[0] not in ids] for one, rows in data.items()}


class ProgramCheck:
    """One program: a frame that was written to a folder of its own."""

    def __init__(self, recorded: Recorded, name: str, run: str, frame: Frame, rng: Random, report: Report) -> None:
        self.recorded, self.name, self.run, self.frame, self.rng = recorded, name, run, frame, rng
        self.report, self.rows = report, frame.rows(recorded.data)
        self.written = Counter(row.values for row in self.rows)
        self.width = len(frame.kinds)

    def wrong(self, what: str, problem: object) -> None:
        self.report.ends_with(f"{self.name} {what}", problem, self.frame.text)

    def check(self) -> None:
        found = Counter(tuple(row.values()) for row in pq.read_table(self.recorded.output(self.name)).to_pylist())
        if found != self.written:
            self.wrong("rows", f"Spark has {found - self.written}, brute force {self.written - found}")
            return
        self.report.counts["programs"] += 1
        values = sorted(self.written, key=repr)
        for one in self.rng.sample(values, min(3, len(values))):
            self._back(one)
        rows = [(name, row[0]) for name in "rst" for row in self.recorded.data[name]]
        for token in self.rng.sample(rows, 4):
            self._forward(token)
        for _ in range(2):
            self._replay()

    def _back(self, values: Values) -> None:
        expected = union(row.trace for row in self.rows if row.values == values)
        code, text = self.recorded.command(
            "trace", "back", self.recorded.output(self.name), "--where", condition(values), "--limit", "100000"
        )
        self.report.counts["back"] += 1
        if code:
            self.wrong(f"back {values}", text)
            return
        answer = json.loads(text)
        exact, found = is_exact(answer["inputs"]), tokens(answer["inputs"])
        self.report.counts["back, superset"] += not exact
        if (found != expected) if exact else not expected <= found:
            self.wrong(f"back {values} exact={exact}", f"more {found - expected} less {expected - found}")
        if exact and answer["selected"] != self.written[values]:
            self.wrong(f"back {values}", f"{answer['selected']} selected of {self.written[values]}")

    def _forward(self, token: tuple[str, int]) -> None:
        name, number = token
        expected = Counter(row.values for row in self.rows if token in row.trace)
        words = ("--where", f"id = {number}", "--run", self.run, "--limit", "100000")
        code, text = self.recorded.command("trace", "forward", self.recorded.input(name), *words)
        if code == 2 and "read" in text:  # the run did not read it
            if expected:
                self.wrong(f"forward {token}", text)
            return
        self.report.counts["forward"] += 1
        if code:
            self.wrong(f"forward {token}", text)
            return
        groups = json.loads(text)["outputs"]
        found = Counter(values_of(row, self.width) for group in groups for row in group["rows"])
        exact = is_exact(groups)
        self.report.counts["forward, superset"] += not exact
        if (found != expected) if exact else (expected - found):
            self.wrong(f"forward {token} exact={exact}", f"more {found - expected} less {expected - found}")

    def _replay(self) -> None:
        name = self.rng.choice("rst")
        ids = self.rng.sample([row[0] for row in self.recorded.data[name]], self.rng.randint(1, 2))
        expected = Counter(row.values for row in self.frame.rows(without(self.recorded.data, name, ids)))
        where = f"id IN ({', '.join(map(str, ids))})"
        code, text = self.recorded.command(
            "replay", self.run, "--without", self.recorded.input(name), "--where", where, "--limit", "100000"
        )
        if code == 2 and ("nothing that is called" in text or "did not read" in text):
            if expected != self.written:
                self.wrong(f"replay without {name} {ids}", text)
            return
        self.report.counts["replays"] += 1
        if not text.startswith("{"):
            self.wrong(f"replay without {name} {ids}", text)
            return
        answer = json.loads(text)
        found = Counter(self.written)
        for row in answer["gone"]["rows"]:
            found[values_of(row, self.width)] -= 1
        for row in answer["changed"]["rows"]:
            found[values_of(row["before"], self.width)] -= 1
            found[values_of(row["after"], self.width)] += 1
        for row in answer["new"]["rows"]:
            found[values_of(row, self.width)] += 1
        if +found != expected or min(found.values(), default=0) < 0:
            self.wrong(f"replay without {name} {ids}", f"{found} instead of {expected}; {answer['doubts']}")


class ChainCheck:
    """One chain of writes, with a store of its own."""

    def __init__(self, recorded: Recorded, name: str, writes: Sequence[Write], rng: Random, report: Report) -> None:
        self.recorded, self.name, self.writes, self.rng, self.report = recorded, name, writes, rng, report
        self.rows = [write.frame.rows(recorded.data) for write in writes]
        self.run_of: dict[str, int] = {}
        self.tokens: dict[tuple[str, int], str] = {}

    def wrong(self, what: str, problem: object) -> None:
        steps = "; ".join(f"{each.mode} {each.dataset} of {each.frame.text}" for each in self.writes)
        self.report.ends_with(f"{self.name} {what}", problem, steps)

    def check(self) -> None:
        if not self._as_written():
            return
        self.report.counts["chains"] += 1
        self.report.counts.update(f"{write.mode} writes" for write in self.writes)
        last = sorted({row.values for row in self.rows[-1]}, key=repr)
        for values in self.rng.sample(last, min(3, len(last))):
            self._back(values)
        rows = [(name, row[0]) for name in "rst" for row in self.recorded.data[name]]
        for token in self.rng.sample(rows, 4):
            self._forward(token)
        for token in self.rng.sample(sorted(self.tokens), min(3, len(self.tokens))):
            self._deleted(token)

    def _as_written(self) -> bool:
        """Whether Spark left the rows that brute force has, so that the two mean the same."""
        numbers = sorted(self.recorded.runs, key=lambda each: int(each[1].rpartition("/")[2]))
        self.run_of = {run: number for number, (_, run) in enumerate(numbers)}
        for dataset, rows in contents(self.writes, self.recorded.data).items():
            read = pq.read_table(self.recorded.output(dataset), partitioning="hive").to_pylist()
            found = Counter(_read_values(row) for row in read)
            expected = Counter(row.values for row in rows)
            if found != expected or len(numbers) != len(self.writes):
                self.wrong("rows", f"of {dataset}: {found - expected} / {expected - found}, runs {numbers}")
                return False
        return True

    def _back(self, values: Values) -> None:
        expected = union(row.trace for row in self.rows[-1] if row.values == values)
        last = max(self.run_of, key=self.run_of.__getitem__)
        words = ("--run", last, "--all-runs", "--limit", "100000", "--where", condition(values))
        code, text = self.recorded.command("trace", "back", self.recorded.output(self.writes[-1].dataset), *words)
        self.report.counts["back"] += 1
        if code not in (0, 3) or not text.startswith("{"):
            self.wrong(f"back {values}", text)
            return
        answer = json.loads(text)
        groups = [group for each in (answer, *answer["hops"]) for group in each["inputs"]]
        self._compared(f"back {values}", tokens(groups), expected, groups, code)
        for group in groups:
            if "/in/" in group["dataset"]:
                table = group["dataset"].rpartition("/")[2]
                self.tokens |= {(table, row["id"]): row["_id"] for row in group["rows"]}
        ids = [row["_id"] for group in groups for row in group["rows"]]
        if len(ids) != len(set(ids)):
            self.wrong(f"back {values}", f"rows are listed several times: {Counter(ids).most_common(3)}")

    def _compared(self, what: str, found: Any, expected: Any, groups: Sequence[dict[str, Any]], code: int) -> None:
        exact = is_exact(groups)
        if code == 3:  # files that were written again: the answer says that rows may be missing
            self.report.counts[f"{what.split()[0]}, incomplete"] += 1
            return
        self.report.counts[f"{what.split()[0]}, superset"] += not exact
        more, less = found - expected, expected - found
        if (more or less) if exact else less:
            self.wrong(f"{what} exact={exact}", f"more {more} less {less}")

    def _forward(self, token: tuple[str, int]) -> None:
        name, number = token
        words = ("--where", f"id = {number}", "--all-runs", "--limit", "100000")
        code, text = self.recorded.command("trace", "forward", self.recorded.input(name), *words)
        if code == 2 and "no records of a run that read" in text:
            return
        self.report.counts["forward"] += 1
        if code not in (0, 3) or not text.startswith("{"):
            self.wrong(f"forward {token}", text)
            return
        answer = json.loads(text)
        for number, rows in enumerate(self.rows):
            parts = [each for each in (answer, *answer["hops"]) if self.run_of[each["run"]] == number]
            groups = [group for each in parts for group in each["outputs"]]
            if len(parts) > 1:
                self.wrong(f"forward {token}", f"write {number} is listed {len(parts)} times")
            expected = Counter(row.values for row in rows if token in row.trace)
            found = Counter(values_of(row, 3) for group in groups for row in group["rows"])
            self._compared(f"forward {token} to {number}", found, expected, groups, code)

    def _deleted(self, token: tuple[str, int]) -> None:
        """The chain without an input row: what is left in each dataset, unless the answer says that it is not known."""
        name, number = token
        code, text = self.recorded.command("whatif", "delete", self.tokens[token], "--run", self._application())
        self.report.counts["deletions"] += 1
        if code:
            self.wrong(f"without {token}", text)
            return
        after = contents(self.writes, without(self.recorded.data, name, [number]))
        answer = json.loads(text)
        noted = {note.partition(":")[0] for note in answer.get("notes", ())}
        for dataset, rows in after.items():
            own = [each for one, each in answer["relations"].items() if one.partition(".")[0] == dataset]
            if dataset in noted:  # the answer says that rows are among it that a later write replaced
                self.report.counts["deletions, replaced partitions"] += 1
                continue
            problem = contradiction(own, Counter(row.values for row in rows))
            if problem:
                self.wrong(f"without {token}", f"{dataset}: {problem}")
            self.report.counts["deletions, unknown rows"] += any(map(has_unknown, own))

    def _application(self) -> str:
        return next(iter(self.run_of)).rpartition("/")[0]


def has_unknown(relation: dict[str, Any]) -> bool:
    return relation["gains_possible"] or any(row["status"] == "unknown" for row in relation["tuples"])


def contradiction(relations: Sequence[dict[str, Any]], left: Counter[Values]) -> str:
    """What the rows of a dataset after a deletion contradict of an answer; empty if nothing."""
    rest, missing = Counter(left), []
    for relation in relations:
        order = sorted(range(3), key=relation["columns"].__getitem__)  # a partition's column is the last
        for row in relation["tuples"]:
            if row["status"] in ("kept", "recomputed"):
                values = tuple(row["after"][n] for n in order)
                missing += [] if rest[values] else [values]
                rest[values] -= 1
        rest -= Counter(tuple(row[n] for n in order) for row in relation["gains"])
    unknown = any(map(has_unknown, relations))
    if missing:
        return f"{missing} are not left"
    return "" if unknown or not +rest else f"{+rest} are left, and not in the answer"


def _read_values(row: dict[str, Any]) -> Values:
    """The values of a row that pyarrow read of a partitioned folder."""
    return tuple(None if row[f"o{n}"] in (None, "__HIVE_DEFAULT_PARTITION__") else row[f"o{n}"] for n in range(3))


def programs(
    seeds: Iterable[int], folder: Path, spark: Any, report: Report, operators: Sequence[Any] = (), first: int = 0
) -> None:
    """Record a program a seed in one store, and check each."""
    recorded = Recorded(folder, spark, random_data(Random(first)))
    frames = {}
    for seed in seeds:
        rng = Random(seed)
        frames[f"p{seed}"] = Programs(rng, operators=operators).frame(rng.randint(1, 4))

    def writing(name: str, frame: Frame) -> Any:
        def write(session: Session) -> None:
            made = frame.build(session)
            made.toDF(*[f"o{n}" for n in range(len(frame.kinds))]).write.parquet(recorded.output(name))

        return write

    errors = recorded.record(writing(name, frame) for name, frame in frames.items())
    runs = dict(recorded.runs)
    for (name, frame), error in zip(frames.items(), errors, strict=True):
        if error is not None:
            report.counts[f"refused by Spark: {str(error)[:60]}"] += 1
            continue
        rng = Random(f"{name} {frame.text}")
        caught(report, name, frame.text, lambda: ProgramCheck(recorded, name, runs[name], frame, rng, report).check())  # noqa: B023


def chains(seeds: Iterable[int], folder: Path, spark: Any, report: Report) -> None:
    """Record a chain a seed, each in a store of its own, and check it."""
    for seed in seeds:
        rng = Random(seed)
        recorded = Recorded(folder / f"chain{seed}", spark, random_data(rng))
        writes = chain(rng)
        errors = recorded.record(write.run for write in writes)
        if any(errors):
            report.counts[f"refused by Spark: {str(next(filter(None, errors)))[:60]}"] += 1
            continue
        about = "; ".join(write.frame.text for write in writes)
        caught(report, f"chain{seed}", about, ChainCheck(recorded, f"chain{seed}", writes, rng, report).check)


def caught(report: Report, name: str, about: str, check: Any) -> None:
    """Do a check; an error is a wrong answer."""
    try:
        check()
    except Exception:
        report.ends_with(f"{name} error", traceback.format_exc()[-800:], about)


def main(arguments: Sequence[str]) -> int:
    """Check many programs or chains; print what is wrong, and the counts."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "1g")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    count, first = ([int(text) for text in arguments if not text.startswith("-")] + [0])[:2]
    total, batch = Report(), 10
    operators = [generated] if "--generators" in arguments else ()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GOVTOOL_CACHE"] = f"{folder}/cache"
        os.chdir(folder)
        for start in range(first, first + count, batch):
            seeds, place, known = (
                range(start, min(start + batch, first + count)),
                Path(folder) / str(start),
                len(total.wrong),
            )
            if "--chains" in arguments:
                chains(seeds, place, spark, total)
            else:
                programs(seeds, place, spark, total, operators, start)
            print(*total.wrong[known:], f"{seeds.stop - first} done", sep="\n", flush=True)
    print(f"{len(total.wrong)} wrong", *(f"{name}: {n}" for name, n in sorted(total.counts.items())), sep="\n  ")
    return bool(total.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
