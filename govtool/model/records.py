"""Tables of record-level provenance in a store: plans, the writes that ran them, and private values.

A plan is kept apart from what differs between its runs: the files that it read lie with the write, its literals and
the driver's rows in a table of their own. So a plan that runs every day is stored once, and private values can be
removed without touching anything else. Plans are text in the form of ``govtool.records.plan.codec``; no code is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from govtool.errors import IntegrityError
from govtool.model.parquet import of_format, read_parquet, refusing_damage, write_parquet
from govtool.names import current_id
from govtool.redaction import SECRET

PLANS = "plans"
"""The store table of plans, without file listings and private values; one fragment a plan."""
RECORD_RUNS = "record_runs"
"""The store table of writes whose rows can be traced; one fragment an application."""
PRIVATE = "private_"
"""The prefix of tables that hold private values."""
PRIVATE_VALUES = f"{PRIVATE}values"
"""The store table of literals and of rows that the driver held; one fragment an application."""
PRIVATE_POSITIONS = f"{PRIVATE}positions"
"""The store table of positions of records that a run kept (``--records=eager``)."""
RECORD_TABLES = (PLANS, RECORD_RUNS, PRIVATE_VALUES, PRIVATE_POSITIONS)
"""All tables of record-level provenance."""
FORMAT = 1
"""Version of the layout, in the Parquet metadata."""
_FORMAT_KEY = b"govtool.records"
RDD = "rdd"
"""``RecordRun.program`` of an RDD program."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan as text."""

    digest: str
    """SHA-256 of ``body``."""
    body: str


@dataclass(frozen=True, slots=True)
class RecordRun:
    """One write whose rows can be traced to its inputs."""

    run: str
    """The id of its run."""
    plan: str
    """The digest of its plan; empty: its rows cannot be traced, and ``breaks`` has the reason."""
    output: str
    """The dataset that it wrote; empty for rows that went to the driver."""
    inputs: tuple[tuple[int, str], ...]
    """Leaves of the plan that read files, with the datasets that they read."""
    listings: str
    """The files of each leaf with their ordinals, and the session, as a plan."""
    written: str = ""
    """The written files with their ordinals and schema, as a plan; empty: not known."""
    boundaries: tuple[str, ...] = ()
    """Operators at which a trace may stop."""
    breaks: tuple[str, ...] = ()
    """Reasons why parts of the plan cannot be evaluated again."""
    program: str = ""
    """``rdd``: the plan is the log of an RDD program; empty: a plan of a query."""
    positions: str = ""
    """The digest of the fragment with positions of its records; empty: none were kept."""
    private: str = ""
    """The digest of the fragment with its private values, as it was written; empty: not noted."""

    @property
    def application(self) -> str:
        """The application that the run is a part of."""
        return self.run.rpartition("/")[0] or self.run


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What the recorded plan of a run takes in a store, before compression.

    Attributes:
        plan: Bytes of the plan, or of the log of an RDD program; runs of one plan share it.
        listing: Bytes of the files that were read and written, and of the session's settings.
        private: Bytes of literals and of the driver's rows. None: they were removed.
        boundaries: What a trace stops at.
        breaks: Parts that cannot be evaluated again, with the reason.
    """

    plan: int
    listing: int
    private: int | None
    boundaries: tuple[str, ...]
    breaks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrivateValues:
    """Literals of a write's plan, and rows that its driver held."""

    run: str
    values: str
    """A JSON list, in the order of the places in the plan."""


def encode_plans(plans: Iterable[StoredPlan]) -> bytes:
    """Plans as Parquet, sorted; equal plans give equal bytes."""
    return _encoded([asdict(plan) for plan in plans], ("digest", "body"))


def decode_plans(data: bytes) -> list[StoredPlan]:
    """Read what `encode_plans` wrote.

    Raises:
        IntegrityError: It is something else, of a newer format, or another plan than its digest says. A plan from which
            ``store forget`` removed a text keeps its digest, and is not compared with it.
    """
    plans = _decoded(data, ("digest", "body"), lambda row: StoredPlan(row["digest"], row["body"]))
    for plan in plans:
        if SECRET not in plan.body and hashlib.sha256(plan.body.encode()).hexdigest() != plan.digest:
            raise IntegrityError("it is another plan than its digest says", code="store.corrupt-fragment")
    return plans


def encode_record_runs(runs: Iterable[RecordRun]) -> bytes:
    """Writes as Parquet, sorted; equal writes give equal bytes."""
    rows = [{"run": one.run, "output": one.output, "plan": one.plan, "body": _body(one)} for one in runs]
    return _encoded(rows, ("run", "output", "plan", "body"))


def decode_record_runs(data: bytes) -> list[RecordRun]:
    """Read what `encode_record_runs` wrote.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    return _decoded(data, ("run", "output", "plan", "body"), _record_run)


def encode_private(values: Iterable[PrivateValues]) -> bytes:
    """Private values as Parquet, sorted."""
    return _encoded([asdict(one) for one in values], ("run", "values"))


def decode_private(data: bytes) -> list[PrivateValues]:
    """Read what `encode_private` wrote.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    return _decoded(data, ("run", "values"), lambda row: PrivateValues(row["run"], row["values"]))


def _body(one: RecordRun) -> str:
    body = {name: value for name, value in asdict(one).items() if name not in ("run", "output", "plan")}
    for name in ("program", "positions", "private"):
        if not body[name]:
            del body[name]
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _record_run(row: dict[str, str]) -> RecordRun:
    body = json.loads(row["body"])
    if not row["plan"] and not body["breaks"]:
        raise ValueError("a write has neither a plan nor a reason why it has none")
    if body["written"] and not row["output"]:
        raise ValueError("a write left files, and names no dataset that they are of")
    return RecordRun(
        run=row["run"],
        plan=row["plan"],
        output=current_id(row["output"]),
        inputs=tuple((int(leaf), current_id(str(dataset))) for leaf, dataset in body["inputs"]),
        listings=str(body["listings"]),
        written=str(body["written"]),
        boundaries=tuple(map(str, body["boundaries"])),
        breaks=tuple(map(str, body["breaks"])),
        program=str(body.get("program", "")),
        positions=str(body.get("positions", "")),
        private=str(body.get("private", "")),
    )


def _encoded(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> bytes:
    import pyarrow as pa

    from govtool.model.arrow_arrays import texts

    schema = pa.schema([(name, pa.string()) for name in columns], metadata={_FORMAT_KEY: str(FORMAT).encode()})
    ordered = sorted(rows, key=lambda row: [row[name] for name in columns])
    arrays = [texts([row[name].encode("utf-8", "replace").decode() for row in ordered]) for name in columns]
    return write_parquet(pa.Table.from_arrays(arrays, schema=schema))


@refusing_damage("a fragment holds no records")
def _decoded(data: bytes, columns: Sequence[str], make: Callable[[dict[str, str]], _T]) -> list[_T]:
    table = of_format(read_parquet(data), _FORMAT_KEY, FORMAT, "records have")
    rows = table.select(list(columns)).to_pylist()
    if not all(isinstance(value, str) for row in rows for value in row.values()):
        raise ValueError("a value is no text")
    return [make(row) for row in rows]
