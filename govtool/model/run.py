"""Runs: one execution of a job, what it read and wrote, with which software and settings, and what it hid from us.

What the runs say of columns are `Derivation`s whose statement names the run; a `Run` holds the rest. The terms are
those of OpenLineage (job, run, dataset, facet); software and its versions are what the "flawed software" case of
Muniswamy-Reddy, Macko and Seltzer, "Making a Cloud Provenance-Aware" (TaPP 2009) asks for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple

from govtool.model.diagnostic import Diagnostic
from govtool.model.file_listing import FileListing, listing_from, listing_value
from govtool.model.parquet import of_format, of_text, read_parquet, refusing_damage, write_parquet
from govtool.model.reproduction import Reproduction, reproduction_from, reproduction_value
from govtool.model.spread import buckets_for, number_of
from govtool.model.typed import require_types
from govtool.model.version import ContentIdentity
from govtool.names import current_id, renewed_text

RUNS = "runs"
"""The store table of runs."""
RUNS_PER_FRAGMENT = 512
"""The target size of a fragment."""
FORMAT = 1
"""Version of the layout, in the Parquet metadata."""
_FORMAT_KEY = b"govtool.runs"
KEPT_FROM = "govtool.kept-from"
"""The option of a run's input that names the dataset of which govtool itself made it, as a copy."""


class Software(NamedTuple):
    """A piece of software that a run used: ``("spark", "4.0.1")``, ``("script:etl.py", "<sha256>")``."""

    name: str
    """``spark``, ``python``, ``java``, a package's name in lower case, ``script:<name>``, ``git``."""
    version: str


class RunRecord(NamedTuple):
    """One of several records of the same execution."""

    id: str
    job: str
    how: str
    """As in `Run`."""
    source: str


@dataclass(frozen=True, slots=True)
class RunInput:
    """A dataset that a run read."""

    dataset: str
    """Canonical dataset id."""
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    identity: ContentIdentity | None = None
    """The content that was read; None: not known."""
    fields: tuple[tuple[str, str], ...] = ()
    """Column paths and their types, as the run saw them."""
    listing: FileListing | None = None
    """The files that the plan listed; None: it lists none, or they changed while the run read them."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the reader, sorted."""
    unsettled: str = ""
    """The reason why the content that was read is not known; empty where nothing speaks against the listing."""


OVERWRITES_SOME = "overwrite_some"
"""The mode of an overwrite that replaces only some partitions or rows: all else that was there stays."""


@dataclass(frozen=True, slots=True)
class RunOutput:
    """A dataset that a run wrote."""

    dataset: str
    mode: str = ""
    """``overwrite``, ``overwrite_some``, ``append``, ``errorifexists``, ``ignore``, ``merge``, ``update``, ``delete``;
    empty: not known."""
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    identity: ContentIdentity | None = None
    """The content that was left behind; None: not known."""
    fields: tuple[tuple[str, str], ...] = ()
    written: FileListing | None = None
    """The files that this write made; None: not known."""
    left: FileListing | None = None
    """All files of the dataset right after the write."""
    content: ContentIdentity | None = None
    """The files that this write made by partition folder and content, whatever they are called (kind ``content``)."""
    row_digest: str = ""
    """A digest of the rows that this write made, whatever their order and files; empty: nobody asked for it."""


class Offsets(NamedTuple):
    """The part of a stream that was read."""

    source: str
    """The source as the engine describes it: ``FileStreamSource[file:/data/in]``, ``KafkaV2[Subscribe[clicks]]``."""
    start: str
    """The position behind which reading began, as the engine writes it; empty: the beginning."""
    end: str
    """The position up to which it was read."""
    rows: int | None = None
    """Rows that were read from the source; a source that is scanned twice counts twice."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The micro-batches of a streaming query that a run processed."""

    query: str
    """The query's id, stable over restarts from the same checkpoint."""
    run: str
    """The id of this start of the query."""
    first: int
    last: int
    """Equal to ``first`` for a write of one batch."""
    offsets: tuple[Offsets, ...] = ()
    """From before the first batch to the end of the last; empty: not known."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a job."""

    id: str
    """Unique in the source: OpenLineage's run id, Spark's application id followed by ``/<execution>`` …"""
    job: str
    """The job's name, stable over its runs: script and target, a dbt node, a DAG's task."""
    status: str
    """``complete``, ``failed``, ``aborted``, ``running``, ``unknown``."""
    how: str
    """``plan``, ``plan-text``, ``openlineage``, ``declared``, ``prov``."""
    source: str = ""
    """The ingest's ``--source`` name: the unit of retraction."""
    application: str = ""
    """The larger execution that the run was part of: a Spark application, a DAG run; its runs share it."""
    user: str = ""
    started: str | None = None
    """ISO 8601, UTC."""
    ended: str | None = None
    error: str = ""
    """The reason of the failure, first line, redacted."""
    software: tuple[Software, ...] = ()
    """Sorted."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Settings that may change results, secrets redacted; sorted by key."""
    host: str = ""
    """The class of machine (``Linux-x86_64``), never its name."""
    inputs: tuple[RunInput, ...] = ()
    """Sorted by dataset."""
    outputs: tuple[RunOutput, ...] = ()
    """Sorted by dataset."""
    plan: str = ""
    """The plan or statement, normalised: ids and literals removed, so that equal work reads equal."""
    breaks: tuple[Diagnostic, ...] = ()
    """Places where lineage was lost: ``break.rdd``, ``break.foreach-batch`` …; never guessed over."""
    reproduction: Reproduction | None = None
    """Facts that a later run is compared by; None: whoever recorded the run does not know them."""
    batches: Batches | None = None
    """The batches of a streaming query; None: it is no part of one, or that is not known."""
    records: tuple[RunRecord, ...] = ()
    """The records that were joined in this run, its own first; empty: there is one. Never stored."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The run's id, and those of the records that were joined in it."""
        return tuple(dict.fromkeys((self.id, *(record.id for record in self.records))))

    @property
    def jobs(self) -> tuple[str, ...]:
        """The job's name, and those of the records that were joined in it."""
        return tuple(dict.fromkeys((self.job, *(record.job for record in self.records))))


@lru_cache(maxsize=1)
def schema() -> Any:
    """The Arrow schema of a runs table: one row per run. Columns hold what selectors search, JSON the rest."""
    import pyarrow as pa

    text, texts = pa.string(), pa.list_(pa.string())
    software = pa.list_(pa.struct([("name", text), ("version", text)]))
    fields = [("id", text), ("job", text), ("status", text), ("how", text), ("source", text), ("application", text)]
    fields += [("started", text), ("ended", text), ("inputs", texts), ("outputs", texts), ("software", software)]
    return pa.schema([*fields, ("body", text)], metadata={_FORMAT_KEY: str(FORMAT).encode()})


def encode_runs(runs: Iterable[Run]) -> bytes:
    """Runs as Parquet, sorted; equal runs give equal bytes."""
    return write_runs(runs_table(runs))


def runs_table(runs: Iterable[Run]) -> Any:
    """Runs as a ``pyarrow.Table`` of ``schema()``, in their order."""
    import pyarrow as pa

    from govtool.model.arrow_arrays import lists, texts

    found, kinds = list(runs), schema()
    names = ("id", "job", "status", "how", "source", "application", "started", "ended")
    plain = [texts([getattr(run, name) for run in found]) for name in names]
    datasets = [
        lists(map(len, parts), texts([each.dataset for part in parts for each in part]), kinds.field("inputs").type)
        for parts in ([run.inputs for run in found], [run.outputs for run in found])
    ]
    items = [item for run in found for item in run.software]
    kind = kinds.field("software").type
    named = pa.StructArray.from_arrays(
        [texts([item.name for item in items]), texts([item.version for item in items])], fields=list(kind.value_type)
    )
    software = lists((len(run.software) for run in found), named, kind)
    bodies = texts([json.dumps(_body(run), sort_keys=True) for run in found])
    return pa.Table.from_arrays([*plain, *datasets, software, bodies], schema=kinds)


def write_runs(table: Any) -> bytes:
    """Write a table of ``schema()`` as Parquet, sorted; the same for the same runs."""
    import pyarrow as pa

    from govtool.model.arrow_arrays import numbers

    names = ("started", "id", "job")
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    order = sorted(range(len(keys)), key=lambda row: (keys[row][0] or "", *keys[row][1:]))
    return write_parquet(table.take(numbers(order, pa.int64())))


def run_fragments(runs: Iterable[Run]) -> Iterator[tuple[bytes, int]]:
    """Runs as the contents of fragments, each with the number of its runs; by job, so that a run more changes one."""
    split: dict[int, list[Run]] = {}
    listed = list(runs)
    buckets = buckets_for(len(listed), RUNS_PER_FRAGMENT)
    for run in listed:
        split.setdefault(number_of(run.job) % buckets, []).append(run)
    for _, part in sorted(split.items()):
        yield encode_runs(part), len(part)


@refusing_damage("a fragment holds no runs")
def decode_runs(data: bytes) -> list[Run]:
    """Read what `encode_runs` wrote.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    table = of_text(of_format(read_parquet(data), _FORMAT_KEY, FORMAT, "runs have"), (*_IN_COLUMNS, "body"))
    if any(table.column(name).null_count for name in _NEVER_NULL):
        raise ValueError("a run lacks its id, job, status or source")
    return [_run(row) for row in table.to_pylist()]


@refusing_damage("a fragment holds no runs")
def decode_run_names(data: bytes) -> list[tuple[str, str]]:
    """The ids of the runs in what ``encode_runs`` wrote, and their applications; nothing else is read.

    Raises:
        IntegrityError: It is something else, or of a newer format.
    """
    columns = ("id", "application")
    table = of_text(of_format(read_parquet(data, columns=columns), _FORMAT_KEY, FORMAT, "runs have"), columns)
    if any(table.column(name).null_count for name in columns):
        raise ValueError("a run lacks its id or application")
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


_NEVER_NULL = ("id", "job", "status", "how", "source", "application", "body")
_IN_COLUMNS = (*_NEVER_NULL[:-1], "started", "ended")


def _body(run: Run) -> dict[str, Any]:
    """The fields without a column of their own, spelled out: ``asdict`` copies every name of every column."""
    body: dict[str, Any] = {
        "user": run.user,
        "error": run.error,
        "config": dict(run.config),
        "host": run.host,
        "inputs": [_side(one) for one in run.inputs],
        "outputs": [_side(one) for one in run.outputs],
        "plan": run.plan,
        "breaks": [asdict(note) for note in run.breaks],
        **({} if run.reproduction is None else {"reproduction": reproduction_value(run.reproduction)}),
    }
    if run.batches is not None:  # left out elsewhere: such runs read the same to versions that do not know it
        body["batches"] = {**asdict(run.batches), "offsets": [list(each) for each in run.batches.offsets]}
    return body


_OPTIONAL = frozenset({"listing", "options", "unsettled", "written", "left", "content", "row_digest"})
"""Fields of an input or output that are left out where they say nothing: stores of before have none of them."""


def _side(one: RunInput | RunOutput) -> dict[str, Any]:
    values = {item.name: getattr(one, item.name) for item in fields(one)}
    values = {name: value for name, value in values.items() if value or name not in _OPTIONAL}
    for name, value in values.items():
        if isinstance(value, FileListing):
            values[name] = listing_value(value)
        elif isinstance(value, ContentIdentity):
            values[name] = asdict(value)
    return values


def _pairs(value: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in value)


def _content(value: Mapping[str, Any] | None) -> ContentIdentity | None:
    return None if value is None else ContentIdentity(**value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "dataset": current_id,
    "identity": _content,
    "content": _content,
    "fields": _pairs,
    "options": _pairs,
    "listing": listing_from,
    "written": listing_from,
    "left": listing_from,
}
"""Readers of the fields of an input or output from JSON; the others are as they stand."""


def _note(value: Mapping[str, Any]) -> Diagnostic:
    target = value["target"] and current_id(value["target"])
    return Diagnostic(**{**value, "target": target, "candidates": tuple(value["candidates"])})


def _run(row: Mapping[str, Any]) -> Run:
    body = json.loads(row["body"])
    for side, kind in (("inputs", RunInput), ("outputs", RunOutput)):
        body[side] = tuple(
            kind(**{name: _READERS[name](value) if name in _READERS else value for name, value in item.items()})
            for item in body[side]
        )
    body["plan"] = renewed_text(body["plan"])
    if "reproduction" in body:
        body["reproduction"] = reproduction_from(body["reproduction"])
    batches = body.get("batches")
    if batches is not None:
        offsets = tuple(Offsets(*each) for each in batches["offsets"])
        body["batches"] = Batches(**{**batches, "offsets": offsets})
    body["breaks"] = tuple(map(_note, body["breaks"]))
    software = tuple(Software(item["name"], item["version"]) for item in row["software"])
    columns = {name: row[name] for name in _IN_COLUMNS} | {"job": renewed_text(row["job"])}
    run = Run(**columns, software=software, **body)
    require_types(run, (FileListing,))
    return run
