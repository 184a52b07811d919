"""The steps of the local engine, run by Spark's executors on rows of exchanges.

Statements stay with the executors. The driver sees counts, the worst diagnostics, the most frequent failures and where
fragments are.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from govtool.app.ingest.logs import parts, steps
from govtool.app.ingest.logs.exchange import ExchangeRow
from govtool.app.ingest.logs.parts import Findings

if TYPE_CHECKING:
    from govtool.capture.logs.dedup import DistinctStatement, NameContext
    from govtool.capture.logs.read import LogOptions
    from govtool.capture.logs.scripts import Ordered
    from govtool.capture.logs.sessions import StatementIdentity, StatementRuns
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.resolve.knowledge import Knowledge
    from govtool.capture.sql.resolve.logged import LoggedScript

CHUNK = 500
"""Derivations of one row; a row has to fit into a batch."""
PIECE = 1 << 20
"""Bytes of one row of something that is larger."""


# -- what rows hold ----------------------------------------------------------------------------------------------------


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _statement(statement: DistinctStatement) -> bytes:
    return _json([statement.text, statement.fingerprint, statement.dialect, bool(statement.effects)])


def _distinct(data: bytes) -> DistinctStatement:
    from govtool.capture.logs.dedup import DistinctStatement
    from govtool.capture.logs.effects import effects

    text, fingerprint, dialect, acts = json.loads(data)
    return DistinctStatement(text, fingerprint, dialect, effects(text, dialect) if acts else ())


def _name(identity: StatementIdentity) -> str:
    return f"{identity.fingerprint} {identity.dialect}"


def _identity(name: str) -> StatementIdentity:
    from govtool.capture.logs.sessions import StatementIdentity

    fingerprint, _, dialect = name.partition(" ")
    return StatementIdentity(fingerprint, dialect)


def _hash(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def _context(value: list[Any]) -> NameContext:
    from govtool.capture.logs.dedup import NameContext

    catalog, schema, path = value
    return NameContext(catalog, schema, tuple(path))


def _runs(value: list[Any]) -> StatementRuns:
    from govtool.capture.logs.sessions import StatementRuns

    order, name, file, line, spans, count, first, last, users = value
    return StatementRuns(order, name, file, line, spans, count, float(first), float(last), set(users))


def _run_values(runs: StatementRuns) -> list[Any]:
    # Infinite times are no JSON.
    return [runs.order, runs.session, runs.file, runs.line, runs.spans, runs.count, str(runs.first), str(runs.last),
            sorted(runs.users)]  # fmt: skip


def _script(script: LoggedScript) -> bytes:
    return _json([script.session, script.dialect, [list(asdict(s).values()) for s in script.statements]])


def script_in(data: bytes) -> LoggedScript:
    """The script that a row holds."""
    from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement

    session, dialect, statements = json.loads(data)
    made = []
    for value in statements:
        value[6] = tuple(value[6])  # the search path
        made.append(LoggedStatement(*value))
    return LoggedScript(session, tuple(made), dialect)


def _split(kind: str, data: bytes) -> Iterator[ExchangeRow]:
    for number in range(0, len(data) or 1, PIECE):
        yield ExchangeRow(0, kind, "", number, data[number : number + PIECE])


# -- reading -----------------------------------------------------------------------------------------------------------


def survey_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """Spans to what they hold."""
    from govtool.capture.logs.pieces import ByteSpan

    for row in rows:
        found = steps.survey_or_problem(ByteSpan(*json.loads(row.data)))
        if isinstance(found, str):
            yield ExchangeRow(0, "problem", found, row.number, b"")
        else:
            yield ExchangeRow(0, "survey", found.digest, row.number, str(found.lines).encode())


def read_step(rows: Iterator[ExchangeRow], how: LogOptions, only: bool, sessions: int) -> Iterator[ExchangeRow]:
    """Pieces to parts of a log by session, statements, and everything else."""
    from govtool.capture.logs.collected_bytes import dump
    from govtool.capture.logs.dedup import Log
    from govtool.capture.logs.pieces import ByteSpan, Piece
    from govtool.capture.logs.sessions import StatementIdentity
    from govtool.capture.logs.split import ORDER_BITS, split

    for row in rows:
        span, line, whole, size = json.loads(row.data)
        collected = steps.collect_piece(Piece(ByteSpan(*span), line, whole, size), how, only=only)
        log = collected.log
        for part, some in split(log, row.number, sessions):
            yield ExchangeRow(part, "log", "", row.number, dump(type(collected)(some)))
        for number, statement in enumerate(log.statements):
            name = _name(StatementIdentity(statement.fingerprint, statement.dialect))
            yield ExchangeRow(_hash(name), "text", name, (row.number << ORDER_BITS) + number, _statement(statement))
        collected.log = Log(withheld=log.withheld, counts=log.counts)
        yield ExchangeRow(0, "about", "", row.number, dump(collected))


def about_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """Return what was read, without records and statements: of all pieces together."""
    from govtool.capture.logs.collected_bytes import Collected, dump, load
    from govtool.capture.logs.dedup import LogCollector

    collector = LogCollector(str)
    whole = Collected(collector.log)
    for row in sorted(rows, key=lambda row: row.number):
        steps.absorb(collector, whole, load(row.data))
    found = steps.withheld_findings((reason, item) for (reason, _), item in collector.log.withheld.items())
    collector.log.withheld = {}
    yield ExchangeRow(0, "about", "", 0, dump(whole))
    yield ExchangeRow(0, "findings", "", 0, parts.dump(parts.LogPart(found, parts.table_of(()))))


# -- sessions ----------------------------------------------------------------------------------------------------------


def needed_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """Return the statements whose texts are needed to fold the sessions of a part."""
    from govtool.capture.logs.collected_bytes import load
    from govtool.capture.logs.dedup import LogCollector
    from govtool.capture.logs.split import needed

    for part, some in groupby(sorted(rows, key=lambda row: (row.part, row.number)), key=lambda row: row.part):
        collector = LogCollector(str)
        for row in some:
            collector.absorb(load(row.data).log)
        for identity in needed(collector.log):
            yield ExchangeRow(part, "need", _name(identity), 0, b"")


def fold_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """Parts of a log by session, with the texts that are needed, to runs of statements and episodes."""
    from govtool.capture.logs.collected_bytes import load
    from govtool.capture.logs.dedup import LogCollector
    from govtool.capture.logs.sessions import find
    from govtool.capture.logs.split import supply

    ordered = sorted(rows, key=lambda row: (row.part, row.kind, row.number))
    for _, group in groupby(ordered, key=lambda row: row.part):
        collector = LogCollector(str)
        texts: dict[StatementIdentity, DistinctStatement] = {}
        for row in group:
            if row.kind == "log":
                collector.absorb(load(row.data).log)
            else:
                texts[_identity(row.name)] = _distinct(row.data)
        log = collector.log
        supply(log, texts)
        found = find(collector)
        for (identity, context), runs in found.alone.items():
            name = _name(identity)
            yield ExchangeRow(
                _hash(name), "alone", name, runs.order, _json([context_values(context), _run_values(runs)])
            )
        for signature, several in found.episodes.items():
            where = [[*identity, *context_values(context)] for identity, context in signature]
            statements = [json.loads(_statement(texts[identity])) for identity, _ in signature]
            name = hashlib.blake2b(_json(where), digest_size=16).hexdigest()
            value = [statements, where, [_run_values(runs) for runs in several]]
            yield ExchangeRow(_hash(name), "episode", name, several[0].order, _json(value))
        catalogs = sorted({context.catalog for context in log.contexts if context.catalog})
        users = [user for user in log.users if user]
        counts = {"sessions": found.sessions, "rolled_back": found.rolled_back, "scripts": found.parts}
        yield ExchangeRow(0, "folded", "", 0, _json({**counts, "catalogs": catalogs[:2], "users": users}))


def context_values(context: NameContext) -> list[Any]:
    """A context as JSON values."""
    return [context.catalog, context.schema, context.search_path]


def folded_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """The counts of all folds together."""
    counts = dict.fromkeys(("sessions", "rolled_back", "scripts"), 0)
    catalogs: set[str] = set()
    users: set[str] = set()
    for row in rows:
        fold = json.loads(row.data)
        for name in counts:
            counts[name] += fold[name]
        catalogs.update(fold["catalogs"])
        users.update(fold["users"])
    yield ExchangeRow(0, "folded", "", 0, _json({**counts, "catalogs": sorted(catalogs)[:2], "users": len(users)}))


def scripts_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """Runs of statements, and their texts, to scripts: definitions, and queries numbered for their groups."""
    from govtool.capture.logs.scripts import alone_in

    texts: dict[str, DistinctStatement] = {}
    contexts: dict[str, dict[NameContext, StatementRuns]] = {}
    for row in rows:
        if row.kind == "text":
            texts[row.name] = _distinct(row.data)
            continue
        statement, values = json.loads(row.data)
        context, runs = _context(statement), _runs(values)
        known = contexts.setdefault(row.name, {}).setdefault(context, runs)
        if known is not runs:
            known.merge(runs)
    for name, several in contexts.items():
        yield from _ordered_rows(alone_in(texts[name], several))


def episodes_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """Equal episodes of several parts to one script each."""
    from govtool.capture.logs.scripts import episode

    found: dict[str, tuple[list[tuple[DistinctStatement, NameContext]], list[StatementRuns]]] = {}
    for row in rows:
        texts, where, values = json.loads(row.data)
        runs = [_runs(value) for value in values]
        known = found.get(row.name)
        if known is None:
            statements = [
                (_distinct(_json(statement)), _context(place[2:]))
                for statement, place in zip(texts, where, strict=True)
            ]
            found[row.name] = (statements, runs)
        else:
            for mine, theirs in zip(known[1], runs, strict=True):
                mine.merge(theirs)
    yield from _ordered_rows(episode(*known) for known in found.values())


def _ordered_rows(scripts: Iterable[Ordered]) -> Iterator[ExchangeRow]:
    for order, reads, script in scripts:
        kind = "query" if reads else "definition"
        yield ExchangeRow(steps.group_of(script, 1 << 32) if reads else 0, kind, "", order, _script(script))


# -- resolving ---------------------------------------------------------------------------------------------------------


def definitions_step(rows: Iterator[ExchangeRow], settings: Options) -> Iterator[ExchangeRow]:
    """Resolve all definitions, to fragments for the store and knowledge for the queries."""
    from govtool.capture.logs.scripts import Ordered, named

    scripts = named(Ordered(row.number, False, script_in(row.data)) for row in rows)
    part, knowledge = steps.resolve_definitions(scripts, settings)
    yield from _part_rows(part)
    yield from _split("knowledge", knowledge.to_json().encode())


def queries_step(rows: Iterator[ExchangeRow], settings: Options, final: bool) -> Iterator[ExchangeRow]:
    """Resolve queries, with the knowledge of the definitions."""
    from govtool.capture.sql.resolve.knowledge import Knowledge, usage_of_value

    context: dict[str, dict[int, bytes]] = {"knowledge": {}, "usage": {}}
    queries: dict[int, list[tuple[int, LoggedScript]]] = {}
    for row in rows:
        if row.kind in context:
            context[row.kind][row.number] = row.data
        else:
            queries.setdefault(row.part, []).append((row.number, script_in(row.data)))
    if not queries:
        return
    knowledge: Knowledge = Knowledge.from_json(_joined(context["knowledge"]))
    if context["usage"]:
        knowledge = knowledge.with_usage(usage_of_value(json.loads(_joined(context["usage"]))))
    for group in sorted(queries):
        ordered = sorted(queries.pop(group), key=lambda pair: pair[0])
        orders = {script.session: order for order, script in ordered}
        part, left = steps.resolve_queries([script for _, script in ordered], settings, knowledge, final=final)
        for script in left:
            yield ExchangeRow(steps.group_of(script, 1 << 32), "again", "", orders[script.session], _script(script))
        yield from _split("usage", _json(part.more.pop("usage")))
        yield from _part_rows(part)


def _joined(pieces: dict[int, bytes]) -> str:
    return b"".join(pieces[number] for number in sorted(pieces)).decode()


def usage_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """The usage that groups show: of all together."""
    from govtool.capture.sql.resolve.knowledge import merge_usage, usage_of_value, usage_to_value

    def shown() -> Iterator[dict[str, frozenset[str]]]:
        held = b""
        for row in rows:  # the pieces of one group come one behind the other
            held = row.data if row.number == 0 else held + row.data
            try:
                yield usage_of_value(json.loads(held))
            except ValueError:
                continue

    yield from _split("usage", _json(usage_to_value(merge_usage(shown()))))


def _part_rows(part: parts.LogPart) -> Iterator[ExchangeRow]:
    table = part.table
    empty = table.slice(0, 0)
    yield ExchangeRow(0, "findings", "", 0, parts.dump(parts.LogPart(part.findings, empty)))
    for start in range(0, table.num_rows, CHUNK):
        some = table.slice(start, CHUNK).combine_chunks()
        yield ExchangeRow(0, "table", "", start, parts.dump(parts.LogPart(Findings(), some)))


def findings_step(rows: Iterator[ExchangeRow]) -> Iterator[ExchangeRow]:
    """All findings together, as little of them as is kept, and how many datasets and columns there are."""
    whole = Findings()
    for row in rows:
        whole.add(parts.findings_in(row.data)[0])
    sizes = {"datasets": len(whole.datasets), "columns": len(whole.columns)}
    whole.datasets, whole.columns = set(), set()
    yield ExchangeRow(0, "findings", "", 0, parts.dump(parts.LogPart(parts.kept(whole), parts.table_of(()), sizes)))


# -- writing -----------------------------------------------------------------------------------------------------------


def place_step(rows: Iterator[ExchangeRow], ranges: int) -> Iterator[ExchangeRow]:
    """Derivations to the range of buckets that each belongs to."""
    import numpy as np

    width = (1 << 32) // ranges
    for row in rows:
        table = parts.table_in(row.data)
        bounds = np.searchsorted(table.column(parts.PLACE).to_numpy(), np.arange(ranges + 1, dtype=np.uint64) * width)
        for number, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            if end > start:
                some = table.slice(start, end - start).combine_chunks()
                yield ExchangeRow(number, "table", "", 0, parts.dump(parts.LogPart(Findings(), some)))


def write_step(
    rows: Iterator[ExchangeRow], uri: str, store_id: str, source: str, buckets: int, ranges: int
) -> Iterator[ExchangeRow]:
    """Ranges of buckets to fragments in the store; what comes out says which."""
    from govtool.errors import StoreError
    from govtool.model.columnar import DERIVATIONS
    from govtool.store import Fragment, Store

    store = Store.open(uri)
    if store.store_id != store_id:
        raise StoreError(
            "what an executor finds there is another store",
            location=uri,
            hint="--store with a place that all machines see, such as s3://bucket/store",
        )
    step = buckets // ranges
    tables: dict[int, list[Any]] = {}
    for row in rows:
        tables.setdefault(row.part, []).append(parts.table_in(row.data))
    for number in sorted(tables):
        made = parts.bucketed(tables.pop(number), number * step, (number + 1) * step, buckets)
        for data, count, columns in made:
            ref = store.upload(Fragment(source, DERIVATIONS, data, count))
            yield ExchangeRow(number, "fragment", ref.sha256, columns, _json([ref.size, ref.rows]))
