"""Tables of recorded runs in which one value, type, column or row was changed, asked everything.

The run of a workflow is made once, by Spark; what is asked afterwards needs none. An answer must be that of the sound
run, or be refused with a code, or say what it does not know: another one without a word counts as a failure.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from bench.attacks.rows import Row, shown

TRIES = {"record_runs": 200, "private_values": 200, "plans": 200}
"""How many changes of a table are tried."""
POSITIONS = 400
_GONE = object()
_NO_ROWS = frozenset({"ended", "error", "mode", "program", "source"})
"""Fields of a run's text that decide about no row."""
_OF_FILES = frozenset({"relations.format", "relations.schema", "files.numbers"})
"""Fields that are compared with the files when these are read."""
_GOOD = "refused with a code, or what is not known is said; no crash"
_FACTS = b"govtool.positions.facts"
_CHILD = """
import govtool
from pyspark.sql import functions as f

BALANCES = "customer string, balance bigint"


@govtool.module("Post", {"Payments": "customer string, amount int"}, {"Accounts": BALANCES}, ["Balances", "Fresh"])
def post(payments, accounts):
    moved = payments.select("customer", f.col("amount").cast("bigint").alias("balance"))
    balances = accounts.unionAll(moved).groupBy("customer").agg(f.sum("balance").alias("balance"))
    return {"Accounts": balances, "Balances": balances, "Fresh": payments.where("amount > 5")}


@govtool.module("Alert", inputs=["Balances"], outputs=["Overdrawn"])
def alert(balances):
    return balances.where("balance < 0 or customer = 'bob'")


edges = [("post", "alert", "Balances")]
flow = govtool.Workflow("accounts", nodes={"post": post, "alert": alert}, edges=edges, keep={"post": ["Fresh"]})
"""


class Table(NamedTuple):
    """A fragment of the sound store: its source and table, and its content."""

    source: str
    table: str
    data: bytes


def made_run(folder: Path) -> Path:
    """Run the workflow in a folder; the store."""
    from govtool.api.workflow_runs import run_workflow
    from govtool.store import Store

    store = folder / "store"
    if store.exists():
        return store
    for number, rows in enumerate(("ann,3\nann,-7\nbob,9\ncid,4\n", "ann,1\nbob,6\ndan,-2\n"), 1):
        (folder / "data" / str(number)).mkdir(parents=True)
        (folder / "data" / str(number) / "Payments.csv").write_text(f"customer,amount\n{rows}")
    (folder / "accounts.py").write_text(_CHILD)
    Store.init(str(store))
    run_workflow(folder / "accounts.py", folder / "data", state=folder / "state", mode="records", store=store)
    return store


# ---- changes --------------------------------------------------------------------------------------------------------


def _leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in JSON, of lists and objects too."""
    if place:
        yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _leaves(value[key], (*place, key))


def _changed(value: Any, rng: random.Random, others: list[Any]) -> Any:
    """Another value in the place of one: of another type, mangled, or one that stands elsewhere."""
    kinds: list[Any] = [None, {}, -1, "", json.loads(json.dumps(rng.choice(others)))]
    if isinstance(value, str):
        kinds = [f"{value}x", value[:-1], *kinds, 7]
    elif isinstance(value, bool):
        kinds = [not value, *kinds]
    elif isinstance(value, int | float):
        kinds = [value + 1, value - 1, 1 << 40, *kinds]
    elif isinstance(value, list):
        kinds = [[*value, *value[-1:]], value[::-1], value[1:], [], *kinds]
    return rng.choice(kinds)


def _change_json(text: str, rng: random.Random) -> tuple[str, str]:
    """JSON of which one value is another one, or is gone; and the place."""
    body = json.loads(text)
    places = list(_leaves(body))
    if not places:
        return rng.choice(["[1]", '["x"]', "null", "{}", "[", ""]), "all"
    place = rng.choice(places)
    holder = body
    for key in place[:-1]:
        holder = holder[key]
    found = holder[place[-1]]
    inner = isinstance(found, str) and found[:1] in "{[" and len(found) > 2
    if inner and rng.random() < 0.9:
        holder[place[-1]], within = _change_json(found, rng)
        return json.dumps(body, separators=(",", ":")), f"{'.'.join(map(str, place))}:{within}"
    if rng.random() < 0.15:
        del holder[place[-1]]
    else:
        others = [_at(body, each) for each in places if isinstance(_at(body, each), type(found))]
        holder[place[-1]] = _changed(found, rng, others)
    return json.dumps(body, separators=(",", ":")), ".".join(map(str, place))


def _at(body: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        body = body[key]
    return body


def changed_table(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A fragment of which one value, type, column or row was changed, and what.

    Numbers become others, or ones of other rows.
    """
    import pyarrow as pa

    from govtool.model.parquet import read_parquet, write_parquet

    table = read_parquet(data)
    rows, names = table.to_pylist(), table.schema.names
    row, name = rng.randrange(len(rows)), rng.choice(names)
    text = rows[row][name]
    what = f"{name}[{row}]"
    kind = rng.choice(("json", "json", "json", "json", "json", "cell", "cell", "row", "column"))
    if kind == "column":
        place = names.index(name)
        column = rng.choice([pa.nulls(len(rows), pa.string()), pa.array([1] * len(rows)), pa.array([b""] * len(rows))])
        table = table.remove_column(place) if rng.random() < 0.3 else table.set_column(place, name, column)
        return write_parquet(table.replace_schema_metadata(read_parquet(data).schema.metadata)), f"column {name}"
    if kind == "row":
        rows = rng.choice([rows[:row] + rows[row + 1 :], [*rows, rows[row]], rows[::-1]])
        what = f"row {row}"
    elif kind == "json" and (text_name := next((each for each in ("body", "values") if each in names), "")):
        rows[row][text_name], place_text = _change_json(rows[row][text_name], rng)
        what = f"{text_name}[{row}].{place_text}"
    else:
        other = rows[rng.randrange(len(rows))][name]
        large = [] if table.schema.field(name).type == pa.int32() else [1 << 34, 1 << 62]
        numbers = [-1, 0, 1, 3, 64, None, other, other, *large]
        rows[row][name] = rng.choice([f"{text}x", text[:-1], "", None, other] if isinstance(text, str) else numbers)
    return write_parquet(pa.Table.from_pylist(rows, schema=table.schema)), what


# ---- questions ------------------------------------------------------------------------------------------------------

Asks = dict[str, Callable[[Any], Any]]
_MARKS = ("broken", "coarse", "damaged", "ends", "notes", "reason", "superset", "unknown", "why")
"""Words of answers about what is not known."""


def _asks(folder: Path) -> Asks:
    """The questions about rows, each of a graph."""
    run, read = "accounts", (folder / "data" / "1" / "Payments.csv").as_uri()
    (last,) = (folder / "state").resolve().glob("e000002.*/alert/Overdrawn")
    balances, ann = str(last.parents[1] / "post" / "Balances"), "customer = 'ann'"

    def token(graph: Any) -> str:
        (row,) = graph.workflow_why(run, "Fresh@1[bob]", semirings=["which"]).to_dict()["tuples"]
        return str(row["which"][0])

    return {
        "why": lambda graph: graph.workflow_why(run, "Overdrawn@2[ann]", semirings=["which"]),
        "why state": lambda graph: graph.workflow_why(run, "Post.Accounts@2", semirings=["which"]),
        "why all": lambda graph: graph.workflow_why(run, "Fresh@2", semirings=["count", "which"]),
        "delete": lambda graph: graph.workflow_delete(run, [token(graph)], mode="propagate"),
        "back": lambda graph: graph.trace_back(str(last), ann, all_runs=True),
        "forward": lambda graph: graph.trace_forward(read, ann, all_runs=True),
        "replay": lambda graph: graph.replay("accounts:alert/Overdrawn", without=[balances], where=[ann]),
        "erase": lambda graph: graph.erase_plan([f"{read}.customer=ann"], run=run),
    }


def _said(asks: Asks, tables: list[Table]) -> dict[str, Any]:
    """What is answered over a store that holds the tables, what `fsck` finds in it, and errors."""
    from govtool.api.graph import Graph
    from govtool.app.upkeep.store import check
    from govtool.errors import GovtoolError
    from govtool.store import Changes, Fragment, Store

    store = Store.init(f"memory://{uuid.uuid4().hex}")
    for source in dict.fromkeys(each.source for each in tables):
        add = tuple(Fragment(source, each.table, each.data, 1) for each in tables if each.source == source)
        store.commit(Changes((source,), add), message="m", author="a", batch=source)
    graph = Graph(store, store.resolve("HEAD"))
    found: dict[str, Any] = {}
    for name, ask in asks.items():
        try:
            found[name] = _plain(ask(graph).to_dict())
        except GovtoolError as error:
            found[name] = error
        except Exception as error:
            found[name] = f"{type(error).__name__} without a code"
            if "GOVTOOL_ATTACKED_RUN" in os.environ:  # by hand: where it was
                traceback.print_exc()
    found["fsck"] = len(check(store, anchor=None, contents=True, progress=lambda *_: None).problems)
    return found


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: value for name, value in answer.items() if name not in ("commit", "store", "seconds")}
    return answer


def _judged(sound: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """What is wrong with answers: a crash, or another answer in which no more is unknown than before."""
    for name, answer in found.items():
        if isinstance(answer, str):
            yield f"{name}: {answer}"
        elif isinstance(answer, dict) and answer != sound[name] and not _says_more(sound[name], answer):
            less = set(_texts(answer)) < set(_texts(sound[name]))
            yield f"{'less' if less else 'another answer'}{', found by fsck' if found['fsck'] else ''}"


def _texts(answer: Any) -> Iterator[str]:
    """All texts in an answer."""
    if isinstance(answer, dict | list | tuple):
        for each in answer.values() if isinstance(answer, dict) else answer:
            yield from _texts(each)
    elif isinstance(answer, str):
        yield answer


def _says_more(sound: Any, answer: Any) -> bool:
    """Return whether an answer has a reason that the sound one has not, or more of what is not known."""
    reasons = {text for text in _texts(answer) if " " in text} - set(_texts(sound))
    texts = [json.dumps(each, default=str) for each in (sound, answer)]
    return bool(reasons) or any(texts[1].count(mark) > texts[0].count(mark) for mark in _MARKS)


def tables() -> Iterator[Row]:
    """Changes of each table of a run of a workflow."""
    from govtool.store import Store

    folder = Path(os.environ.get("GOVTOOL_ATTACKED_RUN") or tempfile.mkdtemp(prefix="attacks-"))
    try:
        store = Store.open(str(made_run(folder)))
        sound = [Table(ref.source, ref.table, store.read(ref)) for ref in store.fragments(store.resolve("HEAD"))]
        yield _run_text(sound)
        with mock.patch.dict(sys.modules, {"pyspark.sql": None}):  # a JVM would take all of the time
            for name, tries in TRIES.items():
                yield _row(folder, sound, name, tries)
    finally:
        if "GOVTOOL_ATTACKED_RUN" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)


def _run_text(sound: list[Table]) -> Row:
    """Every value of the text of a workflow's run: gone, mangled, or another one that stands in it."""
    from govtool.app.workflow_runs.record_checks import require_sound, require_written
    from govtool.errors import GovtoolError
    from govtool.model.parquet import read_parquet, write_parquet
    from govtool.model.records import decode_record_runs
    from govtool.model.workflow_run import decode_workflow_runs

    (data,) = (each.data for each in sound if each.table == "workflow_runs")
    writes = [run for each in sound if each.table == "record_runs" for run in decode_record_runs(each.data)]
    table = read_parquet(data)
    (row,) = table.to_pylist()
    count, outcome = 0, Counter[str]()
    for body, field in _all_changes(row["body"]):
        count += 1
        spoilt = table.from_pylist([row | {"body": body}], schema=table.schema)
        try:
            (run,) = decode_workflow_runs(write_parquet(spoilt))
            require_sound(run)
            require_written(run, writes)
        except GovtoolError:
            continue
        except Exception as error:
            outcome[f"{type(error).__name__} without a code"] += 1
            continue
        if field not in _NO_ROWS | _OF_FILES:
            outcome[f"{field} passed"] += 1
    good = "refused as damaged, but for times, mode, program and message of the run, and types and times of files"
    return Row(
        "tables",
        "every value of the text of a workflow's run gone, mangled or another one",
        count,
        shown(outcome, good),
    )


def _all_changes(text: str) -> Iterator[tuple[str, str]]:
    """Texts of which one value is changed, each once, and the field."""
    sound = json.loads(text)
    places = list(_leaves(sound))
    texts = {value for place in places if isinstance(value := _at(sound, place), str)}
    for place in places:
        value = _at(sound, place)
        others: list[Any] = [_GONE]
        if isinstance(value, str):
            others += [f"{value}x", *sorted(texts - {value})]
        elif isinstance(value, list):
            others += [value[:-1], value[1:], [*value, *value[-1:]], []]
        elif isinstance(value, int):
            others += [value + 1, value - 1, 0, 1 << 40]
        for other in others:
            body = json.loads(text)
            holder = _at(body, place[:-1])
            if other is _GONE:
                del holder[place[-1]]
            else:
                holder[place[-1]] = other
            if body != sound and len(body.get("relations", ())) <= len(sound["relations"]):  # one listed twice is one
                yield json.dumps(body, sort_keys=True, separators=(",", ":")), _field(place)


def _field(place: tuple[Any, ...]) -> str:
    """The name of a field, without the numbers of its place."""
    names = ".".join(str(each) for each in place if isinstance(each, str))
    return "files.numbers" if names == "relations.files" and len(place) == 5 else names


def _row(folder: Path, sound: list[Table], name: str, tries: int) -> Row:
    rng, outcome, count = random.Random(name), Counter[str](), 0
    asks = _asks(folder)
    expected = _said(asks, sound)
    places = [place for place, each in enumerate(sound) if each.table == name]
    while count < tries:
        place = rng.choice(places)
        data, what = changed_table(sound[place].data, rng)
        if data == sound[place].data:
            continue
        count += 1
        spoilt = [*sound[:place], sound[place]._replace(data=data), *sound[place + 1 :]]
        for problem in _judged(expected, _said(asks, spoilt)):
            outcome[problem] += 1
            sys.stderr.write(f"{name}: {what}: {problem}\n")
    attack = (
        f"a value, type, column or row of `{name}` of a workflow's run changed, and {len(asks) + 1} questions asked"
    )
    return Row("tables", attack, count, shown(outcome, _GOOD))


def positions() -> Iterator[Row]:
    """Changes of the positions that an action of RDDs kept: a type, column, row, fact or number."""
    from bench.fuzz import programs

    sound = programs.positions_fragment()
    asks: Asks = {
        "back": lambda graph: graph.trace_back(programs.output(), "value like '%a%'", run=programs.RUN),
        "back, all runs": lambda graph: graph.trace_back(programs.output(), "true", run=programs.RUN, all_runs=True),
        "forward": lambda graph: graph.trace_forward(programs.source(), "value = 'a'", run=programs.RUN),
        "erase": lambda graph: graph.erase_plan([f"{programs.source()}.value=a"], run="app-1"),
    }
    rng, outcome, count = random.Random(1), Counter[str](), 0
    with mock.patch.dict(sys.modules, {"pyspark.sql": None}):
        expected = _said(asks, _tables(sound))
        while count < POSITIONS:
            data, what = changed_positions(sound, rng)
            if data == sound:
                continue
            count += 1
            for problem in _judged(expected, _said(asks, _tables(data))):
                outcome[problem] += 1
                sys.stderr.write(f"positions: {what}: {problem}\n")
    attack = (
        f"positions that an action of RDDs kept: a type, column, row, fact or number changed, {len(asks) + 1} questions"
    )
    yield Row(
        "rdd positions", attack, count, shown(outcome, "refused with a code, or what is not known is said; no crash")
    )


def _tables(data: bytes) -> list[Table]:
    from bench.fuzz import programs

    return [Table(*each) for each in programs.tables(data)]


def changed_positions(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Positions of which a pair, or one of the facts in the metadata, is another one."""
    from govtool.model.parquet import read_parquet, write_parquet

    if rng.random() < 0.5:
        return changed_table(data, rng)
    table = read_parquet(data)
    facts, where = _change_json(table.schema.metadata[_FACTS].decode(), rng)
    metadata = {**table.schema.metadata, _FACTS: facts.encode()}
    return write_parquet(table.replace_schema_metadata(metadata)), f"facts.{where}"
