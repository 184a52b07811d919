"""Functions of collected lists: which depend on an order that a new run need not repeat."""

from __future__ import annotations

import numpy as np
import pytest

from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Cast, Lambda, Literal, Variable
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG, STRING, Array, Field, Struct
from govtool.workflow.annotate.circuit import NONE, Circuit, Inputs, Sources, Terms, ValueFunction
from govtool.workflow.annotate.list_order import has_several, is_ordered, order_matters

LIST, ROW = Array(LONG), Struct((Field("x", LONG), Field("l", Array(LONG))))
XS, BAG, KEY = Attribute(1, "xs", LIST), Attribute(2, "bag", Array(ROW)), Attribute(3, "k", LONG)
E, PLACE, S, R = Variable(11, "e", LONG), Variable(12, "i", LONG), Variable(13, "s", LONG), Variable(14, "r", ROW)
ONE = Literal(1, LONG)
SORTED = Call("sort_array", (XS,), LIST)
INNER = Call("get field", (R,), LIST, options=(("field", "l"), ("ordinal", 1)))
FIELD = Call("get field", (R,), LONG, options=(("field", "x"), ("ordinal", 0)))


def call(name, *arguments, kind=LONG):
    return Call(name, arguments, kind)


def fold(body):
    return call("aggregate", XS, ONE, Lambda((S, E), body), Lambda((S,), S))


def is_loose(column):
    return column.id in (1, 2)


@pytest.mark.parametrize(
    "value",
    [
        call("size", XS),
        SORTED,
        call("element_at", SORTED, ONE),
        call("array_join", call("sort_array", call("transform", XS, Lambda((E,), call("+", E, ONE)), kind=LIST), kind=LIST)),
        call("exists", XS, Lambda((E,), call(">", E, ONE, kind=BOOLEAN)), kind=BOOLEAN),
        call("array_max", XS),
        fold(call("+", S, E)),
        fold(call("+", Cast(call("+", ONE, S), LONG, ""), E)),
        call("size", call("filter", BAG, Lambda((R,), call(">", call("size", INNER), ONE, kind=BOOLEAN)), kind=BAG.type)),
        call("array_max", call("transform", BAG, Lambda((R,), FIELD), kind=LIST)),
        call("element_at", Attribute(4, "plain", LIST), ONE),
        AggregateCall("count", (XS,), LONG),
        AggregateCall("max", (call("size", XS),), LONG),
    ],
)  # fmt: skip
def test_values_that_are_the_same_in_any_order(value):
    assert not order_matters(value, is_loose)
    assert is_ordered(value, is_loose)


@pytest.mark.parametrize(
    "value",
    [
        XS,
        call("transform", XS, Lambda((E,), E), kind=LIST),
        call("concat", SORTED, XS, kind=LIST),
        call("array_distinct", XS, kind=LIST),
        AggregateCall("collect_list", (XS,), Array(LIST)),
        call("get fields", BAG, kind=Array(LONG)),
    ],
)
def test_lists_whose_order_stays_open(value):
    assert not order_matters(value, is_loose)
    assert not is_ordered(value, is_loose)


@pytest.mark.parametrize(
    "value",
    [
        call("element_at", XS, ONE),
        call("array_join", XS, kind=STRING),
        call("=", XS, XS, kind=BOOLEAN),
        Cast(XS, STRING, ""),
        call("transform", XS, Lambda((E, PLACE), call("*", E, PLACE)), kind=LIST),
        fold(call("-", S, E)),
        fold(call("+", call("*", S, ONE), E)),
        call("slice", XS, ONE, ONE, kind=LIST),
        call("array_max", BAG, kind=ROW),
        call("sort_array", BAG, kind=BAG.type),
        call("filter", BAG, Lambda((R,), call("=", call("element_at", INNER, ONE), ONE, kind=BOOLEAN)), kind=BAG.type),
        call("size", call("slice", XS, ONE, ONE, kind=LIST), kind=INTEGER),
        AggregateCall("max", (XS,), LIST),
        AggregateCall("collect_set", (XS,), Array(LIST)),
        AggregateCall("count", (XS,), LONG, distinct=True),
    ],
)
def test_values_that_depend_on_the_order(value):
    assert order_matters(value, is_loose)
    assert not order_matters(value, lambda column: False)


def terms(offsets, kind=LIST, argument=ONE, cells=None):
    """Lists of the records 1, 2 … by their offsets."""
    call_ = AggregateCall("collect_list", (argument,), kind)
    inputs = Inputs(np.array(offsets), np.arange(1, offsets[-1] + 1))
    return Terms(call_, inputs, np.arange(offsets[-1]), cells, None, argument, (None, argument))


def test_lists_of_one_element_have_one_order():
    circuit = Circuit()
    circuit.add(Sources(3, "r"))
    lists = circuit.add(terms([0, 1, 3, 3]))
    assert has_several(circuit, np.array([lists, lists + 1, lists + 2, NONE])).tolist() == [False, True, False, False]
    made = circuit.add(ValueFunction(XS, _Table(2), ((1, np.array([lists, lists + 1])),), XS))
    assert has_several(circuit, np.array([made, made + 1])).tolist() == [False, True]
    inner = circuit.add(terms([0, 1, 2], BAG.type, XS, np.array([lists + 1, lists])))
    assert has_several(circuit, np.array([inner, inner + 1])).tolist() == [True, False]


class _Table:
    def __init__(self, count):
        self.count = count
