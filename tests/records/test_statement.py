"""Statements of plans: what a plan from a store may not smuggle in, and rows that two executors would not agree on."""

from __future__ import annotations

import datetime
import decimal

import pytest

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Cast,
    Frame,
    InSubquery,
    Literal,
    Named,
    Opaque,
    Udf,
    UdfReference,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Break,
    Filter,
    LocalRows,
    Plan,
    Project,
    Relation,
    Session,
    Union,
    Window,
)
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.duckdb import DuckDialect
from govtool.records.sql.spark import SparkDialect, string
from govtool.records.sql.statement import write

SESSION = Session("4.3.0", True, "UTC")
X, S = Attribute(1, "x", t.LONG), Attribute(2, "s", t.STRING)
ROWS = LocalRows(0, (X, S), ((1, "it's"), (None, None), (-7, "ß")))
BOTH = pytest.mark.parametrize("dialect", [SparkDialect(SESSION), DuckDialect(SESSION)], ids=["spark", "duckdb"])


def computed(value):
    return Project(ROWS, (Named(value, 9, "v"),))


def fetch(node):
    return sorted(DuckExecutor(SESSION, 1).fetch(node), key=repr)


@BOTH
@pytest.mark.parametrize(
    "node",
    [
        computed(Call("1); DROP TABLE t --", (X,), t.LONG)),
        computed(Call("reflect", (Literal("java.lang.Runtime", t.STRING),), t.STRING)),
        computed(Call("java_method", (Literal("java.lang.Runtime", t.STRING),), t.STRING)),
        Aggregate(ROWS, (), (Named(AggregateCall("x) FROM t --", (X,), t.LONG), 9, "v"),)),
        Relation(0, "t; DROP TABLE t", "kept", (), (X,), t.Struct(())),
        computed(Udf(UdfReference("m", "f", "a" * 64, "x) --"), (X,), t.LONG)),
        computed(Udf(UdfReference("m", "f", "not hex", "python"), (X,), t.LONG)),
        computed(Cast(X, t.Unknown("INT) FROM t --"))),
        computed(Opaque("a function in Scala", (X,), t.LONG)),
        computed(Call("rand", (), t.DOUBLE, deterministic=False)),
        Break("mapInPandas", (ROWS,), (X,)),
    ],
)
def test_what_is_not_on_the_lists_is_not_written(dialect, node):
    with pytest.raises(NotExact):
        write(Plan(node, SESSION), dialect)


@BOTH
def test_names_of_columns_and_fields_are_never_written_as_sql(dialect):
    odd = Attribute(1, 'a"b`c; --', t.LONG)
    text = write(Plan(LocalRows(0, (odd,), ((1,),)), SESSION), dialect).text
    assert "--" not in text


@pytest.mark.parametrize("value", ["it's", "\\", "\\'", "${spark.x}", "a\nb", "\x00", "--", "/*", "ä😀"])
def test_spark_strings_hold_no_quote_and_no_variable(value):
    text = string(value)
    assert text[0] == text[-1] == "'"
    assert "${" not in text
    assert text[1:-1].replace("\\\\", "").replace("\\'", "").count("'") == 0


def test_duckdb_gives_rows_back_as_they_are():
    kinds = {
        "b": (t.BOOLEAN, True), "i": (t.INTEGER, -(2**31)), "l": (t.LONG, -(2**63)), "d": (t.Decimal(38, 6), decimal.Decimal("-1.500000")),
        "f": (t.DOUBLE, float("-inf")), "s": (t.STRING, "it's \\ \" $x ä"), "y": (t.BINARY, b"\x00\xff"), "day": (t.DATE, -1),
        "ts": (t.TIMESTAMP, -1), "xs": (t.Array(t.INTEGER), (1, None)), "st": (t.Struct((t.Field("a b", t.STRING),)), ("x",)),
        "m": (t.Map(t.STRING, t.LONG), (("k", 1), ("l", None))), "n": (t.VOID, None),
    }  # fmt: skip
    columns = tuple(Attribute(i, name, kind) for i, (name, (kind, _)) in enumerate(kinds.items()))
    table = DuckExecutor(SESSION, 1).arrow(LocalRows(0, columns, (tuple(value for _, value in kinds.values()),)))
    assert table.column_names == list(kinds)
    (row,) = table.to_pylist()
    assert row["d"] == decimal.Decimal("-1.500000")
    assert (row["l"], row["s"], row["y"], row["xs"], row["st"]) == (
        -(2**63),
        "it's \\ \" $x ä",
        b"\x00\xff",
        [1, None],
        {"a b": "x"},
    )
    assert row["day"] == datetime.date(1969, 12, 31)
    assert row["ts"] == datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)


def test_duckdb_raises_where_a_value_is_one_that_it_has_another_answer_for():
    with pytest.raises(NotExact, match="upper"):
        fetch(computed(Call("upper", (S,), t.STRING)))
    assert (
        fetch(Filter(computed(Call("upper", (Literal("ab", t.STRING),), t.STRING)), Literal(True, t.BOOLEAN)))
        == [("AB",)] * 3
    )
    with pytest.raises(NotExact, match="a cast of text"):
        fetch(computed(Cast(S, t.INTEGER)))
    with pytest.raises(NotExact, match=r"overflow|Overflow|range"):
        fetch(computed(Call("*", (X, Literal(2**62, t.LONG)), t.LONG, "ansi")))


def test_division_is_javas():
    seven = Literal(2, t.LONG)
    assert fetch(computed(Call("div", (X, seven), t.LONG, "ansi"))) == [(-3,), (0,), (None,)]
    assert fetch(computed(Call("%", (X, seven), t.LONG, "ansi"))) == [(-1,), (1,), (None,)]


def test_in_as_a_value_is_sparks_business_and_in_a_filter_is_not():
    member = InSubquery((X,), Project(ROWS, (passed(X),)))
    with pytest.raises(NotExact, match="as a value"):
        fetch(computed(member))
    assert fetch(Filter(ROWS, member)) == [(-7, "ß"), (1, "it's")]
    assert fetch(Filter(ROWS, Call("not", (member,), t.BOOLEAN))) == []


def test_a_column_twice_in_a_union_of_two_columns_is_refused():
    left, right = Project(ROWS, (passed(X), passed(X))), Project(ROWS, (passed(X), Named(Literal(0, t.LONG), 5, "y")))
    assert len(fetch(Union((left, left), (X, X)))) == 6
    with pytest.raises(NotExact, match="twice in a union"):
        fetch(Union((left, right), (X, X)))


def test_spark_is_given_an_order_where_it_insists_on_one():
    rank, peers = Call("row_number", (), t.INTEGER), Frame("range", "current row", "current row")
    every = AggregateCall("count", (Literal(1, t.INTEGER),), t.LONG)
    calls = [WindowCall(rank, (), (), None, t.INTEGER), WindowCall(every, (X,), (), peers, t.LONG)]
    node = Window(ROWS, tuple(Named(call, 10 + i, f"n{i}") for i, call in enumerate(calls)))
    text = write(Plan(node, SESSION), SparkDialect(SESSION)).text
    assert text.count("ORDER BY NULL") == 2
