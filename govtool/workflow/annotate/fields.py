"""Fields of structs that were put together from columns: a field has the v-node of its column."""

from __future__ import annotations

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal
from govtool.workflow.annotate.circuit import NONE, Circuit, ValueFunction


def is_struct(value: Expression) -> bool:
    """Return whether an expression puts a struct together from its fields."""
    return isinstance(value, Call) and value.name == "named_struct"


def field_cells(circuit: Circuit, nodes: Array, call: Call) -> Array | None:
    """The v-nodes of a field of some structs.

    Args:
        circuit: The circuit.
        nodes: The v-node of each struct, or ``NONE``.
        call: The call that takes the field.

    Returns:
        For each struct the v-node of the field, or ``NONE`` where its column has none; None: a struct is not one that
        was put together from columns.
    """
    found = np.full(len(nodes), NONE, np.int64)
    known = np.flatnonzero(nodes != NONE)
    ends = np.array([*circuit.starts[1:], circuit.size])
    numbers = np.searchsorted(ends, nodes[known], "right")
    for number in np.unique(numbers).tolist():
        block = circuit.blocks[number]
        field = _field(block.expression, call) if isinstance(block, ValueFunction) else None
        if not isinstance(block, ValueFunction) or field is None or block.failing is not None:
            return None
        own = known[numbers == number]
        cells = dict(block.cells).get(field.id)
        if cells is not None:
            found[own] = cells[nodes[own] - circuit.starts[number]]
    return found


def _field(struct: Expression, call: Call) -> Attribute | None:
    """The column that a field of a struct is; None if it is computed."""
    options = dict(call.options)
    place = options.get("ordinal")
    if not (isinstance(struct, Call) and is_struct(struct) and isinstance(place, int)):
        return None
    names, values = struct.arguments[::2], struct.arguments[1::2]
    if not place < len(values):
        return None
    name, value = names[place], values[place]
    is_it = isinstance(name, Literal) and str(name.value).lower() == str(options.get("field")).lower()
    return value if is_it and isinstance(value, Attribute) else None
