"""Attacks by length: texts of one repeated piece, at two sizes, to everything that reads what others wrote.

What takes more than twice and a half the time for twice the length grows faster than it should; see ``grown``.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from bench.attacks.rows import Row
from bench.fuzz.run import Hang, target_run
from bench.fuzz.targets import FIXTURES, TARGETS, Target

SIZES = (50_000, 100_000, 200_000)
GROWTH = 2.6
"""The most that doubling a length may cost."""
SHORT = 0.25
"""CPU seconds below which growth is not told from noise."""
LONGEST = 10.0
"""CPU seconds of the largest size."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A text of any length for one reader.

    Attributes:
        reader: The reader's name.
        name: What is repeated, for people.
        text: Gives the text of about a number of characters.
    """

    reader: str
    name: str
    text: Callable[[int], str]


def _repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit)) + after


def _numbered(unit: str, before: str = "", after: str = "", between: str = "") -> Callable[[int], str]:
    """Pieces with a number in each: many names that are alike."""

    def text(size: int) -> str:
        count = size // (len(unit) + len(between) + 3)
        return before + between.join(unit.replace("#", str(number)) for number in range(count)) + after

    return text


def _nested(opened: str, closed: str, before: str = "", after: str = "") -> Callable[[int], str]:
    def text(size: int) -> str:
        depth = size // (len(opened) + len(closed))
        return before + opened * depth + closed * depth + after

    return text


_UNITS = (
    " ", "\t", "\n", "(", ")", "[", "{", "'", '"', "`", "\\", "''", "/*", "--", "-- a\n", ";", ",", "a,", "a.", "a ",
    "-", "+", "<", "$", "$$", "#", "*", "/", "|", "=", "a=1 or ", "not ", "{{", "{%", "{#", "$a$", "\r", "\0", "é", "0",
    "9.", "1e", "\u202e",
)  # fmt: skip
"""Pieces that are repeated within every frame."""


def _framed(reader: str, *frames: tuple[str, str]) -> Iterator[Shape]:
    for before, after in frames:
        for unit in _UNITS:
            yield Shape(reader, f"{before[-30:]!r} + {unit!r} …", _repeated(unit, before, after))


def _json_text(unit: str, before: str, after: str) -> Callable[[int], str]:
    """A text within JSON."""
    return lambda size: before + json.dumps(unit * (size // len(unit)))[1:-1] + after


_EVENT = (
    '{"eventType": "COMPLETE", "eventTime": "2026-01-01T00:00:00Z", "producer": "p", "schemaURL": "s", '
    '"run": {"runId": "r"}, "job": {"namespace": "n", "name": "j", "facets": {"sql": {"query": "QUERY"}}}, '
    '"inputs": [{"namespace": "s3://b", "name": "NAME"}], "outputs": [OUTPUTS]}'
)
_OUTPUT = '{"namespace": "s3://b", "name": "o#", "facets": {"columnLineage": {"fields": {}}}}'
_NODE = '{"id": "n#", "kind": "p", "type": "st", "label": "A:#"}'
_POLICY = "version: 1\nname: p\nclasses:\n  a: {}\nclassify:\n  - class: a\n    columns: [COLUMNS]\n"


def shapes() -> Iterator[Shape]:
    """All of them."""
    for reader in ("logs", "eventlog", "templates", "plan", "selector", "where", "why", "token", "address"):
        yield from _framed(reader, ("", ""))
    yield from _framed("sql", ("select a from t where b = ", ""), ("create table x as select ", " from t;\nselect 1"))
    yield from _framed("where", ("a = '", "'"), ("land = 'de' and ", " n > 0"))
    yield from _framed("why", ("select land from users where ", ""), ("select ", " from users"))
    yield from _framed("selector", ("crm.", ".email"), ("class:", ""))
    yield from _framed("token", ("users[id='", "']"), ("file:///", "@1:0/0"))
    for unit in _UNITS:
        name = f"{unit!r} …"
        for key in ("QUERY", "NAME"):
            before, after = _EVENT.replace("OUTPUTS", "").split(key)
            yield Shape("openlineage", f"{key} + {name}", _json_text(unit, before, after))
            yield Shape("request", f"{key} + {name}", _json_text(unit, before, after))
        yield Shape("logs", f"query + {name}", _json_text(unit, '{"query": "', '"}'))
        yield Shape("logs", f"SELECT in a log + {name}", _json_text(unit, '{"query": "select a from t where ', '"}'))
        before, after = _POLICY.split("COLUMNS")
        yield Shape("policy", f"pattern + {name}", _json_text(unit, f'{before}"', f'"{after}'))
        yield Shape("policy", f"expression + {name}", _json_text(unit, f'{before}"/', f'/"{after}'))
        node = '{"nodes": [{"id": "a", "kind": "p", "type": "st", "label": "'
        yield Shape("graph", f"label + {name}", _json_text(unit, node, '"}], "edges": []}'))
        yield Shape("manifest", f"compiled code + {name}", _json_text(unit, *_manifest_frame("select ")))
        yield Shape("templates", f"expression + {name}", _repeated(unit, "select {{ ", " }} from t"))
        yield Shape("templates", f"text + {name}", _repeated(unit, "{% set a = '", "' %}select {{ a }}"))
        plan = "== Physical Plan ==\n* Project (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet\nOutput [1]: [id#9]\n"
        yield Shape("plan", f"location + {name}", _repeated(unit, f"{plan}Location: InMemoryFileIndex [", "]\n"))
    yield from _lists()


def _manifest_frame(code: str) -> tuple[str, str]:
    node = {
        "resource_type": "model", "name": "m", "schema": "s", "database": "d", "alias": "m", "unique_id": "model.p.m",
        "original_file_path": "models/m.sql", "compiled_code": f"{code}HERE", "columns": {},
        "depends_on": {"nodes": []},
    }  # fmt: skip
    text = json.dumps({"metadata": {"adapter_type": "postgres"}, "nodes": {"model.p.m": node}, "sources": {}})
    before, after = text.split("HERE")
    return before, after


def _lists() -> Iterator[Shape]:
    """Many names that are alike, and deep nesting."""
    before, after = _EVENT.split("OUTPUTS")
    yield Shape("openlineage", "outputs", _numbered(_OUTPUT, before, after, ","))
    yield Shape("openlineage", "events of one run", _repeated(_EVENT.replace("OUTPUTS", "") + "\n"))
    yield Shape(
        "openlineage", "events", lambda n: _numbered(_EVENT.replace("OUTPUTS", "").replace('"r"', '"r#"') + "\n")(n)
    )
    yield Shape("graph", "nodes", _numbered(_NODE, '{"nodes": [', '], "edges": []}', ","))
    yield Shape(
        "graph", "nodes of one label", _numbered(_NODE.replace("A:#", "A:0"), '{"nodes": [', '], "edges": []}', ",")
    )
    yield Shape("graph", "a chain", _chain)
    yield Shape("prov", "entities", _numbered('"e:#": {}', '{"prefix": {"e": "http://e/"}, "entity": {', "}}", ","))
    yield Shape("prov", "activities", _prov)
    yield Shape("prov", "prefixes", _numbered('"e#": "http://e/#"', '{"prefix": {', '}, "entity": {"e1:a": {}}}', ","))
    yield Shape("policy", "classes", _numbered("  a#: {}\n", "version: 1\nname: p\nclasses:\n"))
    columns = _POLICY.split("COLUMNS")
    yield Shape("policy", "patterns", _numbered('"a#.**"', columns[0], columns[1], ","))
    yield Shape(
        "policy", "aliases of YAML", _numbered("  a#: &b# [*b0]\n", "version: 1\nname: p\nx: &b0 []\nclasses:\n")
    )
    for kind in ("models", "sources", "tests"):
        yield Shape("manifest", kind, lambda size, kind=kind: _manifest(size, kind))  # type: ignore[misc]
    yield Shape("logs", "records", _numbered('{"query": "select a# from t", "session": "s#"}\n'))
    yield Shape(
        "logs", "records of one session", _numbered('{"query": "create temp table a# as select 1", "session": "s"}\n')
    )
    yield Shape("logs", "columns of CSV", _numbered("c#", "query,", "\nselect 1,", ","))
    yield Shape("logs", "rows of CSV", _numbered('"select # from t",a\n', "query,user\n"))
    yield Shape("logs", "lines of PostgreSQL", _numbered("2026-01-01 00:00:00 UTC [1] LOG:  statement: select #\n"))
    yield Shape("logs", "a tree of MySQL", _numbered("2026-01-01T00:00:00.0Z\t1 Query\tselect #\n"))
    yield Shape(
        "plan",
        "outputs",
        _numbered("a##1", "== Physical Plan ==\n* Project (1)\n\n\n(1) Project\nOutput [9]: [", "]\n", ", "),
    )
    yield Shape(
        "plan", "operators", _numbered("\n\n(#) Project\nOutput [1]: [a#1]\n", "== Physical Plan ==\n* Project (1)\n")
    )
    yield Shape(
        "plan",
        "a tree",
        lambda size: "\n".join(":  " * (number % 400) + "+- Project [a#1]" for number in range(size // 620)),
    )
    yield Shape("where", "alternatives", _numbered("land = 'a#'", "", "", " or "))
    yield Shape("where", "a list", _numbered("'a#'", "land in (", ")", ","))
    yield Shape("where", "parentheses", _nested("(", ")", "", "n > 0"))
    yield Shape("where", "negations", _repeated("not ", "", "n > 0"))
    yield Shape("where", "cases", _nested("case when n > 0 then ", " end", "", ""))
    yield Shape("why", "columns", _numbered("land as a#", "select ", " from users", ","))
    yield Shape("why", "arms", _numbered("select land from users", "", "", " union all "))
    yield Shape("why", "relations", _numbered("users u#", "select 1 from ", "", ","))
    yield Shape("why", "tables of WITH", _numbered("a# as (select 1 x)", "with ", " select * from a1", ","))
    yield Shape(
        "why", "queries within", lambda size: "select * from (" * (size // 30) + "select 1 x" + ") t" * (size // 30)
    )
    yield Shape("why", "a sum", _numbered("#", "select ", " from users", "+"))
    yield Shape("selector", "a union", _numbered("crm.a#"))
    yield Shape("selector", "names", _numbered("a#", "", "", " "))
    yield Shape("selector", "globs", _repeated("*a", "", "b"))
    yield Shape("selector", "a glob of classes", _repeated("[a-z]", "", "b"))
    yield Shape("selector", "an expression", _repeated("(a+)+", "/", "$/"))
    yield Shape("selector", "optional parts", _repeated("a?", "/", "$/"))
    yield Shape("sql", "columns", _numbered("a#", "create table x as select ", " from t", ","))
    yield Shape("sql", "joins", _numbered(" join t# on t#.a = t.a", "create table x as select t.a from t"))
    yield Shape("sql", "commas", _numbered("t#", "create table x as select 1 from ", "", ","))
    yield Shape("sql", "statements", _numbered("insert into a select b# from c;\n"))
    yield Shape("sql", "tables", _numbered("create table a# as select x from a1;\n"))
    yield Shape("sql", "arms", _numbered("select a# from t", "create table x as ", "", " union all "))
    yield Shape("sql", "a chain", _numbered("create view v# as select * from t#;\n"))
    yield Shape(
        "sql",
        "tables of WITH",
        _numbered("a# as (select b from t)", "create table x as with ", " select * from a1", ","),
    )
    yield Shape("sql", "parentheses", _nested("(", ")", "select ", ""))
    yield Shape("sql", "cases", _nested("case when a then ", " end", "select ", " from t"))
    yield Shape("sql", "a sum", _numbered("a#", "create table x as select ", " from t", "+"))
    yield Shape("sql", "statements that do not parse", _numbered("insert into t select a# frm (;\n"))
    yield Shape("sql", "begin", _repeated("begin ", "", ""))
    yield Shape("templates", "blocks", _repeated("{% if a %}", "", ""))
    yield Shape("templates", "blocks that end", _nested("{% if a %}", "{% endif %}"))
    yield Shape("templates", "expressions", _numbered("{{ a# }} "))
    yield Shape("templates", "loops", _repeated("{% for i in range(2) %}", "select 1", ""))
    yield Shape("templates", "filters", _repeated("|upper", "select {{ 'a'", " }}"))
    yield Shape("templates", "calls of macros in statements", _numbered("select {{ m#() }};"))
    yield Shape("templates", "calls of macros", _numbered("{{ m#() }} ", "{% macro m1() %}a{% endmacro %}"))


def _chain(size: int) -> str:
    count = size // 75
    node = {"kind": "p", "type": "op", "label": "+"}
    nodes = [{"id": 0, "kind": "p", "type": "st", "label": "A:0"}, *({"id": n, **node} for n in range(1, count))]
    return json.dumps({"nodes": nodes, "edges": [[n, n + 1] for n in range(count - 1)]})


def _prov(size: int) -> str:
    count = size // 180
    used = {f"_:u{n}": {"prov:activity": f"e:a{n}", "prov:entity": f"e:x{n}"} for n in range(count)}
    made = {f"_:g{n}": {"prov:entity": f"e:x{n + 1}", "prov:activity": f"e:a{n}"} for n in range(count)}
    return json.dumps({"prefix": {"e": "http://e/"}, "used": used, "wasGeneratedBy": made})


def _manifest(size: int, kind: str) -> str:
    before, after = _manifest_frame("select a from t")
    body = json.loads(before + after)
    node = body["nodes"].pop("model.p.m")
    count = size // 400
    if kind == "sources":
        source = {"resource_type": "source", "schema": "s", "database": "d", "columns": {"a": {"name": "a"}}}
        body["sources"] = {f"source.p.s.{n}": {**source, "name": f"t{n}", "identifier": f"t{n}"} for n in range(count)}
    for n in range(count):
        own = {**node, "name": f"m{n}", "alias": f"m{n}", "unique_id": f"model.p.m{n}"}
        own["compiled_code"] = f"select a from m{n - 1}"
        own["depends_on"] = {"nodes": [f"model.p.m{n - 1}"]}
        if kind == "tests":
            own |= {"resource_type": "test", "test_metadata": {"name": "unique", "kwargs": {"column_name": "a"}}}
        body["nodes"][f"{own['resource_type']}.p.m{n}"] = own
    return json.dumps(body)


# ---- readers that are no targets of fuzzing -------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _index() -> Any:
    from govtool.app.ingest.sql import ingest_sql
    from govtool.app.ingest.sql_options import SqlRequest
    from govtool.app.versions.index import built_index
    from govtool.store import Store

    store = Store.init("memory://")
    ingest_sql(store, SqlRequest(paths=(str(FIXTURES / "shop" / "postgres"),), dialect="postgres"))
    return built_index(store, store.resolve("HEAD"))


def _selector(data: bytes) -> object:
    from govtool.query.selection.select import select

    return select(_index(), data.decode("utf-8", "replace"))


def _where(data: bytes) -> object:
    from govtool.records.plan.expressions import Attribute
    from govtool.records.plan.from_sql import condition_from_sql
    from govtool.records.plan.types import LONG, STRING

    columns = [Attribute(1, "land", STRING, True), Attribute(2, "n", LONG, True), Attribute(3, "a", STRING, True)]
    return condition_from_sql(data.decode("utf-8", "replace"), columns)


def _why(data: bytes) -> object:
    from govtool.records.plan.from_sql import from_sql, table
    from govtool.records.plan.types import STRING, Field, Struct

    users = table("users", Struct((Field("land", STRING, True), Field("name", STRING, True))))
    return from_sql(data.decode("utf-8", "replace"), {"users": users})


def _token(data: bytes) -> object:
    from govtool.model.token import parse_token

    return parse_token(data.decode("utf-8", "replace"))


def _address(data: bytes) -> object:
    from govtool.app.workflow_runs.addresses import parse_address

    return parse_address(data.decode("utf-8", "replace"))


def _of_manifest(data: bytes) -> object:
    import tempfile
    from pathlib import Path

    from govtool.app.ingest.dbt import DbtRequest, ingest_dbt
    from govtool.store import Store

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "manifest.json").write_bytes(data)
        return ingest_dbt(Store.init("memory://"), DbtRequest(folder))


READERS = {target.name: target for target in TARGETS} | {
    name: Target(name, run, list)
    for name, run in (
        ("selector", _selector), ("where", _where), ("why", _why), ("token", _token), ("address", _address),
        ("manifest", _of_manifest),
    )
}  # fmt: skip
"""Readers by name."""


def seconds(shape: Shape, size: int) -> float:
    """CPU seconds of a reader; `LONGEST` and more where it was stopped."""
    data = shape.text(size).encode("utf-8", "surrogatepass")
    target = READERS[shape.reader]
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, LONGEST + 1)
    try:
        target_run(target, data)
    except Hang:
        pass
    except ValueError as error:  # of readers whose caller says it in another way
        if shape.reader != "token":
            raise AssertionError(f"{shape.reader}, {shape.name}") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.process_time() - began


def grown(shape: Shape) -> str:
    """What is wrong with the time that a shape takes; nothing if all is well.

    Growth counts from one size to the next, for both steps, and not where a reader refuses what is longer: a bound
    ends growth, too.
    """
    times = []
    for size in SIZES:
        times.append(seconds(shape, size))
        if times[-1] > LONGEST:
            return f"{times[-1]:.1f} s at {size:,} characters"
        if len(times) == 1 and times[0] < SHORT / 8:
            break
    if len(times) < 3:  # far from any bound: only the largest says more
        times.append(seconds(shape, SIZES[-1]))
        return (
            f"{times[-1]:.1f} s at {SIZES[-1]:,} characters, {times[0]:.2f} s before" if times[-1] > 2 * SHORT else ""
        )
    steps = [later / earlier for earlier, later in pairwise(times)]
    if times[-1] > SHORT and min(steps) > GROWTH:
        shown = ", ".join(f"{each:.2f}" for each in times)
        return f"{shown} s at {', '.join(f'{size:,}' for size in SIZES)} characters"
    return ""


def lengths(only: tuple[str, ...] = ()) -> Iterator[Row]:
    """All shapes, a row a reader."""

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, stop)
    tried: dict[str, int] = {}
    wrong: dict[str, list[str]] = {}
    for shape in shapes():
        if only and shape.reader not in only:
            continue
        if shape.reader not in tried:
            with contextlib.suppress(Exception):
                seconds(shape, 100)  # imports are not the text's
        tried[shape.reader] = tried.get(shape.reader, 0) + 1
        if problem := grown(shape):
            wrong.setdefault(shape.reader, []).append(f"{shape.name}: {problem}")
            sys.stdout.write(f"{shape.reader} · {shape.name} · {problem}\n")
            sys.stdout.flush()
    good = f"in proportion to their lengths, none over {LONGEST:.0f} s"
    for reader, count in tried.items():
        attack = f"texts of {SIZES[0] // 1000} to {SIZES[-1] // 1000} KB of a repeated piece, to `{reader}`"
        yield Row("lengths", attack, count, "; ".join(wrong.get(reader, [])) or good)
