"""Policies and graphs for tests: a policy from a few lines of YAML, a graph from SQL, random graphs with cycles."""

from __future__ import annotations

from datetime import date
from textwrap import dedent

from hypothesis import strategies as st

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.graph.index import Index
from govtool.model import ColumnRef, Counted, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.policy.classes.governed import govern
from govtool.policy.files.document import parse_document
from govtool.policy.files.load import first_of, mistakes, validated
from govtool.policy.files.policy_set import PolicySet
from govtool.policy.rules.check import CheckResult, check

TODAY = date(2026, 11, 21)
HEAD = "version: 1\nname: test\n"


def policy(text: str, file: str = "p.yml") -> PolicySet:
    """A policy from its YAML without the first two lines."""
    problems = []
    found = validated(parse_document(HEAD + dedent(text), file), problems)
    problems = problems or list(mistakes([found]))
    if problems:
        raise first_of(problems)
    return PolicySet((found,))


def sql(text: str, schema: dict | None = None, dialect: str = "postgres") -> Index:
    """The graph of some SQL."""
    options = Options(dialect=dialect, schema=schema_from_mapping(schema or {}, dialect))
    return index_of(extract([Script("t.sql", text)], options).derivations)


def checked(index: Index, policies: PolicySet, today: date = TODAY, base: Index | None = None) -> CheckResult:
    """The outcome of a check."""
    before = None if base is None else govern(base, policies, today)
    return check(govern(index, policies, today), today, before)


def reported(result: CheckResult) -> list[tuple[str, str, str]]:
    """Rule, column and verdict of each finding."""
    return [(f.rule, f.column, f.verdict.label) for f in result.findings]


DATASETS = ("a", "b", "c", "d", "t1")
PATHS = ("x", "y", "s", "s.f", "s.g", "s.f.h")
FUNCTIONS = ((), ("lower",), ("tokenize",), ("sha2",), ("detokenize",), ("lower", "tokenize", "sha2"))
AGGREGATES = (("count",), ("max",), ("lower", "count"))
CLASSES = ("p.contact", "p.id", "h")

MASKS = """
classes:
  p: {}
  p.contact: {}
  p.id: {entropy: low}
  h: {}
  pseudo: {}
declassify:
  - {name: keyed, kind: mask, functions: [tokenize], from: [p.contact, h], to: pseudo}
  - {name: hashed, kind: mask, functions: ["@hash"], from: [p, pseudo], to: pseudo}
  - {name: k, kind: aggregate, functions: [count], from: [p, pseudo], to: none, min_group_size: 5}
"""


@st.composite
def random_edge(draw) -> Edge:
    source, path, shape = draw(st.sampled_from(DATASETS)), draw(st.sampled_from(PATHS)), draw(st.integers(0, 10))
    if shape == 0:
        return Edge(ColumnRef(source, "*"), "*", EdgeKind.READ)
    if shape in (1, 10):
        ends = draw(st.sampled_from([("*", "*"), (path, "*"), ("*", "x"), ("*", "y"), (path, "y")]))
        return Edge(ColumnRef(source, ends[0]), ends[1], EdgeKind.OPAQUE, reason="opaque")
    if shape == 2:
        kind = draw(st.sampled_from([EdgeKind.JOIN, EdgeKind.FILTER, EdgeKind.UNION_ALL]))
        return Edge(ColumnRef(source, path), "*", kind)
    target = draw(st.sampled_from(PATHS))
    if shape == 3:
        return Edge(ColumnRef(source, path), target, draw(st.sampled_from([EdgeKind.CONDITIONAL, EdgeKind.WINDOW])))
    if shape == 4:
        return Edge(ColumnRef(source, path), target, EdgeKind.AGGREGATION, draw(st.sampled_from(AGGREGATES)))
    functions = draw(st.sampled_from(FUNCTIONS))
    return Edge(ColumnRef(source, path), target, EdgeKind.TRANSFORMATION if functions else EdgeKind.IDENTITY, functions)


@st.composite
def random_graph(draw) -> list[Derivation]:
    """Derivations with cycles, structs, masks, aggregates with and without a threshold, opaque edges."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        target = draw(st.sampled_from(DATASETS))
        columns = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=3))
        least, joined = draw(st.sampled_from([None, 3, 5, 20])), draw(st.booleans())
        statement = Statement(
            f"f{number}",
            "insert",
            "postgres",
            f"{number}.sql",
            min_group=least,
            min_group_of=() if least is None else (Counted(least, "rows", joined=joined),),
        )
        found.append(
            Derivation(
                target,
                "temporary" if target.startswith("t") else "table",
                "append",
                statement,
                tuple(OutputColumn(c) for c in columns),
                edges=tuple(draw(st.lists(random_edge(), max_size=5))),
            )
        )
    return found


@st.composite
def random_seeds(draw, index: Index) -> dict[int, tuple[str, ...]]:
    """Classes of some columns."""
    columns = [n for n in range(index.node_count) if not index.is_rows(n)]
    if not columns:
        return {}
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True))
    return {n: tuple(draw(st.lists(st.sampled_from(CLASSES), min_size=1, unique=True))) for n in chosen}
