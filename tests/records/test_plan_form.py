"""The plan form: traversal of any depth, columns of operators, and JSON that reads back as the same plan."""

from __future__ import annotations

import copy
import decimal
import json

import pytest

from govtool.errors import FormatError, UsageError
from govtool.records.plan import codec, leaves, nodes
from govtool.records.plan import types as t
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Exists,
    Frame,
    Lambda,
    Literal,
    Named,
    Opaque,
    Outer,
    SortKey,
    Udf,
    UdfReference,
    Variable,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Break,
    Definition,
    Expand,
    File,
    Filter,
    Generate,
    Join,
    LocalRows,
    Plan,
    Project,
    Reference,
    Relation,
    Session,
    Union,
    Window,
    With,
    outputs,
)
from govtool.records.plan.tree import fold, rewrite, walk, walk_nodes
from govtool.records.trace.normal import normalized, spare_ids
from govtool.records.trace.rules import traceable

SESSION = Session("4.3.0", True, "Europe/Amsterdam", False, (("spark.sql.mapKeyDedupPolicy", "EXCEPTION"),))
A, B, C = Attribute(1, "a", t.LONG), Attribute(2, "b", t.Decimal(10, 2)), Attribute(3, "c", t.Array(t.STRING))
LEAF = Relation(
    0, "default.t", "parquet", (File(0, "file:/t/part-0.parquet", 10, 1_700_000_000_000, ("x",)),), (A, B, C),
    t.Struct((t.Field("a", t.LONG), t.Field("b", t.Decimal(10, 2)), t.Field("c", t.Array(t.STRING)))),
)  # fmt: skip
ROWS = LocalRows(
    1, (Attribute(4, "x", t.DOUBLE), Attribute(5, "y", t.BINARY)),
    ((float("nan"), b"\x00\xff"), (float("-inf"), None), (-0.0, b""), (1.5, b"a")),
)  # fmt: skip


def is_(left, right):
    return Call("=", (left, right), t.BOOLEAN)


def many_operators():
    """A plan with a bit of everything."""
    sub = Exists(Filter(ROWS, is_(ROWS.columns[0], Cast(Outer(A), t.DOUBLE, "try", "UTC"))), (A,))
    kept = Filter(LEAF, Call("and", (sub, Call("is not null", (B,), t.BOOLEAN)), t.BOOLEAN))
    total = AggregateCall("sum", (B,), t.Decimal(20, 2), True, is_(A, Literal(1, t.LONG)), mode="ansi")
    grouped = Aggregate(kept, (passed(A),), (Named(total, 10, "s"),))
    rank = WindowCall(
        Call("row_number", (), t.INTEGER),
        (A,),
        (SortKey(B, True, False),),
        Frame("rows", "unbounded preceding", "current row"),
        t.INTEGER,
    )
    windowed = Window(kept, (Named(rank, 11, "r"),))
    function = UdfReference("__main__", "f.<locals>.g", "ab" * 32, "python")
    variable = Variable(90, "v", t.STRING)
    projected = Project(
        windowed,
        (
            Named(Udf(function, (A,), t.STRING), 12, "u"),
            Named(Call("transform", (C, Lambda((variable,), Call("upper", (variable,), t.STRING))), t.Array(t.STRING)), 13, "l"),
            Named(Case(((is_(A, Literal(2, t.LONG)), Literal(decimal.Decimal("1.50"), t.Decimal(3, 2))),), None, t.Decimal(3, 2)), 14, "k"),
            Named(Opaque("java", (A,), t.VOID), 15, "o"),
        ),
    )  # fmt: skip
    generated = Generate(projected, Call("explode", (C,), t.STRING), True, (Attribute(16, "g", t.STRING),))
    expanded = Expand(
        grouped,
        ((A, Literal(None, t.LONG)), (Literal(None, t.LONG), A)),
        (Attribute(20, "p", t.LONG), Attribute(21, "q", t.LONG)),
    )
    broken = Break("mapInPandas", (generated,), (Attribute(30, "p", t.LONG), Attribute(31, "q", t.LONG)), function)
    both = Union((expanded, broken), (Attribute(20, "p", t.LONG), Attribute(21, "q", t.LONG)))
    first, second = (Reference(7, (Attribute(i, "p", t.LONG), Attribute(i + 1, "q", t.LONG))) for i in (40, 50))
    joined = Join(
        first, second, "existence", is_(first.columns[0], second.columns[0]), Attribute(60, "exists", t.BOOLEAN, False)
    )
    return With((Definition(both, 7, "w"),), joined)


def test_a_plan_reads_back_as_it_was_written():
    plan = Plan(many_operators(), SESSION)
    text = codec.dumps(plan)
    again = codec.loads(text)
    assert codec.dumps(again) == text
    assert codec.digest(again) == codec.digest(plan)
    assert repr(again) == repr(plan)  # NaN is not equal to itself, and -0.0 is equal to 0.0


def test_equal_parts_are_written_once():
    plan = Plan(Union((LEAF, LEAF), LEAF.columns), SESSION)
    assert [row[0] for row in codec.encode(plan)["objects"]].count("Relation") == 1


def test_plans_may_be_thousands_of_levels_deep():
    node, condition = LEAF, is_(A, Literal(0, t.LONG))
    for i in range(3000):
        node = Project(
            node, (passed(A), passed(B), Named(Call("+", (A, Literal(i, t.LONG)), t.LONG, "ansi"), 100 + i, "n"))
        )
        condition = Call("or", (condition, is_(A, Literal(i, t.LONG))), t.BOOLEAN)
    plan = Plan(Filter(node, condition), SESSION)
    text = codec.dumps(plan)
    again = codec.loads(text)
    assert codec.dumps(again) == text
    assert [each.id for each in outputs(again.root)] == [1, 2, 3099]
    assert sum(1 for _ in walk_nodes(again.root)) == 3002
    assert fold(again.root.condition, lambda term, parts: 1 + max(parts, default=0)) == 3002
    renamed = rewrite(again.root.condition, lambda term: Outer(term) if term == A else term)
    assert A not in list(walk(renamed))
    assert Outer(A) in list(walk(renamed))


def filters(depth):
    node = LEAF
    for _ in range(depth):
        node = Filter(node, is_(A, A))
    return node


def definitions(depth):
    """A definition that a definition refers to, and so on: deep when they are written out."""
    node, made = LEAF, []
    for number in range(depth):
        made.append(Definition(node, number))
        node = Filter(Reference(number, (A, B, C)), is_(A, A))
    return With(tuple(made), node)


def doubled(depth):
    condition = is_(A, A)
    for _ in range(depth):
        condition = Call("or", (condition, condition), t.BOOLEAN)
    return Filter(LEAF, condition)


@pytest.mark.parametrize("root", [filters(400), definitions(201), doubled(18)], ids=["depth", "definitions", "size"])
def test_plans_that_are_too_large_to_trace_are_refused(root):
    for ask in (traceable, lambda node: normalized(node, spare_ids(node))):
        with pytest.raises(UsageError, match="cannot be traced") as caught:
            ask(root)
        assert caught.value.code == "usage.trace-size"


def test_plans_that_are_nearly_too_deep_are_traced():
    segment, *_ = traceable(filters(399))
    assert [each.id for each in outputs(segment.node)] == [1, 2, 3, segment.sources[0].record.id]


def test_columns_are_looked_up_once_for_each_operator(monkeypatch):
    calls = []
    real = nodes._outputs
    monkeypatch.setattr(nodes, "_outputs", lambda node, inputs: calls.append(node) or real(node, inputs))
    node = filters(300)
    while isinstance(node, Filter):
        assert outputs(node) == LEAF.columns
        assert outputs(copy.copy(node)) == LEAF.columns  # which a copy does not take along
        node = node.child
    assert len(calls) <= 2 * 300 + 1


def test_columns_of_operators():
    plan = many_operators()
    assert [each.id for each in outputs(plan)] == [40, 41, 60]
    assert [each.id for each in outputs(plan.definitions[0])] == [20, 21]
    aggregate = next(node for node in walk_nodes(plan) if isinstance(node, Aggregate))
    assert [(each.id, each.name, each.type) for each in outputs(aggregate)] == [
        (1, "a", t.LONG),
        (10, "s", t.Decimal(20, 2)),
    ]
    semi = Join(LEAF, ROWS, "left_semi", None)
    assert outputs(semi) == LEAF.columns
    assert outputs(Join(LEAF, ROWS, "full", None)) == LEAF.columns + ROWS.columns


def test_operators_of_subqueries_are_walked_with_the_rest():
    kinds = [type(node).__name__ for node in walk_nodes(many_operators())]
    assert kinds.count("LocalRows") == 2  # one in each branch: the EXISTS is below both
    assert "LocalRows" not in [type(node).__name__ for node in walk_nodes(many_operators(), subqueries=False)]


def test_replacing_nothing_makes_no_copy():
    condition = is_(A, B)
    assert condition.replaced(terms=condition.terms()) is condition
    changed = rewrite(condition, lambda term: Literal(1, t.LONG) if term == A else term)
    assert changed == is_(Literal(1, t.LONG), B)
    assert condition == is_(A, B)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda plan: plan.update(format="plan/2"), "format plan/1"),
        (lambda plan: plan["objects"].append(["os.system", "true"]), "unknown object"),
        (lambda plan: plan["objects"][-1].append(1), "fields instead of"),
        (lambda plan: plan.update(root=10**6), "cannot be read"),
        (lambda plan: plan.update(root=-1), "number"),
        (lambda plan: plan.update(root=plan["session"]), "operator as its root"),
        (lambda plan: plan["objects"].insert(0, ["Distinct", ["r", 3]]), "cannot be read"),
        (lambda plan: plan["objects"].insert(0, ["SortKey", 1, False, True]), "whose value is int"),
        (lambda plan: plan["objects"].insert(0, ["File", True, "u", 1, 1, ["l"], ""]), "whose ordinal is bool"),
        (lambda plan: plan["objects"].insert(0, ["Literal", ["z", 1], ["t", "long"]]), "unknown kind"),
        (lambda plan: plan["objects"].insert(0, ["Literal", {"a": 1}, ["t", "long"]]), "no value"),
        (lambda plan: plan["objects"].insert(0, ["Literal", ["d", "one"], ["t", "long"]]), "cannot be read"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(change, why):
    value = json.loads(codec.dumps(Plan(LEAF, SESSION)))
    change(value)
    with pytest.raises(FormatError, match=why):
        codec.decode(value)


def test_a_small_file_that_unfolds_without_end_is_refused():
    value = json.loads(codec.dumps(Plan(LEAF, SESSION)))
    for _ in range(64):
        last = len(value["objects"]) - 1
        value["objects"].append(
            [
                "Union",
                ["l", ["r", last if last > 6 else value["root"]], ["r", last if last > 6 else value["root"]]],
                ["l"],
            ]
        )
    value["root"] = len(value["objects"]) - 1
    with pytest.raises(FormatError, match="counted as often as they are used"):
        codec.decode(value)


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"format": "plan/1"}'])
def test_text_that_is_no_plan_is_refused(text):
    with pytest.raises(FormatError):
        codec.loads(text)


def test_types_are_written_for_readers():
    kind = t.Struct(tuple(t.Field(name, t.LONG) for name in "abcdef"))
    assert t.as_text(t.Array(kind)) == "array<struct<a: long, b: long, c: long, d: long, e: long, …>>"
    assert t.as_text(t.Map(t.STRING, t.Decimal(10, 2))) == "map<string, decimal(10,2)>"


def test_types_are_sparks_json():
    schema = {
        "type": "struct",
        "fields": [
            {"name": "a", "type": {"type": "map", "keyType": "string", "valueType": "decimal(38,18)", "valueContainsNull": False}, "nullable": False, "metadata": {}},
            {"name": "a", "type": {"type": "array", "elementType": "interval day to second", "containsNull": True}, "nullable": True, "metadata": {}},
            {"name": "v", "type": "varchar(3)", "nullable": True, "metadata": {}},
        ],
    }  # fmt: skip
    assert t.to_json(t.from_json(schema)) == schema
    assert t.from_json("geometry(4326)") == t.Unknown("geometry(4326)")
    assert t.same(t.Array(t.LONG, False), t.Array(t.LONG))
    assert not t.same(t.Array(t.LONG), t.Array(t.INTEGER))
    with pytest.raises(ValueError, match="no type"):
        t.from_json({"type": "what"})


@pytest.mark.parametrize(
    ("base", "roots", "files", "dataset"),
    [
        ("src", ["file:/w/src/a.json"], ["file:/w/src/a.json"], "file:/w/src"),
        ("./src/", ["file:/w/src/p=1/a.json"], ["file:/w/src/p=1/a.json"], "file:/w/src"),
        (".", ["file:/w/a.json"], ["file:/w/a.json"], "file:/w"),
        ("file:/w/src", ["file:/w/src/a.json"], ["file:/w/src/a.json"], "file:/w/src"),
        ("", ["sink"], ["file:/w/sink/b.parquet", "file:/w/sink/c.parquet"], "file:/w/sink"),
        ("src", ["file:/else/a.json"], ["file:/else/a.json"], "src"),
        (
            "",
            ["file:/w/a", "file:/w/b"],
            ["file:/w/a/1.json", "file:/w/b/2.json", "file:/w/b/3.json"],
            "file:/w/a,file:/w/b",
        ),
    ],
)
def test_the_place_of_files_is_known_from_the_root_on(base, roots, files, dataset):
    options = [["basePath", base]] if base else []
    found = {"options": {"$map": options}, "roots": roots, "files": [[file, 1, 1, []] for file in files]}
    assert leaves._dataset({}, found) == dataset
