"""What flows into the columns of a plan: the meaning of edges is that of the SQL extractor."""

from __future__ import annotations

import pytest

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.dependencies import Dependency, compose
from govtool.capture.spark.flow import derivation, flow_of
from govtool.model import ColumnRef, EdgeKind, Statement
from govtool.spark.live.plans.trimmed import trimmed

T = p.Scan("t", tuple(p.Named(i, n) for i, n in enumerate(["a", "b", "c", "s"])))
U = p.Scan("u", tuple(p.Named(i, n) for i, n in enumerate(["a", "b"], 10)))
A, B, C, S = (p.Attribute(i) for i in range(4))


def columns(flow):
    return {
        column.name: sorted(
            f"{d.source.text} {d.kind.label}" + (f" {'.'.join(d.functions)}" if d.functions else "")
            for d in column.dependencies
        )
        for column in flow.columns
    }


def rows(flow):
    return sorted(f"{d.source.text} {d.kind.label}" for d in flow.rows)


def select(child, **values):
    start = 100 + len(repr(child))
    return p.Project(child, tuple(p.Output(start + i, name, value) for i, (name, value) in enumerate(values.items())))


def last(node, position=0):
    return p.Attribute(p.outputs_of(node)[position].id)


def test_kinds_compose_through_projections():
    inner = select(T, l=build.call("lower", [A]), n=build.call("sum", [B]), w=build.over("sum", [B], [C]))
    outer = select(
        inner,
        l=last(inner),
        both=p.Apply("", (last(inner), last(inner, 1))),
        case=build.choice("case", [last(inner)], [last(inner, 1)]),
        w=build.call("upper", [last(inner, 2)]),
    )
    assert columns(flow_of(outer)) == {
        "l": ["t.a transformation lower"],
        "both": ["t.a transformation lower", "t.b aggregation sum"],
        "case": ["t.a conditional lower", "t.b aggregation sum.case"],
        "w": ["t.b aggregation sum.upper", "t.c window"],
    }


def test_ranks_do_not_repeat_the_order_of_their_window():
    ranked = select(T, r=build.over("rank", [A], [B, A]), l=build.over("lag", [C], [A]))
    assert columns(flow_of(ranked)) == {
        "r": ["t.a window", "t.b window"],
        "l": ["t.a window", "t.c transformation lag"],
    }


def test_rows_know_what_decides_about_them():
    joined = p.Join(T, U, p.Apply("", (A, p.Attribute(10))))
    grouped = p.Aggregate(
        p.Filter(joined, B), (C,), (p.Output(20, "c", C), p.Output(21, "n", build.call("count", [B])))
    )
    flow = flow_of(p.Sort(grouped, (p.Attribute(21),)))
    assert rows(flow) == ["t.a join", "t.b filter", "t.b sort", "t.c group_by", "u.a join"]
    assert flow.reads == ("t", "u")


def test_a_field_of_a_struct_that_was_built_here_is_what_went_into_it():
    made = select(T, s=p.StructValue("struct", (("x", A), ("y", build.call("lower", [B])))))
    taken = select(made, x=p.Field(last(made), "x"), y=p.Field(last(made), "y"), s=last(made))
    assert columns(flow_of(taken)) == {
        "x": ["t.a identity"],
        "y": ["t.b transformation lower"],
        "s": ["t.a transformation struct", "t.b transformation lower.struct"],
    }


def test_a_field_of_a_base_column_is_a_path():
    taken = select(
        T, z=p.Field(p.Field(S, "[]"), "zip"), k=p.Field(S, build.key_step("user")), m=build.call("max", [S])
    )
    assert columns(flow_of(taken)) == {
        "z": ["t.s[].zip identity"],
        "k": ["t.s['user'] identity"],
        "m": ["t.s aggregation max"],
    }


def test_stack_and_inline_map_column_by_column():
    stacked = p.Generate(T, "stack", (p.CONSTANT, A, p.CONSTANT, B), (p.Named(30, "k"), p.Named(31, "v")), rows=2)
    assert columns(flow_of(stacked))["k"] == []
    assert columns(flow_of(stacked))["v"] == ["t.a transformation stack", "t.b transformation stack"]
    items = p.Elements("array", (p.StructValue("struct", (("x", A), ("y", B))),))
    inlined = p.Generate(T, "inline", (items,), (p.Named(30, "x"), p.Named(31, "y")), kept=frozenset())
    assert columns(flow_of(inlined)) == {"x": ["t.a transformation inline"], "y": ["t.b transformation inline"]}


def test_arms_of_a_union_are_flat_and_casts_that_analysis_put_there_are_none():
    narrow = select(T, a=A)
    cast = p.Project(narrow, (p.Output(50, "a", p.Apply("cast", (last(narrow),))),))
    both = build.union([build.union([cast, select(U, a=p.Attribute(10))]), select(T, b=B)])
    flow = flow_of(both)
    assert columns(flow) == {"a": ["t.a identity", "t.b identity", "u.a identity"]}
    assert sorted((d.source.text, d.arm) for d in flow.columns[0].dependencies) == [("t.a", 1), ("t.b", 3), ("u.a", 2)]
    assert {d.kind for d in flow.rows} == {EdgeKind.UNION_ALL}
    assert {d.kind for d in flow_of(build.union(both.children, distinct=True)).rows} == {EdgeKind.DISTINCT}


def test_a_cast_of_a_table_is_somebodys():
    cast = p.Project(T, tuple(p.Output(40 + i, n, p.Apply("cast", (p.Attribute(i),))) for i, n in enumerate("abcs")))
    assert build.uncast(cast) is cast


def test_correlated_subqueries_see_the_row_around_them_and_give_it_their_rows():
    inner = p.Filter(select(U, m=build.call("max", [p.Attribute(11)])), p.Apply("", (p.Attribute(10), A)))
    flow = flow_of(
        p.Filter(
            select(T, a=A, m=p.Query(p.Project(p.Filter(U, p.Apply("", (p.Attribute(10), A))), inner.child.outputs))),
            p.Query(U, value=False),
        )
    )
    assert columns(flow) == {"a": ["t.a identity"], "m": ["u.b aggregation max"]}
    assert rows(flow) == ["t.a filter", "u.a filter"]
    assert flow.reads == ("t", "u")


def test_a_column_that_asks_whether_there_are_rows_depends_on_what_decides_about_them():
    inner = p.Filter(U, p.Apply("", (p.Attribute(10), A)))
    asked = p.Query(inner, value=False)
    plan = select(T, has=asked, case=build.choice("case", [asked], [B]))
    assert columns(flow_of(plan)) == {
        "has": ["t.a conditional", "u.a conditional"],
        "case": ["t.a conditional", "t.b transformation case", "u.a conditional"],
    }
    joined = p.Query(p.Join(inner, p.Values(()), p.Attribute(11)), value=False)
    assert rows(flow_of(select(p.Filter(T, joined), b=B))) == ["t.a filter", "u.a filter", "u.b join"]


def test_a_cast_to_a_type_that_holds_less_is_nobodys_but_a_tables():
    def arm(source, target):
        inner = select(T, a=A)
        return select(inner, a=build.cast("cast", last(inner), source, target))

    other = select(T, b=B)
    widened, narrowed = (
        columns(flow_of(build.union([arm(*types), other])))["a"] for types in (("int", "bigint"), ("bigint", "int"))
    )
    assert widened == ["t.a identity", "t.b identity"]
    assert narrowed == ["t.a transformation cast", "t.b identity"]
    assert columns(flow_of(build.uncast(arm("bigint", "int")))) == {"a": ["t.a identity"]}


def test_the_type_of_a_cast_is_recorded():
    nodes = [
        {"class": "org.apache.spark.sql.catalyst.expressions.Cast", "num-children": 1, "child": 0, "dataType": "integer"},
        {"class": "org.apache.spark.sql.catalyst.expressions.AttributeReference", "num-children": 0, "dataType": "long"},
    ]  # fmt: skip
    assert trimmed(nodes) == [
        {"c": "Cast", "n": 1, "child": 0, "dataType": "integer"},
        {"c": "AttributeReference", "n": 0, "dataType": "long"},
    ]


def test_a_field_called_as_the_number_of_children_does_not_take_its_place():
    """As of ``dropna(thresh=3)``: Catalyst's ``AtLeastNNonNulls`` has a field ``n``."""
    kind = "org.apache.spark.sql.catalyst.expressions."
    column = {"class": f"{kind}AttributeReference", "num-children": 0, "dataType": "long"}
    counted = {"class": f"{kind}AtLeastNNonNulls", "num-children": 2, "n": 3, "children": [0, 1]}
    assert trimmed([counted, column, column])[0] == {"c": "AtLeastNNonNulls", "n": 2, "children": [0, 1]}


def test_python_functions_are_opaque_with_certain_arguments():
    used = select(T, u=p.Opaque("python-udf: embed", (build.call("lower", [A]), B)), c=C)
    flow = flow_of(p.Filter(used, last(used)))
    assert [(d.source.text, d.kind, d.reason) for d in flow.columns[0].dependencies] == [
        ("t.a", EdgeKind.OPAQUE, "python-udf: embed"),
        ("t.b", EdgeKind.OPAQUE, "python-udf: embed"),
    ]
    assert rows(flow) == ["t.a filter", "t.b filter"]


def test_what_is_lost_is_lost_with_a_reason_and_stays_so():
    lost = p.LineageBreak((select(T, a=A, b=B),), (p.Named(60, "x"),), "break.map-in-pandas", "mapInPandas(f)")
    flow = flow_of(p.Filter(select(lost, y=build.call("lower", [p.Attribute(60)])), p.Attribute(100)))
    assert {(d.source.text, d.kind, d.reason) for d in flow.columns[0].dependencies} == {
        ("t.a", EdgeKind.OPAQUE, "break.map-in-pandas"),
        ("t.b", EdgeKind.OPAQUE, "break.map-in-pandas"),
    }
    assert [note.code for note in flow.breaks] == ["break.map-in-pandas", "unresolved"]
    assert flow.reads == ("t",)


def test_views_are_datasets_unless_they_are_expanded():
    view = p.CatalogView("v", select(T, x=A, y=build.call("lower", [B])), (p.Named(70, "x"), p.Named(71, "y")))
    flow = flow_of(select(view, z=p.Attribute(71)))
    assert columns(flow) == {"z": ["v.y identity"]}
    assert flow.reads == ("v",)
    assert [(name, columns(each)) for name, each in flow.views] == [
        ("v", {"x": ["t.a identity"], "y": ["t.b transformation lower"]})
    ]
    expanded = flow_of(select(view, z=p.Attribute(71)), expand_views=True)
    assert columns(expanded) == {"z": ["t.b transformation lower"]}
    assert (expanded.reads, expanded.views) == (("t",), ())


def test_recursion_is_iterated_to_its_end():
    step = p.Join(p.Reference(1, (p.Named(80, "n"), p.Named(81, "m"))), U, p.Apply("", (p.Attribute(80),)))
    swapped = select(step, n=p.Attribute(81), m=p.Attribute(10))
    loop = p.Loop(1, select(T, n=A, m=B), swapped, (p.Named(90, "n"), p.Named(91, "m")))
    flow = flow_of(
        p.With(((7, loop),), select(p.Reference(7, (p.Named(92, "n"), p.Named(93, "m"))), n=p.Attribute(92)))
    )
    assert columns(flow) == {"n": ["t.a identity", "t.b identity", "u.a identity"]}
    assert "t.a join" in rows(flow)


def test_an_attribute_that_is_nowhere_is_no_guess():
    flow = flow_of(select(T, x=p.Attribute(999, "gone")))
    assert [(d.source.text, d.kind, d.reason) for d in flow.columns[0].dependencies] == [
        ("t.*", EdgeKind.OPAQUE, "unresolved")
    ]
    assert flow.breaks[0].code == "unresolved"


def test_a_thousand_projections_and_ten_thousand_operators():
    node = select(T, a=A)
    for number in range(1000):
        inner = p.outputs_of(node)[0].id
        node = p.Project(node, (p.Output(1000 + number, "a", p.Apply("", (p.Attribute(inner),))),))
    deep = A
    for _ in range(10_000):
        deep = p.Apply("", (deep, B))
    assert columns(flow_of(node)) == {"a": ["t.a transformation"]}
    assert columns(flow_of(select(T, x=deep))) == {"x": ["t.a transformation", "t.b transformation"]}


@pytest.mark.parametrize("outer", [EdgeKind.CONDITIONAL, EdgeKind.WINDOW])
def test_what_steers_never_becomes_a_value_again(outer):
    dep = compose(Dependency(ColumnRef("t", "a")), outer)
    assert compose(dep, EdgeKind.AGGREGATION, ("sum",)).kind is outer


def test_a_write_is_a_derivation():
    statement = Statement("f" * 16, "insert", "spark", "job.py", how="plan")
    flow = flow_of(p.Filter(select(T, x=build.call("sha2", [A]), y=B), C))
    made = derivation(flow, "out", statement, target_kind="table", mode="append", columns=["p", "q"])
    assert [(e.source.text, e.target_path, e.kind.label, e.masking) for e in made.edges] == [
        ("t.a", "p", "transformation", True),
        ("t.b", "q", "identity", False),
        ("t.*", "*", "opaque", False),
        ("t.*", "*", "read", False),
    ]
    short = derivation(
        flow_of(select(T, x=A, y=B)), "out", statement, target_kind="table", mode="append", columns=["p"]
    )
    assert (short.columns_complete, short.status, [n.code for n in short.diagnostics]) == (False, "partial", ["arity"])


def test_a_loop_whose_steps_have_other_columns_is_stated():
    anchor, step = select(T, a=A, b=B), select(T, a=A)
    flow = flow_of(p.Loop(1, anchor, step, (p.Named(91, "x"), p.Named(92, "y"))))
    assert [note.code for note in flow.breaks] == ["unresolved"]
    assert [column.name for column in flow.columns] == ["x", "y"]


def test_a_long_loop_of_checkpoints_is_walked_once_a_round():
    """Written out, the plan would be of 2**1000 operators."""
    outputs = p.outputs_of(T)
    node = p.Filter(T, p.Apply(">", (B, p.CONSTANT)))
    for number in range(1000):
        kept = p.Renamed(p.Checkpoint(number, node, outputs), outputs)
        others = tuple(p.Named(each.id + 50, each.name) for each in outputs)
        met = p.Join(kept, p.Renamed(kept, others), p.Apply("=", (A, p.Attribute(50))))
        node = p.Project(met, tuple(p.Output(each.id, each.name, p.Attribute(each.id)) for each in outputs))
    flow = flow_of(node)
    assert columns(flow)["a"] == ["t.a identity"]
    assert rows(flow) == ["t.a join", "t.b filter"]
