"""Random chains of writes: each reads what earlier ones wrote, and replaces it, adds to it or replaces partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from frame_programs import Programs
from program_rows import NONE, Data, Frame, Row, Session, none, renamed, scan

KINDS = ("int", "int", "str")
"""Every dataset has these columns: o0, o1, o2."""
SCHEMA = "o0 long, o1 long, o2 string"


@dataclass(frozen=True)
class Write:
    """One write of a chain.

    Attributes:
        dataset: What it writes.
        frame: Its rows.
        mode: ``overwrite``, ``append``, or ``partitions``: those that it has rows for are replaced.
        part: The column that the dataset is partitioned by.
    """

    dataset: str
    frame: Frame
    mode: str
    part: int | None = None

    def run(self, session: Session) -> None:
        frame = self.frame.build(session)
        writer = frame.toDF("o0", "o1", "o2").write
        if self.part is not None:
            session.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
            writer = writer.partitionBy(f"o{self.part}")
        writer.mode("append" if self.mode == "append" else "overwrite").parquet(f"{session.folder}/out/{self.dataset}")

    def left(self, before: list[Row], data: Data) -> list[Row]:
        """The rows of the dataset after the write."""
        own = [Row(row.values, row.trace, none(row.values)) for row in self.frame.rows(data)]
        if self.mode == "overwrite":
            return own
        if self.mode == "append":
            return before + own
        parts = {row.values[self.part] for row in own}
        return [row for row in before if row.values[self.part] not in parts] + own


def contents(writes: Sequence[Write], data: Data) -> dict[str, list[Row]]:
    """The rows of each dataset after some writes."""
    found: dict[str, list[Row]] = {}
    for write in writes:
        found[write.dataset] = write.left(found.get(write.dataset, []), data)
    return found


def chain(rng: Random, length: int = 4) -> list[Write]:
    """Some writes; each but the first reads what an earlier one left."""
    writes: list[Write] = []
    for _ in range(length):
        there = list(dict.fromkeys(write.dataset for write in writes))
        stored = [_stored(tuple(writes), name) for name in [*there, *there[-1:]]]
        inputs = [scan(name) for name in ("rst" if not writes else rng.choice("rst"))]
        programs = Programs(rng, [lambda frame=frame: frame for frame in [*stored, *stored, *inputs]])
        frame = _shaped(programs, programs.frame(rng.randint(1, 2)))
        while writes and not any(f"{name}#" in frame.text for name in there):
            frame = _shaped(programs, programs.frame(rng.randint(1, 2)))
        writes.append(_write(rng, writes, frame))
    return writes


def _write(rng: Random, writes: Sequence[Write], frame: Frame) -> Write:
    """A write to a new dataset or to one that is there, which the frame does not read."""
    there = [write for write in writes if f"{write.dataset}#" not in frame.text]
    if there and rng.random() < 0.5:
        last = rng.choice(there)
        mode = rng.choice(("overwrite", "append")) if last.part is None else rng.choice(("partitions", "append"))
        return Write(last.dataset, frame, mode, last.part)
    part = rng.choice((None, None, 0, 2))
    name = "abcdefgh"[len({write.dataset for write in writes})]
    return Write(name, frame, "overwrite" if part is None else "partitions", part)


def _stored(writes: tuple[Write, ...], name: str) -> Frame:
    """A dataset as some writes left it."""

    def build(session: Session) -> Any:
        read = session.spark.read.schema(SCHEMA).parquet(f"{session.folder}/out/{name}")
        return renamed(read.select("o0", "o1", "o2"))

    return Frame(KINDS, (True,) * 3, build, lambda data: contents(writes, data)[name], f"{name}#{len(writes)}")


def _shaped(programs: Programs, child: Frame) -> Frame:
    """A frame in the form of a dataset: columns of it, or constants where it has none of a kind."""
    columns = [programs.column(child, kind) for kind in KINDS]

    def build(session: Session) -> Any:
        functions, types = session.functions, {"int": "long", "str": "string"}
        cells = [
            functions.lit(1 if kind == "int" else "a") if i is None else functions.col(f"c{i}")
            for i, kind in zip(columns, KINDS, strict=True)
        ]
        own = [cell.cast(types[kind]).alias(f"c{n}") for n, (cell, kind) in enumerate(zip(cells, KINDS, strict=True))]
        return child.build(session).select(*own)

    def rows(data: Data) -> list[Row]:
        given = [1 if kind == "int" else "a" for kind in KINDS]
        return [
            Row(
                tuple(given[n] if i is None else row.values[i] for n, i in enumerate(columns)),
                row.there,
                tuple(NONE if i is None else row.cells[i] for i in columns),
            )
            for row in child.rows(data)
        ]

    return Frame(KINDS, (True,) * 3, build, rows, f"{child.text} as {columns}")
