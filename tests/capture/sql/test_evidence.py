"""What a derivation says of its statement: where it was said, by whom, and how often; field by field."""

from __future__ import annotations

import pickle

from govtool.capture.sql.extract import Options, extract, extract_definitions
from govtool.capture.sql.files import Script
from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement
from govtool.capture.sql.syntax.fingerprint import fingerprint, script_identity
from govtool.model import ROWS, ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement

VIEW = "create view v as select a from t where b > 5"
COLUMNS = (OutputColumn("a"),)
EDGES = (
    Edge(ColumnRef("t", "a"), "a", EdgeKind.IDENTITY),
    Edge(ColumnRef("t", "b"), ROWS, EdgeKind.FILTER),
    Edge(ColumnRef("t", ROWS), ROWS, EdgeKind.READ),
)


def test_a_script_tells_where():
    script = Script("etl/v.sql", f"-- of the shop\n{VIEW}", session="nightly")
    (made,) = extract([script], Options(dialect="postgres", source="etl")).derivations
    assert made == Derivation(
        target="v",
        target_kind="view",
        mode="replace",
        statement=Statement(
            fingerprint=fingerprint(VIEW, "postgres"),
            kind="create_view",
            dialect="postgres",
            file="etl/v.sql",
            line=2,
            source="etl",
            how="sql",
            session="nightly",
            text=VIEW.replace("5", "?"),
            places="0:25+1|0:40+5 b",
            literals=script_identity(VIEW, "postgres")[1],
        ),
        columns=COLUMNS,
        edges=EDGES,
    )


def test_a_log_tells_who_and_how_often():
    logged = LoggedStatement(VIEW, "q.jsonl", 7, False, None, None, (), "ann, bob", "2026-01-02", "2026-03-04", 12)
    options = Options(dialect="duckdb", source="log", keep_literals=True)
    (made,) = extract_definitions([LoggedScript("s1", (logged,))], options)[0].derivations
    assert made.statement == Statement(
        fingerprint=fingerprint(VIEW, "duckdb"),
        kind="create_view",
        dialect="duckdb",
        file="q.jsonl",
        line=7,
        source="log",
        how="sql",
        session="s1",
        text=VIEW,
        principal="ann, bob",
        first_seen="2026-01-02",
        last_seen="2026-03-04",
        count=12,
    )
    assert (made.columns, made.edges) == (COLUMNS, EDGES)


def test_of_a_namespace():
    (made,) = extract([Script("v.sql", VIEW)], Options(dialect="postgres", namespace="prod")).derivations
    assert (made.target, made.namespace) == ("prod/v", "prod")
    assert [edge.source.text for edge in made.edges] == ["prod/t.a", "prod/t.b", "prod/t.*"]


def test_it_goes_to_other_processes_as_it_is():
    (made,) = extract([Script("v.sql", VIEW)], Options(dialect="postgres")).derivations
    again = pickle.loads(pickle.dumps(made))
    assert (again, type(again), type(again.statement)) == (made, Derivation, Statement)
    assert type(again.edges[0]) is Edge
