"""Node types, labels and operand sides of provenance graphs.

Source: Amsterdamer and others, "Putting Lipstick on Pig", PVLDB 5(4), 2012, sections 3 and 4.
"""

from __future__ import annotations

INPUT, STATE, INVOCATION, MODULE_INPUT, MODULE_OUTPUT, MODULE_STATE, OPERATOR, VALUE, ZOOM = range(9)
"""Types of nodes by number: ``wi st m i o s op val zoom``."""
TYPES = ("wi", "st", "m", "i", "o", "s", "op", "val", "zoom")
"""Types of nodes as files have them."""
TYPE_NUMBERS = {name: number for number, name in enumerate(TYPES)}

P, V = 0, 1
"""Kinds: a node is about the existence of a tuple (p) or about a value (v)."""
KINDS = ("p", "v")

PLAIN, LEFT, RIGHT = 0, 1, 2
"""Sides of edges into a difference or a comparison."""
SIDES = (None, "left", "right")

TIMES, PLUS, DELTA, MONUS = "·", "+", "δ", "⊖"
TENSOR, CONSTANT, CELL = "⊗", "const", "value"
GATE = "GATE"
"""The first word of the label of a gate: a black box that opens when rows may come that nothing was made for."""
ENTRIES = frozenset({"GATE grown", "GATE present"})
"""Gates that open when what they watch may be there more often, or otherwise: not when it goes."""
AGGREGATES = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG", "COLLECT"})
WORDS = (TIMES, PLUS, DELTA, MONUS, TENSOR, CONSTANT, CELL, *sorted(AGGREGATES))
"""Labels that have a meaning to the graph; all others are names."""
SOURCES = frozenset({INPUT, STATE, INVOCATION})
"""Types that no edge leads into."""
TOKENS = (INPUT, STATE)
"""Types whose label is the id of a source record."""
BOUNDARY = (MODULE_INPUT, MODULE_OUTPUT, MODULE_STATE)
"""Types of tuples that cross the border of a module, and of their cells."""


def kind_of(type_: int, label: str) -> int:
    """The kind of a node: cells and values are v-nodes, all others p-nodes."""
    return V if type_ == VALUE or (type_ in BOUNDARY and label == CELL) else P


def function_label(name: str) -> str:
    """The label of a function: its name, with ``()`` after one that is a word of the graph's language or a sign.

    So the value of ``x + 1`` has the label ``+()``, and that of a function ``SUM`` of the user's the label ``SUM()``.
    """
    is_plain = any(map(str.isalnum, name)) and name not in WORDS and not is_guard(name)
    return name if is_plain else f"{name}()"


def is_function(label: str) -> bool:
    """Return whether a label can only be that of a function."""
    return label.endswith("()") and len(label) > 2


def is_guard(label: str) -> bool:
    """Return whether a label is that of a comparison, such as ``[<=]`` or ``[COUNT >= 2]``."""
    return label.startswith("[") and label.endswith("]")
